// What this file is for: what nodes tell of themselves and of their links, as it is and as others see it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <random>
#include <string>
#include <vector>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"

namespace {

using namespace test;
using troupe::cluster_report;
using troupe::index_t;
using troupe::link_report;
using troupe::member_report;
using troupe::member_state;

constexpr double MiB = 1 << 20;

constexpr auto add = troupe::kernel<troupe::inout<char, 1>>("links.add").on(troupe::cpu, [](troupe::view<char, 1> a) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) ++a(i);
});
// Makes bytes that cannot be packed.
constexpr auto noise = troupe::kernel<troupe::out<char, 1>>("links.noise").on(troupe::cpu, [](troupe::view<char, 1> a) {
  std::minstd_rand random(static_cast<unsigned>(a.lo(0)) + 1);
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = static_cast<char>(random() >> 8);
});
std::atomic<bool> held{false};
constexpr auto wait_while_held = troupe::kernel<>("links.wait_while_held").on(troupe::cpu, [] { held.wait(true); });
// As long as it takes, whatever it reads.
constexpr auto work =
    troupe::kernel<troupe::in<char, 1>>("links.work").on(troupe::cpu, [](troupe::view<const char, 1>) {
      for (const auto end = std::chrono::steady_clock::now() + 5ms; std::chrono::steady_clock::now() < end;)
        std::this_thread::yield();
    });
const troupe::offer offered{add, wait_while_held, work};

const member_report* member(const cluster_report& c, const std::string& name) {
  for (const member_report& m : c.members)
    if (m.name == name) return &m;
  return nullptr;
}
const link_report* link(const cluster_report& c, const std::string& from, const std::string& to) {
  for (const link_report& l : c.links)
    if (l.from == from && l.to == to) return &l;
  return nullptr;
}

TEST(nodes_links, what_was_carried_is_known_at_both_ends_and_to_a_third) {
  several_nodes n(2, 2, 1h);  // where bodies take long, tiles would be copied home besides
  troupe::runtime &a = n.a, &c = *n.rest[1];
  const auto before = a.query_cluster(10s);
  ASSERT_TRUE(link(before, "a", "b"));
  EXPECT_EQ(link(before, "a", "b")->out.bytes_per_second, 0) << "nothing has been moved";

  const index_t size = 64 << 20, tile = 4 << 20;
  const auto x = a.array<char>({size}, troupe::tiles(tile));
  a.for_each({.where = troupe::scope::here()}, troupe::grid(size), noise, troupe::write(x));
  const char was = x.read()(size - 1);
  const auto begin = std::chrono::steady_clock::now();
  a.for_each(on("b"), troupe::grid(size), add, troupe::update(x));
  EXPECT_EQ(x.read()(size - 1), static_cast<char>(was + 1));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  // All has been moved there and back in that time: no less than that is measured, and no more than memory can do.
  const double least = static_cast<double>(size) / seconds, most = 1e12;
  for (troupe::runtime* who : {&a, n.rest[0].get(), &c}) {
    const cluster_report r = who->query_cluster(10s);
    const link_report* const l = link(r, "a", "b");
    ASSERT_TRUE(l);
    for (const troupe::link_way& w : {l->out, l->in}) {
      EXPECT_GE(w.bytes_per_second, least);
      EXPECT_LE(w.bytes_per_second, most);
      EXPECT_GE(static_cast<double>(w.bytes), 64 * MiB);
      EXPECT_LE(static_cast<double>(w.bytes), 80 * MiB);
      EXPECT_EQ(w.fabric_bytes, 0u);
    }
    EXPECT_EQ(l->resets, 0u);
    EXPECT_FALSE(l->suspect);
    ASSERT_TRUE(link(r, "b", "c"));
    EXPECT_EQ(link(r, "b", "c")->out.bytes_per_second, 0) << "nothing was moved between these two";
    EXPECT_EQ(r.links.size(), 3u);
  }
  const auto own = a.links();
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].from, "a");
  EXPECT_EQ(own[0].to, "b");
  EXPECT_GE(own[0].out.bytes_per_second, least);
  EXPECT_GE(own[0].in.bytes_per_second, least);
}

TEST(nodes_links, round_trips_are_measured_without_anybody_asking) {
  several_nodes n(1);
  ASSERT_TRUE(comes_true([&] { return n.a.links().at(0).round_trip > 0ns && n.b().links().at(0).round_trip > 0ns; }));
  EXPECT_LT(n.a.links().at(0).round_trip, 10s);
}

