// What this file is for: strangers at the door: noise, bombs, floods, replays. Nothing breaks, members still come in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "net/tcp/address.hpp"
#include "net/tcp/hello.hpp"
#include "net/tcp/tcp.hpp"
#include "net/tcp/tls_guard.hpp"
#include "raw.hpp"
#include "tcp_network.hpp"

namespace wires {
namespace {

using told = node::kind;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool counts_memory = false;  // the sanitizers have an allocator of their own
#else
constexpr bool counts_memory = true;
#endif

std::size_t memory_in_use() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

class at_the_door : public ::testing::Test {
 protected:
  explicit at_the_door(proof p) : proof_(p) {}

  transport_options options(const std::string& name) const {
    transport_options o;
    o.self.id = node_id::random();
    o.self.incarnation = 1;
    o.self.name = name;
    o.self.cluster = "test";
    o.listen = {{"127.0.0.1", 0}};
    return o;
  }
  std::unique_ptr<node> begin(transport_options o) {
    auto n = std::make_unique<node>(*network_, std::move(o));
    n->start();
    return n;
  }
  /// A member still comes in, and what it says arrives.
  void a_member_comes_in(node& at) {
    const auto member = begin(options("member"));
    member->wire().dial(at.address());
    ASSERT_TRUE(in_time([&] { return member->with(at) && at.with(*member); }));
    const std::size_t before = at.count(told::frame);
    ASSERT_TRUE(member->with(at)->send(as_bytes("still works")));
    ASSERT_TRUE(in_time([&] { return at.count(told::frame) == before + 1; }));
  }
  bool plain() const { return proof_ == proof::none; }
  /// Returns what a member of a plain network says first.
  tcp::hello hello(std::uint8_t who, tcp::channel which, std::uint64_t number) const {
    tcp::hello h{.kind = which, .number = number, .takes = {16u << 20, 1u << 20}};
    h.who.id.bytes[0] = who;
    h.who.cluster = "test";
    return h;
  }
  /// A session with a plain node, by hand: both connections.
  std::pair<raw_socket, raw_socket> session_by_hand(node& with, std::uint8_t who) {
    raw_socket control, bulk;
    control.connect(with.address()).say_message(tcp::encode(hello(who, tcp::channel::control, 5)));
    EXPECT_EQ(tcp::decode_answer(control.hear_message()).what, tcp::hello_result::welcome);
    bulk.connect(with.address()).say_message(tcp::encode(hello(who, tcp::channel::bulk, 5)));
    EXPECT_EQ(tcp::decode_answer(bulk.hear_message()).what, tcp::hello_result::welcome);
    EXPECT_TRUE(in_time([&] { return with.count(told::up) == 1; }));
    return {std::move(control), std::move(bulk)};
  }

