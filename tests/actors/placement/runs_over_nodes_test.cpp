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
    std::vector<task_record*> parts;  // of those that change the three tiles: here, on node 1, on node 2
    task_record* join;
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
  /// A task of a run, on the executor with that number.
  task_record* part(std::uint16_t executor, array_core* a) {
    task_record* const t = task({{a, updates}});
    if (executor != 0) t->kernel = &kernel_;
    extra(t).executors = troupe::detail::id_set{executor};
    return t;
  }
  run submit_parts(const std::vector<task_record*>& parts) {
    const run r{parts, task({}, "join")};
    r.join->kind = task_kind::join;
    const auto gang = std::make_shared<run_gang>();
    for (task_record* t : parts) {
      const int executor = t->extra->executors.first();
      gang->add(*t, executor == 0 ? run_gang::no_node : static_cast<std::uint16_t>(executor));
      t->extra->gang = gang;
      add_join_edge(*t, *r.join);
    }
    std::vector<task_record*> all = parts;
    all.push_back(r.join);
    placement_actor->submit_together(all, true);
    placement_actor->take_turn(nullptr);
    return r;
  }
  /// Submits a run of all three, which waits for the end of the one four before it, as those that users make.
  run submit_run() {
    const std::vector<task_record*> parts{part(0, x), part(1, y), part(2, z)};
    if (recent_.size() == ahead) {
      for (task_record* t : parts) {
        troupe::detail::access& after = t->accesses[t->access_count++];
        after = {};
        after.task = recent_.front();
        after.link = link_mode::order;
        retain(after.task);
      }
      release(recent_.front());
      recent_.pop_front();
    }
    const run r = submit_parts(parts);
    recent_.push_back(r.join);
    retain(r.join);
    return r;
  }
  void complete_parts(const run& r) {
    for (task_record* t : r.parts) complete(t);
  }
  using tasks = std::vector<task_record*>;

  array_core *x, *y, *z;

 private:
  troupe::detail::shown_ids offered_;
  kernel_info kernel_{.name = "part", .key = 92, .kinds = 0, .portable = true};
  std::deque<task_record*> recent_;
};

TEST_F(runs_over_nodes, begin_when_all_parts_may) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  EXPECT_EQ(out(), tasks({before}));
  complete(before);
  EXPECT_EQ(out(), r.parts);
  complete_parts(r);
  EXPECT_TRUE(is_done(r.join));
}

TEST_F(runs_over_nodes, are_at_their_nodes_before_those_in_front_of_them_have_ended) {
  std::vector<run> all;
  for (std::size_t i = 0; i < 10; ++i) all.push_back(submit_run());
  const auto there = [&](std::size_t from, std::size_t n) {
    tasks expected;
    for (std::size_t i = from; i < from + n; ++i) expected.push_back(all[i].parts[1]);
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
  for (task_record* t : first.parts) {
    ASSERT_TRUE(claim(*t));
    fulfil(*t, board);
  }
  complete(before);
  EXPECT_EQ(out(), second.parts);
  complete_parts(second);
  EXPECT_TRUE(is_done(first.join));
  EXPECT_TRUE(is_done(second.join));
}

// One end lets two go that share nothing, each of which is to come first at one of the nodes.
TEST_F(runs_over_nodes, that_become_ready_together_are_given_in_one_turn) {
  array_core* const w = array();
  task_record* const before = submitted({{w, writes}});
  const run first = submit_parts({part(1, w), part(2, array())});
  const run second = submit_parts({part(1, array()), part(2, w)});
  EXPECT_EQ(out(), tasks({before}));
  complete(before);
  EXPECT_EQ(groups[1]->held, tasks({first.parts[0], second.parts[0]}));
  EXPECT_EQ(groups[2]->held, tasks({first.parts[1]}));
  complete_all();
  EXPECT_TRUE(is_done(first.join));
  EXPECT_TRUE(is_done(second.join));
}

TEST_F(runs_over_nodes, whose_part_comes_back_get_it_there_again_before_others) {
  const run first = submit_run(), second = submit_run();
  ASSERT_EQ(groups[1]->held, tasks({first.parts[1], second.parts[1]}));
  // The node gives back the second one, which came behind the first.
  std::erase(groups[1]->held, second.parts[1]);
  task_record* const one = second.parts[1];
  placement_actor->report_returned({&one, 1});
  const run other = submit_parts({part(1, array()), part(2, array())});
  EXPECT_EQ(groups[1]->held, tasks({first.parts[1]}));
  EXPECT_TRUE(is_out(other.parts[1]));
  complete(first.parts[1]);
  EXPECT_EQ(groups[1]->held, tasks({second.parts[1], other.parts[0]}));
}

// A thread may hold a view for which one part waits: then all of the run does.
TEST_F(runs_over_nodes, that_are_kept_are_seen_by_who_asks_what_waits) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  task_record* const reads_there = task({{y, troupe::access_mode::read}});
  submit(reads_there);
  EXPECT_TRUE(placement_actor->would_deadlock(*before, *reads_there));
  complete(before);
  ASSERT_TRUE(is_out(r.parts[0]));
  EXPECT_FALSE(placement_actor->would_deadlock(*r.parts[0], *reads_there));
}

TEST_F(runs_over_nodes, that_are_kept_end_with_the_runtime) {
  task_record* const before = submitted({{x, writes}});
  const run r = submit_run();
  placement_actor->abandon_queued();
  for (task_record* t : {before, r.parts[0], r.parts[1], r.parts[2], r.join}) EXPECT_TRUE(is_done(t));
  EXPECT_TRUE(placement_actor->is_quiet());
}

}  // namespace
