// What this file is for: which part of the node each message of a member is for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/error.hpp>

#include "actors/wire/node_names.hpp"
#include "actors/wire/rows.hpp"
#include "runtime/cluster/node_set.hpp"

namespace troupe::detail {

namespace {
bool is_check(wire::kind k) { return k == wire::kind::check || k == wire::kind::checked; }
}  // namespace

void node_set::frame(net::session& s, std::span<const std::byte> bytes) {
  const peer_ptr p = find(s);
  if (!p) return;
  try {
    p->line->take(s, bytes, *p);
  } catch (...) {
    give_up(s, std::current_exception());
  }
}

net::pieces node_set::arriving(net::session& s, std::span<const std::byte> head, std::uint64_t bytes) {
  const peer_ptr p = find(s);
  if (!p) return {};
  try {
    return p->line->arriving(s, head, bytes, *p);
  } catch (const error&) {
    give_up(s, std::current_exception());  // the same bytes would come again over another connection
    return {};
  } catch (...) {
    s.close(std::current_exception());
    return {};
  }
}

void node_set::arrived(net::session& s, std::span<const std::byte> head, bool whole) {
  const peer_ptr p = find(s);
  if (!p) return;
  try {
    p->line->arrived(s, head, whole, *p);
  } catch (...) {
    give_up(s, std::current_exception());
  }
}

void node_set::peer::frame(std::span<const std::byte> bytes) {
  const wire::kind what = wire::kind_of(bytes);
  if (what == wire::kind::node_descriptor) {
    net::reader from(bytes.subspan(1));
    all->welcome(*this, wire::take_node_descriptor(from));
  } else if (is_for_node_service(what)) {
    service->frame(bytes);
    if (what == wire::kind::released) {
      std::lock_guard hold(all->lock_);
      all->changed_.notify_all();
    }
  } else if (what >= wire::kind::load && what <= wire::kind::described && has_descriptor) {
    net::reader from(bytes.subspan(1));
    all->hear(*this, what, from);
  } else if (what == wire::kind::pull) {
    net::reader from(bytes.subspan(1));
    const wire::pull_request r = wire::take_pull(from);
    if (const peer_ptr owner = all->find(r.owner)) {
      owner->service->pull(r, line);
    } else {
      net::writer frame;
      wire::put(frame, wire::pull_refusal{r.owner, r.lent, r.number, "its owner is not known here"});
      line->send(frame.view());
    }
  } else if (what == wire::kind::cannot_pull) {
    net::reader from(bytes.subspan(1));
    const wire::pull_refusal r = wire::take_pull_refusal(from);
    if (const peer_ptr owner = all->find(r.owner)) owner->service->cannot_pull(r, name_of(line->peer().id));
  } else if (what == wire::kind::bytes_pulled) {  // few: the head and the bytes in one
    net::reader from(bytes.subspan(1));
    wire::pulled_head h;
    h.number = from.varint();
    h.owner = wire::take_node(from);
    h.lent = from.varint();
    const std::span<const std::byte> body = from.bytes();
    from.end();
    const node_id sender = name_of(line->peer().id);
    for (const auto& g : all->services_of(h.owner)) {
      const net::pieces to = g->pulled_arriving(h, body.size(), sender);
      if (to.empty()) continue;
      copy_into(to, body.data());
      return g->pulled_arrived(h, sender, true);
    }
  } else if (graph_parts::is_for_parts(what)) {
    all->parts().frame(name_of(line->peer().id), bytes);
  } else if (place) {
    place->frame(bytes);
  } else if (what == wire::kind::leaving && has_descriptor) {  // nothing of this node's is there
    {
      std::lock_guard hold(all->lock_);
      leaves = true;
      std::erase(all->waiting_, this);
    }
    net::writer frame;
    frame.fixed(wire::kind::released);
    line->send(frame.view());
  } else {
    throw error(errc::protocol_error, "a message before the descriptor");
  }
}

net::pieces node_set::peer::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  if (is_for_node_service(wire::kind_of(head))) return service->arriving(head, bytes);
  if (wire::kind_of(head) == wire::kind::bytes_pulled) {
    const wire::pulled_head h = wire::take_pulled_head(head);
    for (const auto& g : all->services_of(h.owner))
      if (auto to = g->pulled_arriving(h, bytes, name_of(line->peer().id)); !to.empty()) return to;
    return {};
  }
  if (wire::kind_of(head) == wire::kind::crossing) return all->parts().arriving(name_of(line->peer().id), head, bytes);
  if (is_check(wire::kind_of(head))) return all->check_arriving(*this, wire::kind_of(head), bytes);
  const std::shared_ptr<node> to = all->place_of(*this);
  return to ? to->arriving(head, bytes) : net::pieces();
}

void node_set::peer::arrived(std::span<const std::byte> head, bool whole) {
  if (is_for_node_service(wire::kind_of(head)))
    service->arrived(head, whole);
  else if (wire::kind_of(head) == wire::kind::bytes_pulled) {
    const wire::pulled_head h = wire::take_pulled_head(head);
    for (const auto& g : all->services_of(h.owner)) g->pulled_arrived(h, name_of(line->peer().id), whole);
  } else if (wire::kind_of(head) == wire::kind::crossing) {
    all->parts().arrived(name_of(line->peer().id), head, whole);
  } else if (is_check(wire::kind_of(head))) {
    all->check_arrived(*this, head, whole);
  } else if (const std::shared_ptr<node> to = all->place_of(*this))
    to->arrived(head, whole);
}

}  // namespace troupe::detail
