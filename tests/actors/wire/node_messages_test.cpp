// What this file is for: what members tell of themselves survives the wire, and what is not whole is refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/node_messages.hpp"

#include <gtest/gtest.h>

#include "broken_messages.hpp"

namespace troupe::detail::wire {
namespace {

self_descriptor an_example() {
  self_descriptor s;
  s.number = 12345678901;
  s.takes_work = true;
  s.up_ms = 86'400'000;
  s.slots = 64;
  s.devices = 2;
  s.busy = 63;
  s.queued = 100'000;
  s.tasks = 1u << 30;
  s.failed = 3;
  s.kernels = 17;
  s.memory_used = 1;
  s.memory_limit = 2;
  s.memory_resident = 3;
  s.memory_machine = std::uint64_t{1} << 40;
  s.load_percent = 6350;
  s.bulk = "sockets, without UCX: no such library";
  link_descriptor& l = s.links.emplace_back();
  l.peer = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}};
  l.name = "n2";
  l.suspect = true;
  l.round_trip_ns = 82'000;
  l.resets = 4;
  l.out = {1'000'000'000, 64u << 20, 63u << 20};
  l.in = {1, 2, 3};
  s.links.emplace_back().name = "n3";
  return s;
}

std::vector<std::byte> bytes_of(const self_descriptor& s) {
  net::writer w;
  put(w, s);
  return w.take();
}

TEST(member_messages, a_member_comes_out_as_it_went_in) {
  const self_descriptor s = an_example();
  const auto bytes = bytes_of(s);
  EXPECT_EQ(kind_of(bytes), kind::described);
  net::reader r{std::span<const std::byte>(bytes).subspan(1)};
  const self_descriptor t = take_self(r);
  EXPECT_EQ(t.number, s.number);
  EXPECT_EQ(t.takes_work, s.takes_work);
  EXPECT_EQ(t.leaving, s.leaving);
  EXPECT_EQ(t.up_ms, s.up_ms);
  EXPECT_EQ(t.slots, s.slots);
  EXPECT_EQ(t.devices, s.devices);
  EXPECT_EQ(t.busy, s.busy);
  EXPECT_EQ(t.queued, s.queued);
  EXPECT_EQ(t.tasks, s.tasks);
  EXPECT_EQ(t.failed, s.failed);
  EXPECT_EQ(t.kernels, s.kernels);
  EXPECT_EQ(t.memory_used, s.memory_used);
  EXPECT_EQ(t.memory_limit, s.memory_limit);
  EXPECT_EQ(t.memory_resident, s.memory_resident);
  EXPECT_EQ(t.memory_machine, s.memory_machine);
  EXPECT_EQ(t.load_percent, s.load_percent);
  EXPECT_EQ(t.bulk, s.bulk);
  ASSERT_EQ(t.links.size(), 2u);
  EXPECT_EQ(t.links[0].peer, s.links[0].peer);
  EXPECT_EQ(t.links[0].name, "n2");
  EXPECT_TRUE(t.links[0].suspect);
  EXPECT_EQ(t.links[0].round_trip_ns, 82'000u);
  EXPECT_EQ(t.links[0].resets, 4u);
  EXPECT_EQ(t.links[0].out.bytes_per_second, 1'000'000'000u);
  EXPECT_EQ(t.links[0].out.fabric_bytes, 63u << 20);
  EXPECT_EQ(t.links[0].in.bytes, 2u);
  EXPECT_EQ(t.links[1].name, "n3");
  EXPECT_FALSE(t.links[1].suspect);
}

TEST(member_messages, loads_and_numbers_come_out_as_they_went_in) {
  net::writer w;
  const load_notice l{3, 1000, 250'000};
  put(w, l);
  EXPECT_EQ(kind_of(w.view()), kind::load);
  net::reader r(w.view().subspan(1));
  EXPECT_EQ(take_load(r), l);
  for (const kind k : {kind::ping, kind::pong, kind::describe}) {
    w.clear();
    put_numbered(w, k, 77);
    EXPECT_EQ(kind_of(w.view()), k);
    net::reader n(w.view().subspan(1));
    EXPECT_EQ(take_number(n), 77u);
  }
}

TEST(member_messages, what_ends_too_early_or_too_late_is_refused) {
  auto bytes = bytes_of(an_example());
  test::expect_refuses_what_is_cut_off(bytes, [](net::reader& r) { take_self(r); });
  bytes.push_back(std::byte{0});
  net::reader r{std::span<const std::byte>(bytes).subspan(1)};
  EXPECT_THROW(take_self(r), error);
}

TEST(member_messages, any_change_of_a_byte_is_refused_or_harmless) {
  test::expect_refuses_or_takes_what_is_changed(bytes_of(an_example()), [](net::reader& r) {
    const self_descriptor s = take_self(r);
    ASSERT_LE(s.links.size(), 2u);
    ASSERT_LE(s.slots, 1u << 20);
  });
}

// The rest of the frame could hold them; there are not that many links.
TEST(member_messages, more_links_than_a_cluster_can_have_are_refused_before_they_are_read) {
  self_descriptor s = an_example();
  s.links.clear();
  auto bytes = bytes_of(s);
  bytes.pop_back();
  net::writer count;
  count.varint(links_max + 1);
  bytes.insert(bytes.end(), count.view().begin(), count.view().end());
  bytes.resize(bytes.size() + 40 * (links_max + 1));
  net::reader r{std::span<const std::byte>(bytes).subspan(1)};
  try {
    take_self(r);
    FAIL() << "they were taken";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::protocol_error);
  }
}

TEST(member_messages, who_has_more_links_than_fit_tells_of_those_that_do) {
  self_descriptor s;
  s.links.resize(links_max + 10);
  const auto bytes = bytes_of(s);
  net::reader r{std::span<const std::byte>(bytes).subspan(1)};
  EXPECT_EQ(take_self(r).links.size(), links_max);
}

}  // namespace
}  // namespace troupe::detail::wire
