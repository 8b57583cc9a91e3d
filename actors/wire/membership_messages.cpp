// What this file is for: messages of membership as frames.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/membership_messages.hpp"

#include <type_traits>
#include <utility>
#include <variant>

#include "actors/wire/node_names.hpp"
#include "net/codec.hpp"

namespace troupe::detail {

namespace {

constexpr std::size_t host_max = 255;
constexpr std::size_t nodes_max = 16'384;  // in one message
constexpr std::size_t id_bytes = 16, record_bytes_min = id_bytes + 4;
constexpr std::size_t sums_max = 256, votes_max = nodes_max / 8;

template <std::size_t I = 0>
membership_message made(std::size_t kind) {
  if constexpr (I < std::variant_size_v<membership_message>) {
    return kind == I ? membership_message(std::in_place_index<I>) : made<I + 1>(kind);
  } else {
    throw error(errc::protocol_error, "a frame is of no kind that membership knows");
  }
}

/// Writes; the same calls on `getter` read, so that both always agree.
class putter {
 public:
  net::writer w;

  void number(const std::uint64_t& v) { w.varint(v); }
  void number(const std::uint32_t& v) { w.varint(v); }
  void fixed(const std::uint64_t& v) { w.fixed(v); }
  void byte(const std::uint8_t& v) { w.fixed(v); }
  void flag(const bool& v) { w.fixed(static_cast<std::uint8_t>(v)); }
  void flag_and_rare(const bool& v, const std::uint32_t& a, const std::uint64_t& b, const std::uint64_t& c) {
    w.varint((v ? 1u : 0u) | (a != 0 ? 2u : 0u) | (b != 0 ? 4u : 0u) | (c != 0 ? 8u : 0u));
    if (a != 0) w.varint(a);
    if (b != 0) w.varint(b);
    if (c != 0) w.varint(c);
  }
  void claim(const node_claim& c) { w.fixed(c); }
  void use(const link_use& u) { w.fixed(u); }
  void id(const node_id& n) { w.raw(n.bytes.data(), n.bytes.size()); }
  void address(const node_address& a) {
    w.text(a.host);
    w.fixed(a.port);
  }
  template <class T, class F>
  void all(const std::vector<T>& v, std::size_t, std::size_t, F&& each) {
    w.varint(v.size());
    for (const T& x : v) each(x);
  }
  template <class T, class F>
  void maybe(const std::optional<T>& v, F&& each) {
    flag(v.has_value());
    if (v) each(*v);
  }
};

class getter {
 public:
  net::reader r;

