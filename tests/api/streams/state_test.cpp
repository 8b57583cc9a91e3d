// What this file is for: the memory of what stages keep by key and time: counted, given back, and under a limit.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
using test::expect_balanced;

struct event {
  std::int64_t at;
  std::string key;
  std::string text;
};

}  // namespace
template <>
struct troupe::stream::item_bytes<event> {
  static std::size_t of(const event& e) noexcept {
    return sizeof e - 2 * sizeof(std::string) + item_bytes<std::string>::of(e.key) +
           item_bytes<std::string>::of(e.text);
  }
};
namespace {

// Each has a key of its own, of 100 bytes, and a text of 200.
auto events(int count, const char* name = "events") {
  return st::from(name,
                  [n = 0, count]() mutable -> std::optional<event> {
                    if (n == count) return std::nullopt;
                    const int i = n++;
                    std::string key = std::to_string(i);
                    key.resize(100, 'k');
                    return event{i, std::move(key), std::string(200, 't')};
                  }) |
         st::event_time(std::string(name) + " time", &event::at);
}

std::uint64_t kept_by(const st::running& r, const std::string& stage) {
  for (const auto& s : r.report().stages)
    if (s.name == stage) return s.state_bytes;
  throw std::logic_error("there is no such stage");
}

// The error of the stage of a stream that has failed because it was to keep too much.
void expect_full(const st::running& r, const std::string& stage) {
  try {
    ASSERT_TRUE(r.wait_for(test::patience));
    FAIL() << "it has not failed\n" << r.report().text();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), stage);
    try {
      std::rethrow_exception(e.cause());
    } catch (const troupe::error& cause) {
      EXPECT_EQ(cause.code(), troupe::errc::out_of_memory) << cause.what();
      EXPECT_NE(std::string(cause.what()).find(stage), std::string::npos) << cause.what();
    }
  }
  expect_balanced(r.report());
}

TEST(stream_state, windows_count_keys_and_what_states_have_and_give_it_back) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t most = 0, seen = 0;
  std::optional<st::running> r;
  auto p = events(2000) | st::key_by(&event::key) |
           st::window("texts", st::tumbling(1000ns), {},
                      st::fold(std::string(), [](std::string& all, const event& e) { all += e.text; })) |
           st::sink("end", [&](const auto&) { ++seen; });
  auto counted = events(1000, "other") | st::key_by(&event::key) |
                 st::window("count", st::tumbling(1h), {}, st::count()) | st::sink("other end", [](const auto&) {});
  r = (std::move(p) + counted).start(rt);
  while (!r->wait_for(100us)) most = std::max(most, kept_by(*r, "texts"));
  EXPECT_EQ(seen, 2000u);
  EXPECT_EQ(kept_by(*r, "texts"), 0u);
  EXPECT_EQ(kept_by(*r, "count"), 0u);
  EXPECT_LT(most, 2000u * 1000);
}

TEST(stream_state, is_as_much_as_keys_and_values_take) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from<event>("in") | st::event_time("time", &event::at) | st::key_by(&event::key) |
           st::window("texts", st::tumbling(1h), {}, st::collect<event>()) | st::sink("end", [](const auto&) {});
  auto r = p.start(rt);
  auto in = r.input<event>("in");
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(in.push(event{i, std::to_string(i % 10) + std::string(99, 'k'), std::string(200, 't')}), st::pushed::ok);
  ASSERT_TRUE(test::comes_true([&] { return r.report().stages[2].absorbed == 1000; }));
  const std::uint64_t bytes = kept_by(r, "texts");
  EXPECT_GT(bytes, 1000u * 300 * 7 / 8);  // what a value has gained by an eighth may not have been looked at yet
  EXPECT_LT(bytes, 1000u * 500);
  in.close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(kept_by(r, "texts"), 0u);
}

TEST(stream_state, a_window_that_is_to_keep_too_much_fails_and_is_named) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t got = 0;
  auto p = events(1'000'000) | st::key_by(&event::key) | st::window("count", st::tumbling(1h), {}, st::count()) |
           st::sink("end", [&](const auto&) { ++got; });
  auto r = p.start(rt, {.state_bytes = 1u << 20});
  expect_full(r, "count");
  EXPECT_LE(kept_by(r, "count"), 1u << 20);
  EXPECT_GT(kept_by(r, "count"), (1u << 20) - (1u << 17));
  EXPECT_EQ(got, 0u);
}

TEST(stream_state, values_that_grow_count_too) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = events(1'000'000) | st::key_by([](const event&) { return 1; }) |
           st::window("all", st::tumbling(1h), {}, st::collect<event>()) | st::sink("end", [](const auto&) {});
  auto r = p.start(rt, {.state_bytes = 4u << 20});
  expect_full(r, "all");
  EXPECT_LT(kept_by(r, "all"), 6u << 20) << "an eighth more, and what a vector keeps in reserve";
}

