// What this file is for: messages to the owner are gathered, in the order in which it must hear them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/outgoing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace troupe::detail;
namespace net = troupe::net;

class noting_session final : public net::session {
 public:
  const net::identity& peer() const override { return peer_; }
  bool dialled() const override { return false; }
  bool send(std::span<const std::byte> frame) override {
    net::reader from(frame);
    kinds.push_back(from.fixed<wire::kind>());
    sizes.push_back(frame.size());
    return true;
  }
  std::size_t frame_max() const override { return 1u << 20; }
  void send_bulk(std::span<const std::byte>, net::const_pieces, std::function<void(bool)>) override {}
  std::size_t unsent() const override { return 0; }
  std::chrono::steady_clock::time_point heard() const override { return {}; }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_received() const override { return 0; }
  void close(std::exception_ptr) override {}

  std::vector<wire::kind> kinds;
  std::vector<std::size_t> sizes;

 private:
  net::identity peer_;
};

struct messages : testing::Test {
  std::shared_ptr<noting_session> owner = std::make_shared<noting_session>();
  outgoing out{owner};
  using kinds = std::vector<wire::kind>;
};

TEST_F(messages, of_one_kind_go_in_one_frame) {
  for (int i = 0; i < 3; ++i) out.tell_end({});
  for (int i = 0; i < 2; ++i) out.ask_for({});
  EXPECT_EQ(owner->kinds, kinds());
  out.flush();
  EXPECT_EQ(owner->kinds, (kinds{wire::kind::want, wire::kind::done}));
  out.flush();
  EXPECT_EQ(owner->kinds.size(), 2u) << "each once";
}

TEST_F(messages, of_what_has_not_come_go_before_the_ends_of_tasks) {
  out.tell_end({});
  out.tell_unfilled({});
  out.flush();
  EXPECT_EQ(owner->kinds, (kinds{wire::kind::unfilled, wire::kind::done}));
}

TEST_F(messages, that_are_many_are_sent_before_a_frame_is_full) {
  wire::task_end e;
  e.how = wire::outcome::failed;
  e.text = std::string(1000, 'x');
  out.tell_unfilled({});
  for (int i = 0; i < 60; ++i) out.tell_end(e);
  ASSERT_GE(owner->kinds.size(), 2u);
  EXPECT_EQ(owner->kinds[0], wire::kind::unfilled);
  EXPECT_EQ(owner->kinds[1], wire::kind::done);
  for (const std::size_t s : owner->sizes) EXPECT_LT(s, 64u << 10);
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
  EXPECT_TRUE(owner->kinds.empty()) << "only who has released the lock sends them";
}

}  // namespace