  void number(std::uint64_t& v) { v = r.varint(); }
  void number(std::uint32_t& v) { v = static_cast<std::uint32_t>(r.at_most(UINT32_MAX, "a number")); }
  void fixed(std::uint64_t& v) { v = r.fixed<std::uint64_t>(); }
  void byte(std::uint8_t& v) { v = r.fixed<std::uint8_t>(); }
  void flag(bool& v) { v = r.at_most(1, "a flag") != 0; }
  void flag_and_rare(bool& v, std::uint32_t& a, std::uint64_t& b, std::uint64_t& c) {
    const std::uint64_t bits = r.at_most(15, "flags");
    v = (bits & 1) != 0;
    const auto rare = [&](bool is_there, auto& n) {
      n = 0;
      if (!is_there) return;
      number(n);
      if (n == 0) throw error(errc::protocol_error, "a number in a frame is there and zero");
    };
    rare((bits & 2) != 0, a);
    rare((bits & 4) != 0, b);
    rare((bits & 8) != 0, c);
  }
  void claim(node_claim& c) {
    c = static_cast<node_claim>(r.at_most(static_cast<std::uint64_t>(node_claim::left), "a claim"));
  }
  void use(link_use& u) { u = static_cast<link_use>(r.at_most(static_cast<std::uint64_t>(link_use::work), "a use")); }
  void id(node_id& n) {
    const auto b = r.raw(n.bytes.size());
    std::memcpy(n.bytes.data(), b.data(), b.size());
  }
  void address(node_address& a) {
    a.host = r.text(host_max);
    a.port = r.fixed<std::uint16_t>();
  }
  template <class T, class F>
  void all(std::vector<T>& v, std::size_t bytes_each, std::size_t limit, F&& each) {
    const std::size_t n = r.count(bytes_each, "a number of nodes or addresses");
    if (n > limit) throw error(errc::protocol_error, "a frame holds more nodes or addresses than are allowed");
    v.resize(n);
    for (T& x : v) each(x);
  }
  template <class T, class F>
  void maybe(std::optional<T>& v, F&& each) {
    bool has = false;
    flag(has);
    if (has) each(v.emplace());
  }
};

template <class W, class R>
void record(W& w, R& r) {
  w.id(r.node);
  w.number(r.incarnation);
  w.number(r.round);
  w.claim(r.claim);
  w.all(r.addresses, 3, addresses_max, [&](auto& a) { w.address(a); });
}
template <class W, class R>
void records(W& w, R& all) {
  w.all(all, record_bytes_min, nodes_max, [&](auto& r) { record(w, r); });
}
template <class W, class R>
void ids(W& w, R& all) {
  w.all(all, id_bytes, nodes_max, [&](auto& n) { w.id(n); });
}
template <class W, class B>
void ballot(W& w, B& b) {
  w.number(b.attempt);
  w.id(b.proposer);
}

template <class W, class C>
void change(W& w, C& c) {
  w.all(c.out, 1, nodes_max, [&](auto& index) { w.number(index); });
  ids(w, c.in);
}

/// The fields of a message, in the order in which they stand in a frame: one case for each kind, so a long function.
template <class W, class M>
void fields(W& w, M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_same_v<T, node_hello>) {
    record(w, m.self);
    w.flag(m.knows_you);
    w.maybe(m.of_you, [&](auto& r) { record(w, r); });
    w.number(m.members);
    w.fixed(m.digest);
    w.use(m.link);
  } else if constexpr (std::is_same_v<T, node_beat>) {
    w.flag_and_rare(m.answer, m.deaf_ms, m.sent, m.heard);
    w.fixed(m.digest);
    w.number(m.view);
    records(w, m.news);
  } else if constexpr (std::is_same_v<T, node_probe> || std::is_same_v<T, node_alive>) {
    w.id(m.target);
  } else if constexpr (std::is_same_v<T, node_news>) {
    w.flag(m.all);
    w.flag(m.want);
    records(w, m.records);
  } else if constexpr (std::is_same_v<T, view_prepare>) {
    w.number(m.number);
    w.id(m.founder);
    ballot(w, m.ballot);
  } else if constexpr (std::is_same_v<T, view_promise>) {
    w.number(m.number);
    ballot(w, m.ballot);
    ballot(w, m.accepted_in);
    ids(w, m.accepted);
  } else if constexpr (std::is_same_v<T, view_accept>) {
    w.number(m.number);
    w.id(m.founder);
    ballot(w, m.ballot);
    ids(w, m.members);
  } else if constexpr (std::is_same_v<T, view_accepted>) {
    w.number(m.number);
    ballot(w, m.ballot);
  } else if constexpr (std::is_same_v<T, view_agreed>) {
    w.number(m.view.number);
    w.id(m.view.founder);
    ids(w, m.view.members);
  } else if constexpr (std::is_same_v<T, node_sums>) {
    w.flag(m.want);
    w.all(m.sums, 8, sums_max, [&](auto& s) { w.fixed(s); });
  } else if constexpr (std::is_same_v<T, view_poll>) {
    w.number(m.number);
    w.id(m.founder);
    ballot(w, m.ballot);
    w.flag(m.accepting);
    ballot(w, m.best);
    change(w, m.change);
    w.all(m.votes, 1, votes_max, [&](auto& v) { w.byte(v); });
  } else if constexpr (std::is_same_v<T, view_step>) {
    w.number(m.number);
    w.id(m.founder);
    change(w, m.change);
  } else if constexpr (std::is_same_v<T, node_link>) {
    w.use(m.use);
  } else {
    static_assert(std::is_same_v<T, node_rest>);
  }
}

}  // namespace

std::vector<std::byte> encode(const membership_message& m) {
  putter p;
  p.w.fixed(static_cast<std::uint8_t>(m.index() + std::to_integer<std::size_t>(membership_kind_first)));
  std::visit([&](const auto& x) { fields(p, x); }, m);
  return p.w.take();
}

membership_message decode_membership(std::span<const std::byte> frame) {
  getter g{net::reader(frame)};
  const auto kind = std::to_integer<std::size_t>(g.r.raw(1)[0]);
  membership_message m = made(kind - std::to_integer<std::size_t>(membership_kind_first));
  std::visit([&](auto& x) { fields(g, x); }, m);
  g.r.end();
  return m;
}

}  // namespace troupe::detail
