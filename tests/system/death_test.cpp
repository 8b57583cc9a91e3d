// What this file is for: workers that are killed: their work is done elsewhere, soon, and each result is right.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/system/cluster.hpp"

namespace {

using namespace test;

const scope on_workers = scope::at("one") | scope::at("two");

/// An owner with the workers "one" and "two".
struct owner_and_two {
  secret proof;
  troupe::runtime rt{owner_options(proof)};
  worker one{"one", proof, rt.addresses().front()}, two{"two", proof, rt.addresses().front()};
  owner_and_two() { EXPECT_TRUE(rt.wait_for_nodes(2, 10s)); }
  bool both_work() {
    return comes_true(rt, [&] { return tasks_of(rt, "one") > 50 && tasks_of(rt, "two") > 50; });
  }
};

TEST(death, work_of_a_killed_worker_is_done_elsewhere) {
  owner_and_two n;
  chains work(n.rt, chains::results::come_home, 8, 2'000);
  work.grow(100, on_workers);
  ASSERT_TRUE(n.both_work());
  const auto killed = clock::now();
  n.one.process.signal(SIGKILL);
  expect_gone_and_flowing(n.rt, "one", killed, 0.3, work);
  n.rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
}

TEST(death, what_was_only_on_a_killed_worker_is_right_or_said_to_be_lost) {
  owner_and_two n;
  chains work(n.rt, chains::results::stay_there, 8, 2'000);
  work.grow(100, on_workers);
  ASSERT_TRUE(n.both_work());
  n.one.process.signal(SIGKILL);
  ASSERT_TRUE(n.rt.wait_all_for(20s));
  right_or_lost(work);
  // Whatever became of that, new work is done.
  chains next(n.rt, chains::results::stay_there, 8, 0);
  next.grow(20, on_workers);
  EXPECT_EQ(next.wrong(), 0);
}

TEST(death, results_that_have_not_arrived_when_the_worker_dies_are_made_again_and_count_once) {
  const secret proof;
  support::proxy between;
  troupe::runtime rt(owner_options(proof));
  const std::string address = rt.addresses().front();
  between.forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  worker one("one", proof, between.address()), two("two", proof, address);
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  // The data that tasks read is on both before anything is held back, so that nothing has to be asked for.
  const auto data = rt.filled<std::uint64_t>({100}, troupe::tiles(100), 3);
  const auto total = rt.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  const auto weigh_on = [&](const scope& where) {
    rt.spawn({.where = where}, weigh, troupe::read(data), troupe::reduce(total), std::uint64_t{20});
  };
  weigh_on(scope::at("one"));
  weigh_on(scope::at("two"));
  rt.wait_all();
  between.hold_back(true);
  for (int i = 0; i < 500; ++i) weigh_on(on_workers);
  ASSERT_TRUE(comes_true(rt, [&] { return one.ran() > 3; }));  // and said so to nobody
  EXPECT_EQ(tasks_of(rt, "one"), 1u);
  one.process.signal(SIGKILL);
  one.process.wait();
  between.cut();
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(total.read()(0), 502 * 100 * hashed(3, 7));
  EXPECT_FALSE(is_there(rt, "one"));
}

// In the middle of what goes there, then in the middle of what comes back.
TEST(death, a_transfer_that_is_cut_short_by_a_death_is_done_again) {
  const troupe::index_t tile = 1 << 19;
  for (const auto bytes : {&troupe::node_report::bytes_out, &troupe::node_report::bytes_in}) {
    owner_and_two n;
    std::vector<std::uint64_t> start(16 * tile);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = hashed(i, 9);  // which nothing compresses
    const auto data = n.rt.adopt(std::vector(start), {16 * tile}, troupe::tiles(tile));
    for (troupe::index_t i = 0; i < 16; ++i)  // all but the last element of each tile
      n.rt.spawn({.where = on_workers}, link_on,
                 troupe::update(data.sub(troupe::box<1>{{i * tile}, {(i + 1) * tile - 1}})), std::uint64_t{1},
                 std::uint64_t{0});
    worker* busy = nullptr;
    ASSERT_TRUE(comes_true(n.rt, [&] {
      for (const auto& r : n.rt.nodes())
        if (r.*bytes > 1'000'000) busy = r.name == "one" ? &n.one : &n.two;
      return busy != nullptr;
    }));
    busy->process.signal(SIGKILL);
    ASSERT_TRUE(n.rt.wait_all_for(20s));
    const auto v = data.read();
    troupe::index_t wrong = 0;
    for (troupe::index_t i = 0; i < 16 * tile; ++i) {
      const std::uint64_t was = start[static_cast<std::size_t>(i)];
      wrong += v(i) == (i % tile == tile - 1 ? was : hashed(was, 1)) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0);
  }
}

// The tiles that "one" has made are read by "two" and "three"; first the lender dies, then a borrower.
TEST(death, bytes_on_their_way_between_two_workers_are_made_or_sent_again_when_one_of_them_dies) {
  const troupe::index_t tile = 1 << 18, count = 24;
  for (const bool lender : {true, false}) {
    owner_and_two n;
    worker three("three", n.proof, n.rt.addresses().front());
    ASSERT_TRUE(n.rt.wait_for_nodes(3, 10s));
    std::vector<std::uint64_t> start(count * tile);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = hashed(i, 11);
    const auto data = n.rt.adopt(std::vector(start), {count * tile}, troupe::tiles(tile));
    const auto total = n.rt.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
    const auto block = [&](troupe::index_t i) { return data.sub(troupe::box<1>{{i * tile}, {(i + 1) * tile}}); };
    std::uint64_t right = 0;
    for (const std::uint64_t x : start) right += hashed(hashed(x, 1), 7);
    for (troupe::index_t i = 0; i < count; ++i)
      n.rt.spawn({.where = scope::at("one")}, link_on, troupe::update(block(i)), std::uint64_t{1}, std::uint64_t{0});
    n.rt.wait_all();
    const scope readers = scope::at("two") | scope::at("three");
    for (troupe::index_t i = 0; i < count; ++i)
      n.rt.spawn({.where = readers}, weigh, troupe::read(block(i)), troupe::reduce(total), std::uint64_t{2'000});
    ASSERT_TRUE(comes_true(n.rt, [&] { return n.two.ran() > 1; })) << n.two.ran() << ", " << three.ran();
    (lender ? n.one : n.two).process.signal(SIGKILL);
    ASSERT_TRUE(n.rt.wait_all_for(20s));
    EXPECT_EQ(total.read()(0), right);
  }
}

TEST(death, a_task_that_ends_three_processes_is_given_up_and_only_that_one) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  std::vector<std::unique_ptr<worker>> workers;
  for (int i = 0; i < 5; ++i)
    workers.push_back(std::make_unique<worker>("w" + std::to_string(i), proof, rt.addresses().front()));
  ASSERT_TRUE(rt.wait_for_nodes(5, 10s));
  scope all = scope::at("w0");
  for (int i = 1; i < 5; ++i) all = all | scope::at("w" + std::to_string(i));
  chains work(rt, chains::results::come_home, 8, 200);
  work.grow(200, all);
  const auto data = rt.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  const auto bad = rt.spawn({.where = all}, end_process, troupe::update(data), std::int64_t{getpid()});
  try {
    bad.get();
    ADD_FAILURE() << "it ran";
  } catch (const troupe::task_failed& e) {
    EXPECT_EQ(e.code(), troupe::errc::node_lost) << e.what();
    EXPECT_EQ(e.task(), end_process.name());
    EXPECT_EQ(e.attempts(), 3);
    EXPECT_THAT(e.what(), testing::HasSubstr(end_process.name()));
    EXPECT_THAT(e.what(), testing::HasSubstr("not tried again"));
  }
  ASSERT_TRUE(comes_true(rt, [&] { return rt.nodes().size() == 2; })) << rt.nodes().size() << " nodes are left";
  rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
}

// More often than a task may be under suspicion.
TEST(death, tasks_that_waited_on_five_workers_that_died_are_not_blamed) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  std::vector<std::unique_ptr<worker>> workers;
  scope all = scope::at("w0");
  for (int i = 0; i < 6; ++i) {
    const std::string name = "w" + std::to_string(i);
    workers.push_back(std::make_unique<worker>(name, proof, rt.addresses().front()));
    ASSERT_TRUE(comes_true(rt, [&] { return is_there(rt, name); }));
    all = all | scope::at(name);
  }
  chains work(rt, chains::results::come_home, 8, 2'000);
  work.grow(200, all);
  for (int i = 0; i < 5; ++i) {
    const std::string name = "w" + std::to_string(i);
    const std::uint64_t before = tasks_of(rt, name);
    ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, name) > before + 3; })) << name;
    workers[static_cast<std::size_t>(i)]->process.signal(SIGKILL);
    ASSERT_TRUE(comes_true(rt, [&] { return !is_there(rt, name); }));
  }
  EXPECT_LT(work.finished(), work.spawned()) << "too little work: it was not in the middle of it";
  rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
}

