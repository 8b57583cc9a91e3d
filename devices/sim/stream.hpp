// What this file is for: streams: threads that run operations in order; events; what is captured instead of run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "devices/sim/launch.hpp"
#include "devices/sim/memory.hpp"

namespace troupe::soft_gpu {

using steady = std::chrono::steady_clock;

struct device;
class stream;

struct operation {
  device* on;
  bool always;  ///< also on a device that has failed: host functions and events, so that nobody hangs
  std::function<void(stream&)> run;
};

/// A point of a stream that is reached once.
class signal {
 public:
  void fire();
  bool fired() const;
  steady::time_point time() const;
  void wait() { wait_unless({}); }
  void wait_unless(const std::function<bool()>& given_up);
  void poke();  ///< waiters look again whether they have given up

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool fired_ = false;
  steady::time_point time_{};
};

/// The operations that streams are given while they are captured, in the order of the calls: an order that respects
/// every event, so
/// a replay runs it as one sequence.
class capture {
 public:
  /// How many operations of each stream come before a point.
  using knowledge = std::map<const stream*, std::size_t>;

  explicit capture(std::shared_ptr<stream> origin) : origin_(std::move(origin)) {}

  void append(const stream&, operation);
  void join(const std::shared_ptr<stream>&, const knowledge&);
  knowledge known_to(const stream&);
  void invalidate() { broken_ = true; }
  bool over() const { return over_; }
  /// Ends the capture of all streams.
  simError_t end(std::vector<operation>&);
  const stream* origin() const { return origin_.get(); }

 private:
  std::mutex mutex_;
  std::shared_ptr<stream> origin_;
  std::vector<std::shared_ptr<stream>> joined_;
  std::map<const stream*, knowledge> known_;
  std::vector<operation> operations_;
  std::atomic<bool> broken_ = false, over_ = false;
};

class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(device& d, std::uint64_t seed) : device_(d), seed_(seed), random_(seed) {}

  void begin();  ///< starts the thread, which keeps the stream alive
  /// False if the stream has ended.
  bool push(operation);
  /// Waits for all that has been pushed.
  void wait();
  bool idle() const;
  void close();    ///< the thread ends after what is queued
  void abandon();  ///< the rest of the queue is skipped, waits end
  void wait_for_end();

  device& owner() const { return device_; }
  std::shared_ptr<capture> capturing() const;
  void set_capture(std::shared_ptr<capture>);

  // Inside operations:
  kernel_runner& runner() { return *runner_; }
  void run(const operation&);
  void wait_for(const std::shared_ptr<signal>&);
  void hang();

 private:
  void work();
  void delay();

  device& device_;
  const std::uint64_t seed_;
  std::minstd_rand random_;
  kernel_runner* runner_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable wake_, progress_;
  std::deque<operation> queue_;
  std::uint64_t pushed_ = 0, finished_ = 0;
  int waiters_ = 0;
  bool asleep_ = false, closing_ = false, ended_ = false, gone_ = false;
  std::atomic<bool> abandoned_ = false;
  std::shared_ptr<signal> awaited_;
  std::shared_ptr<capture> capture_;
};

struct event {
  event(device& d, unsigned f) : on(d), flags(f) {}

  device& on;
  unsigned flags;
  std::mutex mutex;
  std::shared_ptr<signal> last;  // of the last record; null: none yet
  std::shared_ptr<capture> captured;
  capture::knowledge captured_after;
};

struct graph {
  using sequence = std::shared_ptr<const std::vector<operation>>;
  graph(device& d, sequence s) : on(d), operations(std::move(s)) {}

  device& on;
  sequence operations;
  std::mutex mutex;
  std::shared_ptr<signal> last;  // launch, if it can be launched
};

}  // namespace troupe::soft_gpu
