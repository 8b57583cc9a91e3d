// What this file is for: calls of members whose fields do not fit their arrays or kernels: they end the membership, and
// no body runs on what they say.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "false_members.hpp"

namespace {

using namespace std::chrono_literals;
namespace kernels = test::kernels;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using test::word;
using troupe::access_mode;
using troupe::border;
using troupe::index_t;

struct large {
  std::byte bytes[64];
};
inline int bodies = 0;
inline constexpr auto read_large =
    troupe::kernel<troupe::in<large, 1>, troupe::inout<word, 2>>("malformed.read_large")
        .on(troupe::cpu, [](troupe::view<const large, 1>, troupe::view<word, 2>) { ++bodies; });
inline constexpr auto take_bool = troupe::kernel<troupe::inout<word, 2>, bool>("malformed.take_bool")
                                      .on(troupe::cpu, [](troupe::view<word, 2>, bool) { ++bodies; });
// Touches the first element of each row: that it is there is what the kernel requires.
inline constexpr auto first_of_each = troupe::kernel<troupe::in<word, 2>, troupe::inout<word, 2>>("malformed.each")
                                          .requiring(troupe::same_shape(0, 1), troupe::not_empty(1))
                                          .on(troupe::cpu, [](troupe::view<const word, 2> a, troupe::view<word, 2> b) {
                                            ++bodies;
                                            for (index_t y = 0; y < b.size(0); ++y)
                                              b.data()[y * b.stride(0)] += a.data()[y * a.stride(0)];
                                          });

inline int truths_seen = 0, arrays_seen = 0;
inline constexpr auto take_lists =
    troupe::kernel<troupe::in_all<word, 2>, std::span<const bool>, troupe::inout<word, 2>, std::span<const word>>(
        "malformed.take_lists")
        .requiring(troupe::same_shape(0, 2))
        .on(troupe::cpu, [](std::span<const troupe::view<const word, 2>> all, std::span<const bool> truths,
                            troupe::view<word, 2>, std::span<const word>) {
          ++bodies;
          arrays_seen = static_cast<int>(all.size());
          truths_seen = static_cast<int>(truths.size());
        });

class malformed_calls : public test::false_members {
 protected:
  malformed_calls() {
    // Not before: what is offered is in the cards of the simulations of this program, whose seeds it would change.
    static const troupe::offer offered{read_large, take_bool, first_of_each, take_lists};
    bodies = 0;
  }
  static wire::array_descriptor an_array(std::uint64_t id, index_t rows, index_t columns) {
    wire::array_descriptor a;
    a.id = id;
    a.rank = 2;
    a.size = a.tile = {rows, columns, 1, 1};
    a.element = a.align = sizeof(word);
    a.name = "theirs";
    return a;
  }
  static wire::access_descriptor all_of(const wire::array_descriptor& a, access_mode mode) {
    wire::access_descriptor x;
    x.array = a.id;
    x.mode = mode;
    x.where.hi = x.limit.hi = a.size;
    return x;
  }
  /// An update of four rows of an array of six by three words, that goes back; its bytes are pushed.
  static wire::tasks a_call() {
    wire::tasks t;
    t.arrays.push_back(an_array(1, 6, 3));
    wire::task_descriptor& c = t.all.emplace_back();
    c.id = 1;
    c.kernel = kernels::change.info().key;
    c.values = {one_word()};
    wire::access_descriptor& x = c.accesses.emplace_back(all_of(t.arrays[0], access_mode::update));
    x.where.hi[0] = 4;
    x.returns = true;
    x.gaps.push_back({.where = x.where});
    return t;
  }
  /// A reduction into all of it, of which the partial goes back.
  static wire::tasks a_reduction() {
    wire::tasks t;
    t.arrays = {an_array(1, 6, 3), an_array(2, 2, 3)};
    wire::task_descriptor& c = t.all.emplace_back();
    c.id = 1;
    c.kernel = kernels::add.info().key;
    c.values = {one_word()};
    c.accesses = {all_of(t.arrays[0], access_mode::read), all_of(t.arrays[1], access_mode::reduce)};
    c.accesses[0].gaps.push_back({.where = c.accesses[0].where});
    c.accesses[1].returns = c.accesses[1].fresh = true;
    return t;
  }
  void tell(const wire::tasks& t) {
    net::writer f;
    wire::put(f, t);
    other->say(f);
  }
  void fill_what_it_asks_for() {
    for (const auto& f : std::exchange(other->heard[wire::kind::fetch_in], {})) {
      net::reader from(f);
      for (const wire::box_request& r : wire::take_requests(from))
        other->send(wire::kind::bytes_in, {r.number}, static_cast<std::size_t>(r.what.where.volume()) * sizeof(word));
    }
  }
  /// How the task ended, if it did and the membership did not.
  std::optional<wire::task_end> end_of_it() {
    std::optional<wire::task_end> end;
    EXPECT_TRUE(until([&] {
      fill_what_it_asks_for();
      for (const auto& f : std::exchange(other->heard[wire::kind::done], {})) {
        net::reader from(f);
        for (const wire::task_end& e : wire::take_done(from)) end = e;
      }
      return end || other->losses != 0;
    }));
    return other->losses != 0 ? std::nullopt : end;
  }
  void refuses(const char* what, wire::tasks t, const std::function<void(wire::tasks&)>& change) {
    SCOPED_TRACE(what);
    change(t);
    tell(t);
    EXPECT_TRUE(until([&] {
      fill_what_it_asks_for();
      return other->losses == 1;
    })) << "it was not given up";
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
    other->losses = 0;
    other->heard.clear();
  }
};

TEST_F(malformed_calls, what_they_are_made_from_runs) {
  tell(a_call());
  auto end = end_of_it();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::ran) << end->text;
  other.reset();
  ASSERT_TRUE(until([&] { return nodes() == 0; }));
  other.emplace(w);
  ASSERT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  tell(a_reduction());
  end = end_of_it();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::ran) << end->text;
}

