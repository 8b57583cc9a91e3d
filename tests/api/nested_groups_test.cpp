// What this file is for: bodies that wait or need no slot, on several core groups and mixed: none stands still.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::gate;
using test::meeting;
using troupe::index_t;

const task_options slotless{.resources = {{"cpu", 0}}};

struct layout {
  int threads, groups, bodies;
};
void PrintTo(const layout& l, std::ostream* os) {
  *os << l.threads << " threads, " << l.groups << " groups, " << l.bodies << " bodies";
}

class nested_groups : public testing::TestWithParam<layout> {
 protected:
  options settings() const { return {.threads = GetParam().threads, .core_groups = GetParam().groups}; }
  // Bodies that have all begun before the first of them goes on, so that every slot is a waiting body's; and that
  // placement takes for longer than its window.
  template <class Body>
  void rounds(runtime& rt, const Body& body) {
    for (int round = 0; round < 20; ++round) {
      std::vector<future<int>> all;
      for (int i = 0; i < GetParam().bodies; ++i)
        all.push_back(rt.spawn([&, i] {
          const auto until = std::chrono::steady_clock::now() + 3ms;
          while (std::chrono::steady_clock::now() < until) {
          }
          return body(i);
        }));
      for (int i = 0; i < GetParam().bodies; ++i) {
        ASSERT_TRUE(all[static_cast<std::size_t>(i)].wait_for(test::patience)) << "round " << round;
        EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), i);
      }
    }
  }
};

TEST_P(nested_groups, bodies_that_wait_for_what_they_spawn_go_on) {
  runtime rt(settings());
  rounds(rt, [&](int i) { return rt.spawn([i] { return i; }).get(); });
}

TEST_P(nested_groups, bodies_that_wait_without_their_core_go_on) {
  runtime rt(settings());
  rounds(rt, [&](int i) {
    auto f = rt.spawn([i] { return i; });
    return yield_core([&] { return f.wait_for(test::patience) ? f.get() : -1; });
  });
}

TEST_P(nested_groups, bodies_that_read_what_tasks_of_theirs_write_go_on) {
  runtime rt(settings());
  rounds(rt, [&](int i) {
    auto a = rt.array<int>({8}, tiles(2));
    rt.for_each(
        grid(8), [i](view<int, 1> v) {
          for (auto k = v.lo(0); k < v.hi(0); ++k) v(k) = i;
        },
        write(a));
    return a.read()(7);
  });
}

TEST_P(nested_groups, bodies_of_bodies_that_wait_go_on) {
  runtime rt(settings());
  rounds(rt, [&](int i) {
    return rt.spawn([&rt, i] {
               auto first = rt.spawn([i] { return i; });
               auto second = rt.spawn([](int n) { return n; }, first);
               return second.get();
             })
        .get();
  });
}

INSTANTIATE_TEST_SUITE_P(layouts, nested_groups,
                         testing::Values(layout{2, 2, 4}, layout{2, 2, 2}, layout{4, 2, 4}, layout{4, 4, 9},
                                         layout{16, 4, 20}, layout{1, 1, 3}));

TEST(slotless_tasks, that_run_hold_up_no_other_task) {
  for (const int groups : {1, 2}) {
    runtime rt(options{.threads = 2, .core_groups = groups});
    gate go;
    test::opener at_end(go);
    std::vector<future<bool>> waiting;
    // Known to take longer than a window.
    const auto begin = [&](bool at_once) {
      waiting.push_back(rt.spawn(slotless, [&go, at_once] {
        const auto until = std::chrono::steady_clock::now() + 3ms;
        while (std::chrono::steady_clock::now() < until) {
        }
        return at_once || go.pass();
      }));
    };
    for (int i = 0; i < 4; ++i) begin(true);
    for (auto& w : waiting) ASSERT_TRUE(w.wait_for(test::patience));
    for (int i = 0; i < 5; ++i) begin(false);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(rt.spawn([] {}).wait_for(test::patience)) << groups;
    go.open();
    for (auto& w : waiting) EXPECT_TRUE(w.get());
  }
}

