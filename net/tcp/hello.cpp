// What this file is for: hellos and answers as bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/hello.hpp"

#include <utility>

#include <troupe/error.hpp>

#include "net/codec.hpp"

namespace troupe::net::tcp {

namespace {

constexpr std::size_t name_max = 255;
constexpr std::size_t reason_max = 1024;
constexpr std::uint64_t listens_max = 64;

void write(writer& w, const identity& who) {
  w.raw(who.id.bytes.data(), who.id.bytes.size());
  w.fixed(who.incarnation);
  w.text(who.name.substr(0, name_max));
  w.text(who.cluster.substr(0, name_max));
  const std::size_t n = std::min<std::size_t>(who.listens_on.size(), listens_max);
  w.varint(n);
  for (std::size_t i = 0; i < n; ++i) {
    w.text(who.listens_on[i].host.substr(0, name_max));
    w.fixed(who.listens_on[i].port);
  }
}

identity read_identity(reader& r) {
  identity who;
  const auto id = r.raw(who.id.bytes.size());
  std::memcpy(who.id.bytes.data(), id.data(), id.size());
  who.incarnation = r.fixed<std::uint64_t>();
  who.name = r.text(name_max);
  // The name goes to terminals and logs.
  for (const char c : who.name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw error(errc::protocol_error, "the name of a node holds what cannot be shown");
  who.cluster = r.text(name_max);
  const std::uint64_t n = r.at_most(listens_max, "a number of addresses");
  for (std::uint64_t i = 0; i < n; ++i) {
    endpoint e;
    e.host = r.text(name_max);
    e.port = r.fixed<std::uint16_t>();
    who.listens_on.push_back(std::move(e));
  }
  return who;
}

void write(writer& w, const limits& l) {
  w.varint(l.frame_max);
  w.varint(l.chunk_bytes);
}

limits read_limits(reader& r) {
  limits l;
  l.frame_max = r.varint();
  l.chunk_bytes = r.varint();
  if (l.frame_max == 0 || l.chunk_bytes == 0) throw error(errc::protocol_error, "a peer takes nothing at all");
  return l;
}

writer begin(std::uint16_t version) {
  writer w;
  w.fixed(magic);
  w.fixed(version);
  return w;
}

std::uint16_t read_version(reader& r) {
  if (r.fixed<std::uint32_t>() != magic)
    throw error(errc::protocol_error, "the other side does not speak troupe's protocol");
  return r.fixed<std::uint16_t>();
}

}  // namespace

std::vector<std::byte> encode(const hello& h) {
  writer w = begin(h.version);
  w.fixed(h.kind);
  w.fixed(h.number);
  w.fixed(h.last);
  write(w, h.who);
  write(w, h.takes);
  return w.take();
}

hello decode_hello(std::span<const std::byte> bytes) {
  reader r(bytes);
  hello h;
  h.version = read_version(r);
  if (h.version != protocol_version) return h;
  h.kind = r.fixed<channel>();
  if (h.kind != channel::control && h.kind != channel::bulk)
    throw error(errc::protocol_error, "a connection is neither for control nor for bulk");
  h.number = r.fixed<std::uint64_t>();
  h.last = r.fixed<std::uint64_t>();
  h.who = read_identity(r);
  h.takes = read_limits(r);
  r.end();
  return h;
}

std::vector<std::byte> encode(const answer& a) {
  writer w = begin(a.version);
  w.fixed(a.what);
  if (a.what == hello_result::welcome) {
    write(w, a.who);
    write(w, a.takes);
  } else {
    w.text(a.text.substr(0, reason_max));
  }
  return w.take();
}

answer decode_answer(std::span<const std::byte> bytes) {
  reader r(bytes);
  answer a;
  a.version = read_version(r);
  if (a.version != protocol_version) {
    a.what = hello_result::other_version;
    return a;
  }
  a.what = r.fixed<hello_result>();
  if (a.what > hello_result::taken) throw error(errc::protocol_error, "an answer is none of the known ones");
  if (a.what == hello_result::welcome) {
    a.who = read_identity(r);
    a.takes = read_limits(r);
  } else {
    a.text = r.text(reason_max);
  }
  r.end();
  return a;
}

}  // namespace troupe::net::tcp
