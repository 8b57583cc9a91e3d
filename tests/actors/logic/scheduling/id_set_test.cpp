// What this file is for: sets of ids behave as sets do, whatever the ids.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <troupe/detail/id_set.hpp>

namespace {

using troupe::detail::compact_ids;
using troupe::detail::id_set;
using troupe::detail::shown_ids;

std::vector<int> listed(const id_set& s) {
  std::vector<int> all;
  s.each([&](std::size_t id) { all.push_back(static_cast<int>(id)); });
  return all;
}

struct both {
  id_set mine;
  std::set<int> model;
};

both some(std::mt19937& random) {
  both b;
  // Sets of one word, of a few, and of all.
  const int limit = std::vector{5, 64, 65, 200, id_set::end}[random() % 5];
  for (unsigned n = random() % 40; n != 0; --n) {
    const int id = static_cast<int>(random() % static_cast<unsigned>(limit));
    b.mine.insert(static_cast<std::size_t>(id));
    b.model.insert(id);
  }
  return b;
}

template <class Keep>
std::vector<int> filtered(const both& a, const both& b, Keep&& keep) {
  std::vector<int> all;
  for (int i = 0; i < id_set::end; ++i)
    if (keep(a.model.contains(i), b.model.contains(i))) all.push_back(i);
  return all;
}

TEST(id_set, does_what_a_set_does) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const both a = some(random), b = some(random);
    ASSERT_EQ(listed(a.mine), std::vector<int>(a.model.begin(), a.model.end()));
    ASSERT_EQ(listed(a.mine | b.mine), filtered(a, b, [](bool x, bool y) { return x || y; }));
    ASSERT_EQ(listed(a.mine & b.mine), filtered(a, b, [](bool x, bool y) { return x && y; }));
    ASSERT_EQ(listed(a.mine - b.mine), filtered(a, b, [](bool x, bool y) { return x && !y; }));
    ASSERT_EQ(a.mine == b.mine, a.model == b.model);
    ASSERT_EQ(a.mine.empty(), a.model.empty());
    ASSERT_EQ(a.mine.count(), static_cast<int>(a.model.size()));
    ASSERT_EQ(a.mine.has_single(), a.model.size() == 1);
    const int from = static_cast<int>(random() % id_set::end);
    const auto at = a.model.lower_bound(from);
    ASSERT_EQ(a.mine.next(static_cast<std::size_t>(from)), at == a.model.end() ? id_set::end : *at);
    const auto common = filtered(a, b, [](bool x, bool y) { return x && y; });
    const auto after = std::ranges::lower_bound(common, from);
    ASSERT_EQ(a.mine.next_with(b.mine, static_cast<std::size_t>(from)), after == common.end() ? id_set::end : *after);
    ASSERT_EQ(a.mine.meets(b.mine), !common.empty());
    ASSERT_EQ(a.mine.has_more_than(7), a.model.size() > 7);
    ASSERT_EQ(a.mine.has_more_than_with(b.mine, 3), common.size() > 3);
    ASSERT_EQ(a.mine.contains(static_cast<std::size_t>(from)), a.model.contains(from));
    id_set less = a.mine;
    for (const int id : b.model) less.erase(static_cast<std::size_t>(id));
    ASSERT_EQ(less, a.mine - b.mine);
  }
}

TEST(id_set, is_equal_to_one_that_has_held_larger_ids) {
  id_set a{3, 900};
  a.erase(900);
  EXPECT_EQ(a, id_set{3});
  EXPECT_EQ(id_set{3}, a);
  EXPECT_EQ(a.next(4), id_set::end);
}

TEST(id_set, of_everything_holds_all_there_will_be) {
  id_set all = id_set::every();
  EXPECT_EQ(all.count(), id_set::end);
  EXPECT_EQ((all & id_set{0, 63, 64, 1023}), (id_set{0, 63, 64, 1023}));
  all.erase(64);
  EXPECT_FALSE(all == id_set::every());
  EXPECT_EQ(id_set::every() - all, id_set{64});
}

TEST(compact_ids, hold_small_and_large_ones) {
  compact_ids ids;
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(ids.first(), id_set::end);
  ids.insert(700);
  EXPECT_EQ(ids.first(), 700);
  ids.insert(63);
  ids.insert(64);
  EXPECT_EQ(ids.first(), 63);
  EXPECT_TRUE(ids.contains(700) && ids.contains(64) && !ids.contains(65) && !ids.contains(0));
  id_set s{1};
  ids.add_to(s);
  EXPECT_EQ(s, (id_set{1, 63, 64, 700}));
  ids.erase(63);
  ids.erase(64);
  EXPECT_FALSE(ids.empty());
  ids.erase(700);
  EXPECT_TRUE(ids.empty());
  ids.insert(5);
  ids.clear();
  EXPECT_TRUE(ids.empty());
}

TEST(compact_ids, do_what_a_set_does) {
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    compact_ids mine;
    std::set<int> model;
    const int limit = std::vector{64, 130, id_set::end}[random() % 3], from = random() % 2 == 0 ? 0 : limit - 60;
    for (int step = 0; step < 40; ++step) {
      const int id = from + static_cast<int>(random() % static_cast<unsigned>(limit - from));
      switch (random() % 8) {
        case 0:
          mine.clear();
          model.clear();
          break;
        case 1:
        case 2:
        case 3:
          mine.erase(static_cast<std::size_t>(id));
          model.erase(id);
          break;
        default:
          mine.insert(static_cast<std::size_t>(id));
          model.insert(id);
      }
      id_set all;
      mine.add_to(all);
      ASSERT_EQ(listed(all), std::vector<int>(model.begin(), model.end()));
      ASSERT_EQ(mine.empty(), model.empty());
      ASSERT_EQ(mine.first(), model.empty() ? id_set::end : *model.begin());
      ASSERT_EQ(mine.contains(static_cast<std::size_t>(id)), model.contains(id));
      ASSERT_EQ(mine.contains(static_cast<std::size_t>(id ^ 64)), model.contains(id ^ 64));
    }
  }
}

TEST(shown_ids, say_when_they_have_changed) {
  shown_ids shown;
  const auto before = shown.changes();
  EXPECT_EQ(shown.changes(), before);
  shown = id_set{2};
  EXPECT_NE(shown.changes(), before);
}

TEST(shown_ids, show_what_was_set_last) {
  shown_ids shown;
  EXPECT_TRUE(shown.get().empty());
  shown = id_set{2, 1000};
  EXPECT_EQ(shown.get(), (id_set{2, 1000}));
  shown = id_set{3};
  EXPECT_EQ(shown.get(), id_set{3});
}

}  // namespace
