// What this file is for: tasks on other nodes: the same program, the same results, wherever its tasks run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Two or three runtimes in this process, each a node, joined over loopback sockets.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <numeric>
#include <string>
#include <vector>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"

namespace {

using troupe::index_t;
using troupe::scope;
using namespace test;

constexpr auto add =
    troupe::kernel<troupe::inout<int, 1>, int>("nodes.add").on(troupe::cpu, [](troupe::view<int, 1> a, int by) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += by;
    });
constexpr auto number = troupe::kernel<troupe::out<int, 2>>("nodes.number").on(troupe::cpu, [](troupe::view<int, 2> a) {
  for (index_t y = a.lo(0); y < a.hi(0); ++y)
    for (index_t x = a.lo(1); x < a.hi(1); ++x) a(y, x) = static_cast<int>(1000 * y + x);
});
constexpr auto blur = troupe::kernel<troupe::in<int, 2>, troupe::out<int, 2>>("nodes.blur")
                          .on(troupe::cpu, [](troupe::view<const int, 2> from, troupe::view<int, 2> to) {
                            for (index_t y = to.lo(0); y < to.hi(0); ++y)
                              for (index_t x = to.lo(1); x < to.hi(1); ++x) {
                                unsigned sum = 0;  // which may go round
                                for (index_t v = -1; v <= 1; ++v)
                                  for (index_t u = -1; u <= 1; ++u) sum += static_cast<unsigned>(from(y + v, x + u));
                                to(y, x) = static_cast<int>(sum);
                              }
                          });
constexpr auto sum_up = troupe::kernel<troupe::in<int, 1>, troupe::red<long, 1>>("nodes.sum_up")
                            .on(troupe::cpu, [](troupe::view<const int, 1> a, troupe::view<long, 1> total) {
                              for (index_t i = a.lo(0); i < a.hi(0); ++i) total(0) += a(i);
                            });
constexpr auto fail = troupe::kernel<troupe::inout<int, 1>>("nodes.fail").on(troupe::cpu, [](troupe::view<int, 1>) {
  throw std::runtime_error("the paper has run out");
});
constexpr auto secret_kernel =
    troupe::kernel<troupe::inout<int, 1>>("nodes.not_offered").on(troupe::cpu, [](troupe::view<int, 1>) {});

std::atomic<int> waiting{0};
constexpr auto wait_for_stop = troupe::kernel<troupe::inout<int, 1>>("nodes.wait_for_stop")
                                   .on(troupe::cpu, [](troupe::task_context& c, troupe::view<int, 1>) {
                                     ++waiting;
                                     waiting.notify_all();
                                     while (!c.stop_requested()) std::this_thread::yield();
                                     throw std::runtime_error("asked to stop");
                                   });

constexpr auto is_asked_to_stop = troupe::kernel<troupe::inout<int, 1>>("nodes.is_asked_to_stop")
                                      .on(troupe::cpu, [](troupe::task_context& c, troupe::view<int, 1> a) {
                                        a(0) += c.stop_requested() ? 1000 : 1;
                                      });

std::atomic<bool> keeps_waiting{false};
constexpr auto wait_while_held =
    troupe::kernel<>("nodes.wait_while_held").on(troupe::cpu, [] { keeps_waiting.wait(true); });

const troupe::offer offered{add, number, blur, sum_up, fail, wait_for_stop, is_asked_to_stop, wait_while_held};

std::uint64_t bytes_moved(const troupe::runtime& rt, const std::string& name) {
  for (const auto& e : rt.executors())
    if (e.name == name) return e.bytes_moved;
  return 0;
}

TEST(nodes, know_each_other_by_name) {
  several_nodes n(1);
  const auto of_a = n.a.nodes();
  ASSERT_EQ(of_a.size(), 1u);
  EXPECT_EQ(of_a[0].name, "b");
  EXPECT_EQ(of_a[0].threads, 2);
  EXPECT_GE(of_a[0].kernels, 6u);
  EXPECT_EQ(of_a[0].address, n.b().addresses().front());
}

TEST(nodes, a_task_runs_there_and_its_data_comes_back) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1000}, troupe::tiles(1000), 7);
  const auto f = n.a.spawn(on("b"), add, troupe::update(x), 35);
  f.get();
  EXPECT_EQ(tasks_of(n.a, "b"), 1u);
  const auto v = x.read();
  for (index_t i = 0; i < 1000; ++i) ASSERT_EQ(v(i), 42);
}

