// What this file is for: which device is asked to lend a tile to which, and what is done where none can or wants to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/protocol/peer_loan.hpp"
#include "stage.hpp"

namespace {

using namespace test;
using troupe::access_mode;
using troupe::device_kind;
constexpr auto reads = access_mode::read, writes = access_mode::write, updates = access_mode::update;

// A core group and three devices, spaces 1 to 3; the first two reach each other's memory, the third none.
class placement_peers : public testing::Test {
 protected:
  placement_peers() {
    for (std::uint16_t i = 0; i < 4; ++i)
      s.add({i, (i == 0 ? "cpu:" : "device:") + std::to_string(i), device_kind::cpu, i, 1});
    s.placement_actor->connect(1, 2);
  }
  task_record* spawn_on(int executor, const std::vector<stage::use>& uses) {
    task_record* t = s.task(uses);
    stage::extra(t).executors = {static_cast<int>(executor)};
    return s.submit(t);
  }
  // The tile is dirty there.
  array_core* written_on(int executor) {
    array_core* a = s.array();
    s.complete(spawn_on(executor, {{a, writes}}));
    return a;
  }
  std::vector<task_record*>& held(int executor) { return s.groups[static_cast<std::size_t>(executor)]->held; }
  task_record* only(int executor, task_kind kind) {
    if (held(executor).size() != 1 || held(executor)[0]->kind != kind) return nullptr;
    return held(executor)[0];
  }
  // As the device does.
  std::shared_ptr<peer_loan> lend(int executor) {
    task_record* internal_task = only(executor, task_kind::lend);
    if (!internal_task) return nullptr;
    auto loan = internal_task->extra->loans.at(0);
    loan->open(&memory);
    s.complete(internal_task);
    return loan;
  }
  static std::size_t loans(const task_record* t) { return t->extra->loans.size(); }

  int memory = 0;
  stage s{troupe::options{}};
};

TEST_F(placement_peers, a_task_is_handed_over_with_the_loan_once_it_is_open) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, reads}});
  EXPECT_FALSE(s.is_out(t));
  const auto loan = lend(1);
  ASSERT_TRUE(loan);
  EXPECT_EQ(s.holder(t), s.groups[2].get());
  ASSERT_EQ(loans(t), 1u);
  EXPECT_EQ(t->extra->loans[0], loan);
  EXPECT_EQ(loan->array, a);
  EXPECT_EQ(loan->from, 1);
  EXPECT_EQ(loan->memory(), &memory);
}

TEST_F(placement_peers, all_who_read_a_version_share_a_loan) {
  array_core* a = written_on(1);
  task_record *t = spawn_on(2, {{a, reads}}), *u = spawn_on(2, {{a, reads}});
  const auto loan = lend(1);
  ASSERT_TRUE(loan);
  task_record* late = spawn_on(2, {{a, reads}});
  EXPECT_TRUE(held(1).empty());  // nobody asks again
  for (task_record* x : {t, u, late}) {
    ASSERT_TRUE(s.is_out(x));
    ASSERT_EQ(loans(x), 1u);
    EXPECT_EQ(x->extra->loans[0], loan);
  }
}

TEST_F(placement_peers, a_loan_that_is_called_back_sends_the_tile_home) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, reads}});
  task_record* internal_task = only(1, task_kind::lend);
  ASSERT_TRUE(internal_task);
  internal_task->extra->loans.at(0)->call_back();
  s.complete(internal_task);
  EXPECT_FALSE(s.is_out(t));
  task_record* transfer = only(1, task_kind::transfer);
  ASSERT_TRUE(transfer);
  s.complete(transfer);
  EXPECT_TRUE(s.is_out(t));
  EXPECT_EQ(loans(t), 0u);
}

TEST_F(placement_peers, a_task_given_back_because_the_loan_was_called_back_is_placed_again) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, reads}});
  const auto loan = lend(1);
  ASSERT_TRUE(loan);
  ASSERT_TRUE(loan->call_back());
  held(2).clear();
  s.placement_actor->report_returned({&t, 1});
  EXPECT_FALSE(s.is_out(t));
  task_record* transfer = only(1, task_kind::transfer);
  ASSERT_TRUE(transfer);
  s.complete(transfer);
  EXPECT_EQ(s.holder(t), s.groups[2].get());
  EXPECT_EQ(loans(t), 0u);
}

TEST_F(placement_peers, who_writes_the_tile_is_asked_from_then_on) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, updates}});
  ASSERT_TRUE(lend(1));
  s.complete(t);
  task_record* back = spawn_on(1, {{a, reads}});
  EXPECT_FALSE(s.is_out(back));
  const auto loan = lend(2);
  ASSERT_TRUE(loan);
  EXPECT_EQ(loan->from, 2);
  EXPECT_EQ(s.holder(back), s.groups[1].get());
}

TEST_F(placement_peers, a_tile_that_is_overwritten_is_given_up_and_not_lent) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, writes}});
  task_record* internal_task = only(1, task_kind::transfer);
  ASSERT_TRUE(internal_task);
  EXPECT_EQ(internal_task->accesses[0].mode, access_mode::write);
  s.complete(internal_task);
  EXPECT_TRUE(s.is_out(t));
  EXPECT_FALSE(t->extra && loans(t) != 0);
}

