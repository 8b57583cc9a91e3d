// What this file is for: partials that come in a sum: each counts once, whatever comes first, or does not come.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <vector>

#include "false_members.hpp"
#include "imagined_kernels.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using grid = troupe::array<word, 2>;

class carried_partials : public test::false_members {
 protected:
  static constexpr std::size_t bytes = 200 * 3 * sizeof(word);
  troupe::future<void> add_there() { return there(kernels::add, troupe::read(x_), troupe::reduce(sums_), word{1}); }
  void ran(std::uint64_t task, bool in_sum = true) {
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::done));
    wire::put(f, wire::task_end{.id = task, .how = wire::outcome::ran, .in_sum = in_sum});
    other->say(f);
  }
  void send_sum(std::uint64_t task, std::vector<std::uint64_t> others) {
    std::vector<std::uint64_t> head{task, 1, others.size()};
    head.insert(head.end(), others.begin(), others.end());
    other->send(wire::kind::bytes_back, head, bytes);
  }
  void expect_given_up() {
    EXPECT_TRUE(until([&] { return other->losses == 1; }));
  }
  grid x_ = filled<word>({2, 3}, troupe::tiles(2, 3), word{7}, "x");
  grid sums_ = filled<word>({200, 3}, troupe::tiles(200, 3), word{0}, "sums");
};

TEST_F(carried_partials, belong_to_one_reduction_by_an_operator_that_has_a_number) {
  const auto f = add_there(), g = add_there();
  const wire::task_descriptor one = next_task(), two = next_task();
  ASSERT_EQ(one.accesses.size(), 2u);
  EXPECT_NE(one.accesses[1].group, 0u);
  EXPECT_EQ(one.accesses[1].group, two.accesses[1].group);
  EXPECT_EQ(one.accesses[1].op, (troupe::detail::operator_code<word, std::plus<>>()));
  const grid small = filled<word>({2, 3}, troupe::tiles(2, 3), word{0}, "small");
  const auto h = there(kernels::add, troupe::read(x_), troupe::reduce(small), word{1});
  EXPECT_EQ(next_task().accesses[1].group, 0u) << "it comes with the word that its task has ended";
}

TEST_F(carried_partials, are_sent_one_by_one_by_who_counts_memory) {
  have_one_that_counts_memory();
  const auto f = add_there();
  EXPECT_EQ(next_task().accesses[1].group, 0u);
}

TEST_F(carried_partials, end_with_their_sum) {
  const auto f = add_there(), g = add_there(), h = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id, third = next_task().id;
  ran(first);
  ran(second);
  ran(third);
  w.run_for(100ms);
  EXPECT_FALSE(f.is_ready() || g.is_ready() || h.is_ready());
  send_sum(second, {first});
  ASSERT_TRUE(until([&] { return f.is_ready() && g.is_ready(); }));
  EXPECT_FALSE(h.is_ready());
  send_sum(third, {});
  ASSERT_TRUE(until([&] { return h.is_ready(); }));
  f.get();
  g.get();
  h.get();
  EXPECT_EQ(other->losses, 0);
}

TEST_F(carried_partials, may_come_before_the_word_that_their_tasks_have_ended) {
  const auto f = add_there(), g = add_there(), h = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id, third = next_task().id;
  send_sum(first, {second, third});
  w.run_for(100ms);
  ran(second);
  ran(first);
  w.run_for(100ms);
  EXPECT_FALSE(f.is_ready() || g.is_ready()) << "if the node went now, all three would run again";
  ran(third);
  ASSERT_TRUE(until([&] { return f.is_ready() && g.is_ready() && h.is_ready(); }));
  f.get();
  g.get();
  h.get();
}

TEST_F(carried_partials, that_cannot_be_had_do_not_hold_up_others) {
  const auto f = add_there(), g = add_there(), h = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id, third = next_task().id;
  ran(first);
  ran(second);
  ran(third);
  send_sum(first, {third});  // by the other connection: perhaps sooner
  not_sent(second);
  ASSERT_TRUE(until([&] { return f.is_ready() && g.is_ready() && h.is_ready(); }));
  f.get();
  h.get();
  EXPECT_THROW(g.get(), troupe::error) << "there is nobody else";
  EXPECT_EQ(other->losses, 0);
}

TEST_F(carried_partials, are_lost_with_their_node_all_or_none) {
  const auto f = add_there(), g = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id;
  ran(first);
  send_sum(first, {second});
  w.run_for(100ms);
  other.reset();
  ASSERT_TRUE(until([&] { return f.is_ready() && g.is_ready(); }));
  EXPECT_THROW(g.get(), troupe::error) << "it was not known to have ended";
  EXPECT_THROW(f.get(), troupe::error)
      << "else the other one's partial would have counted, and again where it runs next";
}

TEST_F(carried_partials, are_of_the_same_reduction) {
  const grid more = filled<word>({200, 3}, troupe::tiles(200, 3), word{0}, "more");
  const auto f = add_there();
  const auto g = there(kernels::add, troupe::read(x_), troupe::reduce(more), word{1});
  const std::uint64_t one = next_task().id, two = next_task().id;
  ran(one);
  ran(two);
  send_sum(one, {two});
  expect_given_up();
}

TEST_F(carried_partials, are_in_one_sum) {
  const auto f = add_there(), g = add_there(), h = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id, third = next_task().id;
  send_sum(first, {second});
  w.run_for(100ms);
  send_sum(third, {second});
  expect_given_up();
}

TEST_F(carried_partials, are_in_one_sum_and_do_not_come_by_themselves_as_well) {
  const auto f = add_there(), g = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id;
  send_sum(first, {second});
  w.run_for(100ms);
  send_sum(second, {});
  expect_given_up();
}

TEST_F(carried_partials, are_named_once_in_their_sum) {
  const auto f = add_there(), g = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id;
  send_sum(first, {second, second});
  expect_given_up();
}

TEST_F(carried_partials, that_are_in_a_sum_have_not_been_lost) {
  const auto f = add_there(), g = add_there();
  const std::uint64_t first = next_task().id, second = next_task().id;
  send_sum(first, {second});
  w.run_for(100ms);
  not_sent(second);
  expect_given_up();
}

TEST_F(carried_partials, are_partials) {
  const grid y = filled<word>({1, 3}, troupe::tiles(1, 3), word{7}, "y");
  const auto f = there(kernels::change, troupe::update(y), word{1});
  ran(next_task().id);
  expect_given_up();
}

}  // namespace
