// What this file is for: definitions, crossings and failures of graphs' parts, from and to other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cluster/graph_parts.hpp"

#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

#include "actors/node_service/call_checks.hpp"
#include "runtime/cluster/part_maker.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

// ---- sending --------------------------------------------------------------------------------------------------------

void graph_parts::put_on(net::session& line, unsent m) {
  if (!m.body)
    line.send(m.head.view());
  else
    line.send_bulk(m.head.view(), {std::span<const std::byte>(*m.body)}, [kept = m.body](bool) {});
}

// Sends a message, or keeps it until there is a session with the node.
void graph_parts::post(const node_id& to, unsent m) {
  if (const std::shared_ptr<net::session> line = lines_.made(to)) return put_on(*line, std::move(m));
  {
    const std::lock_guard hold(lock_);
    unsent_[to].push_back(std::move(m));
  }
  linked(to);  // the session may have begun meanwhile
}

void graph_parts::linked(const node_id& who) {
  const std::shared_ptr<net::session> line = lines_.there(who);
  if (!line) return;
  std::vector<std::pair<key, std::uint64_t>> ready;
  {
    const std::lock_guard hold(lock_);
    for (auto& [name, e] : parts_)
      if (std::erase(e.unlinked, who) != 0 && e.unlinked.empty()) ready.emplace_back(name, e.graph->successors.size());
  }
  for (const auto& [name, edges] : ready) answer(name.first, {.graph = name.second, .edges = edges});
  std::vector<unsent> all;
  {
    const std::lock_guard hold(lock_);
    if (const auto found = unsent_.find(who); found != unsent_.end()) {
      all = std::move(found->second);
      unsent_.erase(found);
    }
  }
  for (unsent& m : all) put_on(*line, std::move(m));
}

void graph_parts::give_up_link(const node_id& who) {
  {
    const std::lock_guard hold(lock_);
    const bool is_missed =
        std::ranges::any_of(parts_, [&](const auto& p) { return std::ranges::count(p.second.unlinked, who) != 0; });
    if (unsent_.erase(who) == 0 && !is_missed) return;
  }
  if (lines_.there(who)) return;
  lost(who, std::make_exception_ptr(error(errc::unreachable, "there is no connection with a node of the graph")));
}

void graph_parts::send(const part_name& n, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
                       const net::pieces& rows) {
  unsent m;
  wire::put(m.head, wire::crossing_head{n.owner, n.graph, run, crossing});
  std::size_t bytes = 0;
  for (const auto& row : rows) bytes += row.size();
  if (bytes <= wire::crossing_inline_max) {
    for (const auto& row : rows) m.head.raw(row.data(), row.size());
  } else {
    m.body = std::make_shared<std::vector<std::byte>>();
    m.body->reserve(bytes);
    for (const auto& row : rows) m.body->insert(m.body->end(), row.begin(), row.end());
  }
  post(n.members.at(to), std::move(m));
}

void graph_parts::send_failure(const part_name& n, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
                               const std::exception_ptr& why) {
  wire::graph_failure f{.owner = n.owner, .graph = n.graph, .run = run, .number = crossing};
  wire::describe(f, why);
  if (f.executor.find(':') != std::string::npos) f.executor = own_name_;  // "cpu:0" there is this node
  unsent m;
  wire::put(m.head, f);
  post(n.members.at(to), std::move(m));
}

// ---- graphs of this node --------------------------------------------------------------------------------------------

std::uint64_t graph_parts::new_number() {
  const std::lock_guard hold(lock_);
  return ++last_number_;
}

void graph_parts::add(const std::shared_ptr<recorded_graph>& g) {
  const std::lock_guard hold(lock_);
  parts_[{self_, g->part->name().graph}].graph = g;
}

void graph_parts::define(const node_id& to, std::uint64_t graph, std::span<const net::writer> frames) {
  {
    const std::lock_guard hold(lock_);
    defined_[graph].awaited.push_back(to);
  }
  const std::shared_ptr<net::session> line = lines_.there(to);
  if (!line) throw error(errc::node_lost, "a node that is to have a part of the graph has gone");
  for (const net::writer& w : frames)
    if (!line->send(w.view())) throw error(errc::node_lost, "a node that is to have a part of the graph has gone");
}

std::uint64_t graph_parts::await_ready(std::uint64_t graph) {
  const auto is_over = [&] {
    const auto found = defined_.find(graph);
    return found == defined_.end() || found->second.awaited.empty() || found->second.why_not;
  };
  if (const auto& wait = engine_.around().wait)
    wait([&] {
      const std::lock_guard hold(lock_);
      return is_over();
    });
  std::unique_lock hold(lock_);
  answered_.wait(hold, is_over);
  const auto found = defined_.find(graph);
  if (found == defined_.end()) return 0;
  const std::exception_ptr why_not = found->second.why_not;
  const std::uint64_t edges = found->second.edges;
  defined_.erase(found);
  if (why_not) std::rethrow_exception(why_not);
  return edges;
}

