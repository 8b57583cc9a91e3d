// What this file is for: stages where a flow parts into several, and where several become one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/streams/stages.hpp>

namespace troupe::detail::streams {

/// Passes each item on to one of several stages, or a copy of it to each.
template <class T, class F>
class split_lane final : public inlet<T> {
 public:
  split_lane(const node& of, F& choose, std::vector<std::unique_ptr<outlet<T>>>& outs)
      : of_(of), choose_(choose), outs_(outs), attempt_(of, counted) {}
  demand push(T&& item, const origin& from) override {
    counted.in.add();
    attempt_.began();
    return pass_on(item, from);
  }
  demand pass(const mark& m) override {
    demand all = demand::more;
    for (auto& o : outs_) all = least(all, o->of(0).pass(m));
    return all;
  }
  demand resume() override {
    demand all = demand::more;
    for (auto& o : outs_) all = least(all, o->of(0).resume());
    if (all == demand::none || !attempt_.waits()) return all;
    std::unique_ptr<held<T>> again = attempt_.take(*self);
    return again ? pass_on(again->value, again->from) : demand::none;
  }
  void idle() override {
    for (auto& o : outs_) o->of(0).idle();
  }
  bool finish() override {
    bool all = true;
    for (auto& o : outs_) all = o->of(0).finish() && all;
    return all;
  }
  counts counted;
  strand* self = nullptr;

 private:
  demand pass_on(T& item, const origin& from) {
    if constexpr (std::is_same_v<F, std::nullptr_t>) {
      demand all = demand::more;
      for (std::size_t i = 0; i + 1 < outs_.size(); ++i) {
        std::optional<T> copy;
        try {
          copy.emplace(std::as_const(item));
        } catch (...) {
          counted.held.add();
          self->home->fail(of_.name().c_str(), from.number, 1, std::current_exception());
          return demand::none;
        }
        counted.created.add();
        counted.out.add();
        all = least(all, outs_[i]->of(0).push(std::move(*copy), from));
      }
      counted.out.add();
      return least(all, outs_.back()->of(0).push(std::move(item), from));
    } else {
      std::size_t which;
      try {
        which = static_cast<std::size_t>(std::invoke(choose_, std::as_const(item)));
      } catch (...) {
        return attempt_.failed(*self, item, from, true);
      }
      if (which >= outs_.size()) {
        counted.absorbed.add();
        return demand::more;
      }
      counted.out.add();
      return outs_[which]->of(0).push(std::move(item), from);
    }
  }
  const node& of_;
  F& choose_;
  std::vector<std::unique_ptr<outlet<T>>>& outs_;
  attempt<T> attempt_;
};
template <class T, class F>
class split_node final : public stage<T, split_lane<T, F>> {
 public:
  split_node(std::string name, const char* kind, F choose, std::size_t ways)
      : stage<T, split_lane<T, F>>(std::move(name), kind), choose_(std::move(choose)) {
    for (std::size_t i = 0; i < ways; ++i) outs.push_back(std::make_unique<outlet<T>>());
    this->lanes_.push_back(std::make_unique<split_lane<T, F>>(*this, choose_, outs));
  }
  std::vector<std::unique_ptr<outlet<T>>> outs;

 private:
  F choose_;
};

/// Passes items on as they come, from wherever they come.
template <class T>
class pass_lane final : public inlet<T> {
 public:
  explicit pass_lane(outlet<T>& out) : out_(out) {}
  demand push(T&& item, const origin& from) override {
    counted.in.add();
    counted.out.add();
    return out_.of(0).push(std::move(item), from);
  }
  demand pass(const mark& m) override { return out_.of(0).pass(m); }
  demand resume() override { return out_.of(0).resume(); }
  void idle() override { out_.of(0).idle(); }
  bool finish() override { return out_.of(0).finish(); }
  counts counted;
  strand* self = nullptr;

 private:
  outlet<T>& out_;
};
template <class T>
class merge_node final : public stage<T, pass_lane<T>> {
 public:
  explicit merge_node(std::string name) : stage<T, pass_lane<T>>(std::move(name), "merge") {
    this->lanes_.push_back(std::make_unique<pass_lane<T>>(out));
  }
  bool joins() const override { return true; }
  outlet<T> out;
};

}  // namespace troupe::detail::streams
