// What this file is for: graphs that are recorded once and run again and again on new data.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::index_t;

constexpr auto smooth = kernel<in<std::int64_t, 1>, out<std::int64_t, 1>>("smooth").on(
    cpu, [](view<const std::int64_t, 1> from, view<std::int64_t, 1> to) {
      for (index_t i = to.lo(0); i < to.hi(0); ++i)
        to(i) = (from(i - 1) * 3 + from(i) * 5 + from(i + 1) * 7) % 1'000'003;
    });

std::vector<std::int64_t> contents(const array<std::int64_t, 1>& a) {
  std::vector<std::int64_t> v;
  const auto seen = a.read();
  for (index_t i = 0; i < a.size(0); ++i) v.push_back(seen(i));
  return v;
}

void fill(const array<std::int64_t, 1>& a, std::int64_t seed) {
  auto seen = a.write();
  for (index_t i = 0; i < a.size(0); ++i) seen(i) = (seed * 7919 + i * i) % 1000;
}

// A graph with every kind of call: a stencil there and back, an update of a part, a sum by reduction, futures.
template <class Submitter>
void program(Submitter& to, const array<std::int64_t, 1>& a, const array<std::int64_t, 1>& b,
             const array<std::int64_t, 1>& sum) {
  to.for_each(grid(a.size(0)), smooth, read(a, window(1).wrap()), write(b));
  to.for_each(grid(a.size(0)), smooth, read(b, window(1).clamp()), write(a));
  to.spawn([](view<std::int64_t, 1> v) { v(0) += 11; }, update(a.sub({{3}, {9}})));
  to.spawn([](view<std::int64_t, 1> s) { s(0) = 0; }, write(sum));
  to.for_each(
      grid(a.size(0)).chunks(4),
      [](view<const std::int64_t, 1> v, view<std::int64_t, 1> s) {
        for (index_t i = v.lo(0); i < v.hi(0); ++i) s(0) += v(i);
      },
      read(a, one_to_one{}), reduce(sum));
  auto six = to.spawn([] { return 6; });
  auto seven = to.spawn([](int x) { return x + 1; }, six);
  to.spawn([](int x, int y, view<std::int64_t, 1> s) { s(0) = s(0) * 100 + x * y; }, six, seven, update(sum));
}

struct arrays {
  array<std::int64_t, 1> a, b, sum;
  explicit arrays(runtime& rt)
      : a(rt.array<std::int64_t>({29}, tiles(5), "a")),
        b(rt.array<std::int64_t>({29}, tiles(8), "b")),
        sum(rt.array<std::int64_t>({1}, tiles(1), "sum")) {
    fill(a, 0);
  }
};

TEST(replay, keeps_an_array_that_was_made_and_dropped_while_recording) {
  runtime rt(options{.threads = 2});
  auto out = rt.filled<int>({4}, tiles(2), 0, "out");
  const graph g = rt.record([&](recorder& r) {
    const auto between = r.array<int>({4}, tiles(2), "between");
    r.for_each(
        grid(4).chunks(2), [](view<int, 1> v) { std::fill_n(&v(v.lo(0)), 2, 5); }, write(between));
    r.for_each(
        grid(4).chunks(2), [](view<const int, 1> from, view<int, 1> to) { to(to.lo(0)) += from(from.lo(0)); },
        read(between), update(out));
  });
  for (int i = 0; i < 3; ++i) rt.run(g).get();
  const auto seen = out.read();
  EXPECT_EQ(seen(0), 15);
  EXPECT_EQ(seen(2), 15);
}

TEST(replay, does_what_spawning_does) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  arrays spawned(rt), replayed(rt);
  const graph g = rt.record([&](recorder& recorded) { program(recorded, replayed.a, replayed.b, replayed.sum); });
  EXPECT_GE(g.size(), 15u);
  EXPECT_GT(g.edges(), 0u);
  for (int run = 0; run < 20; ++run) {
    fill(spawned.a, run);
    fill(replayed.a, run);
    program(rt, spawned.a, spawned.b, spawned.sum);
    rt.run(g).get();
    ASSERT_EQ(contents(replayed.a), contents(spawned.a)) << "run " << run;
    ASSERT_EQ(contents(replayed.b), contents(spawned.b)) << "run " << run;
    ASSERT_EQ(contents(replayed.sum), contents(spawned.sum)) << "run " << run;
  }
}

