// The scene of faults: an owner in this process, workers in others, work that shows each lost or repeated step.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../contender.hpp"
#include "../nodes/hosts.hpp"
#include "aftermath.hpp"
#include "ledger.hpp"
#include "tests/support/chains.hpp"
#include "tests/support/netns.hpp"
#include "tests/support/nodes.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

using test::chains;
using test::scope;
using namespace std::chrono_literals;

double ms_since(test::clock::time_point);
std::uint16_t port_of(const std::string& address);

/// Throws `wrong_answer` if a task is lost, if a result is wrong, or if it is not done in time.
void check(const troupe::runtime&, const chains&);
/// The same, as figures.
void count(const troupe::runtime&, const chains&, aftermath&);
/// Waits for what must become true for the measurement to make sense; throws what it was if it does not.
template <class F>
void await(const troupe::runtime& rt, const std::string& what, F&& f) {
  if (!test::comes_true(rt, f, 30s)) throw std::runtime_error("this did not come about: " + what);
}

/// How long it took to know that a node is gone, and from then until the tasks first in line had ended.
aftermath recovered(const troupe::runtime&, const std::string& name, test::clock::time_point since, const chains&);
/// From now until the tasks first in line have ended.
double flows_again(const chains&);
/// The longest time in which no task has ended, until all have.
double longest_pause(const troupe::runtime&, const chains&);

/// The workers "worker0", "worker1", ... and where tasks go that are to run on any of them.
std::string worker_name(int);
scope workers(int count);

/// Chains of tasks for a fault.
struct work_load {
  chains::results results = chains::results::come_home;
  int count = 8;
  std::uint64_t us = 2'000;  ///< a task takes
  troupe::index_t width = 512;
};

class scene {
 public:
  using starter = std::function<std::unique_ptr<test::worker>(int)>;

  /// On loopback.
  explicit scene(int count, troupe::options owner = test::owner_options(cluster_secret()));
  /// The owner on host 0 of a network, worker i on host i + 1.
  scene(const test::network&, int count);
  /// `start` starts a worker that is given the owner's address, `worker_name(i)`.
  scene(std::unique_ptr<troupe::runtime>, int count, starter start);

  scene(const scene&) = delete;
  scene& operator=(const scene&) = delete;

  [[nodiscard]] troupe::runtime& rt() const { return *rt_; }
  [[nodiscard]] test::worker& at(int worker) { return *workers_.at(static_cast<std::size_t>(worker)); }
  test::child& process(int worker) { return at(worker).process; }
  /// Another one in the place of one that has ended, or is to.
  void start_again(int worker);
  /// Until each worker has run so many tasks.
  void await_work(std::uint64_t tasks = 50) const;

  /// A fault happens to work; then all of it is waited for, workers that have died are replaced, and what is left is
  /// looked for. `happens(chains&)` gives the times.
  template <class F>
  aftermath survive(const work_load& what, F&& happens) {
    return survive([&](aftermath& found) {
      chains work(rt(), what.results, what.count, what.us, what.width);
      found = happens(work);
      count(rt(), work, found);
    });
  }
  /// `happens(aftermath&)` does work of its own, and has let go of it when it ends.
  aftermath survive(const std::function<void(aftermath&)>& happens);

 private:
  std::unique_ptr<troupe::runtime> rt_;
  starter start_;
  std::vector<std::unique_ptr<test::worker>> workers_;
};

}  // namespace bench
