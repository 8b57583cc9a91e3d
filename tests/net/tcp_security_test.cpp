// What this file is for: which peers are let in over TCP and which are not, and what both sides hear of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "certificates.hpp"
#include "net/tcp/hello.hpp"
#include "net/tcp/tcp.hpp"
#include "raw.hpp"
#include "tcp_network.hpp"

namespace wires {
namespace {

using kind = node::kind;

/// Makes transports as the options say.
class by_hand final : public network {
 public:
  std::unique_ptr<transport> make(transport_options o) override { return make_tcp(std::move(o)); }
  endpoint anywhere() override { return {"127.0.0.1", 0}; }
  endpoint nowhere() override { return {"127.0.0.1", 1}; }
  bool until(const std::function<bool()>& done) override { return in_time(done); }
};

class tcp_security : public ::testing::Test {
 protected:
  transport_options options(const std::string& name, credentials proof = {}) {
    transport_options o;
    o.self.id = node_id::random();
    o.self.incarnation = 1;
    o.self.name = name;
    o.self.cluster = "test";
    o.listen = {{"127.0.0.1", 0}};
    o.proof = std::move(proof);
    return o;
  }
  std::unique_ptr<node> begin(transport_options o) {
    auto n = std::make_unique<node>(network_, std::move(o));
    n->start();
    return n;
  }
  static credentials secrets(std::initializer_list<std::uint8_t> numbers) {
    credentials c;
    for (const auto n : numbers) c.secrets.push_back(secret(n));
    return c;
  }

  /// `a` dials `b` and is not let in; what `a` hears.
  std::string refusal(transport_options a, transport_options b) {
    const auto from = begin(std::move(a)), to = begin(std::move(b));
    from->wire().dial(to->address());
    EXPECT_TRUE(in_time([&] { return from->count(kind::refused) == 1 || from->count(kind::up) > 0; }));
    EXPECT_EQ(from->count(kind::up) + to->count(kind::up), 0u);
    if (from->count(kind::refused) != 1) return "";
    const auto why = from->events(kind::refused).at(0).why;
    EXPECT_EQ(code_of(why), errc::refused) << text_of(why);
    return text_of(why);
  }
  void admitted(transport_options a, transport_options b) {
    const auto from = begin(std::move(a)), to = begin(std::move(b));
    from->wire().dial(to->address());
    EXPECT_TRUE(in_time([&] { return (from->with(*to) && to->with(*from)) || from->count(kind::refused) > 0; }));
    for (const auto& e : from->events(kind::refused)) ADD_FAILURE() << text_of(e.why);
  }
  errc start_fails(transport_options o, const std::string& says) {
    node n(network_, std::move(o));
    try {
      n.start();
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
      return e.code();
    }
    ADD_FAILURE() << "it has started";
    return errc::not_supported;
  }

