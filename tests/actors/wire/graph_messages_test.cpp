// What this file is for: what nodes say of graphs over several of them survives the wire, and what is broken is refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/graph_messages.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "broken_messages.hpp"

namespace troupe::detail::wire {
namespace {

graph_definition an_example(std::size_t sends = 1) {
  graph_definition d;
  d.graph = 77;
  d.part = 1;
  d.members = {{{1, 2, 3}}, {{4, 5, 6}}};
  d.arrays.push_back({0, 1, {64, 1, 1, 1}, {16, 1, 1, 1}, 8, 8, "line"});
  d.bound = {{0, 2}, {0, 3}};
  graph_step take{.kind = graph_step::what::take, .crossing = 5, .other = 0, .array = 0, .tile = 1};
  take.where = {{31, 0, 0, 0}, {32, 1, 1, 1}};
  d.steps.push_back(take);
  graph_step call;
  call.call.id = 1;
  call.call.kernel = 0x1234567890;
  call.call.name = "step";
  access_descriptor x;
  x.mode = access_mode::update;
  x.where = {{32, 0, 0, 0}, {48, 1, 1, 1}};
  x.limit = {{0, 0, 0, 0}, {64, 1, 1, 1}};
  call.call.accesses.push_back(x);
  call.call.values.push_back({std::byte{7}});
  call.after = {{0, true}};
  d.steps.push_back(call);
  for (std::size_t i = 0; i < sends; ++i)
    d.steps.push_back({.kind = graph_step::what::send,
                       .crossing = static_cast<std::uint32_t>(6 + i),
                       .other = 0,
                       .after = {{1, false}}});
  return d;
}

TEST(graph_messages, a_definition_comes_out_as_it_went_in) {
  for (const std::size_t sends : {1u, 20'000u}) {
    const graph_definition d = an_example(sends);
    const auto frames = frames_of(d);
    EXPECT_EQ(frames.size() > 1, sends > 1);
    graph_definition t;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(kind_of(frames[i].view()), kind::graph_define);
      EXPECT_LT(frames[i].size(), 64u << 10);
      net::reader r(frames[i].view().subspan(1));
      EXPECT_EQ(graph_of(r), 77u);
      EXPECT_EQ(take_definition(r, t), i + 1 == frames.size());
    }
    EXPECT_EQ(t.part, 1u);
    EXPECT_EQ(t.members, d.members);
    ASSERT_EQ(t.arrays.size(), 1u);
    EXPECT_EQ(t.arrays[0].name, "line");
    ASSERT_EQ(t.bound.size(), 2u);
    EXPECT_EQ(t.bound[1].tile, 3u);
    ASSERT_EQ(t.steps.size(), 2 + sends);
    EXPECT_EQ(t.steps[0].kind, graph_step::what::take);
    EXPECT_EQ(t.steps[0].crossing, 5u);
    EXPECT_EQ(t.steps[0].where, d.steps[0].where);
    EXPECT_EQ(t.steps[1].call.kernel, 0x1234567890u);
    EXPECT_EQ(t.steps[1].call.values, d.steps[1].call.values);
    EXPECT_TRUE(t.steps[1].after[0].data);
    EXPECT_EQ(t.steps[2].array, graph_step::no_array);
    EXPECT_EQ(t.steps.back().crossing, 5 + sends);
    EXPECT_FALSE(t.steps.back().after[0].data);
  }
}

TEST(graph_messages, partials_that_are_filled_and_added_come_out_as_they_went_in) {
  graph_definition d = an_example();
  graph_step fill{.kind = graph_step::what::fill, .array = 0, .tile = 3};
  fill.where = {{48, 0, 0, 0}, {50, 1, 1, 1}};
  fill.element = {std::byte{9}, std::byte{8}};
  graph_step merge{.kind = graph_step::what::merge, .array = 0, .tile = 2};
  merge.where = {{32, 0, 0, 0}, {48, 1, 1, 1}};
  merge.into = 1;
  merge.op = 0x0128;
  merge.after = {{3, true}};
  d.steps.push_back(fill);
  d.steps.push_back(merge);
  const auto frames = frames_of(d);
  ASSERT_EQ(frames.size(), 1u);
  graph_definition t;
  net::reader r(frames[0].view().subspan(1));
  EXPECT_TRUE(take_definition(r, t));
  ASSERT_EQ(t.steps.size(), 5u);
  EXPECT_EQ(t.steps[3].kind, graph_step::what::fill);
  EXPECT_EQ(t.steps[3].tile, 3u);
  EXPECT_EQ(t.steps[3].where, fill.where);
  EXPECT_EQ(t.steps[3].element, fill.element);
  EXPECT_EQ(t.steps[4].kind, graph_step::what::merge);
  EXPECT_EQ(t.steps[4].where, merge.where);
  EXPECT_EQ(t.steps[4].into, 1u);
  EXPECT_EQ(t.steps[4].op, 0x0128);
  EXPECT_EQ(t.steps[4].after.at(0).step, 3u);
}

TEST(graph_messages, crossings_failures_and_answers_come_out_as_they_went_in) {
  net::writer w;
  put(w, crossing_head{{{9}}, 1, 2, 3});
  net::reader r(w.view().subspan(1));
  const crossing_head h = take_crossing(r);
  EXPECT_EQ(std::tie(h.owner.bytes[0], h.graph, h.run, h.crossing), std::make_tuple(9, 1u, 2u, 3u));
  EXPECT_EQ(r.left(), 0u);

  graph_failure f{.owner = {{9}}, .graph = 1, .run = 2, .whole_part = true, .number = 3};
  describe(f, std::make_exception_ptr(task_failed(errc::timed_out, "whole text", "call", "cpu:0", "call", 3,
                                                  std::make_exception_ptr(std::runtime_error("the cause")))));
  w.clear();
  put(w, f);
  net::reader s(w.view().subspan(1));
  const graph_failure g = take_graph_failure(s);
  EXPECT_TRUE(g.whole_part);
  EXPECT_EQ(g.number, 3u);
  try {
    std::rethrow_exception(error_of(g));
  } catch (const task_failed& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    EXPECT_EQ(e.task(), "call");
    EXPECT_EQ(e.executor(), "cpu:0");
    EXPECT_STREQ(e.what(), "the cause");
    EXPECT_EQ(e.attempts(), 3);
  }
  // The error of a run whose input failed in an earlier one: which call it was is in the text.
  graph_failure before{.owner = {{9}}, .graph = 1, .run = 3};
  describe(before, std::make_exception_ptr(task_failed(errc::task_failed, "task 'call' of 'run' failed", "run", "cpu:0",
                                                       "call", 1, std::make_exception_ptr(std::runtime_error("it")))));
  EXPECT_EQ(before.task, "");
  EXPECT_EQ(before.text, "task 'call' of 'run' failed");
  for (const bool ready : {true, false}) {
    w.clear();
    put(w, graph_answer{4, ready, 17, errc::no_executor, "no such kernel"});
    net::reader t(w.view().subspan(1));
    const graph_answer a = take_graph_answer(t);
    EXPECT_EQ(a.is_ready, ready);
    EXPECT_EQ(a.text, ready ? "" : "no such kernel");
    EXPECT_EQ(a.edges, ready ? 17u : 0u);
  }
}

TEST(graph_messages, what_is_cut_off_or_changed_is_refused) {
  const auto all = frames_of(an_example());
  const auto definition = [](net::reader& r) {
    graph_definition d;
    take_definition(r, d);
  };
  test::expect_refuses_what_is_cut_off(all.at(0).view(), definition);
  test::expect_refuses_or_takes_what_is_changed(all.at(0).view(), definition);
  net::writer w;
  put(w, graph_failure{.owner = {{9}}, .graph = 1, .run = 2, .number = 3, .task = "call", .text = "text"});
  const auto failure = [](net::reader& r) { take_graph_failure(r); };
  test::expect_refuses_what_is_cut_off(w.view(), failure);
  test::expect_refuses_or_takes_what_is_changed(w.view(), failure);
}

}  // namespace
}  // namespace troupe::detail::wire
