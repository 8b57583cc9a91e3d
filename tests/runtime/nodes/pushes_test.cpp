// What this file is for: bytes that go with the task that reads them: when an owner sends them, what becomes of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "false_members.hpp"
#include "imagined_kernels.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using grid = troupe::array<word, 2>;

constexpr troupe::index_t rows = 1000;
constexpr std::size_t bytes = rows * 3 * sizeof(word);  // takes 24 ms
// The largest that goes unasked, but for what is less than a row of it; eight of them may be under way.
constexpr troupe::index_t most_rows = (1 << 20) / (3 * static_cast<int>(sizeof(word)));
constexpr std::size_t most_bytes = most_rows * 3 * sizeof(word);

class pushes : public test::false_members {
 protected:
  // ---- the other one owns
  void give(std::uint64_t task, std::uint64_t array, std::uint64_t pushed, troupe::index_t of_rows = rows,
            bool with_array = true) {
    give_task(task, kernels::change.info().key, of_rows, with_array, true, {one_word()}, array, pushed);
  }
  void push(std::uint64_t number, std::size_t size = bytes) { other->send(wire::kind::bytes_pushed, {number}, size); }
  bool has_run(std::uint64_t task) {
    return until([&] {
      for (const auto& f : std::exchange(other->heard[wire::kind::done], {})) {
        net::reader from(f);
        for (const wire::task_end& e : wire::take_done(from))
          if (e.how == wire::outcome::ran) ran_.push_back(e.id);
      }
      return std::ranges::count(ran_, task) != 0;
    });
  }
  std::size_t asked() { return other->heard[wire::kind::fetch_in].size(); }
  /// The array as it is there.
  std::vector<std::byte> home(std::uint64_t array) {
    net::writer f;
    f.fixed(wire::kind::fetch_home);
    wire::put(f, wire::box_request{array, array, {.where = {{0, 0, 0, 0}, {rows, 3, 1, 1}}}});
    other->say(f);
    EXPECT_TRUE(until([&] { return !other->bodies.empty() && other->bodies.back().whole; }));
    const auto found = other->bodies.back().bytes;
    other->bodies.clear();
    return found;
  }
  /// Returns what becomes of what the false member sends if it is asked for it.
  std::vector<std::byte> as_if_asked() {
    give(1000, 1000, 0);
    other->send(wire::kind::bytes_in, {next_number(wire::kind::fetch_in)}, bytes);
    EXPECT_TRUE(has_run(1000));
    return home(1000);
  }

  // ---- the other one runs
  grid made(troupe::index_t of_rows = rows) {
    return filled<word>({of_rows, 3}, troupe::tiles(of_rows, 3), word{7}, "x");
  }
  /// A task that reads it and writes something else.
  template <class Box>
  troupe::future<void> reads(const Box& x) {
    return there(kernels::derive, troupe::read(x), troupe::write(array<word>({1, 3}, troupe::tiles(1, 3), "to")),
                 word{1});
  }
  static std::uint64_t pushed_with(const wire::task_descriptor& t) { return t.accesses.at(0).gaps.at(0).pushed; }
  bool has_come(std::uint64_t number) {
    return until([&] {
      return std::ranges::any_of(other->bodies, [&](const auto& b) {
        return b.what == wire::kind::bytes_pushed && b.number == number && b.whole;
      });
    });
  }
  void bytes_take_their_time() {
    net::node_id id;
    id.bytes.fill(0xee);
    w.network.set_link(w.nodes[0]->id(), id, {.bytes_per_s = 1'000'000});
  }

 private:
  std::vector<std::uint64_t> ran_;
};

// ---- what becomes of them -------------------------------------------------------------------------------------------

TEST_F(pushes, what_comes_before_its_task_is_kept_for_it) {
  push(1);
  w.run_for(100ms);
  give(1, 1, 1);
  ASSERT_TRUE(has_run(1));
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(home(1), as_if_asked());
}

TEST_F(pushes, what_comes_after_its_task_is_written_to_its_place) {
  give(1, 1, 1);
  w.run_for(100ms);
  EXPECT_EQ(asked(), 0u) << "it is on its way";
  push(1);
  ASSERT_TRUE(has_run(1));
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(home(1), as_if_asked());
}

TEST_F(pushes, what_comes_while_its_task_is_told_is_kept_for_it) {
  push(1);
  w.run_for(6ms);
  give(1, 1, 1);
  ASSERT_TRUE(has_run(1));
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(home(1), as_if_asked());
}

TEST_F(pushes, what_comes_before_its_place_is_free_is_kept_until_then) {
  give(1, 1, 1);
  give(2, 1, 2, rows, false);
  push(2);
  w.run_for(100ms);
  push(1);
  ASSERT_TRUE(has_run(1));
  ASSERT_TRUE(has_run(2));
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(home(1), as_if_asked()) << "the second has changed what came for it";
}

