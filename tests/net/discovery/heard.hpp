// What this file is for: what discovery tells a test, waited for with a deadline.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "net/discovery.hpp"

namespace test {

class heard {
 public:
  std::function<void(std::vector<troupe::net::endpoint>)> teller() {
    return [this](std::vector<troupe::net::endpoint> some) {
      const std::lock_guard lock(mutex_);
      for (auto& e : some) all_.push_back(std::move(e));
      changed_.notify_all();
    };
  }
  std::vector<troupe::net::endpoint> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  /// True once it has been told so often.
  bool waits_for(const troupe::net::endpoint& e, std::ptrdiff_t times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return std::count(all_.begin(), all_.end(), e) >= times; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<troupe::net::endpoint> all_;
};

}  // namespace test
