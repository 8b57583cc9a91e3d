// What this file is for: successors that are released where a task has ended, as a program sees it: nothing is held up,
// failures spread, the end of the runtime ends all, and what is told about tasks is true.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

constexpr auto patience = 20s;  // less than that of bodies at a gate

// So many threads, and a device that none of the tasks can use, or none; with `may_have_nodes` nodes might join.
struct setting {
  int threads;
  const char* device;
  bool may_have_nodes = false;
};
std::ostream& operator<<(std::ostream& out, const setting& s) {
  return out << s.threads << " threads, device " << s.device << (s.may_have_nodes ? ", one of a cluster" : "");
}

options on_cores(const setting& s) {
  options o;
  o.threads = s.threads;
  o.devices = {{s.device}};
  o.cost_cache = "none";
  if (s.may_have_nodes) {
    o.cluster.cluster_name = "early";
    o.cluster.node_name = "owner";
    o.cluster.insecure_loopback = true;
    o.cluster.listen = {"127.0.0.1:0"};
  }
  return o;
}

// Bodies that take a gate to pass, or none. One type, so that all calls have one predicted time.
struct adds {
  test::gate* waits = nullptr;
  test::gate* begun = nullptr;
  void operator()(view<int, 1> v) const {
    if (begun) begun->open();
    if (waits) {
      EXPECT_TRUE(waits->pass());
    }
    v(0) += 1;
  }
};
struct adds_to_two {
  test::gate* waits = nullptr;
  test::gate* begun = nullptr;
  void operator()(view<int, 1> a, view<int, 1> b) const {
    if (begun) begun->open();
    if (waits) {
      EXPECT_TRUE(waits->pass());
    }
    a(0) += 1;
    b(0) += 1;
  }
};

// Has the kernels' times known: only such tasks are released early.
void warm_up(runtime& rt) {
  auto a = rt.filled<int>({4}, tiles(4), 0), b = rt.filled<int>({4}, tiles(4), 0);
  for (int i = 0; i < 64; ++i) {
    rt.spawn(adds{}, update(a));
    rt.spawn(adds_to_two{}, update(a), update(b));
  }
  rt.wait_all();
}

class early_release : public testing::TestWithParam<setting> {};

TEST_P(early_release, gives_memory_back_that_an_ended_task_used_while_the_task_after_it_waits) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  std::vector<int> memory(4, 0);
  auto y = rt.filled<int>({4}, tiles(4), 0);
  std::optional x(rt.borrow(std::span<int>(memory), {4}, tiles(4)));
  test::gate begun, first, second;
  auto ended = rt.spawn(adds_to_two{&first, &begun}, update(*x), update(y));
  auto after = rt.spawn(adds{&second}, update(y));
  ASSERT_TRUE(begun.pass());  // else this thread would run it
  (void)rt.report();          // both are in order now
  first.open();
  ended.get();
  auto given_back = std::async(std::launch::async, [&] { x.reset(); });
  const bool in_time = given_back.wait_for(patience) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "the end of the first task is kept behind the second";
  if (in_time) {
    EXPECT_EQ(memory[0], 1);
  }
  second.open();
  after.get();
}

TEST_P(early_release, lets_threads_at_the_bound_go_on_while_the_task_after_an_ended_one_waits) {
  options o = on_cores(GetParam());
  o.tasks_in_flight_max = 2;
  runtime rt(o);
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first, second;
  auto ended = rt.spawn(adds_to_two{&first, &begun}, update(x), update(y));
  auto after = rt.spawn(adds{&second}, update(y));
  ASSERT_TRUE(begun.pass());
  (void)rt.report();
  first.open();
  ended.get();
  auto spawned = std::async(std::launch::async, [&] { return rt.spawn(adds{}, update(x)); });
  EXPECT_EQ(spawned.wait_for(patience), std::future_status::ready) << "one of two has ended: there is room";
  second.open();
  after.get();
  spawned.get().get();
  EXPECT_EQ(x.read()(0), 2);
}

TEST_P(early_release, does_not_keep_the_host_from_what_has_been_written_while_the_task_after_it_waits) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first, second;
  auto before = rt.spawn(adds_to_two{&first, &begun}, update(x), update(y));
  auto after = rt.spawn(adds{&second}, update(y));
  auto seen = std::async(std::launch::async, [&] { return x.read()(0); });
  ASSERT_TRUE(begun.pass());
  first.open();
  EXPECT_EQ(seen.wait_for(patience), std::future_status::ready);
  second.open();
  EXPECT_EQ(seen.get(), 1);
  after.get();
}

