// What this file is for: items that are put into the order of their times, as far as there is room.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
using item = std::pair<std::int64_t, int>;  // its time, its number

struct outcome {
  std::vector<item> got;
  std::uint64_t late = 0;
};
outcome sorted(const std::vector<item>& all, std::chrono::nanoseconds out_of_order, std::size_t room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  outcome o;
  auto p = st::from("items", all) | st::event_time("time", &item::first, {.out_of_order = out_of_order}) |
           st::in_time_order("sort", {.items = room}) | st::sink("end", [&](const item& i) { o.got.push_back(i); });
  auto r = p.start(rt);
  EXPECT_TRUE(test::ends(r));
  const st::report told = r.report();
  test::expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u);
  for (const auto& s : told.stages) o.late += s.late;
  return o;
}

TEST(stream_order, items_come_in_the_order_of_their_times_and_equal_ones_as_they_came) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    std::vector<item> all(1000);
    std::int64_t now = 0;
    for (int i = 0; i < 1000; ++i) {
      now += static_cast<std::int64_t>(random() % 4);
      all[static_cast<std::size_t>(i)] = {now - static_cast<std::int64_t>(random() % 50), i};
    }
    outcome o = sorted(all, 50ns, 1u << 20);
    std::stable_sort(all.begin(), all.end(), [](const item& a, const item& b) { return a.first < b.first; });
    EXPECT_EQ(o.got, all);
    EXPECT_EQ(o.late, 0u);
  }
}

// Against a model: the earliest goes on when there are too many, and what is earlier than that is late.
TEST(stream_order, where_there_is_no_room_the_earliest_goes_on) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 30; ++round) {
    const std::size_t room = 1 + random() % 20;
    std::vector<item> all(500);
    for (int i = 0; i < 500; ++i) all[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(random() % 1000), i};
    std::multiset<item> kept;
    std::vector<item> wanted;
    std::uint64_t late = 0;
    std::int64_t passed = -1;
    const auto pass_on = [&] {
      passed = kept.begin()->first;
      wanted.push_back(*kept.begin());
      kept.erase(kept.begin());
    };
    for (const item& i : all) {
      if (i.first < passed) {
        ++late;
        continue;
      }
      kept.insert(i);
      if (kept.size() > room) pass_on();
    }
    while (!kept.empty()) pass_on();
    const outcome o = sorted(all, 1h, room);  // the watermark comes at the end
    EXPECT_EQ(o.got, wanted);
    EXPECT_EQ(o.late, late);
  }
}

TEST(stream_order, room_for_none_and_items_without_a_time_are_refused) {
  const std::vector<item> all{{1, 1}};
  EXPECT_THROW(static_cast<void>(st::from("items", all) | st::in_time_order("sort", {.items = 0})), troupe::error);
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from("items", all) | st::in_time_order("sort") | st::sink("end", [](const item&) {});
  auto r = p.start(rt);
  try {
    static_cast<void>(r.wait_for(test::patience));
    FAIL() << "it has not failed";
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "sort");
  }
}

TEST(stream_order, items_for_which_there_is_no_room_are_whole_in_their_letters) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t letters = 0;
  const std::string text(300, 't');
  auto p = st::from("numbers", std::views::iota(0, 20'000)) |
           st::map("text", [&](int i) { return std::pair<std::int64_t, std::string>(i, text); }) |
           st::event_time("time", [](const auto& x) { return x.first; }, {.out_of_order = 1h}) |
           st::in_time_order("sort", {.items = 1u << 20, .fail = st::dead_letter}) |
           st::sink("end", [](const auto&) {});
  auto r = p.start(rt, {.on_dead_letter =
                            [&](const st::letter& l) {
                              ++letters;
                              const auto* x = l.as<std::pair<std::int64_t, std::string>>();
                              ASSERT_NE(x, nullptr);
                              EXPECT_EQ(x->second, text);
                            },
                        .state_bytes = 1u << 20});
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_GT(letters, 0u);
  test::expect_balanced(r.report());
}

}  // namespace