// A single byte of the frame is changed: the view has six rows and three columns, and no memory.
TEST_F(malformed_calls, boxes_are_one_long_beyond_the_rank_of_their_array) {
  for (const int d : {2, 3})
    for (const index_t to : {0, 2})
      refuses("a box", a_call(),
              [&](wire::tasks& t) { t.all[0].accesses[0].where.hi[static_cast<std::size_t>(d)] = to; });
  for (const int d : {2, 3})
    refuses("limits", a_call(),
            [&](wire::tasks& t) { t.all[0].accesses[0].limit.hi[static_cast<std::size_t>(d)] = 0; });
  refuses("a box beside its array", a_call(), [](wire::tasks& t) {
    t.all[0].accesses[0].where.lo[3] = 1;
    t.all[0].accesses[0].where.hi[3] = 2;
  });
}

TEST_F(malformed_calls, what_goes_back_was_written) {
  refuses("a partial that stays", a_reduction(), [](wire::tasks& t) { t.all[0].accesses[1].returns = false; });
  refuses("what was only read", a_reduction(), [](wire::tasks& t) { t.all[0].accesses[0].returns = true; });
  refuses("a partial that is to be sent for", a_reduction(),
          [](wire::tasks& t) { t.all[0].accesses[1].gaps.push_back({.where = t.all[0].accesses[1].where}); });
}

TEST_F(malformed_calls, partials_that_are_added_up_are_of_one_kind_by_an_operator_that_is_known) {
  constexpr std::uint16_t sums = troupe::detail::operator_code<word, std::plus<>>();
  const auto grouped = [](wire::tasks& t, std::uint16_t op) {
    t.all[0].accesses[1].group = 9;
    t.all[0].accesses[1].op = op;
  };
  refuses("an unknown operator", a_reduction(), [&](wire::tasks& t) { grouped(t, 0x7f7f); });
  refuses("no operator", a_reduction(), [&](wire::tasks& t) { grouped(t, 0); });
  refuses("an operator on smaller elements", a_reduction(),
          [&](wire::tasks& t) { grouped(t, troupe::detail::operator_code<std::uint8_t, std::plus<>>()); });
  refuses("another thing that goes back", a_reduction(), [&](wire::tasks& t) {
    grouped(t, sums);
    t.all[0].kernel = kernels::two.info().key;
    t.all[0].accesses.push_back(t.all[0].accesses[0]);
    t.all[0].accesses[2].mode = access_mode::update;
    t.all[0].accesses[2].returns = true;
    t.all[0].accesses[2].gaps.clear();
  });
  refuses("partials of two sizes", a_reduction(), [&](wire::tasks& t) {
    grouped(t, sums);
    t.arrays.push_back(an_array(3, 4, 3));
    wire::task_descriptor more = t.all[0];
    more.id = 2;
    more.accesses[1].array = 3;
    more.accesses[1].where.hi = more.accesses[1].limit.hi = t.arrays[2].size;
    t.all.push_back(more);
  });
  refuses("partials by two operators", a_reduction(), [&](wire::tasks& t) {
    grouped(t, sums);
    t.all.push_back(t.all[0]);
    t.all[1].id = 2;
    t.all[1].accesses[1].op = troupe::detail::operator_code<word, std::multiplies<>>();
  });
}

