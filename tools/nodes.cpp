// What this file is for: the nodes of a cluster, what each has to do, and what the links between them carry.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/nodes.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "tools/words.hpp"

namespace troupe::tools {

namespace {

// Members that are there answer in a few round trips; one that hangs is not waited for longer.
constexpr auto answer_limit = std::chrono::seconds(2);

using row = std::vector<std::string>;

// Prints columns as wide as what is in them; `left` of them begin at the left, the others end at the right.
void print_table(const std::vector<row>& rows, std::size_t left) {
  std::vector<std::size_t> width(rows.front().size());
  for (const row& r : rows)
    for (std::size_t i = 0; i < r.size(); ++i) width[i] = std::max(width[i], r[i].size());
  for (const row& r : rows) {
    std::string line;
    for (std::size_t i = 0; i < r.size(); ++i) {
      const std::string space(width[i] - r[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < left ? r[i] + space : space + r[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

// Returns the first word of `bulk`; what it says beyond that is a reason, which has a line of its own.
std::string bulk_word(const std::string& bulk) {
  const std::size_t comma = bulk.find(',');
  return comma == std::string::npos ? shown(bulk) : shown(bulk.substr(0, comma)) + "*";
}

row row_of(const member_report& m) {
  row r{shown(m.name), m.address.empty() ? "(dials only)" : shown(m.address), text_of(m.state)};
  if (m.state == member_state::unreached) r[1] = "-";
  if (!m.answered) {
    r.resize(13, "-");
    return r;
  }
  char load[32];
  std::snprintf(load, sizeof load, "%.2f", m.load);
  const std::uint64_t limit = m.memory_limit != 0 ? m.memory_limit : m.memory_machine;
  for (std::string s : {up_text(m.up), std::to_string(m.slots), std::to_string(m.busy), std::to_string(m.queued),
                        std::to_string(m.tasks), size_text(m.memory_used) + " of " + size_text(limit),
                        size_text(m.memory_resident), std::string(load), std::to_string(m.kernels), bulk_word(m.bulk)})
    r.push_back(std::move(s));
  return r;
}

row row_of(const link_report& l) {
  return {shown(l.from),
          shown(l.to),
          l.out.fabric_bytes + l.in.fabric_bytes != 0 ? "fabric" : "sockets",
          time_text(l.round_trip),
          rate_text(l.out.bytes_per_second),
          rate_text(l.in.bytes_per_second),
          size_text(l.out.bytes),
          size_text(l.in.bytes),
          std::to_string(l.resets),
          l.suspect ? "suspect" : ""};
}

void print(const cluster_report& c) {
  std::vector<row> members{{"NAME", "ADDRESS", "STATE", "UP", "SLOTS", "BUSY", "QUEUED", "TASKS", "ARRAYS", "PROCESS",
                            "LOAD", "KERNELS", "BULK"}};
  for (const member_report& m : c.members) members.push_back(row_of(m));
  print_table(members, 3);
  for (const member_report& m : c.members)
    if (m.bulk.find(',') != std::string::npos) std::printf("* %s: %s\n", shown(m.name).c_str(), shown(m.bulk).c_str());
  if (c.links.empty()) return;
  std::vector<row> links{
      {"FROM", "TO", "BULK", "ROUND TRIP", "RATE ->", "RATE <-", "BYTES ->", "BYTES <-", "RESETS", ""}};
  for (const link_report& l : c.links) links.push_back(row_of(l));
  std::printf("\n");
  print_table(links, 3);
}

bool is_unreached(const member_report& m) { return m.state == member_state::unreached; }

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string json_of(const member_report& m) {
  std::string s = "{\"name\": " + quoted(m.name) + ", \"id\": " + quoted(m.id) + ", \"address\": " + quoted(m.address) +
                  ", \"state\": " + quoted(text_of(m.state)) + ", \"incarnation\": " + number(m.incarnation) +
                  ", \"answered\": " + (m.answered ? "true" : "false");
  if (!m.answered) return s + "}";
  char load[32];
  std::snprintf(load, sizeof load, "%.2f", m.load);
  s += std::string(", \"takes_work\": ") + (m.takes_work ? "true" : "false");
  s += ", \"up_ms\": " + std::to_string(m.up.count()) + ", \"slots\": " + std::to_string(m.slots) +
       ", \"devices\": " + std::to_string(m.devices) + ", \"busy\": " + std::to_string(m.busy) +
       ", \"queued\": " + number(m.queued) + ", \"tasks\": " + number(m.tasks) + ", \"failed\": " + number(m.failed) +
       ", \"kernels\": " + number(m.kernels);
  s += ", \"memory\": {\"used\": " + number(m.memory_used) + ", \"limit\": " + number(m.memory_limit) +
       ", \"resident\": " + number(m.memory_resident) + ", \"machine\": " + number(m.memory_machine) + "}";
  return s + ", \"load\": " + load + ", \"bulk\": " + quoted(m.bulk) + "}";
}

std::string json_of(const link_way& w) {
  return "{\"bytes_per_second\": " + number(static_cast<std::uint64_t>(std::min(w.bytes_per_second, 1e18))) +
         ", \"bytes\": " + number(w.bytes) + ", \"fabric_bytes\": " + number(w.fabric_bytes) + "}";
}

std::string json_of(const link_report& l) {
  return "{\"from\": " + quoted(l.from) + ", \"from_id\": " + quoted(l.from_id) + ", \"to\": " + quoted(l.to) +
         ", \"to_id\": " + quoted(l.to_id) + ", \"round_trip_ns\": " + std::to_string(l.round_trip.count()) +
         ", \"out\": " + json_of(l.out) + ", \"in\": " + json_of(l.in) + ", \"resets\": " + number(l.resets) +
         ", \"suspect\": " + (l.suspect ? "true" : "false") + "}";
}

std::string json_of(const connection_failure& r) {
  const char* const code = r.code == errc::unreachable ? "unreachable"
                           : r.code == errc::refused   ? "refused"
                                                       : "no node";
  return "{\"address\": " + quoted(r.address) + ", \"code\": " + quoted(code) + ", \"why\": " + quoted(r.why) + "}";
}

template <class T>
void print_json_list(const char* name, const std::vector<T>& all) {
  std::printf("\"%s\": [", name);
  for (const T& one : all) std::printf("%s%s", &one == &all.front() ? "" : ", ", json_of(one).c_str());
  std::printf("]");
}

// Also of those that have said nothing, if nobody else is there.
void print_failures(const std::vector<connection_failure>& all, const std::vector<std::string>& asked,
                    std::chrono::milliseconds look, bool alone) {
  for (const connection_failure& r : all) std::fprintf(stderr, "troupe: %s\n", shown(r.why).c_str());
  if (!alone) return;
  for (const std::string& a : asked)
    if (std::ranges::none_of(all, [&](const connection_failure& r) { return r.address == a; }))
      std::fprintf(stderr, "troupe: %s has not answered within %lld ms\n", shown(a).c_str(),
                   static_cast<long long>(look.count()));
}

}  // namespace

int show_nodes(options o, std::chrono::milliseconds look, bool json) {
  o.threads = 1;
  o.cluster.take_work = o.cluster.give_work = false;
  const std::vector<std::string> asked = o.cluster.join;
  runtime rt(std::move(o));
  // A node that answers names the others: until all that were named are there, or nobody new has come for a while.
  cluster_report c;
  bool more = true;
  for (std::size_t seen = 0; more; more = more && std::ranges::any_of(c.members, is_unreached)) {
    more = rt.wait_for_nodes(seen + 1, look);
    seen = rt.nodes().size();
    c = rt.query_cluster(answer_limit);
  }
  const std::vector<connection_failure> failures = rt.connection_failures();
  std::string self;
  for (const member_report& m : c.members)
    if (m.is_self) self = m.id;
  std::erase_if(c.members, [](const member_report& m) { return m.is_self; });
  std::erase_if(c.links, [&](const link_report& l) { return l.from_id == self || l.to_id == self; });
  if (json) {
    std::printf("{");
    print_json_list("members", c.members);
    std::printf(", ");
    print_json_list("links", c.links);
    std::printf(", ");
    print_json_list("connection_failures", failures);
    std::printf(", ");
    print_json_list("refusals", failures);  // the name of an earlier release
    std::printf("}\n");
  } else if (c.members.empty()) {
    std::printf("no node answered\n");
  } else {
    print(c);
  }
  print_failures(failures, asked, look, c.members.empty());
  return c.members.empty() ? 1 : 0;
}

}  // namespace troupe::tools
