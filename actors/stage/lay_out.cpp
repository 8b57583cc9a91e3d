// What this file is for: how the stages of a stream are joined: which are fused, and where edges lie.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "actors/stage/crew.hpp"

namespace troupe::detail::stage {

namespace ts = troupe::stream;
using streams::node;
using streams::outlet_base;

namespace {

constexpr std::size_t items_max = std::size_t{1} << 24;

// An edge lies where stages may run at the same time, or where a strand is to choose what it takes.
bool needs_edge(const node& n, const std::vector<outlet_base*>& feeding) {
  return n.joins() || n.options.parallel.most > 1 || feeding.size() > 1 || feeding.front()->has_edge ||
         feeding.front()->from->options.parallel.most > 1;
}

const ts::edge_options& bounds(const node& n, const std::vector<outlet_base*>& feeding) {
  for (const outlet_base* o : feeding)
    if (o->has_edge) return o->edge;
  return n.options.edge;
}

[[noreturn]] void refuse(const node& n, const std::string& why) {
  throw error(errc::bad_argument, "stage '" + n.name() + "': " + why);
}

void check(const streams::plan& p) {
  std::set<std::string> names;
  for (const auto& n : p.nodes) {
    if (n->name().empty()) throw error(errc::bad_argument, std::string("a stage (") + n->kind() + ") has no name");
    if (!names.insert(n->name()).second) refuse(*n, "another stage has the same name");
    for (const outlet_base* o : n->outlets)
      if (!o->to) refuse(*n, "what comes out of it goes nowhere; let it end in a sink");
    if (n->options.fail.retries < 0) refuse(*n, std::to_string(n->options.fail.retries) + " retries");
    if (n->options.fail.backoff.count() < 0) refuse(*n, "a pause before a retry that is negative");
    for (const auto& feeding : n->ports) {
      for (const outlet_base* o : feeding) {
        if (!o->keeps_latest) continue;
        if (feeding.size() > 1) refuse(*n, "latest_by before stages that share their edge; put a stage between");
        if (o->from->options.parallel.most > 1 && o->from->options.order == ts::ordered)
          refuse(*n, "latest_by behind a parallel stage that keeps the order, where items have their places");
      }
      const ts::edge_options& b = bounds(*n, feeding);
      if (b.items < 1 || b.items > items_max)
        refuse(*n, "an edge for " + std::to_string(b.items) + " items; 1 to 2^24");
      if (b.bytes < 1) refuse(*n, "an edge for 0 bytes");
    }
  }
  if (p.nodes.empty()) throw error(errc::bad_argument, "a pipeline without stages");
}

}  // namespace

void lay_out(streams::plan& p) {
  const bool has_bars = std::none_of(p.nodes.begin(), p.nodes.end(), [](const auto& n) { return n->pairs_items(); });
  int depth = 0;
  const auto add = [&](node& n, std::unique_ptr<streams::strand> s) {
    s->depth = depth;
    n.strands.push_back(s.get());
    p.strands.push_back(std::move(s));
  };
  for (const auto& n : p.nodes) {
    ++depth;
    n->set_stages(static_cast<int>(p.nodes.size()));
    n->state = &p.state;
    n->has_bars = has_bars;
    if (auto s = n->make_source()) {
      s->depth = 0;
      n->strands.push_back(s.get());
      p.strands.push_back(std::move(s));
      continue;
    }
    if (n->ports.size() == 1 && !needs_edge(*n, n->ports[0])) {
      n->ports[0].front()->fuse();
      n->strands = n->ports[0].front()->from->strands;
      n->bind(0, *n->strands.front());
      continue;
    }
    std::vector<streams::edge_base*> edges;
    for (std::size_t i = 0; i < n->ports.size(); ++i) {
      auto e = n->make_edge(static_cast<int>(i), bounds(*n, n->ports[i]));
      for (outlet_base* o : n->ports[i]) {
        const ts::stage_options& before = o->from->options;
        o->connect(*e, o->from->strands, before.parallel.most > 1 && before.order == ts::ordered);
      }
      if (n->options.parallel.most > 1) n->edge_before = e.get();
      e->scale(n->options.parallel.least, n->options.parallel.most);
      if (!has_bars) e->leave_bars_out();
      edges.push_back(e.get());
      p.edges.push_back(std::move(e));
    }
    for (int lane = 0; lane < n->options.parallel.most; ++lane) {
      add(*n, n->make_strand(lane, edges));
      n->bind(lane, *n->strands.back());
    }
  }
}

namespace {

// Edges of items that are elsewhere in memory hold as much as they say; others no more than so many items have.
std::uint64_t bytes_most(const node& n, int port, const ts::edge_options& b) {
  const std::uint64_t each = n.item_bytes(port);
  return each == 0 ? b.bytes : std::min<std::uint64_t>(b.bytes, each * b.items);
}

void check_memory(const ts::layout& l, std::uint64_t memory_bytes) {
  std::uint64_t all = 0;
  const ts::layout::edge* largest = nullptr;
  for (const ts::layout::edge& e : l.edges) {
    all = all + e.bytes_most < all ? std::numeric_limits<std::uint64_t>::max() : all + e.bytes_most;
    if (!largest || e.bytes_most > largest->bytes_most) largest = &e;
  }
  if (memory_bytes == 0 || all <= memory_bytes) return;
  throw error(errc::bad_argument, "edges of the stream may hold " + std::to_string(all) +
                                      " bytes, more than options::memory_bytes, " + std::to_string(memory_bytes) +
                                      "; the one before stage '" + largest->to + "' " +
                                      std::to_string(largest->bytes_most) + ": give edges less (edge_options::bytes)");
}

}  // namespace

ts::layout describe(const streams::plan& p, std::uint64_t memory_bytes) {
  if (p.started) throw error(errc::bad_argument, "the pipeline has been started already; make another one");
  check(p);
  ts::layout l;
  std::map<const node*, std::size_t> part_of;
  for (const auto& n : p.nodes) {
    const bool is_fused = n->ports.size() == 1 && !needs_edge(*n, n->ports[0]);
    if (is_fused) {
      const std::size_t part = part_of.at(n->ports[0].front()->from);
      part_of[n.get()] = part;
      l.parts[part].stages.push_back(n->name());
      continue;
    }
    part_of[n.get()] = l.parts.size();
    l.parts.push_back({{n->name()}, n->options.parallel.most});
    if (const streams::edge_base* const own = n->own_edge())
      l.edges.push_back({n->name(), own->options().items, own->options().bytes, bytes_most(*n, 0, own->options())});
    for (std::size_t port = 0; port < n->ports.size(); ++port) {
      const ts::edge_options& b = bounds(*n, n->ports[port]);
      l.edges.push_back({n->name(), b.items, b.bytes, bytes_most(*n, static_cast<int>(port), b)});
    }
  }
  check_memory(l, memory_bytes);
  return l;
}

}  // namespace troupe::detail::stage