TEST(nodes, a_chain_stays_there_and_what_does_not_change_is_sent_once) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1 << 16}, troupe::tiles(1 << 16), 0);
  n.a.spawn(on("b"), add, troupe::update(x), 1).get();
  const std::uint64_t before = bytes_moved(n.a, "b");
  for (int i = 0; i < 200; ++i) n.a.spawn(on("b"), add, troupe::update(x), 1);
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.a, "b"), 201u);
  EXPECT_EQ(bytes_moved(n.a, "b"), before);
  EXPECT_EQ(x.read()(77), 201);
}

TEST(nodes, windows_with_borders_read_across_tiles) {
  for (const auto edge : {0, 1, 2}) {
    several_nodes n(1);
    const index_t size = 60;
    const auto from = n.a.array<int, 2>({size, size}, troupe::tiles(16, 16));
    const auto to = n.a.array<int, 2>({size, size}, troupe::tiles(16, 16));
    n.a.for_each({.where = scope::here()}, troupe::grid(size, size), number, troupe::write(from));
    if (edge == 0)
      n.a.for_each(on("b"), troupe::grid(size, size), blur, troupe::read(from, troupe::window(1, 1).clamp()),
                   troupe::write(to));
    else if (edge == 1)
      n.a.for_each(on("b"), troupe::grid(size, size), blur, troupe::read(from, troupe::window(1, 1).wrap()),
                   troupe::write(to));
    else
      n.a.for_each(on("b"), troupe::grid(size, size), blur, troupe::read(from, troupe::window(1, 1).fill(5)),
                   troupe::write(to));
    const auto v = to.read();
    const auto at = [&](index_t y, index_t x) {
      if (edge == 0) {
        y = std::clamp<index_t>(y, 0, size - 1);
        x = std::clamp<index_t>(x, 0, size - 1);
      } else if (edge == 1) {
        y = (y + size) % size;
        x = (x + size) % size;
      } else if (y < 0 || x < 0 || y >= size || x >= size) {
        return 5;
      }
      return static_cast<int>(1000 * y + x);
    };
    for (index_t y = 0; y < size; ++y)
      for (index_t x = 0; x < size; ++x) {
        int sum = 0;
        for (index_t dy = -1; dy <= 1; ++dy)
          for (index_t dx = -1; dx <= 1; ++dx) sum += at(y + dy, x + dx);
        ASSERT_EQ(v(y, x), sum) << "border " << edge << " at " << y << ", " << x;
      }
    EXPECT_EQ(tasks_of(n.a, "b"), 16u);
  }
}

TEST(nodes, parts_of_tiles_are_written_and_sent_back) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({100}, troupe::tiles(100), 1);
  for (index_t i = 0; i < 100; i += 10)
    n.a.spawn(i % 20 == 0 ? on("b") : troupe::task_options{.where = scope::here()}, add,
              troupe::update(x.sub(troupe::box<1>{{i}, {i + 10}})), static_cast<int>(i));
  const auto v = x.read();
  for (index_t i = 0; i < 100; ++i) ASSERT_EQ(v(i), 1 + i / 10 * 10);
  EXPECT_EQ(tasks_of(n.a, "b"), 5u);
}

TEST(nodes, reductions_are_combined_where_they_were_asked_for) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1000}, troupe::tiles(10), 3);
  const auto total = n.a.filled<long>({1}, troupe::tiles(1), 0L);
  n.a.for_each(on("b"), troupe::grid(1000).chunks(10), sum_up, troupe::read(x),
               troupe::reduce(total, std::plus<>(), 0L));
  EXPECT_EQ(total.read()(0), 3000);
  EXPECT_EQ(tasks_of(n.a, "b"), 100u);
}

TEST(nodes, what_a_task_was_to_read_is_sent_for_the_next_one_if_it_never_got_there) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the program on allocations of this size";
#endif
  several_nodes n(1);
  const auto x = n.a.filled<int>({1000}, troupe::tiles(1000), 3);
  const auto total = n.a.filled<long>({1}, troupe::tiles(1), 0L);
  const auto huge = n.a.array<long>({index_t{1} << 46}, troupe::tiles(index_t{1} << 46));
  const auto f = n.a.spawn(on("b"), sum_up, troupe::read(x), troupe::reduce(huge, std::plus<>(), 0L));
  EXPECT_THROW(f.get(), troupe::task_failed) << "there is memory for its partial";
  n.a.spawn(on("b"), sum_up, troupe::read(x), troupe::reduce(total, std::plus<>(), 0L)).get();
  EXPECT_EQ(total.read()(0), 3000);
  EXPECT_EQ(tasks_of(n.a, "b"), 2u);
}

