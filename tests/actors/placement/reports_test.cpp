// What this file is for: placement accounts for all that an executor tells at one time, in the order that is true.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "actors/protocol/report_batch.hpp"
#include "stage.hpp"

namespace {

using namespace test;

constexpr auto reads = troupe::access_mode::read, writes = troupe::access_mode::write,
               updates = troupe::access_mode::update;

/// A core group and a node, for tasks that the node may run.
class one_node : public stage {
 public:
  one_node() : stage(troupe::options{}) {
    add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
    add({1, "node:1", troupe::device_kind::node, 1, 2});
    placement_actor->admit_node(*groups[1], 2, {1'000, 10}, {1'000, 10}, true);
    offered_ = troupe::detail::id_set{1};
    kernel_.nodes = &offered_;
  }
  task_record* on_node(const std::vector<use>& uses) {
    task_record* const t = task(uses);
    t->kernel = &kernel_;
    extra(t).executors = troupe::detail::id_set{1};
    return submit(t);
  }
  /// The node has it no more; it has ended, or waits again.
  void leaves(task_record* t) { std::erase(groups[1]->held, t); }
  void ends(task_record* t) {
    leaves(t);
    claim(*t);
    fulfil(*t, board);
  }
  void report(report_batch b) { placement_actor->report(*groups[1], std::move(b)); }

 private:
  troupe::detail::shown_ids offered_;
  kernel_info kernel_{.name = "for nodes", .key = 93, .kinds = 0, .portable = true};
};

TEST(report_batch, is_emptied_when_it_is_taken_and_keeps_room) {
  task_record t;
  report_batch b;
  b.done = {&t, &t, &t};
  b.returned = {&t};
  b.failed.emplace();
  const report_batch taken = b.take();
  EXPECT_EQ(taken.done.size(), 3u);
  EXPECT_EQ(taken.returned.size(), 1u);
  EXPECT_TRUE(taken.failed);
  EXPECT_TRUE(b.done.empty() && b.returned.empty() && !b.failed);
  EXPECT_GE(b.done.capacity(), 3u);
}

TEST(placement_reports, what_was_done_is_written_before_it_is_lost) {
  one_node n;
  array_core* const a = n.array();
  task_record* const w = n.on_node({{a, writes}});
  ASSERT_TRUE(n.is_out(w));
  n.ends(w);
  report_batch b;
  b.done = {w};
  b.lost = {{a, 0}};
  b.lost_why = std::make_exception_ptr(std::runtime_error("it was short of memory"));
  n.report(std::move(b));
  EXPECT_TRUE(a->coherence->tiles[0].lost);  // by the node that had written it just before
}

TEST(placement_reports, a_refused_task_does_not_go_where_it_came_from) {
  one_node n;
  array_core* const a = n.array();
  task_record* const w = n.on_node({{a, writes}});
  ASSERT_TRUE(n.is_out(w));
  n.leaves(w);
  report_batch b;
  b.returned = {w};
  b.refusals.emplace_back(w, std::make_exception_ptr(std::runtime_error("no room")));
  n.report(std::move(b));
  EXPECT_FALSE(n.is_out(w));  // no other executor may run it
  ASSERT_TRUE(n.is_done(w));
  EXPECT_THROW(std::rethrow_exception(w->error), std::exception);
}

TEST(placement_reports, a_failure_withdraws_the_executor_after_the_rest) {
  one_node n;
  array_core* const a = n.array();
  task_record *const w = n.on_node({{a, writes}}), *const under_way = n.on_node({{n.array(), updates}});
  n.ends(w);
  report_batch b;
  b.done = {w};
  b.need_extra = {under_way};
  b.failed = report_batch::failure{{{a, 0}}, std::make_exception_ptr(std::runtime_error("cut off")), true};
  n.report(std::move(b));
  EXPECT_TRUE(a->coherence->tiles[0].lost);
  n.leaves(under_way);
  b = {};
  b.returned = {under_way};
  n.report(std::move(b));
  EXPECT_FALSE(n.is_out(under_way));
  EXPECT_TRUE(n.is_done(under_way));
}

}  // namespace
