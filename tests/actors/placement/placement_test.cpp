// What this file is for: what placement hands to which executor and when, with completions delivered by hand.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "stage.hpp"

namespace {

using namespace test;
using namespace std::chrono_literals;
using troupe::access_mode;
using troupe::options;
constexpr auto reads = access_mode::read, writes = access_mode::write, updates = access_mode::update;

TEST(placement, hands_out_a_ready_task_at_once) {
  stage s(1);
  task_record* t = s.submitted();
  EXPECT_TRUE(s.is_out(t));
  s.complete(t);
  EXPECT_TRUE(s.placement_actor->is_quiet());
}

TEST(placement, holds_back_a_reader_until_its_writer_is_done) {
  stage s(1);
  array_core* a = s.array();
  task_record* w = s.submitted({{a, writes}});
  task_record* r = s.submitted({{a, reads}});
  EXPECT_FALSE(s.is_out(r));
  s.complete(w);
  EXPECT_TRUE(s.is_out(r));
}

// Two writers, a task that reads both and two that read its result: every order in which they can complete.
TEST(placement, hands_out_each_task_of_a_small_graph_after_its_predecessors_in_every_order) {
  std::vector<int> order(5);
  std::iota(order.begin(), order.end(), 0);
  int legal = 0;
  do {
    stage s(2);
    array_core *a = s.array(), *b = s.array(), *c = s.array();
    const std::vector<task_record*> t{s.submitted({{a, writes}}), s.submitted({{b, writes}}),
                                      s.submitted({{a, reads}, {b, reads}, {c, writes}}), s.submitted({{c, reads}}),
                                      s.submitted({{c, reads}})};
    bool possible = true;
    std::vector<bool> done(5, false);
    for (const int i : order) {
      const bool ready = i < 2 || (i == 2 ? done[0] && done[1] : done[2]);
      ASSERT_EQ(s.is_out(t[static_cast<std::size_t>(i)]), ready) << i;
      if (!ready) {
        possible = false;
        break;
      }
      s.complete(t[static_cast<std::size_t>(i)]);
      done[static_cast<std::size_t>(i)] = true;
    }
    if (!possible) continue;
    ++legal;
    ASSERT_TRUE(s.placement_actor->is_quiet());
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(legal, 4);
}

TEST(placement, takes_many_completions_reported_together) {
  stage s(1);
  array_core* a = s.array();
  std::vector<task_record*> first;
  for (int i = 0; i < 10; ++i) first.push_back(s.submitted({{a, reads}}));
  task_record* w = s.submitted({{a, writes}});
  s.groups[0]->held.clear();
  for (task_record* t : first) {
    ASSERT_TRUE(claim(*t));
    fulfil(*t, s.board);
  }
  s.placement_actor->report_done(first, s.groups[0].get());
  EXPECT_TRUE(s.is_out(w));
}

TEST(placement, fails_the_readers_of_a_failed_task_without_handing_them_out) {
  stage s(1);
  array_core* a = s.array();
  task_record* w = s.submitted({{a, writes}});
  task_record* r = s.submitted({{a, reads}});
  task_record* other = s.submitted();
  s.complete(w, 1000, std::make_exception_ptr(std::runtime_error("bad")));
  EXPECT_TRUE(s.is_done(r));
  EXPECT_TRUE(r->error);
  EXPECT_FALSE(s.is_out(r));
  EXPECT_TRUE(s.is_out(other));
  s.complete(other);
  EXPECT_TRUE(s.placement_actor->is_quiet());
}

TEST(placement, retires_a_task_that_was_cancelled_before_it_became_ready) {
  stage s(1);
  array_core* a = s.array();
  task_record* w = s.submitted({{a, writes}});
  task_record* victim = s.submitted({{a, updates}});
  ASSERT_TRUE(claim(*victim));
  fulfil(*victim, s.board);
  s.complete(w);
  EXPECT_FALSE(s.is_out(victim));
  EXPECT_TRUE(s.placement_actor->is_quiet());
}

// ---- late binding ---------------------------------------------------------------------------------------------------

TEST(placement, gives_each_executor_about_a_window_of_work_and_keeps_the_rest) {
  stage s(2, options{.window = 100us});
  for (int i = 0; i < 1000; ++i) s.submitted();
  // Nothing is known: each counts as 10 us. A window of 100 us is exceeded by one at most.
  for (const auto& g : s.groups) {
    EXPECT_GE(g->held.size(), 10u);
    EXPECT_LE(g->held.size(), 12u);
  }
}

TEST(placement, refills_the_executor_that_ran_dry_and_not_the_other) {
  stage s(2, options{.window = 100us});
  for (int i = 0; i < 200; ++i) s.submitted();
  const std::size_t left = s.groups[1]->held.size();
  std::size_t done = 0;
  for (; done < 50; ++done) s.complete(s.groups[0]->held.front(), 10'000);
  EXPECT_EQ(s.groups[1]->held.size(), left);
  EXPECT_FALSE(s.groups[0]->held.empty());
}

TEST(placement, hands_out_everything_in_the_end) {
  stage s(2, options{.window = 20us});
  for (int i = 0; i < 500; ++i) s.submitted();
  s.complete_all();
  EXPECT_TRUE(s.placement_actor->is_quiet());
  EXPECT_EQ(s.placement_actor->finished(), 500u);
}

TEST(placement, chooses_the_executor_that_finishes_first_by_learned_times) {
  stage s(options{});
  collector& slow = s.add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
  collector& fast = s.add({1, "sim:0", troupe::device_kind::sim, host_space, 1});
  static const kernel_info both{.name = "both", .key = 77, .kinds = 0b10001};
  const auto next = [&] {
    task_record* t = s.task();
    t->kernel = &both;
    return s.submit(t);
  };
  // The kernel's costs are learned where its tasks were placed by force.
  for (int i = 0; i < 8; ++i) {
    for (const int where : {0, 1}) {
      task_record* t = s.task();
      t->kernel = &both;
      s.extra(t).executors = {where};
      s.submit(t);
      s.complete(t, where == 0 ? 90'000 : 10'000);
    }
  }
  // Nine in a row fit on the fast one before the slow one would be through first.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(s.holder(next()), &fast) << i;
  for (int i = 0; i < 4; ++i) next();
  EXPECT_GE(slow.held.size(), 1u) << "the fast one is busy for longer than the slow one takes";
  EXPECT_LE(slow.held.size(), 2u);
}

TEST(placement, fills_every_slot_with_tasks_that_take_longer_than_a_window) {
  stage s(2, options{}, 16);
  s.complete(s.submitted(), 50e6f);
  s.complete(s.submitted(), 50e6f);
  for (int i = 0; i < 40; ++i) s.submitted();
  for (const auto& g : s.groups) EXPECT_EQ(g->held.size(), 16u) << "the rest is for whoever is free first";
}

TEST(placement, learns_of_a_link_into_a_device_from_copies_reported_by_any_thread) {
  stage s(options{});
  collector& core = s.add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
  collector& device = s.add({1, "sim:0", troupe::device_kind::sim, 1, 1});
  s.placement_actor->know_link(1, {1'000, 10}, {1'000, 10});
  static const kernel_info both{.name = "both", .key = 78, .kinds = 0b10001};
  const auto run = [&](const troupe::detail::id_set& where, float ns) {
    task_record* t = s.task({{s.array(), reads}});  // 8 bytes that the device does not have
    t->kernel = &both;
    if (!where.empty()) s.extra(t).executors = where;
    s.submit(t);
    collector* const by = s.holder(t);
    s.complete(t, ns);
    return by;
  };
  for (int i = 0; i < 8; ++i) {
    run({0}, 50'000);
    run({1}, 10'000);
  }
  EXPECT_EQ(run({}, 10'000), &device);
  std::thread([&] {
    for (int i = 0; i < 20; ++i) s.placement_actor->report_transfer(host_space, 1, 8, 100'000);
  }).join();
  EXPECT_EQ(run({}, 50'000), &core);
  std::thread([&] {
    for (int i = 0; i < 1000; ++i)
      s.placement_actor->report_transfer(1, host_space, 8, 1);  // more than fit, and the other way
  }).join();
  EXPECT_EQ(run({}, 50'000), &core);
  for (int i = 0; i < 20; ++i) s.placement_actor->report_transfer(host_space, 1, 8, 1'000);
  EXPECT_EQ(run({}, 10'000), &device);
}

TEST(placement, spreads_tasks_over_links_because_what_travels_on_one_stands_in_line) {
  stage s(options{});
  collector& one = s.add({0, "sim:0", troupe::device_kind::sim, 1, 1});
  collector& two = s.add({1, "sim:1", troupe::device_kind::sim, 2, 1});
  s.placement_actor->know_link(1, {100'000, 10}, {100'000, 10});
  s.placement_actor->know_link(2, {90'000, 10}, {90'000, 10});
  static const kernel_info sim_only{.name = "sim_only", .key = 79, .kinds = 0b10000};
  const auto next = [&] {
    task_record* t = s.task({{s.array(), reads}});  // 8 bytes that neither has
    t->kernel = &sim_only;
    return s.submit(t);
  };
  for (int i = 0; i < 10; ++i) next();
  EXPECT_EQ(one.held.size(), 5u) << "the other rt is a little faster, but not for ten times as much";
  EXPECT_EQ(two.held.size(), 5u);
  s.complete_all();
  for (int i = 0; i < 3; ++i) {  // nothing travels any more
    task_record* t = next();
    EXPECT_EQ(s.holder(t), &two);
    s.complete(t);
  }
}

TEST(placement, keeps_a_task_within_its_scope) {
  stage s(3);
  for (const int where : {2, 0, 1}) {
    task_record* t = s.task();
    s.extra(t).executors = {where};
    s.submit(t);
    EXPECT_EQ(s.holder(t)->facts().id, where);
  }
}

TEST(placement, weighs_each_candidate_by_what_it_has_and_by_its_own_link) {
  stage s(options{});
  for (std::uint16_t i = 0; i < 5; ++i) {
    collector& node =
        s.add({i, "node:" + std::to_string(i), troupe::device_kind::node, static_cast<memory_space>(i + 1), 1});
    s.placement_actor->admit_node(node, 1, {1'000.0f * static_cast<float>(i + 1), 1}, {50'000, 1}, true);
  }
  static troupe::detail::shown_ids offering;
  offering = {0, 1, 2, 3, 4};
  static const kernel_info offered{.name = "offered", .key = 80, .kinds = 0, .nodes = &offering};
  const auto next = [&](array_core* a, const troupe::detail::id_set& where) {
    task_record* t = s.task({{a, reads}});
    t->kernel = &offered;
    stage::extra(t).executors = where;
    return s.submit(t);
  };
  array_core* a = s.array();
  s.complete(next(a, {2}));  // it has a copy now, as the host has
  const auto e = s.placement_actor->explain(*next(a, {0, 1, 2, 3, 4}));
  ASSERT_EQ(e.candidates.size(), 5u) << e.text();
  for (std::size_t i = 0; i < 5; ++i) {
    const std::uint64_t bytes = i == 2 ? 0 : 1;
    EXPECT_EQ(e.candidates[i].bytes_missing, bytes) << e.text();
    EXPECT_NEAR(static_cast<double>(e.candidates[i].transfer.count()),
                i == 2 ? 0 : 1'000.0 * static_cast<double>(i + 1) + 1, 1);
    EXPECT_EQ(e.candidates[i].chosen, i == 2) << e.text();
  }
}

TEST(placement, explains_a_choice_with_every_candidate_and_one_chosen) {
  stage s(2);
  task_record* t = s.submitted({}, "named");
  const auto e = s.placement_actor->explain(*t);
  EXPECT_EQ(e.task, "named");
  ASSERT_EQ(e.candidates.size(), 2u);
  EXPECT_EQ(std::count_if(e.candidates.begin(), e.candidates.end(), [](auto& c) { return c.chosen; }), 1);
  EXPECT_EQ(e.executor, s.holder(t)->facts().name);
  EXPECT_FALSE(e.predicted) << "its time was a guess";
  s.complete(t, 5000);
  EXPECT_EQ(s.placement_actor->explain(*t).measured, 5000ns);
}

TEST(placement, forgets_old_decisions) {
  stage s(2, options{.decisions_kept = 3});
  std::vector<task_record*> t;
  for (int i = 0; i < 5; ++i) t.push_back(s.submitted());
  EXPECT_EQ(s.placement_actor->explain(*t[4]).candidates.size(), 2u);
  EXPECT_LT(s.placement_actor->explain(*t[0]).candidates.size(), 2u);
}

// ---- priorities and resources ---------------------------------------------------------------------------------------

TEST(placement, takes_tasks_of_higher_priority_from_the_backlog_first) {
  stage s(2, options{.window = 10us});
  while (s.groups[0]->held.size() + s.groups[1]->held.size() < 4) s.submitted();
  for (int i = 0; i < 3; ++i) s.submitted();  // wait in the backlog
  task_record* urgent = s.task();
  s.extra(urgent).options.priority = 5;
  s.submit(urgent);
  ASSERT_FALSE(s.is_out(urgent));
  while (!s.is_out(urgent)) {
    const auto before = s.out().size();
    ASSERT_NE(before, 0u);
    s.complete(s.out().front(), 10'000);
    ASSERT_TRUE(s.is_out(urgent) || s.out().size() < before) << "another one was let past";
  }
}

TEST(placement, hands_out_no_more_tasks_than_a_resource_allows) {
  stage s(1, options{.resources = {{"io", 2}}});
  std::vector<task_record*> t;
  for (int i = 0; i < 6; ++i) {
    t.push_back(s.task());
    s.extra(t.back()).options.resources = {{"io", 1}};
    s.submit(t.back());
  }
  for (std::size_t left = 6; left != 0; --left) {
    ASSERT_EQ(s.out().size(), std::min<std::size_t>(left, 2));
    EXPECT_EQ(s.placement_actor->report().resources_free[0].amount, 2.0 - static_cast<double>(s.out().size()));
    s.complete(s.out().front());
  }
  EXPECT_EQ(s.placement_actor->report().resources_free[0].amount, 2);
}

TEST(placement, gives_resources_back_when_the_task_that_held_them_fails) {
  stage s(1, options{.resources = {{"io", 1}}});
  task_record* t = s.task();
  s.extra(t).options.resources = {{"io", 1}};
  s.submit(t);
  s.complete(t, 1000, std::make_exception_ptr(std::runtime_error("bad")));
  EXPECT_EQ(s.placement_actor->report().resources_free[0].amount, 1);
}

TEST(placement, passes_over_a_task_whose_resource_is_taken_for_one_that_can_run) {
  stage s(1, options{.resources = {{"a", 1}, {"b", 1}}});
  const auto wants = [&](const char* name) {
    task_record* t = s.task();
    s.extra(t).options.resources = {{name, 1}};
    return s.submit(t);
  };
  task_record* first = wants("a");
  task_record* blocked = wants("a");
  EXPECT_TRUE(s.is_out(wants("b")));
  EXPECT_FALSE(s.is_out(blocked));
  s.complete(first);
  EXPECT_TRUE(s.is_out(blocked));
}

// ---- bounds and the end ---------------------------------------------------------------------------------------------

TEST(placement, holds_a_client_back_at_the_in_flight_bound_until_work_has_drained) {
  constexpr std::size_t bound = 64;
  stage s(1, options{.tasks_in_flight_max = bound});
  std::vector<task_record*> tasks;
  for (int i = 0; i < 500; ++i) tasks.push_back(s.task());
  std::atomic<std::size_t> submitted{0};
  std::thread client([&] {
    for (task_record* t : tasks) {
      s.placement_actor->submit(t, false);
      ++submitted;
    }
  });
  // The collector is filled by the thread that holds the turn, so it is looked at with the turn only.
  std::size_t most = 0;
  bool draining = false;
  while (s.placement_actor->finished() < tasks.size()) {
    s.placement_actor->take_turn(nullptr);
    task_record* t = nullptr;
    s.placement_actor->with_turn([&] {
      most = std::max(most, s.groups[0]->held.size());
      // The client runs into the bound, then half of it drains, and so on.
      if (s.groups[0]->held.size() >= bound) draining = true;
      if (s.groups[0]->held.size() <= bound / 2) draining = false;
      if (!draining && submitted < tasks.size()) return;
      if (!s.groups[0]->held.empty()) {
        t = s.groups[0]->held.front();
        s.groups[0]->held.erase(s.groups[0]->held.begin());
      }
    });
    if (!t) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_TRUE(claim(*t));
    fulfil(*t, s.board);
    s.placement_actor->report_done({&t, 1}, s.groups[0].get());
  }
  client.join();
  EXPECT_LE(most, bound + 32);
}

TEST(placement, takes_back_and_fails_all_that_was_not_started_when_it_is_abandoned) {
  stage s(2, options{.resources = {{"io", 1}}, .window = 50us});
  array_core* a = s.array();
  std::vector<task_record*> t{s.submitted({{a, writes}}, "writer"), s.submitted({{a, reads}}, "reader")};
  for (int i = 0; i < 100; ++i) t.push_back(s.submitted());
  for (int i = 0; i < 2; ++i) {
    t.push_back(s.task());
    s.extra(t.back()).options.resources = {{"io", 1}};
    s.submit(t.back());
  }
  s.placement_actor->close();
  s.placement_actor->abandon_queued();
  EXPECT_TRUE(s.placement_actor->is_quiet());
  for (task_record* x : t) {
    ASSERT_TRUE(s.is_done(x) && x->error);
    try {
      std::rethrow_exception(x->error);
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::runtime_stopped);
    }
  }
  EXPECT_EQ(s.placement_actor->report().resources_free[0].amount, 1);
}

TEST(placement, lets_an_executor_that_ran_dry_take_over_half_of_what_another_has_not_started) {
  stage s(2);
  std::vector<task_record*> tasks;
  for (int i = 0; i < 40; ++i) tasks.push_back(s.submitted());
  ASSERT_EQ(s.groups[0]->held.size() + s.groups[1]->held.size(), 40u);
  const auto before = s.groups[0]->held.size();
  while (s.groups[1]->held.size() > 1) s.complete(s.groups[1]->held.front());
  task_record* last = s.groups[1]->held.front();
  const auto newest = s.groups[0]->held.back();
  s.complete(last);
  EXPECT_EQ(s.groups[1]->held.size(), (before + 1) / 2);
  EXPECT_EQ(s.groups[0]->held.size(), before / 2);
  EXPECT_EQ(s.holder(newest), s.groups[1].get());
  const auto why = s.placement_actor->explain(*newest);
  EXPECT_EQ(why.executor, "cpu:1");
  for (const auto& c : why.candidates) EXPECT_EQ(c.chosen, c.executor == "cpu:1");
  s.complete_all();
  for (const task_record* t : tasks) EXPECT_TRUE(stage::is_done(t));
}

TEST(placement, leaves_what_an_idle_executor_may_not_run_where_it_is) {
  stage s(2);
  std::vector<task_record*> pinned;
  for (int i = 0; i < 10; ++i) {
    task_record* t = s.task();
    stage::extra(t).executors = {0};  // cpu:0
    pinned.push_back(s.submit(t));
  }
  task_record* other = s.task();
  stage::extra(other).executors = {1};
  s.submit(other);
  s.complete(other);  // cpu:1 has nothing to do now
  for (const task_record* t : pinned) EXPECT_EQ(s.holder(t), s.groups[0].get());
}

// Known for 10 us, and now they take 100 ms where most of them are.
TEST(placement, places_what_a_device_has_not_begun_anew_once_it_takes_much_longer_than_was_thought) {
  stage s(options{});
  collector& one = s.add({0, "sim:0", troupe::device_kind::sim, 1, 1});
  collector& two = s.add({1, "sim:1", troupe::device_kind::sim, 2, 1});
  static const kernel_info sim_only{.name = "sim_only", .key = 80, .kinds = 0b10000};
  const auto next = [&](const troupe::detail::id_set& where = {}) {
    task_record* t = s.task();
    t->kernel = &sim_only;
    if (!where.empty()) s.extra(t).executors = where;
    return s.submit(t);
  };
  for (int i = 0; i < 4; ++i)
    for (const int where : {0, 1}) s.complete(next({where}), 10'000);
  std::vector<task_record*> all;
  for (int i = 0; i < 100; ++i) all.push_back(next());
  task_record* const bound = next({0});
  ASSERT_GE(one.held.size(), 40u);
  while (!two.held.empty()) s.complete(two.held.front(), 10'000);
  s.complete(one.held.front(), 100'000'000);
  EXPECT_GE(two.held.size(), 20u);
  EXPECT_GE(one.held.size(), 20u);
  EXPECT_EQ(s.holder(bound), &one);
  s.complete_all();
  for (task_record* t : all) EXPECT_TRUE(stage::is_done(t));
}

// Tasks that come after the first on that device were sent on its heels, and must not run without it.
TEST(placement, leaves_what_others_were_sent_behind_on_the_device_where_it_is) {
  stage s(options{});
  collector& one = s.add({0, "sim:0", troupe::device_kind::sim, 1, 1});
  collector& two = s.add({1, "sim:1", troupe::device_kind::sim, 2, 1});
  static const kernel_info sim_only{.name = "sim_only", .key = 81, .kinds = 0b10000};
  const auto next = [&](const std::vector<stage::use>& uses, const troupe::detail::id_set& where = {}) {
    task_record* t = s.task(uses);
    t->kernel = &sim_only;
    if (!where.empty()) s.extra(t).executors = where;
    return s.submit(t);
  };
  for (int i = 0; i < 4; ++i)
    for (const int where : {0, 1}) s.complete(next({{s.array(), writes}}, {where}), 10'000);
  task_record* const slow = next({{s.array(), writes}}, {0});
  for (int i = 0; i < 10; ++i) next({{s.array(), writes}}, {1});
  array_core* const a = s.array();
  task_record* const first = next({{a, writes}});
  ASSERT_EQ(s.holder(first), &one);
  task_record* const second = next({{a, updates}});
  ASSERT_EQ(s.holder(second), &one);
  for (int i = 0; i < 60; ++i) next({{s.array(), writes}}, {0});
  while (!two.held.empty()) s.complete(two.held.front(), 10'000);
  s.complete(slow, 100'000'000);
  EXPECT_EQ(s.holder(first), &one);
  EXPECT_EQ(s.holder(second), &one);
  s.complete_all();
  EXPECT_TRUE(stage::is_done(second));
  EXPECT_FALSE(second->error);
}

TEST(placement, refuses_clients_once_it_is_closed) {
  stage s(1);
  EXPECT_NO_THROW(s.placement_actor->check_open());
  s.placement_actor->close();
  EXPECT_THROW(s.placement_actor->check_open(), troupe::error);
}

TEST(placement, frees_an_array_once_its_last_task_has_retired_and_not_before) {
  stage s(1);
  array_core* a = s.array();
  task_record* t = s.submitted({{a, writes}});
  EXPECT_EQ(s.placement_actor->report().arrays, 1u);
  s.forget(a);
  s.placement_actor->drop(a);
  EXPECT_EQ(s.placement_actor->report().arrays, 1u);
  s.complete(t);
  EXPECT_EQ(s.placement_actor->report().arrays, 0u);
}

TEST(placement, sees_that_a_task_would_wait_for_one_behind_itself) {
  stage s(1);
  array_core* a = s.array();
  task_record* w = s.submitted({{a, writes}});
  task_record* r = s.submitted({{a, reads}});
  task_record* other = s.submitted();
  EXPECT_TRUE(s.placement_actor->would_deadlock(*w, *r));
  EXPECT_TRUE(s.placement_actor->would_deadlock(*w, *w));
  EXPECT_FALSE(s.placement_actor->would_deadlock(*r, *w));
  EXPECT_FALSE(s.placement_actor->would_deadlock(*w, *other));
}

}  // namespace
