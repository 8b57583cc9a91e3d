// What this file is for: members that come and go: their lines, their places among the executors, their ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/node_names.hpp"
#include "runtime/cluster/node_set.hpp"
#include "runtime/deadlines.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

// Nodes that know of each other are connected within milliseconds; those that cannot reach each other never are.
constexpr std::chrono::seconds link_wait{2};
// Partials that are added up wait so long for more.
constexpr std::chrono::milliseconds sum_wait{20};

const char* text_of_end(logic::node_end why) {
  switch (why) {
    case logic::node_end::left:
      return "it has left";
    case logic::node_end::ended:
      return "its process has ended";
    case logic::node_end::silent:
      return "nothing was heard of it";
    case logic::node_end::replaced:
      return "another process has taken its place";
    case logic::node_end::said:
      return "others found that it is gone";
    case logic::node_end::forgot_us:
      return "it had given this node up";
    case logic::node_end::given_up:
      return "it was given up, because something that it sent could not be taken in, or what it was to send did not "
             "come";
    case logic::node_end::let_go:
      return "there was no use for the connection with it";
  }
  return "it is gone";
}

}  // namespace

void node_set::joined(const node_id& id, const std::shared_ptr<net::session>& s) {
  // Gives up a peer with small frames: a message that does not fit would be lost, and its receiver would wait for ever.
  if (s->frame_max() < wire::frame_max_least) {
    cluster_->give_up(id);
    return s->close(std::make_exception_ptr(
        error(errc::refused, "the peer takes frames of " + std::to_string(s->frame_max()) + " bytes only")));
  }
  auto p = std::make_shared<peer>();
  p->all = this;
  p->line = std::make_shared<net::lasting_session>(s, [this] { return transport_->now(); });
  p->over = s.get();
  p->service = make_node_service(
      engine_, engine_.placement_actor(), engine_.board(), engine_.state(), p->line,
      [this, of = std::weak_ptr(p)](const node_id& n) {
        return line_to(n, [of, n] {
          if (const peer_ptr owner = of.lock()) owner->service->give_up_link(n);
        });
      },
      [this, id](std::uint64_t graph) { return graph_parts_->find(id, graph); },
      [this, of = std::weak_ptr(p)] {
        engine_.timers()->add(sum_wait, [of] {
          if (const peer_ptr owner = of.lock()) owner->service->close_sums();
        });
      },
      [this, id](auto) { cluster_->give_up(id); });
  supervise(p->service);
  {
    std::lock_guard hold(lock_);
    peers_.insert_or_assign(id, p);
    std::erase_if(leaving_, [](const auto& g) { return g->is_empty(); });
  }
  wire::node_descriptor c;
  c.threads = static_cast<std::uint32_t>(engine_.settings().threads);
  c.lends = engine_.settings().memory_bytes == 0;
  c.resources = engine_.settings().resources;
  if (options_.take_work) {
    c.kernels = offered_keys();
    c.kernels.insert(std::ranges::lower_bound(c.kernels, graph_part_kernel.key), graph_part_kernel.key);
  }
  net::writer frame;
  wire::put(frame, c);
  p->line->send(frame.view());
  cluster_->work_with(id);  // the two nodes' state about each other lasts until one of them is gone
  for (const auto& g : node_services()) g->linked(id);
  graph_parts_->linked(id);
}

// Returns the session with a node. Null: there is none; it is made, and `too_late` called if it is not there by then.
std::shared_ptr<net::session> node_set::line_to(const node_id& n, std::function<void()> too_late) {
  if (const peer_ptr other = find(n)) return other->line;
  cluster_->reach(n);
  engine_.timers()->add(link_wait, std::move(too_late));
  return nullptr;
}

node_id node_set::part_host(std::uint16_t executor) const {
  std::lock_guard hold(lock_);
  for (const auto& [id, p] : peers_) {
    if (!p->place || p->place->facts().id != executor) continue;
    if (!p->descriptor.lends)
      throw error(errc::not_supported, "node '" + p->line->peer().name +
                                           "' has a memory budget, and gets no part of a graph over several nodes");
    return id;
  }
  throw error(errc::node_lost, "a node that is to have a part of the graph has gone");
}

void node_set::welcome(peer& p, const wire::node_descriptor& c) {
  {
    std::lock_guard hold(lock_);
    if (p.has_descriptor) throw error(errc::protocol_error, "a second descriptor");
    p.descriptor = c;
    p.has_descriptor = true;
    if (closing_) p.service->close_intake();
  }
  give_place(p);
}

// Gives the member a place among the executors. Members beyond cluster_options::nodes_max wait for a free place: they
// are members, and may send tasks here.
void node_set::give_place(peer& p) {
  if (p.leaves) return;
  const auto free = std::ranges::find_if(places_, [](const auto& n) { return !n->is_there(); });
  if (free == places_.end()) {
    std::lock_guard hold(lock_);
    waiting_.push_back(&p);
    return;
  }
  if (options_.give_work)
    engine_.kernels().offer((*free)->facts().id, {p.descriptor.kernels.begin(), p.descriptor.kernels.end()});
  (*free)->join(p.line, p.descriptor);
  if (p.suspect) (*free)->suspect(true);
  std::lock_guard hold(lock_);
  p.place = *free;
  ++came_;
  changed_.notify_all();
}

