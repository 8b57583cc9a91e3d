// What this file is for: what each kind of stage does with items, and in which order they come out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;
using test::expect_balanced;

std::vector<int> numbers(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(stream_stages, stages_that_follow_one_another_are_fused_and_equal_a_loop) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<std::string> got;
  auto p = st::from("numbers", std::views::iota(0, 5000)) | st::map("square", [](int i) { return i * i; }) |
           st::filter("odd", [](int i) { return i % 2 == 1; }) |
           st::scan("sum", 0L, [](long& sum, int i) { return sum += i; }) |
           st::map("text", [](long s) { return std::to_string(s); }) |
           st::sink("keep", [&](std::string s) { got.push_back(std::move(s)); });
  const st::layout how = p.check(rt);
  ASSERT_EQ(how.parts.size(), 1u);
  EXPECT_EQ(how.parts[0].stages.size(), 6u);
  EXPECT_TRUE(how.edges.empty());
  auto r = p.start(rt);
  r.wait();

  std::vector<std::string> wanted;
  long sum = 0;
  for (int i = 0; i < 5000; ++i)
    if (i * i % 2 == 1) wanted.push_back(std::to_string(sum += i * i));
  EXPECT_EQ(got, wanted);
  const st::report told = r.report();
  EXPECT_EQ(told.state, st::state::ended);
  EXPECT_EQ(told.items.pushed, 5000u);
  EXPECT_EQ(told.items.absorbed, 2500u);
  EXPECT_EQ(told.items.delivered, 2500u);
  expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u);
}

TEST(stream_stages, an_edge_lies_where_it_is_asked_for_and_beside_parallel_stages) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("a", numbers(3)) | st::map("b", [](int i) { return i; }) | st::async({.items = 7, .bytes = 99}) |
           st::map("c", [](int i) { return i; }) | st::map("d", [](int i) { return i; }, {.parallel = 3}) |
           st::map("e", [](int i) { return i; }) | st::sink("f", [](int) {});
  const st::layout how = p.check(rt);
  ASSERT_EQ(how.parts.size(), 4u);
  EXPECT_EQ(how.parts[0].stages, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(how.parts[1].stages, (std::vector<std::string>{"c"}));
  EXPECT_EQ(how.parts[2].stages, (std::vector<std::string>{"d"}));
  EXPECT_EQ(how.parts[2].lanes, 3);
  EXPECT_EQ(how.parts[3].stages, (std::vector<std::string>{"e", "f"}));
  ASSERT_EQ(how.edges.size(), 3u);
  EXPECT_EQ(how.edges[0].to, "c");
  EXPECT_EQ(how.edges[0].items_bound, 7u);
  EXPECT_EQ(how.edges[0].bytes_bound, 99u);
  EXPECT_NE(how.text().find("3 at the same time"), std::string::npos);
  p.start(rt).wait();
}

TEST(stream_stages, a_parallel_stage_keeps_the_order_whatever_its_calls_take) {
  troupe::runtime rt(troupe::options{.threads = 4});
  for (const int lanes : {2, 3, 8}) {
    std::vector<int> got;
    std::atomic<int> at_once{0}, most{0};
    auto p = st::from("numbers", numbers(3000)) |
             st::map("work",
                     [&](int i) {
                       const int now = ++at_once;
                       int seen = most.load();
                       while (seen < now && !most.compare_exchange_weak(seen, now)) {
                       }
                       for (int k = 0; k < (i * 7919) % 50; ++k) std::this_thread::yield();
                       --at_once;
                       return i;
                     },
                     {.parallel = lanes, .edge = {.items = 5}}) |
             st::filter("all", [](int i) { return i >= 0; }) | st::sink("keep", [&](int i) { got.push_back(i); });
    auto r = p.start(rt);
    r.wait();
    EXPECT_EQ(got, numbers(3000)) << lanes;
    EXPECT_LE(most, lanes);
    expect_balanced(r.report());
  }
}

TEST(stream_stages, a_parallel_stage_without_order_loses_and_repeats_nothing) {
  troupe::runtime rt(troupe::options{.threads = 4});
  std::vector<int> got;
  auto p = st::from("numbers", numbers(5000)) |
           st::map("work",
                   [](int i) {
                     if (i % 100 == 0) std::this_thread::yield();
                     return i;
                   },
                   {.parallel = 4, .order = st::unordered}) |
           st::sink("keep", [&](int i) { got.push_back(i); });
  auto r = p.start(rt);
  r.wait();
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, numbers(5000));
  expect_balanced(r.report());
}

TEST(stream_stages, calls_of_a_parallel_stage_overlap) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate second;
  std::atomic<int> inside{0};
  auto p = st::from("two", numbers(2)) |
           st::map("both",
                   [&](int i) {
                     if (++inside == 2) second.open();
                     return second.pass() ? i : -1;
                   },
                   {.parallel = 2}) |
           st::sink("keep", [&](int i) { EXPECT_GE(i, 0); });
  p.start(rt).wait();
}

