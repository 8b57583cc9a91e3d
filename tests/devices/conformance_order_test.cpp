// What this file is for: every device's lanes, tickets and listener: what comes after what, and what is told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "conformance.hpp"

namespace conformance_suite {

namespace {

constexpr std::size_t count = 1 << 15;

std::vector<double> all(double v, std::size_t n = count) { return std::vector<double>(n, v); }

// A sleeper as an actor is: woken by the listener, and by nothing else.
struct sleeper {
  std::mutex guard;
  std::condition_variable woken;
  int calls = 0;

  std::function<void()> listener() {
    return [this] {
      const std::lock_guard lock(guard);
      ++calls;
      woken.notify_all();
    };
  }
  /// Looks at `is_so` after each call. False: none came for a minute.
  bool sleep_until(const std::function<bool()>& is_so) {
    std::unique_lock lock(guard);
    for (int seen = -1; !is_so();) {
      const bool told = woken.wait_for(lock, std::chrono::minutes(1), [&] { return calls != seen; });
      if (!told) return false;
      seen = calls;
    }
    return true;
  }
  int so_far() {
    const std::lock_guard lock(guard);
    return calls;
  }
};

TEST_P(conformance, what_is_enqueued_on_a_lane_runs_in_order) {
  const auto a = open();
  const block on(*a, count * sizeof(int));
  std::vector<std::vector<int>> out(50, std::vector<int>(count));
  for (int i = 0; i < 50; ++i) {
    fill(*a, 0, on.at(), i + 1, count);
    get(*a, 0, out[static_cast<std::size_t>(i)], on.at());
  }
  finish(*a);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(out[static_cast<std::size_t>(i)], std::vector<int>(count, i + 1)) << "step " << i;
}

TEST_P(conformance, a_lane_waits_for_a_ticket_of_another) {
  const auto a = open();
  const block on(*a, count * sizeof(double));
  std::vector<std::vector<double>> out(40, all(-1));
  ticket read = 0;
  for (int i = 0; i < 40; ++i) {
    a->wait(0, 1, read);  // 0 at first: always reached
    fill(*a, 0, on.at(), double(i), count);
    a->wait(1, 0, a->record(0, false));
    get(*a, 1, out[static_cast<std::size_t>(i)], on.at());
    read = a->record(1, false);
  }
  reach(*a, 1, read);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], all(i)) << "round " << i;
}

TEST_P(conformance, a_lane_may_wait_for_itself_and_for_what_is_long_past) {
  const auto a = open();
  const block on(*a, count * sizeof(double));
  fill(*a, 0, on.at(), 3.0, count);
  const ticket t = a->record(0, false);
  a->wait(0, 0, t);
  reach(*a, 0, t);
  a->wait(1, 0, t);
  EXPECT_EQ(content<double>(*a, on.at(), count, 1), all(3));
}

TEST_P(conformance, a_diamond_of_four_lanes_adds_up) {
  const auto a = open(0, 4);
  const kernel_id axpy = load_core(*a, "axpy");
  const std::size_t size = count * sizeof(double);
  const block root(*a, size), left(*a, size), right(*a, size), sum(*a, size);
  const ticket ready = a->record(0, false);  // all memory is of lane 0
  for (const int l : {1, 2, 3}) a->wait(l, 0, ready);
  for (int round = 1; round <= 10; ++round) {
    fill(*a, 0, root.at(), double(round), count);
    const ticket made = a->record(0, false);
    a->wait(1, 0, made);
    a->wait(2, 0, made);
    fill(*a, 1, left.at(), 1.0, count);
    launch_axpy(*a, 1, axpy, 2, root.at(), left.at(), count);  // 1 + 2 r
    fill(*a, 2, right.at(), 10.0, count);
    launch_axpy(*a, 2, axpy, 3, root.at(), right.at(), count);  // 10 + 3 r
    a->wait(3, 1, a->record(1, false));
    a->wait(3, 2, a->record(2, false));
    a->copy(3, sum.at(), line(), left.at(), line(), line_of(count), sizeof(double));
    launch_axpy(*a, 3, axpy, 1, right.at(), sum.at(), count);
    const ticket summed = a->record(3, false);
    ASSERT_EQ(content<double>(*a, sum.at(), count, 3), all(11 + 5.0 * round)) << "round " << round;
    a->wait(0, 3, summed);
  }
}

TEST_P(conformance, tickets_count_from_one_and_are_reached_in_order) {
  const auto a = open();
  const block on(*a, count * sizeof(double));
  EXPECT_EQ(a->completed(0), 0u);
  ticket seen = 0;
  for (ticket i = 1; i <= 100; ++i) {
    fill(*a, 0, on.at(), double(i), count);
    ASSERT_EQ(a->record(0, false), i);
    const ticket now = a->completed(0);
    ASSERT_GE(now, seen);
    ASSERT_LE(now, i);
    seen = now;
  }
  reach(*a, 0, 100);
  EXPECT_EQ(a->completed(0), 100u);
  EXPECT_EQ(a->completed(1), 0u) << "the other lane has no tickets";
}

