// What this file is for: of many nodes few are weighed for a task, and yet all get work and data is found where it is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "actors/logic/scheduling/scope.hpp"
#include "stage.hpp"

namespace {

using namespace test;

constexpr auto reads = troupe::access_mode::read, writes = troupe::access_mode::write,
               updates = troupe::access_mode::update;

/// A core group and so many nodes of two slots, for tasks that only nodes run.
class crowd : public stage {
 public:
  explicit crowd(int nodes) : stage(troupe::options{}) {
    add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
    troupe::detail::id_set offering;
    for (int i = 1; i <= nodes; ++i) {
      const auto id = static_cast<std::uint16_t>(i);
      collector& node = add({id, "node:" + std::to_string(i), troupe::device_kind::node, id, 2});
      placement_actor->admit_node(node, 2, {1'000, 10}, {1'000, 10}, true);
      offering.insert(id);
    }
    offered_ = offering;
    kernel_.nodes = for_all_.nodes = &offered_;
  }
  task_record* next(const std::vector<use>& uses = {}) {
    task_record* t = task(uses);
    t->kernel = &kernel_;
    return submit(t);
  }
  /// Submits a task that the core group may run, too.
  task_record* next_for_all(const std::vector<use>& uses = {}) {
    task_record* t = task(uses);
    t->kernel = &for_all_;
    return submit(t);
  }
  /// The first node has so much of a quantity.
  void give(troupe::resource r) {
    placement_actor->admit_node(*groups[1], 2, {1'000, 10}, {1'000, 10}, true, {std::move(r)});
  }
  task_record* next_with(troupe::resource asked, const std::vector<use>& uses) {
    task_record* t = task(uses);
    t->kernel = &kernel_;
    extra_of(*t).options.resources = {std::move(asked)};
    return submit(t);
  }
  std::size_t most() const {
    std::size_t n = 0;
    for (const auto& g : groups) n = std::max(n, g->held.size());
    return n;
  }

