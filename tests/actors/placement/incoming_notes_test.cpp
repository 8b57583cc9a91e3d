// What this file is for: notes of any thread are taken once by the next turn, which looks at what is so by then.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/incoming_notes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <tuple>
#include <vector>

#include "collector.hpp"

namespace {

using namespace test;
using troupe::device_kind;

// An executor whose bodies wait.
class waiting_collector final : public collector {
 public:
  using collector::collector;
  waiting_load waiting() const override { return load; }
  waiting_load load;
};

struct incoming_notes_test : testing::Test {
  using wait_of = std::tuple<std::size_t, int, float>;
  std::vector<wait_of> take_waits() {
    std::vector<wait_of> all;
    notes.take_waits(executors, [&](std::size_t id, int slots, float ns) { all.emplace_back(id, slots, ns); });
    return all;
  }
  using copy = std::tuple<memory_space, memory_space, std::uint64_t, float>;
  std::vector<copy> take_transfers() {
    std::vector<copy> all;
    notes.take_transfers([&](auto from, auto to, auto bytes, float ns) { all.emplace_back(from, to, bytes, ns); });
    return all;
  }
  waiting_collector cores{{0, "cpu:0", device_kind::cpu, host_space, 4}};
  waiting_collector gpu{{1, "cuda:0", device_kind::cuda, 1, 1}};
  waiting_collector more_cores{{2, "cpu:1", device_kind::cpu, host_space, 4}};
  std::array<executor*, 3> executors{&cores, &gpu, &more_cores};
  incoming_notes notes;
};

TEST_F(incoming_notes_test, on_waits_hold_until_a_turn_takes_them) {
  EXPECT_FALSE(notes.has_waits());
  notes.note_waits();
  notes.note_waits();
  EXPECT_TRUE(notes.has_waits());
  take_waits();
  EXPECT_FALSE(notes.has_waits());
}

TEST_F(incoming_notes_test, on_waits_lead_to_what_waits_on_cores_by_then) {
  notes.note_waits();
  cores.load = {2, 500.0f};
  gpu.load = {1, 100.0f};
  EXPECT_EQ(take_waits(), (std::vector<wait_of>{{0, 2, 500.0f}, {2, 0, 0.0f}}));
}

TEST_F(incoming_notes_test, on_waits_that_come_during_a_look_are_for_the_next_one) {
  notes.note_waits();
  notes.take_waits(executors, [&](std::size_t, int, float) { notes.note_waits(); });
  EXPECT_TRUE(notes.has_waits());
}

TEST_F(incoming_notes_test, on_copies_are_taken_once_in_their_order) {
  EXPECT_TRUE(take_transfers().empty());
  notes.add_transfer(0, 1, 4096, 700.0f);
  notes.add_transfer(1, 0, 64, 90.0f);
  EXPECT_EQ(take_transfers(), (std::vector<copy>{{0, 1, 4096, 700.0f}, {1, 0, 64, 90.0f}}));
  EXPECT_TRUE(take_transfers().empty());
  EXPECT_FALSE(notes.has_waits());
}

}  // namespace
