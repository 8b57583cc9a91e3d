// What this file is for: the faults of the loopback network, each of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "net/loopback/network.hpp"

namespace {

using namespace std::chrono_literals;
using namespace troupe::net;
using loopback::link;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

/// Writes down what it is told, with the time.
class process final : transport_events {
 public:
  process(loopback::network& n, std::uint8_t number, std::size_t unsent_max = 64u << 20) : network_(n) {
    transport_options o;
    o.self.id.bytes[0] = number;
    o.self.cluster = "test";
    o.proof.secrets.emplace_back();
    o.listen = {{"10.0.0." + std::to_string(number), 4711}};
    o.unsent_max = unsent_max;
    o.chunk_bytes = 1000;
    id = o.self.id;
    at = o.listen.front();
    wire = n.attach(o);
    wire->start(*this);
  }
  ~process() { wire->stop(); }

  void up(const std::shared_ptr<session>& s) override { note("up"), of = s; }
  void frame(session&, std::span<const std::byte> f) override {
    note(std::string(reinterpret_cast<const char*>(f.data()), f.size()));
  }
  pieces arriving(session&, std::span<const std::byte>, std::uint64_t bytes) override {
    note("arriving");
    body.resize(bytes);
    return {body};
  }
  void arrived(session&, std::span<const std::byte>, bool whole) override { note(whole ? "whole" : "broken"); }
  void down(session&, std::exception_ptr) override { note("down"), of = nullptr; }
  void refused(const endpoint&, std::exception_ptr why) override {
    try {
      std::rethrow_exception(why);
    } catch (const dial_error& e) {
      note("refused " + std::to_string(static_cast<int>(e.why())));
    }
  }
  void send(const std::string& s) { EXPECT_TRUE(of && of->send(bytes_of(s))); }

  loopback::network& network_;
  node_id id;
  endpoint at;
  std::unique_ptr<transport> wire;
  std::shared_ptr<session> of;
  std::vector<std::byte> body;
  std::vector<std::string> told;
  std::vector<transport::time_point> when;

