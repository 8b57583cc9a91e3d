// What this file is for: an owner in the test's process, workers in processes of their own, work that checks itself.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <troupe/credentials.hpp>
#include <troupe/troupe.hpp>

#include "tests/support/chains.hpp"
#include "tests/support/netns.hpp"
#include "tests/support/nodes.hpp"
#include "tests/support/proxy.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace test {

/// A secret for the nodes of one test.
class secret {
 public:
  secret() { troupe::make_cluster_secret(file()); }
  std::string file() const { return (folder_.path() / "secret").string(); }
  operator std::string() const { return file(); }

 private:
  scratch_folder folder_;
};

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

/// Whether all results are right. If not, then all that may be said is that data has been lost: that it says so is
/// checked.
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
