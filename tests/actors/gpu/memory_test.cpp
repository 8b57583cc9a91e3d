// What this file is for: tiles in a device's memory: room for all or nothing, copies only where they are needed, the
// newest bytes home, and nothing left of a task that failed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "actors/gpu/boxes.hpp"
#include "actors/gpu/job_list.hpp"
#include "tests/actors/gpu/paper_accelerator.hpp"
#include "tests/support/plain_device.hpp"

namespace {

using namespace troupe::detail;
using troupe::access_mode;
using troupe::index_t;

constexpr index_t per_tile = 64;
constexpr std::size_t tile_bytes = per_tile * sizeof(int);

// A device with room for two tiles of an array of four, which lies in `host`.
struct gpu_memory_test : testing::Test {
  gpu_memory_test() {
    rt->host = std::make_unique<test::plain_device>();
    std::iota(host.begin(), host.end(), 0);
    a.spec.element = sizeof(int);
    a.spec.size = {4 * per_tile, 1, 1, 1};
    a.spec.tile = {per_tile, 1, 1, 1};
    a.spec.adopted = host.data();
    a.grid = {4, 1, 1, 1};
    a.tile_count = 4;
    a.id = 1;
    a.many_bytes = std::make_unique<tile_bytes_of[]>(4);
    a.bytes = a.many_bytes.get();
    a.coherence = std::make_unique<array_coherence>(4);
    a.spec.rank = 1;
    lanes.use(&device, 4);
    memory.use(&device);
    jobs.emplace(*rt, "device", stopping, 2);
  }
  ~gpu_memory_test() override {
    while (!jobs->empty()) {
      memory.let_go(jobs->front());
      jobs->give(jobs->front());
    }
    memory.each([&](const troupe::logic::replica& r) { memory.drop(r); });
    EXPECT_EQ(device.blocks(), 0u) << "memory of the device is left";
    jobs.reset();
    rt->release();
  }
  struct use {
    std::uint32_t tile;
    access_mode mode;
  };
  // A job whose task uses whole tiles; it holds nothing yet.
  gpu_job& begin(std::vector<use> uses) {
    auto& t = *tasks.emplace_back(std::make_unique<task_record>());
    auto& x = *accesses.emplace_back(std::make_unique<std::vector<troupe::detail::access>>(uses.size()));
    for (std::size_t i = 0; i < uses.size(); ++i) {
      x[i].array = &a;
      x[i].tile = uses[i].tile;
      x[i].mode = uses[i].mode;
    }
    t.accesses = x.data();
    t.access_count = static_cast<decltype(t.access_count)>(x.size());
    t.kernel = &kernel;
    gpu_job& j = jobs->take();
    j.task = &t;
    j.route.lane = j.route.compute = 2;
    return j;
  }
  // Its bytes come in and its kernel is enqueued.
  gpu_job& launched(std::vector<use> uses) {
    gpu_job& j = begin(std::move(uses));
    EXPECT_TRUE(memory.reserve(j));
    memory.fill_in(j);
    memory.note_launched(j);
    return j;
  }
  void end(gpu_job& j, std::exception_ptr error = nullptr) {
    j.failure.error = std::move(error);
    memory.let_go(j);
    jobs->give(j);
  }
  // Does what placement does when a task that wrote the tile has ended.
  void account(std::uint32_t tile) { a.coherence->tiles[tile].version.fetch_add(1); }
  int* there(std::uint32_t tile) { return static_cast<int*>(memory.find(a, tile)->memory); }
  int* here(std::uint32_t tile) { return host.data() + tile * per_tile; }

