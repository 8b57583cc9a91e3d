// What this file is for: one picture out of what members say, even if some are silent or say something else.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cluster/report.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
using namespace troupe::detail;
using namespace std::chrono_literals;

node_id id(std::uint8_t n) { return {{n}}; }

heard_member member(std::uint8_t n, const char* name, std::vector<wire::link_descriptor> links) {
  heard_member m;
  m.id = id(n);
  m.name = name;
  m.descriptor.emplace();
  m.descriptor->slots = n;
  m.descriptor->links = std::move(links);
  return m;
}
wire::link_descriptor link(std::uint8_t to, const char* name, wire::way out, wire::way in) {
  wire::link_descriptor l;
  l.peer = id(to);
  l.name = name;
  l.out = out;
  l.in = in;
  return l;
}

TEST(cluster_picture, both_ends_make_one_link_and_the_sender_is_believed) {
  wire::link_descriptor of_a = link(2, "a", {1000, 10, 1}, {5, 6, 7}), of_z = link(1, "z", {200, 20, 0}, {900, 9, 1});
  of_a.round_trip_ns = 90'000;
  of_z.round_trip_ns = 80'000;
  of_z.resets = 3;
  of_a.suspect = true;
  // The one with the smaller id has the later name.
  const cluster_report c = picture_of({member(1, "z", {of_a}), member(2, "a", {of_z})});
  ASSERT_EQ(c.members.size(), 2u);
  EXPECT_EQ(c.members[0].name, "a");
  EXPECT_EQ(c.members[0].slots, 2);
  EXPECT_TRUE(c.members[0].answered);
  ASSERT_EQ(c.links.size(), 1u);
  const link_report& l = c.links[0];
  EXPECT_EQ(l.from, "a");
  EXPECT_EQ(l.from_id, c.members[0].id);
  EXPECT_EQ(l.to, "z");
  EXPECT_EQ(l.out.bytes_per_second, 200);
  EXPECT_EQ(l.out.bytes, 20u);
  EXPECT_EQ(l.out.fabric_bytes, 7u);  // of which the sender knows nothing
  EXPECT_EQ(l.in.bytes_per_second, 1000);
  EXPECT_EQ(l.in.bytes, 10u);
  EXPECT_EQ(l.round_trip, 80us);
  EXPECT_EQ(l.resets, 3u);
  EXPECT_TRUE(l.suspect);
}

TEST(cluster_picture, who_is_silent_is_there_with_what_the_other_end_says) {
  heard_member silent;
  silent.id = id(2);
  silent.name = "b";
  silent.suspect = true;
  wire::link_descriptor of_b = link(2, "b", {1000, 10, 0}, {50, 60, 0});
  of_b.round_trip_ns = 70'000;
  const cluster_report c = picture_of({member(1, "a", {of_b}), silent});
  ASSERT_EQ(c.members.size(), 2u);
  EXPECT_EQ(c.members[1].state, member_state::suspect);
  EXPECT_FALSE(c.members[1].answered);
  ASSERT_EQ(c.links.size(), 1u);
  EXPECT_EQ(c.links[0].out.bytes_per_second, 1000);
  EXPECT_EQ(c.links[0].in.bytes_per_second, 50);
  EXPECT_EQ(c.links[0].in.bytes, 60u);
  EXPECT_EQ(c.links[0].round_trip, 70us);
}

TEST(cluster_picture, who_is_only_named_by_others_is_named_as_unreached) {
  const cluster_report c = picture_of(
      {member(1, "a", {link(3, "c", {}, {})}), member(2, "b", {link(3, "c", {}, {}), link(1, "a", {}, {})})});
  ASSERT_EQ(c.members.size(), 3u);
  EXPECT_EQ(c.members[2].name, "c");
  EXPECT_EQ(c.members[2].state, member_state::unreached);
  EXPECT_FALSE(c.members[2].answered);
  ASSERT_EQ(c.links.size(), 3u);
  EXPECT_EQ(c.links[0].from + c.links[0].to, "ab");
  EXPECT_EQ(c.links[1].from + c.links[1].to, "ac");
  EXPECT_EQ(c.links[2].from + c.links[2].to, "bc");
}

TEST(cluster_picture, two_members_of_one_name_stay_two) {
  const cluster_report c = picture_of({member(1, "n", {link(2, "n", {7, 0, 0}, {})}), member(2, "n", {})});
  ASSERT_EQ(c.members.size(), 2u);
  EXPECT_NE(c.members[0].id, c.members[1].id);
  ASSERT_EQ(c.links.size(), 1u);
  EXPECT_EQ(c.links[0].out.bytes_per_second, 7);
}

TEST(cluster_picture, nonsense_of_a_member_makes_no_link_to_itself) {
  const cluster_report c = picture_of({member(1, "a", {link(1, "a", {1, 1, 1}, {})})});
  EXPECT_EQ(c.members.size(), 1u);
  EXPECT_TRUE(c.links.empty());
}

TEST(cluster_picture, one_s_own_links_begin_with_oneself) {
  const auto all = links_of(member(2, "m", {link(3, "z", {1, 2, 3}, {4, 5, 6}), link(1, "a", {}, {})}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].to, "a");
  EXPECT_EQ(all[1].from, "m");
  EXPECT_EQ(all[1].to, "z");
  EXPECT_EQ(all[1].out.bytes, 2u);
  EXPECT_EQ(all[1].in.bytes_per_second, 4);
}

}  // namespace
