// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/io/scratch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "engine/io/file.h"

namespace volferry::io::test {
namespace {

constexpr mode_t kMode = 0600;
constexpr std::uint64_t kImageBytes = std::uint64_t{320} << 20;  // mkfs.xfs wants 300 MiB

std::string reason(const std::string& what) { return what + ": " + ::strerror(errno); }

}  // namespace

std::vector<std::uint8_t> pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() | 1U);
  return bytes;
}

ScratchDir::ScratchDir(const std::string& parent) {
  path_ = std::filesystem::absolute(parent).lexically_normal().string() + "/io_test_XXXXXX";
  EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

base::UniqueFd ScratchDir::file(const std::string& name, const std::vector<std::uint8_t>& content,
                                int flags) const {
  const std::string path = path_ + "/" + name;
  base::UniqueFd plain(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  EXPECT_TRUE(plain) << path << ": " << ::strerror(errno);
  EXPECT_TRUE(write_full(plain.get(), content.data(), content.size(), 0));
  if (flags == 0) return plain;
  return base::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags));
}

base::UniqueFd ScratchDir::sparse(const std::string& name, std::uint64_t size) const {
  base::UniqueFd fd = file(name, {});
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

std::vector<std::uint8_t> content_of(int fd) {
  const auto size = data_size(fd);
  EXPECT_TRUE(size);
  std::vector<std::uint8_t> bytes(*size);
  const auto count = read_full(fd, bytes.data(), bytes.size(), 0);
  EXPECT_TRUE(count && *count == bytes.size());
  return bytes;
}

std::uint64_t allocated_bytes(int fd) {
  // Delayed allocation has no blocks yet.
  EXPECT_EQ(::fsync(fd), 0);
  struct stat status{};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::unique_ptr<LoopDevice> LoopDevice::make(std::uint64_t size, std::string& why) {
  std::unique_ptr<LoopDevice> device(new LoopDevice());
  const base::UniqueFd image = device->dir_.sparse("image", size);
  const base::UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) {
    why = reason("/dev/loop-control");
    return nullptr;
  }
  // Another process may take the free one first: then ask again, a bounded number of times.
  for (int attempt = 0; attempt < 16; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) break;
    const std::string path = "/dev/loop" + std::to_string(number);
    const base::UniqueFd loop(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop) break;
    loop_config config{};
    config.fd = static_cast<__u32>(image.get());
    if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) == 0) {
      device->path_ = path;
      return device;
    }
    if (errno != EBUSY) break;
  }
  why = reason("no loop device");
  return nullptr;
}

LoopDevice::~LoopDevice() {
  if (path_.empty()) return;
  const base::UniqueFd loop(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (loop) ::ioctl(loop.get(), LOOP_CLR_FD);
}

base::UniqueFd LoopDevice::open(int flags) const {
  return base::UniqueFd(::open(path_.c_str(), flags | O_CLOEXEC));
}

std::unique_ptr<LoopMount> LoopMount::make(const std::string& type, std::string& why) {
  std::unique_ptr<LoopMount> mount(new LoopMount());
  mount->device_ = LoopDevice::make(kImageBytes, why);
  if (mount->device_ == nullptr) return nullptr;
  const std::string command = "PATH=$PATH:/usr/sbin:/sbin mkfs." + type + " -q " +
                              mount->device_->path() + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) {
    why = "mkfs." + type + " failed or is not installed";
    return nullptr;
  }
  if (::mount(mount->device_->path().c_str(), mount->path().c_str(), type.c_str(), 0, nullptr) !=
      0) {
    why = reason("mount of " + type);
    return nullptr;
  }
  mount->mounted_ = true;
  return mount;
}

LoopMount::~LoopMount() {
  if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
}

std::unique_ptr<TinyTmpfs> TinyTmpfs::make(std::uint64_t bytes, std::string& why) {
  std::unique_ptr<TinyTmpfs> tmpfs(new TinyTmpfs());
  const std::string options = "size=" + std::to_string(bytes);
  if (::mount("tmpfs", tmpfs->path().c_str(), "tmpfs", 0, options.c_str()) != 0) {
    why = reason("mount of tmpfs");
    return nullptr;
  }
  tmpfs->mounted_ = true;
  return tmpfs;
}

TinyTmpfs::~TinyTmpfs() {
  if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
}

}  // namespace volferry::io::test
