// What this file is for: kernels that were offered are found by their keys, and stay where they are.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is the process's and never shrinks: other tests of this program offer kernels, too.
#include "actors/wire/kernel_registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

namespace {

using namespace troupe::detail;

offered_kernel made(const char* name, std::uint64_t key) {
  offered_kernel k{};
  k.info.name = name;
  k.info.key = key;
  return k;
}

TEST(kernel_registry, finds_what_was_offered_and_nothing_else) {
  EXPECT_EQ(find_offer(0xabcd0001), nullptr);
  offer_kernel(made("registry.one", 0xabcd0001));
  const offered_kernel* const found = find_offer(0xabcd0001);
  ASSERT_NE(found, nullptr);
  EXPECT_STREQ(found->info.name, "registry.one");
  EXPECT_EQ(find_offer(0xabcd0002), nullptr);
}

TEST(kernel_registry, keeps_the_first_offer_of_a_key_where_it_is) {
  offer_kernel(made("registry.first", 0xabcd0010));
  const offered_kernel* const first = find_offer(0xabcd0010);
  ASSERT_NE(first, nullptr);
  for (std::uint64_t k = 0; k < 500; ++k) offer_kernel(made("registry.many", 0xabcd1000 + k));
  offer_kernel(made("registry.second", 0xabcd0010));
  EXPECT_EQ(find_offer(0xabcd0010), first);
  EXPECT_STREQ(first->info.name, "registry.first");
}

TEST(kernel_registry, lists_the_keys_in_order_each_once) {
  for (const std::uint64_t k : {0xabcd0023u, 0xabcd0021u, 0xabcd0022u, 0xabcd0021u})
    offer_kernel(made("registry.listed", k));
  const std::vector<std::uint64_t> all = offered_keys();
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "each once";
  for (const std::uint64_t k : {0xabcd0021u, 0xabcd0022u, 0xabcd0023u})
    EXPECT_TRUE(std::ranges::binary_search(all, std::uint64_t{k}));
}

TEST(kernel_registry, knows_the_parameters_and_the_body_of_an_offered_kernel) {
  constexpr auto k = troupe::kernel<troupe::in<int, 2>, troupe::red<double, 1>, bool, long>("registry.whole")
                         .on(troupe::cpu, [](troupe::view<const int, 2>, troupe::view<double, 1>, bool, long) {});
  const troupe::offer offered{k};
  const offered_kernel* const found = find_offer(k.info().key);
  ASSERT_NE(found, nullptr);
  EXPECT_STREQ(found->info.name, "registry.whole");
  EXPECT_NE(found->body, nullptr);
  EXPECT_NE(found->fill, nullptr);
  ASSERT_EQ(found->parameters.size(), 4u);
  EXPECT_TRUE(found->parameters[0].is_array);
  EXPECT_EQ(found->parameters[0].rank, 2);
  EXPECT_EQ(found->parameters[0].mode, troupe::access_mode::read);
  EXPECT_EQ(found->parameters[1].mode, troupe::access_mode::reduce);
  EXPECT_EQ(found->parameters[1].bytes, sizeof(double));
  EXPECT_TRUE(found->parameters[2].is_truth);
  EXPECT_FALSE(found->parameters[3].is_array);
  EXPECT_EQ(found->parameters[3].bytes, sizeof(long));
}

}  // namespace
