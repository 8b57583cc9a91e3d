// What this file is for: small random graphs completed in every legal order, against a model by single elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The model knows program order and elements, no tiles and no lists. Two tasks conflict if both touch an element and
// one of them writes it. Readiness may be later than the model's where a tile is tracked as a whole, never earlier.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph_world.hpp"

namespace {

using namespace test;
using troupe::index_t;

constexpr index_t array_size = 12, tile_size = 4;

struct touch {
  std::size_t array;
  access_mode mode;
  index_t lo, hi;
};
using program = std::vector<std::vector<touch>>;  // per task

bool is_write(access_mode m) { return m != access_mode::read; }
bool is_read(access_mode m) { return m != access_mode::write; }

std::string text_of(const program& p) {
  std::string s;
  for (std::size_t t = 0; t < p.size(); ++t) {
    s += "\n  task " + std::to_string(t) + ":";
    for (const touch& x : p[t])
      s += std::string(x.mode == access_mode::read    ? " read "
                       : x.mode == access_mode::write ? " write "
                                                      : " update ") +
           static_cast<char>('A' + x.array) + "[" + std::to_string(x.lo) + "," + std::to_string(x.hi) + ")";
  }
  return s;
}

program random_program(std::mt19937& random, std::size_t tasks, bool whole_tiles) {
  const auto below = [&](unsigned n) { return static_cast<index_t>(random() % n); };
  program p(tasks);
  for (auto& t : p)
    for (std::size_t array = 0; array < 2; ++array) {
      if (array == 1 ? random() % 2 == 0 && !t.empty() : random() % 4 == 0) continue;
      index_t lo = below(array_size), hi = lo + 1 + below(static_cast<unsigned>(array_size - lo));
      if (whole_tiles) {
        lo = lo / tile_size * tile_size;
        hi = (hi + tile_size - 1) / tile_size * tile_size;
      }
      t.push_back({array, static_cast<access_mode>(random() % 3), lo, hi});
    }
  return p;
}

// Whether two tasks touch something together that one of them writes; `rough` looks at tiles instead of elements.
bool conflict(const std::vector<touch>& a, const std::vector<touch>& b, bool rough) {
  for (const touch& x : a)
    for (const touch& y : b) {
      if (x.array != y.array || (!is_write(x.mode) && !is_write(y.mode))) continue;
      const index_t unit = rough ? tile_size : 1;
      if (x.lo / unit <= (y.hi - 1) / unit && y.lo / unit <= (x.hi - 1) / unit) return true;
    }
  return false;
}

// Returns which tasks fail when these bodies throw: their own failure, a value of a failed writer, or a value nobody
// wrote.
std::vector<bool> failures(const program& p, const std::vector<bool>& throws, bool written) {
  enum : char { nothing, good, bad };
  std::vector<std::vector<char>> state(2, std::vector<char>(array_size, written ? good : nothing));
  std::vector<bool> failed(p.size());
  for (std::size_t t = 0; t < p.size(); ++t) {
    failed[t] = throws[t];
    for (const touch& x : p[t])
      for (index_t i = x.lo; is_read(x.mode) && i < x.hi; ++i)
        if (state[x.array][static_cast<std::size_t>(i)] != good) failed[t] = true;
    for (const touch& x : p[t])
      for (index_t i = x.lo; is_write(x.mode) && i < x.hi; ++i)
        state[x.array][static_cast<std::size_t>(i)] = failed[t] ? bad : good;
  }
  return failed;
}

// A program brought to life.
struct run {
  run(const program& p, bool written) : script(p), retired(p.size(), false) {
    for (int i = 0; i < 2; ++i) arrays.push_back(&world.array({array_size}, {tile_size}, written));
  }
  void submit_next() {
    std::vector<graph_world::use> uses;
    for (const touch& x : script[tasks.size()]) uses.push_back({arrays[x.array], x.mode, line(x.lo, x.hi)});
    tasks.push_back(&world.submitted(uses));
  }
  std::size_t number_of(const task_record* t) const {
    return static_cast<std::size_t>(std::find(tasks.begin(), tasks.end(), t) - tasks.begin());
  }
  // The task must still wait, as far as the elements (or the tiles) say.
  bool blocked(std::size_t t, bool rough) const {
    for (std::size_t before = 0; before < t; ++before)
      if (!retired[before] && conflict(script[before], script[t], rough)) return true;
    return false;
  }
  void complete(std::size_t t, std::exception_ptr error) {
    retired[t] = true;
    world.complete(*tasks[t], error);
  }

