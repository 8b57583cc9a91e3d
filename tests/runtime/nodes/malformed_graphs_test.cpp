// What this file is for: parts of graphs that a member defines and that do not fit, and crossings that nobody awaits:
// they end the membership, or are refused with a reason.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <functional>
#include <string>

#include "actors/wire/graph_messages.hpp"
#include "false_members.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using troupe::access_mode;
using what = wire::graph_step::what;

class malformed_graphs : public test::false_members {
 protected:
  /// Part 1, of the runtime that hears it: takes a row of a tile that the member has, derives another array from it,
  /// sends a row of that back.
  wire::graph_definition a_part(std::uint64_t graph) {
    wire::graph_definition d;
    d.graph = graph;
    d.part = 1;
    d.members = {id_of(other->id()), w.nodes[0]->the_engine().others()->parts().self()};
    for (const std::uint64_t id : {0, 1}) {
      wire::array_descriptor& a = d.arrays.emplace_back();
      a.id = id;
      a.rank = 2;
      a.size = a.tile = {4, 3, 1, 1};
      a.element = a.align = sizeof(word);
      a.name = "theirs";
    }
    d.bound = {{1, 0}};
    wire::graph_step take{.kind = what::take, .crossing = 0, .other = 0, .array = 0, .tile = 0};
    take.where.hi = {1, 3, 1, 1};
    wire::graph_step call;
    call.call.kernel = kernels::derive.info().key;
    call.call.values = {one_word()};
    for (const std::uint64_t array : {0, 1}) {
      wire::access_descriptor& x = call.call.accesses.emplace_back();
      x.array = array;
      x.mode = array == 0 ? access_mode::read : access_mode::write;
      x.where.hi = {array == 0 ? 1 : 4, 3, 1, 1};
      x.limit.hi = {4, 3, 1, 1};
    }
    wire::graph_step send = take;
    send.kind = what::send;
    send.crossing = 1;
    send.array = 1;
    d.steps = {take, call, send};
    return d;
  }
  static troupe::detail::node_id id_of(const net::node_id& n) {
    troupe::detail::node_id id;
    id.bytes = n.bytes;
    return id;
  }
  void define(const wire::graph_definition& d) {
    for (const net::writer& f : wire::frames_of(d)) other->say(f);
  }
  std::optional<wire::graph_answer> answer() {
    std::optional<wire::graph_answer> a;
    EXPECT_TRUE(until([&] {
      for (const auto& f : std::exchange(other->heard[wire::kind::graph_ready], {})) {
        net::reader from(f);
        a = wire::take_graph_answer(from);
      }
      return a || other->losses != 0;
    }));
    return a;
  }
  void is_given_up(const char* why) {
    SCOPED_TRACE(why);
    EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
    other->losses = 0;
    other->heard.clear();
  }
  void refuses(const char* why, const std::function<void(wire::graph_definition&)>& change) {
    wire::graph_definition d = a_part(1);
    change(d);
    define(d);
    is_given_up(why);
  }
};

TEST_F(malformed_graphs, what_they_are_made_from_is_taken) {
  define(a_part(1));
  const auto a = answer();
  ASSERT_TRUE(a.has_value());
  EXPECT_TRUE(a->is_ready) << a->text;
  EXPECT_EQ(a->graph, 1u);
  net::writer drop;
  drop.fixed(wire::kind::graph_drop);
  drop.varint(1);
  other->say(drop);
  define(a_part(1));  // a number that is free again
  EXPECT_TRUE(answer().has_value());
}

TEST_F(malformed_graphs, steps_that_do_not_fit_are_refused) {
  refuses("an array of nobody", [](auto& d) { d.steps[1].call.accesses[0].array = 2; });
  refuses("a mode", [](auto& d) { d.steps[1].call.accesses[0].mode = access_mode::update; });
  refuses("values", [](auto& d) { d.steps[1].call.values.clear(); });
  refuses("a box outside of its array", [](auto& d) { d.steps[1].call.accesses[1].limit.hi[0] = 5; });
  refuses("a bound tile", [](auto& d) { d.bound[0].tile = 1; });
  refuses("a bound array", [](auto& d) { d.bound[0].array = 2; });
  refuses("a part of nobody", [](auto& d) { d.steps[0].other = 2; });
  refuses("a crossing into another tile", [](auto& d) { d.steps[0].tile = 1; });
  refuses("a crossing beyond its tile", [](auto& d) { d.steps[0].where.hi[0] = 5; });
  refuses("a crossing that comes twice", [](auto& d) { d.steps.push_back(d.steps[0]); });
  refuses("a step that waits for a later one", [](auto& d) { d.steps[1].after = {{2, true}}; });
  refuses("a step that waits for itself", [](auto& d) { d.steps[1].after = {{1, true}}; });
}