  by_hand network_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "it says: " << (text)

TEST_F(tcp_security, a_wrong_secret_is_refused_on_both_sides) {
  EXPECT_SAYS(refusal(options("a", secrets({1})), options("b", secrets({2}))), "same secret");
}

TEST_F(tcp_security, any_of_several_secrets_is_accepted_and_the_first_is_used) {
  admitted(options("a", secrets({1})), options("b", secrets({2, 1})));
  admitted(options("a", secrets({1, 3})), options("b", secrets({2, 1})));
  EXPECT_SAYS(refusal(options("a", secrets({3, 1})), options("b", secrets({2, 1}))), "same secret");
}

TEST_F(tcp_security, certificates_of_one_authority_are_accepted_and_of_another_not) {
  const authority ours, theirs;
  admitted(options("a", ours.issue()), options("b", ours.issue()));
  EXPECT_SAYS(refusal(options("a", theirs.issue()), options("b", ours.issue())), "not accepted");
}

TEST_F(tcp_security, a_certificate_of_another_authority_is_refused_by_who_accepts) {
  // The side that dials would let the other in.
  const authority ours, theirs("another");
  credentials stranger = theirs.issue();
  stranger.authority = ours.issue().authority;
  EXPECT_SAYS(refusal(options("a", stranger), options("b", ours.issue())), "does not know the authority");
  // An authority may call itself what it likes.
  const authority same_name;
  stranger = same_name.issue();
  stranger.authority = ours.issue().authority;
  EXPECT_SAYS(refusal(options("a", stranger), options("b", ours.issue())), "certificates of the same authority");
}

TEST_F(tcp_security, an_expired_certificate_is_refused_by_each_side) {
  const authority ours;
  EXPECT_SAYS(refusal(options("a", ours.issue({.hours_valid = -1})), options("b", ours.issue())), "has expired");
  EXPECT_SAYS(refusal(options("a", ours.issue()), options("b", ours.issue({.hours_valid = -1}))), "has expired");
}

TEST_F(tcp_security, a_certificate_has_to_name_the_cluster) {
  const authority ours;
  EXPECT_SAYS(refusal(options("a", ours.issue({.cluster = "other"})), options("b", ours.issue())), "cluster other");
  EXPECT_SAYS(refusal(options("a", ours.issue()), options("b", ours.issue({.cluster = "other"}))), "cluster other");
  EXPECT_SAYS(refusal(options("a", ours.issue({.names_it = false})), options("b", ours.issue())), "names no cluster");
}

TEST_F(tcp_security, a_secret_and_certificates_do_not_fit_together) {
  const authority ours;
  refusal(options("a", secrets({1})), options("b", ours.issue()));
  refusal(options("a", ours.issue()), options("b", secrets({1})));
}

TEST_F(tcp_security, plain_and_encrypted_do_not_fit_together) {
  auto plain = options("a");
  plain.insecure_loopback = true;
  refusal(plain, options("b", secrets({1})));
  EXPECT_SAYS(refusal(options("b", secrets({1})), plain), "TLS 1.3");
}

TEST_F(tcp_security, another_cluster_with_the_same_secret_is_refused_by_name) {
  auto other = options("b", secrets({1}));
  other.self.cluster = "elsewhere";
  EXPECT_SAYS(refusal(options("a", secrets({1})), other), "elsewhere");
}

TEST_F(tcp_security, another_version_is_told_which_one_is_spoken) {
  auto plain = options("a");
  plain.insecure_loopback = true;
  const auto a = begin(plain);
  raw_socket s;
  s.connect(a->address());
  tcp::hello h{.version = 99, .number = 1, .takes = {1, 1}};
  ASSERT_TRUE(s.say_message(tcp::encode(h)));
  const auto answer = s.hear_message();
  const auto said = tcp::decode_answer(answer);
  EXPECT_EQ(said.what, tcp::hello_result::other_version);
  EXPECT_SAYS(said.text, "version 11 of the protocol, not 99");
  EXPECT_TRUE(s.ends());
  // And the other way: the side that dials hears which version answers.
  raw_listener listens;
  a->wire().dial(listens.address());
  raw_socket answers = listens.accept();
  answers.hear_message();
  answers.say_message(tcp::encode(tcp::answer{.version = 42}));
  ASSERT_TRUE(in_time([&] { return a->count(kind::refused) == 1; }));
  EXPECT_SAYS(text_of(a->events(kind::refused).at(0).why), "version 42");
}

/// Returns what a client of OpenSSL's own gets from a server, with TLS up to that version.
std::string knock(const endpoint& at, int version_max, const char* suites = nullptr) {
  raw_socket s;
  s.connect(at);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), version_max);
  if (suites != nullptr) SSL_CTX_set_ciphersuites(context.get(), suites);
  SSL_CTX_set_cipher_list(context.get(), "ALL:aNULL:eNULL:@SECLEVEL=0");
  const std::unique_ptr<SSL, void (*)(SSL*)> tls(SSL_new(context.get()), SSL_free);
  SSL_set_fd(tls.get(), s.socket());
  if (SSL_connect(tls.get()) != 1) return "refused";
  char one;
  // With TLS 1.3 the refusal of a certificate that is missing comes after the client believes to be done.
  return SSL_read(tls.get(), &one, 1) == 1 ? "admitted" : "refused";
}

TEST_F(tcp_security, neither_older_tls_nor_anonymous_clients_are_let_in) {
  const authority ours;
  const auto by_secret = begin(options("a", secrets({1})));
  const auto by_certificate = begin(options("b", ours.issue()));
  for (const auto* n : {by_secret.get(), by_certificate.get()}) {
    EXPECT_EQ(knock(n->address(), TLS1_2_VERSION), "refused");
    EXPECT_EQ(knock(n->address(), TLS1_3_VERSION), "refused");
    EXPECT_EQ(knock(n->address(), TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384"), "refused");
    EXPECT_EQ(n->count(kind::up), 0u);
  }
}

TEST_F(tcp_security, no_ticket_is_given) {
  const authority ours;
  const auto server = begin(options("b", ours.issue()));
  const credentials mine = ours.issue();
  raw_socket s;
  s.connect(server->address());
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  ASSERT_EQ(SSL_CTX_use_certificate_file(context.get(), mine.certificate.c_str(), SSL_FILETYPE_PEM), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), mine.key.c_str(), SSL_FILETYPE_PEM), 1);
  static int tickets;
  tickets = 0;
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT);
  SSL_CTX_sess_set_new_cb(context.get(), [](SSL*, SSL_SESSION*) {
    ++tickets;
    return 0;
  });
  const std::unique_ptr<SSL, void (*)(SSL*)> tls(SSL_new(context.get()), SSL_free);
  SSL_set_fd(tls.get(), s.socket());
  ASSERT_EQ(SSL_connect(tls.get()), 1);
  EXPECT_EQ(SSL_version(tls.get()), TLS1_3_VERSION);
  // A malformed hello is answered and ends the connection: all that the server had to say has been read.
  const auto nonsense = noise(40, 1);
  const std::uint32_t size = 40;
  SSL_write(tls.get(), &size, sizeof size);
  SSL_write(tls.get(), nonsense.data(), 40);
  char some[256];
  int n, heard = 0;
  while ((n = SSL_read(tls.get(), some, sizeof some)) > 0) heard += n;
  EXPECT_GT(heard, 0);
  EXPECT_EQ(tickets, 0);
}