  const program& script;
  graph_world world;
  std::vector<array_core*> arrays;
  std::vector<task_record*> tasks;
  std::vector<bool> retired;
};

// Every order of completion; `submit_all_first` false also mixes submissions with completions.
void check_all_orders(const program& p, bool whole_tiles, bool submit_all_first) {
  every_choice([&](auto&& choose) {
    if (testing::Test::HasFatalFailure()) return;
    run r(p, true);
    while (submit_all_first && r.tasks.size() < p.size()) r.submit_next();
    for (std::size_t done = 0; done < p.size();) {
      for (std::size_t t = 0; t < r.tasks.size(); ++t) {
        if (r.retired[t]) continue;
        const bool ready = r.world.is_ready(*r.tasks[t]);
        ASSERT_FALSE(ready && r.blocked(t, false)) << "task " << t << " is ready too early" << text_of(p);
        ASSERT_TRUE(ready || r.blocked(t, !whole_tiles)) << "task " << t << " waits for nobody" << text_of(p);
      }
      const std::size_t may_submit = r.tasks.size() < p.size() ? 1 : 0;
      const std::size_t n = r.world.ready.size() + may_submit;
      ASSERT_NE(n, 0u) << "nothing can go on" << text_of(p);
      const std::size_t pick = choose(n);
      if (pick == r.world.ready.size()) {
        r.submit_next();
        continue;
      }
      r.complete(r.number_of(r.world.ready[pick]), nullptr);
      ++done;
    }
    for (const task_record* t : r.tasks) ASSERT_FALSE(t->error) << text_of(p);
  });
}

TEST(every_order, of_whole_tile_programs_makes_tasks_ready_exactly_when_their_conflicts_have_retired) {
  std::mt19937 random(11);
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) check_all_orders(random_program(random, 5, true), true, true);
}

TEST(every_order, of_sub_box_programs_makes_no_task_ready_too_early_nor_never) {
  std::mt19937 random(12);
  for (int i = 0; i < 600 && !HasFatalFailure(); ++i) check_all_orders(random_program(random, 5, false), false, true);
}

TEST(every_order, holds_when_submissions_and_completions_mix) {
  std::mt19937 random(13);
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    check_all_orders(random_program(random, 4, true), true, false);
    check_all_orders(random_program(random, 4, false), false, false);
  }
}

TEST(every_order, of_three_tasks_on_one_element_is_the_program_order) {
  const program p{{{0, access_mode::write, 0, 1}}, {{0, access_mode::update, 0, 1}}, {{0, access_mode::read, 0, 1}}};
  int orders = 0;
  every_choice([&](auto&& choose) {
    ++orders;
    run r(p, true);
    for (int i = 0; i < 3; ++i) r.submit_next();
    for (std::size_t t = 0; t < 3; ++t) {
      ASSERT_EQ(r.world.ready, std::vector<task_record*>{r.tasks[t]});
      r.complete(t, nullptr);
      ASSERT_EQ(choose(1), 0u);
    }
  });
  EXPECT_EQ(orders, 1);
}

// Failures must be the same whatever the order in which things happen.
void check_failures(const program& p, const std::vector<bool>& throws, bool written) {
  const std::vector<bool> expected = failures(p, throws, written);
  every_choice([&](auto&& choose) {
    if (testing::Test::HasFatalFailure()) return;
    run r(p, written);
    for (std::size_t done = 0; done < p.size();) {
      const std::size_t n = r.world.ready.size() + (r.tasks.size() < p.size() ? 1 : 0);
      ASSERT_NE(n, 0u) << "nothing can go on" << text_of(p);
      const std::size_t pick = choose(n);
      if (pick == r.world.ready.size()) {
        r.submit_next();
        continue;
      }
      const std::size_t t = r.number_of(r.world.ready[pick]);
      r.complete(t, throws[t] ? std::make_exception_ptr(std::runtime_error("thrown")) : nullptr);
      ++done;
    }
    for (std::size_t t = 0; t < p.size(); ++t)
      ASSERT_EQ(r.world.has_failed(*r.tasks[t]), expected[t])
          << "task " << t << (throws[t] ? " (throws)" : "") << text_of(p);
  });
}

