// What this file is for: one node's part of a graph: crossings that come early, late, twice or not at all; failures.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/execution/call_values.hpp"
#include "actors/execution/graph_nodes.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"

namespace {

using namespace troupe::detail;
using testing::ElementsAre;
using testing::IsEmpty;
using troupe::errc;
using troupe::error;

/// Keeps what is sent: run, part, crossing; failures as their texts.
struct outbox final : graph_part::outlet {
  std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> sent;
  std::vector<std::string> failures;
  void send(const part_name&, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
            const troupe::net::pieces&) override {
    sent.emplace_back(run, to, crossing);
  }
  void send_failure(const part_name&, std::uint64_t, std::uint32_t to, std::uint32_t crossing,
                    const std::exception_ptr& why) override {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& e) {
      failures.push_back(std::to_string(to) + "/" + std::to_string(crossing) + " " + e.what());
    }
  }
};

std::exception_ptr trouble(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }

/// Part 0 of three: takes crossing 10 from part 1 and 11 from part 2, and sends 20 to part 1 after 10, 21 to part 2
/// after both.
struct part_of_three : testing::Test {
  outbox out;
  runtime_state* rt = new runtime_state;
  std::shared_ptr<recorded_graph> graph;
  int calls = 0;  // for a thread

  part_of_three() {
    auto part = std::make_unique<graph_part>(part_name{{}, 1, 0, {{}, {}, {}}}, out, std::vector<array_core*>(),
                                             std::vector<graph_part::bound_tile>());
    std::vector<part_step> steps;
    steps.push_back({part->make_receiver(*rt, 10, 1, 8), {}});
    steps.push_back({part->make_receiver(*rt, 11, 2, 0), {}});
    steps.push_back({part->make_sender(*rt, 20, 1), {{0, true}}});
    steps.push_back({part->make_sender(*rt, 21, 2), {{0, true}, {1, true}}});
    troupe::logic::recorded_tiles tiles;
    graph = build_part(*rt, std::move(part), std::move(steps), tiles);
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) rt->retain();  // as records without an engine give it back
  }
  ~part_of_three() override {
    graph.reset();
    rt->release();
  }

  /// A run, begun.
  struct one_run {
    one_run(part_of_three& test, std::uint64_t number) : of(test), run(*test.graph, 1), task(take_record(*test.rt)) {
      task->references = 1;
      task->body_gone = true;
      task->extra = new task_extra;
      task->extra->run_of_part = number;
      of.graph->part->begin(run, *task, [this] { ++of.calls; });
    }
    ~one_run() {
      of.graph->part->end();
      of.rt->records.give((delete std::exchange(task->extra, nullptr), task));
    }
    /// Runs what is ready; true if the run is over.
    bool work() {
      graph_run::hand& hand = run.take_hand();
      for (std::uint32_t n = 0; run.next(hand, n, 0);) {
        task_record& t = *of.graph->nodes[n].task;
        const bool fine = !of.graph->nodes[n].poisoned;
        if (fine) {
          std::vector<std::vector<std::byte>> none;
          call_values nobody(none);
          t.ops->run(t, nobody);
        } else {
          of.graph->part->left_out(n);
        }
        run.finished(hand, n, fine, 1);
      }
      run.give_hand(hand);
      return run.is_over();
    }
    part_of_three& of;
    graph_run run;
    task_record* task;
  };
  graph_part& part() { return *graph->part; }
  static std::vector<std::byte> eight() { return std::vector<std::byte>(8); }
  using sent = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
};

TEST_F(part_of_three, waits_for_what_comes_and_sends_what_depends_on_it) {
  one_run r(*this, 1);
  EXPECT_FALSE(r.work());
  EXPECT_THAT(out.sent, IsEmpty());
  part().arrive(1, 10, eight(), nullptr);
  EXPECT_FALSE(r.work());
  EXPECT_THAT(out.sent, ElementsAre(sent(1, 1, 20)));
  part().arrive(1, 11, {}, nullptr);
  EXPECT_TRUE(r.work());
  EXPECT_THAT(out.sent, ElementsAre(sent(1, 1, 20), sent(1, 2, 21)));
  EXPECT_EQ(calls, 2) << "nobody looked for nodes when they became ready";
  EXPECT_FALSE(r.run.failure());
}

