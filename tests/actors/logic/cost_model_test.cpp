// What this file is for: what the cost model learns from samples, and how it chooses between offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "actors/logic/cost_model.hpp"

namespace {

using namespace troupe;
using logic::cost_model;
using logic::offer;
using logic::run_time;

TEST(run_time, is_unknown_until_a_second_sample_came) {
  run_time t;
  EXPECT_FALSE(t.known());
  EXPECT_EQ(t.predicted_ns(), 0);
  t.learn(500);
  EXPECT_FALSE(t.known());
  t.learn(100);
  EXPECT_TRUE(t.known());
  EXPECT_EQ(t.predicted_ns(), 100);
}

TEST(run_time, ignores_the_first_sample) {
  run_time t;
  t.learn(1e9f);
  for (int i = 0; i < 3; ++i) t.learn(100);
  EXPECT_EQ(t.predicted_ns(), 100);
  EXPECT_EQ(t.seen(), 4u);
}

TEST(run_time, is_not_moved_by_outliers_that_are_fewer_than_half) {
  run_time t;
  t.learn(0);
  for (const float ns : {100.f, 1e9f, 101.f, 1e9f, 99.f, 1e9f, 100.f, 1e9f, 100.f}) t.learn(ns);
  EXPECT_GE(t.predicted_ns(), 99);
  EXPECT_LE(t.predicted_ns(), 101);
}

TEST(run_time, follows_a_lasting_change_within_two_windows) {
  run_time t;
  for (int i = 0; i < 100; ++i) t.learn(100);
  for (std::uint32_t i = 0; i < 2 * run_time::window; ++i) t.learn(5000);
  EXPECT_EQ(t.predicted_ns(), 5000);
}

TEST(run_time, is_always_one_of_the_recent_samples) {
  std::mt19937 random(5);
  run_time t;
  std::vector<float> all;
  for (int i = 0; i < 500; ++i) {
    const auto ns = static_cast<float>(1 + random() % 1000);
    t.learn(ns);
    all.push_back(ns);
    if (!t.known()) continue;
    const std::size_t reach = std::min<std::size_t>(all.size(), 2 * run_time::window);
    ASSERT_NE(std::find(all.end() - static_cast<std::ptrdiff_t>(reach), all.end(), t.predicted_ns()), all.end()) << i;
  }
}

TEST(cost_model, keeps_kernels_sizes_and_kinds_apart) {
  cost_model model;
  const detail::kernel_info a{.name = "a", .key = 1}, b{.name = "b", .key = 2};
  const auto teach = [](run_time& t, float ns) { t.learn(ns), t.learn(ns); };
  teach(model.of(a, 10, device_kind::cpu), 100);
  teach(model.of(a, 11, device_kind::cpu), 200);
  teach(model.of(a, 10, device_kind::sim), 300);
  teach(model.of(b, 10, device_kind::cpu), 400);
  EXPECT_EQ(model.of(a, 10, device_kind::cpu).predicted_ns(), 100);
  EXPECT_EQ(model.of(a, 11, device_kind::cpu).predicted_ns(), 200);
  EXPECT_EQ(model.of(a, 10, device_kind::sim).predicted_ns(), 300);
  EXPECT_EQ(model.of(b, 10, device_kind::cpu).predicted_ns(), 400);
}

TEST(cost_model, gives_references_that_stay_valid_while_many_more_kernels_come) {
  cost_model model;
  std::vector<detail::kernel_info> kernels(2000);
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].key = i + 1;
  run_time& first = model.of(kernels[0], 3, device_kind::cpu);
  for (auto& k : kernels) model.of(k, 3, device_kind::cpu).learn(1);
  EXPECT_EQ(&first, &model.of(kernels[0], 3, device_kind::cpu));
  EXPECT_EQ(first.seen(), 1u);
}

TEST(cost_model, takes_two_records_of_one_kernel_key_for_the_same_kernel) {
  cost_model model;
  const detail::kernel_info here{.name = "k", .key = 7}, copy{.name = "k", .key = 7};
  EXPECT_EQ(&model.of(here, 1, device_kind::cpu), &model.of(copy, 1, device_kind::cpu));
}

TEST(cost_model, moves_bytes_within_one_space_for_nothing) {
  const cost_model model;
  EXPECT_EQ(model.transfer_ns(2, 2, 1 << 30), 0);
  EXPECT_EQ(model.transfer_ns(0, 1, 0), 0);
}

TEST(cost_model, adds_latency_to_bytes_over_bandwidth) {
  cost_model model;
  model.set_edge(0, 1, {2000, 4});
  EXPECT_FLOAT_EQ(model.transfer_ns(0, 1, 40'000), 2000 + 10'000);
}

TEST(cost_model, keeps_the_two_directions_of_an_edge_apart) {
  cost_model model;
  model.set_edge(0, 1, {10, 1});
  model.set_edge(1, 0, {70, 1});
  EXPECT_FLOAT_EQ(model.transfer_ns(0, 1, 100), 110);
  EXPECT_FLOAT_EQ(model.transfer_ns(1, 0, 100), 170);
}

TEST(cost_model, learns_latency_from_small_and_bandwidth_from_large_transfers) {
  cost_model model;
  for (int i = 0; i < 50; ++i) {
    model.learn_transfer(0, 1, 8, 1500);
    model.learn_transfer(0, 1, 1'000'000, 1500 + 500'000);  // two bytes a nanosecond
  }
  EXPECT_NEAR(model.transfer_ns(0, 1, 8), 1500, 20);
  EXPECT_NEAR(model.transfer_ns(0, 1, 2'000'000), 1'001'500, 10'000);
}

TEST(cost_model, prefers_a_fast_known_edge_to_an_unknown_one) {
  cost_model model;
  model.set_edge(0, 1, {5000, 10});
  EXPECT_LT(model.transfer_ns(0, 1, 1 << 20), model.transfer_ns(0, 2, 1 << 20));
}

TEST(best_offer, is_the_one_that_finishes_first_and_not_the_one_that_runs_shortest) {
  const std::vector<offer> offers{{0, 9000, 0, 100, 0}, {1, 0, 500, 3000, 0}};
  EXPECT_EQ(logic::best_offer(offers), 1u);
}

TEST(best_offer, lets_transfers_overlap_with_the_queue) {
  const std::vector<offer> offers{{0, 1000, 1000, 100, 0}, {1, 0, 0, 1200, 0}};
  EXPECT_EQ(logic::best_offer(offers), 0u);
}

TEST(best_offer, breaks_a_tie_by_fewer_bytes_and_then_by_the_lower_id) {
  EXPECT_EQ(logic::best_offer(std::vector<offer>{{0, 0, 0, 10, 64}, {1, 0, 0, 10, 8}, {2, 0, 0, 10, 8}}), 1u);
  EXPECT_EQ(logic::best_offer(std::vector<offer>{{0, 0, 0, 10, 8}, {1, 0, 0, 10, 8}}), 0u);
}

TEST(size_class, grows_by_one_for_twice_the_bytes) {
  for (std::uint64_t bytes = 1; bytes < (std::uint64_t{1} << 40); bytes *= 2)
    ASSERT_EQ(logic::size_class_of(2 * bytes), logic::size_class_of(bytes) + 1) << bytes;
  EXPECT_EQ(logic::size_class_of(1024), logic::size_class_of(1500));
}

}  // namespace