TEST(every_order, carries_failures_exactly_along_the_data_that_was_read) {
  std::mt19937 random(14);
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    std::vector<bool> throws(4);
    throws[random() % 2] = true;
    check_failures(random_program(random, 4, i % 3 == 0), throws, true);
  }
}

TEST(every_order, fails_exactly_the_tasks_that_read_what_nobody_wrote) {
  std::mt19937 random(15);
  for (int i = 0; i < 200 && !HasFatalFailure(); ++i)
    check_failures(random_program(random, 4, i % 3 == 0), std::vector<bool>(4), false);
}

// Too long for every order: random ones, long enough that fragments are cut, merged and pruned.
TEST(random_order, of_long_programs_keeps_every_conflict_and_ends) {
  std::mt19937 random(16);
  for (int i = 0; i < 60; ++i) {
    const program p = random_program(random, 120, i % 4 == 0);
    run r(p, true);
    for (std::size_t done = 0; done < p.size();) {
      const bool may_submit = r.tasks.size() < p.size();
      ASSERT_TRUE(may_submit || !r.world.ready.empty()) << "seed 16, program " << i << " stands still";
      if (may_submit && (r.world.ready.empty() || random() % 5 < 3)) {
        r.submit_next();
        continue;
      }
      const std::size_t t = r.number_of(r.world.ready[random() % r.world.ready.size()]);
      ASSERT_FALSE(r.blocked(t, false)) << "seed 16, program " << i << ": task " << t << " is ready too early";
      r.complete(t, nullptr);
      ++done;
    }
    for (const task_record* t : r.tasks) ASSERT_FALSE(t->error);
  }
}

// Boxes of one tile, hundreds at a time: more than are compared with each other, or looked through one by one.
TEST(random_order, of_boxes_of_a_large_tile_keeps_every_conflict_and_ends) {
  constexpr index_t side = 24;
  constexpr std::size_t tasks = 500;
  std::mt19937 random(18);
  const auto below = [&](index_t n) { return static_cast<index_t>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 96; ++i) {
    const index_t longest = i % 3 == 0 ? 3 : i % 3 == 1 ? 10 : side;
    const int submits = i % 2 == 0 ? 100 : 70;  // per cent; 100: all before the first completes
    graph_world world;
    array_core& a = world.array({side, side}, {side, side});
    std::vector<graph_world::use> script;
    std::vector<task_record*> made;
    std::vector<bool> retired(tasks, false);
    std::map<const task_record*, std::size_t> number;
    const auto submit = [&] {
      // Reads of the whole tile now and then, as of steps that need all of the step before.
      // Every fourth program writes inside a border only, and reads beyond it.
      const bool whole = random() % 16 == 0, has_border = i % 4 == 3;
      const index_t y = whole ? 0 : below(side), x = whole ? 0 : below(side);
      const index_t h = whole ? side : std::min(side - y, 1 + below(longest)),
                    w = whole ? side : std::min(side - x, 1 + below(longest));
      const auto mode = whole ? access_mode::read : static_cast<access_mode>(random() % 3);
      box4 where = test::plane(y, y + h, x, x + w);
      if (has_border && is_write(mode))
        where = test::plane(std::clamp<index_t>(y, 2, side - 3), std::clamp<index_t>(y + h, 4, side - 2),
                            std::clamp<index_t>(x, 2, side - 3), std::clamp<index_t>(x + w, 4, side - 2));
      else if (has_border && random() % 2 == 0)  // strips, all across
        where = random() % 2 == 0 ? test::plane(y, y + h, 0, side) : test::plane(0, side, x, x + w);
      script.push_back({&a, mode, where});
      made.push_back(&world.submitted({script.back()}));
      number[made.back()] = made.size() - 1;
    };
    for (std::size_t done = 0; done < tasks;) {
      if (made.size() < tasks && (world.ready.empty() || static_cast<int>(random() % 100) < submits)) {
        submit();
        continue;
      }
      ASSERT_FALSE(world.ready.empty()) << "seed 18, program " << i << " stands still";
      task_record* const t = world.ready[random() % world.ready.size()];
      const std::size_t at = number[t];
      for (std::size_t before = 0; before < at; ++before)
        ASSERT_FALSE(!retired[before] && (is_write(script[before].mode) || is_write(script[at].mode)) &&
                     troupe::logic::overlap(script[before].where, script[at].where))
            << "seed 18, program " << i << ": task " << at << " is ready before " << before << " has ended";
      retired[at] = true;
      world.complete(*t);
      ++done;
    }
    for (const task_record* t : made) ASSERT_FALSE(t->error);
  }
}