TEST_P(early_release, gets_through_a_chain_without_a_turn_for_each_task) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  constexpr int length = 1'000;
  auto x = rt.filled<int>({4}, tiles(4), 0);
  test::gate begun, first;
  rt.spawn(adds{&first, &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  for (int i = 0; i < length; ++i) rt.spawn(adds{}, update(x));
  const auto before = rt.report().scheduling_passes;  // all are in order now
  first.open();
  rt.wait_all();
  EXPECT_LT(rt.report().scheduling_passes - before, length / 4);
  EXPECT_EQ(x.read()(0), length + 1);
}

TEST_P(early_release, runs_each_of_many_tasks_that_one_makes_ready) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  std::atomic<int> wrong{0}, seen{0};
  for (int round = 0; round < 50; ++round) {
    test::gate first;
    auto before = rt.spawn(adds_to_two{&first}, update(x), update(y));
    for (int i = 0; i < 100; ++i)
      rt.spawn(
          [&, round](view<const int, 1> v) {
            if (v(0) != round + 1) ++wrong;
            ++seen;
          },
          read(x));
    (void)rt.report();
    first.open();
    before.get();
  }
  rt.wait_all();
  EXPECT_EQ(seen, 50 * 100);
  EXPECT_EQ(wrong, 0);
}

TEST_P(early_release, fails_what_comes_after_a_failed_task_and_an_early_one) {
  runtime rt(on_cores(GetParam()));
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  const auto adds_or_throws = [](view<int, 1> v, bool throws) {
    v(0) += 1;
    if (throws) throw std::runtime_error("as asked");
  };
  const auto sums = [](view<const int, 1> a, view<const int, 1> b) { return a(0) + b(0); };
  int x_is = 0, y_is = 0;
  for (int round = 0; round < 400; ++round) {
    const bool fails = round % 3 == 2;
    auto of_x = rt.spawn(adds_or_throws, update(x), false);
    auto of_y = rt.spawn(adds_or_throws, update(y), fails);
    auto sum = rt.spawn(sums, read(x), read(y));
    ++x_is;
    if (!fails) {
      ++y_is;
      EXPECT_EQ(sum.get(), x_is + y_is);
      continue;
    }
    try {
      sum.get();
      ADD_FAILURE() << "it has read what a failed task was to write";
    } catch (const task_failed& e) {
      EXPECT_EQ(e.code(), errc::dependency_failed);
    }
    of_x.get();
    rt.spawn([y_is](view<int, 1> v) { v(0) = y_is; }, write(y));
  }
  rt.wait_all();
}

TEST_P(early_release, ends_all_tasks_of_a_chain_when_the_runtime_ends_in_the_middle) {
  for (int round = 0; round < 20; ++round) {
    std::vector<future<void>> all;
    {
      runtime rt(on_cores(GetParam()));
      warm_up(rt);
      auto x = rt.filled<int>({4}, tiles(4), 0);
      for (int i = 0; i < 2000; ++i) all.push_back(rt.spawn(adds{}, update(x)));
      all[static_cast<std::size_t>(round * 40)].get();
      (void)rt.shutdown(0ms);
    }
    bool over = false;
    for (future<void>& f : all) {
      try {
        f.get();
        EXPECT_FALSE(over) << "a task has run after one that was given up";
      } catch (const error& e) {
        over = true;
        EXPECT_EQ(e.code(), errc::runtime_stopped);
      }
    }
  }
}

TEST_P(early_release, tells_where_a_task_is_when_it_has_been_placed_and_not_before) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  test::gate first;
  rt.spawn(adds_to_two{&first}, update(x), update(y));
  auto after = rt.spawn(adds{}, update(y));
  (void)rt.report();
  EXPECT_EQ(rt.explain(after).executor, "") << "it waits for the first";
  first.open();
  after.get();
  EXPECT_NE(rt.explain(after).executor, "");
}

