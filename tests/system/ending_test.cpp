// What this file is for: what is left of an owner that dies, and of a worker that is asked to end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <csignal>

#include "tests/system/cluster.hpp"

namespace {

using namespace test;

TEST(ending, of_an_owner_that_dies_nothing_is_left_on_its_worker) {
  const secret proof;
  worker one("one", proof, "127.0.0.1:1");  // nobody is there: it is found, it does not find
  const std::string address = one.address();
  child owner({"/proc/self/exe", "owner", "boss", proof.file(), address});
  owner.line_after("spawned");
  while (one.ran() < 5) {  // each time it answers
  }
  EXPECT_EQ(one.report().find("nodes 1 unfinished"), 0u);
  owner.signal(SIGKILL);
  const auto killed = clock::now();
  std::string left;
  do {
    left = one.report();
  } while (left != "nodes 0 unfinished 0 arrays 0 bytes 0" && seconds_since(killed) < 10);
  EXPECT_EQ(left, "nodes 0 unfinished 0 arrays 0 bytes 0");
  if (!sanitized) {
    EXPECT_LT(seconds_since(killed), 4.0);
  }
  RecordProperty("freed_ms", static_cast<int>(seconds_since(killed) * 1000));
}

TEST(ending, a_worker_that_is_asked_to_end_hands_over_what_it_has) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  child node({TROUPE_BIN_DIR "/troupe", "node", "--cluster", "system-test", "--name", "daemon", "--secret-file",
              proof.file(), "--listen", "127.0.0.1:0", "--join", rt.addresses().front(), "--plugin", SYSTEM_PLUGIN,
              "--threads", "1"});
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s)) << node.err();
  chains work(rt, chains::results::stay_there, 32, 100);
  work.grow(300, scope::at("daemon") | scope::here());
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "daemon") > 50; }));
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait(), ended_with(0)) << node.out() << node.err();
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_TRUE(comes_true(rt, [&] { return rt.nodes().empty(); }));
}

// The spawned tasks would take much longer.
TEST(ending, a_worker_that_is_asked_to_end_does_not_wait_for_the_program) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker other("other", proof, rt.addresses().front());
  child node({TROUPE_BIN_DIR "/troupe", "node", "--cluster", "system-test", "--name", "daemon", "--secret-file",
              proof.file(), "--listen", "127.0.0.1:0", "--join", rt.addresses().front(), "--plugin", SYSTEM_PLUGIN,
              "--threads", "1"});
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s)) << node.err();
  chains work(rt, chains::results::stay_there, 4, 10'000);
  work.grow(250, scope::at("daemon") | scope::at("other"));
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "daemon") > 10; }));
  const auto asked = clock::now();
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait(), ended_with(0)) << node.out() << node.err();
  RecordProperty("ended_ms", static_cast<int>(seconds_since(asked) * 1000));
  EXPECT_LT(work.finished(), work.spawned()) << "too little work: it was not in the middle of it";
  ASSERT_TRUE(rt.wait_all_for(60s));
  EXPECT_EQ(work.wrong(), 0);
}

}  // namespace
