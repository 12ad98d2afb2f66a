// SPDX-License-Identifier: Apache-2.0
// Seeded directory trees with sizes around the engine's boundaries, and seeded edits of them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace volferry::session::testing {

class RandomTree {
 public:
  // `keep_mtimes`: an edited file gets the time and size that it had, so that only its content
  // tells.
  RandomTree(std::string root, std::uint64_t seed, bool keep_mtimes)
      : root_(std::move(root)), random_(seed), keep_mtimes_(keep_mtimes) {}

  // Fills the empty root.
  void fill();
  // Changes about `count` things in it.
  void edit(unsigned count);
  // Random modes, owners (as root) and times everywhere, the root included.
  void dress();

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool chance(unsigned percent) { return pick(100) < percent; }
  std::string fresh_name();
  std::string content(std::uint64_t size);
  std::uint64_t size();
  void fill_directory(const std::string& path, unsigned depth);
  void make_item(const std::string& path);
  void edit_file(const std::string& path);
  void replace(const std::string& path);
  std::vector<std::string> all(bool files_only) const;
  std::string any_of(const std::vector<std::string>& paths) { return paths[pick(paths.size())]; }

  std::string root_;
  std::mt19937_64 random_;
  bool keep_mtimes_;
  unsigned names_ = 0;
};

}  // namespace volferry::session::testing