// Tasks in chains, which come after each other for another array, read and write boxes of a tile: a reader that waits
// for an earlier one stands for it.
TEST(random_order, of_chains_that_use_boxes_of_one_tile_keeps_every_conflict_and_ends) {
  constexpr index_t side = 12;
  constexpr std::size_t tasks = 300, chains = 3;
  std::mt19937 random(19);
  const auto below = [&](index_t n) { return static_cast<index_t>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 100; ++i) {
    graph_world world;
    array_core& a = world.array({side, side}, {side, side});
    std::vector<array_core*> links;
    for (std::size_t c = 0; c < chains; ++c) links.push_back(&world.array({4}, {4}));
    std::vector<graph_world::use> script;
    std::vector<std::size_t> chain_of;
    std::vector<task_record*> made;
    std::vector<bool> retired(tasks, false);
    std::map<const task_record*, std::size_t> number;
    const auto submit = [&] {
      // Mostly reads of the same few boxes, of which those at the edges are never written in every second program.
      const std::size_t chain = random() % (chains + 1);  // the last: none
      const bool writes = random() % 6 == 0;
      const index_t y = below(4) * 3, x = below(4) * 3, h = writes ? 3 : 3 * (1 + below(4 - y / 3)),
                    w = writes ? 3 : 3 * (1 + below(4 - x / 3));
      box4 where = test::plane(y, y + h, x, x + w);
      if (writes && i % 2 == 1) where = test::plane(std::max<index_t>(y, 1), std::min(y + 3, side - 1), x, x + 3);
      script.push_back({&a, writes ? static_cast<access_mode>(1 + random() % 2) : access_mode::read, where});
      chain_of.push_back(chain);
      std::vector<graph_world::use> uses;
      if (chain != chains) uses.push_back({links[chain], access_mode::update, line(0, 4)});
      uses.push_back(script.back());
      made.push_back(&world.submitted(uses));
      number[made.back()] = made.size() - 1;
    };
    for (std::size_t done = 0; done < tasks;) {
      if (made.size() < tasks && (world.ready.empty() || random() % 100 < 85)) {
        submit();
        continue;
      }
      ASSERT_FALSE(world.ready.empty()) << "seed 19, program " << i << " stands still";
      task_record* const t = world.ready[random() % world.ready.size()];
      const std::size_t at = number[t];
      for (std::size_t before = 0; before < at; ++before)
        ASSERT_FALSE(!retired[before] && ((chain_of[before] == chain_of[at] && chain_of[at] != chains) ||
                                          ((is_write(script[before].mode) || is_write(script[at].mode)) &&
                                           troupe::logic::overlap(script[before].where, script[at].where))))
            << "seed 19, program " << i << ": task " << at << " is ready before " << before << " has ended";
      retired[at] = true;
      world.complete(*t);
      ++done;
    }
    for (const task_record* t : made) ASSERT_FALSE(t->error);
  }
}

TEST(random_order, of_long_programs_with_failures_fails_the_tasks_that_the_serial_run_fails) {
  std::mt19937 random(17);
  for (int i = 0; i < 60; ++i) {
    const program p = random_program(random, 80, i % 4 == 0);
    std::vector<bool> throws(p.size());
    for (std::size_t t = 0; t < throws.size(); ++t) throws[t] = random() % 20 == 0;
    const auto expected = failures(p, throws, i % 2 == 0);
    run r(p, i % 2 == 0);
    for (std::size_t done = 0; done < p.size();) {
      if (r.tasks.size() < p.size() && (r.world.ready.empty() || random() % 5 < 3)) {
        r.submit_next();
        continue;
      }
      ASSERT_FALSE(r.world.ready.empty());
      const std::size_t t = r.number_of(r.world.ready[random() % r.world.ready.size()]);
      r.complete(t, throws[t] ? std::make_exception_ptr(std::runtime_error("thrown")) : nullptr);
      ++done;
    }
    for (std::size_t t = 0; t < p.size(); ++t)
      ASSERT_EQ(r.world.has_failed(*r.tasks[t]), expected[t]) << "seed 17, program " << i << ", task " << t;
  }
}

}  // namespace
