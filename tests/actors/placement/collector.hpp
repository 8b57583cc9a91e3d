// What this file is for: an executor that only collects what it is given.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "actors/logic/data/promise.hpp"
#include "actors/protocol/executor.hpp"

namespace test {

using namespace troupe::detail;

/// Takes everything and starts nothing. One thread.
class collector : public executor {
 public:
  explicit collector(executor_facts f) : facts_(std::move(f)) {}
  const executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const> tasks, attention) override {
    held.insert(held.end(), tasks.begin(), tasks.end());
    batches.push_back(tasks.size());
  }
  int sleepers() const override { return 1; }  // nobody is ever looking: every message takes its own turn
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return held.size(); }
  std::size_t unstarted() const override { return held.size(); }
  int slots_in_use() const override { return begun; }
  float queued_ns() const override { return 10'000.0f * static_cast<float>(held.size()); }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override {
    std::size_t n = 0;
    for (auto t = held.end(); t != held.begin() && n < room.size();)
      if (wanted(**--t)) {
        room[n++] = *t;
        t = held.erase(t);
      }
    return n;
  }
  void make_promise(const promise& p) override { promised.push_back(p); }
  void expect(task_record& t, std::vector<promise>&& boxes) override { expected[&t] = std::move(boxes); }
  std::uint64_t stay() const override { return 5; }
  troupe::executor_report report() const override { return {.name = facts_.name}; }
  void start() override {}

  std::vector<task_record*> held;
  int begun = 0;  // of the tasks that are not held any more
  std::vector<std::size_t> batches;
  std::vector<promise> promised;                                  // that it is to keep for others
  std::map<const task_record*, std::vector<promise>> expected{};  // of its tasks

 private:
  executor_facts facts_;
};

}  // namespace test
