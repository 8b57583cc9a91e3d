// What this file is for: messages to the owner are gathered, in the order in which it must hear them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/outgoing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/actors/wire/silent_session.hpp"

namespace {

using namespace troupe::detail;
namespace net = troupe::net;

struct messages : testing::Test {
  std::shared_ptr<test::silent_session> owner = std::make_shared<test::silent_session>();
  outgoing out{owner};
  using kinds = std::vector<wire::kind>;

  kinds sent() const {
    kinds all;
    for (const auto& frame : owner->frames) all.push_back(net::reader(frame).fixed<wire::kind>());
    return all;
  }
};

TEST_F(messages, of_one_kind_go_in_one_frame) {
  for (int i = 0; i < 3; ++i) out.tell_end({});
  for (int i = 0; i < 2; ++i) out.ask_for({});
  EXPECT_EQ(sent(), kinds());
  out.flush();
  EXPECT_EQ(sent(), (kinds{wire::kind::fetch_in, wire::kind::done}));
  out.flush();
  EXPECT_EQ(owner->frames.size(), 2u) << "each once";
}

TEST_F(messages, of_what_has_not_come_go_before_the_ends_of_tasks) {
  out.tell_end({});
  out.tell_unfilled({});
  out.flush();
  EXPECT_EQ(sent(), (kinds{wire::kind::unfilled, wire::kind::done}));
}

TEST_F(messages, that_are_many_are_sent_before_a_frame_is_full) {
  wire::task_end e;
  e.how = wire::outcome::failed;
  e.text = std::string(1000, 'x');
  out.tell_unfilled({});
  for (int i = 0; i < 60; ++i) out.tell_end(e);
  ASSERT_GE(owner->frames.size(), 2u);
  EXPECT_EQ(sent()[0], wire::kind::unfilled);
  EXPECT_EQ(sent()[1], wire::kind::done);
  for (const auto& frame : owner->frames) EXPECT_LT(frame.size(), 64u << 10);
}

TEST_F(messages, to_others_are_taken_once) {
  out.answer(owner, {});
  out.request({}, {});
  out.add({});
  const auto batch = out.take();
  EXPECT_EQ(batch.answers.size(), 1u);
  EXPECT_EQ(batch.requests.size(), 1u);
  EXPECT_EQ(batch.bodies.size(), 1u);
  const auto none = out.take();
  EXPECT_TRUE(none.answers.empty() && none.requests.empty() && none.bodies.empty());
  EXPECT_TRUE(owner->frames.empty()) << "only who has released the lock sends them";
}

}  // namespace
