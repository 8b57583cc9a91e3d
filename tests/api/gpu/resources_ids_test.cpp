// What this file is for: tasks that drive devices themselves: which they hold, alone, and on whole cards (dask #1226).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using names = std::vector<std::string>;

constexpr std::uint64_t some = 1 << 20;

options with(std::vector<device_use> devices, std::chrono::milliseconds wait = std::chrono::hours(1)) {
  options o;
  o.threads = 2;
  o.devices = std::move(devices);
  o.card_wait = wait;
  o.cost_cache = "none";
  return o;
}
/// Two cards of two slots: sim:0, sim:0#1 and sim:1, sim:1#1.
options two_cards(std::chrono::milliseconds wait = std::chrono::hours(1)) {
  return with({{"sim:0", some}, {"sim:0", some}, {"sim:1", some}, {"sim:1", some}}, wait);
}
options four_devices() {
  return with({{.name = "sim:0", .memory_bytes = some, .group = "a"},
               {.name = "sim:0", .memory_bytes = some, .group = "b"},
               {.name = "sim:1", .memory_bytes = some, .group = "c"},
               {.name = "sim:1", .memory_bytes = some, .group = "d"}});
}

/// Without a slot, so that many may wait for a gate.
task_options gpus(double n) { return {.resources = {{"cpu", 0}, {"gpu", n}}}; }

names names_of(const task_context& c) {
  names all;
  for (const held_device& d : c.devices()) all.push_back(d.name);
  return all;
}

double free_in(runtime& rt) {
  for (const resource& r : rt.report().resources_free)
    if (r.name == "gpu") return r.amount;
  return -1;
}

/// A task that holds n devices until it is let go.
class holder {
 public:
  holder(runtime& rt, double n)
      : rt_(rt), done_(rt.spawn(gpus(n), [this](task_context& c) {
          held_ = names_of(c);
          begun_.open();
          EXPECT_TRUE(let_go_.pass());
        })) {}
  ~holder() {
    let_go_.open();
    done_.wait();
  }
  holder(const holder&) = delete;
  holder& operator=(const holder&) = delete;

  names devices() {
    EXPECT_TRUE(begun_.pass());
    return held_;
  }
  bool has_begun() { return begun_.is_open(); }
  /// Its devices are free then: a future says that a body has ended, and a little later they are given back.
  void end() {
    let_go_.open();
    done_.get();
    rt_.spawn([] {}, done_).get();
  }

 private:
  runtime& rt_;
  gate begun_, let_go_;
  names held_;
  future<void> done_;
};

// All devices are free, and a task can have all of them.
void expect_all_back(runtime& rt, double n) {
  rt.wait_all();
  EXPECT_EQ(free_in(rt), n);
  EXPECT_EQ(holder(rt, resource::all).devices().size(), static_cast<std::size_t>(n));
}

TEST(gpu_resources, R6_a_task_is_told_its_device_and_no_other_has_it_at_the_time) {
  runtime rt(four_devices());
  std::mutex lock;
  std::set<std::string> used;
  std::set<std::string> seen;
  bool twice = false;
  for (int i = 0; i < 400; ++i)
    rt.spawn(gpus(1 + i % 3 / 2), [&, i](task_context& c) {
      const names mine = names_of(c);
      EXPECT_EQ(mine.size(), i % 3 == 2 ? 2u : 1u);
      {
        const std::lock_guard hold(lock);
        for (const auto& n : mine) {
          twice = twice || !used.insert(n).second;
          seen.insert(n);
        }
      }
      std::this_thread::yield();
      const std::lock_guard hold(lock);
      for (const auto& n : mine) used.erase(n);
    });
  rt.wait_all();
  EXPECT_FALSE(twice);
  EXPECT_EQ(seen, (std::set<std::string>{"sim:0", "sim:0#1", "sim:1", "sim:1#1"}));
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R6_the_device_is_told_by_name_kind_and_index) {
  runtime rt(with({{"sim:1"}}));
  rt.spawn(task_options{.resources = {{"gpu", 1}}}, [](task_context& c) {
      ASSERT_EQ(c.devices().size(), 1u);
      EXPECT_EQ(c.devices()[0].name, "sim:1");
      EXPECT_EQ(c.devices()[0].kind, device_kind::sim);
      EXPECT_EQ(c.devices()[0].index, 1);
      EXPECT_STREQ(c.executor(), "cpu:0");
    }).get();
}

