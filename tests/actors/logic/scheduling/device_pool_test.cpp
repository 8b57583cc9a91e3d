// What this file is for: which devices a request gets, when it waits for a whole card, and that each comes back once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "actors/logic/scheduling/device_pool.hpp"

namespace {

using namespace troupe;
using logic::device_pool;
using names = std::vector<std::string>;
using held = std::vector<held_device>;

constexpr std::uint64_t patience = 100;

// Cards of so many slots each, named a0 a1 .. b0 ..
device_pool pool_of(std::initializer_list<int> cards) {
  device_pool p(patience);
  std::uint16_t card = 0;
  for (const int slots : cards) {
    for (int i = 0; i < slots; ++i)
      p.add({std::string(1, static_cast<char>('a' + card)) + std::to_string(i), device_kind::sim, i}, card);
    ++card;
  }
  return p;
}

names names_of(const held& h) {
  names all;
  for (const held_device& d : h) all.push_back(d.name);
  return all;
}

// In a round of its own.
held taken(device_pool& p, std::size_t count, std::uint64_t now = 1) {
  held h;
  std::uint64_t since = 0;
  p.begin_round();
  p.take(count, since, now, h);
  return h;
}

TEST(device_pool, says_how_many_were_asked_of_a_runtime_without_devices) {
  const auto text_of = [](double amount) {
    try {
      device_pool(patience).check({{"gpu", amount}});
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::no_resource);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(text_of(3).find("3 devices asked, 0 is the maximum"), std::string::npos) << text_of(3);
  EXPECT_NE(text_of(troupe::resource::all).find("all devices asked"), std::string::npos);
}

TEST(device_pool, gives_one_device_of_the_card_that_fewest_share) {
  auto p = pool_of({2, 2});
  EXPECT_EQ(names_of(taken(p, 1)), names{"a0"});
  EXPECT_EQ(names_of(taken(p, 1)), names{"b0"});
  EXPECT_EQ(names_of(taken(p, 1)), names{"a1"});
  EXPECT_EQ(names_of(taken(p, 1)), names{"b1"});
  EXPECT_EQ(names_of(taken(p, 1)), names{});
  EXPECT_EQ(p.free(), 0u);
}

TEST(device_pool, gives_several_of_the_card_that_they_fill_best) {
  auto p = pool_of({4, 2, 3});
  EXPECT_EQ(names_of(taken(p, 2)), (names{"b0", "b1"}));
  EXPECT_EQ(names_of(taken(p, 2)), (names{"c0", "c1"}));
  EXPECT_EQ(names_of(taken(p, 4)), (names{"a0", "a1", "a2", "a3"}));
}

TEST(device_pool, gives_more_than_a_card_has_from_as_few_as_possible) {
  auto p = pool_of({1, 2, 2});
  const held four = taken(p, 4);
  EXPECT_EQ(names_of(four), (names{"b0", "b1", "c0", "c1"}));
  EXPECT_EQ(names_of(taken(p, 3)), names{});
  p.give(four);
  EXPECT_EQ(taken(p, 5).size(), 5u);
}

TEST(device_pool, waits_for_a_whole_card_and_splits_after_its_patience) {
  auto p = pool_of({2, 2});
  const held one = taken(p, 1), two = taken(p, 1);  // one on each card
  held pair;
  std::uint64_t since = 0;
  p.begin_round();
  EXPECT_FALSE(p.take(2, since, 1000, pair));
  EXPECT_EQ(p.due(), 1000 + patience);
  p.begin_round();
  EXPECT_FALSE(p.take(2, since, 1099, pair));
  p.give(one);
  p.begin_round();
  held whole;
  std::uint64_t other = 0;
  EXPECT_TRUE(p.take(2, other, 1099, whole)) << "which became free meanwhile";
  EXPECT_EQ(names_of(whole), (names{"a0", "a1"}));
  p.give(whole);
  const held again = taken(p, 1);
  EXPECT_EQ(names_of(again), names{"a0"});
  p.begin_round();
  EXPECT_TRUE(p.take(2, since, 1100, pair));
  EXPECT_EQ(names_of(pair), (names{"a1", "b1"}));
}

TEST(device_pool, keeps_the_nearest_card_for_who_waits) {
  auto p = pool_of({2, 2});
  const held on_a = taken(p, 1), on_b = taken(p, 1);
  held pair, later, last;
  std::uint64_t since = 0, none = 0;
  p.begin_round();
  EXPECT_FALSE(p.take(2, since, 1, pair));
  EXPECT_TRUE(p.take(1, none, 1, later));
  EXPECT_EQ(names_of(later), names{"b1"}) << "card a is kept";
  EXPECT_FALSE(p.take(1, none, 1, last));
  p.give(on_a);
  p.begin_round();
  EXPECT_TRUE(p.take(2, since, 2, pair));
  EXPECT_EQ(names_of(pair), (names{"a0", "a1"}));
}

TEST(device_pool, keeps_everything_for_who_needs_more_than_a_card) {
  auto p = pool_of({2, 2});
  const held one = taken(p, 1);
  held all, later;
  std::uint64_t since = 0, none = 0;
  p.begin_round();
  EXPECT_FALSE(p.take(4, since, 1, all));
  EXPECT_FALSE(p.take(1, none, 1, later));
  p.give(one);
  p.begin_round();
  EXPECT_TRUE(p.take(4, since, 1, all));
}

TEST(device_pool, refuses_parts_and_more_than_there_are) {
  const auto p = pool_of({2, 2});
  const auto code = [&](double amount) -> int {
    try {
      p.check({{"gpu", amount}});
    } catch (const error& e) {
      return static_cast<int>(e.code());
    }
    return -1;
  };
  EXPECT_EQ(code(0.5), static_cast<int>(errc::not_supported));
  EXPECT_EQ(code(5), static_cast<int>(errc::no_resource));
  EXPECT_EQ(code(1e30), static_cast<int>(errc::no_resource));
  EXPECT_EQ(code(4), -1);
  EXPECT_EQ(code(0), -1);
  EXPECT_EQ(code(resource::all), -1);
  EXPECT_EQ(p.asked({{"gpu", resource::all}}), 4u);
  EXPECT_EQ(p.asked({{"gpu", 1}, {"io", 9}, {"gpu", 2}}), 3u);
}

// Whatever the order: nobody has what another has, the number of the free ones is exact, and all come back.
TEST(device_pool, never_gives_a_device_twice_in_random_orders) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    auto p = pool_of({2, 1, 4});
    std::vector<held> all;
    std::set<std::string> out;
    for (std::uint64_t now = 1; now < 200; ++now) {
      if (random() % 2 && !all.empty()) {
        const std::size_t i = random() % all.size();
        for (const held_device& d : all[i]) out.erase(d.name);
        p.give(all[i]);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        p.begin_round();
        for (unsigned n = random() % 3; n != 0; --n) {
          const std::size_t count = 1 + random() % 7;
          held h;
          std::uint64_t since = random() % 2 ? 0 : 1;
          if (!p.take(count, since, now, h)) {
            ASSERT_TRUE(h.empty());
            continue;
          }
          ASSERT_EQ(h.size(), count);
          for (const held_device& d : h) ASSERT_TRUE(out.insert(d.name).second) << d.name;
          all.push_back(h);
        }
      }
      ASSERT_EQ(p.free(), 7 - out.size());
    }
  }
}

}  // namespace