TEST_F(part_of_three, keeps_what_comes_before_the_run_begins) {
  part().arrive(2, 10, eight(), nullptr);
  part().arrive(1, 11, {}, nullptr);
  part().arrive(1, 10, eight(), nullptr);
  {
    one_run r(*this, 1);
    EXPECT_TRUE(r.work());
  }
  one_run r(*this, 2);
  EXPECT_FALSE(r.work());
  part().arrive(2, 11, {}, nullptr);
  EXPECT_TRUE(r.work());
}

TEST_F(part_of_three, ignores_what_comes_twice_or_for_a_run_that_is_over) {
  {
    one_run r(*this, 3);
    part().arrive(3, 10, eight(), nullptr);
    part().arrive(3, 10, eight(), nullptr);
    EXPECT_FALSE(r.work());
    part().arrive(3, 10, {}, trouble("too late"));
    part().arrive(3, 11, {}, nullptr);
    EXPECT_TRUE(r.work());
    EXPECT_FALSE(r.run.failure());
  }
  part().arrive(3, 10, eight(), nullptr);
  part().arrive(2, 10, eight(), nullptr);
  one_run r(*this, 4);
  EXPECT_FALSE(r.work());
  part().break_off(trouble("over"));
  EXPECT_TRUE(r.work());
}

TEST_F(part_of_three, passes_a_failure_on_along_what_depends_on_it) {
  one_run r(*this, 1);
  part().arrive(1, 11, {}, trouble("it broke"));
  EXPECT_FALSE(r.work());
  EXPECT_THAT(out.failures, ElementsAre()) << "what depends on it waits for the rest";
  part().arrive(1, 10, eight(), nullptr);
  EXPECT_TRUE(r.work());
  EXPECT_THAT(out.sent, ElementsAre(sent(1, 1, 20)));
  EXPECT_THAT(out.failures, ElementsAre("2/21 it broke"));
  EXPECT_TRUE(r.run.failure());
}

TEST_F(part_of_three, gives_up_what_a_part_that_does_not_run_was_to_send) {
  part().lost(1, 1, trouble("cancelled"));  // before the run has begun here
  {
    one_run r(*this, 1);
    EXPECT_FALSE(r.work());
    part().arrive(1, 11, {}, nullptr);
    EXPECT_TRUE(r.work());
    EXPECT_THAT(out.failures, ElementsAre("1/20 cancelled", "2/21 cancelled"));
  }
  out.failures.clear();
  one_run r(*this, 2);
  part().arrive(2, 10, eight(), nullptr);
  part().lost(2, 2, trouble("gone"));
  EXPECT_TRUE(r.work());
  EXPECT_THAT(out.failures, ElementsAre("2/21 gone"));
}

TEST_F(part_of_three, fails_this_run_and_all_later_ones_once_a_member_is_gone) {
  {
    one_run r(*this, 1);
    part().break_off(trouble("a node went"));
    EXPECT_TRUE(r.work());
    EXPECT_TRUE(r.run.failure());
  }
  one_run r(*this, 2);
  EXPECT_TRUE(r.work());
  EXPECT_TRUE(r.run.failure());
}

TEST_F(part_of_three, refuses_what_does_not_fit) {
  const auto code = [&](std::uint32_t crossing, std::size_t bytes) {
    try {
      part().arrive(1, crossing, std::vector<std::byte>(bytes), nullptr);
    } catch (const error& e) {
      return e.code();
    }
    return errc{};
  };
  EXPECT_EQ(code(12, 0), errc::protocol_error);
  EXPECT_EQ(code(20, 0), errc::protocol_error) << "it is sent from here";
  EXPECT_EQ(code(10, 7), errc::protocol_error);
  EXPECT_EQ(code(10, 8), errc{});
  EXPECT_THROW(std::ignore = part().bytes_of(13), error);
  EXPECT_EQ(part().bytes_of(10), 8u);
}

TEST_F(part_of_three, forgets_what_came_for_runs_that_never_began) {
  for (std::uint64_t n = 1; n <= 100; ++n) part().arrive(n, 10, eight(), nullptr);
  one_run r(*this, 97);  // of the newest ones only
  part().arrive(97, 11, {}, nullptr);
  EXPECT_TRUE(r.work());
}

}  // namespace