// Notes that a node has built its part, or why it has not.
void graph_parts::answered(const node_id& from, const wire::graph_answer& a) {
  const std::lock_guard hold(lock_);
  const auto found = defined_.find(a.graph);
  if (found == defined_.end() || std::erase(found->second.awaited, from) == 0) return;
  found->second.edges += a.edges;
  if (!a.is_ready && !found->second.why_not) found->second.why_not = std::make_exception_ptr(error(a.code, a.text));
  answered_.notify_all();
}

void graph_parts::drop(std::uint64_t graph, std::span<const node_id> members) noexcept {
  try {
    entry gone;
    {
      const std::lock_guard hold(lock_);
      if (const auto found = parts_.find({self_, graph}); found != parts_.end()) {
        gone = std::move(found->second);
        parts_.erase(found);
      }
      defined_.erase(graph);
    }
    net::writer frame;
    frame.fixed(wire::kind::graph_drop);
    frame.varint(graph);
    for (const node_id& n : members)
      if (n != self_)
        if (const auto line = lines_.there(n)) line->send(frame.view());
  } catch (...) {  // for want of memory: the nodes keep it until this one goes
  }
}

// Notes a part that has failed, or did not run; with placement's turn.
void graph_parts::retired(task_record& t) {
  if (!t.error) return;
  ended_part e;
  e.name = *static_cast<const part_name*>(t.extra->for_listener.get());
  e.run = t.extra->run_of_part;
  e.why = t.error;
  const std::lock_guard hold(lock_);
  ended_.push_back(std::move(e));
}

void graph_parts::after_turn() {
  std::vector<ended_part> all;
  {
    const std::lock_guard hold(lock_);
    all.swap(ended_);
  }
  for (const ended_part& e : all) {
    wire::graph_failure f{
        .owner = e.name.owner, .graph = e.name.graph, .run = e.run, .whole_part = true, .number = e.name.part};
    wire::describe(f, e.why);
    if (f.executor.find(':') != std::string::npos) f.executor = own_name_;
    unsent m;
    wire::put(m.head, f);
    for (std::uint32_t p = 0; p < e.name.members.size(); ++p) {
      const node_id& to = e.name.members[p];
      if (p == e.name.part) continue;
      if (to == self_)
        fail(self_, f);
      else if (const auto line = lines_.there(to))
        line->send(m.head.view());
    }
  }
}

// ---- graphs of others -----------------------------------------------------------------------------------------------

std::shared_ptr<recorded_graph> graph_parts::known(const node_id& owner, std::uint64_t graph) const {
  const std::lock_guard hold(lock_);
  const auto found = parts_.find({owner, graph});
  return found == parts_.end() ? nullptr : found->second.graph;
}

std::shared_ptr<recorded_graph> graph_parts::find(const node_id& owner, std::uint64_t graph) {
  const std::lock_guard hold(lock_);
  const auto found = parts_.find({owner, graph});
  if (found == parts_.end() || !found->second.graph)
    throw error(errc::node_lost, "the node does not know the graph, as it has joined anew: record it again");
  return found->second.graph;
}

