// What this file is for: small boxes travel inside the messages about their task: when, and what becomes of wrong ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "false_members.hpp"
#include "imagined_kernels.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using troupe::access_mode;
using troupe::index_t;
using grid = troupe::array<word, 2>;
using words = std::vector<word>;

std::vector<std::byte> bytes_of(const words& all) {
  std::vector<std::byte> bytes(all.size() * sizeof(word));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

class small_boxes : public test::false_members {
 protected:
  // ---- the other one runs
  grid made(index_t rows, word first = 7) { return filled<word>({rows, 3}, troupe::tiles(rows, 3), first, "x"); }
  void ran(std::uint64_t task, std::vector<wire::written_box> written) {
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::done));
    wire::put(f, wire::task_end{.id = task, .how = wire::outcome::ran, .written = std::move(written)});
    other->say(f);
  }
  void expect_given_up() {
    EXPECT_TRUE(until([&] { return other->losses == 1; }));
  }
  std::size_t asked_to_send_home() {
    return other->heard[wire::kind::fetch_home].size() + other->heard[wire::kind::snapshot].size();
  }

  // ---- the other one owns
  /// A task that changes all of an array of so many rows, or the first of them.
  wire::tasks a_change(index_t rows, index_t of_rows) {
    wire::tasks t;
    wire::array_descriptor& a = t.arrays.emplace_back();
    a.id = 1;
    a.rank = 2;
    a.size = a.tile = {rows, 3, 1, 1};
    a.element = a.align = sizeof(word);
    a.name = "theirs";
    wire::task_descriptor& c = t.all.emplace_back();
    c.id = 1;
    c.kernel = kernels::change.info().key;
    c.values = {one_word()};
    wire::access_descriptor& x = c.accesses.emplace_back();
    x.array = a.id;
    x.mode = access_mode::update;
    x.where.hi = {of_rows, 3, 1, 1};
    x.limit.hi = a.size;
    x.returns = of_rows != rows;
    x.gaps.push_back({.where = x.where, .bytes = std::vector<std::byte>(of_rows * 3 * sizeof(word), std::byte{1})});
    return t;
  }
  void tell(const wire::tasks& t) {
    net::writer f;
    wire::put(f, t);
    other->say(f);
  }
  wire::task_end end_of_it() {
    std::optional<wire::task_end> end;
    EXPECT_TRUE(until([&] {
      for (const auto& f : std::exchange(other->heard[wire::kind::done], {})) {
        net::reader from(f);
        for (wire::task_end& e : wire::take_done(from)) end = std::move(e);
      }
      return end.has_value();
    }));
    return end.value_or(wire::task_end{});
  }
  /// The first rows of the array as they are there.
  std::vector<std::byte> home(index_t rows, std::uint64_t array = 1) {
    other->bodies.clear();
    net::writer f;
    f.fixed(wire::kind::fetch_home);
    wire::put(f, wire::box_request{8 + array, array, {.where = {{0, 0, 0, 0}, {rows, 3, 1, 1}}}});
    other->say(f);
    EXPECT_TRUE(until([&] { return !other->bodies.empty() && other->bodies.back().whole; }));
    return other->bodies.back().bytes;
  }
};

// ---- what a task reads ----------------------------------------------------------------------------------------------

TEST_F(small_boxes, that_a_task_reads_are_in_its_message) {
  const grid x = made(4);
  const auto f = there(kernels::derive, troupe::read(x), troupe::write(made(1)), word{1});
  const wire::task_descriptor t = next_task();
  ASSERT_EQ(t.accesses.at(0).gaps.size(), 1u);
  EXPECT_EQ(t.accesses[0].gaps[0].bytes, bytes_of(words(12, 7)));
  EXPECT_EQ(t.accesses[0].gaps[0].pushed, 0u);
  ran(t.id, {});
  EXPECT_TRUE(until([&] { return f.is_ready(); }));
  // The node has the bytes now, until they change.
  there(kernels::derive, troupe::read(x), troupe::write(made(1)), word{1});
  EXPECT_TRUE(next_task().accesses.at(0).gaps.empty());
}

TEST_F(small_boxes, of_a_large_tile_are_in_it_too) {
  const grid x = made(1000);
  there(kernels::derive, troupe::read(x.sub({{10, 0}, {12, 3}})), troupe::write(made(1)), word{1});
  const wire::task_descriptor t = next_task();
  ASSERT_EQ(t.accesses.at(0).gaps.size(), 1u);
  EXPECT_EQ(t.accesses[0].gaps[0].where, (troupe::logic::box4{{10, 0, 0, 0}, {12, 3, 1, 1}}));
  EXPECT_EQ(t.accesses[0].gaps[0].bytes, bytes_of(words(6, 7)));
}

TEST_F(small_boxes, go_to_no_node_that_counts_its_memory) {
  have_one_that_counts_memory();
  there(kernels::derive, troupe::read(made(4)), troupe::write(made(1)), word{1});
  const wire::task_descriptor t = next_task();
  ASSERT_EQ(t.accesses.at(0).gaps.size(), 1u);
  EXPECT_TRUE(t.accesses[0].gaps[0].bytes.empty());
}

TEST_F(small_boxes, that_came_with_their_task_are_what_it_works_on) {
  tell(a_change(4, 4));
  const wire::task_end e = end_of_it();
  EXPECT_EQ(e.how, wire::outcome::ran) << e.text;
  EXPECT_TRUE(e.written.empty()) << "nobody asked for a copy";
  EXPECT_TRUE(other->heard[wire::kind::fetch_in].empty());
  const auto found = home(4);
  give_task(2, kernels::change.info().key, 4, true, true, {one_word()}, 2);
  other->send(wire::kind::bytes_in, {next_number(wire::kind::fetch_in)}, 12 * sizeof(word));
  EXPECT_EQ(end_of_it().how, wire::outcome::ran);
  EXPECT_EQ(found, home(4, 2)) << "as if it had been asked for";
}

