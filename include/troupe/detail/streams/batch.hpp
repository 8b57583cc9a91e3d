// What this file is for: the stage that gathers items in vectors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/streams/stages.hpp>
#include <troupe/stream/item.hpp>
#include <troupe/stream/options.hpp>

namespace troupe::detail::streams {

/// Gathers items until there are enough, of number or bytes, or the first has waited long enough.
template <class T>
class batch_lane final : public inlet<T> {
 public:
  batch_lane(const troupe::stream::batch_options& o, outlet<std::vector<T>>& out) : wanted_(o), out_(out) {}
  demand push(T&& item, const origin& from) override {
    counted.in.add();
    counted.held.add();
    if (items_.empty()) {
      first_ = from;
      first_.event_ns = mark::never;  // each of its items had a time of its own
      items_.reserve(std::min<std::size_t>(wanted_.items, 1024));
      due_ = wanted_.delay.count() > 0 ? now_ns() + wanted_.delay.count() : 0;
      if (due_ != 0) self->home->ready_at(*self, at(due_));
    }
    bytes_ += troupe::stream::item_bytes<T>::of(item);
    items_.push_back(std::move(item));
    return items_.size() >= wanted_.items || bytes_ >= wanted_.bytes ? pass_on() : demand::more;
  }
  // A mark waits behind the items that came before it; those before a barrier do not wait for others.
  demand pass(const mark& m) override {
    const bool is_barrier = m.barrier != waiting_.barrier;
    waiting_ = m;
    if (items_.empty()) return out_.of(0).pass(m);
    has_mark_ = true;
    return is_barrier ? pass_on() : demand::more;
  }
  demand resume() override {
    demand d = out_.of(0).resume();
    if (d == demand::none) return d;
    if (has_mark_ && items_.empty()) d = pass_mark();
    if (d == demand::none || items_.empty() || due_ == 0) return d;
    if (now_ns() >= due_) return pass_on();
    self->home->ready_at(*self, at(due_));
    return d;
  }
  void idle() override {
    if (!items_.empty() && wanted_.delay.count() <= 0) pass_on();
    out_.of(0).idle();
  }
  bool finish() override {
    if (!items_.empty() && pass_on() == demand::none) return false;
    return out_.of(0).finish();
  }
  counts counted;
  strand* self = nullptr;

 private:
  static std::chrono::steady_clock::time_point at(std::int64_t ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
  }
  demand pass_on() {
    counted.held.take(items_.size());
    counted.absorbed.add(items_.size());
    counted.created.add();
    counted.out.add();
    bytes_ = 0;
    due_ = 0;
    const demand d = out_.of(0).push(std::exchange(items_, {}), first_);
    return has_mark_ && d != demand::none ? least(d, pass_mark()) : d;
  }
  demand pass_mark() {
    has_mark_ = false;
    return out_.of(0).pass(waiting_);
  }
  const troupe::stream::batch_options wanted_;
  outlet<std::vector<T>>& out_;
  std::vector<T> items_;
  std::size_t bytes_ = 0;
  origin first_;
  mark waiting_;
  bool has_mark_ = false;
  std::int64_t due_ = 0;
};
template <class T>
class batch_node final : public stage<T, batch_lane<T>> {
 public:
  batch_node(std::string name, const troupe::stream::batch_options& o)
      : stage<T, batch_lane<T>>(std::move(name), "batch") {
    this->lanes_.push_back(std::make_unique<batch_lane<T>>(o, out));
  }
  outlet<std::vector<T>> out;
};

}  // namespace troupe::detail::streams
