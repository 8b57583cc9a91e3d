// What this file is for: what is retained, brought home, and repeated after a loss, for tasks that ran on a node.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/lineage_log.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/execution/reexecution.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "loose_graph.hpp"

namespace {

using namespace test;
using enum troupe::access_mode;

constexpr memory_space node_space = 1;

/// A core group, and a node whose calls may be repeated. Arrays are of one number.
class lineage_of_a_node : public testing::Test, protected loose_graph {
 protected:
  explicit lineage_of_a_node(troupe::logic::lineage_bounds bounds = {})
      : costs(1e6f, 0), log(bounds, *rt, order.graph(), costs, nullptr) {
    costs.add({0, "cpu:0", troupe::device_kind::cpu, host_space, 1});
    costs.add({1, "node:1", troupe::device_kind::node, node_space, 2});
    costs.know_link(node_space, host_space, {1'000, 1});
    log.note_joined(1);
  }
  array_core* number(const std::string& name, std::uint64_t value) {
    array_core* const a = array(name);
    a->coherence = std::make_unique<array_coherence>(1);
    set(a, value);
    return a;
  }
  void set(array_core* a, std::uint64_t value) { std::memcpy(host_tile(*rt, *a, 0, true), &value, sizeof value); }
  static std::uint64_t get(const std::byte* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint64_t get(array_core* a) { return get(a->bytes[0].data.load()); }
  static std::uint32_t version(const array_core* a) { return a->coherence->tiles[0].version.load(); }

  /// A task has run on the node: its writes are only there.
  task_record* ran(const std::vector<use>& uses, float ns = 1'000) {
    task_record* const t = ordered(uses);
    t->executor = 1;
    t->measured_ns = ns;
    extra(t).call = std::make_shared<repeatable_call>();
    log.note_overwriting(*t, node_space);
    log.note_read(*t);
    for (const use& u : uses)
      if (u.mode != read) {
        u.array->coherence->tiles[0].version.fetch_add(1);
        u.array->coherence->tiles[0].dirty_in = node_space;
      }
    log.note_at_home(*t, node_space);
    log.note_ran(*t, node_space, true);
    retire(t);
    return t;
  }
  /// A task here is about to write; then it does.
  void runs_here(array_core* a, std::uint64_t value, std::exception_ptr fails = nullptr) {
    task_record* const t = ordered({{a, write}});
    log.note_overwriting(*t, host_space);
    if (!fails) {
      set(a, value);
      a->coherence->tiles[0].version.fetch_add(1);
      a->coherence->tiles[0].dirty_in = host_space;
    }
    t->error = fails;
    log.note_at_home(*t, host_space);
    retire(t);
  }
  saved_tile sent(array_core* a, std::uint64_t value) {
    saved_tile s{a, 0, version(a), new_loose_bytes(*rt, 8)};
    std::memcpy(s.bytes.get(), &value, sizeof value);
    return s;
  }
  std::vector<array_core*> wanted() {
    std::vector<array_core*> all;
    log.each_to_save([&](array_core& a, std::uint32_t) {
      all.push_back(&a);
      a.handles.fetch_sub(array_core::kept_once);
    });
    return all;
  }
  lineage_log::repetition again(const std::vector<array_core*>& of) {
    std::vector<lineage_log::tile_id> lost;
    for (array_core* a : of) lost.emplace_back(a, 0);
    return log.reexecute_lost(node_space, lost);
  }
  using arrays = std::vector<array_core*>;
  using tiles = std::vector<lineage_log::tile_id>;

  troupe::logic::assignment costs;
  lineage_log log;
};

TEST_F(lineage_of_a_node, repeats_the_call_that_wrote_what_is_lost_on_a_copy_of_what_it_read) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  const auto r = again({b});
  EXPECT_EQ(r.lost, tiles());
  EXPECT_EQ(r.reexecuted, (tiles{{b, 0}}));
  ASSERT_EQ(r.plan.steps.size(), 1u);
  ASSERT_EQ(r.plan.steps[0].reads.size(), 1u);
  set(a, 8);  // as soon as the turn is left
  EXPECT_EQ(get(r.copy(r.plan.steps[0].reads[0].what)), 7u);
}

TEST_F(lineage_of_a_node, does_not_repeat_what_is_lost_elsewhere) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  b->coherence->tiles[0].dirty_in = node_space + 1;
  const auto r = again({b});
  EXPECT_EQ(r.reexecuted, tiles());
  EXPECT_EQ(r.lost, tiles());
}

TEST_F(lineage_of_a_node, keeps_what_a_call_has_read_when_a_task_here_overwrites_it) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  runs_here(a, 99);
  EXPECT_EQ(get(a), 99u);
  const auto r = again({b});
  ASSERT_EQ(r.reexecuted, (tiles{{b, 0}}));
  EXPECT_EQ(get(r.copy(r.plan.steps[0].reads[0].what)), 7u) << "as it was when the call ran";
}

// Calls read numbers of a tile while a task here changes another one, which it has begun before they end, or has failed
// to change.
TEST_F(lineage_of_a_node, keeps_the_parts_that_calls_have_read_while_a_task_here_writes_beside_them) {
  for (const bool fails : {false, true}) {
    array_core *a = array("a", 4), *b = number("b", 0), *c = number("c", 0), *d = number("d", 0);
    a->coherence = std::make_unique<array_coherence>(1);
    auto* const numbers = reinterpret_cast<std::uint64_t*>(host_tile(*rt, *a, 0, true));
    for (std::uint64_t i = 0; i < 4; ++i) numbers[i] = 10 + i;
    const auto box = [](troupe::index_t i) { return troupe::logic::box4{{i, 0, 0, 0}, {i + 1, 1, 1, 1}}; };
    const auto ran_on = [&](troupe::index_t number, array_core* to) {
      region where{};
      where.lo = box(number).lo;
      where.hi = box(number).hi;
      where.limit_hi = {4, 1, 1, 1};
      task_record* const t = ordered({{a, read}, {to, write}});
      t->executor = 1;
      t->measured_ns = 1'000;
      extra(t).call = std::make_shared<repeatable_call>();
      t->accesses[0].where = &where;
      log.note_read(*t);
      to->coherence->tiles[0].version.fetch_add(1);
      to->coherence->tiles[0].dirty_in = node_space;
      log.note_ran(*t, node_space, true);
      t->accesses[0].where = nullptr;
      retire(t);
    };
    task_record* const writes = task({{a, update}});
    log.note_overwriting(*writes, host_space);
    ran_on(0, b);
    ran_on(2, c);
    numbers[1] = 99;  // what it was to change
    if (fails)
      writes->error = std::make_exception_ptr(1);
    else
      a->coherence->tiles[0].version.fetch_add(1);
    log.note_at_home(*writes, host_space);
    ran_on(3, d);
    task_record* const overwrites = task({{a, write}});
    log.note_overwriting(*overwrites, host_space);
    auto* const now = reinterpret_cast<std::uint64_t*>(host_tile(*rt, *a, 0, true));
    for (std::uint64_t i = 0; i < 4; ++i) now[i] = 0;
    const auto r = again({b, c, d});
    EXPECT_EQ(r.lost, tiles());
    ASSERT_EQ(r.plan.steps.size(), 3u);
    for (const std::size_t step : {0u, 1u, 2u}) {
      const troupe::index_t i = step == 0 ? 0 : step == 1 ? 2 : 3;
      const std::byte* const bytes = r.copy(r.plan.steps[step].reads[0].what, std::vector{box(i)});
      ASSERT_NE(bytes, nullptr) << step;
      EXPECT_EQ(get(bytes + 8 * i), 10u + static_cast<std::uint64_t>(i));
    }
    EXPECT_EQ(r.copy(r.plan.steps[0].reads[0].what, std::vector{box(1)}), nullptr) << "nobody has read it";
  }
}

TEST_F(lineage_of_a_node, keeps_nothing_that_no_call_has_read) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  array_core* const c = number("c", 1);
  const std::size_t before = rt->array_bytes.load();
  runs_here(c, 2);
  EXPECT_EQ(rt->array_bytes.load(), before);
}

