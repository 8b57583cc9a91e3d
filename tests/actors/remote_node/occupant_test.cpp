// What this file is for: nodes come and go in one place, each with its session and its id, and are shown when
// they may be used.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/occupant.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/actors/wire/silent_session.hpp"

namespace {

using test::silent_session;
using troupe::detail::name_of;
using troupe::detail::occupant;
namespace net = troupe::net;

struct occupant_test : testing::Test {
  std::shared_ptr<silent_session> first = std::make_shared<silent_session>(std::uint8_t{1});
  std::shared_ptr<silent_session> second = std::make_shared<silent_session>(std::uint8_t{2});
  occupant place;
};

TEST_F(occupant_test, is_nobody_before_a_node_joins) {
  EXPECT_FALSE(place.has_session());
  EXPECT_FALSE(place.is_there());
  EXPECT_EQ(place.id(), std::nullopt);
  EXPECT_EQ(place.times(), 0u);
  EXPECT_EQ(place.slots(), 0);
}

TEST_F(occupant_test, is_in_session_before_it_is_shown_to_others) {
  place.join(first, 8, 1u << 30);
  EXPECT_TRUE(place.has_session());
  EXPECT_EQ(place.id(), name_of(first->peer().id));
  EXPECT_FALSE(place.is_there()) << "it may not be given anything yet";
  place.show();
  EXPECT_TRUE(place.is_there());
  EXPECT_EQ(place.slots(), 8);
  EXPECT_EQ(place.memory_bytes(), 1u << 30);
}

TEST_F(occupant_test, has_a_slot_also_if_it_says_that_it_has_no_threads) {
  place.join(first, 0, 0);
  EXPECT_EQ(place.slots(), 1);
}

TEST_F(occupant_test, leaves_with_its_session_and_its_id) {
  place.join(first, 8, 0);
  place.show();
  place.leave();
  EXPECT_FALSE(place.is_there());
  EXPECT_FALSE(place.has_session());
  EXPECT_EQ(place.id(), std::nullopt);
  EXPECT_EQ(first.use_count(), 1) << "nothing keeps the session";
}

TEST_F(occupant_test, is_counted_each_time_and_takes_the_frames_of_its_own_time) {
  net::writer frame;
  frame.varint(7);
  place.join(first, 8, 100);
  place.send(frame);
  place.leave();
  place.join(second, 2, 200);
  place.send(frame);
  place.send(frame);
  EXPECT_EQ(place.times(), 2u);
  EXPECT_EQ(place.slots(), 2);
  EXPECT_EQ(place.memory_bytes(), 200u);
  EXPECT_EQ(place.id(), name_of(second->peer().id));
  EXPECT_EQ(first->frames.size(), 1u);
  ASSERT_EQ(second->frames.size(), 2u);
  EXPECT_EQ(second->frames[0], first->frames[0]);
}

}  // namespace
