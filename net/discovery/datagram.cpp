// What this file is for: the bytes of an announcement, and its signature.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/datagram.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <algorithm>
#include <cstring>

#include "net/codec.hpp"
#include "net/credentials/credentials.hpp"

namespace troupe::net {

namespace {

constexpr std::uint32_t magic = 0x4d505254;  // "TRPM"
constexpr std::uint8_t version = 1;
constexpr std::size_t head_bytes = 4 + 1 + sizeof(cluster_hash);
constexpr std::size_t host_max = 255;

std::span<const std::uint8_t> bytes_of(std::span<const std::byte> b) {
  return {reinterpret_cast<const std::uint8_t*>(b.data()), b.size()};
}

datagram_result read_head(reader& from, const cluster_hash& cluster) {
  if (from.left() < head_bytes || from.fixed<std::uint32_t>() != magic) return datagram_result::malformed;
  if (from.fixed<std::uint8_t>() != version) return datagram_result::other_version;
  const auto hash = bytes_of(from.raw(cluster.size()));
  return std::equal(hash.begin(), hash.end(), cluster.begin()) ? datagram_result::good : datagram_result::other_cluster;
}

// Whatever a member says about hosts, it is a line of text that reads as an address.
bool makes_sense(const endpoint& e) {
  if (e.port == 0) return false;
  if (e.host.empty()) return true;
  const auto again = endpoint::parse(e.text());
  return again && *again == e;
}

}  // namespace

cluster_hash hash_of_cluster(std::string_view name) {
  std::array<std::uint8_t, 32> all{};
  openssl::must(EVP_Digest(name.data(), name.size(), all.data(), nullptr, EVP_sha256(), nullptr) == 1, "hash a name");
  cluster_hash h;
  std::copy_n(all.begin(), h.size(), h.begin());
  return h;
}

std::vector<std::byte> write_announcement(const announcement& a, const cluster_hash& cluster) {
  writer addresses;
  std::size_t count = 0;
  constexpr std::size_t room = datagram_max - mac_bytes - head_bytes - sizeof(node_id) - 2 * sizeof(std::uint64_t) - 1;
  for (const endpoint& e : a.listens_on) {
    if (count == announced_max || !makes_sense(e) || e.host.size() > host_max ||
        addresses.size() + (e.host.size() < 0x80 ? 1 : 2) + e.host.size() + sizeof e.port > room)
      continue;
    addresses.text(e.host);
    addresses.fixed(e.port);
    ++count;
  }
  writer to;
  to.fixed(magic);
  to.fixed(version);
  to.raw(cluster.data(), cluster.size());
  to.raw(a.node.bytes.data(), a.node.bytes.size());
  to.fixed(a.incarnation);
  to.fixed(a.counter);
  to.varint(count);
  to.raw(addresses.view().data(), addresses.size());
  return to.take();
}

datagram_result read_announcement(std::span<const std::byte> unsigned_part, const cluster_hash& cluster,
                                  announcement& to) {
  try {
    reader from(unsigned_part);
    if (const datagram_result v = read_head(from, cluster); v != datagram_result::good) return v;
    std::memcpy(to.node.bytes.data(), from.raw(to.node.bytes.size()).data(), to.node.bytes.size());
    to.incarnation = from.fixed<std::uint64_t>();
    to.counter = from.fixed<std::uint64_t>();
    const auto count = static_cast<std::size_t>(from.at_most(announced_max, "a number of addresses"));
    to.listens_on.clear();
    for (std::size_t i = 0; i < count; ++i) {
      endpoint e;
      e.host = from.text(host_max);
      e.port = from.fixed<std::uint16_t>();
      if (!makes_sense(e)) return datagram_result::malformed;
      to.listens_on.push_back(std::move(e));
    }
    from.end();
    return datagram_result::good;
  } catch (const error&) {
    return datagram_result::malformed;
  }
}

datagram_signer::datagram_signer(std::string_view cluster, const std::vector<credentials::secret_bytes>& secrets)
    : cluster_(hash_of_cluster(cluster)) {
  const openssl::mac method(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  openssl::must(method != nullptr, "find HMAC");
  for (const auto& secret : secrets) {
    auto key = derive(secret, "troupe discovery 1");
    openssl::mac_context context(EVP_MAC_CTX_new(method.get()));
    char digest[] = "SHA256";
    const OSSL_PARAM with[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
    const bool done = context && EVP_MAC_init(context.get(), key.data(), key.size(), with) == 1;
    OPENSSL_cleanse(key.data(), key.size());
    openssl::must(done, "set a key");
    keys_.push_back(std::move(context));
  }
}

datagram_signer::mac datagram_signer::sign(EVP_MAC_CTX& key, std::span<const std::byte> text) {
  std::array<std::uint8_t, 32> all{};
  std::size_t size = 0;
  const auto b = bytes_of(text);
  openssl::must(EVP_MAC_init(&key, nullptr, 0, nullptr) == 1 && EVP_MAC_update(&key, b.data(), b.size()) == 1 &&
                    EVP_MAC_final(&key, all.data(), &size, all.size()) == 1 && size == all.size(),
                "sign");
  mac m;
  std::copy_n(all.begin(), m.size(), m.begin());
  return m;
}

std::vector<std::byte> datagram_signer::write(const announcement& a) {
  auto text = write_announcement(a, cluster_);
  const mac m = sign(*keys_.front(), text);
  const auto signature = std::as_bytes(std::span(m));
  text.insert(text.end(), signature.begin(), signature.end());
  return text;
}

datagram_result datagram_signer::read(std::span<const std::byte> datagram, announcement& to) {
  if (datagram.size() > datagram_max || datagram.size() < head_bytes + mac_bytes) return datagram_result::malformed;
  const auto text = datagram.first(datagram.size() - mac_bytes);
  reader head(text);
  if (const datagram_result v = read_head(head, cluster_); v != datagram_result::good) return v;
  const auto signature = datagram.last(mac_bytes);
  for (const auto& key : keys_) {
    const mac m = sign(*key, text);
    if (CRYPTO_memcmp(m.data(), signature.data(), m.size()) == 0) return read_announcement(text, cluster_, to);
  }
  return datagram_result::forged;
}

}  // namespace troupe::net