// Takes a frame of a definition. The owner gets an answer to the last one.
void graph_parts::take_definition(const node_id& owner, net::reader& from) {
  const key name{owner, wire::graph_of(from)};
  std::unique_ptr<wire::graph_definition> d;
  {
    const std::lock_guard hold(lock_);
    entry& e = parts_[name];
    if (e.graph) refuse_peer("a graph that is there already");
    d = e.coming ? std::move(e.coming) : std::make_unique<wire::graph_definition>();
  }
  if (!wire::take_definition(from, *d)) {
    const std::lock_guard hold(lock_);
    parts_[name].coming = std::move(d);
    return;
  }
  std::shared_ptr<recorded_graph> made;
  wire::graph_answer said{.graph = d->graph};
  try {
    made = make_part(engine_, owner, *this, *d);
  } catch (const error& e) {
    if (e.code() == errc::protocol_error) throw;
    said = {d->graph, false, 0, e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    said = {d->graph, false, 0, errc::out_of_memory, "no memory is left for the graph"};
  }
  {
    const std::lock_guard hold(lock_);
    if (made) {
      entry& e = parts_[name];
      e.unlinked = std::move(d->members);
      std::erase(e.unlinked, self_);
      said.edges = made->successors.size();
      e.graph = std::move(made);
    } else {
      parts_.erase(name);
    }
  }
  if (!said.is_ready) return answer(owner, said);
  std::vector<node_id> members;
  {
    const std::lock_guard hold(lock_);
    members = parts_[name].unlinked;
  }
  // It answers once there is a session with each of the others: what crosses has to have a way.
  if (members.empty()) return answer(owner, said);
  for (const node_id& n : members)
    if (lines_.made(n)) linked(n);
}

void graph_parts::answer(const node_id& owner, const wire::graph_answer& a) {
  unsent m;
  wire::put(m.head, a);
  post(owner, std::move(m));
}

// ---- what comes -----------------------------------------------------------------------------------------------------

void graph_parts::fail(const node_id& from, const wire::graph_failure& f) {
  const std::shared_ptr<recorded_graph> g = known(f.owner, f.graph);
  if (!g) return;
  if (from != (f.whole_part ? f.owner : g->part->sender_of(f.number)))
    refuse_peer("the failure of what another node sends");
  if (f.whole_part)
    g->part->lost(f.run, f.number, wire::error_of(f));
  else
    g->part->arrive(f.run, f.number, {}, wire::error_of(f));
}

void graph_parts::frame(const node_id& from, std::span<const std::byte> bytes) {
  net::reader in(bytes);
  switch (in.fixed<wire::kind>()) {
    case wire::kind::graph_define:
      return take_definition(from, in);
    case wire::kind::graph_drop: {
      const std::uint64_t graph = in.varint();
      entry gone;
      const std::lock_guard hold(lock_);
      if (const auto found = parts_.find({from, graph}); found != parts_.end()) {
        gone = std::move(found->second);
        parts_.erase(found);
      }
      return;
    }
    case wire::kind::crossing: {
      const wire::crossing_head h = wire::take_crossing(in);
      const auto rest = in.raw(in.left());
      const auto g = known(h.owner, h.graph);
      if (!g) return;
      if (g->part->sender_of(h.crossing) != from) refuse_peer("a crossing that another node sends");
      return g->part->arrive(h.run, h.crossing, {rest.begin(), rest.end()}, nullptr);
    }
    case wire::kind::graph_failed:
      return fail(from, wire::take_graph_failure(in));
    case wire::kind::graph_ready:
      return answered(from, wire::take_graph_answer(in));
    default:
      refuse_peer("a message of an unknown kind");
  }
}

net::pieces graph_parts::arriving(const node_id& from, std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader in(head);
  (void)in.fixed<wire::kind>();
  const wire::crossing_head h = wire::take_crossing(in);
  in.end();
  const auto g = known(h.owner, h.graph);
  if (!g) return {};
  if (g->part->sender_of(h.crossing) != from) refuse_peer("a crossing that another node sends");
  if (g->part->bytes_of(h.crossing) != bytes) refuse_peer("a crossing of another size");
  const std::lock_guard hold(lock_);
  std::vector<std::byte>& to = coming_[{from, {head.begin(), head.end()}}];
  to.resize(static_cast<std::size_t>(bytes));
  return {std::span<std::byte>(to)};
}

void graph_parts::arrived(const node_id& from, std::span<const std::byte> head, bool whole) {
  net::reader in(head);
  (void)in.fixed<wire::kind>();
  const wire::crossing_head h = wire::take_crossing(in);
  std::vector<std::byte> bytes;
  {
    const std::lock_guard hold(lock_);
    const auto found = coming_.find({from, {head.begin(), head.end()}});
    if (found == coming_.end() || !whole) return;  // not whole: it comes again, or its sender is lost
    bytes = std::move(found->second);
    coming_.erase(found);
  }
  if (const auto g = known(h.owner, h.graph)) g->part->arrive(h.run, h.crossing, std::move(bytes), nullptr);
}

// ---- members --------------------------------------------------------------------------------------------------------

void graph_parts::lost(const node_id& who, const std::exception_ptr& why) {
  std::vector<std::shared_ptr<recorded_graph>> broken;
  std::vector<entry> gone;
  std::vector<key> unready;  // of owners that wait for an answer
  {
    const std::lock_guard hold(lock_);
    unsent_.erase(who);
    std::erase_if(coming_, [&](const auto& c) { return c.first.first == who; });
    for (auto& [graph, d] : defined_)
      if (std::erase(d.awaited, who) != 0 && !d.why_not) d.why_not = why;
    answered_.notify_all();
    for (auto it = parts_.begin(); it != parts_.end();) {
      entry& e = it->second;
      if (e.graph && std::ranges::count(e.graph->part->name().members, who) != 0) broken.push_back(e.graph);
      const bool is_theirs = it->first.first == who, is_missed = std::ranges::count(e.unlinked, who) != 0;
      if (is_missed && !is_theirs) unready.push_back(it->first);
      if (is_theirs || is_missed) gone.push_back(std::move(e));
      it = is_theirs || is_missed ? parts_.erase(it) : std::next(it);
    }
  }
  for (const auto& g : broken) g->part->break_off(why);
  for (const key& name : unready)
    answer(name.first, {name.second, false, 0, errc::unreachable,
                        "two nodes that have parts of the graph have no connection with each other"});
}

}  // namespace troupe::detail
