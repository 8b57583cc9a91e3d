// What this file is for: announcements as bytes: read back, or refused for what is wrong with them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <openssl/hmac.h>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "net/codec.hpp"
#include "net/discovery/datagram.hpp"

namespace {

using namespace troupe::net;

credentials::secret_bytes secret_of(std::uint8_t b) {
  credentials::secret_bytes s{};
  s.fill(b);
  return s;
}

announcement example() {
  announcement a;
  a.node.bytes.fill(0xa5);
  a.incarnation = 0x1122334455667788;
  a.counter = 42;
  a.listens_on = {{"10.0.0.1", 4711}, {"::1", 1}, {"node7.cluster", 65535}, {"", 80}};
  return a;
}

void expect_same(const announcement& a, const announcement& b) {
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.counter, b.counter);
  EXPECT_EQ(a.listens_on, b.listens_on);
}

TEST(datagrams, are_read_as_they_were_written) {
  datagram_signer here("c", {secret_of(1)}), there("c", {secret_of(1)});
  const auto bytes = here.write(example());
  EXPECT_LE(bytes.size(), datagram_max);
  announcement a;
  ASSERT_EQ(there.read(bytes, a), datagram_result::good);
  expect_same(a, example());
  ASSERT_EQ(here.read(bytes, a), datagram_result::good);  // signing leaves nothing behind
}

// Computed by another program from the description in datagram.hpp and RFC 2104 and 5869.
TEST(datagrams, look_as_they_are_described) {
  const std::vector<unsigned> known = {
      0x54, 0x52, 0x50, 0x4d, 0x01, 0x2e, 0x7d, 0x2c, 0x03, 0xa9, 0x50, 0x7a, 0xe2, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
      0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x31, 0x30, 0x2e, 0x30, 0x2e, 0x30, 0x2e, 0x31, 0x67, 0x12,
      0x8c, 0xb3, 0xbf, 0x9e, 0x25, 0x72, 0x60, 0x75, 0x1e, 0xdc, 0xc1, 0xc3, 0x4a, 0x18, 0x61, 0x7c};
  announcement a;
  for (std::uint8_t i = 0; i < 16; ++i) a.node.bytes[i] = i;
  a.incarnation = a.counter = 1;
  a.listens_on = {{"10.0.0.1", 4711}};
  const auto bytes = datagram_signer("c", {{1, 2, 3}}).write(a);
  ASSERT_EQ(bytes.size(), known.size());
  for (std::size_t i = 0; i < known.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), known[i]) << i;
}

TEST(datagrams, are_refused_when_any_bit_differs) {
  datagram_signer signer("c", {secret_of(1)});
  const auto good = signer.write(example());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    announcement a;
    const datagram_result v = signer.read(bytes, a);
    const datagram_result expected = bit < 32    ? datagram_result::malformed
                                     : bit < 40  ? datagram_result::other_version
                                     : bit < 104 ? datagram_result::other_cluster
                                                 : datagram_result::forged;
    EXPECT_EQ(v, expected) << bit;
  }
}

TEST(datagrams, are_refused_when_they_are_cut_or_longer) {
  datagram_signer signer("c", {secret_of(1)});
  const auto good = signer.write(example());
  announcement a;
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_NE(signer.read(std::span(good).first(n), a), datagram_result::good) << n;
  auto longer = good;
  while (longer.size() < datagram_max) {
    longer.push_back({});
    EXPECT_EQ(signer.read(longer, a), datagram_result::forged);
  }
  longer.push_back({});
  EXPECT_EQ(signer.read(longer, a), datagram_result::malformed);
  longer.resize(65507);
  EXPECT_EQ(signer.read(longer, a), datagram_result::malformed);
}

TEST(datagrams, of_other_clusters_and_keys_are_told_apart) {
  datagram_signer signer("c", {secret_of(1)});
  announcement a;
  EXPECT_EQ(signer.read(datagram_signer("d", {secret_of(1)}).write(example()), a), datagram_result::other_cluster);
  EXPECT_EQ(signer.read(datagram_signer("c", {secret_of(2)}).write(example()), a), datagram_result::forged);
}

TEST(datagrams, are_accepted_with_the_old_and_the_new_secret_while_it_is_replaced) {
  datagram_signer old_one("c", {secret_of(1)}), both("c", {secret_of(2), secret_of(1)}), new_one("c", {secret_of(2)});
  announcement a;
  EXPECT_EQ(both.read(old_one.write(example()), a), datagram_result::good);
  EXPECT_EQ(both.read(new_one.write(example()), a), datagram_result::good);
  EXPECT_EQ(new_one.read(both.write(example()), a), datagram_result::good);
  EXPECT_EQ(old_one.read(both.write(example()), a), datagram_result::forged);
}

