// SPDX-License-Identifier: Apache-2.0
// The frame of `volferry bench`: rows of a table, and how one of them is measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/log.h"
#include "engine/sync.h"

namespace volferry::cli::bench {

// One measurement beside what this machine can do at most. Rates are per second; 0: not measured.
struct Row {
  std::string name;
  std::string unit;  // "bytes" or "files"
  double rate = 0;
  double limit = 0;
  std::string limit_name;
  std::string note;  // why it is missing, or a figure that belongs to it
};

struct Context {
  std::chrono::milliseconds duration{500};  // of each measurement, about
  std::string directory;
  const StopFlag& stop;
  base::Logger& logger;
  // What the rows share.
  double memory_copy = 0;  // bytes a second, one thread
  double memory_read = 0;
  std::vector<Row> rows;

  bool stopped() const { return stop.load() != 0; }
};

// Repeats `step`, which returns how much it did, until `duration` has passed or the work is
// stopped; returns the amount a second. A step that does nothing ends the measurement with 0. The
// first step is not counted: it warms up.
double measure(const Context& context, const std::function<std::uint64_t()>& step);

// Pseudo-random bytes from a seed: incompressible, and quicker to make than the kernel's.
std::vector<std::uint8_t> random_data(std::size_t bytes, std::uint64_t seed);

// Each appends its rows.
void measure_memory_limits(Context& context);  // first: others compare with its figures
void bench_hash(Context& context);
void bench_disk(Context& context);
void bench_network(Context& context);
void bench_files(Context& context);

}  // namespace volferry::cli::bench
