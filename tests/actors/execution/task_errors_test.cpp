// What this file is for: what errors of tasks and of their data say, word for word, and what code they have.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/task_errors.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/dependencies.hpp"

namespace {

using namespace troupe::detail;
using troupe::errc;

std::exception_ptr cause(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }
errc code_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const troupe::error& x) {
    return x.code();
  }
}
/// What a wait for the task says, or "nothing".
std::string thrown_by(const task_record& t) {
  try {
    throw_task_error(t);
  } catch (const troupe::error& e) {
    return e.what();
  }
  return "nothing";
}

class task_errors : public testing::Test {
 protected:
  task_errors() {
    named(task_, "solve", &own_);
    named(other_, "load", &others_);
  }
  static void named(task_record& t, const char* name, task_extra* extra) {
    static constexpr kernel_info kernel{.name = "kernel"};
    extra->options.name = name;
    t.kernel = &kernel;
    t.extra = extra;
  }
  task_extra own_, others_;
  task_record task_, other_;
};

TEST_F(task_errors, name_task_executor_and_cause) {
  const std::exception_ptr e = task_error(task_, "sim:0", 1, cause("no luck"));
  EXPECT_EQ(text_of(e), "task 'solve' failed on sim:0: no luck");
  EXPECT_EQ(code_of(e), errc::task_failed);
  EXPECT_EQ(text_of(task_error(task_, "sim:0", 3, cause("no luck"))),
            "task 'solve' failed on sim:0 after 3 attempts: no luck");
  const std::exception_ptr unrun = task_error(task_, "", 0, cause("no room"), errc::out_of_memory);
  EXPECT_EQ(text_of(unrun), "task 'solve' was not run: no room");
  EXPECT_EQ(code_of(unrun), errc::out_of_memory);
  EXPECT_EQ(reason_of(unrun), "no room");
}

TEST_F(task_errors, of_a_lost_copy_name_the_tile_and_what_it_went_with) {
  array_core a;
  a.spec.name = "matrix";
  const std::exception_ptr e = lost_copy_error(a, 7, "node 'n2'", cause("the link is down"));
  EXPECT_EQ(text_of(e), "array 'matrix', tile 7: its only copy went with node 'n2': the link is down");
  EXPECT_EQ(code_of(e), errc::data_lost);
  const std::exception_ptr again = lost_copy_error(a, 7, "n2", cause("no luck"), ", and it could not be made again");
  EXPECT_EQ(text_of(again),
            "array 'matrix', tile 7: its only copy went with n2, and it could not be made again: no luck");
  EXPECT_EQ(code_of(again), errc::data_lost);
}

TEST_F(task_errors, of_what_no_body_threw_have_the_code_of_their_cause) {
  EXPECT_EQ(failure_code(std::make_exception_ptr(troupe::error(errc::device_lost, "gone"))), errc::device_lost);
  EXPECT_EQ(failure_code(std::make_exception_ptr(std::bad_alloc())), errc::out_of_memory);
  EXPECT_EQ(failure_code(cause("anything")), errc::task_failed);
  EXPECT_EQ(failure_code(nullptr), errc::task_failed);
}

TEST_F(task_errors, of_a_deadline_are_others_than_those_of_a_request) {
  EXPECT_EQ(text_of(stopped_error(task_, "cpu:0")), "task 'solve' was cancelled");
  EXPECT_EQ(code_of(stopped_error(task_, "cpu:0")), errc::cancelled);
  EXPECT_FALSE(is_past_deadline(task_, 1'000'000)) << "it has none";
  own_.options.deadline = std::chrono::milliseconds(20);
  own_.due = 100;
  own_.overdue = std::make_shared<observed<std::uint64_t>>();
  EXPECT_FALSE(is_past_deadline(task_, 99));
  EXPECT_EQ(code_of(stopped_error(task_, "cpu:0")), errc::cancelled);
  EXPECT_TRUE(is_past_deadline(task_, 100));
  EXPECT_EQ(text_of(stopped_error(task_, "cpu:0")),
            "task 'solve' had not ended on cpu:0 by its deadline, 20 ms after the call: give it longer, or run it "
            "elsewhere");
  EXPECT_EQ(code_of(stopped_error(task_, "")), errc::timed_out);
}

TEST_F(task_errors, of_a_run_name_the_call_and_the_run) {
  const std::exception_ptr of_call = task_error(other_, "cpu:0", 1, cause("no luck"));
  const std::exception_ptr e = run_error(task_, of_call);
  EXPECT_EQ(text_of(e), "task 'load' of 'solve' failed on cpu:0: no luck");
  EXPECT_EQ(run_error(task_, nullptr), nullptr);
  const std::exception_ptr foreign = cause("not a task's");
  EXPECT_EQ(run_error(task_, foreign), foreign);
}

TEST_F(task_errors, are_thrown_as_they_are_by_the_task_itself) {
  EXPECT_EQ(thrown_by(task_), "nothing");
  task_.error = task_error(task_, "cpu:0", 1, cause("no luck"));
  EXPECT_EQ(thrown_by(task_), "task 'solve' failed on cpu:0: no luck");
}

TEST_F(task_errors, of_another_task_say_whom_this_one_depends_on) {
  task_.error = task_error(other_, "cpu:0", 1, cause("no luck"));
  task_.measured_ns = never_ran;
  EXPECT_EQ(thrown_by(task_),
            "task 'solve' did not run, because it depends on 'load': task 'load' failed on cpu:0: no luck");
  try {
    throw_task_error(task_);
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), errc::dependency_failed);
    EXPECT_EQ(e.root_task(), "load");
    EXPECT_EQ(e.task(), "solve");
  }
  task_.error = cancelled_error(other_, "cpu:0");
  EXPECT_THROW(
      {
        try {
          throw_task_error(task_);
        } catch (const troupe::task_failed& e) {
          EXPECT_EQ(e.code(), errc::cancelled) << "it was stopped as the other one was";
          throw;
        }
      },
      troupe::task_failed);
}

}  // namespace