TEST(nodes, work_without_a_scope_is_shared) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1 << 20}, troupe::tiles(1 << 12), 0);
  for (int round = 0; round < 10; ++round) n.a.for_each(troupe::grid(1 << 20), add, troupe::update(x), 1);
  const auto v = x.read();
  for (index_t i = 0; i < 1 << 20; ++i) ASSERT_EQ(v(i), 10);
}

TEST(nodes, an_error_there_reaches_who_waits_here_with_its_text) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
  const auto f = n.a.spawn({.where = scope::at("b"), .name = "printer"}, fail, troupe::update(x));
  try {
    f.get();
    FAIL() << "nothing was thrown";
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), troupe::errc::task_failed);
    EXPECT_NE(std::string(e.what()).find("the paper has run out"), std::string::npos) << e.what();
    EXPECT_EQ(e.executor(), "b");
    EXPECT_EQ(e.task(), "printer");
  }
  // A task that depends on it is told whose fault it is; what does not goes on.
  const auto after = n.a.spawn(on("b"), add, troupe::update(x), 1);
  try {
    after.get();
    FAIL() << "nothing was thrown";
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), troupe::errc::dependency_failed);
    EXPECT_EQ(e.root_task(), "printer");
  }
  const auto y = n.a.filled<int>({10}, troupe::tiles(10), 0);
  n.a.spawn(on("b"), add, troupe::update(y), 1).get();
  EXPECT_EQ(y.read()(0), 1);
}

TEST(nodes, what_is_not_offered_does_not_go_there) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
  try {
    n.a.spawn(on("b"), secret_kernel, troupe::update(x));
    FAIL() << "nothing was thrown";
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::no_executor);
    EXPECT_NE(std::string(e.what()).find("nodes.not_offered"), std::string::npos) << e.what();
  }
  n.a.spawn(secret_kernel, troupe::update(x)).get();  // here it may
  EXPECT_THROW(n.a.spawn({.where = scope::at("c")}, add, troupe::update(x), 1), troupe::error);
}

TEST(nodes, a_running_task_there_is_asked_to_stop) {
  several_nodes n(1);
  waiting = 0;
  const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
  std::stop_source stop;
  const auto f = n.a.spawn({.where = scope::at("b"), .stop = stop.get_token()}, wait_for_stop, troupe::update(x));
  waiting.wait(0);
  stop.request_stop();
  EXPECT_THROW(f.get(), troupe::task_failed);
  EXPECT_EQ(waiting.load(), 1);
}

TEST(nodes, a_task_that_was_asked_to_stop_there_stops_none_of_those_after_it) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
  for (int i = 1; i <= 5; ++i) {
    const auto y = n.a.filled<int>({10}, troupe::tiles(10), 0);
    waiting = 0;
    std::stop_source stop;
    const auto f = n.a.spawn({.where = scope::at("b"), .stop = stop.get_token()}, wait_for_stop, troupe::update(y));
    waiting.wait(0);
    stop.request_stop();
    EXPECT_THROW(f.get(), troupe::task_failed);
    for (int k = 0; k < 10; ++k) n.a.spawn(on("b"), is_asked_to_stop, troupe::update(x));
    EXPECT_EQ(x.read()(0), 10 * i);
  }
}

TEST(nodes, a_name_is_that_of_who_has_it_now) {
  troupe::runtime a(node_options("a"));
  const scope at_b = scope::at("b");
  const auto y = a.filled<int>({10}, troupe::tiles(10), 0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(a.spawn({.where = at_b}, add, troupe::update(y), 1), troupe::error) << "nobody is called so";
    {
      troupe::runtime b(node_options("b", a.addresses()));
      ASSERT_TRUE(a.wait_for_nodes(1, 10s));
      a.spawn({.where = at_b}, add, troupe::update(y), 1).get();
      EXPECT_EQ(y.read()(0), round + 1);
      EXPECT_EQ(tasks_of(b, "cpu:0"), 1u);
    }
    ASSERT_TRUE(comes_true([&] { return a.executors(at_b).empty(); }));
  }
}

TEST(nodes, memory_there_is_free_once_handles_here_are_gone) {
  several_nodes n(1);
  {
    const auto x = n.a.filled<int>({1 << 16}, troupe::tiles(1 << 12), 0);
    n.a.for_each(on("b"), troupe::grid(1 << 16), add, troupe::update(x), 1);
    n.a.wait_all();
    EXPECT_EQ(n.b().report().arrays, 1u);
  }
  while (n.b().report().arrays != 0) std::this_thread::yield();
  EXPECT_EQ(n.b().report().bytes_allocated, 0u);
}