TEST_F(tcp_security, listening_needs_credentials) {
  EXPECT_EQ(start_fails(options("a"), "credentials"), errc::bad_argument);
  auto open = options("a");
  open.insecure_loopback = true;
  open.listen = {{"0.0.0.0", 0}};
  EXPECT_EQ(start_fails(open, "loopback"), errc::bad_argument);
  open.listen = {{"127.0.0.1", 0}};
  const auto a = begin(open);
  a->wire().dial({"192.0.2.1", 1});
  ASSERT_TRUE(in_time([&] { return a->count(kind::refused) == 1; }));
  EXPECT_EQ(code_of(a->events(kind::refused).at(0).why), errc::bad_argument);
}

TEST_F(tcp_security, credentials_that_make_no_sense_are_named_at_start) {
  const authority ours;
  const credentials good = ours.issue(), other = ours.issue();
  auto both = good;
  both.secrets = {secret(1)};
  EXPECT_EQ(start_fails(options("a", both), "not both"), errc::bad_argument);
  auto part = good;
  part.authority.clear();
  EXPECT_EQ(start_fails(options("a", part), "three files"), errc::bad_argument);
  auto swapped = good;
  swapped.key = other.key;
  EXPECT_EQ(start_fails(options("a", swapped), swapped.key), errc::bad_argument);
  auto missing = good;
  missing.key = ours.folder() + "/nobody.key";
  EXPECT_EQ(start_fails(options("a", missing), missing.key), errc::io_failed);
  auto empty = good;
  empty.certificate = ours.folder() + "/empty.pem";
  std::ofstream(empty.certificate) << "nothing\n";
  EXPECT_EQ(start_fails(options("a", empty), empty.certificate), errc::bad_argument);
  credentials zero;
  zero.secrets = {credentials::secret_bytes{}};
  EXPECT_EQ(start_fails(options("a", zero), "zeros"), errc::bad_argument);
}

TEST_F(tcp_security, a_busy_port_is_named_at_start) {
  const auto a = begin(options("a", secrets({1})));
  auto again = options("b", secrets({1}));
  again.listen = {a->address()};
  EXPECT_EQ(start_fails(again, a->address().text()), errc::io_failed);
  auto nowhere = options("c", secrets({1}));
  nowhere.listen = {{"no-such-host.invalid", 1}};
  EXPECT_EQ(start_fails(nowhere, "no-such-host.invalid"), errc::io_failed);
}

TEST_F(tcp_security, a_name_nobody_knows_is_unreachable) {
  const auto a = begin(options("a", secrets({1})));
  a->wire().dial({"no-such-host.invalid", 4711});
  ASSERT_TRUE(in_time([&] { return a->count(kind::refused) == 1; }));
  EXPECT_EQ(code_of(a->events(kind::refused).at(0).why), errc::unreachable);
  EXPECT_SAYS(text_of(a->events(kind::refused).at(0).why), "no-such-host.invalid");
}

