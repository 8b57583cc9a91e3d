// What this file is for: fails the test during which a core group stands still beside work for 100 ms.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sanitizers.hpp"

namespace troupe::detail {
// A function of the library's inside; null where that is out of reach, as in a shared library.
[[gnu::weak]] std::vector<std::string> stalled_groups();
}  // namespace troupe::detail

namespace {

using namespace std::chrono_literals;

class watchdog final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override {
    if (!&troupe::detail::stalled_groups) return;
    over_ = false;
    thread_ = std::thread([this] { watch(); });
  }
  void OnTestEnd(const testing::TestInfo&) override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard hold(lock_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  static constexpr auto look_every = test::sanitized ? 200ms : 20ms;
  static constexpr int looks = 5;

  void watch() {
    std::map<std::string, int> standing;  // how often in a row each was seen so
    std::unique_lock hold(lock_);
    while (!over_) {
      const auto before = std::chrono::steady_clock::now();
      if (ended_.wait_for(hold, look_every, [&] { return over_; })) return;
      // Where this thread does not get its time, others do not either.
      if (std::chrono::steady_clock::now() - before > 2 * look_every) standing.clear();
      std::map<std::string, int> now;
      for (const std::string& name : troupe::detail::stalled_groups()) now[name] = standing[name] + 1;
      standing = std::move(now);
      for (const auto& [name, times] : standing)
        if (times == looks) ADD_FAILURE() << name << " has tasks that could run, and nobody has come for 100 ms";
    }
  }

  std::thread thread_;
  std::mutex lock_;
  std::condition_variable ended_;
  bool over_ = false;
};

[[maybe_unused]] const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new watchdog);
  return true;
}();

}  // namespace