TEST(nodes, both_give_each_other_work) {
  several_nodes n(1);
  const auto x = n.a.filled<int>({1000}, troupe::tiles(100), 0);
  const auto y = n.b().filled<int>({1000}, troupe::tiles(100), 0);
  for (int i = 0; i < 50; ++i) {
    n.a.for_each({.where = scope::at("b")}, troupe::grid(1000), add, troupe::update(x), 1);
    n.b().for_each({.where = scope::at("a")}, troupe::grid(1000), add, troupe::update(y), 2);
  }
  const auto vx = x.read();
  const auto vy = y.read();
  for (index_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(vx(i), 50);
    ASSERT_EQ(vy(i), 100);
  }
}

TEST(nodes, who_does_not_look_for_what_comes_is_woken_by_it) {
  const auto sleeping = [](troupe::options o) {
    o.spin = o.cluster.spin = 0us;
    return o;
  };
  troupe::runtime a(sleeping(node_options("a"))), b(sleeping(node_options("b", a.addresses())));
  ASSERT_TRUE(a.wait_for_nodes(1, 10s));
  const auto x = a.filled<int>({1}, troupe::tiles(1), 0);
  for (int i = 1; i <= 100; ++i) {
    a.spawn({.where = scope::at("b")}, add, troupe::update(x), 1).get();
    if (i % 10 == 0) {
      ASSERT_EQ(x.read()(0), i);
    }
  }
}

TEST(nodes, data_moves_on_from_one_to_the_next) {
  troupe::runtime a(node_options("a")), b(node_options("b", a.addresses())), c(node_options("c", a.addresses()));
  ASSERT_TRUE(a.wait_for_nodes(2, 10s));
  const auto x = a.filled<int>({1 << 14}, troupe::tiles(1 << 10), 0);
  for (int i = 0; i < 30; ++i)
    a.for_each({.where = scope::at(i % 2 ? "b" : "c")}, troupe::grid(1 << 14), add, troupe::update(x), 1);
  const auto v = x.read();
  for (index_t i = 0; i < 1 << 14; ++i) ASSERT_EQ(v(i), 30);
  EXPECT_EQ(tasks_of(a, "b"), 15u * 16);
  EXPECT_EQ(tasks_of(a, "c"), 15u * 16);
}

TEST(nodes, lent_memory_holds_what_was_computed_there) {
  std::vector<int> mine(1 << 16, 1), kept(1 << 16, 1);
  {
    several_nodes n(1);
    const auto held = n.a.borrow<int>(std::span(kept), {1 << 16}, troupe::tiles(1 << 10));
    {
      const auto x = n.a.borrow<int>(std::span(mine), {1 << 16}, troupe::tiles(1 << 10));
      n.a.for_each(on("b"), troupe::grid(1 << 16), add, troupe::update(x), 1);
      n.a.for_each(on("b"), troupe::grid(1 << 16), add, troupe::update(held), 2).get();
    }
  }
  for (const int v : mine) ASSERT_EQ(v, 2);
  for (const int v : kept) ASSERT_EQ(v, 3);
}

TEST(nodes, connections_that_break_lose_nothing) {
  nodes_apart n;
  troupe::runtime& a = n.a;
  const auto x = a.filled<int>({1 << 16}, troupe::tiles(1 << 12), 0);
  const auto y = a.filled<int>({100}, troupe::tiles(100), 0);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) a.for_each(on("b"), troupe::grid(1 << 16), add, troupe::update(x), 1);
    const auto part = a.spawn(on("b"), add, troupe::update(y.sub(troupe::box<1>{{10}, {90}})), 1);
    if (round % 2 == 0) n.way->cut();
    part.get();
    a.spawn({.where = scope::here()}, add, troupe::update(y), 1);  // brings its tile home
    if (round % 3 == 0) n.way->cut();
  }
  const auto v = x.read();
  for (index_t i = 0; i < 1 << 16; ++i) ASSERT_EQ(v(i), 200);
  const auto w = y.read();
  for (index_t i = 0; i < 100; ++i) ASSERT_EQ(w(i), i < 10 || i >= 90 ? 20 : 40);
  EXPECT_EQ(tasks_of(a, "b"), 20u * (10 * 16 + 1));  // each ran once
  EXPECT_GT(n.way->connections(), 4);
  EXPECT_EQ(a.nodes().size(), 1u);
}

