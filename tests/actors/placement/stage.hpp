// What this file is for: placement without threads: executors that only collect, tasks that the test completes by hand.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "collector.hpp"
#include "plain_task.hpp"
#include "tests/support/plain_device.hpp"

namespace troupe::detail {
void retain(task_record*) noexcept;
void release(task_record*) noexcept;
}  // namespace troupe::detail

namespace test {

using namespace troupe::detail;

/// A placement with collectors. References to tasks and arrays are held until the end.
class stage {
 public:
  explicit stage(int executors, troupe::options o = {}, int slots = 1) : stage(std::move(o)) {
    for (int i = 0; i < executors; ++i) {
      const std::string name = "cpu:" + std::to_string(i);
      add({static_cast<std::uint16_t>(i), name, troupe::device_kind::cpu, host_space, slots});
    }
  }
  explicit stage(troupe::options o) : options(std::move(o)), rt(new runtime_state) {
    rt->host = std::make_unique<plain_device>();
    // Records ask only whether there is an engine.
    rt->the_engine.store(reinterpret_cast<troupe::detail::engine*>(this));
    placement_actor = std::make_unique<placement>(options, *rt, board);
  }
  ~stage() {
    complete_all();
    for (task_record* t : tasks_) release(t);
    for (array_core* a : arrays_) placement_actor->drop(a);
    complete_all();  // what is elsewhere is forgotten there first
    placement_actor.reset();
    rt->release();
  }
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  collector& add(executor_facts f) {
    groups.push_back(std::make_unique<collector>(std::move(f)));
    placement_actor->add(*groups.back());
    return *groups.back();
  }
  array_core* array() {
    auto* a = new array_core;
    a->spec.name = "array";
    a->states = &a->single;
    a->single.valid = true;
    a->bytes = &a->single_bytes;
    a->tile_bytes_max = 8;
    a->rt = rt;
    rt->retain();
    rt->arrays.fetch_add(1);
    arrays_.push_back(a);
    return a;
  }
  /// The test drops this one itself.
  void forget(array_core* a) { std::erase(arrays_, a); }
  using use = test::use;
  task_record* task(const std::vector<use>& uses = {}, std::string name = {}) {
    task_record* const t = plain_task(*rt, uses, std::move(name));
    retain(t);
    tasks_.push_back(t);
    return t;
  }
  static task_extra& extra(task_record* t) { return test::extra(t); }
  task_record* submit(task_record* t) {
    placement_actor->submit(t, true);
    placement_actor->take_turn(nullptr);
    return t;
  }
  task_record* submitted(const std::vector<use>& uses = {}, std::string name = {}) {
    return submit(task(uses, std::move(name)));
  }

  collector* holder(const task_record* t) const {
    for (const auto& g : groups)
      if (std::find(g->held.begin(), g->held.end(), t) != g->held.end()) return g.get();
    return nullptr;
  }
  bool is_out(const task_record* t) const { return holder(t) != nullptr; }
  static bool is_done(const task_record* t) { return (t->phase.load() & phase_mask) == phase_done; }
  /// Does what an executor does with a task, all at once.
  void complete(task_record* t, float ns = 1000, std::exception_ptr error = nullptr) {
    collector* g = holder(t);
    std::erase(g->held, t);
    if (claim(*t)) {
      t->measured_ns = ns;
      t->error = std::move(error);
      fulfil(*t, board);
    }
    placement_actor->report_done({&t, 1}, g);
  }
  std::vector<task_record*> out() const {
    std::vector<task_record*> all;
    for (const auto& g : groups) all.insert(all.end(), g->held.begin(), g->held.end());
    return all;
  }
  void complete_all() {
    for (auto some = out(); !some.empty(); some = out()) complete(some.front());
  }

  troupe::options options;
  runtime_state* rt;
  wait_table board;
  std::vector<std::unique_ptr<collector>> groups;
  std::unique_ptr<placement> placement_actor;

 private:
  std::vector<task_record*> tasks_;
  std::vector<array_core*> arrays_;
};

}  // namespace test