TEST_P(early_release, begins_with_the_highest_priority_of_what_one_task_makes_ready) {
  options o = on_cores(GetParam());
  o.threads = 1;
  runtime rt(o);
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0);
  std::vector<int> order;
  const auto notes = [&order](view<const int, 1>, int what) { order.push_back(what); };
  for (int i = 0; i < 64; ++i) rt.spawn(notes, read(x), 0);
  rt.wait_all();
  for (int round = 0; round < 20; ++round) {
    order.clear();
    test::gate begun, first;
    auto y = rt.filled<int>({4}, tiles(4), 0);
    rt.spawn(adds_to_two{&first, &begun}, update(x), update(y));
    ASSERT_TRUE(begun.pass());
    rt.spawn(notes, read(x), 1);
    rt.spawn({.priority = 2}, notes, read(x), 2);
    rt.spawn({.priority = -1}, notes, read(x), 3);
    rt.spawn({.priority = 5, .name = "urgent"}, notes, read(x), 4);
    (void)rt.report();
    first.open();
    rt.wait_all();
    EXPECT_EQ(order, (std::vector<int>{4, 2, 1, 3}));
  }
}

TEST_P(early_release, holds_up_nobody_behind_a_chain_that_takes_far_longer_than_before) {
  options o = on_cores(GetParam());
  o.threads = 1;
  runtime rt(o);
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  std::atomic<bool> is_long{false};
  std::atomic<int> steps{0};
  const auto step = [&](view<int, 1>) {
    if (!is_long) return;
    ++steps;
    const auto until = std::chrono::steady_clock::now() + 5ms;
    while (std::chrono::steady_clock::now() < until) {
    }
  };
  for (int i = 0; i < 512; ++i) rt.spawn(step, update(x));
  rt.wait_all();
  is_long = true;
  test::gate begun, first;
  rt.spawn(adds{&first, &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  for (int i = 0; i < 30; ++i) rt.spawn(step, update(x));
  auto steps_before = rt.spawn([&](view<int, 1>) { return steps.load(); }, update(y));
  (void)rt.report();
  first.open();
  EXPECT_LE(steps_before.get(), 8);
  rt.wait_all();
  EXPECT_EQ(steps, 30);
}

TEST_P(early_release, frees_an_array_when_the_tasks_that_use_it_have_ended_and_not_before) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  const std::uint64_t before = rt.report().arrays;
  for (int round = 0; round < 100; ++round) {
    auto y = rt.filled<int>({4}, tiles(4), 0);
    test::gate begun, first, second;
    {
      auto x = rt.filled<int>({4}, tiles(4), 0);
      rt.spawn(adds_to_two{&first, &begun}, update(x), update(y));
      ASSERT_TRUE(begun.pass());
      for (int i = 0; i < 5; ++i) rt.spawn(adds_to_two{i == 2 ? &second : nullptr}, update(x), update(y));
      if (round % 2 == 0) (void)rt.report();  // all are in order before the handle goes
    }
    EXPECT_EQ(rt.report().arrays, before + 2);
    first.open();
    second.open();
    EXPECT_EQ(y.read()(0), 6);
    rt.wait_all();
    EXPECT_EQ(rt.report().arrays, before + 1);
  }
  EXPECT_EQ(rt.report().arrays, before);
}

// AddressSanitizer knows, too, whether the array of a task that has ended is still looked at.
TEST_P(early_release, frees_an_array_while_the_task_after_the_last_one_that_used_it_waits) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  auto y = rt.filled<int>({4}, tiles(4), 0);
  for (int round = 0; round < 50; ++round) {
    std::optional x(rt.filled<int>({4}, tiles(4), 0));
    test::gate begun, first, second;
    auto ended = rt.spawn(adds_to_two{&first, &begun}, update(*x), update(y));  // takes longer than was predicted
    auto after = rt.spawn(adds{&second}, update(y));
    ASSERT_TRUE(begun.pass());
    (void)rt.report();
    first.open();
    ended.get();
    x.reset();
    second.open();
    after.get();
  }
  EXPECT_EQ(y.read()(0), 100);
  rt.wait_all();
  EXPECT_EQ(rt.report().arrays, 1u);
}