TEST_P(conformance, the_listener_wakes_whoever_sleeps_until_a_ticket) {
  sleeper actor;
  const auto a = open();
  a->listen(actor.listener());
  const block on(*a, count * sizeof(double));
  for (int i = 0; i < 30; ++i) {
    fill(*a, i % 2, on.at(), double(i), count);
    const ticket t = a->record(i % 2, true);
    ASSERT_TRUE(actor.sleep_until([&] { return a->completed(i % 2) >= t; })) << "round " << i;
  }
}

TEST_P(conformance, the_listener_is_called_for_an_idle_lane_too) {
  sleeper actor;
  const auto a = open();
  a->listen(actor.listener());
  for (int i = 0; i < 10; ++i) {
    const ticket t = a->record(1, true);
    ASSERT_TRUE(actor.sleep_until([&] { return a->completed(1) >= t; })) << "round " << i;
  }
}

TEST_P(conformance, the_listener_is_called_once_for_each_ticket_that_asks) {
  sleeper actor;
  const auto a = open();
  a->listen(actor.listener());
  const block on(*a, count * sizeof(double));
  for (int i = 0; i < 20; ++i) {
    fill(*a, 0, on.at(), 1.0, count);
    (void)a->record(0, false);
  }
  finish(*a);
  EXPECT_EQ(actor.so_far(), 0);
  for (int i = 0; i < 20; ++i) {
    fill(*a, 0, on.at(), 1.0, count);
    (void)a->record(0, i % 2 == 0);
  }
  EXPECT_TRUE(actor.sleep_until([&] { return actor.calls >= 10; }));
  finish(*a);
  EXPECT_EQ(actor.so_far(), 10);
}

TEST_P(conformance, closing_with_work_pending_ends_and_calls_nobody_afterwards) {
  const std::size_t size = 1 << 20;
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> closed = false;
    std::atomic<int> late = 0;
    const std::vector<std::byte> in(size);
    std::array<std::vector<std::byte>, 2> out{in, in};
    auto a = open();
    a->listen([&] { late += closed.load(); });
    void* memory = a->allocate(0, 2 * size);
    ASSERT_NE(memory, nullptr);
    ASSERT_NE(a->allocate_pinned(1000), nullptr);  // freed by closing, like the other
    a->wait(1, 0, a->record(0, true));
    for (int i = 0; i < 40; ++i) {
      const auto l = static_cast<std::size_t>(i % 2);  // each lane has its half
      a->copy_in(i % 2, {memory, l * size}, line(), in.data(), line(), line_of(size), 1);
      a->copy_out(i % 2, out[l].data(), line(), {memory, l * size}, line(), line_of(size), 1);
      (void)a->record(i % 2, true);
    }
    a.reset();
    closed = true;
    const auto again = open();
    const block on(*again, 1024);
    fill(*again, 0, on.at(), 7, 256);
    EXPECT_EQ(content<int>(*again, on.at(), 256), std::vector<int>(256, 7));
    EXPECT_EQ(late, 0);
  }
}

TEST_P(conformance, several_devices_work_at_once) {
  const int n = GetParam().devices;
  std::vector<std::unique_ptr<accelerator>> a;
  std::vector<std::unique_ptr<block>> x, y;
  std::vector<kernel_id> axpy;
  for (int d = 0; d < n; ++d) {
    a.push_back(open(d));
    x.push_back(std::make_unique<block>(*a.back(), count * sizeof(double)));
    y.push_back(std::make_unique<block>(*a.back(), count * sizeof(double)));
    axpy.push_back(load_core(*a.back(), "axpy"));
  }
  for (std::size_t d = 0; d < a.size(); ++d) {
    fill(*a[d], 0, x[d]->at(), 1.0 + double(d), count);
    fill(*a[d], 0, y[d]->at(), 0.0, count);
  }
  for (int i = 0; i < 20; ++i)
    for (std::size_t d = 0; d < a.size(); ++d) launch_axpy(*a[d], 0, axpy[d], 0.5, x[d]->at(), y[d]->at(), count);
  for (std::size_t d = 0; d < a.size(); ++d)
    EXPECT_EQ(content<double>(*a[d], y[d]->at(), count), all(10 * (1.0 + double(d)))) << "device " << d;
  x.clear();
  y.clear();
}

TEST_P(conformance, threads_may_each_have_a_device_of_their_own) {
  const int n = GetParam().devices;
  std::vector<std::unique_ptr<accelerator>> a;
  for (int t = 0; t < 4; ++t) a.push_back(open(t % n, 2, std::uint64_t{8} << 20));  // logical devices
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        auto& mine = *a[static_cast<std::size_t>(t)];
        for (int i = 0; i < 25; ++i) {
          const block on(mine, 4096);
          fill(mine, 0, on.at(), 100 * t + i, 1024);
          mine.wait(1, 0, mine.record(0, false));
          right += content<int>(mine, on.at(), 1024, 1) == std::vector<int>(1024, 100 * t + i);
        }
      });
  }
  EXPECT_EQ(right, 100);
}

}  // namespace

}  // namespace conformance_suite