TEST(datagrams, are_not_signed_with_the_secret_itself) {
  // A stranger that learns a datagram and its signature learns nothing about a handshake with the same secret.
  datagram_signer signer("c", {secret_of(1)});
  const auto bytes = signer.write(example());
  std::uint8_t plain[32];
  unsigned size = 0;
  const auto key = secret_of(1);
  ASSERT_NE(HMAC(EVP_sha256(), key.data(), 32, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                 bytes.size() - mac_bytes, plain, &size),
            nullptr);
  EXPECT_NE(std::memcmp(plain, bytes.data() + bytes.size() - mac_bytes, mac_bytes), 0);
}

TEST(datagrams, leave_out_addresses_that_find_no_room) {
  announcement many = example();
  many.listens_on.clear();
  for (int i = 0; i < 20; ++i) many.listens_on.push_back({"10.0.0." + std::to_string(i), 4711});
  datagram_signer signer("c", {secret_of(1)});
  announcement a;
  ASSERT_EQ(signer.read(signer.write(many), a), datagram_result::good);
  EXPECT_EQ(a.listens_on, std::vector(many.listens_on.begin(), many.listens_on.begin() + announced_max));

  many.listens_on = {{std::string(250, 'a'), 1},
                     {std::string(250, 'b'), 1},
                     {std::string(150, 'c'), 1},
                     {std::string(256, 'd'), 1},
                     {"e", 0},
                     {"f g", 1}};
  const auto bytes = signer.write(many);
  EXPECT_LE(bytes.size(), datagram_max);
  ASSERT_EQ(signer.read(bytes, a), datagram_result::good);
  EXPECT_EQ(a.listens_on, (std::vector<endpoint>{many.listens_on[0], many.listens_on[2]}));

  // To the last byte.
  many.listens_on = {{std::string(255, 'a'), 1}, {std::string(100, 'b'), 1}, {std::string(85, 'c'), 1}};
  const auto full = signer.write(many);
  EXPECT_EQ(full.size(), datagram_max);
  ASSERT_EQ(signer.read(full, a), datagram_result::good);
  EXPECT_EQ(a.listens_on, many.listens_on);
}

// A member with a broken program signs whatever it has.
TEST(datagrams, of_a_member_are_read_with_every_length_checked) {
  const cluster_hash c = hash_of_cluster("c");
  announcement empty = example();
  empty.listens_on.clear();
  const auto head = write_announcement(empty, c);
  const auto with = [&](auto&& add) {
    writer w;
    w.raw(head.data(), head.size() - 1);
    add(w);
    announcement a;
    return read_announcement(w.view(), c, a);
  };
  EXPECT_EQ(with([](writer& w) { w.varint(0); }), datagram_result::good);
  EXPECT_EQ(with([](writer&) {}), datagram_result::malformed);
  EXPECT_EQ(with([](writer& w) { w.varint(1); }), datagram_result::malformed);
  EXPECT_EQ(with([](writer& w) { w.varint(announced_max + 1); }), datagram_result::malformed);
  EXPECT_EQ(with([](writer& w) { w.varint(~std::uint64_t{}); }), datagram_result::malformed);
  const auto with_host = [&](const std::string& host, std::uint16_t port) {
    return with([&](writer& w) {
      w.varint(1);
      w.text(host);
      w.fixed(port);
    });
  };
  EXPECT_EQ(with_host("h", 1), datagram_result::good);
  EXPECT_EQ(with_host("h", 0), datagram_result::malformed);
  for (const char* host : {"a b", "a\n", "a\x1b[0m", "[a]", "a]:1"})
    EXPECT_EQ(with_host(host, 1), datagram_result::malformed);
  EXPECT_EQ(with_host(std::string(256, 'h'), 1), datagram_result::malformed);
  EXPECT_EQ(with([](writer& w) {
              w.varint(1);
              w.varint(1u << 30);
              w.raw("abc", 3);
            }),
            datagram_result::malformed);
  EXPECT_EQ(with([](writer& w) {
              w.varint(0);
              w.varint(0);
            }),
            datagram_result::malformed);
}

TEST(datagrams, of_random_bytes_are_refused) {
  datagram_signer signer("c", {secret_of(1)});
  std::mt19937 random(1);
  announcement a;
  const auto good = signer.write(example());
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes(random() % 600);
    for (std::byte& b : bytes) b = std::byte(random());
    // Half of them get past the head.
    if (i % 2) std::copy_n(good.begin(), std::min<std::size_t>(bytes.size(), 13), bytes.begin());
    EXPECT_NE(signer.read(bytes, a), datagram_result::good);
  }
}

}  // namespace
