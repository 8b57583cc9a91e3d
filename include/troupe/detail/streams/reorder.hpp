// What this file is for: the stage that puts items into the order of their times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <troupe/detail/streams/stages.hpp>
#include <troupe/detail/streams/state.hpp>
#include <troupe/error.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::detail::streams {

/// Holds items until the watermark has reached their times, or there are too many of them: then the earliest goes on.
template <class T>
class reorder_lane final : public inlet<T> {
 public:
  reorder_lane(const node& of, const troupe::stream::reorder_options& o, outlet<T>& out)
      : items_max_(o.items), out_(out), attempt_(of, counted), state_(of.name(), of.state) {}

  demand push(T&& item, const origin& from) override {
    counted.in.add();
    attempt_.began();
    if (from.event_ns != mark::never && from.event_ns < passed_) {
      counted.dropped.add();
      counted.late.add();
      return demand::more;
    }
    try {
      if (from.event_ns == mark::never)
        throw error(errc::bad_argument, "an item without a time came to in_time_order: put event_time before it");
      state_.check();
      state_.make_room(2 * sizeof(waits) + bytes_elsewhere(item));  // then the item is not lost on the way
      const counted_once<T> elsewhere(state_, item);
      items_.emplace(from.event_ns, waits{std::move(item), from, elsewhere});
    } catch (...) {
      return attempt_.failed(*self, item, from, true);
    }
    counted.held.add();
    return pass_on(demand::more);
  }
  demand pass(const mark& m) override {
    counted.note(m);
    behind_ = m;
    has_mark_ = true;
    until_ = std::max(until_, m.event_ns);
    return pass_on(demand::more);
  }
  demand resume() override {
    const demand d = out_.of(0).resume();
    return d == demand::none ? d : pass_on(d);
  }
  void idle() override { out_.of(0).idle(); }
  bool finish() override {
    until_ = std::numeric_limits<std::int64_t>::max();
    return pass_on(demand::more) != demand::none && items_.empty() && out_.of(0).finish();
  }
  std::uint64_t state_bytes() const { return state_.used(); }
  counts counted;
  strand* self = nullptr;

 private:
  struct waits {
    T item;
    origin from;
    [[no_unique_address]] counted_once<T> elsewhere;
  };
  using waiting =
      std::multimap<std::int64_t, waits, std::less<>, state_allocator<std::pair<const std::int64_t, waits>>>;

  demand pass_on(demand d) {
    while (!items_.empty() && (items_.begin()->first <= until_ || items_.size() > items_max_)) {
      const auto first = items_.begin();
      passed_ = first->first;
      waits w = std::move(first->second);
      items_.erase(first);
      w.elsewhere.give_back(state_);
      counted.held.take(1);
      counted.out.add();
      const demand next = out_.of(0).push(std::move(w.item), w.from);
      if (next == demand::none) return next;
      d = least(d, next);
    }
    if (!std::exchange(has_mark_, false)) return d;
    return least(d, out_.of(0).pass(behind_));
  }

  const std::size_t items_max_;
  outlet<T>& out_;
  attempt<T> attempt_;
  state_account state_;
  waiting items_{typename waiting::allocator_type(state_)};
  std::int64_t until_ = mark::never, passed_ = mark::never;
  mark behind_;
  bool has_mark_ = false;
};

template <class T>
class reorder_node final : public stage<T, reorder_lane<T>> {
 public:
  reorder_node(std::string name, const troupe::stream::reorder_options& o)
      : stage<T, reorder_lane<T>>(std::move(name), "in_time_order") {
    this->lanes_.push_back(std::make_unique<reorder_lane<T>>(*this, o, out));
  }
  outlet<T> out;
};

}  // namespace troupe::detail::streams