TEST_F(placement_peers, without_a_connection_the_tile_goes_home) {
  array_core* a = written_on(1);
  task_record *far = spawn_on(3, {{a, reads}}), *host = spawn_on(0, {{a, reads}});
  task_record* transfer = only(1, task_kind::transfer);
  ASSERT_TRUE(transfer);
  s.complete(transfer);
  EXPECT_TRUE(s.is_out(far));
  EXPECT_TRUE(s.is_out(host));
}

TEST_F(placement_peers, a_device_that_has_failed_is_not_connected_any_more) {
  const troupe::error why(troupe::errc::device_lost, "unplugged");
  s.placement_actor->report_failure(*s.groups[2], {}, std::make_exception_ptr(why), false);
  array_core *a = written_on(1), *b = written_on(2);
  spawn_on(2, {{a, reads}});
  spawn_on(1, {{b, reads}});
  EXPECT_TRUE(only(1, task_kind::transfer));
  EXPECT_TRUE(only(2, task_kind::transfer));
}

TEST_F(placement_peers, what_was_lost_with_the_lender_is_told_to_who_waits_for_it) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, reads}});
  task_record* internal_task = only(1, task_kind::lend);
  ASSERT_TRUE(internal_task);
  const troupe::error why(troupe::errc::device_lost, "unplugged");
  const std::vector<std::pair<array_core*, std::uint32_t>> lost{{a, 0}};
  s.placement_actor->report_failure(*s.groups[1], lost, std::make_exception_ptr(why), false);
  internal_task->extra->loans.at(0)->call_back();
  s.complete(internal_task);
  EXPECT_TRUE(stage::is_done(t));
  EXPECT_TRUE(t->error);
}

TEST_F(placement_peers, when_the_dirty_copy_is_lost_who_has_copied_it_is_asked_one_after_the_other) {
  s.placement_actor->connect(1, 3);
  for (const bool last_has_it : {false, true}) {
    array_core* a = written_on(1);
    task_record *t = spawn_on(2, {{a, reads}}), *u = spawn_on(3, {{a, reads}});
    ASSERT_TRUE(lend(1));
    s.complete(t);
    s.complete(u);
    const troupe::error why(troupe::errc::device_lost, "unplugged");
    const std::vector<std::pair<array_core*, std::uint32_t>> lost{{a, 0}};
    s.placement_actor->report_failure(*s.groups[1], lost, std::make_exception_ptr(why), false);
    s.placement_actor->connect(1, 2);
    s.placement_actor->connect(1, 3);
    task_record* reader = spawn_on(0, {{a, reads}});
    EXPECT_FALSE(s.is_out(reader));
    task_record* internal_task = only(2, task_kind::transfer);
    ASSERT_TRUE(internal_task);
    s.complete(internal_task, 1000, std::make_exception_ptr(why));
    EXPECT_FALSE(stage::is_done(reader));
    internal_task = only(3, task_kind::transfer);
    ASSERT_TRUE(internal_task);
    s.complete(internal_task, 1000, last_has_it ? nullptr : std::make_exception_ptr(why));
    EXPECT_EQ(s.is_out(reader), last_has_it);
    EXPECT_EQ(stage::is_done(reader), !last_has_it);
    if (last_has_it) s.complete(reader);
  }
}

TEST_F(placement_peers, a_transfer_that_its_device_has_forgotten_is_no_copy_at_home) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, reads}});
  ASSERT_TRUE(lend(1));
  s.complete(t);
  task_record* reader = spawn_on(0, {{a, reads}});
  task_record* forgotten = only(1, task_kind::transfer);
  ASSERT_TRUE(forgotten);
  const troupe::error why(troupe::errc::device_lost, "unplugged");
  const std::vector<std::pair<array_core*, std::uint32_t>> lost{{a, 0}};
  s.placement_actor->report_failure(*s.groups[1], lost, std::make_exception_ptr(why), false);
  s.complete(forgotten);  // there was nothing left to bring
  EXPECT_FALSE(s.is_out(reader));
  task_record* internal_task = only(2, task_kind::transfer);
  ASSERT_TRUE(internal_task);
  s.complete(internal_task);
  EXPECT_TRUE(s.is_out(reader));
}

TEST_F(placement_peers, a_tile_that_was_written_elsewhere_is_not_lost_with_the_lender) {
  array_core* a = written_on(1);
  task_record* t = spawn_on(2, {{a, updates}});
  const auto loan = lend(1);
  ASSERT_TRUE(loan && loan->begin() && loan->replace());  // it has ended, and nobody has told placement
  loan->break_off();
  const troupe::error why(troupe::errc::device_lost, "unplugged");
  const std::vector<std::pair<array_core*, std::uint32_t>> lost{{a, 0}};
  s.placement_actor->report_failure(*s.groups[1], lost, std::make_exception_ptr(why), false);
  EXPECT_EQ(held(2), std::vector<task_record*>{t});  // nobody is asked for an older copy
  s.complete(t);
  task_record* reader = spawn_on(0, {{a, reads}});
  ASSERT_TRUE(only(2, task_kind::transfer));
  s.complete(only(2, task_kind::transfer));
  EXPECT_TRUE(s.is_out(reader));
}