TEST_F(small_boxes, of_another_size_than_their_box_end_the_membership) {
  wire::tasks t = a_change(4, 4);
  t.all[0].accesses[0].gaps[0].bytes.pop_back();
  tell(t);
  expect_given_up();
}

// ---- what a task writes ---------------------------------------------------------------------------------------------

TEST_F(small_boxes, that_are_read_elsewhere_come_with_the_end_of_their_task) {
  const grid x = made(2);
  std::optional<word> seen;
  const auto writes = there(kernels::write, troupe::write(x), word{1});
  const auto reads =
      spawn({.where = troupe::scope::here()}, kernels::derive, troupe::read(x), troupe::write(made(1)), word{3});
  const wire::task_descriptor t = next_task();
  ran(t.id, {});
  ASSERT_TRUE(until([&] { return writes.is_ready(); }));
  EXPECT_TRUE(until([&] { return asked_to_send_home() == 1; })) << "it was sent before anybody was known to read it";
  // Now the reader is known when the writer is sent: both wait for a task here.
  const grid y = made(2), gate = made(1);
  const auto first = spawn({.where = troupe::scope::here()}, kernels::write, troupe::write(gate), word{9});
  const auto again = there(kernels::derive, troupe::read(gate), troupe::write(y), word{1});
  const auto taken =
      spawn({.where = troupe::scope::here()}, kernels::derive, troupe::read(y), troupe::write(made(1)), word{3});
  const wire::task_descriptor u = next_task();
  ASSERT_EQ(u.accesses.size(), 2u);
  EXPECT_FALSE(u.accesses[0].copied);
  EXPECT_TRUE(u.accesses[1].copied);
  ran(u.id, {{1, bytes_of(words(6, 4711))}});
  ASSERT_TRUE(until([&] { return taken.is_ready(); }));
  EXPECT_EQ(asked_to_send_home(), 1u) << "what came is not asked for";
  EXPECT_EQ(y.read()(1, 2), 4711u);
}

TEST_F(small_boxes, for_which_there_is_no_copy_are_fetched) {
  const grid y = made(2), gate = made(1);
  spawn({.where = troupe::scope::here()}, kernels::write, troupe::write(gate), word{9});
  there(kernels::derive, troupe::read(gate), troupe::write(y), word{1});
  spawn({.where = troupe::scope::here()}, kernels::derive, troupe::read(y), troupe::write(made(1)), word{3});
  const wire::task_descriptor u = next_task();
  EXPECT_TRUE(u.accesses.at(1).copied);
  ran(u.id, {});  // an accelerator has run it, or there was no memory
  EXPECT_TRUE(until([&] { return asked_to_send_home() == 1; }));
}

TEST_F(small_boxes, that_a_task_does_not_write_end_the_membership) {
  const grid x = made(2);
  there(kernels::derive, troupe::read(x), troupe::write(made(1)), word{1});
  ran(next_task().id, {{0, bytes_of(words(6, 1))}});
  expect_given_up();
}

TEST_F(small_boxes, of_another_size_than_what_was_written_end_the_membership) {
  there(kernels::write, troupe::write(made(2)), word{1});
  ran(next_task().id, {{0, bytes_of(words(5, 1))}});
  expect_given_up();
}

TEST_F(small_boxes, of_an_access_that_there_is_not_end_the_membership) {
  there(kernels::write, troupe::write(made(2)), word{1});
  ran(next_task().id, {{1, bytes_of(words(6, 1))}});
  expect_given_up();
}

TEST_F(small_boxes, that_go_back_come_with_the_end_and_come_once) {
  for (const bool twice : {false, true}) {
    const grid x = made(100);
    const auto f = there(kernels::write, troupe::write(x.sub({{3, 0}, {5, 3}})), word{1});
    const wire::task_descriptor t = next_task();
    ASSERT_TRUE(t.accesses.at(0).returns);
    std::vector<wire::written_box> all{{0, bytes_of(words(6, 8))}};
    if (twice) all.push_back(all[0]);
    ran(t.id, all);
    if (twice) {
      expect_given_up();
      continue;
    }
    ASSERT_TRUE(until([&] { return f.is_ready(); }));
    EXPECT_NO_THROW(f.get());
    const auto found = x.read();
    EXPECT_EQ(found(2, 2), 7u);
    EXPECT_EQ(found(3, 0), 8u);
    EXPECT_EQ(found(4, 2), 8u);
    EXPECT_EQ(found(5, 0), 7u);
  }
}

TEST_F(small_boxes, that_are_to_be_copied_are_as_their_task_left_them) {
  wire::tasks t = a_change(4, 4);
  t.all[0].accesses[0].copied = true;
  tell(t);
  const wire::task_end e = end_of_it();
  ASSERT_EQ(e.written.size(), 1u);
  EXPECT_EQ(e.written[0].access, 0u);
  EXPECT_EQ(e.written[0].bytes, home(4));
}

TEST_F(small_boxes, that_go_back_are_in_the_end_of_their_task) {
  tell(a_change(100, 2));
  const wire::task_end e = end_of_it();
  ASSERT_EQ(e.written.size(), 1u);
  w.run_for(100ms);
  EXPECT_TRUE(other->bodies.empty()) << "they come once";
  EXPECT_EQ(e.written[0].bytes, home(2));
}

TEST_F(small_boxes, that_were_only_read_are_not_copied) {
  wire::tasks t = a_change(4, 4);
  t.all[0].accesses[0].mode = access_mode::read;
  t.all[0].accesses[0].copied = true;
  tell(t);
  expect_given_up();
}

}  // namespace
