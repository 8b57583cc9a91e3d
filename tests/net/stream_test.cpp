// What this file is for: streams between the two ends of a socket pair, with TLS and its keys.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/stream.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "net/tcp/tls.hpp"
#include "tcp_network.hpp"

namespace {

using namespace troupe::net;
using namespace troupe::net::tcp;
using wires::bytes;
using wires::noise;

class tls_stream : public ::testing::Test {
 protected:
  void SetUp() override { begin(stream::records_a_key, stream::records_a_key); }
  /// Connects the two; each renews its key after so many records.
  void begin(std::uint64_t renew_a_after, std::uint64_t renew_b_after) {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both), 0);
    a_ = std::make_unique<stream>(both[0], proof_.dials(), renew_a_after);
    b_ = std::make_unique<stream>(both[1], proof_.accepts(), renew_b_after);
    a_->count_in(counts_);
    outcome a = outcome::wants_read, b = outcome::wants_read;
    for (int i = 0; i < 100 && (a != outcome::moved || b != outcome::moved); ++i) {
      if (a != outcome::moved) a = a_->handshake().what;
      if (b != outcome::moved) b = b_->handshake().what;
    }
    ASSERT_EQ(a, outcome::moved);
    ASSERT_EQ(b, outcome::moved);
    EXPECT_EQ(proof_.objection(a_->tls()), "");
    EXPECT_EQ(proof_.objection(b_->tls()), "");
    a_->trust();
    b_->trust();
  }
  /// All of it, in whatever steps.
  static void pass(stream& from, stream& to, const bytes& what) {
    bytes got(what.size());
    std::size_t written = 0, read = 0;
    for (int i = 0; i < 100'000 && read < got.size(); ++i) {
      if (written < what.size()) {
        const moved m = from.write(what.data() + written, what.size() - written);
        ASSERT_TRUE(m.what == outcome::moved || m.what == outcome::wants_write) << from.failure();
        written += m.bytes;
      }
      const moved m = to.read(got.data() + read, got.size() - read);
      ASSERT_TRUE(m.what == outcome::moved || m.what == outcome::wants_read) << to.failure();
      read += m.bytes;
    }
    EXPECT_TRUE(got == what);
  }

  const tls proof_{{.secrets = {wires::secret(1)}}, "test"};
  std::shared_ptr<meter> counts_ = std::make_shared<meter>();
  std::unique_ptr<stream> a_, b_;
};