TEST(nodes_links, a_member_says_what_it_has_and_what_it_has_to_do) {
  several_nodes n;
  troupe::runtime &a = n.a, &c = *n.rest[1];
  held = true;
  std::vector<troupe::future<void>> all;
  for (int i = 0; i < 7; ++i) all.push_back(a.spawn(on("b"), wait_while_held));
  for (const troupe::runtime* who : {&a, n.rest[0].get(), &c}) {
    cluster_report r;
    EXPECT_TRUE(comes_true([&] {
      r = who->query_cluster(10s);
      const member_report* b = member(r, "b");
      return b && b->busy == 2 && b->queued == 5;
    }));
    const member_report* const b = member(r, "b");
    ASSERT_TRUE(b);
    EXPECT_TRUE(b->answered);
    EXPECT_EQ(b->is_self, who == n.rest[0].get());
    EXPECT_EQ(b->state, member_state::live);
    EXPECT_EQ(b->address, n.b().addresses().front());
    EXPECT_EQ(b->id.size(), 32u);
    EXPECT_EQ(b->slots, 2);
    EXPECT_EQ(b->devices, 0);
    EXPECT_TRUE(b->takes_work);
    EXPECT_GE(b->kernels, 3u);
    EXPECT_EQ(b->bulk, "sockets");
    EXPECT_GT(b->memory_machine, b->memory_resident);
    EXPECT_GT(b->memory_resident, 1u << 20);
    EXPECT_EQ(b->memory_limit, 0u);
    ASSERT_TRUE(member(r, "a"));
    EXPECT_EQ(member(r, "a")->busy, 0);
    EXPECT_EQ(r.members.size(), 3u);
  }
  held = false;
  held.notify_all();
  for (auto& f : all) f.get();
  EXPECT_TRUE(comes_true([&] {
    const cluster_report r = c.query_cluster(10s);
    const member_report* b = member(r, "b");
    return b && b->busy == 0 && b->queued == 0 && b->tasks == 7;
  }));
}

// What only its own cores can run, and a task before it has released, was never given to them by placement.
TEST(nodes_links, a_member_counts_what_it_does_for_itself) {
  several_nodes n(1);
  troupe::runtime& b = n.b();
  const auto x = b.filled<long>({4}, troupe::tiles(4), 0);
  const auto works = [](troupe::view<long, 1> v, bool waits) {
    ++v(0);
    if (waits) held.wait(true);
  };
  for (int i = 0; i < 64; ++i) b.spawn(works, troupe::update(x), false);  // its time is known then
  b.wait_all();
  held = true;
  for (int i = 0; i < 3; ++i) b.spawn(works, troupe::update(x), false);
  const auto last = b.spawn(works, troupe::update(x), true);
  EXPECT_TRUE(comes_true([&] {
    const cluster_report r = n.a.query_cluster(10s);
    const member_report* m = member(r, "b");
    return m && m->busy == 1 && m->queued == 0;
  }));
  held = false;
  held.notify_all();
  last.get();
  EXPECT_EQ(x.read()(0), 68);
}

