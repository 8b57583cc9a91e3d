// What this file is for: how many tasks an executor is given before it has ended one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/assignment.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
    choice_.ask_before_choices([this] { choice_.know_unplaced(0, early_, static_cast<float>(early_) * ms); });
    choice_.know_link(detail::host_space, 1, {50'000, 1});
    choice_.know_link(1, detail::host_space, {50'000, 1});
    data_.spec.size[0] = tiles_max << 20;
    data_.spec.tile[0] = 1 << 20;
    data_.spec.element = 1;
    data_.grid[0] = tiles_max;
    data_.tile_count = tiles_max;
    data_.tile_bytes_max = 1 << 20;
    data_.coherence = std::make_unique<detail::array_coherence>(data_.tile_count);
    while (given(0) < 4 || given(1) < 4) {  // both are known then
      spawn();
      end_all();
    }
    first_[0] = first_[1] = 0;
  }

  void spawn() { submit(tasks_.emplace_back()); }
  /// Spawns a task that updates a tile of 1 MiB, which is where it says, and reads so many others that are at the
  /// other's.
  void spawn_on_tile(bool of_node, int reads = 0) {
    std::vector<detail::access>& all = accesses_.emplace_back(static_cast<std::size_t>(reads) + 1);
    for (detail::access& x : all) {
      x.array = &data_;
      x.tile = tiles_used_++;
      x.mode = &x == all.data() ? access_mode::update : access_mode::read;
      if (of_node != (&x == all.data())) continue;
      data_.coherence->tiles[x.tile].dirty_in = 1;
      data_.coherence->tiles[x.tile].cached.insert(1);
    }
    task_record& t = tasks_.emplace_back();
    t.accesses = all.data();
    t.access_count = static_cast<decltype(t.access_count)>(all.size());
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
  /// Has the core have so many early tasks of a millisecond, which nobody has given to it.
  void have_early(int n) { early_ = n; }
  void look_again() {
    choice_.refill();
    take();
  }
  /// Withdraws the node: what it has comes back, and nobody knows whether there will be another one.
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
  /// Tasks given to an executor whose memory does not have the tile that they update.
  std::size_t moved() const { return moved_; }
  std::size_t kept() const { return choice_.kept(); }

 private:
  void take() {
    for (std::size_t i : {0, 1}) {
      for (task_record* t : choice_.outgoing(i)) {
        running_[i].push_back(t);
        if (t->access_count != 0 && data_.coherence->tiles[t->accesses[0].tile].dirty_in != i) ++moved_;
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

  static constexpr std::uint32_t tiles_max = 128;
  const float takes_ns_;
  detail::array_core data_;
  std::deque<std::vector<detail::access>> accesses_;
  std::uint32_t tiles_used_ = 0;
  std::size_t moved_ = 0;
  int early_ = 0;
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

TEST(assignment, gives_a_core_nothing_behind_early_tasks_and_what_waits_once_they_have_ended) {
  core_and_node w(0.5f * ms);
  w.have_early(50);
  for (int i = 0; i < 20; ++i) w.spawn();
  EXPECT_EQ(w.has(0), 0u);
  const std::size_t kept = w.kept();
  EXPECT_GT(kept, 0u);
  w.look_again();
  EXPECT_EQ(w.kept(), kept);
  w.have_early(0);
  w.look_again();
  EXPECT_GT(w.has(0), 0u);
  EXPECT_LT(w.kept(), kept);
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

TEST(assignment, gives_who_has_what_a_task_changes_the_task_though_it_reads_more_than_that) {
  core_and_node w(6 * ms);
  for (int i = 0; i < 40; ++i) w.spawn_on_tile(i % 4 < 2, 2);
  while (w.has(0) + w.has(1) != 0)
    for (const std::size_t i : {0, 1})
      if (w.has(i) != 0) w.end_one(i);
  EXPECT_EQ(w.kept(), 0u);
  EXPECT_LE(w.moved(), 4u);
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

// A core and nodes. A kernel that runs on those that offer it.
class some_nodes {
 public:
  explicit some_nodes(int count) {
    detail::executor_facts f;
    f.name = "cpu:0";
    choice.add(f);
    f.kind = device_kind::node;
    for (int i = 1; i <= count; ++i) {
      f.id = f.space = static_cast<std::uint16_t>(i);
      f.name = "node:" + std::to_string(i);
      choice.add(f);
      choice.know_link(detail::host_space, f.space, {50'000, 1});
      choice.know_link(f.space, detail::host_space, {50'000, 1});
    }
    kernel.nodes = &offering;
  }
  task_record& spawned() {
    task_record& t = tasks_.emplace_back();
    t.kernel = &kernel;
    t.sequence = tasks_.size();
    t.id = t.sequence;
    can_run = choice.can_run(t);
    choice.assign(t);
    return t;
  }
  /// Returns the executor that it went to; 0: it is kept.
  int spawn() {
    const task_record& t = spawned();
    return t.marks & detail::mark_sent ? t.executor : 0;
  }
  void end_last() {
    tasks_.back().measured_ns = 10'000;
    choice.finished(tasks_.back());
  }
  std::size_t weighed() const { return choice.explain(tasks_.back()).candidates.size(); }

  detail::shown_ids offering;
  kernel_info kernel{.name = "work", .key = 8, .kinds = 0};
  bool can_run = false;
  assignment choice{1 * ms, 3};

 private:
  std::deque<task_record> tasks_;
};

TEST(assignment, knows_at_once_who_may_run_a_kernel_from_now_on) {
  some_nodes w(3);
  w.spawn();
  EXPECT_FALSE(w.can_run) << "nobody offers it";
  w.offering = logic::executor_set{2};
  EXPECT_EQ(w.spawn(), 2);
  EXPECT_TRUE(w.can_run);
  w.offering = logic::executor_set{3};
  EXPECT_EQ(w.spawn(), 3);
  w.choice.withdraw(3);
  w.spawn();
  EXPECT_FALSE(w.can_run);
  w.choice.restore(3, 1);
  EXPECT_EQ(w.spawn(), 3);
  w.choice.pause(3, true);
  EXPECT_EQ(w.spawn(), 0) << "it is held back";
  EXPECT_TRUE(w.can_run);
  w.choice.pause(3, false);
  EXPECT_EQ(w.spawn(), 3);
  w.kernel.nodes = nullptr;  // another one in the same place
  w.kernel.kinds = 1;
  EXPECT_EQ(w.spawn(), 0);
  EXPECT_TRUE(w.can_run) << "here";
}

TEST(assignment, weighs_few_of_many_nodes_and_each_of_them_in_turn) {
  constexpr int count = 200;
  some_nodes w(count);
  logic::executor_set all;
  for (int i = 1; i <= count; ++i) all.insert(static_cast<std::size_t>(i));
  w.offering = all;
  std::vector<int> given(count + 1);
  for (int i = 0; i < 3 * count; ++i) {
    const int to = w.spawn();
    ASSERT_NE(to, 0);
    ++given[static_cast<std::size_t>(to)];
    ASSERT_EQ(w.weighed(), 4u);
    w.end_last();
  }
  for (int i = 1; i <= count; ++i) EXPECT_EQ(given[static_cast<std::size_t>(i)], 3) << i;
}

TEST(assignment, explains_as_many_of_its_latest_choices_as_it_was_told_to) {
  some_nodes w(2);
  w.offering = logic::executor_set{1, 2};
  std::vector<task_record*> tasks(8);
  for (task_record*& t : tasks) t = &w.spawned();
  for (std::size_t i = 0; i < tasks.size(); ++i)
    EXPECT_EQ(w.choice.explain(*tasks[i]).candidates.size(), i < 5 ? 1u : 2u) << i;  // of others only where it went
  // One that is moved is explained as it is now.
  task_record& moved = *tasks.back();
  const std::size_t to = moved.executor == 1 ? 2 : 1;
  w.choice.move(moved, to);
  for (const candidate& c : w.choice.explain(moved).candidates)
    EXPECT_EQ(c.chosen, c.executor == w.choice.facts()[to].name) << c.executor;
}

// An executor that tries a kernel for the first time gets no more of it for now: that is no queue.
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

// Two executors of one kind, the first of which has all the data, and tasks of a kernel that nobody has measured; in
// virtual time, with one slot each.
class unmeasured {
 public:
  static constexpr int count = 60;
  explicit unmeasured(device_kind kind, float takes_ns) : takes_ns_(takes_ns) {
    detail::executor_facts f;
    f.name = "cpu:0";
    choice_.add(f);
    f.kind = kind;
    for (const std::uint16_t i : {1, 2}) {
      f.id = f.space = i;
      f.name = "there:" + std::to_string(i);
      choice_.add(f);
      choice_.know_link(detail::host_space, i, {50'000, 1});
      choice_.know_link(i, detail::host_space, {50'000, 1});
    }
    choice_.connect(1, 2);
    choice_.connect(2, 1);
    choice_.know_link(1, 2, {50'000, 1});
    choice_.know_link(2, 1, {50'000, 1});
    data_.spec.element = 1;
    data_.spec.size[0] = count * bytes;
    data_.spec.tile[0] = bytes;
    data_.grid[0] = data_.tile_count = count;
    data_.tile_bytes_max = bytes;
    data_.coherence = std::make_unique<detail::array_coherence>(count);
    kernel_.kinds = static_cast<unsigned char>(1 << static_cast<int>(kind));
    for (std::uint32_t i = 0; i < count; ++i) {
      data_.coherence->tiles[i].dirty_in = 1;
      data_.coherence->tiles[i].cached.insert(1);
    }
  }
  // When all have ended; in ms.
  float run() {
    for (std::uint32_t i = 0; i < count; ++i) {
      task_record& t = tasks_.emplace_back();
      t.kernel = &kernel_;
      t.sequence = t.id = i + 1;
      t.accesses = &t.own_accesses[0];
      t.access_count = 1;
      t.own_accesses[0].array = &data_;
      t.own_accesses[0].tile = i;
      choice_.assign(t);
    }
    take();
    float now = 0;
    for (int ended = 0; ended < count; ++ended) {
      std::size_t next = 0;
      for (const std::size_t i : {1, 2})
        if (!has_[i].empty() && (next == 0 || end_of(i) < end_of(next))) next = i;
      if (next == 0) return -1;
      now = end_of(next);
      free_at_[next] = now;
      task_record& t = *has_[next].front().task;
      has_[next].pop_front();
      t.measured_ns = takes_ns_;
      now_ = now;
      ++ran[next];
      choice_.finished(t);
      choice_.each_surprise([&](std::size_t i) {
        while (has_[i].size() > 1) {  // of which one runs
          task_record& back = *has_[i].back().task;
          has_[i].pop_back();
          choice_.take_back(back);
          choice_.assign_again(back);
        }
      });
      choice_.refill();
      take();
    }
    return now / ms;
  }
  int ran[3] = {0, 0, 0};
  std::size_t most = 0;  // that one had at once before anything had ended

 private:
  static constexpr std::uint32_t bytes = 8 << 20;
  struct given {
    task_record* task;
    float ready;
  };
  float end_of(std::size_t i) const { return std::max(free_at_[i], has_[i].front().ready) + takes_ns_; }
  void take() {
    for (const std::size_t i : {1, 2}) {
      for (task_record* t : choice_.outgoing(i)) has_[i].push_back({t, now_ + (i == 2 ? 8.4f * ms : 0)});
      choice_.sent(i);
      if (now_ == 0) most = std::max(most, has_[i].size());
    }
  }

  const float takes_ns_;
  detail::array_core data_;
  kernel_info kernel_{.name = "work", .key = 9};
  assignment choice_{1 * ms, 0};
  std::deque<task_record> tasks_;
  std::deque<given> has_[3];
  float free_at_[3] = {0, 0, 0}, now_ = 0;
};

TEST(assignment, shares_a_kernel_that_nobody_has_measured_once_it_turns_out_to_take_long) {
  for (const device_kind kind : {device_kind::node, device_kind::sim}) {
    unmeasured w(kind, 100 * ms);
    const float took = w.run();
    EXPECT_GT(took, 0) << "somebody never ran";
    EXPECT_LE(w.most, 8u) << "before anything is known few are sent";
    EXPECT_GE(w.ran[2], 24);
    EXPECT_LT(took, 3500) << "6,000 where the data is";
  }
}

TEST(assignment, leaves_a_kernel_that_nobody_has_measured_with_its_data_where_it_turns_out_to_be_short) {
  for (const device_kind kind : {device_kind::node, device_kind::sim}) {
    unmeasured w(kind, 0.01f * ms);
    const float took = w.run();
    EXPECT_EQ(w.ran[2], 0);
    EXPECT_GT(took, 0);
    EXPECT_LT(took, 1);
  }
}

// A kernel of 10 us that takes 100 ms from now on: the window of one executor is full of it, the other one is idle.
/// Core groups of one thread each, whose tasks of 6 ms are longer than the window: each has one, and the rest waits.
class busy_groups {
 public:
  explicit busy_groups(std::uint16_t count) : count_(count) {
    for (std::uint16_t i = 0; i < count; ++i) {
      detail::executor_facts f;
      f.id = i;
      f.name = "cpu:" + std::to_string(i);
      choice_.add(f);
      all.insert(i);
    }
    for (int i = 0; i < 12; ++i) {  // how long they take is known then
      spawn(0);
      take();
      end(running.front());
    }
    for (std::uint16_t i = 0; i < count; ++i) spawn(0);
    take();
  }
  task_record* spawn(int priority) { return spawn(priority, all); }
  task_record* spawn(int priority, const detail::id_set& on) {
    task_record& t = tasks_.emplace_back();
    t.kernel = &kernel_;
    t.sequence = tasks_.size();
    t.extra = &extras_.emplace_back();
    t.extra->options.priority = priority;
    t.extra->executors = on;
    choice_.assign(t);
    return &t;
  }
  void end(task_record* t) {
    t->measured_ns = 6 * ms;
    choice_.finished(*t);
    std::erase(running, t);
  }
  /// Has room given to those that wait; returns who got it.
  task_record* given() {
    choice_.refill();
    take();
    EXPECT_EQ(running.size(), count_);
    return running.back();
  }

  detail::id_set all;
  std::deque<task_record*> running;

 private:
  void take() {
    for (std::size_t i = 0; i < count_; ++i) {
      running.insert(running.end(), choice_.outgoing(i).begin(), choice_.outgoing(i).end());
      choice_.sent(i);
    }
  }

  const std::size_t count_;
  assignment choice_{1 * ms, 0};
  const kernel_info kernel_{.name = "work", .key = 11};
  std::deque<task_record> tasks_;
  std::deque<detail::task_extra> extras_;
};

// The end of a task makes the next one of its chain ready, and room: both before the tasks that wait are looked at.
TEST(assignment, gives_room_to_who_has_waited_for_it_and_not_to_who_comes_with_it) {
  busy_groups g(2);
  ASSERT_EQ(g.running.size(), 2u);
  task_record *const waits = g.spawn(0), *const is_urgent = g.spawn(3);
  for (task_record* const next : {is_urgent, waits}) {
    g.end(g.running.front());
    g.spawn(0);  // the next one of its chain
    EXPECT_EQ(g.given(), next);
  }
  g.end(g.running.front());
  task_record* const more_urgent = g.spawn(5);  // than all that wait
  EXPECT_EQ(g.given(), more_urgent);
}

// Tasks that may run on fewer groups, or on more, wait apart.
TEST(assignment, gives_room_to_the_first_of_all_that_wait_whatever_they_may_run_on) {
  busy_groups g(3);
  ASSERT_EQ(g.running.size(), 3u);
  // A flood of tasks for all three, of which each end makes another one ready; the others wait for two of the groups.
  std::vector<task_record*> flood, others;
  for (int i = 0; i < 4; ++i) flood.push_back(g.spawn(0));
  for (const int priority : {0, 2}) others.push_back(g.spawn(priority, {0, 1}));
  for (task_record* const next : {others[1], flood[0], flood[1], flood[2], flood[3], others[0]}) {
    const auto on_some = std::ranges::find_if(g.running, [](const task_record* t) { return t->executor < 2; });
    ASSERT_NE(on_some, g.running.end());
    g.end(*on_some);
    g.spawn(0);
    EXPECT_EQ(g.given(), next);
  }
}

TEST(assignment, tells_where_what_has_not_begun_is_to_be_placed_anew) {
  assignment choice(1 * ms, 0);
  detail::executor_facts f;
  f.name = "cpu:0";
  choice.add(f);
  f.id = 1;
  f.name = "cpu:1";
  choice.add(f);
  const kernel_info kernel{.name = "work", .key = 11};
  std::deque<task_record> tasks;
  std::vector<std::vector<task_record*>> has(2);
  const auto spawn = [&] {
    task_record& t = tasks.emplace_back();
    t.kernel = &kernel;
    t.sequence = tasks.size();
    choice.assign(t);
    for (const std::size_t i : {0, 1}) {
      has[i].insert(has[i].end(), choice.outgoing(i).begin(), choice.outgoing(i).end());
      choice.sent(i);
    }
  };
  const auto end = [&](std::size_t i, float ns) {
    has[i].front()->measured_ns = ns;
    choice.finished(*has[i].front());
    has[i].erase(has[i].begin());
  };
  const auto surprised = [&] {
    std::vector<std::size_t> all;
    choice.each_surprise([&](std::size_t i) { all.push_back(i); });
    return all;
  };
  for (int i = 0; i < 8; ++i) {
    spawn();
    end(has[0].empty() ? 1 : 0, 10'000);
  }
  for (int i = 0; i < 100; ++i) spawn();
  end(0, 20'000);
  EXPECT_TRUE(surprised().empty()) << "twice as long is within what predictions are good for";
  end(0, 100 * ms);
  EXPECT_TRUE(surprised().empty()) << "the other one has something to do";
  while (!has[1].empty()) end(1, 10'000);
  end(0, 100 * ms);
  EXPECT_EQ(surprised(), std::vector<std::size_t>{0});
  EXPECT_TRUE(surprised().empty()) << "once";
  ASSERT_GT(has[0].size(), 20u);
  for (task_record* t : has[0]) EXPECT_TRUE(choice.has_choice(*t));
}

TEST(assignment, tells_what_tasks_take_by_now_that_were_predicted_to_take_far_less) {
  assignment choice(1 * ms, 0);
  detail::executor_facts core;
  core.name = "cpu:0";
  choice.add(core);
  const kernel_info kernel{.name = "work"}, other{.name = "other"};
  const auto takes = [&](float ns) {
    for (int i = 0; i < 32; ++i) choice.learn({.kernel = &kernel, .bytes = 0, .measured_ns = ns, .predicted_ns = ns});
  };
  takes(2'000);
  task_record t;
  t.kernel = &kernel;
  choice.foresee(t, 41);
  EXPECT_FLOAT_EQ(t.predicted_ns, 2'000);
  takes(9'000);
  EXPECT_EQ(choice.outdated(), 0u) << "it is not much more";
  EXPECT_EQ(choice.grown().of(kernel, 0), 0.0f);
  takes(90'000);
  EXPECT_EQ(choice.outdated(), 41u);
  EXPECT_EQ(choice.grown().of(kernel, 0), 90'000.0f);
  EXPECT_EQ(choice.grown().of(other, 0), 0.0f);
  takes(70'000);
  EXPECT_EQ(choice.outdated(), 41u);
  EXPECT_EQ(choice.grown().of(kernel, 0), 70'000.0f);
}

TEST(assignment, foresees_tasks_that_one_core_group_only_may_run) {
  assignment choice(1 * ms, 0);
  for (std::uint16_t i = 0; i < 3; ++i) {
    detail::executor_facts f;
    f.id = i;
    if (i == 2) {
      f.kind = device_kind::node;
      f.space = 1;
    }
    f.name = i == 2 ? "node:0" : "cpu:" + std::to_string(i);
    choice.add(f);
  }
  const kernel_info kernel{.name = "work"},
      far{.name = "far", .key = 7, .kinds = 1 | 1 << static_cast<int>(device_kind::node), .portable = true};
  for (const kernel_info* k : {&kernel, &far})
    for (int i = 0; i < 32; ++i)
      choice.learn({.kernel = k, .bytes = 0, .measured_ns = 2'000, .predicted_ns = 2'000, .executor = 1});
  EXPECT_FALSE(choice.has_foreseen());
  detail::task_extra extra;
  const auto foreseen = [&](const kernel_info& k, logic::executor_set where) -> std::optional<int> {
    task_record t;
    t.kernel = &k;
    t.executor = 77;
    t.extra = &extra;
    extra.executors = where;
    if (choice.is_for_cores(t)) choice.foresee(t, 5);
    t.extra = nullptr;
    if (t.marks & detail::mark_early) return t.executor;
    EXPECT_EQ(t.executor, 77);
    return std::nullopt;
  };
  EXPECT_EQ(foreseen(kernel, {0, 1}), std::nullopt) << "there is a choice";
  EXPECT_FALSE(choice.has_foreseen());
  EXPECT_EQ(foreseen(kernel, {0}), 0);
  EXPECT_EQ(foreseen(kernel, {1}), 1);
  EXPECT_EQ(foreseen(kernel, {1, 2}), 1) << "it cannot travel";
  EXPECT_EQ(foreseen(far, {1, 2}), std::nullopt) << "a node may run it";
  EXPECT_EQ(foreseen(far, {1}), 1);
  EXPECT_TRUE(choice.has_foreseen());
}

}  // namespace