// The thread that waits does so with a limit, so it does not run the task itself.
TEST(slotless_tasks, start_what_comes_after_them) {
  for (const int groups : {1, 2})
    for (int round = 0; round < 30; ++round) {
      runtime rt(options{.threads = 2, .core_groups = groups});
      gate go;
      test::opener at_end(go);
      auto a = rt.filled<int>({1}, tiles(1), 0);
      auto first = rt.spawn(slotless, [&] { return go.pass() ? 1 : 0; });
      auto by_array = rt.spawn(slotless, [&](view<int, 1> v) { v(0) = go.pass() ? 1 : 0; }, update(a));
      auto after = rt.spawn([](int n) { return n + 1; }, first);
      auto reader = rt.spawn([](view<const int, 1> v) { return v(0) + 1; }, read(a));
      // The two workers sleep by now, or do so any moment.
      go.open();
      ASSERT_TRUE(after.wait_for(test::patience)) << "round " << round;
      ASSERT_TRUE(reader.wait_for(test::patience)) << "round " << round;
      EXPECT_EQ(after.get() + reader.get(), 4);
      EXPECT_EQ(a.read()(0), 1);
    }
}

TEST(slotless_tasks, and_bodies_that_wait_leave_no_slot_without_a_thread) {
  // A spare that is about to take a task without a slot is not counted as the one that takes a slot that becomes free.
  for (int round = 0; round < 200; ++round) {
    runtime rt(options{.threads = 1});
    gate go;
    test::opener at_end(go);
    auto one = rt.spawn(slotless, [] {});  // makes a spare, which is idle afterwards
    ASSERT_TRUE(one.wait_for(test::patience));
    auto parent = rt.spawn([&] {
      auto blocked = rt.spawn(slotless, [&] { return go.pass(); });
      auto opening = rt.spawn([&] { go.open(); });
      return blocked.wait_for(test::patience) && opening.wait_for(test::patience);
    });
    ASSERT_TRUE(parent.wait_for(test::patience)) << "round " << round;
    EXPECT_TRUE(parent.get()) << "round " << round;
  }
}

// Everything that moves slots about at once: the smallest group, several slots, none, a named quantity, bodies that
// wait.
TEST(slots, go_round_among_all_kinds_of_tasks) {
  for (const int threads : {1, 2, 4, 16})
    for (int seed = 0; seed < 8; ++seed) {
      runtime rt(
          options{.threads = threads, .core_groups = 1 + (threads > 1 ? seed % 2 : 0), .resources = {{"thing", 2}}});
      const int widest = threads / (1 + (threads > 1 ? seed % 2 : 0));
      auto sum = rt.filled<long>({4}, tiles(1), 0);
      std::uint32_t state = static_cast<std::uint32_t>(seed * 7919 + threads + 1);
      const auto draw = [&](std::uint32_t n) { state = state * 1664525u + 1013904223u;
        return (state >> 16) % n;
      };
      std::vector<future<int>> all;
      for (int i = 0; i < 120; ++i) {
        task_options o;
        switch (draw(5)) {
          case 0: o.resources = {{"cpu", 0}}; break;
          case 1: o.resources = {{"cpu", static_cast<double>(1 + draw(static_cast<std::uint32_t>(widest)))}}; break;
          case 2: o.resources = {{"thing", static_cast<double>(1 + draw(2))}}; break;
          default: break;
        }
        o.priority = static_cast<int>(draw(3));
        const auto tile = static_cast<index_t>(draw(4));
        switch (draw(4)) {
          case 0:
            all.push_back(rt.spawn(o, [&rt, i] { return rt.spawn([i] { return i; }).get(); }));
            break;
          case 1:
            all.push_back(rt.spawn(o, [i] { return yield_core([i] { return i; }); }));
            break;
          case 2:
            all.push_back(rt.spawn(
                o, [i](view<long, 1> v) { return ++v(v.lo(0)), i; }, update(sum.sub(box<1>{{tile}, {tile + 1}}))));
            break;
          default:
            all.push_back(rt.spawn(o, [&rt, i] {
              auto f = rt.spawn(slotless, [i] { return i; });
              return rt.spawn([](int n) { return n; }, f).get();
            }));
        }
      }
      for (int i = 0; i < 120; ++i) {
        ASSERT_TRUE(all[static_cast<std::size_t>(i)].wait_for(test::patience)) << threads << " threads, seed " << seed;
        EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), i);
      }
    }
}

}  // namespace
