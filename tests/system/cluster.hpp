// What this file is for: an owner in the test's process, workers in processes of their own, and work that checks itself.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <troupe/credentials.hpp>
#include <troupe/troupe.hpp>

#include "tests/support/netns.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/proxy.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/system/kernels.hpp"

namespace test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using troupe::scope;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;  // everything is slow then: times are recorded, not judged
#else
inline constexpr bool sanitized = false;
#endif

inline double seconds_since(clock::time_point from) {
  return std::chrono::duration<double>(clock::now() - from).count();
}

/// A secret for the nodes of one test.
class secret {
 public:
  secret() { troupe::make_cluster_secret(file()); }
  std::string file() const { return (folder_.path() / "secret").string(); }

 private:
  scratch_folder folder_;
};

inline troupe::options owner_options(const secret& s) {
  troupe::options o;
  o.threads = 1;
  o.cluster.name = "system-test";
  o.cluster.node = "owner";
  o.cluster.secret_file = s.file();
  o.cluster.listen = {"127.0.0.1:0"};
  return o;
}

/// An owner whose threads stay where they were made, on host 0 of a network; null if they cannot.
inline std::unique_ptr<troupe::runtime> owner_on_host_0(const network& net, const secret& proof) {
  std::unique_ptr<troupe::runtime> rt;
  std::thread([&] {
    if (::setns(net.on(0).net_namespace, CLONE_NEWNET) != 0) return;
    troupe::options o = owner_options(proof);
    o.cluster.listen = {net.address(0) + ":4711"};
    rt = std::make_unique<troupe::runtime>(std::move(o));
  }).join();
  return rt;
}

/// A worker process that joins at an address and can be reached at another.
class worker {
 public:
  worker(const std::string& name, const secret& s, const std::string& join, const std::string& listen = "127.0.0.1:0",
         const child_options& where = {})
      : process({"/proc/self/exe", "worker", name, s.file(), listen, join}, where) {}
  /// Where it listens, once it does.
  std::string address() { return process.line_after("listening "); }
  /// What it holds for others: "nodes 1 unfinished 0 arrays 1 bytes 4096".
  std::string report() {
    process.tell("report");
    return process.line_after("report ");
  }
  /// Bodies that it has run.
  std::uint64_t ran() {
    process.tell("ran");
    return std::stoull(process.line_after("ran "));
  }

  child process;
};

/// Looks whenever something may have changed; false if it does not become true in time.
template <class F>
bool comes_true(const troupe::runtime& rt, F&& f, std::chrono::milliseconds limit = 20s) {
  const auto deadline = clock::now() + limit;
  while (!f()) {
    if (clock::now() > deadline) return false;
    rt.wait_for_nodes(1000, 1ms);  // which never are there: until a node has come or gone, or a millisecond has passed
  }
  return true;
}

inline std::uint64_t tasks_of(const troupe::runtime& rt, const std::string& name) {
  for (const auto& n : rt.nodes())
    if (n.name == name) return n.tasks;
  return 0;
}
inline bool is_there(const troupe::runtime& rt, const std::string& name) {
  return std::ranges::count(rt.nodes(), name, &troupe::node_report::name) != 0;
}

/// Chains of hashes, one for each tile, and each step a task.
class chains {
 public:
  static constexpr troupe::index_t width = 512;
  /// `home`: a task changes part of its tile only, so that what it has made comes back with it and is never lost.
  enum class results { come_home, stay_there };

  chains(troupe::runtime& rt, results which, int count, std::uint64_t us)
      : rt_(rt),
        data_(rt.filled<std::uint64_t>({count * width}, troupe::tiles(width), 1)),
        which_(which),
        count_(count),
        us_(us) {}

  /// So many more steps of each chain.
  void grow(int steps, const scope& where = {}) {
    for (int i = 0; i < steps; ++i, ++steps_)
      for (int c = 0; c < count_; ++c) {
        const troupe::box<1> part{{c * width}, {(c + 1) * width - (which_ == results::come_home ? 1 : 0)}};
        tasks_.push_back(rt_.spawn({.where = where}, link_on, troupe::update(data_.sub(part)), steps_, us_));
      }
  }
  /// How many are wrong; throws what reading throws.
  int wrong() const {
    const auto v = data_.read();
    std::uint64_t right = 1;
    for (std::uint64_t s = 0; s < steps_; ++s) right = hashed(right, s);
    int n = 0;
    for (troupe::index_t i = 0; i < count_ * width; ++i) {
      const bool untouched = which_ == results::come_home && i % width == width - 1;
      n += v(i) == (untouched ? 1 : right) ? 0 : 1;
    }
    return n;
  }
  std::uint64_t spawned() const { return tasks_.size(); }
  std::uint64_t finished() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(tasks_, [](const auto& f) { return f.is_ready(); }));
  }
  /// Waits until the tasks have ended that are first in line, one of each chain at most; false if they do not in time.
  bool first_in_line_end(std::chrono::milliseconds limit) const {
    std::vector<troupe::future<void>> first;
    for (const auto& f : tasks_)
      if (!f.is_ready() && first.size() < static_cast<std::size_t>(count_)) first.push_back(f);
    const auto deadline = clock::now() + limit;
    return std::ranges::all_of(first, [&](const auto& f) { return f.wait_for(deadline - clock::now()); });
  }
  const std::vector<troupe::future<void>>& tasks() const { return tasks_; }

 private:
  troupe::runtime& rt_;
  troupe::array<std::uint64_t, 1> data_;
  results which_;
  int count_;
  std::uint64_t us_, steps_ = 0;
  std::vector<troupe::future<void>> tasks_;
};

/// Expects that a node is found gone in time, and that the work first in line is done soon afterwards.
inline void expect_gone_and_flowing(const troupe::runtime& rt, const std::string& name, clock::time_point since,
                                    double detected_max, const chains& work) {
  ASSERT_TRUE(comes_true(rt, [&] { return !is_there(rt, name); })) << name << " is still there";
  const double detected = seconds_since(since);
  const auto known = clock::now();
  EXPECT_LT(work.finished(), work.spawned()) << "too little work: it was not in the middle of it";
  EXPECT_TRUE(work.first_in_line_end(10s));
  const double flows = seconds_since(known);
  if (!sanitized) {
    EXPECT_LT(detected, detected_max);
    EXPECT_LT(flows, 1.0);
  }
  testing::Test::RecordProperty("detected_ms", static_cast<int>(detected * 1000));
  testing::Test::RecordProperty("flows_ms", static_cast<int>(flows * 1000));
}

/// Whether all results are right. If not, then all that may be said is that data has been lost: that it says so is checked.
// (Its only copy was where it was made.)
inline bool right_or_lost(const chains& c) {
  try {
    const int wrong = c.wrong();
    EXPECT_EQ(wrong, 0);
    return true;
  } catch (const troupe::task_failed& e) {
    bool lost = e.code() == troupe::errc::data_lost;
    try {
      e.rethrow_cause();
    } catch (const troupe::error& cause) {
      lost |= cause.code() == troupe::errc::data_lost;
    } catch (...) {
    }
    EXPECT_TRUE(lost) << e.what();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::data_lost) << e.what();
  }
  return false;
}

}  // namespace test