TEST_P(early_release, keeps_an_array_without_elements_for_the_task_that_is_to_see_it) {
  runtime rt(on_cores(GetParam()));
  auto y = rt.filled<int>({4}, tiles(4), 0);
  test::gate* none = nullptr;
  const auto body = [](test::gate* waits, test::gate* begun, view<const int, 1> a, view<int, 1> v) {
    if (begun) begun->open();
    if (waits) {
      EXPECT_TRUE(waits->pass());
    }
    return ++v(0) + static_cast<int>(a.size(0));
  };
  {
    const auto empty = rt.filled<int>({0}, tiles(4), 0);
    for (int i = 0; i < 64; ++i) rt.spawn(body, none, none, read(empty), update(y));
    rt.wait_all();
  }
  test::gate first, begun;
  const auto empty = rt.filled<int>({0}, tiles(4), 0);
  auto before = rt.spawn(body, &first, &begun, read(empty), update(y));
  ASSERT_TRUE(begun.pass());
  std::optional also_empty(rt.filled<int>({0}, tiles(4), 0));
  auto after = rt.spawn(body, none, none, read(*also_empty), update(y));
  also_empty.reset();
  EXPECT_EQ(rt.report().arrays, 3u);
  first.open();
  EXPECT_EQ(after.get(), 66);
  rt.wait_all();
  EXPECT_EQ(rt.report().arrays, 2u);
}

TEST_P(early_release, destroys_results_with_the_last_future_or_with_the_task) {
  runtime rt(on_cores(GetParam()));
  auto y = rt.filled<int>({4}, tiles(4), 0);
  const auto one = std::make_shared<int>(7);
  const auto gives = [one](view<int, 1> v) {
    ++v(0);
    return one;
  };
  for (int i = 0; i < 200; ++i) rt.spawn(gives, update(y));
  rt.wait_all();
  EXPECT_EQ(one.use_count(), 2);
  std::vector<future<std::shared_ptr<int>>> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(rt.spawn(gives, update(y)));
    rt.spawn({.name = "named"}, gives, update(y));
  }
  rt.wait_all();
  EXPECT_EQ(one.use_count(), 22);
  kept.clear();
  EXPECT_EQ(one.use_count(), 2);
}

TEST_P(early_release, keeps_no_record_of_tasks_that_have_ended_but_those_of_futures) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  auto x = rt.filled<int>({4}, tiles(4), 0);
  std::vector<future<void>> kept;
  std::vector<int> order;
  for (int i = 0; i < 3000; ++i) {
    auto all = [&order, i](view<int, 1> v) {
      order.push_back(i);
      ++v(0);
    };
    if (i % 3 == 0)
      kept.push_back(rt.spawn(all, update(x)));
    else if (i % 3 == 1)
      kept.push_back(rt.spawn({.name = "named"}, all, update(x)));
    else
      rt.spawn(all, update(x));
  }
  rt.wait_all();
  EXPECT_EQ(order.size(), 3000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(rt.report().records, kept.size());
  for (future<void>& f : kept) f.get();
  kept.clear();
  EXPECT_EQ(rt.report().records, 0u);
  EXPECT_EQ(rt.report().finished, rt.report().spawned);
}

// Adds one to each element; the chunk that begins at `fails_at` throws, and the one at `stops_at` waits at a gate.
struct adds_to_each {
  index_t fails_at = -1, stops_at = -1;
  test::gate* waits = nullptr;
  test::gate* begun = nullptr;
  void operator()(view<int, 1> v) const {
    if (v.lo(0) == fails_at) throw std::runtime_error("one of them");
    if (v.lo(0) == stops_at) {
      begun->open();
      EXPECT_TRUE(waits->pass());
    }
    for (index_t i = v.lo(0); i < v.hi(0); ++i) ++v(i);
  }
};

TEST_P(early_release, ends_a_for_each_with_its_last_chunk_and_tells_where_all_have_run) {
  constexpr index_t chunk = 64, count = 48;
  runtime rt(on_cores(GetParam()));
  auto x = rt.filled<int>({count * chunk}, tiles(chunk), 0);
  const auto all_chunks = grid(count * chunk).chunks(chunk);
  for (int i = 0; i < 4; ++i) rt.for_each(all_chunks, adds_to_each{}, update(x));
  rt.wait_all();
  std::vector<future<void>> kept;
  for (int i = 0; i < 100; ++i) {
    const future<void> all = rt.for_each(all_chunks, adds_to_each{}, update(x));
    if (i % 3 == 0) {
      all.get();
      const explanation e = rt.explain(all);
      ASSERT_EQ(e.chunks_at.size(), 1u);
      EXPECT_EQ(e.chunks_at[0].chunks, static_cast<std::uint64_t>(count));
    }
    if (i % 3 == 1) kept.push_back(all);
  }
  for (const future<void>& f : kept) f.get();
  // One chunk holds up the join, and nobody else.
  test::gate begun, last;
  const future<void> all =
      rt.for_each(all_chunks, adds_to_each{.stops_at = 5 * chunk, .waits = &last, .begun = &begun}, update(x));
  ASSERT_TRUE(begun.pass());
  if (GetParam().threads > 1) {
    EXPECT_EQ(x.sub({{6 * chunk}, {7 * chunk}}).read()(0), 105);
  }
  EXPECT_FALSE(all.is_ready());
  last.open();
  all.get();
  EXPECT_EQ(rt.explain(all).chunks_at.at(0).chunks, static_cast<std::uint64_t>(count));
  const auto seen = x.read();
  for (index_t i = 0; i < count * chunk; ++i) ASSERT_EQ(seen(i), 105) << i;
}