TEST_F(malformed_calls, what_is_written_has_no_border) {
  refuses("an update with a border", a_call(), [](wire::tasks& t) {
    t.all[0].accesses[0].edge = border::wrap;
    t.all[0].accesses[0].where.hi[0] = 7;
  });
}

TEST_F(malformed_calls, a_constant_beyond_the_edge_is_no_larger_than_there_is_room_for) {
  wire::tasks t = a_call();
  t.arrays.push_back(an_array(2, 4, 1));
  t.arrays[1].rank = 1;
  t.arrays[1].element = sizeof(large);
  t.all[0].kernel = read_large.info().key;
  t.all[0].values.clear();
  t.all[0].accesses.insert(t.all[0].accesses.begin(), all_of(t.arrays[1], access_mode::read));
  refuses("a constant", t, [](wire::tasks& c) {
    c.all[0].accesses[0].edge = border::fill;
    c.all[0].accesses[0].where.lo[0] = -100;
  });
  EXPECT_EQ(bodies, 0);
}

TEST_F(malformed_calls, an_array_has_no_more_tiles_than_can_be_looked_through) {
  refuses("tiles", a_call(), [](wire::tasks& t) {
    t.arrays[0].size = {index_t{1} << 12, index_t{1} << 11, 1, 1};
    t.arrays[0].tile = {1, 1, 1, 1};
  });
}

TEST_F(malformed_calls, truth_is_zero_or_one) {
  wire::tasks t = a_call();
  t.all[0].kernel = take_bool.info().key;
  t.all[0].values = {{std::byte{1}}};
  refuses("a value", t, [](wire::tasks& c) { c.all[0].values[0][0] = std::byte{2}; });
  EXPECT_EQ(bodies, 0);
  tell(t);
  ASSERT_TRUE(end_of_it().has_value());
  EXPECT_EQ(bodies, 1);
}

TEST_F(malformed_calls, arrays_of_one_call_have_the_shapes_that_the_kernel_says) {
  wire::tasks t;
  t.arrays = {an_array(1, 6, 3), an_array(2, 2, 3)};
  wire::task_descriptor& c = t.all.emplace_back();
  c.id = 1;
  c.kernel = first_of_each.info().key;
  c.accesses = {all_of(t.arrays[0], access_mode::read), all_of(t.arrays[1], access_mode::update)};
  for (auto& x : c.accesses) x.gaps.push_back({.where = x.where});
  const auto fails = [&](const char* what) {
    SCOPED_TRACE(what);
    tell(t);
    const auto end = end_of_it();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->how, wire::outcome::failed);
    EXPECT_EQ(end->code, troupe::errc::bad_argument);
    EXPECT_NE(end->text.find("malformed.each"), std::string::npos) << end->text;
    EXPECT_EQ(bodies, 0);
    t.arrays.clear();
    ++t.all[0].id;
  };
  fails("six rows beside two");
  for (auto& x : t.all[0].accesses) {
    x.gaps.clear();
    x.where.hi[0] = 0;
  }
  fails("nothing of either");
  for (auto& x : t.all[0].accesses) {
    x.where.hi[0] = 2;
    x.gaps.push_back({.where = x.where});
  }
  tell(t);
  const auto end = end_of_it();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::ran) << end->text;
  EXPECT_EQ(bodies, 1);
}