TEST(stream_stages, strands_on_both_sides_of_an_edge_overlap) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate taken;
  auto p = st::from("numbers", numbers(2)) | st::map("first", [&](int i) { return i == 0 || taken.pass() ? i : -1; }) |
           st::async() | st::sink("second", [&](int i) {
             EXPECT_GE(i, 0);
             taken.open();
           });
  p.start(rt).wait();
}

TEST(stream_stages, flat_map_passes_on_elements_as_there_is_room_for_them) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<int> got;
  std::atomic<long> made{0};
  {
    auto p = st::from("ends", std::vector<int>{0, 3, 1, 100}) |
             st::flat_map("below",
                          [&](int n) {
                            return std::views::iota(0, n) | std::views::transform([&](int i) {
                                     ++made;
                                     return i;
                                   });
                          }) |
             st::async({.items = 4}) | st::sink("keep", [&](int i) {
               got.push_back(i);
               EXPECT_LE(made.load(), static_cast<long>(got.size()) + 4 + 1);
             });
    auto r = p.start(rt);
    r.wait();
    const st::report told = r.report();
    EXPECT_EQ(told.items.created, 104u);
    EXPECT_EQ(told.items.absorbed, 4u);
    expect_balanced(told);
  }
  std::vector<int> wanted{0, 1, 2, 0};
  for (int i = 0; i < 100; ++i) wanted.push_back(i);
  EXPECT_EQ(got, wanted);
}

TEST(stream_stages, flat_map_of_an_endless_range_ends_when_the_stream_is_cancelled) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate some;
  long seen = 0;
  auto p = st::from("one", numbers(1)) | st::flat_map("all", [](int) { return std::views::iota(0L); }) | st::async() |
           st::sink("look", [&](long) {
             if (++seen == 1000) some.open();
           });
  auto r = p.start(rt);
  ASSERT_TRUE(some.pass());
  r.cancel();
  EXPECT_TRUE(test::ends(r));
  expect_balanced(r.report());
}

TEST(stream_stages, flat_map_of_an_endless_range_that_is_fused_ends_too_and_leaves_room_for_others) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::atomic<long> seen{0};
  auto p = st::from("one", numbers(1)) | st::flat_map("all", [](int) { return std::views::iota(0L); }) |
           st::sink("look", [&](long) { ++seen; });
  auto r = p.start(rt);
  while (seen < 100'000) std::this_thread::yield();
  EXPECT_TRUE(rt.spawn([] {}).wait_for(test::patience));
  const st::report told = r.report();
  expect_balanced(told);
  r.cancel();
  EXPECT_TRUE(test::ends(r));
  expect_balanced(r.report());
}

TEST(stream_stages, flat_map_copies_what_a_view_shows_and_moves_what_a_container_holds) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<std::string> words{std::string(50, 'a'), std::string(50, 'b')}, got;
  auto p = st::from("two", numbers(2)) | st::flat_map("words", [&](int) { return std::span<std::string>(words); }) |
           st::sink("keep", [&](std::string s) { got.push_back(std::move(s)); });
  p.start(rt).wait();
  EXPECT_EQ(words, (std::vector<std::string>{std::string(50, 'a'), std::string(50, 'b')}));
  EXPECT_EQ(got.size(), 4u);
  EXPECT_EQ(got[3], std::string(50, 'b'));
}

