// What this file is for: nodes whose threads are all in bodies: what others need of them, and what is called off there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include <troupe/offer.hpp>

#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace test;
using troupe::errc;

std::atomic<int> held{0};
std::atomic<bool> go{false};

constexpr auto hold = troupe::kernel<>("busy.hold").on(troupe::cpu, [] {
  ++held;
  held.notify_all();
  go.wait(false);
});
constexpr auto add_one = troupe::kernel<troupe::inout<int, 1>>("busy.add_one").on(troupe::cpu, [](auto x) {
  for (auto i = x.lo(0); i < x.hi(0); ++i) ++x(i);
});
const troupe::offer offered{hold, add_one};

/// Bodies of `hold` stay until this ends, or `let_go`.
struct holding {
  holding() {
    held = 0;
    go = false;
  }
  ~holding() { let_go(); }
  static void let_go() {
    go = true;
    go.notify_all();
  }
  static void await(int n) {
    for (int h = held; h < n; h = held) held.wait(h);
  }
};

// Without a thread that comes for it, a message waits for what members say to each other every 250 ms, or for the body.
constexpr auto far_less = 1s;

TEST(busy_nodes, send_home_what_is_there) {
  several_nodes n(1, 1);
  std::vector<troupe::array<int, 1>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(n.a.filled<int>({2000}, troupe::tiles(2000), i));
    n.a.spawn(on("b"), add_one, troupe::update(all.back()));
  }
  n.a.wait_all();
  const holding until_the_end;
  n.a.spawn(on("b"), hold);
  holding::await(1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].read()(1999), i + 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, far_less);
}

TEST(busy_nodes, send_tasks_to_others) {
  several_nodes n(1, 1);
  const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
  const holding until_the_end;
  n.a.spawn(troupe::task_options{.where = troupe::scope::here()}, hold);
  holding::await(1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 20; ++i) {
    const auto f = n.a.spawn(on("b"), add_one, troupe::update(x));
    ASSERT_TRUE(comes_true([&] { return f.is_ready(); }));  // a thread that waits would see to it itself
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, far_less);
}

TEST(busy_nodes, tell_whom_a_task_depends_on_that_was_called_off_there) {
  several_nodes n(1, 1);
  for (const bool by_deadline : {false, true}) {
    const holding until_the_end;
    const auto blocker = n.a.spawn(on("b"), hold);
    holding::await(1);
    const auto before = n.b().report().spawned;
    const auto x = n.a.filled<int>({10}, troupe::tiles(10), 0);
    std::stop_source stop;
    troupe::task_options first = on("b"), next = on("b"), last = on("b");
    first.name = "first";
    next.name = "next";
    last.name = "last";
    if (by_deadline)
      first.deadline = 50ms;
    else
      first.stop = stop.get_token();
    const auto f = n.a.spawn(first, add_one, troupe::update(x));
    const auto g = n.a.spawn(next, add_one, troupe::update(x));
    const auto h = n.a.spawn(last, add_one, troupe::update(x));
    ASSERT_TRUE(comes_true([&] { return n.b().report().spawned >= before + 3; })) << "all of them are there";
    stop.request_stop();
    // The deadline passes meanwhile, and what was said to b before has been heard there.
    for (const auto until = std::chrono::steady_clock::now() + 2 * first.deadline;
         std::chrono::steady_clock::now() < until;)
      n.a.query_cluster(10s);
    n.a.query_cluster(10s);
    holding::let_go();
    EXPECT_EQ(code_of([&] { f.get(); }), by_deadline ? errc::timed_out : errc::cancelled);
    for (const auto* one : {&g, &h}) {
      const auto e = error_of([&] { one->get(); });
      ASSERT_TRUE(e);
      EXPECT_EQ(e->code, by_deadline ? errc::dependency_failed : errc::cancelled);
      EXPECT_EQ(e->root, "first") << e->text;
    }
    blocker.get();
  }
}

}  // namespace