TEST(replay, recording_runs_nothing) {
  runtime rt(options{.threads = 1});
  std::atomic<int> ran{0};
  const graph g = rt.record([&](recorder& recorded) {
    for (int i = 0; i < 5; ++i) recorded.spawn([&] { ++ran; });
  });
  rt.wait_all();
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(g.valid());
  EXPECT_EQ(g.size(), 5u);
  EXPECT_EQ(g.edges(), 0u);
  rt.run(g).get();
  rt.run(g).get();
  EXPECT_EQ(ran, 10);
}

TEST(replay, of_runs_that_follow_each_other_without_waiting_is_ordered) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  auto a = rt.filled<std::int64_t>({1}, tiles(1), 1, "a");
  const graph g = rt.record([&](recorder& recorded) {
    for (int i = 0; i < 4; ++i)
      recorded.spawn([i](view<std::int64_t, 1> v) { v(0) = (v(0) * 31 + i) % 1'000'003; }, update(a));
  });
  EXPECT_EQ(g.size(), 4u);
  EXPECT_EQ(g.edges(), 3u);
  std::int64_t expected = 1;
  for (int run = 0; run < 300; ++run) {
    rt.run(g);
    for (int i = 0; i < 4; ++i) expected = (expected * 31 + i) % 1'000'003;
  }
  EXPECT_EQ(a.read()(0), expected);
}

TEST(replay, waits_for_tasks_before_it_and_holds_back_those_after_it) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto a = rt.filled<std::int64_t>({4}, tiles(2), 1, "a");
  const graph g = rt.record([&](recorder& recorded) {
    recorded.spawn([](view<std::int64_t, 1> v) { v(0) *= 10; }, update(a.sub({{0}, {2}})));
  });
  rt.spawn([&](view<std::int64_t, 1> v) { v(0) += go.pass() ? 1 : 100; }, update(a));
  auto ran = rt.run(g);
  auto after = rt.spawn([](view<const std::int64_t, 1> v) { return v(0) + 1; }, read(a));
  EXPECT_FALSE(ran.is_ready());
  EXPECT_FALSE(after.is_ready());
  go.open();
  EXPECT_EQ(after.get(), 21);
  EXPECT_TRUE(ran.wait_for(test::patience));
}

TEST(replay, of_two_graphs_on_one_array_takes_turns) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<std::int64_t>({1}, tiles(1), 1, "a");
  const graph twice = rt.record([&](recorder& t) { t.spawn([](view<std::int64_t, 1> v) { v(0) *= 2; }, update(a)); });
  const graph plus = rt.record([&](recorder& t) { t.spawn([](view<std::int64_t, 1> v) { v(0) += 3; }, update(a)); });
  std::int64_t expected = 1;
  for (int i = 0; i < 40; ++i) {
    rt.run(twice);
    rt.run(plus);
    expected = expected * 2 + 3;
  }
  EXPECT_EQ(a.read()(0), expected);
}

TEST(replay, runs_independent_tasks_at_the_same_time) {
  runtime rt(options{.threads = 2});
  test::meeting* round = nullptr;
  std::atomic<int> met{0};
  const graph g = rt.record([&](recorder& recorded) {
    for (int i = 0; i < 2; ++i) recorded.spawn([&] { met += round->arrive_and_wait(); });
  });
  for (int run = 1; run <= 5; ++run) {
    test::meeting both(2);
    round = &both;
    rt.run(g).get();
    ASSERT_EQ(met, 2 * run);
  }
}