 private:
  void note(std::string what) {
    told.push_back(std::move(what));
    when.push_back(network_.now());
  }
};

using strings = std::vector<std::string>;

class loopback_faults : public testing::Test {
 protected:
  void join() {
    a.wire->dial(b.at);
    ASSERT_TRUE(n.run_until([&] { return a.of && b.of; }, 1s));
    a.told.clear(), b.told.clear(), a.when.clear(), b.when.clear();
  }
  loopback::network n{1};
  process a{n, 1}, b{n, 2};
};

TEST_F(loopback_faults, a_cut_path_holds_back_and_a_mended_one_delivers_in_order) {
  join();
  n.cut(a.id, b.id);
  a.send("1");
  a.send("2");
  b.send("back");
  n.run_for(10s);
  EXPECT_EQ(b.told, strings{});
  EXPECT_EQ(a.told, strings{"back"}) << "the other way is whole";
  n.mend(a.id, b.id);
  a.send("3");
  n.run_for(1s);
  EXPECT_EQ(b.told, (strings{"1", "2", "3"}));
}

TEST_F(loopback_faults, a_dial_over_a_cut_path_has_no_answer_in_time) {
  n.cut(b.id, a.id);
  a.wire->dial(b.at);
  n.run_for(4900ms);
  EXPECT_EQ(a.told, strings{});
  n.run_for(200ms);
  EXPECT_EQ(a.told, strings{"refused " + std::to_string(static_cast<int>(dial_error::reason::no_answer))});
}

TEST_F(loopback_faults, a_killed_process_resets_its_sessions_and_nobody_listens_there) {
  join();
  n.kill(b.id);
  n.run_for(10ms);
  EXPECT_EQ(a.told, strings{"down"});
  EXPECT_EQ(b.told, strings{}) << "it is told nothing";
  a.wire->dial(b.at);
  n.run_for(10ms);
  EXPECT_EQ(a.told.back(), "refused " + std::to_string(static_cast<int>(dial_error::reason::nobody_listens)));
}

TEST_F(loopback_faults, a_process_that_stands_still_gets_all_of_it_later) {
  join();
  n.pause(b.id);
  b.wire->at(n.now() + 1s, [&] { b.told.push_back("timer"); });
  a.send("1");
  a.wire->dial(b.at);
  n.run_for(2s);
  EXPECT_EQ(b.told, strings{});
  n.resume(b.id);
  EXPECT_EQ(b.told, (strings{"1", "timer"}));
}

TEST_F(loopback_faults, a_dial_to_a_process_that_stands_still_has_no_answer) {
  n.pause(b.id);
  a.wire->dial(b.at);
  n.run_for(6s);
  EXPECT_EQ(a.told, strings{"refused " + std::to_string(static_cast<int>(dial_error::reason::no_answer))});
  n.resume(b.id);
  n.run_for(1s);
  EXPECT_EQ(b.told, strings{}) << "who gave up is not there any more";
}

TEST_F(loopback_faults, a_reset_is_told_to_both_and_loses_what_is_under_way) {
  join();
  for (int i = 0; i < 100; ++i) a.send(std::to_string(i));
  n.reset(a.id, b.id);
  n.run_for(1s);
  EXPECT_EQ(a.told, strings{"down"});
  ASSERT_FALSE(b.told.empty());
  EXPECT_EQ(b.told.back(), "down");
  EXPECT_LT(b.told.size(), 101u);
  for (std::size_t i = 0; i + 1 < b.told.size(); ++i)
    EXPECT_EQ(b.told[i], std::to_string(i)) << "none before it is lost";
}

TEST_F(loopback_faults, who_comes_again_ends_the_session_that_the_other_still_has) {
  join();
  n.cut(a.id, b.id);
  a.of->close(nullptr);
  n.run_for(1s);
  EXPECT_EQ(b.told, strings{}) << "it cannot know";
  n.mend_all();
  a.wire->dial(b.at);
  n.run_for(1s);
  EXPECT_EQ(b.told, (strings{"down", "up"}));
  EXPECT_TRUE(n.are_connected(a.id, b.id));
}

TEST_F(loopback_faults, a_slow_link_takes_its_time_and_bulk_does_not_hold_up_control) {
  join();
  n.set_link(a.id, b.id, {1ms, 1ms, 100'000, 0});
  const std::vector<std::byte> body(100'000, std::byte{7});
  bool done = false;
  a.of->send_bulk(bytes_of("head"), {body}, [&](bool ok) { done = ok; });
  a.send("quick");
  const auto since = n.now();
  ASSERT_TRUE(n.run_until([&] { return b.told.size() == 3; }, 5s));
  EXPECT_EQ(b.told, (strings{"quick", "arriving", "whole"}));
  EXPECT_LT(b.when[0] - since, 10ms);
  EXPECT_GT(b.when[2] - since, 1s);
  EXPECT_EQ(b.body, body);
  EXPECT_TRUE(done);
}

TEST_F(loopback_faults, a_transfer_that_breaks_off_is_answered_for_on_both_sides_before_the_end) {
  join();
  n.set_link(a.id, b.id, {1ms, 1ms, 100'000, 0});
  const std::vector<std::byte> body(100'000);
  a.of->send_bulk({}, {body}, [&](bool ok) { a.told.push_back(ok ? "sent" : "not sent"); });
  n.run_for(500ms);
  n.reset(a.id, b.id);
  n.run_for(1s);
  EXPECT_EQ(a.told, (strings{"not sent", "down"}));
  EXPECT_EQ(b.told, (strings{"arriving", "broken", "down"}));
}

TEST(loopback, ends_the_session_with_a_peer_for_whom_too_much_waits) {
  loopback::network n(2);
  process a(n, 1, 10'000), b(n, 2);
  a.wire->dial(b.at);
  ASSERT_TRUE(n.run_until([&] { return a.of && b.of; }, 1s));
  n.cut(a.id, b.id);
  int sent = 0;
  while (a.of->send(bytes_of(std::string(1000, 'x')))) ++sent;
  EXPECT_EQ(sent, 9);
  n.run_for(1s);
  EXPECT_EQ(a.told.back(), "down");
}

TEST(loopback, breaks_the_part_of_the_dials_that_it_is_told_to) {
  loopback::network n(3);
  process a(n, 1), b(n, 2);
  n.break_dials(0.5);
  int ups = 0;
  for (int i = 0; i < 100; ++i) {
    a.wire->dial(b.at);
    n.run_for(10ms);
    if (!a.of) continue;
    ++ups;
    a.of->close(nullptr);
    n.run_for(10ms);
  }
  EXPECT_GT(ups, 25);
  EXPECT_LT(ups, 75);
}

TEST(loopback, reorders_between_connections_and_never_within_one) {
  loopback::network n(4);
  n.set_links({1ms, 50ms, 0, 0.2});
  process a(n, 1), b(n, 2), c(n, 3);
  a.wire->dial(c.at);
  b.wire->dial(c.at);
  ASSERT_TRUE(n.run_until([&] { return a.of && b.of && c.told.size() == 2; }, 10s));
  c.told.clear();
  for (int i = 10; i < 40; ++i) {
    a.send("a" + std::to_string(i));
    b.send("b" + std::to_string(i));
    n.run_for(5ms);
  }
  n.run_for(20s);
  strings of_a, of_b, sent_in_turns;
  for (const std::string& s : c.told) (s[0] == 'a' ? of_a : of_b).push_back(s);
  for (std::size_t i = 0; i < of_a.size(); ++i) sent_in_turns.insert(sent_in_turns.end(), {of_a[i], of_b[i]});
  EXPECT_TRUE(std::is_sorted(of_a.begin(), of_a.end()));
  EXPECT_TRUE(std::is_sorted(of_b.begin(), of_b.end()));
  EXPECT_EQ(of_a.size() + of_b.size(), 60u);
  EXPECT_NE(c.told, sent_in_turns);
}

/// Returns what three processes are told while things go wrong, as a text.
std::string story(std::uint64_t seed) {
  loopback::network n(seed);
  n.set_links({1ms, 20ms, 1'000'000, 0.1});
  process a(n, 1), b(n, 2), c(n, 3);
  for (process* p : {&a, &b, &c})
    for (process* q : {&a, &b, &c}) p->wire->dial(q->at);
  for (int i = 0; i < 50; ++i) {
    if (a.of) a.of->send(bytes_of(std::to_string(i)));
    if (i == 20) n.reset(a.id, b.id);
    if (i == 25) n.cut(b.id, c.id);
    if (i == 40) n.mend_all();
    n.run_for(10ms);
  }
  n.run_for(5s);
  std::ostringstream all;
  for (process* p : {&a, &b, &c})
    for (std::size_t i = 0; i < p->told.size(); ++i) all << p->when[i].time_since_epoch().count() << p->told[i] << "\n";
  return all.str();
}

TEST(loopback, does_the_same_for_the_same_seed_and_something_else_for_another) {
  EXPECT_EQ(story(5), story(5));
  EXPECT_NE(story(5), story(6));
}

}  // namespace
