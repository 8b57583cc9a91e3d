// What this file is for: messages over real sockets of this machine, with ends that come, go and are killed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/sockets.hpp"
#include "tests/support/comes_true.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
namespace connect = troupe::connectors;
using connect::framing;
using connect::message;
using test::comes_true;

constexpr std::chrono::seconds patience{30};

// What a stream has got so far.
class inbox {
 public:
  void operator()(message m) {
    std::lock_guard hold(lock_);
    all_.push_back(std::move(m));
  }
  std::vector<message> all() const {
    std::lock_guard hold(lock_);
    return all_;
  }
  std::size_t count() const { return all().size(); }

 private:
  mutable std::mutex lock_;
  std::vector<message> all_;
};

// A plain client or server, without the library.
class plain_socket {
 public:
  explicit plain_socket(int d) : d_(d) {}
  static plain_socket to(const std::string& address) {
    if (address.starts_with("unix:")) {
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      address.copy(at.sun_path, sizeof at.sun_path - 1, 5);
      const int d = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(::connect(d, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
      return plain_socket(d);
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int d = ::socket(AF_INET, (address.starts_with("udp:") ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(d, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return plain_socket(d);
  }
  plain_socket(plain_socket&& o) noexcept : d_(std::exchange(o.d_, -1)) {}
  ~plain_socket() { close(); }
  void close() {
    if (d_ >= 0) ::close(std::exchange(d_, -1));
  }
  void say(const std::string& bytes, std::size_t at_once = 1u << 20) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::send(d_, bytes.data() + at, std::min(at_once, bytes.size() - at), MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }
  std::string hear_until(std::size_t bytes) {
    std::string all(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
      const ssize_t n = ::recv(d_, all.data() + got, bytes - got, 0);
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    all.resize(got);
    return all;
  }
  int get() const { return d_; }

 private:
  int d_;
};

class plain_server {
 public:
  explicit plain_server(int port = 0) : d_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(d_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(d_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(d_, 16), 0);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::getsockname(d_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    port_ = ntohs(at.sin_port);
  }
  plain_server(const plain_server&) = delete;
  plain_server& operator=(const plain_server&) = delete;
  ~plain_server() { ::close(d_); }
  plain_socket accept() { return plain_socket(::accept4(d_, nullptr, nullptr, SOCK_CLOEXEC)); }
  int port() const { return port_; }
  std::string address() const { return "tcp:127.0.0.1:" + std::to_string(port_); }

 private:
  const int d_;
  int port_ = 0;
};

std::string record(const std::string& bytes) {
  std::string s;
  for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>(bytes.size() >> shift);
  return s + bytes;
}

TEST(sockets, a_listener_has_the_messages_of_all_connections_each_in_its_order) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  for (const std::string& at : {std::string("tcp:127.0.0.1:0"), "unix:" + (folder.path() / "socket").string()})
    for (const framing how : {framing::lines, framing::records}) {
      const connect::listener l(at);
      inbox got;
      auto p = st::from("in", l.messages({.frames = how})) | st::sink("keep", std::ref(got));
      auto r = p.start(rt);
      constexpr int clients = 20, each = 500;
      std::vector<std::thread> all;
      for (int c = 0; c < clients; ++c)
        all.emplace_back([&, c] {
          plain_socket s = plain_socket::to(l.address());
          std::string bytes;
          for (int i = 0; i < each; ++i) {
            const std::string text = std::to_string(c) + " " + std::to_string(i) + std::string(i % 40, 'x');
            bytes += how == framing::lines ? text + "\n" : record(text);
          }
          s.say(bytes, static_cast<std::size_t>(1 + 37 * c));
        });
      for (auto& t : all) t.join();
      ASSERT_TRUE(comes_true([&] { return got.count() == clients * each; })) << got.count();
      std::map<std::uint64_t, std::pair<int, int>> next;  // of each connection: its client, what comes next
      for (const message& m : got.all()) {
        EXPECT_TRUE(m.is_whole);
        const int client = std::stoi(m.bytes), number = std::stoi(m.bytes.substr(m.bytes.find(' ')));
        const auto [of, is_new] = next.try_emplace(m.connection, client, 0);
        ASSERT_EQ(of->second.first, client);
        ASSERT_EQ(of->second.second++, number);
      }
      EXPECT_EQ(next.size(), static_cast<std::size_t>(clients));
      r.cancel();
    }
}

TEST(sockets, what_is_not_whole_is_said_to_be_so) {
  troupe::runtime rt(troupe::options{.threads = 1});
  struct {
    framing how;
    std::string bytes;
    std::vector<std::pair<std::string, bool>> wanted;
  } const cases[] = {
      {framing::lines, "one\ntw", {{"one", true}, {"tw", false}}},
      {framing::lines, "0123456789abcdef0123\nnext\n", {{"0123456789abcdef", false}, {"0123", false}, {"next", true}}},
      {framing::lines, "\n\n", {{"", true}, {"", true}}},
      {framing::records,
       record("one") + record("") + record("lost").substr(0, 6),
       {{"one", true}, {"", true}, {std::string("\0\0\0\4lo", 6), false}}},
      {framing::records, record("one") + record(std::string(17, 'x')) + record("two"), {{"one", true}, {"", false}}},
      {framing::records, record(std::string(16, 'x')), {{std::string(16, 'x'), true}}},
  };
  for (const auto& c : cases)
    for (const std::size_t at_once : {1U, 3U, 1000U}) {
      const connect::listener l("tcp:127.0.0.1:0");
      inbox got;
      auto p = st::from("in", l.messages({.frames = c.how, .message_max = 16})) | st::sink("keep", std::ref(got));
      auto r = p.start(rt);
      plain_socket s = plain_socket::to(l.address());
      s.say(c.bytes, at_once);
      s.close();
      ASSERT_TRUE(comes_true([&] { return got.count() == c.wanted.size(); }));
      const auto all = got.all();
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].bytes, c.wanted[i].first);
        EXPECT_EQ(all[i].is_whole, c.wanted[i].second);
      }
    }
}

TEST(sockets, a_client_connects_again_when_the_server_is_gone_and_comes_back) {
  troupe::runtime rt(troupe::options{.threads = 2});
  inbox got;
  int port = 0;
  std::optional<st::running> r;
  for (int round = 0; round < 3; ++round) {
    plain_server server(port);
    port = server.port();
    if (!r) {
      auto p = st::from("in", connect::connect_messages(server.address(), {.backoff = 1ms, .backoff_max = 20ms})) |
               st::sink("keep", std::ref(got));
      r.emplace(p.start(rt));
    }
    plain_socket s = server.accept();
    s.say("a" + std::to_string(round) + "\nb" + std::to_string(round) + "\nhalf");
    const std::size_t wanted = static_cast<std::size_t>(round) * 3 + 2;
    ASSERT_TRUE(comes_true([&] { return got.count() >= wanted; }));
    // Server and connection go: with it what was not ended.
  }
  ASSERT_TRUE(comes_true([&] { return got.count() == 9; }));
  const auto all = got.all();
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(all[i].is_whole, i % 3 != 2);
    EXPECT_EQ(all[i].bytes, i % 3 == 2 ? "half" : std::string(i % 3 == 0 ? "a" : "b") + std::to_string(i / 3));
  }
  EXPECT_EQ(all[8].connection - all[0].connection, 2u);
}

TEST(sockets, a_client_gives_up_where_it_was_told_how_often_to_try) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::string address;
  {
    plain_server server;
    address = server.address();
  }
  auto p = st::from("in", connect::connect_messages(address, {.backoff = 1ms, .attempts_max = 4})) |
           st::sink("none", [](const message&) {});
  auto r = p.start(rt);
  try {
    r.wait();
    ADD_FAILURE();
  } catch (const st::stage_failed& e) {
    EXPECT_NE(std::string(e.what()).find(address + "': Connection refused, 4 attempts"), std::string::npos) << e.what();
  }
  // One that may not connect again ends with the connection.
  plain_server server;
  inbox got;
  auto q = st::from("in", connect::connect_messages(server.address(), {.reconnects = false})) |
           st::sink("keep", std::ref(got));
  auto once = q.start(rt);
  {
    plain_socket s = server.accept();
    s.say("only\n");
  }
  ASSERT_TRUE(once.wait_for(patience));
  ASSERT_EQ(got.count(), 1u);
  EXPECT_EQ(got.all()[0].bytes, "only");
}

TEST(sockets, a_stream_without_room_does_not_read_so_that_who_writes_waits) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const connect::listener l("tcp:127.0.0.1:0");
  std::atomic<bool> may_go{false};
  std::atomic<int> got{0};
  auto p = st::from("in", l.messages()) | st::async({.items = 4}) | st::sink("slow", [&](const message&) {
             troupe::yield_core([&] {
               while (!may_go) std::this_thread::yield();
             });
             ++got;
           });
  auto r = p.start(rt);
  plain_socket s = plain_socket::to(l.address());
  const timeval soon{0, 200'000};
  ASSERT_EQ(::setsockopt(s.get(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
  const std::string text(9'999, 'x');
  int sent = 0;
  for (; sent < 100'000; ++sent) {
    const std::string line = text + "\n";
    if (::send(s.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) break;
  }
  EXPECT_LT(sent, 100'000);  // 1 GB: what the system's buffers hold is some MB
  EXPECT_EQ(got, 0);
  may_go = true;
  ASSERT_TRUE(comes_true([&] { return got >= sent; }));
}

TEST(sockets, datagrams_are_messages) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const connect::listener l("udp:127.0.0.1:0");
  inbox got;
  auto p = st::from("in", l.messages({.message_max = 10})) | st::sink("keep", std::ref(got));
  auto r = p.start(rt);
  plain_socket s = plain_socket::to(l.address());
  for (const char* text : {"one", "two\nlines", "0123456789a"}) {
    const std::size_t before = got.count();
    s.say(text);
    ASSERT_TRUE(comes_true([&] { return got.count() == before + 1; }));
  }
  const auto all = got.all();
  EXPECT_EQ(all[0].bytes, "one");
  EXPECT_EQ(all[1].bytes, "two\nlines");
  EXPECT_TRUE(all[1].is_whole);
  EXPECT_EQ(all[2].bytes, "0123456789");
  EXPECT_FALSE(all[2].is_whole);
}

TEST(sockets, more_connections_than_allowed_wait_until_one_has_ended) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const connect::listener l("tcp:127.0.0.1:0");
  inbox got;
  auto p = st::from("in", l.messages({.connections_max = 2})) | st::sink("keep", std::ref(got));
  auto r = p.start(rt);
  std::vector<plain_socket> all;
  for (int i = 0; i < 2; ++i) {
    all.push_back(plain_socket::to(l.address()));
    all.back().say(std::to_string(i) + "\n");
  }
  ASSERT_TRUE(comes_true([&] { return got.count() == 2; }));
  plain_socket third = plain_socket::to(l.address());
  third.say("2\n");
  all[0].say("again\n");
  ASSERT_TRUE(comes_true([&] { return got.count() == 3; }));
  EXPECT_EQ(got.all().back().bytes, "again");
  all[0].close();
  ASSERT_TRUE(comes_true([&] { return got.count() == 4; }));
  EXPECT_EQ(got.all().back().bytes, "2");
}

TEST(sockets, a_writer_sends_what_a_source_gets_also_when_the_server_was_killed_between) {
  troupe::runtime rt(troupe::options{.threads = 3});
  const test::scratch_folder folder;
  const std::string at = "unix:" + (folder.path() / "socket").string();
  for (const framing how : {framing::lines, framing::records}) {
    inbox got;
    auto out = st::from<std::string>("texts") |
               st::sink("out", connect::socket_writer(at, {.frames = how, .backoff = 1ms, .backoff_max = 20ms}));
    auto sending = out.start(rt);
    auto in = sending.input<std::string>("texts");
    for (int round = 0; round < 3; ++round) {
      const connect::listener l(at);
      auto p = st::from("in", l.messages({.frames = how})) | st::sink("keep", std::ref(got));
      auto r = p.start(rt);
      const std::size_t before = got.count();
      for (int i = 0; i < 100; ++i) ASSERT_EQ(in.push(std::to_string(round * 100 + i)), st::pushed::ok);
      ASSERT_TRUE(comes_true([&] { return got.count() >= before + 100; })) << got.count() - before;
    }
    std::vector<int> numbers;
    for (const message& m : got.all()) numbers.push_back(std::stoi(m.bytes));
    std::vector<int> wanted(300);
    for (int i = 0; i < 300; ++i) wanted[static_cast<std::size_t>(i)] = i;
    EXPECT_EQ(numbers, wanted);
    EXPECT_EQ(sending.drain(patience).state, st::state::ended);
  }
}

TEST(sockets, a_writer_gives_up_where_it_was_told_to_and_the_stage_retries) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::string address;
  {
    plain_server server;
    address = server.address();
  }
  auto p =
      st::from("texts", std::vector<std::string>{"x"}) |
      st::sink("out", connect::socket_writer(address, {.backoff = 1ms, .attempts_max = 2}), {.fail = st::retry(1)});
  auto r = p.start(rt);
  EXPECT_THROW(r.wait(), st::stage_failed);
  EXPECT_EQ(r.report().stages.back().retries, 1u);
}

TEST(sockets, a_process_that_is_killed_in_the_middle_of_a_record_loses_that_record_alone) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const connect::listener l("tcp:127.0.0.1:0");
  inbox got;
  auto p = st::from("in", l.messages({.frames = framing::records})) | st::sink("keep", std::ref(got));
  auto r = p.start(rt);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      plain_socket s = plain_socket::to(l.address());
      s.say(record("whole") + record("not whole").substr(0, 8));
      ::pause();
      ::_exit(0);
    }
    const auto at = static_cast<std::size_t>(round) * 2;
    EXPECT_TRUE(comes_true([&] { return got.count() == at + 1; }));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(comes_true([&] { return got.count() == at + 2; }));
    EXPECT_TRUE(got.all()[at].is_whole);
    EXPECT_FALSE(got.all()[at + 1].is_whole);
  }
}

TEST(sockets, addresses_and_options_that_make_no_sense_are_refused) {
  for (const char* text : {"", "tcp:", "tcp:x", "tcp::1", "tcp:host:", "tcp:host:99999", "tcp:host:12x", "http://x:1",
                           "unix:", "udp:host"})
    EXPECT_THROW(connect::listener{text}, troupe::error) << text;
  EXPECT_THROW(connect::listener("unix:/" + std::string(200, 'x')), troupe::error);
  EXPECT_THROW(connect::listener("unix:/no/such/folder/x"), troupe::error);
  EXPECT_THROW(connect::listener("tcp:no-such-host.invalid:1"), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::connect_messages("udp:127.0.0.1:1")), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::connect_messages("tcp:127.0.0.1:1", {.message_max = 0})), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::connect_messages("tcp:127.0.0.1:1", {.backoff = 0ms})), troupe::error);
  EXPECT_THROW(connect::socket_writer("tcp:127.0.0.1:1", {.attempts_max = -1}), troupe::error);
  const connect::listener l("tcp:127.0.0.1:0");
  EXPECT_THROW(connect::listener{l.address()}, troupe::error);  // in use
  const test::scratch_folder folder;
  const std::string path = folder.path() / "socket";
  {
    const connect::listener u("unix:" + path);
    EXPECT_THROW(connect::listener("unix:" + path), troupe::error);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(sockets, a_writer_that_waits_ends_with_its_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::string nobody;
  {
    plain_server server;
    nobody = server.address();
  }
  plain_server reads_nothing;
  for (const std::string& to : {nobody, reads_nothing.address()}) {
    const auto begin = std::chrono::steady_clock::now();
    {
      auto p = st::from("texts", std::vector<std::string>(1000, std::string(100'000, 'x'))) |
               st::sink("out", connect::socket_writer(to, {.backoff = 10s}));
      auto r = p.start(rt);
      EXPECT_FALSE(r.wait_for(200ms));
      r.cancel();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  }
}

TEST(sockets, a_file_that_is_no_socket_is_left_alone) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "notes";
  std::ofstream(path) << "precious";
  EXPECT_THROW(connect::listener("unix:" + path), troupe::error);
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "precious");
}

TEST(sockets, connections_that_end_well_are_no_failed_attempts) {
  troupe::runtime rt(troupe::options{.threads = 1});
  plain_server server;
  inbox got;
  auto p = st::from("in", connect::connect_messages(server.address(), {.backoff = 1ms, .attempts_max = 1})) |
           st::sink("keep", std::ref(got));
  auto r = p.start(rt);
  for (std::size_t round = 0; round < 3; ++round) {
    plain_socket s = server.accept();
    s.say("hello\n");
    ASSERT_TRUE(comes_true([&] { return got.count() == round + 1; }));
  }
}

TEST(sockets, a_listener_goes_on_when_there_are_no_descriptors_left) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const connect::listener l("tcp:127.0.0.1:0");
  inbox got;
  auto p = st::from("in", l.messages({.backoff = 1ms})) | st::sink("keep", std::ref(got));
  auto r = p.start(rt);
  plain_socket first = plain_socket::to(l.address());
  first.say("before\n");
  ASSERT_TRUE(comes_true([&] { return got.count() == 1; }));
  // Both ends of each connection are of this process, so it runs out of descriptors while it accepts.
  rlimit was{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &was), 0);
  const int next = ::dup(0);
  ::close(next);
  rlimit few = was;
  few.rlim_cur = static_cast<rlim_t>(next) + 11;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<plain_socket> all;
  for (int i = 0; i < 5; ++i) {
    const int d = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (d < 0) break;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(l.address().substr(l.address().rfind(':') + 1))));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(d, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    all.emplace_back(d);
    all.back().say("many\n");
  }
  first.say("still\n");
  EXPECT_TRUE(comes_true([&] {
    const auto m = got.all();
    return std::any_of(m.begin(), m.end(), [](const message& x) { return x.bytes == "still"; });
  }));
  all.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &was), 0);
  plain_socket last = plain_socket::to(l.address());
  last.say("after\n");
  EXPECT_TRUE(comes_true([&] {
    const auto m = got.all();
    return std::any_of(m.begin(), m.end(), [](const message& x) { return x.bytes == "after"; });
  }));
  EXPECT_EQ(r.report().state, st::state::runs);
}

}  // namespace