TEST_F(malformed_calls, lists_are_as_long_as_is_said) {
  const auto length = [](std::uint32_t n) {
    const auto bytes = std::as_bytes(std::span(&n, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  wire::tasks t;
  t.arrays = {an_array(1, 6, 3), an_array(2, 6, 3), an_array(3, 5, 3)};
  wire::task_descriptor& call = t.all.emplace_back();
  call.id = 1;
  call.kernel = take_lists.info().key;
  call.accesses = {all_of(t.arrays[0], access_mode::read), all_of(t.arrays[0], access_mode::read),
                   all_of(t.arrays[1], access_mode::update)};
  for (auto& x : call.accesses) x.gaps.push_back({.where = x.where});
  call.values = {length(2), std::vector<std::byte>(40, std::byte{1}), std::vector<std::byte>(3 * sizeof(word))};
  refuses("a longer list", t, [&](wire::tasks& c) { c.all[0].values[0] = length(3); });
  refuses("a shorter list", t, [&](wire::tasks& c) { c.all[0].values[0] = length(1); });
  refuses("a very long list", t, [&](wire::tasks& c) { c.all[0].values[0] = length(~0u); });
  refuses("no length", t, [&](wire::tasks& c) { c.all[0].values[0].clear(); });
  refuses("half a length", t, [&](wire::tasks& c) { c.all[0].values[0].resize(2); });
  refuses("no list", t, [&](wire::tasks& c) { c.all[0].values.erase(c.all[0].values.begin() + 1); });
  refuses("a value that is neither", t, [&](wire::tasks& c) { c.all[0].values[1][39] = std::byte{2}; });
  refuses("half a value", t, [&](wire::tasks& c) { c.all[0].values[2].resize(20); });
  refuses("a list that is written", t, [&](wire::tasks& c) { c.all[0].accesses[1].mode = access_mode::update; });
  EXPECT_EQ(bodies, 0);
  tell(t);
  auto end = end_of_it();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::ran) << end->text;
  EXPECT_EQ(arrays_seen, 2);
  EXPECT_EQ(truths_seen, 40);
  t.arrays.clear();
  t.all[0].id = 2;
  t.all[0].accesses[1] = all_of(an_array(3, 5, 3), access_mode::read);
  t.all[0].accesses[1].gaps.push_back({.where = t.all[0].accesses[1].where});
  tell(t);
  end = end_of_it();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->how, wire::outcome::failed);
  EXPECT_EQ(end->code, troupe::errc::bad_argument) << end->text;
  EXPECT_EQ(bodies, 1);
}

TEST_F(malformed_calls, quantities_and_times_are_numbers_that_can_be_counted_with) {
  refuses("an amount", a_call(), [&](wire::tasks& t) { t.all[0].resources = {{"licence", 1e300}}; });
  for (const float time : {std::numeric_limits<float>::infinity(), 1e30f}) {
    const auto x = filled<word>({1, 3}, troupe::tiles(1, 3), word{7}, "x");
    const auto f = there(kernels::change, troupe::update(x), word{1});
    const wire::task_descriptor t = next_task();
    net::writer done;
    done.varint(static_cast<std::uint64_t>(wire::kind::done));
    wire::put(done, wire::task_end{.id = t.id, .how = wire::outcome::ran, .measured_ns = time});
    other->say(done);
    EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
    other->losses = 0;
    other->heard.clear();
  }
}

// A wrong number of attempts would be wrong in the counters, too; and nobody looks at what a link is tried with.
TEST_F(malformed_calls, attempts_are_those_that_the_call_allows_and_links_are_tried_with_one_size) {
  const std::function<void(std::uint64_t)> lies[] = {
      [&](std::uint64_t id) { other->say(wire::kind::tried, id); },
      [&](std::uint64_t id) {
        net::writer done;
        done.varint(static_cast<std::uint64_t>(wire::kind::done));
        wire::put(done, wire::task_end{.id = id, .how = wire::outcome::ran, .measured_ns = 1, .attempts = 2});
        other->say(done);
      },
      [&](std::uint64_t) { other->send(wire::kind::check, {1}, 8); },
      [&](std::uint64_t) { other->send(wire::kind::checked, {1}, 64u << 10); }};
  for (const auto& lie : lies) {
    const auto x = filled<word>({1, 3}, troupe::tiles(1, 3), word{7}, "x");
    const auto f = there(kernels::change, troupe::update(x), word{1});
    lie(next_task().id);
    EXPECT_TRUE(until([&] { return other->losses == 1; })) << "it was not given up";
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
    other->losses = 0;
    other->heard.clear();
  }
}

// Nothing of it is written, so it cannot end what is being written.
TEST_F(malformed_calls, a_transfer_of_nothing_under_a_wrong_title_ends_no_other_one) {
  const auto x = filled<word>({1000, 3}, troupe::tiles(1000, 3), word{7}, "x", {.replicas = 2});
  const auto f = there(kernels::change, troupe::update(x), word{1});
  ended(next_task().id, wire::outcome::ran);
  const std::uint64_t number = next_number(wire::kind::snapshot);
  other->send(wire::kind::bytes_home, {number}, 1000 * 3 * sizeof(word));
  w.run_for(6ms);
  other->send(wire::kind::bytes_back, {number, 0, 0}, 0);
  w.run_for(100ms);
  other.reset();
  const auto seen = x.try_read_for(1h);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ((*seen)(0, 0), 0x0101010101010101u);
  EXPECT_EQ((*seen)(999, 2), 0x0101010101010101u) << "it was taken before all of it was there";
}

}  // namespace
