// What this file is for: a task that a node gives back still finds what it reads, whatever was sent there behind it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "actors/protocol/chaining.hpp"
#include "stage.hpp"

namespace {

using namespace test;

constexpr auto reads = troupe::access_mode::read, writes = troupe::access_mode::write,
               updates = troupe::access_mode::update;

/// A core group and two nodes that copy from each other, for tasks that one of them runs.
class two_nodes : public stage {
 public:
  two_nodes() : stage(troupe::options{}) {
    add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
    for (const std::uint16_t id : {1, 2}) add({id, "node:" + std::to_string(id), troupe::device_kind::node, id, 2});
    for (const std::size_t id : {1, 2}) placement_actor->admit_node(*groups[id], 2, {1'000, 10}, {1'000, 10}, true);
    offered_ = troupe::detail::id_set{1, 2};
    kernel_.nodes = &offered_;
  }
  task_record* on(int node, const std::vector<use>& uses) {
    task_record* const t = task(uses);
    t->kernel = &kernel_;
    extra(t).executors = troupe::detail::id_set{node};
    return submit(t);
  }
  /// Whose only copy that node has.
  array_core* made_by(int node) {
    array_core* const a = array();
    complete(on(node, {{a, writes}}));
    EXPECT_EQ(a->coherence->tiles[0].dirty_in, node);
    return a;
  }
  void give_back(task_record* t) {
    std::erase(holder(t)->held, t);
    placement_actor->report_returned({&t, 1});
  }

 private:
  troupe::detail::shown_ids offered_;
  kernel_info kernel_{.name = "for nodes", .key = 92, .kinds = 0, .portable = true};
};

TEST(placement_overwritten_inputs, what_overwrites_the_input_of_a_task_that_may_come_back_is_not_sent_behind_it) {
  two_nodes n;
  array_core *const x = n.made_by(1), *const y = n.made_by(2), *const z = n.made_by(2), *const u = n.made_by(2);
  task_record* const pulls = n.on(2, {{x, reads}, {y, reads}, {z, writes}});
  ASSERT_TRUE(n.is_out(pulls));
  ASSERT_EQ(pulls->extra->pulls.size(), 1u);
  task_record* const overwrites = n.on(2, {{y, updates}});
  EXPECT_FALSE(n.is_out(overwrites));
  // A task that reads what the first writes comes back with it, and so may what comes before this one.
  task_record* const follows = n.on(2, {{z, reads}, {u, reads}, {y, reads}, {x, reads}});
  task_record* const next = n.on(2, {{z, updates}, {u, reads}});
  EXPECT_FALSE(n.is_out(follows)) << "it waits for the one before, too";
  EXPECT_FALSE(n.is_out(next));
  n.complete(pulls);
  EXPECT_TRUE(n.is_out(overwrites)) << "it has what it was to pull, so it has run";
  n.complete_all();
}

TEST(placement_overwritten_inputs, who_follows_one_that_may_come_back_may_come_back_as_well) {
  two_nodes n;
  array_core *const x = n.made_by(1), *const y = n.made_by(2), *const z = n.made_by(2), *const v = n.made_by(2);
  ASSERT_TRUE(n.is_out(n.on(2, {{x, reads}, {z, writes}})));
  task_record* const follows = n.on(2, {{z, reads}, {y, reads}, {v, writes}});
  EXPECT_TRUE(n.is_out(follows)) << "it fails there with the one before";
  EXPECT_FALSE(n.is_out(n.on(2, {{y, updates}})));
  EXPECT_TRUE(n.is_out(n.on(2, {{v, updates}})));
  n.complete_all();
}

TEST(placement_overwritten_inputs, what_overwrites_the_input_of_a_task_that_has_all_it_needs_is_sent_behind_it) {
  two_nodes n;
  array_core *const y = n.made_by(2), *const z = n.made_by(2);
  ASSERT_TRUE(n.is_out(n.on(2, {{y, reads}, {z, writes}})));
  EXPECT_TRUE(n.is_out(n.on(2, {{y, updates}})));
  n.complete_all();
}

// A task has no room there, which nobody could know. Its call is not in the log, so this one cannot be made again.
TEST(placement_overwritten_inputs, what_was_overwritten_before_it_was_read_is_lost_and_never_read_as_what_it_is_not) {
  two_nodes n;
  array_core *const y = n.made_by(2), *const z = n.made_by(2);
  task_record* const back = n.on(2, {{y, reads}, {z, writes}});
  task_record* const overwrites = n.on(2, {{y, writes}});
  ASSERT_TRUE(n.is_out(overwrites));
  const overwritten_input tile{back, y, 0};
  n.placement_actor->report_overwritten_inputs(*n.groups[2], {&tile, 1});
  n.give_back(back);
  ASSERT_TRUE(n.is_done(back));
  try {
    std::rethrow_exception(back->error);
  } catch (const troupe::error& e) {
    EXPECT_NE(std::string(e.what()).find("its only copy went with node:2"), std::string::npos) << e.what();
  }
  n.complete(overwrites);
  EXPECT_EQ(y->coherence->tiles[0].dirty_in, 2);
  EXPECT_FALSE(y->coherence->tiles[0].lost) << "what it is now is there";
  task_record* const after = n.on(2, {{y, reads}});
  ASSERT_TRUE(n.is_out(after));
  n.complete(after);
  EXPECT_FALSE(after->error);
}

// A task that was given back fails with what it comes after, before it is its turn again.
TEST(placement_overwritten_inputs, nothing_is_lost_for_a_task_that_will_not_run_again) {
  two_nodes n;
  array_core *const w = n.made_by(2), *const y = n.made_by(2), *const z = n.made_by(2);
  task_record* const first = n.on(2, {{w, updates}});
  task_record* const back = n.on(2, {{w, reads}, {y, reads}, {z, writes}});
  task_record* const overwrites = n.on(2, {{y, updates}});
  ASSERT_TRUE(n.is_out(overwrites));
  const overwritten_input tile{back, y, 0};
  n.placement_actor->report_overwritten_inputs(*n.groups[2], {&tile, 1});
  n.give_back(back);
  n.complete(first, 1000, std::make_exception_ptr(std::runtime_error("it has failed")));
  ASSERT_TRUE(n.is_done(back));
  EXPECT_EQ(y->coherence->tiles[0].dirty_in, 2);
  n.complete(overwrites);
  EXPECT_EQ(y->coherence->tiles[0].dirty_in, 2);
  EXPECT_FALSE(y->coherence->tiles[0].lost);
}

}  // namespace
