// What this file is for: nodes that run out of memory, disk or descriptors: each result is right all the same.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/strangers.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

constexpr std::size_t MiB = 1 << 20;
const scope at_one = scope::at("one"), anywhere = scope::at("one") | scope::here();

/// An owner and the worker "one", which is short of something.
struct owner_and_poor {
  explicit owner_and_poor(const child_options& how) : one("one", proof, rt.addresses().front(), "127.0.0.1:0", how) {
    EXPECT_TRUE(rt.wait_for_nodes(1, 10s));
  }
  /// Nothing that is held for this owner is left there once it has let go of it, nor anything here.
  void expect_nothing_left() {
    ASSERT_TRUE(rt.wait_all_for(20s));
    EXPECT_TRUE(comes_true(rt, [&] { return one.report() == "nodes 1 unfinished 0 arrays 0 bytes 0"; }))
        << one.report() << one.process.err();
    EXPECT_EQ(rt.report().arrays, 0u);
    EXPECT_EQ(rt.report().bytes_allocated, 0u);
    // The worker works as before. (It may just be coming back, if it could not take in what it was told.)
    ASSERT_TRUE(rt.wait_for_nodes(1, 20s));
    chains next(rt, chains::results::stay_there, 4, 0);
    next.grow(5, at_one);
    EXPECT_EQ(next.wrong(), 0);
  }

  secret proof;
  troupe::runtime rt{owner_options(proof)};
  worker one;
};