// What lay in the memory of the node before would be sent away.
TEST_F(malformed_graphs, memory_that_nothing_has_written_is_not_shown) {
  refuses("a row more than what comes", [](auto& d) { d.steps[1].call.accesses[0].where.hi[0] = 2; });
  refuses("nothing comes", [](auto& d) { d.steps.erase(d.steps.begin()); });
  refuses("what is sent was not written", [](auto& d) {
    d.bound.clear();
    d.steps.erase(d.steps.begin() + 1);
  });
}

// A part that holds two boxes of the tile which its call reads.
TEST_F(malformed_graphs, boxes_that_a_part_holds_are_all_that_it_sees_of_their_tile) {
  const auto of_boxes = [&] {
    wire::graph_definition d = a_part(1);
    d.arrays.push_back(d.arrays[0]);
    d.arrays.back().id = 2;
    d.steps[1].call.accesses[0].array = 2;
    d.steps[1].call.accesses[0].where.hi[0] = 2;
    for (const troupe::index_t row : {0, 1}) {
      d.bound.push_back({2, 0, troupe::logic::box4{{row, 0, 0, 0}, {row + 1, 3, 1, 1}}});
    }
    return d;
  };
  define(of_boxes());
  const auto a = answer();
  ASSERT_TRUE(a.has_value());
  EXPECT_TRUE(a->is_ready) << a->text;
  net::writer drop;
  drop.fixed(wire::kind::graph_drop);
  drop.varint(1);
  other->say(drop);
  const auto refuses_it = [&](const char* why, const std::function<void(wire::graph_definition&)>& change) {
    wire::graph_definition d = of_boxes();
    change(d);
    define(d);
    is_given_up(why);
  };
  refuses_it("a row that it does not hold", [](auto& d) { d.bound.pop_back(); });
  refuses_it("an element that it does not hold", [](auto& d) { d.bound.back().box->hi[1] = 2; });
  refuses_it("a box beyond its tile", [](auto& d) { d.bound.back().box->hi[0] = 5; });
  refuses_it("a box and its tile", [](auto& d) { d.bound.push_back({2, 0}); });
  refuses_it("boxes of one tile that do not follow each other", [](auto& d) {
    d.bound.push_back(d.bound.back());
    d.bound[d.bound.size() - 2] = {0, 0};
  });
  refuses_it("a tile that it writes as well", [](auto& d) { d.steps[0].array = 2; });
  refuses_it("a box of nothing", [](auto& d) { d.bound.back().box->hi[0] = 1; });
  refuses_it("a box of a tile that is not there", [](auto& d) { d.bound.back().tile = 1; });
}

TEST_F(malformed_graphs, a_kernel_that_is_not_there_is_told) {
  wire::graph_definition d = a_part(1);
  d.steps[1].call.kernel = 12345;
  define(d);
  const auto a = answer();
  ASSERT_TRUE(a.has_value());
  EXPECT_FALSE(a->is_ready);
  EXPECT_EQ(a->code, troupe::errc::no_executor);
  EXPECT_EQ(other->losses, 0);
}

// A partial of this part alone, which is filled, reduced into and sent.
TEST_F(malformed_graphs, partials_are_filled_and_added_in_boxes_of_their_tiles) {
  const auto a_sum = [&] {
    wire::graph_definition d = a_part(1);
    for (const std::uint64_t id : {2, 3}) {
      d.arrays.push_back(d.arrays[0]);
      d.arrays.back().id = id;
    }
    d.bound.push_back({2, 0});
    wire::graph_step fill{.kind = what::fill, .array = 3, .tile = 0};
    fill.where.hi = {4, 3, 1, 1};
    wire::graph_step call;
    call.call.kernel = kernels::add.info().key;
    call.call.values = {one_word()};
    for (const std::uint64_t array : {1, 3}) {
      wire::access_descriptor& x = call.call.accesses.emplace_back();
      x.array = array;
      x.mode = array == 1 ? access_mode::read : access_mode::reduce;
      x.fresh = x.returns = array == 3;
      x.group = x.fresh ? 1 : 0;
      x.op = x.fresh ? troupe::detail::operator_code<word, std::plus<>>() : 0;
      x.where.hi = x.limit.hi = {4, 3, 1, 1};
    }
    wire::graph_step merge{.kind = what::merge, .array = 3, .tile = 0};
    merge.where = fill.where;
    merge.into = 2;
    merge.op = troupe::detail::operator_code<word, std::plus<>>();
    d.steps.insert(d.steps.end(), {fill, call, merge});
    return d;
  };
  define(a_sum());
  const auto a = answer();
  ASSERT_TRUE(a.has_value());
  EXPECT_TRUE(a->is_ready) << a->text;
  net::writer drop;
  drop.fixed(wire::kind::graph_drop);
  drop.varint(1);
  other->say(drop);
  const auto refuses_it = [&](const char* why, const std::function<void(wire::graph_definition&)>& change) {
    wire::graph_definition d = a_sum();
    change(d);
    define(d);
    is_given_up(why);
  };
  refuses_it("nothing has been filled", [](auto& d) { d.steps.erase(d.steps.begin() + 3); });
  refuses_it("a part of it is filled", [](auto& d) { d.steps[3].where.hi[0] = 3; });
  refuses_it("a box beyond its tile", [](auto& d) { d.steps[3].where.hi[0] = 5; });
  refuses_it("nothing is filled", [](auto& d) { d.steps[3].where.hi[0] = 0; });
  refuses_it("a tile that is not there", [](auto& d) { d.steps[3].tile = 1; });
  refuses_it("an array that is not there", [](auto& d) { d.steps[5].into = 4; });
  refuses_it("added to itself", [](auto& d) { d.steps[5].into = 3; });
  refuses_it("an operator that is not known", [](auto& d) { d.steps[5].op = 0x7f7f; });
  refuses_it("an operator on smaller elements",
             [](auto& d) { d.steps[5].op = troupe::detail::operator_code<std::uint8_t, std::plus<>>(); });
  refuses_it("added to smaller elements", [](auto& d) { d.arrays[2].element = d.arrays[2].align = 4; });
  refuses_it("filled with more than there is", [](auto& d) { d.arrays[3].element = d.arrays[3].align = 64; });
  refuses_it("a reduction by an unknown operator", [](auto& d) { d.steps[4].call.accesses[1].op = 0x7f7f; });
  refuses_it("added to what is not there", [](auto& d) { d.bound.pop_back(); });
}

