// What this file is for: sockets that a thread which polls reads without asking the kernel first which are readable.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To ask (`epoll_wait`), and to ask to be told again (`epoll_ctl`), costs as much as to read. Where two nodes answer
// each other, the socket from which the last message came is the one from which the next one comes.
#pragma once

#include <array>
#include <cstddef>

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
  /// Returns the socket to be read in this poll; none: all are to be asked. They are when nothing has come for some
  /// looks, and now and then whatever comes.
  Handle next() {
    if (count_ == 0 || vain_ == vain_looks_max || looks_ == looks_max) {
      vain_ = looks_ = 0;
      return {};
    }
    ++looks_;
    at_ = (at_ + 1) % count_;
    return all_[at_].which;
  }
  /// Notes that all were asked and something had come: there may be more. They are asked again after the next look in
  /// vain, not at once: what came is mostly answered, and what comes then is on a hot socket.
  void found_some() {
    vain_ = vain_looks_max - 1;
    looks_ = looks_max - looks_after_some;
  }
  /// Notes whether the socket had something. One that has had nothing for long is left to those that are asked.
  void looked(Handle which, bool found) {
    vain_ = found ? 0 : vain_ + 1;
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
  /// Looks at hot sockets before all are asked: of those that find nothing, one after the other, and of any. So where
  /// each step of two nodes is one message, hardly any is found by asking, which takes three more calls.
  static constexpr int vain_looks_max = 16, looks_max = 64;
  /// The same of any, after something was found by asking.
  static constexpr int looks_after_some = 8;
  struct entry {
    Handle which{};
    int in_vain = 0;
  };
  void drop(std::size_t i) {
    all_[i] = all_[--count_];
    all_[count_] = {};
  }

  std::array<entry, 4> all_{};
  std::size_t count_ = 0, at_ = 0, oldest_ = 0;
  int vain_ = 0, looks_ = 0;  // since all were asked; of the last ones in vain
};

}  // namespace troupe::net
