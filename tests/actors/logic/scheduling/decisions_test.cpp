// What this file is for: what is told of the offers for a task, also for one that was placed more than once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "actors/logic/scheduling/decisions.hpp"

namespace {

using namespace troupe;
using logic::offer;

std::vector<detail::executor_facts> three() {
  std::vector<detail::executor_facts> all(3);
  for (std::uint16_t i = 0; i < 3; ++i) {
    all[i].id = i;
    all[i].name = "e" + std::to_string(i);
  }
  return all;
}
offer by(std::uint16_t executor, float transfer_ns) {
  offer o;
  o.executor = executor;
  o.transfer_ns = transfer_ns;
  return o;
}
// Names, with the time of the transfer, and a star behind what was chosen.
std::string told(const logic::decisions& d, std::uint64_t task) {
  std::string all;
  for (const candidate& c : d.candidates(task, three()))
    all += c.executor + ":" + std::to_string(c.transfer.count()) + (c.chosen ? "* " : " ");
  return all;
}

TEST(decisions, offers_are_told_in_the_order_of_executors_whatever_the_order_they_came_in) {
  logic::decisions d(4);
  d.note(7, std::vector<offer>{by(2, 20), by(0, 5), by(1, 10)}, 2);
  EXPECT_EQ(told(d, 7), "e0:5 e1:10* e2:20 ");
  EXPECT_EQ(told(d, 8), "");
}

TEST(decisions, each_executor_is_told_once_although_the_task_was_placed_twice) {
  logic::decisions d(4);
  d.note(7, std::vector<offer>{by(0, 5), by(1, 10), by(2, 20)}, 1);
  d.note(8, std::vector<offer>{by(0, 1)}, 0);
  d.note(7, std::vector<offer>{by(2, 25), by(0, 6)}, 1);  // executor 1 has returned it
  EXPECT_EQ(told(d, 7), "e0:6* e1:10 e2:25 ");
  EXPECT_EQ(told(d, 8), "e0:1* ");
}

TEST(decisions, a_move_changes_the_latest_decision) {
  logic::decisions d(4);
  d.note(7, std::vector<offer>{by(0, 5), by(1, 10)}, 0);
  d.note(7, std::vector<offer>{by(0, 6), by(1, 11)}, 0);
  d.note_move(7, 1);
  EXPECT_EQ(told(d, 7), "e0:6 e1:11* ");
}

TEST(decisions, the_oldest_are_forgotten) {
  logic::decisions d(2);
  for (std::uint64_t task = 1; task <= 3; ++task) d.note(task, std::vector<offer>{by(0, 5)}, 0);
  EXPECT_EQ(told(d, 1), "");
  EXPECT_EQ(told(d, 2), "e0:5* ");
  EXPECT_EQ(told(d, 3), "e0:5* ");
}

}  // namespace
