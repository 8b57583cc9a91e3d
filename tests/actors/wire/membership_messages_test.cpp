// What this file is for: messages of membership as frames: what is written is read, and nothing else is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/membership_messages.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include <troupe/error.hpp>

namespace {

using namespace troupe::detail;
using frame = std::vector<std::byte>;

node_id id_of(std::uint8_t n) {
  node_id id;
  id.bytes.fill(n);
  return id;
}

std::vector<membership_message> examples() {
  const node_record record{id_of(1), 1u << 20, 7, node_claim::suspect, {{"10.0.0.1", 4711}, {"::1", 65535}}};
  return {
      node_hello{record, true, record, 3, ~std::uint64_t{0}},
      node_hello{},
      node_hello{record, false, {}, 900, 7, link_use::none},
      node_beat{true, 5, std::uint64_t{1} << 40, {record, record}, 2750},
      node_beat{false, 5, 6, {record}, 500, std::uint64_t{1} << 33, 7},
      node_probe{id_of(2)},
      node_alive{id_of(3)},
      node_news{true, false, {record}},
      view_prepare{4, id_of(4), {9, id_of(5)}},
      view_promise{4, {9, id_of(5)}, {1, id_of(6)}, {id_of(1), id_of(2)}},
      view_accept{4, id_of(4), {9, id_of(5)}, {id_of(1)}},
      view_accepted{4, {9, id_of(5)}},
      view_agreed{{4, id_of(4), {id_of(1), id_of(2), id_of(3)}}},
      node_link{link_use::work},
      node_rest{},
      node_sums{true, {1, ~std::uint64_t{0}, 3}},
      view_poll{4, id_of(4), {9, id_of(5)}, true, {1, id_of(6)}, {{0, 300}, {id_of(7)}}, {0xff, 0x01}},
      view_step{5, id_of(4), {{7}, {id_of(8), id_of(9)}}},
  };
}

bool is_refused(const frame& f) {
  try {
    decode_membership(f);
    return false;
  } catch (const troupe::error& e) {
    return e.code() == troupe::errc::protocol_error;
  }
}

TEST(membership_codec, reads_what_it_writes) {
  for (const membership_message& m : examples()) {
    const frame f = encode(m);
    EXPECT_TRUE(is_membership(f));
    const membership_message again = decode_membership(f);
    EXPECT_EQ(again.index(), m.index());
    EXPECT_EQ(encode(again), f);
  }
}

TEST(membership_codec, keeps_every_field_of_a_record) {
  const node_record r{id_of(1), 1u << 20, 7, node_claim::gone, {{"10.0.0.1", 4711}, {"node", 1}}};
  const auto m = decode_membership(encode(node_news{true, false, {r}}));
  EXPECT_EQ(std::get<node_news>(m).records.at(0), r);
  EXPECT_TRUE(std::get<node_news>(m).all);
  EXPECT_FALSE(std::get<node_news>(m).want);
}

TEST(membership_codec, keeps_the_times_of_a_heartbeat) {
  const auto m = decode_membership(encode(node_beat{true, 5, 6, {}, 0, std::uint64_t{1} << 33, 7}));
  EXPECT_TRUE(std::get<node_beat>(m).answer);
  EXPECT_EQ(std::get<node_beat>(m).deaf_ms, 0u);
  EXPECT_EQ(std::get<node_beat>(m).sent, std::uint64_t{1} << 33);
  EXPECT_EQ(std::get<node_beat>(m).heard, 7u);
}

TEST(membership_codec, keeps_what_a_proposal_has_gathered) {
  const view_poll p{4, id_of(4), {9, id_of(5)}, true, {1, id_of(6)}, {{0, 300}, {id_of(7)}}, {0xff, 0x01}};
  const auto again = std::get<view_poll>(decode_membership(encode(p)));
  EXPECT_TRUE(again.accepting);
  EXPECT_EQ(again.best, p.best);
  EXPECT_EQ(again.change, p.change);
  EXPECT_EQ(again.votes, p.votes);
  const auto h = std::get<node_hello>(decode_membership(encode(node_hello{{}, false, {}, 1, 2, link_use::none})));
  EXPECT_EQ(h.link, link_use::none);
}

TEST(membership_codec, votes_of_a_thousand_take_125_bytes_and_who_is_out_two_at_most) {
  view_poll p{1000, id_of(4), {9, id_of(5)}, true, {}, {{5, 700}, {}}, std::vector<std::uint8_t>(125)};
  EXPECT_LE(encode(p).size(), 125u + 70u);
}

TEST(membership_codec, a_quiet_heartbeat_is_small) {
  EXPECT_LE(encode(node_beat{false, ~0ull, 1ull << 30, {}}).size(), 16u);
  const std::uint64_t a_day = 86'400'000;
  EXPECT_LE(encode(node_beat{false, ~0ull, 1ull << 30, {}, 0, a_day, a_day}).size(), 24u);
}

TEST(membership_codec, a_frame_that_was_cut_anywhere_or_goes_on_is_refused) {
  for (const membership_message& m : examples()) {
    const frame whole = encode(m);
    for (std::size_t n = 0; n < whole.size(); ++n)
      EXPECT_TRUE(is_refused(frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))));
    frame more = whole;
    more.push_back(std::byte{0});
    EXPECT_TRUE(is_refused(more));
  }
}

TEST(membership_codec, kinds_that_it_does_not_know_are_refused) {
  for (const int kind : {0x00, 0x0f, 0x10, 0x7f, 0xff})
    EXPECT_TRUE(is_refused({static_cast<std::byte>(kind), std::byte{0}}));
  EXPECT_FALSE(is_membership(frame{std::byte{0x10}}));
  EXPECT_FALSE(is_membership(frame{}));
}

TEST(membership_codec, a_length_that_promises_more_than_there_is_takes_no_memory) {
  frame f = {std::byte{0x05}, std::byte{0}, std::byte{0}};  // news
  for (int i = 0; i < 4; ++i) f.push_back(std::byte{0xff});
  f.push_back(std::byte{0x0f});  // four thousand million records
  EXPECT_TRUE(is_refused(f));
}

TEST(membership_codec, more_addresses_than_allowed_are_refused) {
  node_record r{id_of(1), 1, 0, node_claim::live, std::vector<node_address>(9, {"h", 1})};
  EXPECT_TRUE(is_refused(encode(node_news{false, false, {r}})));
  r.addresses = {{std::string(256, 'x'), 1}};
  EXPECT_TRUE(is_refused(encode(node_news{false, false, {r}})));
}

TEST(membership_codec, noise_is_read_or_refused_and_nothing_else_happens) {
  std::mt19937_64 random(1);
  const auto all = examples();
  std::size_t read = 0;
  for (int i = 0; i < 200'000; ++i) {
    frame f = encode(all[random() % all.size()]);
    for (std::uint64_t k = 1 + random() % 4; k > 0; --k) f[random() % f.size()] = static_cast<std::byte>(random());
    read += !is_refused(f);
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
