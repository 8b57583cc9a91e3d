// What faults happen to: an owner in this process, workers in others, work that shows each lost or repeated step.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../contender.hpp"
#include "../nodes/hosts.hpp"
#include "tests/support/chains.hpp"
#include "tests/support/netns.hpp"
#include "tests/support/nodes.hpp"

#include <memory>
#include <string>
#include <vector>

namespace bench {

using test::chains;
using test::scope;
using namespace std::chrono_literals;

double ms_since(test::clock::time_point);

/// Throws `wrong_answer` if a task is lost, if a result is wrong, or if it is not done in time.
void check(const troupe::runtime&, const chains&);
/// What must become true for the measurement to make sense; throws what it was if it does not.
template <class F>
void await(const troupe::runtime& rt, const std::string& what, F&& f) {
  if (!test::comes_true(rt, f, 30s)) throw std::runtime_error("this did not come about: " + what);
}

/// How long it took to know that a node is gone, and from then until the tasks first in line had ended.
struct recovery {
  double detected = 0, flows = 0;
};
recovery recovered(const troupe::runtime&, const std::string& name, test::clock::time_point since, const chains&);
/// From now until the tasks first in line have ended.
double flows_again(const chains&);
/// The longest time in which no task has ended, until all have.
double longest_pause(const troupe::runtime&, const chains&);

/// The workers "one", "two", ... and where tasks go that are to run on any of them.
std::string worker_name(int);
scope workers(int count);

/// On loopback.
struct scene {
  troupe::runtime rt{test::owner_options(cluster_secret())};
  std::vector<std::unique_ptr<test::worker>> all;

  explicit scene(int count);
  [[nodiscard]] std::string address() const { return rt.addresses().front(); }
  test::child& process(int worker) { return all.at(static_cast<std::size_t>(worker))->process; }
  /// Until each worker has run so many tasks.
  void await_work(std::uint64_t tasks = 50) const;
};

/// In a network of its own: the owner on host 0, worker i on host i + 1.
struct network_scene {
  test::network net;
  std::unique_ptr<troupe::runtime> rt;
  std::vector<std::unique_ptr<test::worker>> all;

  explicit network_scene(int count);
};

}  // namespace bench
