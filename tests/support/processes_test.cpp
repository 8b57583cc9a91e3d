// What this file is for: that programs under test are started, heard, signalled, looked into and reaped.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tests/support/processes.hpp"

namespace {

using namespace test;
using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }
bool is_there(pid_t id) { return ::kill(id, 0) == 0 || errno != ESRCH; }
std::size_t own_descriptors() { return facts_of(::getpid()).descriptors; }

TEST(processes, give_their_output_line_by_line_and_their_exit_code) {
  child c(shell("echo one; echo two; printf three; echo oops >&2; exit 7"));
  EXPECT_EQ(c.line(), "one");
  EXPECT_EQ(c.line(), "two");
  EXPECT_EQ(c.line(), "three");
  EXPECT_EQ(c.line(), std::nullopt);
  EXPECT_EQ(c.line(), std::nullopt);
  EXPECT_EQ(c.wait(), ended_with(7));
  EXPECT_EQ(c.wait(), ended_with(7));
  EXPECT_FALSE(c.is_running());
  EXPECT_EQ(c.err(), "oops\n");
  EXPECT_EQ(c.out(), "one\ntwo\nthree");
}

TEST(processes, are_told_things_and_answer) {
  child c(shell("while read -r word; do echo \"heard $word\"; done; echo bye"));
  EXPECT_TRUE(c.is_running());
  c.tell("this");
  EXPECT_EQ(c.line_after("heard "), "this");
  c.tell("a");
  c.tell("b");
  EXPECT_EQ(c.line_where([](const auto& l) { return l.ends_with("b"); }), "heard b");
  c.end_input();
  EXPECT_EQ(c.line(), "bye");
  EXPECT_EQ(c.wait(), ended_with(0));
  EXPECT_THROW(c.tell("more"), std::runtime_error);
}

TEST(processes, that_say_nothing_in_time_are_given_up_with_what_they_have_said) {
  child c(shell("echo started; echo trouble >&2; read -r forever"));
  EXPECT_EQ(c.line(), "started");
  // The error goes to a file, which no line tells about; the facts do: it waits in read.
  try {
    c.line(50ms);
    FAIL() << "there was a line";
  } catch (const too_late& e) {
    EXPECT_THAT(e.what(), HasSubstr("started"));
  }
  EXPECT_THROW(c.wait(10ms), too_late);
  c.end_input();
  EXPECT_EQ(c.wait(), ended_with(1));
  EXPECT_EQ(c.err(), "trouble\n");
}

TEST(processes, that_end_without_the_line_are_not_waited_for) {
  child c(shell("echo one; echo two"));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_THROW(c.line_after("three"), too_late);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
}

TEST(processes, are_killed_stopped_and_continued_by_signals) {
  child c(shell("trap 'echo ended; exit 3' TERM; echo ready; while :; do read -r x || exit 4; echo \"$x\"; done"));
  EXPECT_EQ(c.line(), "ready");
  for (int round = 0; round < 3; ++round) {
    c.signal(SIGSTOP);
    EXPECT_EQ(c.facts().state, 'T');
    c.signal(SIGSTOP);  // nothing new
    c.tell("later");
    EXPECT_THROW(c.line(20ms), too_late);
    c.signal(SIGCONT);
    EXPECT_NE(c.facts().state, 'T');
    c.signal(SIGCONT);
    EXPECT_EQ(c.line(), "later");
  }
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), killed_by(SIGKILL));
  EXPECT_THROW(c.signal(SIGTERM), std::runtime_error);

  child polite(shell("trap 'echo ended; exit 3' TERM; echo ready; read -r x"));
  EXPECT_EQ(polite.line(), "ready");
  polite.signal(SIGTERM);
  polite.end_input();  // a shell's trap runs when its read has ended
  EXPECT_EQ(polite.line(), "ended");
  EXPECT_EQ(polite.wait(), ended_with(3));
}

TEST(processes, do_not_outlive_their_owner_even_if_they_are_stopped) {
  pid_t plain = 0, stopped = 0;
  {
    child a(shell("trap '' TERM INT; echo ready; read -r x")), b(shell("echo ready; read -r x"));
    EXPECT_EQ(a.line(), "ready");
    EXPECT_EQ(b.line(), "ready");
    b.signal(SIGSTOP);
    plain = a.id();
    stopped = b.id();
    EXPECT_TRUE(is_there(plain) && is_there(stopped));
  }
  EXPECT_FALSE(is_there(plain));
  EXPECT_FALSE(is_there(stopped));
}

