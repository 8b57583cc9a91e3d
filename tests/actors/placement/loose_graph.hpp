// What this file is for: tasks and arrays in order, without placement: for tests of its parts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "actors/logic/data/dependencies.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/phase.hpp"
#include "plain_task.hpp"
#include "tests/support/plain_device.hpp"

namespace test {

using namespace troupe::detail;

/// Owns arrays of one tile and tasks that use them; the test orders and retires these. One thread.
class loose_graph : private troupe::logic::dependencies::callbacks {
 public:
  loose_graph() : rt(new runtime_state), order(*this) {
    rt->host = std::make_unique<plain_device>();
    rt->the_engine.store(reinterpret_cast<engine*>(this));  // records ask only whether there is one
  }
  ~loose_graph() {
    for (task_record* t : tasks_)
      if (t->sequence != 0) retire(t);
    for (task_record* t : tasks_) recycle(t);
    for (array_core* a : arrays_) destroy(*a);
    rt->release();
  }
  loose_graph(const loose_graph&) = delete;
  loose_graph& operator=(const loose_graph&) = delete;

  /// An array of one tile of `elements` times 8 bytes.
  array_core* array(std::string name, troupe::index_t elements = 1) {
    auto* a = new array_core;
    a->spec.name = std::move(name);
    a->spec.rank = 1;
    a->spec.element = 8;
    a->spec.size = a->spec.tile = {elements, 1, 1, 1};
    a->id = ++ids_;
    a->states = &a->single;
    a->single.valid = true;
    a->bytes = &a->single_bytes;
    a->tile_bytes_max = static_cast<std::size_t>(elements) * 8;
    a->rt = rt;
    rt->retain();
    rt->arrays.fetch_add(1);
    arrays_.push_back(a);
    return a;
  }
  using use = test::use;
  /// A task that uses these tiles; not ordered yet.
  task_record* task(const std::vector<use>& uses, std::string name = {}) {
    return own(plain_task(*rt, uses, std::move(name)));
  }
  static task_extra& extra(task_record* t) { return test::extra(t); }
  /// A task that has been ordered after those before it.
  task_record* ordered(const std::vector<use>& uses, std::string name = {}) {
    return in_order(task(uses, std::move(name)));
  }
  /// Orders a task after those before it, and returns it.
  task_record* in_order(task_record* t) {
    std::vector<task_record*> combines;
    t->pending = 1;
    order.order(*t, combines);
    --t->pending;
    return t;
  }
  /// Has this free a task that somebody else made.
  task_record* own(task_record* t) {
    if (std::ranges::find(tasks_, t) == tasks_.end()) tasks_.push_back(t);
    return t;
  }
  /// Ends a task; returns those that became ready.
  std::vector<task_record*> retire(task_record* t, std::exception_ptr why = nullptr) {
    if (claim(*t)) {
      t->error = std::move(why);
      fulfil(*t, board);
    }
    std::vector<task_record*> ready;
    still_wait.clear();
    order.retire(
        *t, [&](task_record& next) { ready.push_back(&next); },
        [&](task_record& next) { still_wait.push_back(&next); });
    return ready;
  }

  std::vector<task_record*> still_wait;  // successors of the last one retired that wait for others, once for each edge
  runtime_state* rt;
  wait_table board;
  troupe::logic::dependencies order;

 private:
  task_record* make_combine(array_core&, reduction&) override { return nullptr; }
  void fail(task_record& t, std::exception_ptr why, bool) override {
    if (!claim(t)) return;
    t.error = std::move(why);
    fulfil(t, board);
  }

  std::vector<array_core*> arrays_;
  std::vector<task_record*> tasks_;
  std::uint64_t ids_ = 0;
};

}  // namespace test
