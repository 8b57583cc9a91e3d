// What this file is for: when placement gives parts of runs over nodes to these: together, in order, ahead of the ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include <troupe/detail/engine.hpp>

#include "actors/placement/gangs.hpp"
#include "stage.hpp"

namespace {

using namespace test;

constexpr auto writes = troupe::access_mode::write, updates = troupe::access_mode::update;

/// A core group, two nodes, and runs that change a tile on each of the three.
class runs_over_nodes : public testing::Test, protected stage {
 protected:
  static constexpr std::size_t ahead = 4;
  struct run {
    task_record *here, *on_1, *on_2, *join;
  };

  runs_over_nodes() : stage(troupe::options{}) {
    add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
    for (const std::uint16_t id : {1, 2}) add({id, "node:" + std::to_string(id), troupe::device_kind::node, id, 2});
    for (const std::size_t id : {1, 2}) placement_actor->admit_node(*groups[id], 2, {1'000, 10}, {1'000, 10}, true);
    offered_ = troupe::detail::id_set{1, 2};
    kernel_.nodes = &offered_;
    x = array(), y = array(), z = array();
  }
  ~runs_over_nodes() override {
    for (task_record* j : recent_) release(j);
  }
  /// Submits a run, which waits for the end of the one four before it, as those that users make.
  run submit_run() {
    const run r{part(0, x), part(1, y), part(2, z), task({}, "join")};
    r.join->kind = task_kind::join;
    const auto gang = std::make_shared<run_gang>();
    gang->join = r.join;
    extra(r.join).gang = gang;
    for (task_record* t : {r.here, r.on_1, r.on_2}) {
      gang->add(*t, t == r.here ? run_gang::no_node : t == r.on_1 ? 1 : 2);
      extra(t).gang = gang;
      if (recent_.size() == ahead) {
        troupe::detail::access& after = t->accesses[t->access_count++];
        after = {};
        after.task = recent_.front();
        after.link = link_mode::order;
        retain(after.task);
      }
      add_join_edge(*t, *r.join);
    }
    if (recent_.size() == ahead) {
      release(recent_.front());
      recent_.pop_front();
    }
    recent_.push_back(r.join);
    retain(r.join);
    task_record* const all[] = {r.here, r.on_1, r.on_2, r.join};
    placement_actor->submit_together(all, true);
    placement_actor->take_turn(nullptr);
    return r;
  }
  void complete_parts(const run& r) {
    for (task_record* t : {r.here, r.on_1, r.on_2}) complete(t);
  }
  using tasks = std::vector<task_record*>;

  array_core *x, *y, *z;

 private:
  task_record* part(std::uint16_t executor, array_core* a) {
    task_record* const t = task({{a, updates}});
    if (executor != 0) t->kernel = &kernel_;
    extra(t).executors = troupe::detail::id_set{executor};
    return t;
  }

  troupe::detail::shown_ids offered_;
  kernel_info kernel_{.name = "part", .key = 92, .kinds = 0, .portable = true};
  std::deque<task_record*> recent_;
};

TEST_F(runs_over_nodes, begin_when_all_parts_may) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  EXPECT_EQ(out(), tasks({before}));
  complete(before);
  EXPECT_EQ(out(), tasks({r.here, r.on_1, r.on_2}));
  complete_parts(r);
  EXPECT_TRUE(is_done(r.join));
}

TEST_F(runs_over_nodes, are_at_their_nodes_before_those_in_front_of_them_have_ended) {
  std::vector<run> all;
  for (std::size_t i = 0; i < 10; ++i) all.push_back(submit_run());
  const auto there = [&](std::size_t from, std::size_t n) {
    tasks expected;
    for (std::size_t i = from; i < from + n; ++i) expected.push_back(all[i].on_1);
    EXPECT_EQ(groups[1]->held, expected) << "from run " << from;
  };
  there(0, ahead);
  for (std::size_t i = 0; i + ahead < all.size(); ++i) {
    complete_parts(all[i]);
    there(i + 1, ahead);  // the last one waited for the end of that run, and for no word about the ones between
  }
  complete_all();
  EXPECT_TRUE(is_done(all.back().join));
}

TEST_F(runs_over_nodes, that_are_cancelled_while_they_are_kept_keep_no_others) {
  task_record* const before = submitted({{x, writes}});
  const run first = submit_run();
  const run second = submit_run();
  for (task_record* t : {first.here, first.on_1, first.on_2}) {
    ASSERT_TRUE(claim(*t));
    fulfil(*t, board);
  }
  complete(before);
  EXPECT_EQ(out(), tasks({second.here, second.on_1, second.on_2}));
  complete_parts(second);
  EXPECT_TRUE(is_done(first.join));
  EXPECT_TRUE(is_done(second.join));
}

// A thread may hold a view for which one part waits: then all of the run does.
TEST_F(runs_over_nodes, that_are_kept_are_seen_by_who_asks_what_waits) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  task_record* const reads_there = task({{y, troupe::access_mode::read}});
  submit(reads_there);
  EXPECT_TRUE(placement_actor->would_deadlock(*before, *reads_there));
  complete(before);
  ASSERT_TRUE(is_out(r.here));
  EXPECT_FALSE(placement_actor->would_deadlock(*r.here, *reads_there));
}

TEST_F(runs_over_nodes, that_are_kept_end_with_the_runtime) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  placement_actor->abandon_queued();
  for (task_record* t : {before, r.here, r.on_1, r.on_2, r.join}) EXPECT_TRUE(is_done(t));
  EXPECT_TRUE(placement_actor->is_quiet());
}

}  // namespace
