// SPDX-License-Identifier: Apache-2.0
// Small files: plain creation by one and two threads, and the engine's local sync of such a tree.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

#include "cli/bench/measure.h"
#include "cli/escape.h"

#include "engine/base/unique_fd.h"

namespace volferry::cli::bench {

namespace {

constexpr unsigned kDirs = 40;
constexpr unsigned kFilesPerDir = 100;
constexpr std::uint64_t kFiles = std::uint64_t{kDirs} * kFilesPerDir;
constexpr std::size_t kFileBytes = 4096;

// A directory that disappears with everything in it, also when the work is interrupted.
class ScratchTree {
 public:
  static Result<ScratchTree> create(const std::string& directory) {
    std::string name = directory + "/.volferry-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      return fail_sys(fmt::format("create a directory in {}", escape_bytes(directory)));
    return ScratchTree(std::move(name));
  }
  ScratchTree(ScratchTree&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchTree& operator=(ScratchTree&&) = delete;
  ~ScratchTree() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void clear(const std::string& name) const {
    std::error_code ignored;
    std::filesystem::remove_all(path_ + "/" + name, ignored);
  }

 private:
  explicit ScratchTree(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// What a careful copier does for one file: content, mode and time through one descriptor.
bool create_file(int directory, const char* name,
                 const std::array<std::uint8_t, kFileBytes>& data) {
  const base::UniqueFd file(openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 1}};
  return file && write(file.get(), data.data(), data.size()) == static_cast<ssize_t>(data.size()) &&
         fchmod(file.get(), 0644) == 0 && futimens(file.get(), times) == 0;
}

// The directories `first`, `first` + `step`, ... of the tree.
bool create_dirs(const Context& context, const std::string& root, unsigned first, unsigned step) {
  std::array<std::uint8_t, kFileBytes> data{};
  data.fill(0x5a);
  for (unsigned d = first; d < kDirs; d += step) {
    const std::string path = fmt::format("{}/d{}", root, d);
    if (mkdir(path.c_str(), 0755) != 0 || context.stopped()) return false;
    const base::UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (unsigned f = 0; f < kFilesPerDir; ++f)
      if (!create_file(directory.get(), fmt::format("f{}", f).c_str(), data)) return false;
  }
  return true;
}

std::uint64_t create_tree(const Context& context, const std::string& root, unsigned threads) {
  if (mkdir(root.c_str(), 0755) != 0) return 0;
  std::array<bool, 2> done = {true, true};
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < threads; ++i)
      workers.emplace_back([&, i] { done[i] = create_dirs(context, root, i, threads); });
  }
  return done[0] && done[1] ? kFiles : 0;
}

// Like `measure`, but with the removal of what a step made kept out of the time.
double measure_creation(const Context& context, const ScratchTree& tree,
                        const std::function<std::uint64_t(const std::string&)>& step) {
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::duration spent{};
  std::uint64_t amount = 0;
  while (spent < context.duration && !context.stopped()) {
    const auto start = SteadyClock::now();
    const std::uint64_t done = step(tree.path() + "/target");
    spent += SteadyClock::now() - start;
    tree.clear("target");
    if (done == 0) return 0;
    amount += done;
  }
  return static_cast<double>(amount) / std::chrono::duration<double>(spent).count();
}

std::uint64_t sync_tree(Context& context, const std::string& source, const std::string& target) {
  SyncOptions options;
  options.durable = false;
  Observer silent;
  StopFlag stop{context.stop.load()};
  const Summary summary =
      run_sync(LocalEndpoint{source}, LocalEndpoint{target}, options, silent, context.logger, stop);
  return summary.exit_code() == 0 ? kFiles : 0;
}

Status run_files(Context& context) {
  VF_ASSIGN(const ScratchTree tree, ScratchTree::create(context.directory));
  const double one = measure_creation(
      context, tree, [&](const std::string& root) { return create_tree(context, root, 1); });
  const double two = measure_creation(
      context, tree, [&](const std::string& root) { return create_tree(context, root, 2); });
  const std::string source = tree.path() + "/source";
  if (create_tree(context, source, 2) == 0 && !context.stopped())
    return fail_with(Code::kDestinationWrite, "create files in " + escape_bytes(context.directory));
  const double synced = measure_creation(context, tree, [&](const std::string& root) {
    return mkdir(root.c_str(), 0755) == 0 ? sync_tree(context, source, root) : 0;
  });
  const double limit = std::max(one, two);
  context.rows.push_back({.name = "create 4 KiB files, 1 thread",
                          .unit = "files",
                          .rate = one,
                          .limit = limit,
                          .limit_name = "plain calls"});
  context.rows.push_back({.name = "create 4 KiB files, 2 threads",
                          .unit = "files",
                          .rate = two,
                          .limit = limit,
                          .limit_name = "plain calls"});
  context.rows.push_back({.name = "sync 4 KiB files, local",
                          .unit = "files",
                          .rate = synced,
                          .limit = limit,
                          .limit_name = "plain calls"});
  return {};
}

}  // namespace

void bench_files(Context& context) {
  const Status status = run_files(context);
  if (!status)
    context.rows.push_back(
        {.name = "small files", .unit = "files", .note = status.error().message()});
}

}  // namespace volferry::cli::bench