TEST_F(lineage_of_a_node, keeps_what_a_call_has_read_of_an_array_that_is_freed) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  log.forget(*a);
  const auto r = again({b});
  ASSERT_EQ(r.reexecuted, (tiles{{b, 0}}));
  EXPECT_EQ(get(r.copy(r.plan.steps[0].reads[0].what)), 7u);
}

TEST_F(lineage_of_a_node, cannot_make_again_what_a_call_wrote_that_must_run_once) {
  array_core *a = number("a", 7), *b = number("b", 0);
  task_record* const t = ordered({{a, read}, {b, write}});
  t->executor = 1;  // no call was kept: it was not sent as one that may be repeated
  log.note_read(*t);
  b->coherence->tiles[0].version.fetch_add(1);
  b->coherence->tiles[0].dirty_in = node_space;
  log.note_ran(*t, node_space, true);
  EXPECT_EQ(wanted(), arrays{b}) << "so it is brought entry soon";
  const auto r = again({b});
  EXPECT_EQ(r.lost, (tiles{{b, 0}}));
  EXPECT_EQ(r.reexecuted, tiles());
}

TEST_F(lineage_of_a_node, takes_home_what_the_node_has_sent_and_repeats_nothing_then) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  saved_tile s = sent(b, 42);
  log.take_home({1, "node:1", troupe::device_kind::node, node_space, 2}, 1, {&s, 1});
  EXPECT_EQ(get(b), 42u);
  EXPECT_EQ(b->coherence->tiles[0].dirty_in, host_space);
  EXPECT_EQ(again({b}).reexecuted, tiles());
}

