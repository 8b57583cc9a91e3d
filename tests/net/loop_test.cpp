// What this file is for: the part of a loop's thread that others take: which runs what, when the loop has it back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using troupe::net::control_poller;
using troupe::net::tcp::loop;

// The thread on which something that is posted now runs. `meanwhile` is called until it has.
template <class F>
std::thread::id runs_on(loop& l, F&& meanwhile) {
  std::promise<std::thread::id> told;
  auto where = told.get_future();
  EXPECT_TRUE(l.post([&] { told.set_value(std::this_thread::get_id()); }));
  while (where.wait_for(0s) != std::future_status::ready) meanwhile();
  return where.get();
}

// Polls until the loop's thread, which gives its part away when it has done something, has left it to this one.
void take_part(loop& l, control_poller& p) {
  const auto here = std::this_thread::get_id();
  while (runs_on(l, [&] { p.poll(); }) != here) continue;
}

TEST(loop_poller, runs_what_comes_on_the_thread_that_polls) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  int here = 0;
  for (int i = 0; i < 100; ++i) here += runs_on(l, [&] { p->poll(); }) == std::this_thread::get_id();
  EXPECT_GT(here, 10) << "the thread takes its part back only when nobody has polled for a moment";
  l.stop();
}

TEST(loop_poller, says_whether_there_was_something) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  std::atomic<int> ran{0};
  int said = 0;
  for (int i = 0; i < 100; ++i) {
    l.post([&] { ++ran; });
    while (ran == i) said += p->poll();
  }
  EXPECT_LE(said, 100);
  EXPECT_GT(said, 10);
  l.stop();
}

TEST(loop_poller, does_nothing_while_the_thread_has_its_part) {
  loop l("test");
  const auto p = l.poller();
  EXPECT_FALSE(p->poll()) << "it has not begun";
  l.start();
  EXPECT_NE(runs_on(l, [] {}), std::this_thread::get_id());
  l.stop();
  EXPECT_FALSE(p->poll()) << "it has ended";
  p->rest();
}

TEST(loop_poller, gives_the_part_back_when_it_rests_and_when_it_forgets_to) {
  for (const bool rests : {true, false}) {
    loop l("test");
    l.start();
    const auto p = l.poller();
    take_part(l, *p);
    if (rests) p->rest();
    EXPECT_NE(runs_on(l, [] { std::this_thread::yield(); }), std::this_thread::get_id());
    l.stop();
  }
}

TEST(loop_poller, keeps_times_while_others_poll) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  std::atomic<bool> rang{false};
  const auto when = std::chrono::steady_clock::now() + 5ms;
  std::chrono::steady_clock::time_point then;
  l.at(when, [&] {
    then = std::chrono::steady_clock::now();
    rang = true;
  });
  while (!rang) p->poll();
  EXPECT_GE(then, when);
  l.stop();
}

TEST(loop_poller, of_many_threads_runs_everything_once_one_at_a_time) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  std::atomic<bool> done{false};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; !done; ++i)
        if (!p->poll() && i % (64 << t) == 0) p->rest();
    });
  std::atomic<int> inside{0};
  int ran = 0;
  constexpr int posts = 20'000;
  std::promise<void> last;
  for (int i = 0; i < posts; ++i)
    l.post([&, i] {
      EXPECT_EQ(inside.fetch_add(1), 0);
      if (++ran == posts) last.set_value();
      inside.fetch_sub(1);
    });
  last.get_future().wait();
  done = true;
  for (auto& t : all) t.join();
  EXPECT_EQ(ran, posts);
  l.stop();
}

TEST(loop_poller, may_be_asked_while_the_loop_stops_and_after_it_is_gone) {
  for (int round = 0; round < 200; ++round) {
    auto l = std::make_unique<loop>("test");
    l->start();
    const auto p = l->poller();
    std::atomic<bool> done{false};
    std::atomic<int> polls{0};
    std::thread asks([&] {
      while (!done) {
        p->poll();
        if (polls++ % 5 == 0) p->rest();
      }
    });
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i) l->post([&] { ++ran; });
    while (polls < 10) std::this_thread::yield();
    l->stop();
    const int before = ran;
    l.reset();
    const int seen = polls;
    while (polls < seen + 10) std::this_thread::yield();
    EXPECT_EQ(ran, before) << "nothing runs after it has stopped";
    done = true;
    asks.join();
  }
}

}  // namespace