TEST(death, a_killed_worker_leaves_no_descriptors_and_no_threads) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  {
    chains work(rt, chains::results::come_home, 8, 0);
    work.grow(20, scope::at("two"));
    EXPECT_EQ(work.wrong(), 0);
  }
  const process_facts before = facts_of(getpid());
  for (int round = 0; round < 5; ++round) {
    worker one("one", proof, rt.addresses().front());
    ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
    chains work(rt, chains::results::come_home, 8, 500);
    work.grow(20, on_workers);
    ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 5; }));
    one.process.signal(SIGKILL);
    rt.wait_all();
    EXPECT_EQ(work.wrong(), 0);
    ASSERT_TRUE(comes_true(rt, [&] { return !is_there(rt, "one"); }));
  }
  EXPECT_TRUE(comes_true(rt,
                         [&] {
                           const process_facts now = facts_of(getpid());
                           return now.descriptors <= before.descriptors && now.threads <= before.threads;
                         }))
      << facts_of(getpid()).descriptors << " descriptors, before " << before.descriptors << "; "
      << facts_of(getpid()).threads << " threads, before " << before.threads;
  EXPECT_TRUE(comes_true(rt, [&] { return rt.report().arrays == 0; })) << rt.report().arrays << " arrays are left";
}

TEST(death, a_worker_that_starts_again_at_its_address_works_again) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker first("one", proof, rt.addresses().front());
  const std::string address = first.address();
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  const std::string id = rt.nodes().front().id;
  chains work(rt, chains::results::come_home, 8, 1'000);
  work.grow(50);
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 20; }));
  first.process.signal(SIGKILL);
  first.process.wait();
  worker second("one", proof, rt.addresses().front(), address);
  ASSERT_TRUE(comes_true(rt, [&] { return rt.nodes().size() == 1 && rt.nodes().front().id != id; }));
  work.grow(20, scope::at("one"));
  rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_GE(second.ran(), 160u);
}