TEST_F(tls_stream, passes_bytes_and_counts_what_encryption_adds) {
  const auto before = counts_->sent.load();
  pass(*a_, *b_, noise(100'000, 1));
  EXPECT_GT(counts_->sent - before, 100'000u);
  EXPECT_LT(counts_->sent - before, 101'000u);
  pass(*b_, *a_, noise(3'000'000, 2));
}

TEST_F(tls_stream, passes_records_of_all_sizes_in_any_mixture) {
  const std::size_t sizes[] = {1, 5, 127, 4'000, 4'100, 16'384, 16'385, 100'000};
  std::mt19937 random(7);
  for (unsigned i = 0; i < 200; ++i) {
    bytes what;
    for (std::size_t k = random() % 6 + 1; k > 0; --k) {
      const bytes more = noise(sizes[random() % std::size(sizes)], i * 10 + static_cast<unsigned>(k));
      what.insert(what.end(), more.begin(), more.end());
    }
    pass(i % 3 ? *a_ : *b_, i % 3 ? *b_ : *a_, what);
  }
}

/// Returns both ends of a connection over loopback.
std::pair<int, int> connected() {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(::bind(door, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(::listen(door, 1), 0);
  EXPECT_EQ(::getsockname(door, reinterpret_cast<sockaddr*>(&at), &size), 0);
  const int a = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(a, reinterpret_cast<sockaddr*>(&at), size), 0);
  const int b = ::accept4(door, nullptr, nullptr, SOCK_NONBLOCK);
  ::close(door);
  return {a, b};
}

bool is_readable(const stream& s, int timeout_ms) {
  pollfd p{s.socket(), POLLIN, 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

constexpr int in_time_ms = 10'000;

TEST(plain_stream, becomes_readable_when_what_is_awaited_has_come_or_nothing_more_will) {
  const auto [one, other] = connected();
  auto a = std::make_unique<stream>(one, nullptr);
  stream b(other, nullptr);
  const bytes some = noise(1000, 1);
  bytes got(2000);
  ASSERT_EQ(a->write(some.data(), 600).bytes, 600u);
  ASSERT_TRUE(is_readable(b, in_time_ms));
  b.await(1000);
  EXPECT_FALSE(is_readable(b, 0)) << "there are 600";
  ASSERT_EQ(a->write(some.data() + 600, 400).bytes, 400u);
  EXPECT_TRUE(is_readable(b, in_time_ms));
  EXPECT_EQ(b.read(got.data(), got.size()).bytes, 1000u);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), got.begin()));
  ASSERT_EQ(b.read(got.data(), got.size()).what, outcome::wants_read);
  b.await(1);
  ASSERT_EQ(a->write(some.data(), 1).bytes, 1u);
  EXPECT_TRUE(is_readable(b, in_time_ms));
  EXPECT_EQ(b.read(got.data(), got.size()).bytes, 1u);
  ASSERT_EQ(b.read(got.data(), got.size()).what, outcome::wants_read);
  b.await(500);
  ASSERT_EQ(a->write(some.data(), 3).bytes, 3u);
  a.reset();
  EXPECT_TRUE(is_readable(b, in_time_ms)) << "its end is told at once";
}

/// Passes on what has come to one end through the other one, at most so many bytes.
std::size_t pass_on(int from, int to, std::size_t most) {
  bytes some(most);
  const ssize_t n = ::recv(from, some.data(), most, MSG_DONTWAIT);
  if (n <= 0) return 0;
  EXPECT_EQ(::send(to, some.data(), static_cast<std::size_t>(n), 0), n);
  return static_cast<std::size_t>(n);
}

// TLS has taken a part of a record from the socket: a wait for more than is still to come would never end.
TEST(secure_stream, becomes_readable_for_what_is_left_wherever_records_are_torn) {
  const tls proof({.secrets = {wires::secret(1)}}, "test");
  const bytes some = noise(200'000, 1);
  for (const std::size_t torn : {std::size_t{1'000}, std::size_t{9'999}, std::size_t{16'000}, std::size_t{40'000}}) {
    const auto [one, its_other] = connected();
    const auto [other, near_b] = connected();
    stream a(one, proof.dials()), b(near_b, proof.accepts());
    const auto counts = std::make_shared<meter>();
    a.count_in(counts);
    ::fcntl(one, F_SETFL, O_NONBLOCK);
    std::size_t written = 0, read = 0, passed = 0;
    outcome at_a = outcome::wants_read, at_b = outcome::wants_read;
    for (int i = 0; i < 1'000'000 && (at_a != outcome::moved || at_b != outcome::moved); ++i) {
      if (at_a != outcome::moved) at_a = a.handshake().what;
      if (at_b != outcome::moved) at_b = b.handshake().what;
      passed += pass_on(its_other, other, 10'000);
      pass_on(other, its_other, 10'000);
    }
    ASSERT_EQ(at_b, outcome::moved);
    a.trust();
    b.trust();
    bytes got(some.size());
    while (read < got.size()) {
      if (written < some.size()) written += a.write(some.data() + written, some.size() - written).bytes;
      passed += pass_on(its_other, other, torn);
      const bool all_is_there = written == some.size() && passed == counts->sent;
      if (!is_readable(b, all_is_there ? in_time_ms : 0)) {
        ASSERT_FALSE(all_is_there) << read << " of " << got.size() << ", torn at " << torn;
        continue;
      }
      moved m{outcome::moved};
      while (m.what == outcome::moved && read < got.size()) {
        m = b.read(got.data() + read, got.size() - read);
        read += m.bytes;
      }
      if (m.what != outcome::moved) b.await(got.size() - read);
    }
    EXPECT_TRUE(got == some);
    ::close(its_other);
    ::close(other);
  }
}

TEST(record_cursor, finds_the_end_of_each_record_however_the_bytes_come) {
  const std::size_t lengths[] = {0, 1, 300, 16'401};
  bytes wire;
  for (const std::size_t n : lengths) {
    for (const std::size_t b : {std::size_t{23}, std::size_t{3}, std::size_t{3}, n >> 8, n & 255})
      wire.push_back(static_cast<std::byte>(b));
    wire.insert(wire.end(), n, std::byte{23});
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{5'000}, wire.size()}) {
    record_cursor c;
    std::size_t record = 0, end = record_cursor::header;  // of the next header
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t n = std::min(step, wire.size() - at);
      c.pass(std::span(wire).subspan(at, n));
      at += n;
      std::size_t body_end = end + lengths[record];
      while (record + 1 < std::size(lengths) && at >= body_end + record_cursor::header) {
        end = body_end + record_cursor::header;
        body_end = end + lengths[++record];
      }
      if (at < end) continue;  // within the first header
      EXPECT_EQ(c.left(), at >= body_end ? 0 : body_end - at) << "at " << at << " by " << step;
    }
    EXPECT_EQ(c.left(), 0u);
    EXPECT_EQ(c.length(), 16'401u);
  }
}

TEST_F(tls_stream, renews_its_keys_while_it_is_used) {
  begin(3, 5);
  for (unsigned i = 0; i < 50; ++i) {
    pass(*a_, *b_, noise(40'000, i));
    pass(*b_, *a_, noise(70'000, i));
  }
}

TEST_F(tls_stream, says_when_the_other_side_has_ended) {
  pass(*a_, *b_, noise(10, 1));
  a_->finish();
  std::byte some[10];
  // After a read that took all there was, the next one does not ask the system again.
  outcome last = outcome::wants_read;
  for (int i = 0; i < 3 && last == outcome::wants_read; ++i) last = b_->read(some, sizeof some).what;
  EXPECT_EQ(last, outcome::ended);
  a_.reset();
  last = outcome::moved;
  for (int i = 0; i < 10 && last == outcome::moved; ++i) last = b_->write(some, sizeof some).what;
  EXPECT_NE(last, outcome::moved) << "and no signal ends the process";
}

}  // namespace