TEST(processes, that_have_ended_by_themselves_are_reaped_too) {
  pid_t id = 0;
  {
    child c(shell("exit 0"));
    id = c.id();
    EXPECT_EQ(c.line(), std::nullopt);
  }
  EXPECT_EQ(::waitpid(id, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(processes, go_from_hand_to_hand) {
  child a(shell("echo a; read -r x"));
  const pid_t first = a.id();
  child b(shell("echo b; read -r x"));
  EXPECT_EQ(a.line(), "a");
  a = std::move(b);
  EXPECT_FALSE(is_there(first));
  EXPECT_EQ(a.line(), "b");
}

TEST(processes, that_write_much_before_they_end_are_not_held_up) {
  child c(shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; exit 5"));
  EXPECT_EQ(c.wait(), ended_with(5));
  EXPECT_EQ(c.out().size(), 20000u * 11);
  EXPECT_EQ(c.line(), "0123456789");  // still to be read
}

TEST(processes, whose_own_children_keep_the_output_open_still_end) {
  child c(shell("sleep 1000 & echo $!; exit 2"));
  const pid_t grandchild = std::stoi(*c.line());
  EXPECT_EQ(c.wait(), ended_with(2));
  ::kill(grandchild, SIGKILL);
}

TEST(processes, say_what_they_use) {
  child c(shell("exec 7</dev/null 8</dev/null; echo ready; read -r x"));
  EXPECT_EQ(c.line(), "ready");
  const auto f = c.facts();
  EXPECT_EQ(f.descriptors, 5u);  // 0, 1, 2, 7 and 8: nothing else of the test's
  EXPECT_EQ(f.threads, 1u);
  EXPECT_GT(f.resident_bytes, 100u << 10);
  EXPECT_LT(f.resident_bytes, 100u << 20);
  EXPECT_THAT(f.state, testing::AnyOf('S', 'R', 'D'));
  const pid_t id = c.id();
  c.signal(SIGKILL);
  c.wait();
  EXPECT_THROW(facts_of(id), std::runtime_error);
}

TEST(processes, that_cannot_be_started_say_so) {
  const auto before = own_descriptors();
  EXPECT_THROW(child({"/no/such/program"}), std::runtime_error);
  EXPECT_THROW(child({"/"}), std::runtime_error);
  child_options wrong;
  wrong.net_namespace = 9999;
  EXPECT_THROW(child({"true"}, wrong), std::runtime_error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // and nobody is left
  EXPECT_EQ(own_descriptors(), before);
}

TEST(processes, leave_no_descriptors_behind) {
  const auto before = own_descriptors();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(shell("echo x")).out, "x\n");
  EXPECT_EQ(own_descriptors(), before);
}

TEST(processes, see_the_environment_and_the_limits_that_they_are_given) {
  child_options with;
  with.environment = {"TROUPE_TEST_WORD=some", "HOME=/elsewhere"};
  with.descriptors_max = 33;
  const auto done = run(shell("echo $TROUPE_TEST_WORD $HOME; ulimit -n; test -n \"$PATH\" && echo path"), with);
  EXPECT_EQ(done.out, "some /elsewhere\n33\npath\n");
  child_options small;
  small.address_space_max = 1 << 30;
  EXPECT_EQ(run(shell("ulimit -v"), small).out, "1048576\n");
}

TEST(processes, have_a_small_disk_of_their_own_where_they_are_given_one) {
  char folder[] = "/tmp/troupe-disk-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  child_options with;
  with.small_disk = folder;
  with.small_disk_bytes = 1 << 20;
  std::string said;
  try {
    said = run(shell(std::string("cd ") + folder + "; head -c 600000 /dev/zero > one && echo one; " +
                     "head -c 600000 /dev/zero > two || echo full"),
               with)
               .out;
  } catch (const std::runtime_error&) {  // no right to mount
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  if (said.empty()) GTEST_SKIP() << "a disk of its own needs CAP_SYS_ADMIN or user namespaces";
  EXPECT_EQ(said, "one\nfull\n");
}

}  // namespace
