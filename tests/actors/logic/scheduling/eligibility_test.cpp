// What this file is for: which executors may run a task follows what is added, withdrawn, paused and held, at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/eligibility.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace troupe;
using logic::eligibility;
using logic::executor_set;

constexpr unsigned char bit(device_kind k) { return static_cast<unsigned char>(1u << static_cast<int>(k)); }

// Two core groups, a device, and two nodes that offer kernel `far`.
struct eligibility_test : testing::Test {
  eligibility_test() {
    const device_kind kinds[] = {device_kind::cpu, device_kind::cpu, device_kind::sim, device_kind::node,
                                 device_kind::node};
    for (std::uint16_t i = 0; i < 5; ++i) {
      detail::executor_facts f;
      f.id = i;
      f.kind = kinds[i];
      f.space = static_cast<detail::memory_space>(i < 2 ? 0 : i - 1);
      all.add(f);
    }
    both.kinds = static_cast<unsigned char>(bit(device_kind::cpu) | bit(device_kind::sim));
    offered = executor_set{3, 4};
    far.nodes = &offered;
    far.portable = true;
  }
  executor_set mask(const detail::kernel_info& k) { return masks(k).all; }
  const eligibility::masks& masks(const detail::kernel_info& k) {
    plain.kernel = &k;
    return all.masks_of(plain);
  }
  detail::task_record& scoped(const detail::kernel_info& k, executor_set where) {
    scoped_task.kernel = &k;
    scoped_task.extra = &extra;
    extra.executors = where;
    return scoped_task;
  }
  ~eligibility_test() override { scoped_task.extra = nullptr; }

  eligibility all;
  detail::shown_ids offered;
  detail::kernel_info cores{}, both{}, far{};
  detail::task_record plain, scoped_task;
  detail::task_extra extra;
};

TEST_F(eligibility_test, knows_who_could_if_none_were_withdrawn) {
  EXPECT_EQ(masks(both).ever, (executor_set{0, 1, 2}));
  all.withdraw(2);
  all.pause(1, true);
  EXPECT_EQ(masks(both).all, (executor_set{0, 1}));
  EXPECT_EQ(masks(both).ever, (executor_set{0, 1, 2}));
  EXPECT_EQ(all.masks_of(scoped(both, {0, 2})).ever, (executor_set{0, 2}));
  EXPECT_EQ(all.masks_of(scoped(both, {0, 2})).all, (executor_set{0}));
}

TEST_F(eligibility_test, knows_that_nodes_may_come_to_offer_a_kernel) {
  offered = executor_set{3};
  EXPECT_EQ(masks(far).all, (executor_set{0, 1, 3}));
  EXPECT_EQ(masks(far).ever, (executor_set{0, 1, 3, 4}));
  EXPECT_EQ(all.masks_of(scoped(far, {0, 4})).ever, (executor_set{0, 4}));
  EXPECT_EQ(masks(cores).ever, (executor_set{0, 1})) << "a body that cannot travel";
}

TEST_F(eligibility_test, knows_that_a_scope_may_name_nodes_that_come) {
  extra.options.where = scope::here() | scope::at("b");
  EXPECT_EQ(all.masks_of(scoped(far, executor_set{0, 1})).all, (executor_set{0, 1}));
  EXPECT_EQ(all.masks_of(scoped(far, executor_set{0, 1})).ever, (executor_set{0, 1, 3, 4}));
  EXPECT_EQ(all.masks_of(scoped(both, executor_set{0, 1})).ever, (executor_set{0, 1})) << "it does not travel";
  extra.options.where = scope::here();
  EXPECT_EQ(all.masks_of(scoped(far, executor_set{0, 1})).ever, (executor_set{0, 1}));
}

TEST_F(eligibility_test, is_of_executors_that_have_a_body) {
  EXPECT_EQ(mask(cores), (executor_set{0, 1}));
  EXPECT_EQ(mask(both), (executor_set{0, 1, 2}));
  EXPECT_EQ(mask(far), (executor_set{0, 1, 3, 4}));
}

TEST_F(eligibility_test, follows_a_withdrawal_though_masks_are_remembered) {
  EXPECT_EQ(mask(both), (executor_set{0, 1, 2}));
  all.withdraw(2);
  EXPECT_TRUE(all.is_withdrawn(2));
  EXPECT_EQ(mask(both), (executor_set{0, 1}));
  all.restore(2);
  EXPECT_EQ(mask(both), (executor_set{0, 1, 2}));
}

TEST_F(eligibility_test, follows_what_nodes_offer) {
  EXPECT_EQ(mask(far), (executor_set{0, 1, 3, 4}));
  offered = executor_set{4};
  EXPECT_EQ(mask(far), (executor_set{0, 1, 4}));
}

TEST_F(eligibility_test, remembers_the_masks_of_more_kernels_than_it_has_places_for) {
  std::vector<detail::kernel_info> many(64);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i].kinds = i % 2 == 0 ? bit(device_kind::cpu) : bit(device_kind::sim);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < many.size(); ++i)
      EXPECT_EQ(mask(many[i]), i % 2 == 0 ? (executor_set{0, 1}) : executor_set{2}) << i;
}

TEST_F(eligibility_test, of_a_paused_executor_is_not_for_now) {
  all.pause(2, true);
  EXPECT_EQ(masks(both).all, (executor_set{0, 1, 2}));
  EXPECT_EQ(masks(both).now, (executor_set{0, 1}));
  EXPECT_EQ(all.without_paused(executor_set{1, 2}), executor_set{1});
  all.restore(2);
  EXPECT_FALSE(all.is_paused(2)) << "who comes back is not paused";
  EXPECT_EQ(masks(both).now, (executor_set{0, 1, 2}));
}

TEST_F(eligibility_test, is_where_the_scope_allows_it_and_where_the_task_holds_something) {
  detail::task_record& t = scoped(far, executor_set{1, 3, 4});
  EXPECT_EQ(all.mask_of(t), (executor_set{1, 3, 4}));
  extra.holds_at = detail::holds_here;
  EXPECT_EQ(all.mask_of(t), executor_set{1});
  extra.holds_at = 4;
  EXPECT_EQ(all.mask_of(t), executor_set{4});
  extra.holds_at = 0;
  EXPECT_TRUE(all.mask_of(t).empty()) << "outside of its scope";
}

TEST_F(eligibility_test, tells_the_places_whatever_the_task_holds) {
  detail::task_record& t = scoped(far, executor_set{1, 3, 4});
  extra.holds_at = 4;
  all.pause(3, true);
  const auto p = all.nodes_for(t);
  EXPECT_TRUE(p.here);
  EXPECT_EQ(p.nodes, (executor_set{3, 4}));
  EXPECT_EQ(p.open, executor_set{4});
}

TEST_F(eligibility_test, waits_for_nodes_that_may_come_unless_the_task_says_where_it_runs) {
  plain.kernel = &far;
  EXPECT_FALSE(all.may_wait_for_nodes(plain)) << "all are here";
  all.withdraw(4);
  EXPECT_TRUE(all.may_wait_for_nodes(plain));
  plain.kernel = &cores;
  EXPECT_FALSE(all.may_wait_for_nodes(plain)) << "its scalars do not travel";
  EXPECT_TRUE(all.may_wait_for_nodes(scoped(far, executor_set::every())));
  EXPECT_FALSE(all.may_wait_for_nodes(scoped(far, executor_set{0, 3})));
}

}  // namespace
