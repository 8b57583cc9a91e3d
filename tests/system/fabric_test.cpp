// What this file is for: bodies between processes through UCX's shared memory: the results are right whatever breaks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#ifdef TROUPE_HAVE_UCX
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/driver_leaks.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

const child_options trusting{.environment = {"TEST_TRUSTED_FABRIC=1"}};

troupe::options trusting_owner(const secret& s) {
  troupe::options o = owner_options(s);
  o.cluster.trusted_fabric = true;
  return o;
}

/// Tiles of 4 MiB, each changed but for its last element, so that it comes home.
class large_tiles {
 public:
  static constexpr troupe::index_t tile = 1 << 19;

  large_tiles(troupe::runtime& rt, int count) : rt_(rt), start_(static_cast<std::size_t>(count * tile)) {
    for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = hashed(i, 9);  // which nothing compresses
    data_ = rt.adopt(std::vector(start_), {count * tile}, troupe::tiles(tile));
  }
  void change(const scope& where) {
    for (troupe::index_t at = 0; at < static_cast<troupe::index_t>(start_.size()); at += tile)
      rt_.spawn({.where = where}, link_on, troupe::update(data_.sub(troupe::box<1>{{at}, {at + tile - 1}})), steps_,
                std::uint64_t{0});
    ++steps_;
  }
  int wrong() const {
    const auto v = data_.read();
    int n = 0;
    for (std::size_t i = 0; i < start_.size(); ++i) {
      std::uint64_t right = start_[i];
      for (std::uint64_t s = 0; s < steps_ && i % tile != tile - 1; ++s) right = hashed(right, s);
      n += v(static_cast<troupe::index_t>(i)) == right ? 0 : 1;
    }
    return n;
  }

 private:
  troupe::runtime& rt_;
  std::vector<std::uint64_t> start_;
  troupe::array<std::uint64_t, 1> data_;
  std::uint64_t steps_ = 0;
};

troupe::node_report report_of(const troupe::runtime& rt, const std::string& name) {
  for (auto& r : rt.nodes())
    if (r.name == name) return r;
  return {};
}

TEST(fabric, bodies_go_through_it_and_come_back_right) {
  const secret proof;
  troupe::runtime rt(trusting_owner(proof));
  worker one("one", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  large_tiles work(rt, 8);
  // The first may come before the fabric is known to work.
  work.change(scope::at("one"));
  EXPECT_EQ(work.wrong(), 0);
  const auto before = report_of(rt, "one");
  work.change(scope::at("one"));
  EXPECT_EQ(work.wrong(), 0);
  const auto after = report_of(rt, "one");
  const std::uint64_t all = 8 * large_tiles::tile * sizeof(std::uint64_t);
  EXPECT_GE(after.fabric_in - before.fabric_in, all - 1000);
  EXPECT_GE(after.fabric_out, all / 2);
  EXPECT_LT((after.bytes_in - after.fabric_in) - (before.bytes_in - before.fabric_in), all / 100) << "by sockets, too";
}

TEST(fabric, a_worker_that_does_not_trust_it_works_through_sockets) {
  const secret proof;
  troupe::runtime rt(trusting_owner(proof));
  worker one("one", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  large_tiles work(rt, 4);
  work.change(scope::at("one"));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_EQ(report_of(rt, "one").fabric_out + report_of(rt, "one").fabric_in, 0u);
}

// As in containers: shared memory does not reach from one to the other, or not by all its ways.
TEST(fabric, a_worker_in_a_namespace_of_its_own_gives_the_same_results) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const std::string kind : {"--ipc", "--pid", "--uts", "--user"}) {
    const std::vector<std::string> apart{"unshare", kind, "--fork", "--kill-child"};
    auto probe = apart;
    probe.emplace_back("true");
    if (run(probe).how != ended_with(0)) {
      if (kind == "--user") continue;
      GTEST_SKIP() << "unshare " << kind << " is not allowed here";
    }
    const secret proof;
    troupe::runtime rt(trusting_owner(proof));
    auto words = apart;
    for (const std::string& w : {self, std::string("worker"), std::string("one"), proof.file(),
                                 std::string("127.0.0.1:0"), rt.addresses().front()})
      words.push_back(w);
    child one(words, trusting);
    ASSERT_TRUE(rt.wait_for_nodes(1, 10s)) << kind << one.err();
    large_tiles work(rt, 8);
    for (int i = 0; i < 3; ++i) {
      work.change(scope::at("one"));
      EXPECT_EQ(work.wrong(), 0) << kind;
    }
    RecordProperty("fabric" + kind, static_cast<int>(report_of(rt, "one").fabric_out >> 20));
  }
}

