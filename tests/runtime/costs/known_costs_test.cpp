// What this file is for: what one runtime has measured is known to the next on the same hardware, and to no other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/costs/known_costs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/actors/gpu/paper_accelerator.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe::detail;
using test::paper_accelerator;
using troupe::device_kind;
using troupe::devices::link_speeds;
using troupe::logic::remembered_time;

class costs_known : public testing::Test {
 protected:
  known_costs opened(int threads = 4) const { return known_costs(folder_.path().string(), threads); }
  /// As if an earlier runtime had measured the link.
  void remember(const std::string& link, link_speeds s) const {
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    cost_table t;
    t.links.push_back({link, now.count(), s});
    ASSERT_TRUE(cost_store(folder_.path()).add(t, now.count()));
  }
  static std::vector<float> ns_of(const known_costs& k) {
    std::vector<float> all;
    for (const remembered_time& t : k.times()) all.push_back(t.ns);
    return all;
  }

  test::scratch_folder folder_;
  paper_accelerator device_{2, 1u << 20};
};

constexpr link_speeds slow{{2000, 4}, {3000, 5}};

TEST_F(costs_known, are_none_at_first_and_nothing_is_measured_unasked) {
  known_costs k = opened();
  EXPECT_FALSE(k.links_of(device_, false));
  paper_accelerator other(2, 1u << 20);
  EXPECT_FALSE(k.peers_of(device_, other, false));
  EXPECT_TRUE(k.times().empty());
  EXPECT_EQ(device_.copies_in + device_.copies_out + other.copies_in, 0);
}

TEST_F(costs_known, of_a_link_are_found_by_the_next_runtime) {
  remember(opened().key_of(device_), slow);
  known_costs k = opened();
  const auto found = k.links_of(device_, true);  // it is known: nothing is measured
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in.latency_ns, 2000);
  EXPECT_EQ(found->in.bytes_per_ns, 4);
  EXPECT_EQ(found->out.latency_ns, 3000);
  EXPECT_EQ(found->out.bytes_per_ns, 5);
  EXPECT_EQ(device_.copies_in + device_.copies_out, 0);
}

TEST_F(costs_known, of_a_link_become_better_by_what_was_learned_and_never_worse) {
  const std::string key = opened().key_of(device_);
  remember(key, slow);
  const auto rate_after = [&](link_speeds learned) {
    opened().correct(key, learned);
    return opened().links_of(device_, false)->in.bytes_per_ns;
  };
  EXPECT_EQ(rate_after({{4000, 2}, {6000, 2}}), 4) << "the machine may have been busy";
  EXPECT_EQ(rate_after({{2000, 5}, {3000, 5}}), 4) << "hardly faster";
  EXPECT_EQ(rate_after({{2000, 8}, {3000, 5}}), 8);
  EXPECT_EQ(rate_after({{2000, 8}, {3000, 9}}), 8);
  EXPECT_EQ(opened().links_of(device_, false)->out.bytes_per_ns, 9);
  EXPECT_EQ(rate_after({{1000, 7}, {3000, 9}}), 7) << "copies begin sooner";
}

TEST_F(costs_known, of_a_link_that_was_never_measured_are_not_made_of_what_was_learned) {
  const std::string key = opened().key_of(device_);
  opened().correct(key, {{1, 1000}, {1, 1000}});
  EXPECT_FALSE(opened().links_of(device_, false));
}

TEST_F(costs_known, of_kernels_hold_for_as_many_cores_as_they_were_measured_on) {
  opened(4).keep({{11, 3, device_kind::cpu, 250.0f}});
  const std::vector<remembered_time> found = opened(4).times();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kernel, 11u);
  EXPECT_EQ(found[0].size, 3);
  EXPECT_EQ(found[0].kind, device_kind::cpu);
  EXPECT_EQ(found[0].ns, 250.0f);
  EXPECT_TRUE(opened(8).times().empty());
}

TEST_F(costs_known, of_kernels_on_a_device_hold_where_there_is_such_a_device) {
  const device_kind kind = device_.facts().kind;
  ASSERT_NE(kind, device_kind::cpu);
  {
    known_costs k = opened();
    k.keep({{11, 3, kind, 250.0f}});  // of a device that it does not have
    k.links_of(device_, false);
    k.keep({{12, 3, kind, 350.0f}});
  }
  known_costs k = opened();
  EXPECT_TRUE(k.times().empty()) << "the device has not been opened";
  k.links_of(device_, false);
  EXPECT_EQ(ns_of(k), std::vector<float>{350.0f});
}

}  // namespace