TEST_F(lineage_of_a_node, does_not_take_home_what_a_node_sent_that_has_gone_since) {
  array_core *a = number("a", 7), *b = number("b", 5);
  ran({{a, read}, {b, write}});
  saved_tile s = sent(b, 42);
  log.note_joined(1);
  log.take_home({1, "node:1", troupe::device_kind::node, node_space, 2}, 1, {&s, 1});
  EXPECT_EQ(get(b), 5u);
  EXPECT_EQ(again({b}).reexecuted, (tiles{{b, 0}}));
}

TEST_F(lineage_of_a_node, does_not_take_home_what_is_being_transferred_otherwise) {
  array_core *a = number("a", 7), *b = number("b", 5);
  ran({{a, read}, {b, write}});
  task_record* const transfer = own(make_transfer(*rt, *b, 0, false));
  transfer->sequence = order.graph().next_number();
  b->coherence->tiles[0].moving = {transfer, transfer->sequence};
  saved_tile s = sent(b, 42);
  log.take_home({1, "node:1", troupe::device_kind::node, node_space, 2}, 1, {&s, 1});
  EXPECT_EQ(get(b), 5u);
}

TEST_F(lineage_of_a_node, has_a_task_that_failed_here_change_nothing) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  runs_here(a, 99, std::make_exception_ptr(std::runtime_error("it failed")));
  const auto r = again({b});
  ASSERT_EQ(r.reexecuted, (tiles{{b, 0}}));
  EXPECT_EQ(get(r.copy(r.plan.steps[0].reads[0].what)), 7u);
}

TEST_F(lineage_of_a_node, retains_a_tile_once_for_a_task_that_is_looked_at_twice) {
  array_core *a = number("a", 7), *b = number("b", 0);
  ran({{a, read}, {b, write}});
  task_record* const t = ordered({{a, write}});
  log.note_overwriting(*t, host_space);
  set(a, 99);                            // its body has begun
  log.note_overwriting(*t, host_space);  // this would copy what it has written
  const auto r = again({b});
  ASSERT_EQ(r.reexecuted, (tiles{{b, 0}}));
  EXPECT_EQ(get(r.copy(r.plan.steps[0].reads[0].what)), 7u);
}

class short_lineage : public lineage_of_a_node {
 protected:
  short_lineage() : lineage_of_a_node({.calls = 100, .cost_ns = 100'000}) {}
};

TEST_F(short_lineage, has_tiles_brought_home_those_away_longest_first_when_repeating_would_take_too_long) {
  array_core *a = number("a", 7), *b = number("b", 0), *c = number("c", 0);
  ran({{a, read}, {b, write}}, 60'000);
  EXPECT_EQ(wanted(), arrays());
  ran({{a, read}, {c, write}}, 60'000);
  EXPECT_EQ(wanted(), (arrays{b, c}));
  EXPECT_EQ(wanted(), arrays()) << "once";
  log.not_saved({b, 0});
  EXPECT_EQ(wanted(), arrays()) << "it is in error, and not asked for again";
  ran({{a, read}, {b, write}}, 60'000);
  EXPECT_EQ(wanted(), arrays{b}) << "it has been written again";
}

TEST_F(short_lineage, does_not_ask_for_tiles_of_arrays_without_a_handle) {
  array_core *a = number("a", 7), *b = number("b", 0);
  b->handles.store(0);
  ran({{a, read}, {b, write}}, 200'000);
  EXPECT_EQ(wanted(), arrays());
  b->handles.store(1);
  EXPECT_EQ(wanted(), arrays{b}) << "the log was told that it did not come";
}

}  // namespace
