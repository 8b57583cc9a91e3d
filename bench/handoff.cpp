// The bare floor of a round trip: two threads, a mutex and a condition variable, nothing else.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "workloads.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace bench {

namespace {

class handoff final : public contender {
 public:
  ~handoff() override { stop(); }

  std::string name() const override { return "handoff"; }
  std::string description() const override { return "bare condition-variable hand-off between two threads"; }

  void start(unsigned, purpose) override {
    closed_ = false;
    server_ = std::jthread([this] { serve(); });
  }

  void stop() override {
    if (!server_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    asked_.notify_one();
    server_.join();
  }

  std::optional<double> round_trip(std::size_t samples, std::chrono::microseconds idle) override {
    const executed proof;
    const auto p50 = median_round_trip(samples, idle, [this] {
      std::unique_lock lock(mutex_);
      request_ = true;
      asked_.notify_one();
      answered_.wait(lock, [this] { return !request_; });
    });
    proof.check(samples);
    return p50;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return request_ || closed_; });
      if (closed_) return;
      tally::add();
      request_ = false;
      answered_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable answered_;
  bool request_ = false;
  bool closed_ = false;
  std::jthread server_;
};

}  // namespace

std::unique_ptr<contender> make_handoff() { return std::make_unique<handoff>(); }

}  // namespace bench