TEST_F(placement_peers, nobody_is_sent_behind_a_task_that_is_lent_something) {
  array_core *a = written_on(1), *b = s.array();
  task_record* t = spawn_on(2, {{a, reads}, {b, writes}});
  task_record* next = spawn_on(2, {{b, updates}});
  ASSERT_TRUE(lend(1));
  EXPECT_TRUE(s.is_out(t));
  EXPECT_FALSE(s.is_out(next));
  s.complete(t);
  EXPECT_TRUE(s.is_out(next));
}

TEST_F(placement_peers, a_way_between_devices_counts_as_itself_and_else_as_both_hops) {
  for (std::uint16_t i = 1; i < 4; ++i) s.placement_actor->know_link(i, {1'000, 1}, {10'000, 1});
  s.placement_actor->know_peers(1, 2, {300, 1}, {200, 1});
  array_core* a = written_on(1);
  task_record* t = s.submitted({{a, reads}});
  const auto e = s.placement_actor->explain(*t);
  ASSERT_EQ(e.candidates.size(), 4u) << e.text();
  const auto ns = [&](std::size_t i) { return e.candidates[i].transfer.count(); };
  EXPECT_EQ(ns(1), 0) << e.text();
  EXPECT_NEAR(static_cast<double>(ns(2)), 200, 20) << e.text();
  EXPECT_NEAR(static_cast<double>(ns(3)), 11'000, 200) << e.text();
  EXPECT_NEAR(static_cast<double>(ns(0)), 10'000, 100) << e.text();
  EXPECT_EQ(e.candidates[2].bytes_from_peers, e.candidates[2].bytes_missing) << e.text();
  EXPECT_GT(e.candidates[2].bytes_from_peers, 0u) << e.text();
  EXPECT_EQ(e.candidates[3].bytes_from_peers, 0u) << e.text();
  EXPECT_NE(e.text().find("from peers"), std::string::npos) << e.text();
}

TEST_F(placement_peers, real_copies_teach_the_cost_of_the_way_between_devices) {
  s.placement_actor->know_peers(1, 2, {300, 1}, {200, 1});
  for (int i = 0; i < 30; ++i) {
    s.placement_actor->report_transfer(1, 2, 8, 90'000);
    s.complete(spawn_on(0, {}));
  }
  array_core* a = written_on(1);
  task_record* t = s.submitted({{a, reads}});
  const auto e = s.placement_actor->explain(*t);
  ASSERT_EQ(e.candidates.size(), 4u) << e.text();
  EXPECT_GT(e.candidates[2].transfer.count(), 50'000) << e.text();
}

// ---- the loan itself ------------------------------------------------------------------------------------------------

TEST(peer_loan, is_refused_before_it_is_open_and_once_it_was_called_back) {
  array_core a;
  peer_loan loan(a, 0, 1, 1);
  EXPECT_FALSE(loan.begin());
  int memory = 0;
  loan.open(&memory);
  EXPECT_TRUE(loan.begin());
  EXPECT_TRUE(loan.begin());
  EXPECT_FALSE(loan.call_back());  // in use
  loan.end();
  EXPECT_FALSE(loan.call_back());
  EXPECT_TRUE(loan.is_open());
  loan.end();
  EXPECT_TRUE(loan.call_back());
  EXPECT_TRUE(loan.call_back());
  EXPECT_FALSE(loan.begin());
  EXPECT_FALSE(loan.is_open());
}

TEST(peer_loan, that_is_broken_off_tells_who_uses_it_and_refuses_others) {
  array_core a;
  peer_loan loan(a, 0, 1, 1);
  int memory = 0;
  loan.open(&memory);
  ASSERT_TRUE(loan.begin());
  EXPECT_FALSE(loan.is_broken());
  loan.break_off();
  EXPECT_TRUE(loan.is_broken());
  EXPECT_FALSE(loan.begin());
  EXPECT_FALSE(loan.is_open());
  EXPECT_FALSE(loan.replace());
  loan.end();
  EXPECT_FALSE(loan.begin());
}

TEST(peer_loan, whose_tile_was_written_elsewhere_says_so_to_the_lender_even_if_that_fails) {
  array_core a;
  peer_loan loan(a, 0, 1, 1);
  int memory = 0;
  loan.open(&memory);
  ASSERT_TRUE(loan.begin());
  EXPECT_TRUE(loan.replace());
  EXPECT_TRUE(loan.is_replaced());
  loan.withdraw();
  EXPECT_FALSE(loan.is_replaced());
  EXPECT_TRUE(loan.replace());
  loan.break_off();
  EXPECT_TRUE(loan.is_replaced());
  EXPECT_TRUE(loan.is_broken());
  loan.end();
}

}  // namespace