TEST(stream_stages, a_batch_is_passed_on_when_it_has_enough_items_or_bytes_and_at_the_end) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<std::size_t> by_items, by_bytes;
  auto p = st::from("a", numbers(10)) | st::batch("four", {.items = 4, .delay = std::chrono::hours(1)}) |
           st::sink("sizes", [&](const std::vector<int>& b) { by_items.push_back(b.size()); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(by_items, (std::vector<std::size_t>{4, 4, 2}));
  expect_balanced(r.report());

  auto q = st::from("b", numbers(10)) |
           st::batch("bytes", {.items = 1000, .bytes = 3 * sizeof(int), .delay = std::chrono::hours(1)}) |
           st::unbatch("again") | st::batch("two", {.items = 2, .delay = std::chrono::hours(1)}) |
           st::sink("sizes", [&](const std::vector<int>& b) { by_bytes.push_back(b.size()); });
  q.start(rt).wait();
  EXPECT_EQ(by_bytes, (std::vector<std::size_t>{2, 2, 2, 2, 2}));
}

TEST(stream_stages, a_batch_that_is_not_full_is_passed_on_after_its_delay_or_when_no_item_waits) {
  troupe::runtime rt(troupe::options{.threads = 2});
  for (const auto delay : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
    test::gate came;
    std::chrono::steady_clock::time_point at;
    auto p = st::from<int>("in") | st::batch("batch", {.items = 1000, .delay = delay}) |
             st::sink("keep", [&](const std::vector<int>& b) {
               EXPECT_EQ(b.size(), 1u);
               at = std::chrono::steady_clock::now();
               came.open();
             });
    auto r = p.start(rt);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(r.input<int>("in").push(7), st::pushed::ok);
    ASSERT_TRUE(came.pass());
    EXPECT_GE(at - begin, delay);
    expect_balanced(r.report());
  }
}

TEST(stream_stages, tee_copies_route_chooses_and_merge_brings_together) {
  troupe::runtime rt(troupe::options{.threads = 3});
  std::vector<int> copied, merged;
  auto [a, b] = st::from("numbers", numbers(300)) | st::tee<2>("tee");
  auto [even, odd] = b | st::route<2>("route", [](int i) { return i % 3 == 2 ? 9 : i % 3; });
  auto left = a | st::sink("copies", [&](int i) { copied.push_back(i); });
  auto both = st::merge("merge", even | st::map("plus", [](int i) { return i + 1000; }), odd) |
              st::sink("merged", [&](int i) { merged.push_back(i); });
  auto p = left + both;
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(copied, numbers(300));
  std::vector<int> wanted;
  for (int i = 0; i < 300; ++i) {
    if (i % 3 == 0) wanted.push_back(i + 1000);
    if (i % 3 == 1) wanted.push_back(i);
  }
  std::sort(wanted.begin(), wanted.end());
  std::sort(merged.begin(), merged.end());
  EXPECT_EQ(merged, wanted);
  const st::report told = r.report();
  EXPECT_EQ(told.items.pushed, 300u);
  EXPECT_EQ(told.items.created, 300u);
  EXPECT_EQ(told.items.absorbed, 100u);
  EXPECT_EQ(told.items.delivered, 500u);
  expect_balanced(told);
}

TEST(stream_stages, chains_from_several_sources_are_one_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  long sum = 0;
  auto p = st::merge("all", st::from("a", numbers(1000)), st::from("b", numbers(500)),
                     st::from("c",
                              [n = 0]() mutable -> std::optional<int> {
                                if (n == 100) return {};
                                return n++;
                              })) |
           st::sink("sum", [&](int i) { sum += i; });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(sum, 999 * 500 + 499 * 250 + 99 * 50);
  EXPECT_EQ(r.report().items.pushed, 1600u);
  expect_balanced(r.report());
}

TEST(stream_stages, zip_makes_pairs_and_leaves_out_what_has_no_partner) {
  troupe::runtime rt(troupe::options{.threads = 3});
  for (const auto& [left, right] : {std::pair(500, 500), std::pair(500, 30), std::pair(3, 400), std::pair(0, 100)}) {
    std::vector<std::pair<int, std::string>> got;
    auto a = st::from("left", numbers(left)) | st::filter("even", [](int i) { return i % 2 == 0; });
    auto b = st::from("right", numbers(right)) | st::map("text", [](int i) { return std::to_string(i); });
    auto p =
        st::zip("pairs", a, b) | st::sink("keep", [&](std::pair<int, std::string> x) { got.push_back(std::move(x)); });
    auto r = p.start(rt);
    r.wait();
    ASSERT_EQ(got.size(), static_cast<std::size_t>(std::min((left + 1) / 2, right)));
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].first, static_cast<int>(2 * i));
      EXPECT_EQ(got[i].second, std::to_string(i));
    }
    expect_balanced(r.report());
    EXPECT_EQ(r.report().items.in_flight, 0u);
  }
}

TEST(stream_stages, zip_brings_branches_of_a_tee_together_in_step) {
  troupe::runtime rt(troupe::options{.threads = 3});
  std::size_t count = 0;
  auto [a, b] = st::from("numbers", numbers(3000)) | st::tee<2>("tee");
  auto p = st::zip("pairs", a | st::map("slow", [](int i) { return i * 2; }, {.parallel = 3}), b) |
           st::sink("check", [&](const std::pair<int, int>& x) {
             ++count;
             EXPECT_EQ(x.first, 2 * x.second);
           });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(count, 3000u);
  expect_balanced(r.report());
}

TEST(stream_stages, items_need_not_be_copyable) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<int> got;
  auto p = st::from("numbers", numbers(200)) | st::map("box", [](int i) { return std::make_unique<int>(i); }) |
           st::async({.items = 3}) | st::map("on", [](std::unique_ptr<int> i) { return i; }, {.parallel = 2}) |
           st::filter("some", [](const std::unique_ptr<int>& i) { return *i % 2 == 0; }) |
           st::batch("batch", {.items = 3}) | st::unbatch("again") |
           st::sink("keep", [&](std::unique_ptr<int> i) { got.push_back(*i); });
  p.start(rt).wait();
  ASSERT_EQ(got.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 2 * i);
}

TEST(stream_stages, a_filter_that_takes_its_item_by_value_leaves_the_item_whole) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<std::string> got;
  auto p = st::from("words", std::vector<std::string>{std::string(100, 'a'), "b"}) |
           st::filter("all", [](std::string s) { return !s.empty(); }) |
           st::sink("keep", [&](std::string s) { got.push_back(std::move(s)); });
  p.start(rt).wait();
  EXPECT_EQ(got, (std::vector<std::string>{std::string(100, 'a'), "b"}));
}

}  // namespace