TEST_F(tcp_security, a_node_is_called_what_its_certificate_says) {
  const authority ours;
  const auto a = begin(options("owner", ours.issue({.node = "owner"})));
  const auto b = begin(options("owner", ours.issue({.node = "worker"})));
  a->wire().dial(b->address());
  ASSERT_TRUE(in_time([&] { return a->with(*b) && b->with(*a); }));
  EXPECT_EQ(a->with(*b)->peer().name, "worker");
  EXPECT_EQ(b->with(*a)->peer().name, "owner");
}

TEST_F(tcp_security, of_two_members_with_one_name_the_second_is_refused_while_the_first_is_there) {
  const auto a = begin(options("a", secrets({1}))), first = begin(options("b", secrets({1})));
  first->wire().dial(a->address());
  ASSERT_TRUE(in_time([&] { return a->with(*first) && first->with(*a); }));
  std::atomic<bool> over{false};
  // As members do, and no faster: more would end the session by unsent_max, and fill the list of what `a` has heard.
  std::thread talk([&] {
    const auto line = first->with(*a);
    for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) line->send(as_bytes("still here"));
  });
  EXPECT_TRUE(in_time([&] { return a->count(kind::frame) > 0; }));
  const auto second = begin(options("b", secrets({1})));
  second->wire().dial(a->address());
  EXPECT_TRUE(in_time([&] { return second->count(kind::refused) == 1; }));
  EXPECT_SAYS(text_of(second->events(kind::refused).at(0).why), "another node with the name b is there");
  a->wire().dial(second->address());
  EXPECT_TRUE(in_time([&] { return a->count(kind::refused) == 1; }));
  EXPECT_SAYS(text_of(a->events(kind::refused).at(0).why), "another node with the name b is there");
  // Its own id or another one's: a later process of that id is no other thing than a second one, while the first is
  // there.
  for (const std::uint64_t incarnation : {1, 2}) {
    auto o = options("b", secrets({1}));
    o.self.id = a->with(*first)->peer().id;
    o.self.incarnation = incarnation;
    const auto thief = begin(std::move(o));
    thief->wire().dial(a->address());
    EXPECT_TRUE(in_time([&] { return thief->count(kind::refused) == 1; }));
    EXPECT_EQ(thief->count(kind::up), 0u);
  }
  EXPECT_EQ(a->count(kind::down), 0u) << "the first one has lost its session";
  over = true;
  talk.join();
}

TEST_F(tcp_security, an_id_belongs_to_who_came_with_it_as_its_certificate_says) {
  const authority ours;
  const auto a = begin(options("a", ours.issue({.node = "a"})));
  const auto first = begin(options("b", ours.issue({.node = "b"})));
  first->wire().dial(a->address());
  ASSERT_TRUE(in_time([&] { return a->with(*first) && first->with(*a); }));
  auto o = options("b", ours.issue({.node = "c"}));
  o.self.id = a->with(*first)->peer().id;
  o.self.incarnation = 2;
  const auto thief = begin(std::move(o));
  thief->wire().dial(a->address());
  EXPECT_TRUE(in_time([&] { return thief->count(kind::refused) == 1; }));
  EXPECT_SAYS(text_of(thief->events(kind::refused).at(0).why), "its id is that of node b");
  EXPECT_EQ(a->count(kind::down), 0u);
}

TEST_F(tcp_security, names_and_version_6_work_where_the_machine_has_them) {
  const auto a = begin(options("a", secrets({1})));
  auto o = options("b", secrets({1}));
  o.listen = {{"localhost", 0}};
  const auto b = begin(o);
  a->wire().dial({"localhost", b->address().port});
  ASSERT_TRUE(in_time([&] { return a->count(kind::up) + a->count(kind::refused) > 0; }));
  for (const auto& e : a->events(kind::refused)) ADD_FAILURE() << text_of(e.why);
  if (!std::filesystem::exists("/proc/net/if_inet6")) GTEST_SKIP() << "this machine has no IPv6";
  auto six = options("c", secrets({1}));
  six.listen = {{"::1", 0}};
  const auto c = begin(six);
  a->wire().dial(c->address());
  ASSERT_TRUE(in_time([&] { return a->with(*c) != nullptr || a->count(kind::refused) > 0; }));
  for (const auto& e : a->events(kind::refused)) ADD_FAILURE() << text_of(e.why);
}

}  // namespace
}  // namespace wires
