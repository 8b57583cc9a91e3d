// What this file is for: how many tasks an executor is given before it has ended one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/assignment.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

namespace {

using namespace troupe;
using detail::kernel_info;
using detail::task_record;
using logic::assignment;

constexpr float ms = 1e6f;

// A core and a node, a window of 1 ms. Tasks have no data and take as long here as there.
class core_and_node {
 public:
  explicit core_and_node(float takes_ns) : takes_ns_(takes_ns) {
    detail::executor_facts core, node;
    core.name = "cpu:0";
    node.id = 1;
    node.name = "node:0";
    node.kind = device_kind::node;
    node.space = 1;
    choice_.add(core);
    choice_.add(node);
    choice_.know_link(detail::host_space, 1, {50'000, 1});
    choice_.know_link(1, detail::host_space, {50'000, 1});
    data_.spec.size[0] = tiles_max << 20;
    data_.spec.tile[0] = 1 << 20;
    data_.spec.element = 1;
    data_.grid[0] = tiles_max;
    data_.tile_count = tiles_max;
    data_.tile_bytes_max = 1 << 20;
    data_.homes = std::make_unique<detail::array_homes>(data_.tile_count);
    while (given(0) < 4 || given(1) < 4) {  // both are known then
      spawn();
      end_all();
    }
    first_[0] = first_[1] = 0;
  }

  void spawn() { submit(tasks_.emplace_back()); }
  /// One that updates a tile of 1 MiB, which is where it says.
  void spawn_on_tile(bool of_node) {
    const auto tile = static_cast<std::uint32_t>(accesses_.size());
    if (of_node) {
      data_.homes->tiles[tile].dirty_in = 1;
      data_.homes->tiles[tile].cached.insert(1);
    }
    detail::access& x = accesses_.emplace_back();
    x.array = &data_;
    x.tile = tile;
    x.mode = access_mode::update;
    task_record& t = tasks_.emplace_back();
    t.accesses = &x;
    t.access_count = 1;
    submit(t);
  }
  void submit(task_record& t) {
    t.kernel = &kernel_;
    t.sequence = tasks_.size();
    choice_.assign(t);
    take();
  }
  void end_one(std::size_t i) {
    task_record& t = *running_[i].front();
    running_[i].pop_front();
    t.measured_ns = takes_ns_;
    choice_.finished(t);
    choice_.refill();
    take();
  }
  /// What it has comes back, and nobody knows whether there will be another one.
  void node_goes() {
    choice_.withdraw(1);
    for (task_record* t : std::exchange(running_[1], {})) {
      choice_.take_back(*t);
      choice_.assign_again(*t);
    }
    take();
  }
  std::size_t given(std::size_t i) const { return first_[i]; }
  std::size_t has(std::size_t i) const { return running_[i].size(); }
  /// Tasks given to an executor whose memory does not have their tile.
  std::size_t moved() const { return moved_; }
  std::size_t kept() const { return choice_.kept(); }

 private:
  void take() {
    for (std::size_t i : {0, 1}) {
      for (task_record* t : choice_.outgoing(i)) {
        running_[i].push_back(t);
        if (t->access_count != 0 && data_.homes->tiles[t->accesses[0].tile].dirty_in != i) ++moved_;
      }
      first_[i] += choice_.outgoing(i).size();
      choice_.outgoing(i).clear();
    }
  }
  // The core alone would always be the first to be free.
  void end_all() {
    spawn();
    for (std::size_t i : {1, 0})
      while (!running_[i].empty()) end_one(i);
  }

  static constexpr std::uint32_t tiles_max = 64;
  const float takes_ns_;
  detail::array_core data_;
  std::deque<detail::access> accesses_;
  std::size_t moved_ = 0;
  kernel_info kernel_{
      .name = "work", .key = 7, .kinds = 1 | 1 << static_cast<int>(device_kind::node), .portable = true};
  assignment choice_{1 * ms, 0};
  std::deque<task_record> tasks_;
  std::deque<task_record*> running_[2];
  std::size_t first_[2] = {0, 0};
};

TEST(assignment, gives_a_core_no_task_behind_one_that_takes_longer_than_the_window) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 20; ++i) w.spawn();
  EXPECT_EQ(w.has(0), 1u);
  EXPECT_GT(w.kept(), 0u);
}

TEST(assignment, gives_a_node_the_next_task_while_one_runs_however_long_that_takes) {
  for (const float takes : {2 * ms, 6 * ms, 60 * ms}) {
    core_and_node w(takes);
    for (int i = 0; i < 20; ++i) w.spawn();
    EXPECT_EQ(w.has(1), 2u) << takes;
    w.end_one(1);
    EXPECT_EQ(w.has(1), 2u) << takes;
  }
}

TEST(assignment, gives_a_node_no_more_than_that_so_that_the_rest_is_free_to_go_elsewhere) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 20; ++i) w.spawn();
  EXPECT_EQ(w.has(0) + w.has(1) + w.kept(), 20u);
  EXPECT_EQ(w.kept(), 17u);
}

TEST(assignment, keeps_the_last_tasks_for_who_is_done_with_them_first) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 3; ++i) w.spawn();
  EXPECT_EQ(w.has(0), 1u);
  EXPECT_EQ(w.has(1), 1u);
  EXPECT_EQ(w.kept(), 1u);
  w.end_one(0);
  EXPECT_EQ(w.has(0), 1u);
  EXPECT_EQ(w.kept(), 0u);
}