TEST(slow_death, a_worker_killed_every_two_seconds_costs_no_result) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker steady("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  chains work(rt, chains::results::come_home, 8, 500);
  work.grow(10, on_workers);
  rt.wait_all();
  const process_facts before = facts_of(getpid()), theirs = steady.process.facts();
  std::unique_ptr<worker> mortal;
  for (const auto begin = clock::now(); seconds_since(begin) < 60;) {
    mortal = std::make_unique<worker>("one", proof, rt.addresses().front());
    ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
    const auto born = clock::now();
    while (seconds_since(born) < 2) {
      work.grow(20, on_workers);
      ASSERT_TRUE(rt.wait_all_for(10s));
    }
    const auto killed = clock::now();
    work.grow(60, on_workers);
    mortal->process.signal(SIGKILL);
    expect_gone_and_flowing(rt, "one", killed, 0.3, work);
  }
  rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
  mortal.reset();
  ASSERT_TRUE(comes_true(rt, [&] { return rt.nodes().size() == 1; }));
  EXPECT_TRUE(comes_true(rt, [&] { return facts_of(getpid()).descriptors <= before.descriptors; }));
  EXPECT_LE(facts_of(getpid()).threads, before.threads);
  EXPECT_LE(steady.process.facts().threads, theirs.threads);
  EXPECT_TRUE(comes_true(rt, [&] { return steady.process.facts().descriptors <= theirs.descriptors; }));
  EXPECT_TRUE(comes_true(rt, [&] { return steady.report().find("nodes 1 unfinished 0 ") == 0; })) << steady.report();
}

}  // namespace
