// What this file is for: encoding and decoding of what members tell each other of themselves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/node_messages.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::detail::wire {

namespace {

// Beyond any machine; sums and conversions stay far from their ends.
constexpr std::uint64_t far = std::uint64_t{1} << 60;
constexpr std::uint64_t slots_max = 1u << 20;
// A link with an empty name.
constexpr std::size_t link_bytes_min = 16 + 10;

std::uint64_t figure(net::reader& from) { return from.at_most(far, "a figure"); }
bool yes_or_no(net::reader& from) { return from.at_most(1, "a yes or no") != 0; }

void put(net::writer& to, const way& w) {
  to.varint(std::min(w.bytes_per_second, far));
  to.varint(std::min(w.bytes, far));
  to.varint(std::min(w.fabric_bytes, far));
}

way take_way(net::reader& from) {
  way w;
  w.bytes_per_second = figure(from);
  w.bytes = figure(from);
  w.fabric_bytes = figure(from);
  return w;
}

void put(net::writer& to, const link_descriptor& l) {
  wire::put(to, l.peer);
  to.text(std::string_view(l.name).substr(0, name_max));
  to.varint(l.suspect ? 1 : 0);
  to.varint(std::min(l.round_trip_ns, far));
  to.varint(std::min(l.resets, far));
  put(to, l.out);
  put(to, l.in);
}

link_descriptor take_link(net::reader& from) {
  link_descriptor l;
  l.peer = take_node(from);
  l.name = from.text(name_max);
  l.suspect = yes_or_no(from);
  l.round_trip_ns = figure(from);
  l.resets = figure(from);
  l.out = take_way(from);
  l.in = take_way(from);
  return l;
}

}  // namespace

void put(net::writer& to, const load_notice& l) {
  to.fixed(kind::load);
  to.varint(std::min<std::uint64_t>(l.busy, slots_max));
  to.varint(std::min(l.queued, far));
  to.varint(std::min(l.others_us, far));
}

load_notice take_load(net::reader& from) {
  load_notice l;
  l.busy = static_cast<std::uint32_t>(from.at_most(slots_max, "a number of slots"));
  l.queued = figure(from);
  l.others_us = figure(from);
  from.end();
  return l;
}

void put_numbered(net::writer& to, kind what, std::uint64_t number) {
  to.fixed(what);
  to.varint(number);
}

std::uint64_t take_number(net::reader& from) {
  const std::uint64_t number = from.varint();
  from.end();
  return number;
}

void put(net::writer& to, const self_descriptor& s) {
  to.fixed(kind::described);
  to.varint(s.number);
  to.varint(s.takes_work ? 1 : 0);
  to.varint(s.leaving ? 1 : 0);
  to.varint(std::min(s.up_ms, far));
  for (const std::uint32_t n : {s.slots, s.devices, s.busy}) to.varint(std::min<std::uint64_t>(n, slots_max));
  for (const std::uint64_t n :
       {s.queued, s.tasks, s.failed, s.kernels, s.memory_used, s.memory_limit, s.memory_resident, s.memory_machine})
    to.varint(std::min(n, far));
  to.varint(std::min<std::uint64_t>(s.load_percent, slots_max));
  to.text(std::string_view(s.bulk).substr(0, bulk_text_max));
  const std::size_t links = std::min(s.links.size(), links_max);
  to.varint(links);
  for (std::size_t i = 0; i < links; ++i) put(to, s.links[i]);
}

self_descriptor take_self(net::reader& from) {
  self_descriptor s;
  s.number = from.varint();
  s.takes_work = yes_or_no(from);
  s.leaving = yes_or_no(from);
  s.up_ms = figure(from);
  for (std::uint32_t* n : {&s.slots, &s.devices, &s.busy})
    *n = static_cast<std::uint32_t>(from.at_most(slots_max, "a number of slots"));
  for (std::uint64_t* n : {&s.queued, &s.tasks, &s.failed, &s.kernels, &s.memory_used, &s.memory_limit,
                           &s.memory_resident, &s.memory_machine})
    *n = figure(from);
  s.load_percent = static_cast<std::uint32_t>(from.at_most(slots_max, "a load"));
  s.bulk = from.text(bulk_text_max);
  // A link is decoded before there is room for the next: what is not there costs nothing.
  std::size_t left = std::min(from.count(link_bytes_min, "a number of links"), links_max + 1);
  if (left > links_max) throw error(errc::protocol_error, "more links than are allowed in a frame");
  for (; left != 0; --left) s.links.push_back(take_link(from));
  from.end();
  return s;
}

}  // namespace troupe::detail::wire
