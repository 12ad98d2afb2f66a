// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/session/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

namespace volferry::session::testing {

namespace {

std::string contents_of_fd(int fd, std::uint64_t size) {
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, text.data() + done, size - done, static_cast<off_t>(done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

std::map<std::string, std::string> attributes_of(const std::string& path) {
  std::map<std::string, std::string> found;
  std::string names(65536, '\0');
  const ssize_t length = ::llistxattr(path.c_str(), names.data(), names.size());
  for (ssize_t at = 0; at < length;) {
    const std::string name(names.c_str() + at);
    at += static_cast<ssize_t>(name.size()) + 1;
    if (name == "security.selinux") continue;
    std::string value(65536, '\0');
    const ssize_t got = ::lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (got < 0) continue;
    value.resize(static_cast<std::size_t>(got));
    found[name] = value;
  }
  return found;
}

class Walker {
 public:
  explicit Walker(Tree& tree) : tree_(tree) {}
  void visit(const std::string& full, const std::string& path) {
    struct stat st{};
    ASSERT_EQ(::lstat(full.c_str(), &st), 0) << full;
    Item item;
    item.mode = st.st_mode & 07777;
    item.uid = st.st_uid;
    item.gid = st.st_gid;
    item.mtime_s = st.st_mtim.tv_sec;
    item.mtime_ns = st.st_mtim.tv_nsec;
    item.attributes = attributes_of(full);
    switch (st.st_mode & S_IFMT) {
      case S_IFDIR:
        item.type = 'd';
        break;
      case S_IFLNK:
        item.type = 'l';
        break;
      case S_IFIFO:
        item.type = 'p';
        break;
      case S_IFSOCK:
        item.type = 's';
        break;
      case S_IFBLK:
        item.type = 'b';
        break;
      case S_IFCHR:
        item.type = 'c';
        break;
      default:
        item.type = 'f';
        break;
    }
    if (item.type == 'b' || item.type == 'c') item.rdev = st.st_rdev;
    if (item.type == 'l') {
      item.mode = 0777;
      item.content.resize(4096);
      const ssize_t got = ::readlink(full.c_str(), item.content.data(), item.content.size());
      item.content.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    if (item.type == 'f') {
      const base::UniqueFd fd(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
      ASSERT_TRUE(fd) << full;
      ASSERT_EQ(::fsync(fd.get()), 0);  // delayed allocation has no blocks yet
      ASSERT_EQ(::fstat(fd.get(), &st), 0);
      item.allocated = static_cast<std::uint64_t>(st.st_blocks) * 512;
      item.content = contents_of_fd(fd.get(), static_cast<std::uint64_t>(st.st_size));
    }
    if (item.type != 'd') {
      item.linked_with = first_.try_emplace({st.st_dev, st.st_ino}, path).first->second;
    }
    const bool directory = item.type == 'd';
    tree_[path] = std::move(item);
    if (!directory) return;
    std::vector<std::string> names;
    DIR* dir = ::opendir(full.c_str());
    ASSERT_NE(dir, nullptr) << full;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name(static_cast<const char*>(entry->d_name));
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(dir);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      visit(full + "/" + name, path.empty() ? name : path + "/" + name);
    }
  }

 private:
  Tree& tree_;
  std::map<std::pair<dev_t, ino_t>, std::string> first_;
};

}  // namespace

TempDir::TempDir() {
  path_ = std::filesystem::current_path().string() + "/session_test_XXXXXX";
  EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::make(const std::string& name) const {
  std::filesystem::create_directories(at(name));
  return at(name);
}

void write_file(const std::string& path, const std::string& content, unsigned mode) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd) << path << ": " << std::strerror(errno);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = ::write(fd.get(), content.data() + done, content.size() - done);
    ASSERT_GT(put, 0) << path;
    done += static_cast<std::size_t>(put);
  }
  ASSERT_EQ(::fchmod(fd.get(), mode), 0);
}

std::string read_file(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0) {
    ADD_FAILURE() << "cannot read " << path << ": " << std::strerror(errno);
    return {};
  }
  return contents_of_fd(fd.get(), static_cast<std::uint64_t>(st.st_size));
}

void set_mtime(const std::string& path, std::int64_t seconds, std::uint32_t nanoseconds) {
  const struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, static_cast<long>(nanoseconds)}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

bool exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

base::UniqueFd open_dir(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(fd) << path << ": " << std::strerror(errno);
  return fd;
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

bool set_attribute(const std::string& path, const std::string& name, const std::string& value) {
  return ::lsetxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) == 0;
}

Tree tree_of(const std::string& root) {
  Tree tree;
  Walker(tree).visit(root, "");
  return tree;
}

std::vector<std::string> differences(const Tree& want, const Tree& have, const TreeRules& rules) {
  std::vector<std::string> lines;
  for (const auto& [path, item] : have) {
    if (!want.contains(path)) lines.push_back("extra " + path);
  }
  for (const auto& [path, item] : want) {
    const auto it = have.find(path);
    if (it == have.end()) {
      lines.push_back("missing " + path);
      continue;
    }
    const Item& other = it->second;
    const auto check = [&](bool same, const std::string& what) {
      if (!same) lines.push_back(what + " " + (path.empty() ? "." : path));
    };
    check(item.type == other.type, std::string("type ") + item.type + other.type);
    if (item.type != other.type || (path.empty() && !rules.root)) continue;
    check(item.mode == other.mode, "mode");
    check(item.uid == other.uid && item.gid == other.gid, "owner");
    check(item.mtime_s == other.mtime_s && item.mtime_ns == other.mtime_ns, "mtime");
    check(item.rdev == other.rdev, "rdev");
    check(item.content.size() == other.content.size(), "size");
    check(item.content == other.content, "content");
    check(item.attributes == other.attributes, "attributes");
    if (rules.links) {
      check(item.linked_with == other.linked_with,
            "links " + item.linked_with + " " + other.linked_with);
    }
    const std::uint64_t slack = item.allocated / 20 + (64u << 10);
    if (rules.holes) {
      check(other.allocated <= item.allocated + slack && item.allocated <= other.allocated + slack,
            "holes " + std::to_string(item.allocated) + " " + std::to_string(other.allocated));
    }
  }
  return lines;
}

std::vector<std::string> differences(const std::string& want, const std::string& have,
                                     const TreeRules& rules) {
  return differences(tree_of(want), tree_of(have), rules);
}

void Recorder::on_change(const ItemChangeEvent& event) {
  const std::lock_guard lock(mutex_);
  changes_.push_back(event);
}
void Recorder::on_error(const ItemError& error) {
  const std::lock_guard lock(mutex_);
  errors_.push_back(error);
}
void Recorder::on_warning(const ItemError& warning) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(warning);
}
void Recorder::on_difference(const DifferenceEvent& event) {
  const std::lock_guard lock(mutex_);
  found_.push_back(event);
}
std::vector<ItemChangeEvent> Recorder::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}
std::vector<ItemError> Recorder::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}
std::vector<ItemError> Recorder::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}
std::vector<DifferenceEvent> Recorder::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}
std::vector<std::string> Recorder::found_lines() const {
  std::vector<std::string> lines;
  for (const DifferenceEvent& event : found()) {
    std::string line = event.path + ":";
    for (const std::string& kind : event.kinds) line += (line.ends_with(':') ? " " : ",") + kind;
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

SyncOptions quick_options() {
  SyncOptions options;
  options.durable = false;
  options.memory_bytes = 64u << 20;
  options.io = IoChoice::kThreads;
  options.threads = 2;
  options.retries = 0;
  return options;
}

LoopbackServer::LoopbackServer(const std::string& root, unsigned streams) : key_(32, 0x5a) {
  transport::ServerOptions options;
  options.listen_host = "127.0.0.1";
  options.port = 0;
  options.psk.push_back({"test", key_});
  options.channel.streams = streams;
  auto made = transport::Server::create(options);
  EXPECT_TRUE(made) << (made ? "" : made.error().message());
  server_ = std::move(*made);
  const std::string address = server_->address();
  port_ = static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  ServeOptions serve;
  serve.root = root;
  serve.confine = false;
  serve.limits = quick_options();
  serve.limits.streams = streams;
  thread_ = std::thread([this, serve] {
    EXPECT_EQ(run_serve(*server_, serve, observer_, logger_, stop_, nullptr), 0);
  });
}

LoopbackServer::~LoopbackServer() {
  stop_.store(143);
  thread_.join();
}

TlsEndpoint LoopbackServer::endpoint(const std::string& subpath) const {
  TlsEndpoint endpoint;
  endpoint.target.host = "127.0.0.1";
  endpoint.target.port = port_;
  endpoint.credentials.psk_identity = "test";
  endpoint.credentials.psk = key_;
  endpoint.subpath = subpath;
  return endpoint;
}

Summary sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options) {
  Observer nobody;
  return sync(source, destination, options, nobody);
}

Summary sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options,
             Observer& observer) {
  base::NullLogger logger;
  StopFlag stop{0};
  return run_sync(source, destination, options, observer, logger, stop);
}

Summary verify(const Endpoint& left, const Endpoint& right, const SyncOptions& options,
               Observer& observer) {
  base::NullLogger logger;
  StopFlag stop{0};
  return run_verify(left, right, options, observer, logger, stop);
}

std::string text_of(const Summary& summary) {
  std::string text = "exit " + std::to_string(summary.exit_code());
  if (summary.fatal) text += " fatal: " + summary.fatal->message();
  for (const ItemError& error : summary.errors) {
    text += "\n  " + error.path + ": " + error.what + " (" + std::strerror(error.os_errno) + ")";
  }
  return text;
}

}  // namespace volferry::session::testing