TEST_P(early_release, fails_a_for_each_with_the_chunk_that_throws_among_those_that_end_well) {
  constexpr index_t chunk = 64, count = 16;
  runtime rt(on_cores(GetParam()));
  auto x = rt.filled<int>({count * chunk}, tiles(chunk), 0);
  const auto all_chunks = grid(count * chunk).chunks(chunk);
  for (int i = 0; i < 4; ++i) rt.for_each(all_chunks, adds_to_each{}, update(x));
  rt.wait_all();
  for (int i = 0; i < 100; ++i) {
    auto y = rt.filled<int>({count * chunk}, tiles(chunk), 0);
    const index_t bad = i % count * chunk;
    const future<void> failed = rt.for_each(all_chunks, adds_to_each{.fails_at = bad}, update(y));
    const future<void> next = rt.for_each(all_chunks, adds_to_each{}, update(y));
    const future<void> behind = rt.for_each(all_chunks, adds_to_each{}, update(x));
    try {
      failed.get();
      ADD_FAILURE();
    } catch (const task_failed& e) {
      EXPECT_NE(std::string(e.what()).find("one of them"), std::string::npos) << e.what();
    }
    EXPECT_THROW(next.get(), task_failed) << "its chunk on what the other one has not written";
    behind.get();
    EXPECT_THROW(y.sub({{bad}, {bad + chunk}}).read(), task_failed);
    const index_t good = (bad + chunk) % (count * chunk);
    EXPECT_EQ(y.sub({{good}, {good + chunk}}).read()(0), 2);
  }
  EXPECT_EQ(x.read()(0), 104);
}

TEST_P(early_release, does_what_options_say) {
  runtime rt(on_cores(GetParam()));
  warm_up(rt);
  int tries = 0;
  const auto throws_once = [&tries](view<int, 1> v) {
    v(0) += 100;
    if (++tries % 2 != 0) throw std::runtime_error("the first time");
  };
  const auto fails = [](view<const int, 1>) { throw std::runtime_error("each time"); };
  auto x = rt.filled<int>({4}, tiles(4), 0), y = rt.filled<int>({4}, tiles(4), 0);
  const auto writes = [](view<const int, 1>, view<int, 1> v) { v(0) = 1; };
  for (int i = 0; i < 64; ++i) {
    rt.spawn({.retries = 1}, throws_once, update(x));
    rt.spawn(writes, read(x), update(y));
  }
  rt.spawn([](view<int, 1> v) { v(0) = 0; }, update(y));
  rt.wait_all();
  for (int round = 0; round < 50; ++round) {
    auto left = rt.filled<int>({4}, tiles(4), 0);
    test::gate begun, first;
    std::stop_source stops;
    auto before = rt.spawn(adds_to_two{&first, &begun}, update(x), update(y));
    ASSERT_TRUE(begun.pass());
    auto again = rt.spawn({.retries = 1}, throws_once, update(x));
    auto stopped = rt.spawn({.stop = stops.get_token()}, writes, read(y), update(left));
    auto named = rt.spawn({.name = "the one that fails"}, fails, read(x));
    (void)rt.report();
    stops.request_stop();
    first.open();
    again.get();
    EXPECT_THROW(stopped.get(), error);
    try {
      named.get();
      ADD_FAILURE();
    } catch (const task_failed& e) {
      EXPECT_NE(std::string(e.what()).find("the one that fails"), std::string::npos) << e.what();
    }
    before.get();
    EXPECT_EQ(x.read()(0), 6400 + (round + 1) * 101);
    EXPECT_EQ(y.read()(0), round + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(threads, early_release,
                         testing::Values(setting{1, "none"}, setting{2, "none"}, setting{4, "none"},
                                         setting{1, "sim:0"}, setting{3, "sim:0"}, setting{1, "none", true},
                                         setting{3, "none", true}));

}  // namespace
