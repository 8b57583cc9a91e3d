// What this file is for: which partials are added up before they are sent, and when the sum goes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/partial_groups.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <troupe/error.hpp>

namespace {

using namespace troupe::detail;
using word = std::uint64_t;
using words = std::vector<word>;

class partial_sums : public testing::Test {
 protected:
  static constexpr std::uint64_t group = 5;
  void come(int count, std::uint64_t bytes = 16) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(groups.came(group, &operator_for<word, std::plus<>>, bytes));
  }
  // In two rows, as a view with gaps has them.
  bool add(std::uint64_t task, words values) {
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
    return groups.add(group, task, static_cast<int>(task) + 100, {bytes.first(8), bytes.subspan(8)}, sizeof(word));
  }
  static words in(const partial_groups::sum& s) {
    words v(s.bytes->size() / sizeof(word));
    std::memcpy(v.data(), s.bytes->data(), s.bytes->size());
    return v;
  }
  partial_groups groups;
};

TEST_F(partial_sums, go_in_the_name_of_the_first_when_no_task_is_left) {
  come(3);
  EXPECT_TRUE(add(12, {1, 2}));
  EXPECT_FALSE(groups.take(group));
  EXPECT_FALSE(add(11, {10, 20})) << "it has begun";
  EXPECT_FALSE(groups.take(group));
  add(13, {100, 200});
  const auto s = groups.take(group);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->tasks, (words{12, 11, 13}));
  EXPECT_EQ(s->access, 112);
  EXPECT_EQ(in(*s), (words{111, 222}));
  EXPECT_FALSE(groups.take(group));
  EXPECT_TRUE(groups.empty());
}

TEST_F(partial_sums, do_not_wait_for_tasks_of_which_nothing_comes) {
  come(2);
  add(1, {7, 8});
  groups.left(group);
  ASSERT_TRUE(groups.take(group));
  EXPECT_TRUE(groups.empty());
  come(1);
  groups.left(group);
  EXPECT_FALSE(groups.take(group));
  EXPECT_TRUE(groups.empty());
}

TEST_F(partial_sums, go_when_they_are_asked_for_and_others_begin) {
  come(3);
  add(1, {1, 1});
  add(2, {2, 2});
  const auto s = groups.take_any();
  ASSERT_TRUE(s);
  EXPECT_EQ(in(*s), (words{3, 3}));
  EXPECT_FALSE(groups.take_any());
  EXPECT_FALSE(groups.empty()) << "a task is here";
  EXPECT_TRUE(add(3, {9, 9}));
  EXPECT_EQ(in(groups.take(group).value()), (words{9, 9}));
  EXPECT_TRUE(groups.empty());
}

TEST_F(partial_sums, hold_so_many_partials_at_most) {
  come(static_cast<int>(partial_groups::sum_max) + 1);
  for (std::uint64_t t = 1; t < partial_groups::sum_max; ++t) {
    add(t, {1, 1});
    ASSERT_FALSE(groups.take(group));
  }
  add(partial_groups::sum_max, {1, 1});
  EXPECT_EQ(in(groups.take(group).value()), (words{partial_groups::sum_max, partial_groups::sum_max}));
}

TEST_F(partial_sums, are_of_partials_of_one_size_by_one_operator) {
  come(2);
  EXPECT_FALSE(groups.came(group, &operator_for<word, std::plus<>>, 24));
  EXPECT_FALSE(groups.came(group, &operator_for<word, std::multiplies<>>, 16));
  EXPECT_THROW(add(1, {1, 2, 3}), troupe::error);
  EXPECT_FALSE(groups.take_any()) << "it is still here";
  add(1, {1, 2});
  EXPECT_THROW(add(2, {1}), troupe::error);
  groups.left(group);
  EXPECT_EQ(in(groups.take(group).value()), (words{1, 2}));
}

TEST_F(partial_sums, have_each_partial_once_whatever_the_order) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    std::uint64_t next = 1;
    int here = 0;
    word added = 0, sent = 0;
    std::multiset<std::uint64_t> named, told;
    const auto note = [&](const std::optional<partial_groups::sum>& s) {
      if (!s) return;
      sent += in(*s).front();
      told.insert(s->tasks.begin(), s->tasks.end());
    };
    for (int i = 0; i < 200 || here != 0; ++i) {
      const auto what = random() % 8;
      if (what < 3 && i < 200) {
        come(1);
        ++here;
      } else if (what < 6 && here != 0) {
        --here;
        const std::uint64_t task = next++;
        add(task, {task, 0});
        added += task;
        named.insert(task);
      } else if (what == 6 && here != 0) {
        --here;
        groups.left(group);
      } else if (what == 7) {
        note(groups.take_any());
      }
      note(groups.take(group));
    }
    EXPECT_EQ(sent, added) << "seed " << seed;
    EXPECT_EQ(told, named) << "seed " << seed;
    ASSERT_TRUE(groups.empty()) << "seed " << seed;
  }
}

}  // namespace