// A group has two of the four threads that the bodies need.
TEST(replay, uses_all_core_groups_in_its_scope) {
  for (const bool after_one : {false, true}) {
    runtime rt(options{.threads = 4, .core_groups = 2});
    test::meeting* all = nullptr;
    std::mutex lock;
    std::map<std::string, int> ran;
    std::atomic<int> met{0};
    auto start = rt.array<int>({1}, "start");
    const graph g = rt.record([&](recorder& recorded) {
      if (after_one) recorded.spawn([](view<int, 1> v) { v(0) = 1; }, write(start));
      for (int i = 0; i < 4; ++i) {
        const auto body = [&](task_context& c) {
          met += all->arrive_and_wait();
          const std::lock_guard hold(lock);
          ++ran[c.executor()];
        };
        if (after_one)
          recorded.spawn([body](task_context& c, view<const int, 1>) { body(c); }, read(start));
        else
          recorded.spawn(body);
      }
    });
    for (int run = 1; run <= 10; ++run) {
      test::meeting four(4);
      all = &four;
      rt.run(g).get();
      ASSERT_EQ(met, 4 * run);
    }
    EXPECT_EQ(ran, (std::map<std::string, int>{{"cpu:0", 20}, {"cpu:1", 20}}));
    // A run in the scope of one group has two threads.
    for (const std::string only : {"cpu:0", "cpu:1"}) {
      ran.clear();
      test::meeting none(1);
      all = &none;
      rt.run(task_options{.where = scope::executor(only)}, g).get();
      EXPECT_EQ(ran, (std::map<std::string, int>{{only, 4}}));
    }
  }
}

TEST(replay, on_several_core_groups_tells_who_failed_and_ends) {
  runtime rt(options{.threads = 4, .core_groups = 4});
  for (int failing = 0; failing < 8; ++failing) {
    test::meeting four(4);
    std::atomic<int> begun{0};
    const graph g = rt.record([&](recorder& recorded) {
      for (int i = 0; i < 8; ++i)
        recorded.spawn(task_options{.name = "call " + std::to_string(i)}, [&, i] {
          // On four threads, of a group each.
          if (begun++ < 4 && !four.arrive_and_wait()) throw std::runtime_error("nobody came");
          if (i == failing) throw std::runtime_error("as asked");
        });
    });
    const auto e = error_of([&] { rt.run(g).get(); });
    ASSERT_TRUE(e && e->from_task);
    EXPECT_EQ(e->root, "call " + std::to_string(failing));
    EXPECT_TRUE(e->executor.starts_with("cpu:")) << e->executor;
    EXPECT_EQ(begun, 8);
  }
}

TEST(replay, tells_its_bodies_of_a_stop_and_of_a_deadline) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  for (const bool by_deadline : {false, true}) {
    std::atomic<int> told{0};
    test::gate begun;
    const graph g = rt.record([&](recorder& recorded) {
      for (int i = 0; i < 4; ++i)
        recorded.spawn([&](task_context& c) {
          begun.open();
          const auto end = std::chrono::steady_clock::now() + test::patience;
          while (!c.stop_requested() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
          told += c.stop_requested() && this_task::stop_requested();
        });
    });
    std::stop_source stop;
    task_options o{.stop = stop.get_token()};
    if (by_deadline) o.deadline = std::chrono::milliseconds(200);
    const auto run = rt.run(o, g);
    ASSERT_TRUE(begun.pass());
    if (!by_deadline) stop.request_stop();
    run.wait();
    EXPECT_EQ(told, 4) << (by_deadline ? "deadline" : "token");
  }
}

// The body is no task in the order of the program; its run is.
TEST(replay, of_a_body_that_waits_for_what_comes_after_its_run_is_told_so) {
  for (const int groups : {1, 2}) {
    runtime rt(options{.threads = 2, .core_groups = groups});
    auto x = rt.filled<std::int64_t>({4}, tiles(4), 1, "x");
    const auto add = [](view<std::int64_t, 1> v) { ++v(0); };
    std::optional<errc> seen;
    std::atomic<bool> again{false};
    // The run that a body asks for runs that body once more.
    const auto notes = [&](auto wait) {
      return [&seen, &again, wait] {
        if (!again.exchange(true)) seen = code_of(wait);
      };
    };
    graph own;
    future<void> run;
    std::optional<test::gate> has_future;
    const graph after = rt.record([&](recorder& r) { r.spawn(add, update(x)); });
    const std::function<void()> waits[] = {
        notes([&] { rt.spawn(add, update(x)).get(); }),
        notes([&] { rt.run(after).get(); }),
        notes([&] { rt.run(own).get(); }),
        notes([&] {
          ASSERT_TRUE(has_future->pass());
          run.wait();
        }),
    };
    for (const auto& wait : waits) {
      seen.reset();
      again = false;
      has_future.emplace();
      own = rt.record([&](recorder& r) { r.spawn([&wait](view<std::int64_t, 1>) { wait(); }, update(x)); });
      run = rt.run(own);
      has_future->open();
      ASSERT_TRUE(run.wait_for(test::patience)) << &wait - waits;
      EXPECT_EQ(seen, errc::would_deadlock) << &wait - waits;
      rt.wait_all();
    }
    // Tasks that do not come after it may be waited for.
    int five = 0;
    const graph fine = rt.record([&](recorder& r) { r.spawn([&] { five = rt.spawn([] { return 5; }).get(); }); });
    rt.run(fine).get();
    EXPECT_EQ(five, 5);
  }
}