/// Hashes each tile a few times where there is room.
void work_through(troupe::runtime& rt, troupe::index_t tiles, troupe::index_t tile, std::uint64_t steps) {
  const auto data = rt.filled<std::uint64_t>({tiles * tile}, troupe::tiles(tile), 1);
  for (std::uint64_t s = 0; s < steps; ++s)
    rt.for_each({.where = anywhere}, troupe::grid(tiles * tile), link_on, troupe::update(data), s, std::uint64_t{20});
  ASSERT_TRUE(rt.wait_all_for(60s));
  std::uint64_t right = 1;
  for (std::uint64_t s = 0; s < steps; ++s) right = hashed(right, s);
  const auto v = data.read();
  troupe::index_t wrong = 0;
  for (troupe::index_t i = 0; i < tiles * tile; ++i) wrong += v(i) == right ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

TEST(shortage, of_a_workers_memory_costs_no_result) {
  owner_and_poor n(with_memory(MiB));
  work_through(n.rt, 64, 8192, 10);  // four times what it has
  EXPECT_GT(n.one.ran(), 0u);
  n.expect_nothing_left();
}

TEST(shortage, of_a_workers_memory_is_told_where_nobody_else_may_do_the_work) {
  owner_and_poor n(with_memory(MiB));
  const auto expect_no_memory = [](const troupe::future<void>& f) {
    try {
      f.get();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const troupe::task_failed& e) {
      EXPECT_EQ(e.code(), troupe::errc::out_of_memory);
      EXPECT_EQ(e.executor(), "one");
      try {
        e.rethrow_cause();
      } catch (const troupe::error& cause) {
        EXPECT_EQ(cause.code(), troupe::errc::out_of_memory) << cause.what();
      }
    }
  };
  {
    const auto large = n.rt.filled<std::uint64_t>({1 << 18}, troupe::tiles(1 << 18), 1);  // twice what it has
    const auto f = n.rt.spawn({.where = at_one}, link_on, troupe::update(large), std::uint64_t{1}, std::uint64_t{0});
    ASSERT_TRUE(f.wait_for(20s));
    expect_no_memory(f);
    // Together twice what it has: half of them have room.
    std::vector<troupe::array<std::uint64_t, 1>> all;
    std::vector<troupe::future<void>> tasks;
    for (int i = 0; i < 32; ++i) {
      all.push_back(n.rt.filled<std::uint64_t>({8192}, troupe::tiles(8192), 1));
      tasks.push_back(
          n.rt.spawn({.where = at_one}, link_on, troupe::update(all.back()), std::uint64_t{1}, std::uint64_t{0}));
    }
    ASSERT_TRUE(n.rt.wait_all_for(20s));
    EXPECT_EQ(n.one.ran(), 16u);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(all[i].read()(7), hashed(1, 1));
    for (std::size_t i = 16; i < 32; ++i) expect_no_memory(tasks[i]);
  }
  n.expect_nothing_left();
}

TEST(shortage, of_a_workers_memory_does_not_lose_what_was_computed_there) {
  owner_and_poor n(with_memory(MiB));
  for (int round = 0; round < 5; ++round) {
    const auto chain = n.rt.filled<std::uint64_t>({8192}, troupe::tiles(8192), 1);
    const auto large = n.rt.filled<std::uint64_t>({1 << 18}, troupe::tiles(1 << 18), 5);
    std::uint64_t right = 1;
    for (std::uint64_t s = 0; s < 4; ++s) {
      n.rt.spawn({.where = at_one}, link_on, troupe::update(chain), s, std::uint64_t{0});
      right = hashed(right, s);
    }
    if (round % 2 == 0) n.rt.wait_all();
    // For this it has no room, and what the chain was is only there.
    n.rt.spawn({.where = anywhere}, mix_in, troupe::read(large), troupe::update(chain));
    n.rt.spawn({.where = anywhere}, link_on, troupe::update(chain), std::uint64_t{9}, std::uint64_t{0});
    right = hashed(hashed(right, 5), 9);
    ASSERT_TRUE(n.rt.wait_all_for(20s));
    const auto v = chain.read();
    for (troupe::index_t i = 0; i < 8192; ++i) ASSERT_EQ(v(i), right) << round;
  }
  n.expect_nothing_left();
}

// The system itself has no more for it, anywhere: it may even end of that, as of any other fault.
TEST(shortage, of_a_workers_address_space_costs_no_result) {
  if (needs_address_space)
    GTEST_SKIP() << "sanitizers map shadow memory: no limit of the address space leaves room for work";
  child_options how;
  how.address_space_max = 500 * MiB;
  owner_and_poor n(how);
  work_through(n.rt, 128, 1 << 19, 3);  // 512 MiB
}

TEST(shortage, of_a_workers_disk_costs_no_result) {
  const scratch_folder folder;
  const std::string disk = (folder.path() / "disk").string();
  std::filesystem::create_directory(disk);
  child_options how = with_memory(MiB, disk);
  how.small_disk = disk;
  how.small_disk_bytes = 2 * MiB;
  std::unique_ptr<owner_and_poor> n;
  try {
    n = std::make_unique<owner_and_poor>(how);
  } catch (const std::exception& e) {
    GTEST_SKIP() << "a disk of its own needs CAP_SYS_ADMIN or user namespaces: " << e.what();
  }
  work_through(n->rt, 128, 8192, 10);  // 8 MiB: memory and disk together have room for 3
  EXPECT_GT(n->one.ran(), 0u);
  n->expect_nothing_left();
}

// Strangers take all that there are. What is connected stays so, and when they have gone others come in again.
TEST(shortage, of_a_workers_descriptors_costs_no_result) {
  if (needs_descriptors)
    GTEST_SKIP()
        << "UBSan's check of virtual tables opens a pipe: without descriptors it reports objects that are whole";
  child_options few;
  few.descriptors_max = 40;
  owner_and_poor n(few);
  const std::string address = n.one.address();
  chains work(n.rt, chains::results::come_home, 8, 500);
  strangers_at strangers(address, 200);
  for (int round = 0; round < 3; ++round) {
    work.grow(40, anywhere);
    strangers.come_again();
    EXPECT_GE(n.one.process.facts().descriptors, 39u) << "they have left it some";
  }
  ASSERT_TRUE(n.rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_GT(n.one.ran(), 0u);
  strangers.leave();
  worker late("late", n.proof, address);  // of which only that worker is told
  EXPECT_TRUE(n.rt.wait_for_nodes(2, 20s));
}

TEST(shortage, of_an_owners_descriptors_costs_no_result) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  const std::string address = rt.addresses().front();
  worker one("one", proof, address);
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  chains work(rt, chains::results::come_home, 8, 500);
  strangers_at strangers(address, 200);
  const std::size_t used = facts_of(getpid()).descriptors;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = used + 4;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int round = 0; round < 3; ++round) {
    work.grow(40, scope::at("one"));
    strangers.come_again();
  }
  const bool done = rt.wait_all_for(20s);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(done);
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_EQ(one.ran(), work.spawned());
  strangers.leave();
  worker late("late", proof, address);
  EXPECT_TRUE(rt.wait_for_nodes(2, 20s));
  EXPECT_TRUE(comes_true(rt, [&] { return facts_of(getpid()).descriptors <= used + 8; }));  // late's, and its pipes
}

}  // namespace
