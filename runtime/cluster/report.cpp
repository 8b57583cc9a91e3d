// What this file is for: members and links, each once, from the reports of all members.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cluster/report.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "net/transport.hpp"

namespace troupe {

const char* text_of(member_state s) {
  switch (s) {
    case member_state::live:
      return "live";
    case member_state::suspect:
      return "suspect";
    case member_state::leaving:
      return "leaving";
    case member_state::unreached:
      return "unreached";
    case member_state::unlinked:
      return "no link";
  }
  return "unknown";
}

namespace detail {

namespace {

std::string text_of(const node_id& n) { return net::node_id{n.bytes}.text(); }

member_report report_of(const heard_member& m) {
  member_report r;
  r.name = m.name;
  r.id = text_of(m.id);
  r.address = m.address;
  r.incarnation = m.incarnation;
  r.is_self = m.is_self;
  r.state = m.suspect ? member_state::suspect : member_state::live;
  if (!m.descriptor) return r;
  const wire::self_descriptor& c = *m.descriptor;
  if (c.leaving && !m.suspect) r.state = member_state::leaving;
  r.answered = true;
  r.takes_work = c.takes_work;
  r.up = std::chrono::milliseconds(static_cast<std::int64_t>(c.up_ms));
  r.slots = static_cast<int>(c.slots);
  r.devices = static_cast<int>(c.devices);
  r.busy = static_cast<int>(c.busy);
  r.queued = c.queued;
  r.tasks = c.tasks;
  r.failed = c.failed;
  r.kernels = c.kernels;
  r.memory_used = c.memory_used;
  r.memory_limit = c.memory_limit;
  r.memory_resident = c.memory_resident;
  r.memory_machine = c.memory_machine;
  r.load = c.load_percent / 100.0;
  r.bulk = c.bulk;
  return r;
}

/// The reports of the two ends of a link; either may be missing.
struct both_ends {
  const wire::link_descriptor *of_from = nullptr, *of_to = nullptr;
};

link_way way_of(const wire::way* sender, const wire::way* receiver) {
  const auto figure = [&](std::uint64_t wire::way::*f) {
    const std::uint64_t said = sender ? sender->*f : 0;
    return said != 0 || !receiver ? said : receiver->*f;
  };
  link_way w;
  w.bytes_per_second = static_cast<double>(figure(&wire::way::bytes_per_second));
  w.bytes = figure(&wire::way::bytes);
  w.fabric_bytes = figure(&wire::way::fabric_bytes);
  return w;
}

// Returns the smaller round trip where both ends have measured: the other end has waited for something else, too.
std::uint64_t round_trip_ns(const both_ends& e) {
  const std::uint64_t a = e.of_from ? e.of_from->round_trip_ns : 0, b = e.of_to ? e.of_to->round_trip_ns : 0;
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

void fill(link_report& r, const both_ends& e) {
  const wire::link_descriptor *const a = e.of_from, *const b = e.of_to;
  r.out = way_of(a ? &a->out : nullptr, b ? &b->in : nullptr);
  r.in = way_of(b ? &b->out : nullptr, a ? &a->in : nullptr);
  r.round_trip = std::chrono::nanoseconds(static_cast<std::int64_t>(round_trip_ns(e)));
  r.resets = std::max(a ? a->resets : 0, b ? b->resets : 0);
  r.suspect = (a && a->suspect) || (b && b->suspect);
}

}  // namespace

cluster_report picture_of(const std::vector<heard_member>& all, const std::set<node_id>& without_link) {
  cluster_report r;
  std::map<node_id, std::string> names;
  for (const heard_member& m : all) {
    names[m.id] = m.name;
    r.members.push_back(report_of(m));
  }
  std::map<std::pair<node_id, node_id>, both_ends> links;
  for (const heard_member& m : all) {
    if (!m.descriptor) continue;
    for (const wire::link_descriptor& l : m.descriptor->links) {
      if (l.peer == m.id) continue;
      if (names.try_emplace(l.peer, l.name).second) {
        member_report& other = r.members.emplace_back();
        other.name = l.name;
        other.id = text_of(l.peer);
        if (without_link.contains(l.peer)) other.state = member_state::unlinked;
      }
      const bool first = std::tie(m.name, m.id) < std::tie(names.at(l.peer), l.peer);
      both_ends& e = links[first ? std::pair(m.id, l.peer) : std::pair(l.peer, m.id)];
      (first ? e.of_from : e.of_to) = &l;
    }
  }
  for (const auto& [ends, said] : links) {
    link_report& l = r.links.emplace_back();
    l.from_id = text_of(ends.first);
    l.from = names.at(ends.first);
    l.to_id = text_of(ends.second);
    l.to = names.at(ends.second);
    fill(l, said);
  }
  std::ranges::sort(r.members, {}, [](const member_report& m) { return std::tie(m.name, m.id); });
  std::ranges::sort(r.links, {}, [](const link_report& l) { return std::tie(l.from, l.to, l.from_id, l.to_id); });
  return r;
}

std::vector<link_report> links_of(const heard_member& m) {
  std::vector<link_report> all;
  if (!m.descriptor) return all;
  for (const wire::link_descriptor& c : m.descriptor->links) {
    link_report& l = all.emplace_back();
    l.from_id = text_of(m.id);
    l.from = m.name;
    l.to_id = text_of(c.peer);
    l.to = c.name;
    fill(l, {&c, nullptr});
  }
  std::ranges::sort(all, {}, [](const link_report& l) { return std::tie(l.to, l.to_id); });
  return all;
}

}  // namespace detail

}  // namespace troupe