TEST(replay, refuses_to_wait_for_a_call_of_another_recording) {
  runtime rt(options{.threads = 1});
  future<int> of_first;
  const graph first = rt.record([&](recorder& r) { of_first = r.spawn([] { return 1; }); });
  EXPECT_EQ(code_of([&] { rt.record([&](recorder& r) { r.spawn([](int) {}, of_first); }); }), errc::bad_argument);
  EXPECT_NO_THROW(rt.run(first).get());
}

TEST(replay, of_a_failing_task_fails_that_run_and_what_depends_on_it_only) {
  runtime rt(options{.threads = 2});
  std::atomic<bool> fail{false};
  std::atomic<int> unrelated{0};
  auto a = rt.filled<std::int64_t>({2}, tiles(2), 1, "a");
  auto b = rt.filled<std::int64_t>({2}, tiles(2), 1, "b");
  const graph g = rt.record([&](recorder& recorded) {
    recorded.spawn(
        task_options{.name = "sometimes"},
        [&](view<std::int64_t, 1> v) {
          v(0) = v(1) = 5;
          if (fail) throw std::runtime_error("this time");
        },
        write(a));
    recorded.spawn([](view<const std::int64_t, 1> v, view<std::int64_t, 1> to) { to(0) = to(1) = v(0) + 1; }, read(a),
                   write(b));
    recorded.spawn([&] { ++unrelated; });
  });
  EXPECT_NO_THROW(rt.run(g).get());
  EXPECT_EQ(b.read()(0), 6);

  fail = true;
  const auto e = error_of([&] { rt.run(g).get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->root, "sometimes");
  EXPECT_TRUE(e->says("this time")) << e->text;
  EXPECT_TRUE(code_of([&] { b.read(); }));
  EXPECT_EQ(unrelated, 2);

  fail = false;
  EXPECT_NO_THROW(rt.run(g).get());
  EXPECT_EQ(b.read()(1), 6);
  EXPECT_EQ(unrelated, 3);
}

// Calls that all of the next step waits for meet before they release it.
TEST(replay, of_steps_that_need_all_of_the_step_before_runs_them_in_order_and_leaves_out_what_a_failure_reaches) {
  constexpr std::size_t width = 12, steps = 10, beside = 3;
  runtime rt(options{.threads = 4, .core_groups = 2});
  std::vector<array<std::int64_t, 1>> rows[2];
  for (auto& row : rows)
    for (std::size_t i = 0; i < width; ++i) row.push_back(rt.filled<std::int64_t>({1}, tiles(1), 0));
  std::atomic<int> ran{0}, unrelated{0}, failing_step{-1};
  const graph g = rt.record([&](recorder& recorded) {
    for (std::size_t step = 0; step < steps; ++step)
      for (std::size_t i = 0; i < width; ++i) {
        const auto& to = rows[step % 2][i];
        if (step == 0) {
          recorded.spawn([&](view<std::int64_t, 1> v) { ++ran, v(0) = 1; }, write(to));
          continue;
        }
        recorded.spawn(
            [&, step, i](views<const std::int64_t, 1> before, view<std::int64_t, 1> v) {
              ++ran;
              v(0) = static_cast<std::int64_t>(i % 2);
              for (const auto& b : before) v(0) += b(0);
              v(0) %= 1'000'003;
              if (i == 5 && static_cast<int>(step) == failing_step) throw std::runtime_error("as asked");
            },
            read_all(rows[(step + 1) % 2]), write(to));
      }
    for (std::size_t i = 0; i < beside; ++i) recorded.spawn([&] { ++unrelated; });
  });
  EXPECT_EQ(g.size(), width * steps + beside);
  EXPECT_EQ(g.edges(), width * width * (steps - 1));
  std::vector<std::int64_t> expected(width, 1);
  for (std::size_t step = 1; step < steps; ++step) {
    std::int64_t sum = 0;
    for (const std::int64_t e : expected) sum += e;
    for (std::size_t i = 0; i < width; ++i) expected[i] = (sum + static_cast<std::int64_t>(i % 2)) % 1'000'003;
  }
  for (int run = 0; run < 30; ++run) {
    const int failing = run % 3 == 1 ? run % static_cast<int>(steps) : -1;
    failing_step = failing;
    ran = 0;
    const auto e = error_of([&] { rt.run(g).get(); });
    if (failing < 1) {
      ASSERT_FALSE(e) << "run " << run;
      ASSERT_EQ(ran, width * steps);
      for (std::size_t i = 0; i < width; ++i) ASSERT_EQ(rows[(steps - 1) % 2][i].read()(0), expected[i]) << run;
    } else {
      ASSERT_TRUE(e && e->says("as asked")) << "run " << run;
      ASSERT_EQ(ran, width * (static_cast<std::size_t>(failing) + 1)) << "run " << run;
    }
    ASSERT_EQ(unrelated, static_cast<int>(beside) * (run + 1));
  }
}

TEST(replay, passes_results_of_recorded_futures_anew_in_every_run) {
  runtime rt(options{.threads = 2});
  std::atomic<int> input{0};
  std::vector<std::string> seen;
  const graph g = rt.record([&](recorder& recorded) {
    auto number = recorded.spawn([&] { return input.load(); });
    auto text = recorded.spawn([](int x) { return std::string(static_cast<std::size_t>(x), 'x'); }, number);
    EXPECT_FALSE(number.is_ready());
    recorded.spawn([&](const std::string& s) { seen.push_back(s); }, text);
  });
  for (input = 1; input < 40; ++input) {
    rt.run(g).get();
    ASSERT_EQ(seen.back(), std::string(static_cast<std::size_t>(input.load()), 'x'));
  }
  EXPECT_EQ(seen.size(), 39u);
}

TEST(replay, keeps_its_arrays_alive_and_lets_them_go_with_the_last_handle) {
  runtime rt(options{.threads = 1});
  {
    graph g;
    {
      auto a = rt.filled<std::int64_t>({100}, tiles(10), 0, "a");
      g = rt.record([&](recorder& recorded) { recorded.spawn([](view<std::int64_t, 1> v) { ++v(0); }, update(a)); });
    }
    const graph copy = g;
    g = {};
    rt.run(copy).get();
    rt.wait_all();
    EXPECT_EQ(rt.report().arrays, 1u);
  }
  EXPECT_EQ(rt.report().arrays, 0u);
  EXPECT_EQ(rt.report().bytes_allocated, 0u);
}

TEST(replay, of_an_empty_graph_is_done_at_once_and_of_no_graph_is_an_error) {
  runtime rt(options{.threads = 1});
  const graph empty = rt.record([](recorder&) {});
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_NO_THROW(rt.run(empty).get());
  EXPECT_EQ(code_of([&] { rt.run(graph()); }), errc::bad_argument);
}

TEST(replay, of_an_array_that_was_used_before_the_recording_leaves_its_order_intact) {
  for (int earlier = 0; earlier < 4; ++earlier) {
    runtime rt(options{.threads = 1});
    auto a = rt.array<std::int64_t>({4}, tiles(4), "a");
    fill(a, 1);
    for (int i = 0; i < earlier; ++i) rt.spawn([](view<std::int64_t, 1> v) { ++v(0); }, update(a)).get();
    const graph g = rt.record([&](recorder& recorded) {
      for (int i = 0; i < 5; ++i) recorded.spawn([](view<std::int64_t, 1> v) { ++v(1); }, update(a));
    });
    ASSERT_TRUE(a.try_read_for(test::patience)) << "a reader waits for a recorded task, which never runs";
    rt.spawn([](view<std::int64_t, 1> v) { v(1) = 1; }, update(a));
    rt.run(g);
    const auto seen = a.try_read_for(test::patience);
    ASSERT_TRUE(seen);
    EXPECT_EQ((*seen)(1), 6);
  }
}

TEST(replay, of_reductions_adds_to_what_is_there_each_time) {
  runtime rt(options{.threads = 4});
  auto sum = rt.filled<int>({3}, tiles(2), 0, "sum");
  auto copy = rt.array<int>({3}, tiles(3), "copy");
  const graph g = rt.record([&](recorder& recorded) {
    recorded.for_each(
        grid(20).chunks(1), [](view<int, 1> v) { ++v(2); }, reduce(sum));
    recorded.spawn(
        [](view<const int, 1> from, view<int, 1> to) {
          for (index_t i = 0; i < 3; ++i) to(i) = from(i);
        },
        read(sum), write(copy));
    recorded.for_each(
        grid(10).chunks(1), [](view<int, 1> v) { v(0) += 2; }, reduce(sum));
  });
  for (int run = 1; run <= 50; ++run) {
    rt.run(g);
    ASSERT_EQ(copy.read()(2), 20 * run);
    ASSERT_EQ(copy.read()(0), 20 * (run - 1));
    ASSERT_EQ(sum.read()(0), 20 * run);
  }
}

// Where what is reduced into is in error, or one of those that reduce fails, nothing is combined.
TEST(replay, of_a_reduction_does_not_add_what_a_failed_run_has_left) {
  for (const int tile : {10, 3})
    for (const bool fails_inside : {false, true}) {
      runtime rt(options{.threads = 2});
      auto a = rt.filled<int>({10}, tiles(tile), 0);
      std::atomic<int> failures{0};
      const auto g = rt.record([&](recorder& r) {
        const auto one = [&](view<int, 1> v) {
          v(5) += 100;
          if (failures-- > 0) throw std::runtime_error("on purpose");
        };
        if (fails_inside)
          r.spawn(one, reduce(a));
        else
          r.spawn(one, update(a));
        for (int i = 0; i < 3; ++i) r.spawn([](view<int, 1> v) { v(5) += 1; }, reduce(a));
      });
      for (const int failing : {0, 1, 0, 1, 1, 0}) {
        rt.spawn(
            [](view<int, 1> v) {
              for (index_t i = 0; i < 10; ++i) v(i) = 0;
            },
            write(a));
        failures = failing;
        EXPECT_EQ(code_of([&] { rt.run(g).get(); }).has_value(), failing != 0);
        if (failing == 0) {
          EXPECT_EQ(a.read()(5), 103) << tile << ", inside " << fails_inside;
        }
      }
    }
}

TEST(replay, of_a_reduction_that_is_open_at_its_end_goes_on_with_later_ones) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto sum = rt.filled<std::int64_t>({3}, tiles(2), 100, "sum");
  const graph g = rt.record([&](recorder& recorded) {
    for (int i = 1; i <= 4; ++i) recorded.spawn([i](view<std::int64_t, 1> v) { v(2) += i; }, reduce(sum));
  });
  for (int run = 0; run < 10; ++run) rt.run(g);
  rt.spawn([](view<std::int64_t, 1> v) { v(2) += 7; }, reduce(sum));
  rt.run(g);
  const auto seen = sum.read();
  EXPECT_EQ(seen(0), 100);
  EXPECT_EQ(seen(2), 100 + 11 * 10 + 7);
}