TEST(nodes, what_went_with_a_node_is_made_again) {
  nodes_apart n;
  troupe::runtime& a = n.a;
  const index_t size = 64;
  const auto x = a.array<int, 2>({size, size}, troupe::tiles(16, 16));
  const auto y = a.array<int, 2>({size, size}, troupe::tiles(16, 16));
  const auto z = a.filled<int>({1000}, troupe::tiles(100), 5);
  a.for_each({.where = scope::here()}, troupe::grid(size, size), number, troupe::write(x));
  for (int i = 0; i < 3; ++i) {
    a.for_each(on("b"), troupe::grid(size, size), blur, troupe::read(x, troupe::window(1, 1).wrap()), troupe::write(y));
    a.for_each(on("b"), troupe::grid(size, size), blur, troupe::read(y, troupe::window(1, 1).clamp()),
               troupe::write(x));
    a.for_each(on("b"), troupe::grid(1000), add, troupe::update(z), i);
    if (i == 1) a.for_each({.where = scope::here()}, troupe::grid(size, size), number, troupe::write(y));
  }
  a.wait_all();
  EXPECT_EQ(tasks_of(a, "b"), 3u * (16 + 16 + 10));
  n.part();  // for ever
  const auto vx = x.read();
  const auto vz = z.read();
  for (index_t i = 0; i < 1000; ++i) ASSERT_EQ(vz(i), 5 + 0 + 1 + 2);

  std::vector<int> sx(size * size), sy(size * size);
  const auto at = [](index_t r, index_t c) { return static_cast<std::size_t>(r * size + c); };
  const auto blurred = [&](const std::vector<int>& from, std::vector<int>& to, bool wraps) {
    const auto in = [&](index_t v) { return wraps ? (v + size) % size : std::clamp<index_t>(v, 0, size - 1); };
    for (index_t r = 0; r < size; ++r)
      for (index_t c = 0; c < size; ++c) {
        unsigned sum = 0;
        for (index_t v = -1; v <= 1; ++v)
          for (index_t u = -1; u <= 1; ++u) sum += static_cast<unsigned>(from[at(in(r + v), in(c + u))]);
        to[at(r, c)] = static_cast<int>(sum);
      }
  };
  for (index_t r = 0; r < size; ++r)
    for (index_t c = 0; c < size; ++c) sx[at(r, c)] = static_cast<int>(1000 * r + c);
  for (int i = 0; i < 3; ++i) {
    blurred(sx, sy, true);
    blurred(sy, sx, false);
  }
  for (index_t r = 0; r < size; ++r)
    for (index_t c = 0; c < size; ++c) ASSERT_EQ(vx(r, c), sx[at(r, c)]) << r << ", " << c;
}

TEST(nodes, tasks_of_a_node_that_leaves_run_elsewhere) {
  troupe::runtime a(node_options("a"));
  auto b = std::make_unique<troupe::runtime>(node_options("b", a.addresses()));
  ASSERT_TRUE(a.wait_for_nodes(1, 10s));
  const auto x = a.filled<int>({64 * 64}, troupe::tiles(64), 0);
  for (int i = 0; i < 20; ++i) a.for_each(troupe::grid(64 * 64), add, troupe::update(x), 1);
  b.reset();
  const auto v = x.read();
  for (index_t i = 0; i < 64 * 64; ++i) ASSERT_EQ(v(i), 20);
  EXPECT_TRUE(a.nodes().empty());
}

// Tasks that go to a busy node are gathered, but not until it says something: it may have nothing to say for long.
TEST(nodes, a_task_for_a_node_that_has_plenty_to_do_and_finishes_nothing_gets_there_all_the_same) {
  several_nodes n(1);
  keeps_waiting = true;
  const auto arrived = [&] { return n.b().report().spawned; };
  for (std::uint64_t i = 1; i <= 300; ++i) {
    n.a.spawn(on("b"), wait_while_held);
    if (i % 7 != 0) continue;  // some together, some alone
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (arrived() < i && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(arrived(), i);
  }
  keeps_waiting = false;
  keeps_waiting.notify_all();
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.b(), "cpu:0"), 300u);
}

TEST(nodes, what_a_node_has_not_ended_is_bounded_and_the_rest_waits_here) {
  constexpr std::uint64_t all = 3000, there = 1024;
  several_nodes n(1);
  keeps_waiting = true;
  for (std::uint64_t i = 0; i < all; ++i) n.a.spawn(on("b"), wait_while_held);
  const auto waits_here = [&] {
    for (const auto& e : n.a.executors())
      if (e.name == "b") return e.queued;
    return std::uint64_t{0};
  };
  EXPECT_TRUE(comes_true([&] { return waits_here() == all - there && n.b().report().spawned == there; }))
      << waits_here() << " wait here, " << n.b().report().spawned << " there";
  keeps_waiting = false;
  keeps_waiting.notify_all();
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.b(), "cpu:0"), all);
}

}  // namespace
