// What this file is for: what a stage has made of its items and cannot pass on yet.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <troupe/detail/streams/node.hpp>

namespace troupe::detail::streams {

/// What a stage has made and not passed on yet, and the mark that goes behind it.
template <class R>
class made_items {
 public:
  made_items(outlet<R>& out, counts& c) : out_(out), counted_(c) {}
  void add(R&& r, const origin& from) {
    items_.push_back({std::move(r), from});
    counted_.created.add();
    counted_.held.add();
  }
  void follow(const mark& m) {
    behind_ = m;
    has_mark_ = true;
  }
  bool empty() const { return items_.empty(); }
  demand pass_on(demand d) {
    while (at_ != items_.size()) {
      counted_.held.take(1);
      counted_.out.add();
      auto& [r, from] = items_[at_++];
      const demand next = out_.of(0).push(std::move(r), from);
      if (next == demand::none) return next;
      d = least(d, next);
    }
    items_.clear();
    at_ = 0;
    if (!std::exchange(has_mark_, false)) return d;
    return least(d, out_.of(0).pass(behind_));
  }

 private:
  outlet<R>& out_;
  counts& counted_;
  std::vector<std::pair<R, origin>> items_;
  std::size_t at_ = 0;
  mark behind_;
  bool has_mark_ = false;
};

}  // namespace troupe::detail::streams