TEST_F(malformed_graphs, a_call_has_the_shapes_that_its_kernel_requires) {
  static constexpr auto of_rows = troupe::kernel<troupe::in<word, 2>, troupe::out<word, 2>, word>("malformed.of_rows")
                                      .requiring(troupe::same_shape(0, 1))
                                      .on(troupe::cpu, [](troupe::view<const word, 2>, troupe::view<word, 2>, word) {});
  static const troupe::offer offered{of_rows};  // not before: see malformed_calls_test.cpp
  wire::graph_definition d = a_part(1);
  d.steps[1].call.kernel = of_rows.info().key;  // one row beside four
  define(d);
  const auto a = answer();
  ASSERT_TRUE(a.has_value());
  EXPECT_FALSE(a->is_ready);
  EXPECT_EQ(a->code, troupe::errc::bad_argument);
  EXPECT_NE(a->text.find("malformed.of_rows"), std::string::npos) << a->text;
  EXPECT_EQ(other->losses, 0);
}

TEST_F(malformed_graphs, a_number_stands_for_one_graph) {
  define(a_part(1));
  ASSERT_TRUE(answer().has_value());
  define(a_part(1));
  is_given_up("the same number");
}

TEST_F(malformed_graphs, crossings_are_of_the_size_and_from_the_node_that_was_said) {
  const auto cross = [&](std::uint32_t number, std::size_t bytes) {
    net::writer f;
    wire::put(f, wire::crossing_head{id_of(other->id()), 1, 1, number});
    const std::vector<std::byte> body(bytes);
    f.raw(body.data(), body.size());
    other->say(f);
  };
  const auto defined = [&] {
    define(a_part(1));
    ASSERT_TRUE(answer().has_value());
  };
  defined();
  cross(0, 3 * sizeof(word));
  cross(0, 3 * sizeof(word));  // twice: harmless
  cross(0, 8);
  is_given_up("another size");
  defined();
  cross(1, 3 * sizeof(word));
  is_given_up("what is sent from there");
  defined();
  wire::graph_definition d = a_part(2);
  d.members.push_back(d.members[0]);
  d.members[2].bytes[0] = 1;  // a third node, which it has no session with
  net::writer f;
  wire::put(f, wire::graph_failure{.owner = d.members[2], .graph = 1, .run = 1, .whole_part = true});
  other->say(f);  // of a graph that is not known: harmless
  cross(5, 0);
  is_given_up("a crossing of nobody");
}

TEST_F(malformed_graphs, a_run_of_a_graph_that_is_not_known_fails_and_its_member_stays) {
  wire::tasks t;
  wire::task_descriptor& c = t.all.emplace_back();
  c.id = 1;
  c.kernel = troupe::detail::graph_part_kernel.key;
  c.values = {std::vector<std::byte>(8), std::vector<std::byte>(8)};
  net::writer f;
  wire::put(f, t);
  other->say(f);
  std::optional<wire::task_end> end;
  EXPECT_TRUE(until([&] {
    for (const auto& done : std::exchange(other->heard[wire::kind::done], {})) {
      net::reader from(done);
      for (const wire::task_end& e : wire::take_done(from)) end = e;
    }
    return end || other->losses != 0;
  }));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::failed);
  EXPECT_EQ(end->code, troupe::errc::node_lost);
  c.id = 2;
  c.values.pop_back();
  f.clear();
  wire::put(f, t);
  other->say(f);
  is_given_up("a run without its number");
}

}  // namespace
