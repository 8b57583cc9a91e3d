// What this file is for: the part of a loop's thread that others take: which runs what, when the loop has it back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/loop.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using troupe::net::control_poller;
using troupe::net::tcp::loop;
using troupe::net::tcp::watch;

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

TEST(loop_poller, gives_the_part_away_in_its_sleep_if_it_is_hurried) {
  bool here = false;
  for (int round = 0; round < 1000 && !here; ++round) {
    loop l("test");
    l.start();
    const auto p = l.poller();
    p->poll();
    p->hurry();
    for (int i = 0; i < 10; ++i) {
      p->poll();
      std::this_thread::yield();
    }
    here = runs_on(l, [&] { p->poll(); }) == std::this_thread::get_id();
    EXPECT_TRUE(!here || p->turns() == 0) << "nothing has come that its own thread would have run";
    l.stop();
  }
  EXPECT_TRUE(here);
}

TEST(loop_poller, has_the_part_back_if_nobody_wants_it_any_more_when_it_is_given_away) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  for (int i = 0; i < 1000; ++i) {
    p->poll();
    p->hurry();
    for (int k = 0; k < i % 8; ++k) std::this_thread::yield();
    p->rest();
    EXPECT_NE(runs_on(l, [] { std::this_thread::yield(); }), std::this_thread::get_id());
  }
  l.stop();
}

TEST(loop_poller, counts_what_its_own_thread_has_done) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    runs_on(l, [] { std::this_thread::yield(); });
    while (p->turns() != i) std::this_thread::yield();
  }
  p->hurry();
  take_part(l, *p);
  const std::uint64_t before = p->turns();
  int here = 0;
  for (int i = 0; i < 100; ++i) here += runs_on(l, [&] { p->poll(); }) == std::this_thread::get_id();
  EXPECT_LE(p->turns() - before, 100U - static_cast<unsigned>(here)) << "others did that";
  l.stop();
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

// ---- sockets that are looked at while the loop is polled -------------------------------------------------------------

// A pair of connected sockets that do not block.
class socket_pair {
 public:
  socket_pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0); }
  ~socket_pair() {
    close(ends_[0]);
    close(ends_[1]);
  }
  socket_pair(const socket_pair&) = delete;
  socket_pair& operator=(const socket_pair&) = delete;
  int here() const { return ends_[0]; }
  void say() const { EXPECT_EQ(write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

// Counts what comes through a socket; all but the counts on the loop's thread or that which polls.
struct listener {
  listener(loop& l, int s, watch::traffic t) : socket(s), watched(l, s, t) { wait(); }
  void wait() {
    watched.readable([this] {
      ++calls;
      char c[16];
      const auto n = read(socket, c, sizeof c);
      if (n > 0) {
        watched.found();
        heard += static_cast<int>(n);
      }
      wait();
    });
  }
  const int socket;
  std::atomic<int> calls{0}, heard{0};
  watch watched;
};

// Makes something on the loop's thread, or the one that polls, and waits until it is there.
template <class T, class... A>
std::unique_ptr<T> made_by(loop& l, control_poller& p, A... with) {
  std::unique_ptr<T> made;
  runs_on(l, [&] { p.poll(); });
  std::atomic<bool> done{false};
  l.post([&] {
    made = std::make_unique<T>(l, with...);
    done = true;
  });
  while (!done) p.poll();
  return made;
}
template <class T>
void dropped_by(loop& l, control_poller& p, std::unique_ptr<T> made) {
  std::atomic<bool> done{false};
  l.post([&] {
    made.reset();
    done = true;
  });
  while (!done) p.poll();
}

TEST(loop_poller, hears_every_message_of_sockets_with_much_traffic_and_with_little) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  std::vector<socket_pair> pairs(6);
  std::vector<std::unique_ptr<listener>> all;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    all.push_back(made_by<listener>(l, *p, pairs[i].here(), i == 5 ? watch::traffic::seldom : watch::traffic::often));
  // One after the other, so that each in turn is the one of which messages come; then all of them.
  for (int round = 0; round < 400; ++round) {
    const std::size_t who = static_cast<std::size_t>(round / 20) % pairs.size();
    const int before = all[who]->heard;
    pairs[who].say();
    while (all[who]->heard == before) p->poll();
  }
  for (const auto& s : pairs) s.say();
  for (const auto& a : all) {
    const int due = (&a - all.data()) < 2 ? 81 : 61;
    while (a->heard < due) p->poll();
    EXPECT_EQ(a->heard, due);
  }
  for (auto& a : all) dropped_by(l, *p, std::move(a));
  l.stop();
}

TEST(loop_poller, looks_at_a_socket_with_much_traffic_without_waiting_for_it) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  const socket_pair busy, quiet;
  auto often = made_by<listener>(l, *p, busy.here(), watch::traffic::often);
  auto seldom = made_by<listener>(l, *p, quiet.here(), watch::traffic::seldom);
  busy.say();
  quiet.say();
  while (often->heard == 0 || seldom->heard == 0) p->poll();
  const int looked = often->calls, called = seldom->calls;
  // While this thread has the part. It is read again and again, though nothing comes, and then no more.
  for (int i = 1; i <= 100'000 && often->calls < looked + 20; ++i) {
    p->poll();
    if (i % 1'000 == 0) take_part(l, *p);
  }
  EXPECT_GE(often->calls, looked + 20);
  EXPECT_EQ(seldom->calls, called) << "called though nothing had come";
  for (int i = 0, before = -1; i < 100 && before != often->calls; ++i) {
    before = often->calls;
    for (int k = 0; k < 5'000; ++k) p->poll();
  }
  const int last = often->calls;
  for (int k = 0; k < 5'000; ++k) p->poll();
  EXPECT_EQ(often->calls, last) << "nothing has come for long";
  busy.say();
  while (often->heard < 2) p->poll();
  dropped_by(l, *p, std::move(often));
  dropped_by(l, *p, std::move(seldom));
  l.stop();
}

TEST(loop_poller, a_socket_may_go_in_the_call_that_a_look_makes) {
  loop l("test");
  l.start();
  const auto p = l.poller();
  take_part(l, *p);
  for (int round = 0; round < 50; ++round) {
    const socket_pair pair;
    std::unique_ptr<watch> watched;
    std::atomic<int> calls{0};
    std::atomic<bool> gone{false};
    std::function<void()> heard = [&] {
      char c[16];
      if (read(pair.here(), c, sizeof c) > 0) watched->found();
      if (++calls == 3 + round % 5) {
        watched.reset();
        gone = true;
        return;
      }
      watched->readable(heard);
    };
    l.post([&] {
      watched = std::make_unique<watch>(l, pair.here(), watch::traffic::often);
      watched->readable(heard);
    });
    pair.say();
    // Looks are made while this thread has the part, which the loop's thread takes back if this one is held up.
    for (int i = 1; !gone; ++i) {
      p->poll();
      if (i % 1'000 == 0) take_part(l, *p);
    }
    for (int i = 0; i < 20; ++i) p->poll();
    EXPECT_EQ(calls, 3 + round % 5);
  }
  l.stop();
}

}  // namespace
