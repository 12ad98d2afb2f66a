// SPDX-License-Identifier: Apache-2.0
// The two ends of a credit window. A frame may travel where the window has room for its charge, or
// where nothing is outstanding: so one frame larger than the whole window passes too, alone. Not
// thread-safe: the channel's lock holds.
#pragma once

#include <cstdint>

namespace volferry::transport {

// What the peer still lets us send of one class.
class SendWindow {
 public:
  void open(std::uint64_t window) {
    window_ = static_cast<std::int64_t>(window);
    available_ = window_;
  }
  bool admits(std::uint64_t charge) const {
    return available_ == window_ || available_ >= static_cast<std::int64_t>(charge);
  }
  void spend(std::uint64_t charge) { available_ -= static_cast<std::int64_t>(charge); }
  // False where the peer returns more than was spent.
  bool give_back(std::uint64_t credit) {
    available_ += static_cast<std::int64_t>(credit);
    return available_ <= window_;
  }

 private:
  std::int64_t window_ = 0;
  std::int64_t available_ = 0;
};

// What we let the peer send of one class.
class ReceiveWindow {
 public:
  void open(std::uint64_t window) { window_ = window; }
  // False where the peer has no credit for this frame.
  bool receive(std::uint64_t charge) {
    if (outstanding_ != 0 && outstanding_ + charge > window_) return false;
    outstanding_ += charge;
    held_ += charge;
    return true;
  }
  // False where more is returned than the handler ever had.
  bool consume(std::uint64_t charge) {
    if (charge > held_) return false;
    held_ -= charge;
    due_ += charge;
    return true;
  }
  // Credit goes back in eighths of the window, and earlier only where the peer might be waiting for
  // it: it has been served completely, and the largest frame would not fit into what it has left.
  bool should_return() const;
  // What to return now; 0: nothing.
  std::uint64_t take_due();

 private:
  std::uint64_t window_ = 0;
  std::uint64_t outstanding_ = 0;  // received and not yet returned
  std::uint64_t held_ = 0;         // received and not yet consumed
  std::uint64_t due_ = 0;          // consumed and not yet returned
};

}  // namespace volferry::transport