 private:
  troupe::detail::shown_ids offered_;
  kernel_info kernel_{.name = "for nodes", .key = 91, .kinds = 0};
  kernel_info for_all_{.name = "for all", .key = 94, .kinds = 1};
};

TEST(placement_crowd, gives_every_node_work_before_any_gets_more_than_it_has_slots) {
  crowd c(troupe::logic::executors_max - 1);
  for (int i = 1; i < troupe::logic::executors_max; ++i) c.next();
  EXPECT_LE(c.most(), 2u);
  for (int i = 1; i < troupe::logic::executors_max; ++i) c.next();
  EXPECT_EQ(c.most(), 2u);
  for (std::size_t i = 1; i < c.groups.size(); ++i) ASSERT_EQ(c.groups[i]->held.size(), 2u) << i;
}

TEST(placement_crowd, makes_room_for_what_a_node_notes_of_a_task_before_the_node_has_it) {
  crowd c(1);
  array_core* const x = c.array();
  task_record* const first = c.next({{x, troupe::access_mode::update}});
  ASSERT_TRUE(c.is_out(first));
  EXPECT_NE(first->extra, nullptr) << "placement reads it for the next one while the node would make it";
  task_record* const next = c.next({{x, troupe::access_mode::update}});
  EXPECT_EQ(c.holder(next), c.holder(first)) << "it follows at once";
  EXPECT_NE(next->extra, nullptr);
}

TEST(placement_crowd, ends_at_once_what_waits_for_a_task_that_nobody_can_run_any_more) {
  crowd c(1);
  c.give({"A", 1});
  array_core* const x = c.array();
  task_record* const first = c.submitted({{x, troupe::access_mode::write}});
  task_record* const asks = c.next_with({"A", 1}, {{x, troupe::access_mode::update}});
  task_record* const after = c.submitted({{x, reads}});
  ASSERT_TRUE(c.is_out(first));
  c.placement_actor->report_failure(*c.groups[1], {}, std::make_exception_ptr(std::runtime_error("gone")), true);
  ASSERT_FALSE(is_fulfilled(*asks));
  c.complete(first);
  EXPECT_TRUE(is_fulfilled(*asks));
  EXPECT_TRUE(is_fulfilled(*after)) << "nobody else takes a turn for it";
  EXPECT_TRUE(c.placement_actor->is_quiet());
}

TEST(placement_crowd, sends_a_task_to_the_one_that_has_its_data_whichever_that_is) {
  crowd c(300);
  for (const int who : {299, 64, 1, 130}) {
    array_core* const a = c.array();
    task_record* const first = c.task({{a, reads}});
    static troupe::detail::shown_ids here;
    here = troupe::detail::id_set{who};
    kernel_info only{.name = "only there", .key = 92, .kinds = 0, .nodes = &here};
    first->kernel = &only;
    c.submit(first);
    ASSERT_EQ(c.holder(first)->facts().id, who);
    c.complete(first);
    for (int i = 0; i < 5; ++i) {
      task_record* const t = c.next({{a, reads}});
      EXPECT_EQ(c.holder(t)->facts().id, who);
      c.complete(t);
    }
    first->kernel = &first->ops->closure;  // the other goes
  }
}

TEST(placement_crowd, explains_with_those_that_were_weighed) {
  crowd c(300);
  task_record* const t = c.next();
  const auto why = c.placement_actor->explain(*t);
  EXPECT_GE(why.candidates.size(), 2u);
  EXPECT_LE(why.candidates.size(), 16u) << "the cost must not grow with the cluster";
  EXPECT_EQ(std::ranges::count_if(why.candidates, [](const auto& x) { return x.chosen; }), 1);
}

TEST(placement_crowd, keeps_tasks_when_all_are_busy_and_gives_them_to_whoever_is_done) {
  crowd c(100);
  for (int i = 0; i < 200; ++i) {  // it is known how long they take: longer than a window
    task_record* const t = c.next();
    c.complete(t, 1e9f);
  }
  std::size_t out = 0;
  for (; c.holder(c.next()) != nullptr; ++out) ASSERT_LT(out, 1000u) << "they are to wait";
  EXPECT_EQ(out, 400u) << "for each of two slots one that runs and one that comes next";
  collector& done = *c.groups[77];
  const std::size_t had = done.held.size();
  const auto others = c.out().size() - had;
  while (done.held.size() == had) c.complete(done.held.front(), 1e9f);
  EXPECT_EQ(c.out().size() - done.held.size(), others) << "nobody else got what was kept";
}

TEST(placement_crowd, gives_a_core_something_else_while_what_one_task_reads_comes_home) {
  crowd n(1);
  constexpr float long_ns = 6e6f;  // several windows
  for (int i = 0; i < 8; ++i) {
    task_record* const both[] = {n.next_for_all(), n.next_for_all()};
    for (task_record* t : both) n.complete(t, long_ns);
  }
  array_core *const x = n.array(), *const y = n.array(), *const z = n.array();
  n.complete(n.next({{x, writes}}));
  ASSERT_EQ(x->coherence->tiles[0].dirty_in, 1);
  task_record* const waits = n.next_for_all({{x, reads}, {y, updates}});
  EXPECT_FALSE(n.is_out(waits));
  ASSERT_EQ(n.out().size(), 1u);
  task_record* const transfer = n.out().front();
  EXPECT_EQ(transfer->kind, task_kind::transfer);
  task_record* const other = n.next_for_all({{z, updates}});
  EXPECT_EQ(n.holder(other), n.groups[0].get()) << "which has nothing to do meanwhile";
  n.complete(transfer);
  EXPECT_EQ(n.holder(waits), n.groups[0].get());
  n.complete_all();
  EXPECT_FALSE(waits->error);
}

TEST(placement_crowd, sends_nothing_behind_what_ends_only_when_its_results_are_home) {
  crowd c(1);
  static troupe::detail::shown_ids here;
  here = troupe::detail::id_set{1};
  for (const auto how : {troupe::detail::purity::pure, troupe::detail::purity::once}) {
    const kernel_info k{.name = "there", .key = 93, .kinds = 0, .repeat = how, .nodes = &here};
    array_core* const a = c.array();
    std::vector<task_record*> both;
    for (int i = 0; i < 2; ++i) {
      task_record* const t = c.task({{a, troupe::access_mode::update}});
      t->kernel = &k;
      both.push_back(c.submit(t));
    }
    EXPECT_TRUE(c.is_out(both[0]));
    EXPECT_EQ(c.is_out(both[1]), how == troupe::detail::purity::pure)
        << "it could end well before the first has failed";
    for (task_record* t : both) {
      ASSERT_TRUE(c.is_out(t));
      c.complete(t);
      t->kernel = &t->ops->closure;
    }
  }
}

}  // namespace