TEST(replay, keeps_to_the_scopes_of_its_calls_and_of_the_run) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto where = rt.array<char>({2}, "where");
  const auto note = [](task_context& c, view<char, 1> v) { v(0) = v(1) = c.executor()[4]; };
  const graph second =
      rt.record([&](recorder& r) { r.spawn(task_options{.where = scope::executor("cpu:1")}, note, write(where)); });
  for (int i = 0; i < 10; ++i) {
    rt.run(second).get();
    ASSERT_EQ(where.read()(0), '1');
  }
  EXPECT_EQ(code_of([&] { rt.run(task_options{.where = scope::executor("cpu:0")}, second); }), errc::no_executor);
  EXPECT_EQ(code_of([&] {
              rt.record([&](recorder& r) {
                r.spawn(task_options{.where = scope::executor("cpu:0")}, note, write(where));
                r.spawn(task_options{.where = scope::executor("cpu:1")}, note, write(where));
              });
            }),
            errc::no_executor);
  EXPECT_NO_THROW(rt.run(task_options{.where = scope::executor("cpu:1")}, second).get());
}

TEST(replay, refuses_what_it_cannot_run_again_yet) {
  runtime rt(options{.threads = 1, .resources = {{"io", 1}}});
  const auto refused = [&](const std::function<void(recorder&)>& f) {
    return code_of([&] { rt.record(f); }) == errc::not_supported;
  };
  std::stop_source stop;
  EXPECT_TRUE(refused([&](recorder& recorded) { recorded.spawn(task_options{.resources = {{"io", 1}}}, [] {}); }));
  EXPECT_TRUE(refused([&](recorder& recorded) { recorded.spawn(task_options{.stop = stop.get_token()}, [] {}); }));
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
}

