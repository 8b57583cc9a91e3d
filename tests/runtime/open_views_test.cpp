// What this file is for: a view counts as held by the thread on whose stack it lies, wherever it was opened.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/open_views.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/logic/data/array_core.hpp"

namespace {

using namespace troupe::detail;

/// Whatever holds a view; its address counts only.
struct owner {
  int anything = 0;
};

/// A host access to an array of that name.
struct host_access {
  explicit host_access(std::string name) {
    array.spec.name = std::move(name);
    task.accesses = task.own_accesses.data();
    task.accesses[0].array = &array;
    task.access_count = 1;
    task.references = 1;
  }
  array_core array;
  task_record task;
};

/// The tasks of the views that the calling thread holds.
std::vector<task_record*> held_in(const open_views& all) {
  const open_views::held h = all.of_this_thread();
  EXPECT_EQ(h.empty(), h.tasks().empty());
  std::vector<task_record*> tasks(h.tasks().begin(), h.tasks().end());
  std::ranges::sort(tasks);
  return tasks;
}
using tasks = std::vector<task_record*>;

/// The tasks of the views that it has opened and keeps elsewhere.
std::vector<task_record*> kept_in(const open_views& all) {
  const open_views::held h = all.kept_by_this_thread();
  return {h.tasks().begin(), h.tasks().end()};
}

TEST(open_views, are_kept_by_the_thread_that_opened_them_while_they_are_on_no_stack) {
  open_views all;
  host_access a("a");
  open_view v(&a.task);
  all.add(v);
  EXPECT_EQ(kept_in(all), tasks{&a.task});
  std::jthread([&] { EXPECT_TRUE(kept_in(all).empty()); }).join();
  const owner here;
  open_views::move(v, &here);
  EXPECT_TRUE(kept_in(all).empty());
  const auto elsewhere = std::make_unique<owner>();
  open_views::move(v, elsewhere.get());
  EXPECT_EQ(kept_in(all), tasks{&a.task});
  all.remove(v);
  EXPECT_TRUE(kept_in(all).empty());
}

TEST(open_views, are_held_by_the_thread_on_whose_stack_they_are) {
  open_views all;
  EXPECT_TRUE(held_in(all).empty());
  host_access a("a");
  open_view v(&a.task);
  all.add(v);
  EXPECT_TRUE(held_in(all).empty()) << "nobody knows where it is";
  const owner here;
  open_views::move(v, &here);
  EXPECT_EQ(held_in(all), tasks{&a.task});
  std::jthread([&] { EXPECT_TRUE(held_in(all).empty()); }).join();
  all.remove(v);
  EXPECT_TRUE(held_in(all).empty());
}

TEST(open_views, are_held_by_nobody_while_they_are_on_no_stack) {
  open_views all;
  host_access a("a");
  open_view v(&a.task);
  all.add(v);
  const owner here;
  open_views::move(v, &here);
  const auto elsewhere = std::make_unique<owner>();
  open_views::move(v, elsewhere.get());
  EXPECT_TRUE(held_in(all).empty());
  open_views::move(v, &here);
  EXPECT_EQ(held_in(all), tasks{&a.task}) << "it has come back";
  all.remove(v);
}

TEST(open_views, go_with_who_takes_them_to_another_thread) {
  open_views all;
  host_access a("a");
  open_view v(&a.task);
  all.add(v);
  const owner here;
  open_views::move(v, &here);
  std::jthread([&] {
    const owner there;
    open_views::move(v, &there);
    EXPECT_EQ(held_in(all), tasks{&a.task});
  }).join();
  EXPECT_TRUE(held_in(all).empty());
  all.remove(v);
}

TEST(open_views, moved_by_a_thread_that_does_not_hold_them_are_held_by_nobody) {
  open_views all;
  host_access a("a");
  open_view v(&a.task);
  all.add(v);
  const owner here;
  std::jthread([&] { open_views::move(v, &here); }).join();  // into a variable of this thread
  EXPECT_TRUE(held_in(all).empty());
  all.remove(v);
}

TEST(open_views, leave_in_any_order) {
  open_views all;
  host_access a("a"), b("b"), c("c");
  open_view va(&a.task), vb(&b.task), vc(&c.task);
  const owner here;
  for (open_view* v : {&va, &vb, &vc}) {
    all.add(*v);
    open_views::move(*v, &here);
  }
  tasks expected{&a.task, &b.task, &c.task};
  std::ranges::sort(expected);
  EXPECT_EQ(held_in(all), expected);
  all.remove(vb);
  std::erase(expected, &b.task);
  EXPECT_EQ(held_in(all), expected);
  all.remove(va);
  EXPECT_EQ(held_in(all), tasks{&c.task});
  all.remove(vc);
  EXPECT_TRUE(held_in(all).empty());
}

TEST(open_views, keep_their_accesses_while_they_are_looked_at_and_can_name_them) {
  open_views all;
  host_access a("rows"), b("columns");
  open_view va(&a.task), vb(&b.task);
  const owner here;
  all.add(va);
  open_views::move(va, &here);
  {
    const open_views::held h = all.of_this_thread();
    EXPECT_EQ(a.task.references, 2u);
    EXPECT_EQ(h.names(), "'rows'");
  }
  EXPECT_EQ(a.task.references, 1u);
  all.add(vb);
  open_views::move(vb, &here);
  const std::string both = all.of_this_thread().names();
  EXPECT_TRUE(both == "'rows', 'columns'" || both == "'columns', 'rows'") << both;
  all.remove(va);
  all.remove(vb);
}

}  // namespace