TEST(gpu_resources, R6_what_the_kernel_declares_holds_at_every_call) {
  static const resource two[] = {{"gpu", 2}};
  static const auto drive =
      kernel<out<int, 1>>("drive")
          .on(cpu, [](task_context& c, view<int, 1> v) { v(0) = static_cast<int>(c.devices().size()); })
          .needs(two);
  runtime rt(two_cards()), without(options{.threads = 1, .devices = {{"none"}}});
  auto a = rt.array<int>({1}, tiles(1)), b = without.array<int>({1}, tiles(1));
  rt.spawn(drive, write(a));
  EXPECT_EQ(a.read()(0), 2);
  EXPECT_EQ(code_of([&] { without.spawn(drive, write(b)); }), errc::no_resource);
}

TEST(gpu_resources, R6_amounts_and_parts_of_devices_have_no_id) {
  options o = four_devices();
  o.resources = {{"memory", 2e9}};
  runtime rt(o);
  rt.spawn(task_options{.resources = {{"memory", 1.5e9}}}, [](task_context& c) {
      EXPECT_TRUE(c.devices().empty());
    }).get();
  const auto e = error_of([&] { rt.spawn(gpus(0.5), [] {}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::not_supported);
  EXPECT_TRUE(e->says("a part of a device")) << e->text;
  EXPECT_EQ(code_of([&] {
              rt.spawn(task_options{.resources = {{"memory", resource::all}}}, [] {});
            }),
            errc::bad_argument);
  o.resources = {{"gpu", 4}};
  EXPECT_EQ(code_of([&] { runtime twice(o); }), errc::bad_argument);
}

TEST(gpu_resources, R6_devices_are_for_bodies_on_cores) {
  static const auto text = kernel<inout<int, 1>>("text").on(
      gpu, source{"GPU_KERNEL void text(GPU_INOUT(int, a)) { GPU_AT1(a, 0) = 1; }", "text"});
  runtime rt(two_cards());
  auto a = rt.filled<int>({1}, tiles(1), 0);
  EXPECT_EQ(code_of([&] { rt.spawn(gpus(1), text, update(a)); }), errc::no_executor);
  task_options o = gpus(1);
  o.where = scope::gpu();
  EXPECT_TRUE(code_of([&] { rt.spawn(o, [] {}); }));
  holder all(rt, resource::all);
  EXPECT_EQ(all.devices().size(), 4u);
  rt.spawn(text, update(a)).get();  // kernels of the runtime go on there
  EXPECT_EQ(a.read()(0), 1);
}

TEST(gpu_resources, R8_two_get_a_whole_card_if_one_is_free) {
  runtime rt(two_cards());
  holder one(rt, 1);
  EXPECT_EQ(one.devices(), names{"sim:0"});
  holder pair(rt, 2);
  EXPECT_EQ(pair.devices(), (names{"sim:1", "sim:1#1"}));
  holder other(rt, 1);
  EXPECT_EQ(other.devices(), names{"sim:0#1"});
}

TEST(gpu_resources, R8_two_are_not_split_while_a_card_becomes_free) {
  runtime rt(two_cards());
  holder first(rt, 1), second(rt, 1);
  EXPECT_EQ(first.devices(), names{"sim:0"});
  EXPECT_EQ(second.devices(), names{"sim:1"});
  holder pair(rt, 2);
  holder later(rt, 1);
  EXPECT_EQ(later.devices(), names{"sim:1#1"}) << "the other card is kept for the pair";
  EXPECT_FALSE(pair.has_begun());
  second.end();
  holder last(rt, 1);
  EXPECT_EQ(last.devices(), names{"sim:1"});
  EXPECT_FALSE(pair.has_begun());
  first.end();
  EXPECT_EQ(pair.devices(), (names{"sim:0", "sim:0#1"}));
}

TEST(gpu_resources, R8_two_are_split_once_they_have_waited_long_enough) {
  runtime rt(two_cards(std::chrono::milliseconds(20)));
  holder first(rt, 1), second(rt, 1);
  first.devices();
  second.devices();
  holder pair(rt, 2);  // nothing ends, nothing is spawned
  EXPECT_EQ(pair.devices(), (names{"sim:0#1", "sim:1#1"}));
}

TEST(gpu_resources, R8_four_get_both_cards_and_five_are_refused_with_the_maximum) {
  runtime rt(two_cards());
  {
    holder one(rt, 1);
    one.devices();
    holder all(rt, 4);
    EXPECT_FALSE(all.has_begun());
    one.end();
    EXPECT_EQ(all.devices().size(), 4u);
  }
  EXPECT_EQ(holder(rt, 3).devices(), (names{"sim:0", "sim:0#1", "sim:1"}));
  EXPECT_EQ(holder(rt, resource::all).devices().size(), 4u);
  const auto e = error_of([&] { rt.spawn(gpus(5), [] {}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_resource);
  EXPECT_TRUE(e->says("5") && e->says("4 is the maximum")) << e->text;
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R8_several_get_their_card_under_a_stream_of_single_ones) {
  runtime rt(two_cards());
  std::atomic<bool> enough{false};
  struct endless {
    runtime& rt;
    std::atomic<bool>& enough;
    void operator()() const {
      if (!enough) rt.spawn(gpus(1), endless(*this));
    }
  };
  for (int i = 0; i < 12; ++i) rt.spawn(gpus(1), endless{rt, enough});
  for (int i = 0; i < 10; ++i) {
    const names pair = holder(rt, 2).devices();
    ASSERT_EQ(pair.size(), 2u);
    EXPECT_EQ(pair[0] + "#1", pair[1]) << "of one card";
    EXPECT_EQ(holder(rt, 4).devices().size(), 4u);
  }
  enough = true;
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R8_cards_may_be_named) {
  runtime rt(with({{.name = "sim:0", .memory_bytes = some, .group = "left"},
                   {.name = "sim:0", .memory_bytes = some, .group = "right"},
                   {.name = "sim:1", .memory_bytes = some, .group = "right"}}));
  holder pair(rt, 2);
  EXPECT_EQ(pair.devices(), (names{"sim:0#1", "sim:1"}));
}

TEST(gpu_resources, R14_devices_come_back_after_failure_cancel_and_retries) {
  runtime rt(two_cards());
  for (int i = 0; i < 300; ++i) {
    std::stop_source stop;
    task_options o = gpus(1 + i % 4);
    o.stop = stop.get_token();
    o.retries = i % 5 == 0 ? 1 : 0;
    rt.spawn(o, [i] {
      if (i % 2 == 0) throw std::runtime_error("no");
    });
    if (i % 3 == 0) stop.request_stop();
  }
  expect_all_back(rt, 4);
}

TEST(gpu_resources, R14_a_cancelled_task_keeps_its_device_until_it_stops) {
  runtime rt(with({{"sim:0"}}));
  gate begun, held;
  const test::opener always(held);
  std::stop_source stop;
  task_options o = gpus(1);
  o.stop = stop.get_token();
  auto f = rt.spawn(o, [&] {
    begun.open();
    EXPECT_TRUE(held.pass());
  });
  EXPECT_TRUE(begun.pass());
  stop.request_stop();
  auto next = rt.spawn(gpus(1), [] {});
  EXPECT_EQ(free_in(rt), 0);
  EXPECT_FALSE(next.is_ready());
  held.open();
  next.get();
  expect_all_back(rt, 1);
}

}  // namespace