// Nodes that a thread has taken of a run are not its own while its body waits.
TEST(replay, begins_all_that_is_ready_while_bodies_wait) {
  constexpr int count = 10;
  for (const int threads : {1, 2, 4}) {
    runtime rt(options{.threads = threads});
    test::meeting all_there(count);
    std::atomic<int> met{0};
    const graph g = rt.record([&](recorder& recorded) {
      for (int i = 0; i < count; ++i)
        recorded.spawn([&] { met += yield_core([&] { return all_there.arrive_and_wait(); }) ? 1 : 0; });
    });
    auto run = rt.run(g);
    ASSERT_TRUE(run.wait_for(2 * test::patience)) << threads;
    run.get();
    EXPECT_EQ(met, count) << threads;
  }
}

// A thread that runs a graph leaves its slot while the bodies of others are all that is missing.
TEST(replay, ends_when_bodies_that_waited_need_the_slot_of_who_runs_it) {
  for (const int groups : {1, 2})
    for (int round = 0; round < 50; ++round) {
      runtime rt(options{.threads = 2, .core_groups = groups});
      std::atomic<int> sum{0};
      const graph g = rt.record([&](recorder& recorded) {
        for (int i = 0; i < 12; ++i)
          recorded.spawn([&rt, &sum, i] {
            auto first = rt.spawn([i] { return i; });
            sum += rt.spawn([](int n) { return n; }, first).get();
          });
      });
      auto one = rt.run(g);
      auto beside = rt.spawn([&] { return rt.spawn([] { return 1; }).get(); });
      ASSERT_TRUE(one.wait_for(test::patience)) << groups << " groups, round " << round;
      ASSERT_TRUE(beside.wait_for(test::patience));
      EXPECT_EQ(sum, 66);
    }
}

TEST(replay, of_a_recording_that_throws_leaves_nothing_behind) {
  runtime rt(options{.threads = 1});
  std::atomic<int> ran{0};
  EXPECT_THROW(rt.record([&](recorder& recorded) {
    recorded.spawn([&] { ++ran; });
    throw std::out_of_range("mine");
  }),
               std::out_of_range);
  rt.wait_all();
  EXPECT_EQ(ran, 0);
}

// The thread outside held the graph's lock while it waited for room, and the body that was to end first wanted it.
TEST(replay, at_the_bound_of_tasks_in_flight_does_not_hold_up_a_body_that_runs_the_same_graph) {
  runtime rt(options{.threads = 2, .tasks_in_flight_max = 1});
  auto count = rt.filled<int>({1}, tiles(1), 0);
  const auto g = rt.record([&](recorder& r) { r.spawn([](view<int, 1> v) { v(0) += 1; }, update(count)); });
  for (int round = 0; round < 20; ++round) {
    test::gate begun;
    rt.spawn([&] {
      begun.open();
      rt.run(g);
    });
    ASSERT_TRUE(begun.pass());
    rt.run(g);
    rt.wait_all();
  }
  EXPECT_EQ(count.read()(0), 40);
}

}  // namespace