// Bodies that are too short to be timed count while they run, and so do others beside such as have been taken in one
// and not begun.
TEST(nodes_links, a_member_counts_bodies_however_short_they_were) {
  several_nodes n(1);
  troupe::runtime& b = n.b();
  std::vector<troupe::array<long, 1>> x;
  for (int i = 0; i < 12; ++i) x.push_back(b.filled<long>({1}, troupe::tiles(1), 0));
  const auto y = b.filled<long>({1}, troupe::tiles(1), 0);
  std::atomic<int> begun = 0;
  const auto works = [&](troupe::view<long, 1> v, bool waits) {
    ++v(0);
    if (!waits) return;
    ++begun;
    held.wait(true);
  };
  for (std::size_t i = 0; i < 2'400; ++i) b.spawn(works, troupe::update(x[i % 12]), false);
  b.wait_all();
  for (std::size_t round = 0; round < 8; ++round) {
    held = true;
    begun = 0;
    b.spawn(
        [&](troupe::view<long, 1> v) {
          ++v(0);
          ++begun;
          held.wait(true);
        },
        troupe::update(y));
    EXPECT_TRUE(comes_true([&] { return begun == 1; }));
    for (std::size_t i = 0; i < 12; ++i) b.spawn(works, troupe::update(x[i]), i == round % 3);
    EXPECT_TRUE(comes_true([&] { return begun == 2; }));
    EXPECT_TRUE(comes_true([&] {
      const cluster_report r = n.a.query_cluster(10s);
      const member_report* m = member(r, "b");
      return m && m->busy == 2;
    })) << round;
    held = false;
    held.notify_all();
    b.wait_all();
  }
  EXPECT_EQ(y.read()(0), 8);
}

// Node c has given b work: a knows of it, and has given b nothing.
TEST(nodes_links, a_node_that_is_busy_for_others_is_taken_for_busy) {
  several_nodes n;
  troupe::runtime &a = n.a, &c = *n.rest[1];
  const index_t size = 16 << 20;  // which takes longer to send than to work on
  const auto x = a.filled<char>({size}, troupe::tiles(size), 'x'), y = a.filled<char>({size}, troupe::tiles(size), 'y');
  const auto z = c.filled<char>({size}, troupe::tiles(size), 'z');
  for (int i = 0; i < 4; ++i) {  // so that all know how long one takes
    c.spawn(on("b"), work, troupe::read(z)).get();
    a.spawn(on("c"), work, troupe::read(y)).get();
    a.spawn({.where = troupe::scope::here()}, work, troupe::read(x)).get();
  }
  const auto queue_at_b = [&] {
    const auto f = a.spawn(work, troupe::read(x));
    f.get();
    for (const troupe::candidate& k : a.explain(f).candidates)
      if (k.executor == "b" && k.queue > 100ms && k.queue < 100s) return true;
    return false;
  };
  EXPECT_FALSE(queue_at_b());
  std::vector<troupe::future<void>> all;
  for (int i = 0; i < 600; ++i) all.push_back(c.spawn(on("b"), work, troupe::read(z)));
  EXPECT_TRUE(comes_true(queue_at_b));
  EXPECT_EQ(tasks_of(a, "b"), 0u);
  for (auto& f : all) f.get();
  EXPECT_TRUE(comes_true([&] { return !queue_at_b(); }));
}

TEST(nodes_links, connections_that_were_replaced_are_counted) {
  nodes_apart n;
  troupe::runtime& a = n.a;
  ASSERT_TRUE(n.b().wait_for_nodes(1, 20s));
  EXPECT_EQ(a.links().at(0).resets, 0u);
  const std::uint64_t before = a.links().at(0).out.bytes;
  n.way->cut();
  EXPECT_TRUE(comes_true([&] {
    const auto of_a = a.links(), of_b = n.b().links();
    return of_a.size() == 1 && of_b.size() == 1 && of_a[0].resets == 1 && of_b[0].resets == 1;
  }));
  EXPECT_GT(a.links().at(0).out.bytes, before) << "what went over the first connection counts, too";
}

TEST(nodes_links, who_does_not_answer_in_time_is_there_with_what_is_known) {
  nodes_apart n;
  troupe::runtime& a = n.a;
  n.way->hold_back(true);  // what b says does not come
  const auto begin = std::chrono::steady_clock::now();
  const cluster_report r = a.query_cluster(100ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
  n.way->hold_back(false);
  ASSERT_EQ(r.members.size(), 2u);
  ASSERT_TRUE(member(r, "b"));
  EXPECT_FALSE(member(r, "b")->answered);
  EXPECT_NE(member(r, "b")->state, member_state::unreached);
  EXPECT_TRUE(member(r, "a")->answered);
  EXPECT_EQ(r.links.size(), 1u);
  EXPECT_TRUE(comes_true([&] {
    const cluster_report again = a.query_cluster(10s);
    const member_report* m = member(again, "b");
    return m && m->answered;
  }));
}

TEST(nodes_links, alone_there_is_nobody_and_nothing) {
  troupe::runtime lone(troupe::options{.threads = 1, .cluster = {.from_environment = false}});
  EXPECT_TRUE(lone.links().empty());
  EXPECT_TRUE(lone.query_cluster(1ms).members.empty());
  troupe::runtime first(node_options("first"));
  const cluster_report r = first.query_cluster(1ms);
  ASSERT_EQ(r.members.size(), 1u);
  EXPECT_TRUE(r.members[0].is_self);
  EXPECT_EQ(r.members[0].name, "first");
  EXPECT_EQ(r.members[0].address, first.addresses().front());
  EXPECT_TRUE(r.links.empty());
}

}  // namespace
