// What this file is for: which nodes of graphs that were really ordered meet before they release the next step.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "actors/execution/graph_nodes.hpp"
#include "tests/actors/logic/data/graph_world.hpp"

namespace {

using namespace troupe::detail;
using test::graph_world;
using test::line;
using troupe::access_mode;

constexpr std::uint32_t width = 8, steps = 6;

// A recorded graph of tasks in steps; `uses_of(step, i)` tells what task i of a step accesses.
class recorded_steps {
 public:
  template <class Uses>
  recorded_steps(graph_world& world, Uses&& uses_of) {
    std::vector<task_record*> tasks, combines;
    for (std::uint32_t step = 0; step < steps; ++step)
      for (std::uint32_t i = 0; i < width; ++i) {
        task_record& t = world.task(uses_of(step, i));
        t.pending = 1;
        world.deps.order(t, combines);
        tasks.push_back(&t);
      }
    make_nodes(graph, tasks, world.deps.graph());
    let_nodes_meet(graph);
  }
  ~recorded_steps() { graph.nodes.clear(); }  // the tasks are the world's
  recorded_steps(const recorded_steps&) = delete;
  recorded_steps& operator=(const recorded_steps&) = delete;

  // How many successors nodes of a step count down themselves, beside their meeting.
  std::vector<std::uint32_t> own_successors(std::uint32_t step) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < width; ++i) {
      const replay_node& n = graph.nodes[step * width + i];
      EXPECT_NE(n.meeting, replay_node::alone) << "step " << step << ", " << i;
      all.push_back(n.count);
    }
    return all;
  }

  recorded_graph graph;
};

class nodes_of_steps : public testing::Test {
 protected:
  nodes_of_steps() : world(true) {
    for (auto& buffer : tiles)
      for (std::uint32_t i = 0; i < width; ++i) buffer.push_back(&world.array({1}, {1}));
    for (auto& whole : wholes) whole = &world.array({width}, {width});
  }
  std::vector<graph_world::use> reads_all(std::uint32_t step) const {
    std::vector<graph_world::use> uses;
    for (array_core* a : tiles[step % 2]) uses.push_back({a, access_mode::read, line(0, 1)});
    return uses;
  }
  graph_world world;
  std::vector<array_core*> tiles[2];
  array_core* wholes[2] = {};
};

TEST_F(nodes_of_steps, that_need_all_of_the_step_before_meet) {
  recorded_steps made(world, [&](std::uint32_t step, std::uint32_t i) {
    auto uses = reads_all(step);
    uses.push_back({tiles[1 - step % 2][i], access_mode::write, line(0, 1)});
    return uses;
  });
  EXPECT_EQ(made.graph.meetings.size(), steps - 1);
  EXPECT_EQ(made.graph.successors.size(), width * width * (steps - 1));
  for (std::uint32_t step = 0; step + 1 < steps; ++step)
    EXPECT_EQ(made.own_successors(step), std::vector<std::uint32_t>(width, 0));
}

TEST_F(nodes_of_steps, that_overwrite_parts_of_one_tile_meet) {
  recorded_steps made(world, [&](std::uint32_t step, std::uint32_t i) {
    return std::vector<graph_world::use>{{wholes[step % 2], access_mode::read, line(0, width)},
                                         {wholes[1 - step % 2], access_mode::write, line(i, i + 1)}};
  });
  EXPECT_EQ(made.graph.meetings.size(), steps - 1);
  EXPECT_EQ(made.graph.successors.size(), width * width * (steps - 1)) << "however many steps there are";
}

TEST_F(nodes_of_steps, that_update_what_they_have_written_two_steps_before_meet_but_for_that) {
  recorded_steps made(world, [&](std::uint32_t step, std::uint32_t i) {
    auto uses = reads_all(step);
    uses.push_back({tiles[1 - step % 2][i], access_mode::update, line(0, 1)});
    return uses;
  });
  EXPECT_EQ(made.graph.meetings.size(), steps - 1);
  EXPECT_EQ(made.own_successors(0), std::vector<std::uint32_t>(width, 1));
  EXPECT_EQ(made.own_successors(steps - 2), std::vector<std::uint32_t>(width, 0)) << "nobody comes two steps later";
}

TEST_F(nodes_of_steps, that_need_their_neighbours_only_do_not_meet) {
  recorded_steps made(world, [&](std::uint32_t step, std::uint32_t i) {
    std::vector<graph_world::use> uses;
    for (std::uint32_t k = i == 0 ? 0 : i - 1; k < width && k < i + 2; ++k)
      uses.push_back({tiles[step % 2][k], access_mode::read, line(0, 1)});
    uses.push_back({tiles[1 - step % 2][i], access_mode::write, line(0, 1)});
    return uses;
  });
  EXPECT_TRUE(made.graph.meetings.empty());
}

}  // namespace
