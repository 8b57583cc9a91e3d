// What this file is for: a world of tasks and arrays made by hand, for tests to order and retire them in any order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <exception>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/data/reduction.hpp"

namespace test {

using troupe::access_mode;
using troupe::index_t;
using troupe::detail::array_core;
using troupe::detail::task_record;
using troupe::logic::box4;

constexpr box4 line(index_t lo, index_t hi) { return {{lo, 0, 0, 0}, {hi, 1, 1, 1}}; }
constexpr box4 plane(index_t y0, index_t y1, index_t x0, index_t x1) { return {{y0, x0, 0, 0}, {y1, x1, 1, 1}}; }

inline constexpr troupe::detail::reduction_operator adds_numbers{[](void*, const void*, std::size_t) {}};
inline constexpr troupe::detail::combine_fn add_numbers = &adds_numbers;
inline constexpr troupe::detail::reduction_operator has_largest_number{[](void*, const void*, std::size_t) {}};
inline constexpr troupe::detail::combine_fn max_numbers = &has_largest_number;

/// Stands for placement before the dependencies, without executors: the test says what completes.
class graph_world final : public troupe::logic::dependencies::callbacks {
 public:
  struct use {
    array_core* array;
    access_mode mode;
    box4 where;
    troupe::detail::combine_fn op = nullptr;
  };

  explicit graph_world(bool recording = false) : deps(*this, recording ? &recorded : nullptr) {}
  ~graph_world() {
    for (array_core& a : arrays_) delete a.open;
  }
  graph_world(const graph_world&) = delete;
  graph_world& operator=(const graph_world&) = delete;

  array_core& array(std::initializer_list<index_t> size, std::initializer_list<index_t> tile, bool written = true) {
    array_core& a = arrays_.emplace_back();
    a.spec.rank = static_cast<int>(size.size());
    a.spec.name = std::string(1, static_cast<char>('A' + arrays_.size() - 1));
    std::copy(size.begin(), size.end(), a.spec.size.begin());
    std::copy(tile.begin(), tile.end(), a.spec.tile.begin());
    a.tile_count = 1;
    for (int d = 0; d < troupe::rank_max; ++d) {
      a.grid[d] = (a.spec.size[d] + a.spec.tile[d] - 1) / a.spec.tile[d];
      a.tile_count *= static_cast<std::uint32_t>(a.grid[d]);
    }
    a.many = std::make_unique<troupe::detail::tile_history[]>(a.tile_count);
    a.states = a.many.get();
    for (std::uint32_t t = 0; t < a.tile_count; ++t) a.states[t].valid = written;
    return a;
  }

  /// A task that nobody has submitted yet.
  task_record& task(const std::vector<use>& uses, std::string name = {}) {
    task_record& t = tasks_.emplace_back();
    extras_.push_back(std::make_unique<troupe::detail::task_extra>());
    t.extra = extras_.back().get();
    t.extra->options.name = name.empty() ? "task " + std::to_string(tasks_.size()) : std::move(name);
    auto& list = accesses_.emplace_back(uses.size());
    for (std::size_t i = 0; i < uses.size(); ++i) describe(list[i], uses[i]);
    t.accesses = list.data();
    t.access_count = static_cast<std::uint16_t>(list.size());
    return t;
  }
  /// The task also waits for another one.
  void wait_for(task_record& t, task_record& before, bool data) {
    auto& list = accesses_.emplace_back(t.access_count + 1u);
    std::copy(t.accesses, t.accesses + t.access_count, list.begin());
    list.back().array = nullptr;
    list.back().task = &before;
    list.back().link = data ? troupe::detail::link_mode::data : troupe::detail::link_mode::order;
    t.accesses = list.data();
    ++t.access_count;
  }

  void submit(task_record& t) {
    t.pending = 1;
    std::vector<task_record*> made;
    deps.order(t, made);
    for (task_record* s : made) {
      combines.push_back(s);
      if (--s->pending == 0) ready.push_back(s);
    }
    if (--t.pending == 0) ready.push_back(&t);
  }
  task_record& submitted(const std::vector<use>& uses, std::string name = {}) {
    task_record& t = task(uses, std::move(name));
    submit(t);
    return t;
  }
  /// The body has ended; a failed one with this error.
  void complete(task_record& t, std::exception_ptr error = nullptr) {
    std::erase(ready, &t);
    if (error && !t.error) t.error = error;
    deps.retire(t, [&](task_record& next) { ready.push_back(&next); });
  }
  /// Completes whatever is ready until nothing is.
  void complete_all() {
    while (!ready.empty()) complete(*ready.front());
  }

  bool is_ready(const task_record& t) const { return std::find(ready.begin(), ready.end(), &t) != ready.end(); }
  bool has_failed(const task_record& t) const { return t.error != nullptr; }

  // surroundings
  task_record* make_combine(array_core& a, troupe::detail::reduction& r) override {
    partials_.emplace_back(&r);
    task_record& t = task({{&a, access_mode::update, r.where}}, "combine");
    t.kind = troupe::detail::task_kind::combine;
    t.pending = 1;
    if (!t.accesses[0].where) describe_region(t.accesses[0], r.where, nullptr);
    t.accesses[0].where->partials = &r;
    return &t;
  }
  task_record* make_gate() noexcept override {
    task_record& t = task({}, "gate");
    t.kind = troupe::detail::task_kind::gate;
    t.pending = 1;
    gates.push_back(&t);
    return &t;
  }
  void fail(task_record& t, std::exception_ptr why, bool own) override {
    if (t.error) return;
    t.error = std::move(why);
    failed_itself[&t] = own;
  }

  troupe::logic::recorded_tiles recorded;
  troupe::logic::dependencies deps;
  std::vector<task_record*> ready, combines, gates;
  std::map<const task_record*, bool> failed_itself;

 private:
  void describe(troupe::detail::access& x, const use& u) {
    x.array = u.array;
    x.mode = u.mode;
    x.where = nullptr;
    const std::uint32_t tile = u.array->tile_at(u.where.lo);
    if (!u.op && u.array->tile_box(tile) == u.where) {
      x.tile = tile;
      return;
    }
    describe_region(x, u.where, u.op);
  }
  void describe_region(troupe::detail::access& x, const box4& where, troupe::detail::combine_fn op) {
    troupe::detail::region& r = regions_.emplace_back();
    r.lo = where.lo;
    r.hi = where.hi;
    r.limit_hi = x.array->spec.size;
    r.edge = troupe::border::refuse;
    r.combiner = op;
    x.where = &r;
  }

  std::deque<array_core> arrays_;
  std::deque<task_record> tasks_;
  std::deque<std::vector<troupe::detail::access>> accesses_;
  std::deque<troupe::detail::region> regions_;
  std::deque<std::unique_ptr<troupe::detail::task_extra>> extras_;
  std::deque<std::unique_ptr<troupe::detail::reduction>> partials_;
};

/// Runs `round(choose)` again and again, once for every sequence of answers that `choose(n)`, one of 0 .. n-1, can
/// give.
template <class Round>
void every_choice(Round&& round) {
  struct choice {
    std::size_t taken, of;
  };
  std::vector<choice> path;
  for (;;) {
    std::size_t depth = 0;
    round([&](std::size_t n) {
      if (depth == path.size()) path.push_back({0, n});
      return path[depth++].taken;
    });
    while (!path.empty() && path.back().taken + 1 == path.back().of) path.pop_back();
    if (path.empty()) return;
    ++path.back().taken;
  }
}

}  // namespace test