// In the middle of what goes there, then in the middle of what comes back.
TEST(fabric, a_worker_that_is_killed_in_a_transfer_costs_nothing_but_time) {
  for (const auto bytes : {&troupe::node_report::fabric_out, &troupe::node_report::fabric_in}) {
    const secret proof;
    troupe::runtime rt(trusting_owner(proof));
    worker one("one", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
    worker two("two", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
    ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
    large_tiles work(rt, 24);
    const scope on_workers = scope::at("one") | scope::at("two");
    work.change(on_workers);
    ASSERT_TRUE(comes_true(rt, [&] { return report_of(rt, "one").*bytes > 1'000'000; }));
    one.process.signal(SIGKILL);
    ASSERT_TRUE(rt.wait_all_for(20s));
    work.change(on_workers);
    EXPECT_EQ(work.wrong(), 0);
  }
}

/// Pieces of memory that are shared with other processes.
std::size_t shared_maps() {
  std::ifstream maps("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(maps, line);) n += line.find("rw-s") != line.npos ? 1 : 0;
  return n;
}

TEST(fabric, workers_that_were_killed_leave_no_descriptors_threads_and_shared_memory) {
  const secret proof;
  troupe::runtime rt(trusting_owner(proof));
  process_facts before{};
  std::size_t maps_before = 0;
  for (int round = 0; round < 6; ++round) {
    worker one("one", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
    ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
    large_tiles work(rt, 4);
    work.change(scope::at("one"));
    EXPECT_EQ(work.wrong(), 0);
    work.change(scope::at("one"));
    ASSERT_TRUE(comes_true(rt, [&] { return report_of(rt, "one").fabric_out > 1'000'000; }));
    one.process.signal(SIGKILL);
    ASSERT_TRUE(comes_true(rt, [&] { return !is_there(rt, "one"); }));
    rt.wait_all();
    if (round != 0) continue;
    before = facts_of(getpid());
    maps_before = shared_maps();
  }
  EXPECT_TRUE(comes_true(rt,
                         [&] {
                           const process_facts now = facts_of(getpid());
                           return now.descriptors <= before.descriptors && now.threads <= before.threads &&
                                  shared_maps() <= maps_before;
                         }))
      << facts_of(getpid()).descriptors << " descriptors, before " << before.descriptors << "; "
      << facts_of(getpid()).threads << " threads, before " << before.threads << "; " << shared_maps()
      << " shared maps, before " << maps_before;
}

TEST(fabric, a_worker_that_falls_silent_in_a_transfer_lets_go_of_its_memory) {
  const secret proof;
  troupe::runtime rt(trusting_owner(proof));
  worker one("one", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
  worker two("two", proof, rt.addresses().front(), "127.0.0.1:0", trusting);
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  large_tiles work(rt, 24);
  work.change(scope::at("one") | scope::at("two"));
  ASSERT_TRUE(comes_true(rt, [&] { return report_of(rt, "one").fabric_out > 1'000'000; }));
  one.process.signal(SIGSTOP);
  ASSERT_TRUE(rt.wait_all_for(40s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_FALSE(is_there(rt, "one")) << "it was not in the middle of anything";
  // The memory that it reads when it wakes has been given back, and counts for nothing.
  one.process.signal(SIGCONT);
  ASSERT_TRUE(comes_true(rt, [&] { return is_there(rt, "one"); }));
  work.change(scope::at("one"));
  EXPECT_EQ(work.wrong(), 0);
}

TEST(fabric, a_connection_that_is_cut_is_replaced_and_nothing_is_wrong) {
  const secret proof;
  support::proxy between;
  troupe::runtime rt(trusting_owner(proof));
  const std::string address = rt.addresses().front();
  between.forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  worker one("one", proof, between.address(), "-", trusting);
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  large_tiles work(rt, 16);
  for (int round = 0; round < 6; ++round) {
    const std::uint64_t before = report_of(rt, "one").bytes_out;
    work.change(scope::at("one"));
    ASSERT_TRUE(comes_true(rt, [&] { return report_of(rt, "one").bytes_out > before + 1'000'000; }));
    between.cut();
  }
  ASSERT_TRUE(rt.wait_all_for(60s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_TRUE(is_there(rt, "one"));
}

}  // namespace
#endif