TEST_F(pushes, what_there_is_no_room_for_is_asked_for) {
  for (std::uint64_t i = 1; i <= 9; ++i) push(i, most_bytes);
  w.run_for(20s);
  for (std::uint64_t i = 1; i <= 9; ++i) give(i, i, i, most_rows);
  for (std::uint64_t i = 1; i <= 8; ++i) EXPECT_TRUE(has_run(i)) << i;
  const std::uint64_t number = next_number(wire::kind::fetch_in);
  EXPECT_EQ(asked(), 0u) << "one only";
  other->send(wire::kind::bytes_in, {number}, most_bytes);
  EXPECT_TRUE(has_run(9));
}

TEST_F(pushes, what_is_for_a_task_that_cannot_run_here_is_dropped) {
  for (std::uint64_t i = 1; i <= 9; ++i) {
    push(i, most_bytes);
    w.run_for(5s);
    give_task(i, 12345, most_rows, true, true, {one_word()}, i, i);  // no such kernel
  }
  w.run_for(1s);
  push(10, most_bytes);
  w.run_for(5s);
  give(10, 10, 10, most_rows);
  EXPECT_TRUE(has_run(10));
  EXPECT_EQ(asked(), 0u) << "there was room for it";
  EXPECT_EQ(other->losses, 0);
}

TEST_F(pushes, what_is_of_another_size_than_its_box_ends_the_membership) {
  for (const int when : {0, 1, 2}) {
    const int losses = other->losses;
    if (when == 0) push(1, bytes / 2);
    w.run_for(100ms);
    give(1, 1, 1);
    give(2, 1, 2, rows, false);  // its place is free after the first
    w.run_for(100ms);
    if (when != 0) push(static_cast<std::uint64_t>(when), bytes / 2);
    EXPECT_TRUE(until([&] { return other->losses > losses; })) << "it was not given up";
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  }
}

TEST_F(pushes, a_number_stands_for_one_box) {
  give(1, 1, 1);
  give(2, 2, 1);
  EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
}

// ---- when they are sent ---------------------------------------------------------------------------------------------

TEST_F(pushes, what_a_task_reads_goes_with_it_up_to_a_mebibyte) {
  const auto f = reads(made(most_rows)), g = reads(made(most_rows + 1));
  const std::uint64_t number = pushed_with(next_task());
  EXPECT_NE(number, 0u);
  EXPECT_EQ(pushed_with(next_task()), 0u);
  ASSERT_TRUE(has_come(number));
  EXPECT_EQ(other->bodies.size(), 1u);
  EXPECT_EQ(other->bodies.front().bytes.size(), most_bytes);
  EXPECT_EQ(other->bodies.front().bytes.at(8), std::byte{7});
}

TEST_F(pushes, no_more_than_eight_mebibytes_are_under_way) {
  bytes_take_their_time();
  std::vector<troupe::future<void>> all;
  std::vector<std::uint64_t> numbers;
  const auto next = [&] {
    all.push_back(reads(made(most_rows)));
    numbers.push_back(pushed_with(next_task()));
  };
  for (int i = 0; i < 9; ++i) next();
  EXPECT_EQ(std::ranges::count(numbers, 0u), 1);
  EXPECT_EQ(numbers.back(), 0u);
  EXPECT_TRUE(has_come(numbers.front()));
  w.run_for(100ms);  // and is known to have
  next();
  EXPECT_NE(numbers.back(), 0u);
}

TEST_F(pushes, nothing_goes_to_where_memory_is_counted) {
  have_one_that_counts_memory();
  const auto f = reads(made());
  EXPECT_EQ(pushed_with(next_task()), 0u);
}

TEST_F(pushes, nothing_goes_into_what_a_task_there_still_uses) {
  const grid x = made();
  const auto f = reads(x.sub({{0, 0}, {500, 3}}));
  const wire::task_descriptor first = next_task();
  EXPECT_NE(pushed_with(first), 0u);
  const auto g = reads(x);
  const wire::task_descriptor second = next_task();
  ASSERT_EQ(second.accesses.at(0).gaps.size(), 1u);
  EXPECT_EQ(pushed_with(second), 0u);
  const grid y = made();
  const auto h = reads(y.sub({{0, 0}, {500, 3}}));
  const wire::task_descriptor third = next_task();
  ended(third.id, wire::outcome::ran);
  ASSERT_TRUE(until([&] { return h.is_ready(); }));
  const auto i = reads(y);
  EXPECT_NE(pushed_with(next_task()), 0u);
}

TEST_F(pushes, a_task_ends_when_nothing_of_it_is_read_here_any_more) {
  bytes_take_their_time();
  for (const auto how : {wire::outcome::failed, wire::outcome::ran}) {
    const auto f = reads(made());
    const wire::task_descriptor t = next_task();
    ASSERT_NE(pushed_with(t), 0u);
    ended(t.id, how);
    w.run_for(10ms);
    EXPECT_FALSE(f.is_ready()) << "what it was to read may be changed then, or gone, and is still being sent";
    ASSERT_TRUE(until([&] { return f.is_ready(); }));
    EXPECT_TRUE(has_come(pushed_with(t)));
    if (how == wire::outcome::ran)
      EXPECT_NO_THROW(f.get());
    else
      EXPECT_THROW(f.get(), troupe::task_failed);
    EXPECT_EQ(nodes(), 1u);
  }
}

}  // namespace
