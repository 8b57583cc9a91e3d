// What this file is for: the HTTP service as its clients see it: alone and with nodes, with wrong input, at its end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <string>
#include <utility>

#include "tests/support/processes.hpp"

namespace {

using namespace std::chrono_literals;

struct answered {
  int code = 0;  ///< 0: nothing, the connection has ended
  std::string body{};
  bool operator==(const answered&) const = default;
};
std::ostream& operator<<(std::ostream& o, const answered& a) { return o << a.code << " '" << a.body << "'"; }

/// A connection of a client.
class client {
 public:
  explicit client(int port, const char* from = nullptr) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    if (from) {
      to.sin_family = AF_INET;
      ::inet_pton(AF_INET, from, &to.sin_addr);
      if (::bind(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("not bound");
    }
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("not reached");
  }
  client(client&& from) noexcept : socket_(std::exchange(from.socket_, -1)), heard_(std::move(from.heard_)) {}
  client& operator=(client&&) = delete;
  ~client() {
    if (socket_ >= 0) ::close(socket_);
  }
  void say(const std::string& text) const {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::send(socket_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }
  void ask(const std::string& target) const { say("GET " + target + " HTTP/1.1\r\nHost: here\r\n\r\n"); }
  answered hear() {
    const std::string length = "Content-Length: ";
    std::size_t head = 0;
    while ((head = heard_.find("\r\n\r\n")) == heard_.npos)
      if (!more()) return {};
    answered a{std::stoi(heard_.substr(9, 3))};
    const std::size_t at = heard_.find(length);
    const std::size_t bytes = at < head ? std::stoul(heard_.substr(at + length.size())) : 0;
    while (heard_.size() < head + 4 + bytes)
      if (!more()) return {};
    a.body = heard_.substr(head + 4, bytes);
    heard_.erase(0, head + 4 + bytes);
    return a;
  }
  answered get(const std::string& target) {
    ask(target);
    return hear();
  }
  /// The service closes the connection, and says nothing before.
  bool ends() { return !more(); }

 private:
  bool more() {
    char some[4096];
    const ssize_t n = ::recv(socket_, some, sizeof some, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) throw std::runtime_error("no answer came");
    if (n > 0) heard_.append(some, static_cast<std::size_t>(n));
    return n > 0;
  }
  int socket_;
  std::string heard_;
};

struct service {
  explicit service(const test::child_options& how = {})
      : process({TROUPE_BIN_DIR "/troupe-http_service", "127.0.0.1", "0"}, how) {}
  int port() {
    if (port_ == 0) port_ = std::stoi(process.line_after("listening "));
    return port_;
  }
  answered get(const std::string& target) { return client(port()).get(target); }

  test::child process;

 private:
  int port_ = 0;
};

test::child_options node(const std::string& join = {}) {
  return {.environment = {"TROUPE_CLUSTER=http-test", "TROUPE_LISTEN=127.0.0.1:0", "TROUPE_INSECURE_LOOPBACK=1",
                          "TROUPE_JOIN=" + join}};
}

const answered primes_below_a_million{200, "78498\n"};

TEST(http_service, answers_many_requests_over_one_connection) {
  service s;
  client c(s.port());
  EXPECT_EQ(c.get("/primes?below=1000000"), primes_below_a_million);
  EXPECT_EQ(c.get("/primes?below=1"), (answered{200, "0\n"}));
  EXPECT_EQ(c.get("/primes?below=16411"), (answered{200, "1900\n"}));  // one number of the second chunk is a prime
  EXPECT_EQ(c.get("/primes?below=16412"), (answered{200, "1901\n"}));
  c.ask("/primes?below=10");
  c.ask("/primes?below=100");
  EXPECT_EQ(c.hear(), (answered{200, "4\n"}));
  EXPECT_EQ(c.hear(), (answered{200, "25\n"}));
  EXPECT_EQ(c.get("/nodes"), (answered{200, "this one\n"}));
}

TEST(http_service, shares_its_work_with_another_one_and_does_without_it_again) {
  service first(node());
  const std::string address = first.process.line_after("node ");
  service second(node(address));
  second.port();
  const auto nodes = [&] { return first.get("/nodes").body; };
  const auto until = std::chrono::steady_clock::now() + 50s;
  while (nodes().find("tasks of this one") == std::string::npos) ASSERT_LT(std::chrono::steady_clock::now(), until);
  // Whether it is worth it to have some of the tasks run there is found out.
  while (nodes().find("ran 0 tasks") != std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << nodes();
    ASSERT_EQ(first.get("/primes?below=1000000"), primes_below_a_million);
  }
  EXPECT_EQ(second.get("/primes?below=1000000"), primes_below_a_million);
  client c(first.port());
  for (int i = 0; i < 20; ++i) c.ask("/primes?below=1000000");
  second.process.signal(SIGKILL);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(c.hear(), primes_below_a_million) << i;
  while (nodes() != "this one\n") ASSERT_LT(std::chrono::steady_clock::now(), until) << nodes();
}

TEST(http_service, answers_what_makes_no_sense_with_the_code_for_it) {
  service s;
  for (const char* target :
       {"/primes?below=", "/primes?below=ten", "/primes?below=0", "/primes?below=-1", "/primes?below=20000001",
        "/primes?below=99999999999999999999999", "/primes?below=10x", "/primes?below=10&below=20"})
    EXPECT_EQ(s.get(target), (answered{400, "a number from 1 to 20000000 is missing\n"})) << target;
  for (const char* target : {"/", "/primes", "/primes?above=10", "/nodes/", "/..", "*"})
    EXPECT_EQ(s.get(target).code, 404) << target;
  const auto answer_to = [&](const std::string& text) {
    client c(s.port());
    c.say(text);
    const int code = c.hear().code;
    EXPECT_TRUE(code == 405 || c.ends()) << text.substr(0, 40);
    return code;
  };
  EXPECT_EQ(answer_to("DELETE /nodes HTTP/1.1\r\nHost: here\r\n\r\n"), 405);
  EXPECT_EQ(answer_to("hello\r\n\r\n"), 400);
  EXPECT_EQ(answer_to(std::string(64, '\0')), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/9.9\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nContent-Length: 4000000000\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"), 400);
  EXPECT_EQ(s.get("/primes?below=1000000"), primes_below_a_million);
}

TEST(http_service, sends_away_who_is_one_too_many_and_answers_again_when_they_have_gone) {
  service s;
  std::deque<client> all;
  for (int i = 0; i < 256; ++i) all.emplace_back(s.port());
  EXPECT_EQ(all.back().get("/nodes").code, 200);
  EXPECT_TRUE(client(s.port()).ends());
  EXPECT_EQ(all.front().get("/primes?below=10"), (answered{200, "4\n"}));
  all.clear();
  const auto until = std::chrono::steady_clock::now() + 50s;
  while (s.get("/nodes").code != 200) ASSERT_LT(std::chrono::steady_clock::now(), until);
}

TEST(http_service, has_room_for_others_however_many_slow_clients_one_address_has) {
  service s;
  std::deque<client> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(s.port());
    slow.back().say("GET /nodes HTTP/1.1\r\nX: ");
  }
  for (int i = 0; i < 10; ++i) {
    client other(s.port(), "127.0.0.2");
    EXPECT_EQ(other.get("/primes?below=10"), (answered{200, "4\n"}));
    client third(s.port(), "127.0.0.3");
    EXPECT_EQ(third.get("/nodes").code, 200);
    EXPECT_EQ(other.get("/nodes").code, 200);  // it has not been sent away
  }
}

TEST(http_service, does_not_compute_for_those_who_have_left) {
  service s;
  for (int i = 0; i < 8; ++i) client(s.port()).ask("/primes?below=20000000");
  {
    client pipelines(s.port());
    for (int i = 0; i < 8; ++i) pipelines.ask("/primes?below=20000000");
  }
  EXPECT_EQ(s.get("/primes?below=1000000"), primes_below_a_million);  // with a limit of 20 s
}

TEST(http_service, refuses_requests_that_others_read_in_another_way) {
  service s;
  const auto answer_to = [&](const std::string& text) {
    client c(s.port());
    c.say(text);
    const int code = c.hear().code;
    EXPECT_TRUE(code == 200 || c.ends()) << text;
    return code;
  };
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nHost: here\r\nX: one\r\n two\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nHost: here\r\nX: one\r\n\ttwo\r\n\r\n"), 400);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(answer_to("GET /nodes HTTP/1.1\r\nHost: here\r\nX: one two\r\n\r\n"), 200);
}

TEST(http_service, without_descriptors_answers_those_who_are_there_and_others_later) {
  service s({.descriptors_max = 32});
  client first(s.port());
  EXPECT_EQ(first.get("/nodes").code, 200);
  std::deque<client> all;
  for (int i = 0; i < 40; ++i) all.emplace_back(s.port());  // the system takes them in
  EXPECT_EQ(first.get("/primes?below=1000000"), primes_below_a_million);
  client last(s.port());
  last.ask("/nodes");
  all.clear();
  EXPECT_EQ(last.hear().code, 200);
}

TEST(http_service, ends_on_either_signal_when_those_who_wait_have_their_answers) {
  for (const int signal : {SIGTERM, SIGINT}) {
    service s;
    client idle(s.port()), busy(s.port());
    EXPECT_EQ(idle.get("/nodes").code, 200);
    busy.ask("/primes?below=200000");
    EXPECT_EQ(idle.get("/nodes").code, 200);  // which has come later
    s.process.signal(signal);
    EXPECT_EQ(busy.hear(), (answered{200, "17984\n"}));
    EXPECT_EQ(s.process.wait(), test::ended_with(0)) << s.process.err();
    EXPECT_EQ(s.process.err(), "");
  }
}

TEST(http_service, says_what_is_wrong_with_its_command_line) {
  const std::string program = TROUPE_BIN_DIR "/troupe-http_service";
  const auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), program);
    const test::finished f = test::run(words);
    EXPECT_EQ(f.err.find("troupe-http_service: "), 0u) << f.err;
    return f.how.code.value_or(-1);
  };
  EXPECT_EQ(code({}), 2);
  EXPECT_EQ(code({"127.0.0.1", "http"}), 2);
  EXPECT_EQ(code({"127.0.0.1", "65536"}), 2);
  EXPECT_EQ(code({"nowhere", "80"}), 2);
  service s;
  EXPECT_EQ(code({"127.0.0.1", std::to_string(s.port())}), 1);  // is taken
}

TEST(slow_http_service, sends_away_who_says_half_of_a_request) {
  service s;
  client half(s.port()), nothing(s.port());
  half.say("GET /nodes HT");
  EXPECT_TRUE(half.ends());
  EXPECT_TRUE(nothing.ends());
  EXPECT_EQ(s.get("/nodes").code, 200);
}

}  // namespace
