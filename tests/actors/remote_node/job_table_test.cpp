// What this file is for: jobs are found by the numbers under which they were sent, and by no other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/job_table.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using troupe::errc;
using troupe::error;
using troupe::detail::job;
using troupe::detail::job_table;
using troupe::detail::task_record;

struct jobs_test : testing::Test {
  task_record one, two;
  job_table jobs;
};

TEST_F(jobs_test, are_found_until_they_are_given_back) {
  job& a = jobs.take(one);
  job& b = jobs.take(two);
  EXPECT_EQ(jobs.under_way(), 2u);
  EXPECT_NE(a.id, b.id);
  EXPECT_EQ(jobs.find(a.id), &a);
  EXPECT_EQ(jobs.find_told(b.id), &b);
  const std::uint64_t id = a.id;
  jobs.give(a);
  EXPECT_EQ(jobs.under_way(), 1u);
  EXPECT_EQ(jobs.find(id), nullptr);
  EXPECT_EQ(jobs.find_told(id), nullptr);  // it was told once, so this is no error
}

TEST_F(jobs_test, have_numbers_that_are_never_used_again) {
  job& a = jobs.take(one);
  const std::uint64_t id = a.id;
  jobs.give(a);
  job& again = jobs.take(two);
  EXPECT_EQ(&again, &a);  // the same index
  EXPECT_NE(again.id, id);
  EXPECT_EQ(jobs.find(id), nullptr);
}

TEST_F(jobs_test, begin_without_what_the_job_before_left) {
  job& a = jobs.take(one);
  a.begun = a.recalled = true;
  a.tried = a.copies = a.writing = a.pushing = a.sending = 3;
  a.end.emplace();
  a.lent.push_back({});
  jobs.give(a);
  job& b = jobs.take(two);
  EXPECT_FALSE(b.begun || b.recalled || b.end || b.is_awaited() || b.is_touched());
  EXPECT_EQ(b.tried, 0);
  EXPECT_TRUE(b.lent.empty());
}

TEST_F(jobs_test, that_were_never_told_are_an_error_of_the_node) {
  const auto code = [&](std::uint64_t id) {
    try {
      jobs.find_told(id);
      return errc::task_failed;
    } catch (const error& e) {
      return e.code();
    }
  };
  EXPECT_EQ(code(0), errc::protocol_error);
  const std::uint64_t id = jobs.take(one).id;
  EXPECT_EQ(code(id + 1), errc::protocol_error);           // an index that there is not
  EXPECT_EQ(code(id + (1u << 20)), errc::protocol_error);  // a number that has not been given yet
  EXPECT_NE(code(id), errc::protocol_error);
}

TEST_F(jobs_test, a_number_without_a_job_finds_none_and_is_no_error) {
  const std::uint64_t number = jobs.number_without_job();
  EXPECT_EQ(jobs.find(number), nullptr);
  EXPECT_EQ(jobs.find_told(number), nullptr);
  EXPECT_NE(jobs.take(one).id, number);
}

TEST_F(jobs_test, may_be_given_back_while_all_are_visited) {
  jobs.take(one);
  jobs.take(two);
  std::vector<task_record*> seen;
  jobs.each([&](job& j) {
    seen.push_back(j.task);
    jobs.give(j);
  });
  EXPECT_EQ(seen, (std::vector<task_record*>{&one, &two}));
  EXPECT_FALSE(jobs.any([](const job&) { return true; }));
  EXPECT_EQ(jobs.under_way(), 0u);
}

}  // namespace
