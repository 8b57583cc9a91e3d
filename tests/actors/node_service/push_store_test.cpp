// What this file is for: pushed bytes come before or after their task, and are kept, put in place, or asked for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/push_store.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include <troupe/error.hpp>

#include "actors/memory/runtime_state.hpp"
#include "tests/support/plain_device.hpp"

namespace {

using namespace troupe::detail;
using state = push_store::state;

template <class F>
bool is_refused(F&& f) {
  try {
    f();
  } catch (const troupe::error& e) {
    return e.code() == troupe::errc::protocol_error;
  }
  return false;
}

struct pushed : testing::Test {
  pushed() { rt->host = std::make_unique<test::plain_device>(); }
  ~pushed() override {
    store.reset();
    rt->release();
  }
  /// A transfer whose bytes are pushed under that number.
  void expect(std::uint64_t number, transfer& t, std::uint64_t size = 8) {
    t.what_box.pushed = number;
    store->expect(number, size, t);
  }
  /// Bytes come whose place is kept here; false if they are thrown away.
  bool come(std::uint64_t number, const char* text = "01234567") {
    const auto p = store->arriving(number, 8);
    if (p.kept.empty()) return false;
    std::memcpy(p.kept[0].data(), text, 8);
    last = store->arrived(number, true);
    return true;
  }
  runtime_state* rt = new runtime_state;
  std::unique_ptr<push_store> store = std::make_unique<push_store>(*rt);
  push_store::arrival last;
  transfer x, y;
};

TEST_F(pushed, before_their_task_are_kept_until_its_access_opens) {
  EXPECT_TRUE(come(1));
  EXPECT_EQ(last.here, nullptr);
  expect(1, x);
  x.open = true;
  EXPECT_EQ(store->look(1), state::here);
  const loose_bytes kept = store->take(x);
  EXPECT_EQ(std::memcmp(kept.get(), "01234567", 8), 0);
  EXPECT_EQ(store->look(1), state::ask) << "it was taken";
}

TEST_F(pushed, after_their_access_has_opened_are_written_to_its_place) {
  expect(1, x);
  x.open = true;
  EXPECT_EQ(store->look(1), state::coming);
  const auto p = store->arriving(1, 8);
  EXPECT_EQ(p.to, &x);
  EXPECT_TRUE(p.kept.empty());
  x.writing = true;
  EXPECT_EQ(store->arrived(1, true).written, &x);
  EXPECT_FALSE(x.writing);
}

TEST_F(pushed, while_their_access_is_not_open_are_kept_and_told_of) {
  expect(1, x);
  const auto p = store->arriving(1, 8);
  ASSERT_EQ(p.kept.size(), 1u);
  x.open = true;  // meanwhile
  EXPECT_EQ(store->look(1), state::coming);
  EXPECT_EQ(store->arrived(1, true).here, &x);
}

TEST_F(pushed, that_broke_off_may_come_again) {
  expect(1, x);
  store->arriving(1, 8);
  const auto a = store->arrived(1, false);
  EXPECT_EQ(a.here, nullptr);
  EXPECT_EQ(a.written, nullptr);
  x.open = true;
  EXPECT_EQ(store->arriving(1, 8).to, &x);
}

TEST_F(pushed, of_a_bounded_runtime_are_thrown_away_and_asked_for) {
  rt->bounded = true;
  EXPECT_FALSE(come(1));
  expect(1, x);
  EXPECT_EQ(store->look(1), state::ask);
}

TEST_F(pushed, that_are_too_many_are_thrown_away_and_asked_for) {
  const std::uint64_t half = wire::pushed_bytes_max / 2;
  ASSERT_FALSE(store->arriving(1, half).kept.empty());
  ASSERT_FALSE(store->arriving(2, half).kept.empty());
  EXPECT_TRUE(store->arriving(3, 8).kept.empty());
  store->arrived(1, true);
  expect(1, x, half);
  x.open = true;
  store->take(x);
  EXPECT_FALSE(store->arriving(4, 8).kept.empty()) << "there is room again";
}

TEST_F(pushed, for_a_task_that_does_not_run_are_forgotten) {
  EXPECT_TRUE(come(1));
  wire::gap g;
  g.pushed = 1;
  store->forget(std::vector<wire::gap>{g});
  EXPECT_EQ(store->look(1), state::ask);
  EXPECT_FALSE(come(1)) << "a number of before";
}

TEST_F(pushed, for_an_access_that_has_ended_are_forgotten) {
  expect(1, x), expect(2, y);
  store->forget(x);
  EXPECT_FALSE(come(1));
  EXPECT_TRUE(come(2));
}

TEST_F(pushed, for_an_access_that_ends_while_they_come_are_forgotten_then) {
  expect(1, x);
  ASSERT_EQ(store->arriving(1, 8).kept.size(), 1u);
  store->forget(x);
  EXPECT_EQ(store->arrived(1, true).here, nullptr);
  EXPECT_EQ(store->look(1), state::ask);
}

TEST_F(pushed, that_nobody_waits_for_are_forgotten_at_the_end) {
  EXPECT_TRUE(come(1));
  expect(2, x);
  store->forget_unwanted();
  EXPECT_EQ(store->look(1), state::ask);
  EXPECT_EQ(store->look(2), state::coming);
}

TEST_F(pushed, against_the_rules_are_refused) {
  expect(2, x);
  EXPECT_TRUE(is_refused([&] { expect(2, y); })) << "twice under a number";
  EXPECT_TRUE(is_refused([&] { expect(1, y); })) << "numbers grow";
  EXPECT_TRUE(is_refused([&] { store->arriving(2, 16); })) << "another size";
  store->arriving(3, 16);
  EXPECT_TRUE(is_refused([&] { store->arriving(3, 16); })) << "it is being written";
  EXPECT_TRUE(is_refused([&] { expect(3, y, 8); })) << "another size than has come";
}

}  // namespace