  const proof proof_;
  std::unique_ptr<network> network_ = tcp_network(proof_);
};

class strangers : public at_the_door, public ::testing::WithParamInterface<proof> {
 protected:
  strangers() : at_the_door(GetParam()) {}
};
/// Where nothing can be said without a proof.
class strangers_to_encryption : public strangers {};
/// Where members can be played by hand.
class strangers_by_hand : public at_the_door {
 protected:
  strangers_by_hand() : at_the_door(proof::none) {}
};

TEST_P(strangers, who_make_noise_are_sent_away) {
  const auto a = begin(options("a"));
  for (unsigned seed = 0; seed < 200; ++seed) {
    raw_socket s;
    s.connect(a->address());
    const bytes b = noise(seed * 7 + 5, seed);
    s.say(b);
    if (seed % 2 == 0) continue;
    ::shutdown(s.socket(), SHUT_WR);
    EXPECT_TRUE(s.ends()) << seed;
  }
  EXPECT_EQ(a->count(told::up), 0u);
  a_member_comes_in(*a);
}

TEST_P(strangers, who_announce_much_are_sent_away_before_it_costs) {
  const auto a = begin(options("a"));
  const std::size_t before = memory_in_use();
  std::deque<raw_socket> all;
  for (int i = 0; i < 60; ++i) {
    raw_socket& s = all.emplace_back();
    s.connect(a->address());
    if (plain()) {
      const std::uint32_t size = i % 2 == 0 ? 0xffffffff : tcp::hello_max + 1;
      s.say(std::as_bytes(std::span(&size, 1)));
    } else {
      // A record that begins a hello of 128 KiB.
      const unsigned char bomb[] = {22, 3, 1, 0, 100, 1, 1, 255, 255, 3, 3};
      s.say(std::as_bytes(std::span(bomb)));
    }
  }
  for (auto& s : all) EXPECT_TRUE(s.ends());
  if (counts_memory) {
    EXPECT_LT(memory_in_use(), before + (1u << 20));
  }
  a_member_comes_in(*a);
}

TEST_P(strangers, who_are_idle_cost_little_and_leave_at_the_deadline) {
  auto o = options("a");
  o.handshake = std::chrono::milliseconds(1500);
  o.waiting_max = 100;
  o.waiting_each_max = 1000;
  const auto a = begin(o);
  const std::size_t before = memory_in_use();
  std::deque<raw_socket> all;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    raw_socket& s = all.emplace_back();
    s.connect(a->address());
    // The beginning of a hello: with TLS, and without.
    const unsigned char secured[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, open[] = {0, 1, 0, 0, 7, 7, 7, 7, 7, 7, 7};
    s.say(std::as_bytes(std::span(plain() ? open : secured).first(i % 2 == 0 ? 3 : 11)));
  }
  // Another stranger is one too many, so the oldest goes, which also says that all before it have been seen.
  raw_socket late;
  late.connect(a->address());
  EXPECT_TRUE(all.front().ends(std::chrono::milliseconds(1000)));
  all.pop_front();
  if (counts_memory) {
    EXPECT_LT(memory_in_use() - before, 100u * (64u << 10));
  }
  for (auto& s : all) EXPECT_TRUE(s.ends());
  EXPECT_TRUE(late.ends());
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, o.handshake - std::chrono::milliseconds(50));
  EXPECT_LT(took, std::chrono::seconds(30));
  a_member_comes_in(*a);
}

TEST_P(strangers, in_a_flood_from_one_address_leave_room_for_members_of_another) {
  auto o = options("a");
  o.waiting_max = 64;
  o.waiting_each_max = 16;
  o.handshake = std::chrono::seconds(60);
  const auto a = begin(o);
  std::deque<raw_socket> all;
  for (int i = 0; i < 400; ++i) all.emplace_back("127.0.0.2").connect(a->address());
  a_member_comes_in(*a);
  int waiting = 0;
  for (auto& s : all) waiting += s.ends(std::chrono::milliseconds(0)) ? 0 : 1;
  EXPECT_EQ(waiting, 16);
  // Strangers that go make room.
  all.clear();
  ASSERT_TRUE(in_time([&] {
    raw_socket again("127.0.0.2");
    again.connect(a->address());
    return !again.ends(std::chrono::milliseconds(20));
  }));
}

TEST_P(strangers, who_hold_all_places_give_them_up_to_who_comes) {
  auto o = options("a");
  o.waiting_max = 16;
  o.waiting_each_max = 4;
  o.handshake = std::chrono::seconds(60);
  const auto a = begin(o);
  std::deque<raw_socket> all;
  for (int i = 0; i < 16; ++i) all.emplace_back("127.0.0." + std::to_string(2 + i / 4)).connect(a->address());
  a_member_comes_in(*a);
  EXPECT_TRUE(all.front().ends(std::chrono::milliseconds(0))) << "the oldest has stayed";
  EXPECT_FALSE(all.back().ends(std::chrono::milliseconds(0))) << "the newest has gone";
}

TEST_P(strangers_to_encryption, who_repeat_what_a_member_said_are_no_members) {
  const auto a = begin(options("a"));
  proxy between(a->address());
  {
    const auto member = begin(options("member"));
    member->wire().dial(between.address());
    ASSERT_TRUE(in_time([&] { return a->count(told::up) == 1 && member->count(told::up) == 1; }));
    ASSERT_TRUE(member->with(*a)->send(as_bytes("said once")));
    ASSERT_TRUE(in_time([&] { return a->count(told::frame) == 1; }));
  }
  ASSERT_TRUE(in_time([&] { return a->count(told::down) == 1; }));
  const auto said = between.recorded();
  ASSERT_EQ(said.size(), 2u);
  for (int round = 0; round < 3; ++round) {
    for (const auto& connection : said) {
      ASSERT_GT(connection.size(), 100u);
      raw_socket s;
      s.connect(a->address());
      s.say(connection);
      EXPECT_TRUE(s.ends());
    }
  }
  EXPECT_EQ(a->count(told::up), 1u);
  EXPECT_EQ(a->count(told::frame), 1u);
  a_member_comes_in(*a);
}

TEST_P(strangers_to_encryption, who_change_bytes_on_the_way_end_the_session) {
  const auto a = begin(options("a"));
  const auto member = begin(options("member"));
  proxy between(a->address());
  member->wire().dial(between.address());
  ASSERT_TRUE(in_time([&] { return a->count(told::up) == 1 && member->count(told::up) == 1; }));
  between.spoil();
  member->with(*a)->send(as_bytes("spoiled"));
  ASSERT_TRUE(in_time([&] { return a->count(told::down) == 1; }));
  EXPECT_EQ(a->count(told::frame), 0u);
}

TEST_P(strangers, who_reset_connections_end_sessions_at_once) {
  const auto a = begin(options("a")), member = begin(options("member"));
  proxy between(a->address());
  member->wire().dial(between.address());
  ASSERT_TRUE(in_time([&] { return a->count(told::up) == 1 && member->count(told::up) == 1; }));
  between.reset();
  ASSERT_TRUE(in_time([&] { return a->count(told::down) == 1 && member->count(told::down) == 1; }));
  EXPECT_EQ(code_of(a->events(told::down).at(0).why), errc::node_lost);
  a_member_comes_in(*a);
}

TEST_P(strangers, who_answer_dials_are_refused) {
  auto o = options("a");
  o.handshake = std::chrono::milliseconds(300);
  const auto a = begin(o);
  // Peers of four kinds: one says nothing, one makes noise, one leaves, one announces too much.
  for (int what = 0; what < 4; ++what) {
    raw_listener listens;
    a->wire().dial(listens.address());
    {
      raw_socket s = listens.accept();
      const std::uint32_t size = 0x7fffffff;
      if (what == 1) s.say(noise(300, 7));
      if (what == 3) s.say(std::as_bytes(std::span(&size, 1)));
      if (what != 2) {
        ASSERT_TRUE(in_time([&] { return a->count(told::refused) == static_cast<std::size_t>(what + 1); }));
      }
    }
    ASSERT_TRUE(in_time([&] { return a->count(told::refused) == static_cast<std::size_t>(what + 1); }));
  }
  EXPECT_EQ(code_of(a->events(told::refused).at(0).why), errc::unreachable);
  EXPECT_EQ(a->count(told::up), 0u);
}

TEST_P(strangers, who_take_all_descriptors_do_not_keep_a_core_busy) {
  const auto a = begin(options("a"));
  std::deque<raw_socket> all;
  for (int i = 0; i < 8; ++i) all.emplace_back();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  {
    const raw_socket probe;
    few.rlim_cur = static_cast<rlim_t>(probe.socket()) + 2;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto processor_time = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const double used = processor_time();
  const auto began = std::chrono::steady_clock::now();
  for (auto& s : all) s.connect(a->address());
  // Strangers that there is no descriptor for are sent away, one after another.
  EXPECT_TRUE(all.back().ends());
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_GT(took, 0.2) << "it has tried again without a pause";
  EXPECT_LT(processor_time() - used, 0.5 * took + 0.1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  all.clear();
  a_member_comes_in(*a);
}

TEST_F(strangers_by_hand, with_half_a_session_leave_at_the_deadline) {
  auto o = options("a");
  o.handshake = std::chrono::milliseconds(300);
  const auto a = begin(o);
  raw_socket control, bulk;
  control.connect(a->address()).say_message(tcp::encode(hello(9, tcp::channel::control, 1)));
  EXPECT_EQ(tcp::decode_answer(control.hear_message()).what, tcp::hello_result::welcome);
  EXPECT_TRUE(control.ends());
  bulk.connect(a->address()).say_message(tcp::encode(hello(9, tcp::channel::bulk, 1)));
  EXPECT_EQ(tcp::decode_answer(bulk.hear_message()).what, tcp::hello_result::unknown);
  EXPECT_EQ(a->count(told::up), 0u);
}

TEST_F(strangers_by_hand, whose_hello_is_cut_anywhere_are_sent_away) {
  const auto a = begin(options("a"));
  const auto whole = tcp::encode(hello(9, tcp::channel::control, 1));
  for (std::size_t n = 1; n < whole.size(); ++n) {
    raw_socket s;
    s.connect(a->address()).say_message(std::span(whole).first(n));
    EXPECT_EQ(tcp::decode_answer(s.hear_message()).what, tcp::hello_result::no_member) << n;
    EXPECT_TRUE(s.ends());
  }
  EXPECT_EQ(a->count(told::up), 0u);
}

TEST_F(strangers_by_hand, as_members_with_an_impossible_frame_lose_their_session) {
  const auto a = begin(options("a"));
  auto [control, bulk] = session_by_hand(*a, 9);
  const std::size_t before = memory_in_use();
  const std::uint32_t allowed = 16u << 20, bomb = 0xffffffff;
  // A frame that is announced and does not come costs nothing.
  control.say_message(as_bytes("first"));
  control.say(std::as_bytes(std::span(&allowed, 1)));
  control.say(noise(100, 1));
  ASSERT_TRUE(in_time([&] { return a->count(told::frame) == 1; }));
  if (counts_memory) {
    EXPECT_LT(memory_in_use(), before + (1u << 20));
  }
  control.say(noise((16u << 20) - 100, 2));
  control.say(std::as_bytes(std::span(&bomb, 1)));
  ASSERT_TRUE(in_time([&] { return a->count(told::down) == 1; }));
  EXPECT_EQ(a->count(told::frame), 2u);
  EXPECT_EQ(code_of(a->events(told::down).at(0).why), errc::protocol_error);
  EXPECT_TRUE(control.ends());
  EXPECT_TRUE(bulk.ends());
}

TEST_F(strangers_by_hand, as_members_with_a_malformed_transfer_lose_their_session) {
  const auto a = begin(options("a"));
  auto [control, bulk] = session_by_hand(*a, 9);
  bulk.say(noise(1000, 3));
  ASSERT_TRUE(in_time([&] { return a->count(told::down) == 1; }));
  EXPECT_EQ(code_of(a->events(told::down).at(0).why), errc::protocol_error);
  EXPECT_TRUE(control.ends());
}

std::string name_of(const ::testing::TestParamInfo<proof>& p) {
  return p.param == proof::none ? "plain" : p.param == proof::secret ? "secret" : "certificates";
}
INSTANTIATE_TEST_SUITE_P(wires, strangers, ::testing::Values(proof::none, proof::secret, proof::certificates), name_of);
INSTANTIATE_TEST_SUITE_P(wires, strangers_to_encryption, ::testing::Values(proof::secret, proof::certificates),
                         name_of);

TEST(neighbourhood, is_the_machine_in_ipv4_and_the_network_in_ipv6) {
  const auto of = [](const char* host) { return tcp::look_up({host, 1}).at(0).neighbourhood(); };
  EXPECT_EQ(of("2001:db8::1"), of("2001:db8:0:0:ffff:1:2:3"));
  EXPECT_NE(of("2001:db8::1"), of("2001:db8:0:1::1"));
  EXPECT_EQ(of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(of("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_NE(of("10.0.0.1"), of("10.0.0.2"));
}

TEST(tls_guard, lets_through_what_is_short_and_stops_what_announces_much) {
  using tcp::tls_guard;
  const auto record = [](std::uint8_t what, const bytes& content) {
    bytes b(5 + content.size());
    const unsigned char head[] = {what, 3, 1, static_cast<unsigned char>(content.size() >> 8),
                                  static_cast<unsigned char>(content.size())};
    std::memcpy(b.data(), head, sizeof head);
    std::copy(content.begin(), content.end(), b.begin() + sizeof head);
    return b;
  };
  const auto message = [](std::size_t announced, std::size_t there) {
    bytes m{std::byte{1}, static_cast<std::byte>(announced >> 16), static_cast<std::byte>(announced >> 8),
            static_cast<std::byte>(announced)};
    m.resize(4 + there);
    return m;
  };
  EXPECT_TRUE(tls_guard().pass(record(22, message(500, 500))));
  EXPECT_FALSE(tls_guard().pass(record(22, message(tls_guard::message_max + 1, 0))));
  // In small records, byte by byte, after another message, and after a record of another kind.
  tls_guard split;
  bool passed = true;
  for (const std::byte b : message(tls_guard::message_max + 1, 0)) passed = passed && split.pass(record(22, {b}));
  EXPECT_FALSE(passed);
  tls_guard second;
  EXPECT_TRUE(second.pass(record(22, message(40, 40))));
  EXPECT_TRUE(second.pass(record(20, {std::byte{1}})));
  EXPECT_TRUE(second.pass(record(23, noise(300, 1))));
  EXPECT_TRUE(second.pass(record(22, message(tls_guard::message_max, 100))));
  tls_guard third;
  EXPECT_TRUE(third.pass(record(22, message(40, 40))));
  EXPECT_FALSE(third.pass(record(22, message(1u << 20, 100))));
  // And what is simply too much.
  tls_guard much;
  passed = true;
  for (int i = 0; i < 10 && passed; ++i) passed = much.pass(record(23, noise(10'000, 1)));
  EXPECT_FALSE(passed);
}

}  // namespace
}  // namespace wires
