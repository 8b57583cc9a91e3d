// What this file is for: one thread that waits for times and descriptors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/waits.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

namespace {

using namespace std::chrono_literals;
using troupe::net::waits;
using clock = std::chrono::steady_clock;

// Numbers in the order in which they came.
class marks {
 public:
  std::function<void()> put(int n) {
    return [this, n] {
      const std::lock_guard hold(lock_);
      all_.push_back(n);
      changed_.notify_all();
    };
  }
  bool reaches(std::size_t count) {
    std::unique_lock hold(lock_);
    return changed_.wait_for(hold, 30s, [&] { return all_.size() >= count; });
  }
  std::vector<int> all() {
    const std::lock_guard hold(lock_);
    return all_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<int> all_;
};

TEST(waits, calls_in_the_order_of_the_times_and_not_before_them) {
  marks m;
  waits w;
  const auto begin = clock::now();
  w.at(begin + 60ms, m.put(3));
  w.at(begin + 20ms, m.put(1));
  w.at(begin + 40ms, m.put(2));
  w.at(begin - 1s, m.put(0));
  ASSERT_TRUE(m.reaches(4));
  EXPECT_GE(clock::now() - begin, 60ms);
  EXPECT_EQ(m.all(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(waits, calls_from_many_threads_all_come) {
  marks m;
  waits w;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) w.at(clock::now() + std::chrono::microseconds(i % 7 * 100), m.put(i));
    });
  for (auto& t : threads) t.join();
  EXPECT_TRUE(m.reaches(2000));
}

TEST(waits, calls_when_a_descriptor_can_be_read_or_has_been_closed_at_its_other_end) {
  marks m;
  waits w;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto first = w.when(ends[0], false, m.put(1));
  const auto second = w.when(ends[1], true, m.put(0));  // there is room in the pipe
  ASSERT_TRUE(m.reaches(1));
  EXPECT_EQ(m.all(), std::vector<int>{0});
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  ASSERT_TRUE(m.reaches(2));
  char c;
  ASSERT_EQ(::read(ends[0], &c, 1), 1);
  const auto third = w.when(ends[0], false, m.put(2));
  ::close(ends[1]);
  ASSERT_TRUE(m.reaches(3));
  ::close(ends[0]);
}

TEST(waits, a_watch_that_goes_closes_its_copy_of_the_descriptor) {
  marks m;
  waits w;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  auto watch = w.when(ends[0], false, m.put(1));
  ::close(ends[0]);
  watch.reset();
  // The writer is told, as soon as the last copy is closed, that nobody reads.
  std::signal(SIGPIPE, SIG_IGN);
  const auto end = clock::now() + 30s;
  while (::write(ends[1], "x", 1) == 1 && clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(errno, EPIPE);
  EXPECT_TRUE(m.all().empty());
  ::close(ends[1]);
}

TEST(waits, a_file_can_be_read_at_once_and_what_is_not_open_is_refused) {
  marks m;
  waits w;
  const int file = ::open("/proc/self/exe", O_RDONLY);
  const auto watch = w.when(file, false, m.put(1));
  EXPECT_TRUE(m.reaches(1));
  ::close(file);
  EXPECT_THROW(static_cast<void>(w.when(-1, false, [] {})), troupe::error);
}

TEST(waits, the_last_who_keeps_it_may_be_its_own_thread) {
  marks m;
  auto w = std::make_shared<waits>();
  waits* const at = w.get();
  at->at(clock::now() + 1ms, [w = std::move(w), put = m.put(1)]() mutable {
    w.reset();
    put();
  });
  EXPECT_TRUE(m.reaches(1));
}

TEST(waits, the_process_has_one_while_somebody_keeps_it) {
  const auto a = waits::shared(), b = waits::shared();
  EXPECT_EQ(a, b);
  const std::weak_ptr<waits> seen = a;
  EXPECT_FALSE(seen.expired());
}

}  // namespace