  using tile_bytes_of = troupe::detail::tile_bytes;
  std::vector<int> host = std::vector<int>(4 * per_tile);
  array_core a;
  runtime_state* rt = new runtime_state;
  test::paper_accelerator device{4, 2 * tile_bytes};
  gpu_lanes lanes;
  std::atomic<std::uint64_t> moved{0};
  gpu_memory memory{*rt, lanes, {}, moved, device.facts().memory_bytes};
  std::atomic<bool> stopping{false};
  std::optional<gpu_job_list> jobs;
  const kernel_info kernel{.name = "kernel", .key = 1};
  std::vector<std::unique_ptr<task_record>> tasks;
  std::vector<std::unique_ptr<std::vector<troupe::detail::access>>> accesses;
  troupe::logic::lookahead_queue queue;
};

TEST_F(gpu_memory_test, copies_a_tile_in_once_for_all_who_read_it) {
  gpu_job& first = launched({{1, access_mode::read}});
  EXPECT_EQ(device.copies_in, 1);
  EXPECT_EQ(moved.load(), tile_bytes);
  EXPECT_EQ(std::memcmp(there(1), here(1), tile_bytes), 0);
  end(first);
  end(launched({{1, access_mode::read}}));
  EXPECT_EQ(device.copies_in, 1);
}

TEST_F(gpu_memory_test, copies_nothing_in_for_a_task_that_overwrites_all) {
  end(launched({{1, access_mode::write}}));
  EXPECT_EQ(device.copies_in, 0);
}

TEST_F(gpu_memory_test, gives_a_task_room_for_everything_or_for_nothing) {
  gpu_job& j = begin({{0, access_mode::read}, {1, access_mode::read}, {2, access_mode::read}});
  EXPECT_FALSE(memory.reserve(j));
  EXPECT_TRUE(j.copies.empty());
  EXPECT_EQ(device.memory_used(), 0u);
  gpu_job& smaller = begin({{0, access_mode::read}, {1, access_mode::read}});
  EXPECT_TRUE(memory.reserve(smaller));
  EXPECT_EQ(memory.used_max(), 2 * tile_bytes);
  EXPECT_EQ(memory.bytes(), 2 * tile_bytes);
}

TEST_F(gpu_memory_test, evicts_what_is_not_in_use_and_used_longest_ago) {
  gpu_job& first = launched({{0, access_mode::read}});
  gpu_job& second = launched({{1, access_mode::read}});
  EXPECT_EQ(memory.victim(queue), nullptr) << "both are in use";
  end(second);
  EXPECT_EQ(memory.victim(queue)->tile, 1u);
  end(first);
  EXPECT_EQ(memory.victim(queue)->tile, 0u);
  memory.drop(*memory.victim(queue));
  EXPECT_EQ(memory.find(a, 0), nullptr);
  EXPECT_TRUE(memory.reserve(begin({{2, access_mode::read}})));
}

TEST_F(gpu_memory_test, keeps_what_was_written_until_placement_knows_of_it) {
  end(launched({{0, access_mode::update}}));
  EXPECT_TRUE(memory.has_unaccounted());
  EXPECT_EQ(memory.victim(queue), nullptr);
  account(0);
  EXPECT_FALSE(memory.has_unaccounted());
  EXPECT_EQ(memory.victim(queue)->tile, 0u);
}

TEST_F(gpu_memory_test, gives_what_was_written_to_the_next_task_without_a_copy) {
  gpu_job& writer = launched({{0, access_mode::update}});
  there(0)[3] = -7;
  gpu_job& reader = launched({{0, access_mode::read}});
  EXPECT_EQ(device.copies_in, 1);
  EXPECT_EQ(there(0)[3], -7);
  end(writer);
  end(reader);
}

TEST_F(gpu_memory_test, sends_the_newest_bytes_home_and_is_clean_then) {
  end(launched({{2, access_mode::update}}));
  there(2)[5] = -1;
  account(2);
  troupe::logic::replica& r = *memory.find(a, 2);
  ASSERT_TRUE(r.dirty);
  gpu_job& copy = jobs->take();
  memory.send_home(r, copy);
  EXPECT_EQ(memory.leaving_bytes(), tile_bytes);
  EXPECT_EQ(memory.victim(queue), nullptr) << "it is on its way";
  memory.note_sent_home(copy);
  jobs->give(copy);
  EXPECT_EQ(here(2)[5], -1);
  EXPECT_EQ(memory.leaving_bytes(), 0u);
  EXPECT_FALSE(r.dirty);
  EXPECT_EQ(memory.bytes_out(), tile_bytes);
}

TEST_F(gpu_memory_test, stays_dirty_when_a_tile_is_written_again_on_its_way_home) {
  end(launched({{2, access_mode::update}}));
  account(2);
  troupe::logic::replica& r = *memory.find(a, 2);
  gpu_job& copy = jobs->take();
  memory.send_home(r, copy);
  end(launched({{2, access_mode::update}}));
  memory.note_sent_home(copy);
  jobs->give(copy);
  EXPECT_TRUE(r.dirty);
}

TEST_F(gpu_memory_test, forgets_what_a_failed_task_was_to_write) {
  gpu_job& j = launched({{0, access_mode::update}, {1, access_mode::read}});
  end(j, std::make_exception_ptr(troupe::error(troupe::errc::task_failed, "it failed")));
  EXPECT_EQ(memory.find(a, 0), nullptr) << "half written";
  EXPECT_NE(memory.find(a, 1), nullptr);
  end(launched({{0, access_mode::read}}));
  EXPECT_EQ(std::memcmp(there(0), here(0), tile_bytes), 0);
}

TEST_F(gpu_memory_test, lets_a_task_wait_for_those_that_use_its_tiles_on_other_lanes) {
  gpu_job& reader = launched({{0, access_mode::read}});  // on lane 2
  gpu_job& writer = begin({{0, access_mode::update}});
  writer.route.lane = writer.route.compute = 3;
  ASSERT_TRUE(memory.reserve(writer));
  device.waits.clear();
  memory.fill_in(writer);
  bool for_reader = false, for_copy = false;
  for (const auto& [lane, other, ticket] : device.waits) {
    for_reader |= lane == 3 && other == 2;
    for_copy |= lane == 3 && other == lane_in;
  }
  EXPECT_TRUE(for_reader);
  EXPECT_TRUE(for_copy);
  end(reader);
}

TEST_F(gpu_memory_test, reports_copies_that_have_come_in) {
  gpu_job& j = launched({{0, access_mode::read}, {1, access_mode::read}});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto look = [&] {
    memory.each_arrival([&](memory_space from, std::uint64_t bytes, std::uint64_t number, std::uint64_t) {
      EXPECT_EQ(from, host_space);
      seen.emplace_back(bytes, number);
    });
  };
  look();
  EXPECT_TRUE(seen.empty());
  lanes.keep_promises();
  device.finish_all();
  lanes.look(lane_in);
  look();
  std::uint64_t bytes = 0, number = 0;
  for (const auto& [b, n] : seen) bytes += b, number += n;
  EXPECT_EQ(bytes, 2 * tile_bytes);
  EXPECT_EQ(number, 2u);
  end(j);
}

}  // namespace