// Takes the new connection of a member; nothing is lost: messages under way come over this connection.
void node_set::resumed(const node_id& id, const std::shared_ptr<net::session>& s) {
  const peer_ptr p = find(id);
  if (!p) return joined(id, s);
  {
    std::lock_guard hold(lock_);
    p->over = s.get();
  }
  p->line->attach(s);
  suspect(*p, false);
}

void node_set::suspected(const node_id& id) {
  if (const peer_ptr p = find(id)) suspect(*p, true);
}

void node_set::refuted(const node_id& id) {
  if (const peer_ptr p = find(id)) suspect(*p, false);
}

void node_set::suspect(peer& p, bool is) {
  p.suspect = is;
  if (p.place) p.place->suspect(is);
}

// Ends a member that is gone. Its connection may still be reading from and writing to memory of this node: that has to
// end first.
void node_set::lost(const node_id& id, logic::node_end end) {
  const auto why = std::make_exception_ptr(error(errc::node_lost, text_of_end(end)));
  peer_ptr p;
  {
    std::lock_guard hold(lock_);
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    p = std::move(found->second);
    peers_.erase(found);
    std::erase(waiting_, p.get());
    p->gone = why;
    if (p->over)
      parting_.push_back(p);
    else
      leaving_.push_back(p->service);
  }
  if (p->over)
    p->line->close(why);
  else
    part(p, why);
}

void node_set::ended(net::session& s) {
  peer_ptr gone;
  {
    std::lock_guard hold(lock_);
    for (const auto& [id, p] : peers_)
      if (p->over == &s) p->over = nullptr;
    const auto p = std::ranges::find_if(parting_, [&](const auto& x) { return x->over == &s; });
    if (p != parting_.end()) {
      gone = *p;
      gone->over = nullptr;
      leaving_.push_back(gone->service);
      parting_.erase(p);
    }
  }
  if (gone) part(gone, gone->gone);
}

void node_set::part(const peer_ptr& p, const std::exception_ptr& why) {
  {
    std::lock_guard hold(lock_);
    std::erase(waiting_, p.get());
    surveys_.lose(name_of(p->line->peer().id));
    changed_.notify_all();
  }
  p->line->end();
  p->service->leave();
  for (const auto& g : node_services()) g->lost(name_of(p->line->peer().id));
  graph_parts_->lost(name_of(p->line->peer().id),
                     std::make_exception_ptr(
                         error(failure_code(why), "node '" + p->line->peer().name +
                                                      "', which has a part of the graph, is gone: " + text_of(why))));
  if (!p->place) return;
  engine_.kernels().offer(p->place->facts().id, {});
  p->place->lose(why);
  peer* next = nullptr;
  {
    std::lock_guard hold(lock_);
    if (waiting_.empty()) return;
    next = waiting_.front();
    waiting_.pop_front();
  }
  give_place(*next);
}

// Returns the node services of all peers, also of one whose connection is still ending: data that a third node sends
// there may never come.
std::vector<std::shared_ptr<node_service>> node_set::node_services() const {
  std::lock_guard hold(lock_);
  std::vector<std::shared_ptr<node_service>> all;
  for (const auto& [id, p] : peers_) all.push_back(p->service);
  for (const peer_ptr& p : parting_) all.push_back(p->service);
  all.insert(all.end(), leaving_.begin(), leaving_.end());
  return all;
}

// Returns the node services of an owner, also of one that is gone: data under way when it went is still written, and
// sent again after a reset.
std::vector<std::shared_ptr<node_service>> node_set::services_of(const node_id& owner) const {
  std::vector<std::shared_ptr<node_service>> all = node_services();
  std::erase_if(all, [&](const auto& g) { return g->owner() != owner; });
  return all;
}

node_set::peer_ptr node_set::find(const node_id& id) const {
  std::lock_guard hold(lock_);
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second;
}

std::shared_ptr<node> node_set::place_of(const peer& p) const {
  std::lock_guard hold(lock_);
  return p.place;
}

node_set::peer_ptr node_set::find(net::session& s) const {
  std::lock_guard hold(lock_);
  for (const auto& [id, p] : peers_)
    if (p->over == &s) return p;
  return nullptr;
}

// Gives up a member of whose messages something is lost: another connection would go on without it, and a receiver
// would wait for ever.
void node_set::give_up(net::session& s, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    if (e.code() != errc::no_resource) cluster_->give_up(name_of(s.peer().id));
  } catch (...) {
    cluster_->give_up(name_of(s.peer().id));
  }
  s.close(why);
}

void node_set::give_up(const node& place) {
  std::unique_lock hold(lock_);
  const auto there = std::ranges::find_if(peers_, [&](const auto& p) { return p.second->place.get() == &place; });
  if (there == peers_.end()) return;
  const node_id id = there->first;
  hold.unlock();
  cluster_->give_up(id);
}

// Has an actor supervised. In imagined time there is no supervisor, and a failure withdraws the actor at once.
void node_set::supervise(const std::shared_ptr<actor>& a) {
  if (control* const c = engine_.supervision()) a->supervise(c->watch(a));
}

}  // namespace troupe::detail