TEST(stream_state, sliding_windows_and_sessions_are_under_the_limit) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const auto fails = [&](const char* stage, auto how, auto fold) {
    auto p = events(1'000'000) | st::key_by(&event::key) | st::window(stage, how, {}, fold) |
             st::sink("end", [](const auto&) {});
    auto r = p.start(rt, {.state_bytes = 1u << 20});
    expect_full(r, stage);
  };
  fails("panes", st::sliding(1h, 1min), st::count());
  fails("window", st::sliding(1h, 10min), st::fold(std::uint64_t{0}, [](std::uint64_t& n, const event&) { ++n; }));
  fails("session", st::session(1h), st::count());
}

TEST(stream_state, the_memory_of_the_runtime_is_the_limit_where_no_other_is_said) {
  troupe::runtime rt(troupe::options{.threads = 2, .memory_bytes = 1u << 20});
  auto p = events(1'000'000) | st::key_by(&event::key) |
           st::process<int>("states", std::vector<int>(10), [](auto&, std::vector<int>&, const event&) {}) |
           st::sink("end", [](int) {});
  auto r = p.start(rt);
  expect_full(r, "states");
}

TEST(stream_state, items_for_which_there_is_no_room_can_go_to_the_dead_letters) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t letters = 0, told = 0;
  constexpr int count = 20'000;
  auto p =
      events(count) | st::key_by(&event::key) |
      st::process<int>("states", 0, [](auto& c, int& n, const event&) { c.emit(++n); }, {}, {.fail = st::dead_letter}) |
      st::sink("end", [&](int) { ++told; });
  auto r = p.start(rt, {.on_dead_letter =
                            [&](const st::letter& l) {
                              ++letters;
                              EXPECT_EQ(l.stage, "states");
                            },
                        .state_bytes = 1u << 20});
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_GT(letters, 0u);
  EXPECT_GT(told, 1000u);
  EXPECT_EQ(letters + told, count);
  expect_balanced(r.report());
}

TEST(stream_state, joins_and_tables_are_under_the_limit) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const auto flow = [](const char* name) { return events(1'000'000, name) | st::key_by(&event::key); };
  auto joined = st::join("pairs", flow("a"), flow("b"), st::within(1h), [](const event&, const event&) { return 1; }) |
                st::sink("end", [](int) {});
  auto r = joined.start(rt, {.state_bytes = 1u << 20});
  expect_full(r, "pairs");
  auto looked_up =
      st::lookup("rows", flow("a"), flow("b"), [](const event&, const event* row) { return row ? 1 : 0; }) |
      st::sink("end", [](int) {});
  auto s = looked_up.start(rt, {.state_bytes = 1u << 20});
  expect_full(s, "rows");
}

TEST(stream_state, a_join_gives_back_what_it_forgets) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto [a, b] = events(100'000) | st::tee<2>("copies");
  auto p = st::join("pairs", a | st::key_by(&event::key), b | st::key_by(&event::key), st::within(0ns),
                    [](const event&, const event&) { return 1; }) |
           st::sink("end", [](int) {});
  auto r = p.start(rt, {.state_bytes = 4u << 20});  // of 60 MB that come
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(r.report().items.delivered, 100'000u);
  EXPECT_LT(kept_by(r, "pairs"), 64u << 10);  // a table without entries
}

TEST(stream_state, values_that_grow_by_much_at_a_time_do_not_pass_the_limit) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t came = 0;
  auto p = st::from("texts", std::views::iota(0, 100'000)) |
           st::map("text",
                   [&](int) {
                     ++came;
                     return std::string(20'000, 't');
                   }) |
           st::event_time("time", [](const std::string&) { return std::int64_t{0}; }) |
           st::window("all", st::tumbling(1h), {}, st::collect<std::string>()) | st::sink("end", [](const auto&) {});
  auto r = p.start(rt, {.state_bytes = 40u << 20});
  expect_full(r, "all");
  EXPECT_LT(came, 3000u) << "40 MiB are 2,100 of them";
}

TEST(stream_state, what_grows_elsewhere_while_it_is_kept_is_counted_as_it_came) {
  troupe::runtime rt(troupe::options{.threads = 2});
  using shared = std::shared_ptr<std::vector<int>>;
  auto [a, b] = st::from("numbers", std::views::iota(0, 2000)) |
                st::map("make", [](int) { return std::make_shared<std::vector<int>>(10); }) |
                st::event_time("time", [n = std::int64_t{0}](const shared&) mutable { return n++; }) |
                st::tee<2>("copies");
  const auto key = st::key_by([](const shared& s) { return s.get(); });
  auto p = st::join("pairs", a | key, b | key, st::within(0ns),
                    [](const shared& x, const shared&) {
                      x->resize(100'000);
                      return 1;
                    }) |
           st::sink("end", [](int) {});
  auto r = p.start(rt, {.state_bytes = 1u << 30});
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(r.report().items.delivered, 2000u);
  EXPECT_LT(kept_by(r, "pairs"), 1u << 20);
}

}  // namespace
