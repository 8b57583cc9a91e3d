// What this file is for: what the cost model learns from samples, and how it chooses between offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "actors/logic/scheduling/cost_model.hpp"

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

TEST(cost_model, finds_what_is_known_and_adds_nothing) {
  cost_model m;
  const detail::kernel_info k{.name = "kernel", .key = 1}, without_key{.name = "closure"};
  EXPECT_EQ(m.find(k, 3, device_kind::cpu), nullptr);
  run_time& known = m.of(k, 3, device_kind::cpu);
  run_time& other = m.of(without_key, 3, device_kind::cpu);
  for (logic::size_class s = 0; s < 200; ++s) m.of(k, s, device_kind::cuda);  // takes its shortcut
  EXPECT_EQ(m.find(k, 3, device_kind::cpu), &known);
  EXPECT_EQ(m.find(without_key, 3, device_kind::cpu), &other);
  EXPECT_EQ(m.find(without_key, 4, device_kind::cpu), nullptr);
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

TEST(run_time, starts_from_what_is_remembered_and_counts_it_as_one_sample) {
  run_time t;
  t.remember(700);
  EXPECT_TRUE(t.known());
  EXPECT_EQ(t.predicted_ns(), 700);
  EXPECT_EQ(t.seen(), 0u);
  t.remember(900);  // the first one stays
  EXPECT_EQ(t.predicted_ns(), 700);
}

TEST(run_time, believes_the_third_call_of_a_kernel_that_has_changed) {
  for (const float now : {10.0f, 1e6f}) {  // faster, slower
    run_time t;
    t.remember(5000);
    t.learn(now);  // cold
    EXPECT_EQ(t.predicted_ns(), 5000);
    t.learn(now);
    t.learn(now);
    EXPECT_EQ(t.predicted_ns(), now);
  }
}

TEST(run_time, is_not_remembered_over_what_it_has_seen) {
  run_time t;
  t.learn(100);
  t.remember(5);
  EXPECT_FALSE(t.known());
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

TEST(cost_model, learns_both_directions_from_one_until_the_other_is_measured) {
  cost_model model;
  model.learn_transfer(1, 0, 1 << 20, 1e6f);
  EXPECT_FLOAT_EQ(model.transfer_ns(0, 1, 1 << 20), 1e6f);
  EXPECT_FLOAT_EQ(model.transfer_ns(1, 0, 1 << 20), 1e6f);
  model.learn_transfer(0, 1, 1 << 20, 2e6f);  // its first own one says all
  EXPECT_FLOAT_EQ(model.transfer_ns(0, 1, 1 << 20), 2e6f);
  for (int i = 0; i < 30; ++i) model.learn_transfer(1, 0, 1 << 20, 9e6f);
  EXPECT_FLOAT_EQ(model.transfer_ns(0, 1, 1 << 20), 2e6f);
}

TEST(cost_model, knows_of_a_link_that_became_ten_times_slower_or_faster_within_twenty_transfers) {
  for (const float change : {0.1f, 10.0f}) {
    cost_model model;
    model.set_edge(0, 1, {10'000, 10});
    const float bytes = 4 << 20, ns = 10'000 + bytes / (10 * change);
    for (int i = 0; i < 20; ++i) model.learn_transfer(0, 1, 4 << 20, ns);
    EXPECT_NEAR(model.transfer_ns(0, 1, 4 << 20), ns, 0.1f * ns) << change;
  }
}

TEST(cost_model, is_moved_little_by_one_transfer_that_was_held_up) {
  cost_model model;
  model.set_edge(0, 1, {10'000, 10});
  const float before = model.transfer_ns(0, 1, 1 << 20);
  model.learn_transfer(0, 1, 1 << 20, 1000 * before);
  EXPECT_LT(model.transfer_ns(0, 1, 1 << 20), 2 * before);
}

TEST(cost_model, knows_a_link_that_is_held_up_now_and_then_for_what_it_mostly_is) {
  cost_model m;
  m.set_edge(0, 1, {1'000, 1});
  for (int i = 0; i < 100; ++i) {
    m.learn_transfer(0, 1, 1'000'000, 4'004'000);
    for (int k = 0; k < 3; ++k) m.learn_transfer(0, 1, 1'000'000, 1'001'000);
  }
  EXPECT_LT(m.transfer_ns(0, 1, 1'000'000), 1.2f * 1'001'000);
}

TEST(cost_model, takes_nothing_absurd_from_a_copy_that_was_faster_than_the_latency) {
  cost_model model;
  model.set_edge(0, 1, {20'000, 10});
  model.learn_transfer(0, 1, 4096, 9'000);
  EXPECT_GT(model.transfer_ns(0, 1, 100 << 20), 0.9f * static_cast<float>(100 << 20) / 10);
  EXPECT_LT(model.transfer_ns(0, 1, 64), 20'000);
}

constexpr unsigned char cpu_and_sim =
    1u << static_cast<unsigned>(device_kind::cpu) | 1u << static_cast<unsigned>(device_kind::sim);

TEST(cost_model, remembers_what_another_one_has_measured) {
  const detail::kernel_info k{.name = "k", .key = 7, .kinds = cpu_and_sim};
  cost_model first, second;
  for (int i = 0; i < 5; ++i) first.of(k, 10, device_kind::sim).learn(1234);
  first.of(k, 10, device_kind::cpu).learn(1);  // too little to tell others
  ASSERT_EQ(first.measured().size(), 1u);
  second.remember(first.measured()[0]);
  EXPECT_EQ(second.of(k, 10, device_kind::sim).predicted_ns(), 1234);
  EXPECT_FALSE(second.of(k, 10, device_kind::cpu).known());
  EXPECT_FALSE(second.of(k, 11, device_kind::sim).known());
  EXPECT_TRUE(second.measured().empty());  // nothing has been measured there
}

TEST(cost_model, remembers_nothing_of_kernels_that_run_on_one_kind) {
  const detail::kernel_info k{.name = "k", .key = 7};
  cost_model model;
  for (int i = 0; i < 5; ++i) model.of(k, 10, device_kind::cpu).learn(1234);
  EXPECT_TRUE(model.measured().empty());
}

TEST(cost_model, takes_a_kernel_with_another_text_for_another_one_of_which_it_remembers_nothing) {
  const auto with_text = [](const char* text) {
    detail::kernel_info k{.name = "k", .key = 7, .kinds = cpu_and_sim};
    k.texts[static_cast<std::size_t>(device_kind::sim)].text = text;
    return k;
  };
  const auto before = with_text("x = 1"), same = with_text("x = 1"), changed = with_text("x = 2");
  cost_model first, second, third;
  for (int i = 0; i < 5; ++i) first.of(before, 10, device_kind::sim).learn(1234);
  second.remember(first.measured().at(0));
  third.remember(first.measured().at(0));
  EXPECT_TRUE(second.of(same, 10, device_kind::sim).known());
  EXPECT_FALSE(third.of(changed, 10, device_kind::sim).known());
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

TEST(cost_model, takes_back_what_a_link_was_believed_to_cost_if_it_costs_less_than_half_of_it) {
  cost_model m;
  const std::uint64_t bytes = 48u << 10;
  m.set_edge(0, 3, {1.7e6f, 1.0f});  // measured on a busy machine
  EXPECT_TRUE(m.correct(0, 3, bytes, 100'000, 40'000));
  EXPECT_LE(m.transfer_ns(0, 3, bytes), 100'100);
  EXPECT_LE(m.transfer_ns(0, 3, 1), 40'100);
  m.set_edge(0, 4, {20'000, 0.001f});
  EXPECT_TRUE(m.correct(0, 4, bytes, 100'000, 40'000));
  EXPECT_LE(m.transfer_ns(0, 4, bytes), 100'100);
  EXPECT_EQ(m.learned(0, 4).cost.latency_ns, 20'000);
  EXPECT_EQ(m.learned(0, 4).transfers, 0u);
}

TEST(cost_model, believes_a_link_that_costs_more_when_it_is_tried_or_not_much_less) {
  cost_model m;
  const std::uint64_t bytes = 48u << 10;
  m.set_edge(0, 3, {50'000, 1.0f});
  for (const float ns : {50'000.0f, 99'000.0f, 1e6f, 1e12f}) EXPECT_FALSE(m.correct(0, 3, bytes, ns, 40'000)) << ns;
  for (const float ns : {0.0f, -1.0f}) EXPECT_FALSE(m.correct(0, 3, bytes, ns, 40'000)) << ns;
  EXPECT_FALSE(m.correct(0, 3, 0, 10, 10));
  EXPECT_FALSE(m.correct(3, 3, bytes, 10, 10));
  EXPECT_FALSE(m.correct(0, 3, bytes, 10'000, 0)) << "nobody knows how long a round trip takes";
  EXPECT_EQ(m.learned(0, 3).cost.latency_ns, 50'000);
  EXPECT_EQ(m.learned(0, 3).cost.bytes_per_ns, 1.0f);
}

}  // namespace
