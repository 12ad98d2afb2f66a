# Helpers shared by every folder: one library, test binary, benchmark or fuzz target in a line.

add_library(volferry_flags INTERFACE)
target_compile_features(volferry_flags INTERFACE cxx_std_23)
target_compile_options(volferry_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers>)
if(VOLFERRY_WERROR)
  target_compile_options(volferry_flags INTERFACE -Werror)
endif()
target_include_directories(volferry_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_link_libraries(volferry_flags INTERFACE Threads::Threads)
if(VOLFERRY_SANITIZE)
  target_compile_options(volferry_flags INTERFACE -fsanitize=${VOLFERRY_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(volferry_flags INTERFACE -fsanitize=${VOLFERRY_SANITIZE})
endif()

# volferry_library(NAME SOURCES a.cc b.cc DEPS public-targets PRIVATE private-targets)
function(volferry_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE" ${ARGN})
  add_library(volferry_${name} STATIC ${arg_SOURCES})
  add_library(volferry::${name} ALIAS volferry_${name})
  target_link_libraries(volferry_${name} PUBLIC volferry_flags ${arg_DEPS} PRIVATE ${arg_PRIVATE})
endfunction()

# volferry_test(NAME SOURCES a_test.cc DEPS targets): one GoogleTest binary, its cases known to ctest, label "unit".
function(volferry_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
endfunction()

# volferry_bench(NAME SOURCES a_bench.cc DEPS targets): one Google Benchmark binary.
function(volferry_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_bench ${arg_SOURCES})
  target_link_libraries(${name}_bench PRIVATE ${arg_DEPS} benchmark::benchmark benchmark::benchmark_main)
endfunction()

# volferry_fuzz(NAME SOURCE a_fuzz.cc DEPS targets): under libFuzzer a fuzzer, elsewhere a program that replays the
# checked-in corpus fuzz/corpus/NAME, which ctest runs with the label "fuzz".
function(volferry_fuzz name)
  cmake_parse_arguments(arg "" "SOURCE" "DEPS" ${ARGN})
  if(VOLFERRY_FUZZ)
    add_executable(${name}_fuzz ${arg_SOURCE})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name}_fuzz ${arg_SOURCE} "${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc")
    add_test(NAME fuzz.${name} COMMAND ${name}_fuzz "${CMAKE_SOURCE_DIR}/fuzz/corpus/${name}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
  endif()
  target_link_libraries(${name}_fuzz PRIVATE ${arg_DEPS})
endfunction()
