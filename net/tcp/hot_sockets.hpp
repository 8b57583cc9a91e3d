// What this file is for: sockets that a thread which polls reads without asking the kernel first which are readable.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To ask (`epoll_wait`), and to ask to be told again (`epoll_ctl`), costs as much as to read. Where two nodes answer
// each other, the socket from which the last message came is the one from which the next one comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace troupe::net {

/// The sockets from which something has come lately, as handles, and whose turn it is. Pure; `Handle` is any value that
/// is false when default constructed. One thread at a time.
template <class Handle>
class hot_sockets {
 public:
  /// Notes that all sockets were asked, and this one had something.
  void has_come(Handle which) {
    for (entry& e : all_) {
      if (!(e.which == which)) continue;
      e.in_vain = 0;
      return;
    }
    if (count_ < all_.size()) {
      all_[count_++] = {which, 0};
      return;
    }
    all_[oldest_++ % all_.size()] = {which, 0};
  }
  /// Returns the socket to be read in this poll; none: all are to be asked.
  Handle next() {
    if (count_ == 0 || ++polls_ % (looks_each(count_) + 1) == 0) return {};
    at_ = (at_ + 1) % count_;
    return all_[at_].which;
  }
  /// Notes whether the socket had something. One that has had nothing for long is left to those that are asked.
  void looked(Handle which, bool found) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!(all_[i].which == which)) continue;
      if (found)
        all_[i].in_vain = 0;
      else if (++all_[i].in_vain == in_vain_max)
        drop(i);
      return;
    }
  }
  /// Forgets a socket.
  void forget(Handle which) {
    for (std::size_t i = count_; i-- != 0;)
      if (all_[i].which == which) drop(i);
  }

 private:
  /// Looks in vain after which a socket is not hot any more: some hundred microseconds.
  static constexpr int in_vain_max = 512;
  struct entry {
    Handle which{};
    int in_vain = 0;
  };
  // How often hot sockets are looked at before all are asked.
  static constexpr std::uint64_t looks_each(std::size_t hot) { return hot < 3 ? 3 : hot; }
  void drop(std::size_t i) {
    all_[i] = all_[--count_];
    all_[count_] = {};
  }

  std::array<entry, 4> all_{};
  std::size_t count_ = 0, at_ = 0, oldest_ = 0;
  std::uint64_t polls_ = 0;
};

}  // namespace troupe::net