TEST(assignment, gives_who_has_room_the_tasks_whose_data_he_has_before_it_sends_him_data) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 40; ++i) w.spawn_on_tile(i % 4 < 2);
  while (w.has(0) + w.has(1) != 0)
    for (const std::size_t i : {0, 1})
      if (w.has(i) != 0) w.end_one(i);
  EXPECT_EQ(w.kept(), 0u);
  EXPECT_LE(w.moved(), 4u);  // the first are guesses, the last go where there is nothing else to do
}

TEST(assignment, sends_data_to_who_would_have_nothing_to_do) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 40; ++i) w.spawn_on_tile(false);
  while (w.has(0) + w.has(1) != 0)
    for (const std::size_t i : {0, 1})
      if (w.has(i) != 0) w.end_one(i);
  EXPECT_EQ(w.kept(), 0u);
  EXPECT_GE(w.moved(), 15u);
}

// Who tries a kernel for the first time gets no more of it for now: that is no queue.
TEST(assignment, tells_of_who_tries_a_kernel_how_much_he_has_to_do) {
  assignment choice(1 * ms, 64);
  detail::executor_facts core, node;
  core.name = "cpu:0";
  node.id = 1;
  node.name = "node:0";
  node.kind = device_kind::node;
  node.space = 1;
  choice.add(core);
  choice.add(node);
  choice.know_link(detail::host_space, 1, {50'000, 1});
  choice.know_link(1, detail::host_space, {50'000, 1});
  const kernel_info kernel{.name = "work", .key = 7, .kinds = 1 | 1 << static_cast<int>(device_kind::node)};
  std::deque<task_record> tasks;
  bool somebody_waited = false;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    task_record& t = tasks.emplace_back();
    t.kernel = &kernel;
    t.sequence = t.id = i;
    choice.assign(t);
    for (const candidate& c : choice.explain(t).candidates) {
      EXPECT_GE(c.queue.count(), 0) << c.executor << " of task " << i;
      EXPECT_LE(c.queue, std::chrono::microseconds(100)) << c.executor << " of task " << i;
      somebody_waited = somebody_waited || c.queue.count() > 0;
    }
  }
  EXPECT_EQ(choice.explain(tasks[2]).candidates.size(), 2u);
  EXPECT_TRUE(somebody_waited);
}

// The one that fills the core may wait for them.
TEST(assignment, keeps_nothing_that_a_node_gives_back_however_much_who_is_left_has_to_do) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 20; ++i) w.spawn();
  ASSERT_EQ(w.has(0), 1u);
  ASSERT_EQ(w.has(1), 2u);
  w.node_goes();
  EXPECT_EQ(w.has(0), 3u);
  EXPECT_EQ(w.kept(), 17u);
}

}  // namespace
