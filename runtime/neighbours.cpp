// What this file is for: members that come and go, and which of their messages is for whom.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/neighbours.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>

#include <troupe/error.hpp>

#include "actors/node_names.hpp"
#include "actors/offers.hpp"
#include "net/credentials/credentials.hpp"
#include "net/tcp/tcp.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

std::string own_name() {
  char host[256] = "node";
  gethostname(host, sizeof host - 1);
  return std::string(host) + "-" + std::to_string(getpid());
}

std::vector<net::endpoint> parsed(const std::vector<std::string>& texts, const char* what) {
  std::vector<net::endpoint> all;
  for (const std::string& t : texts) {
    const auto e = net::endpoint::parse(t);
    if (!e)
      throw error(errc::bad_argument, std::string("cluster_options::") + what + ": '" + t +
                                          "' is no address; it looks like 10.0.0.7:4711, [::1]:4711 or name:4711");
    all.push_back(*e);
  }
  return all;
}

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
  }
  return "it is gone";
}

}  // namespace

neighbours::neighbours(engine& house, const cluster_options& o, memory_space first_space) : house_(house), options_(o) {
  if (o.nodes_max < 1) throw error(errc::bad_argument, "cluster_options::nodes_max must be at least 1");
  net::identity self;
  self.id = net::node_id::random();
  self.incarnation = 1;
  self.name = o.node.empty() ? own_name() : o.node;
  self.cluster = o.name;
  seeds_ = parsed(o.join, "join");
  net::transport_options t;
  t.self = self;
  t.listen = parsed(o.listen, "listen");
  t.insecure_loopback = o.insecure_loopback;
  if (!o.secret_file.empty() || !o.certificate.empty() || !o.key.empty() || !o.authority.empty())
    t.proof = net::load({o.secret_file, o.certificate, o.key, o.authority}, o.name);
  transport_ = net::make_tcp(std::move(t));
  cluster_events& events = *this;
  cluster_ = std::make_unique<cluster>(*transport_, self, logic::membership_options{}, events);
  for (int i = 0; i < o.nodes_max; ++i) {
    executor_facts f;
    f.id = static_cast<std::uint16_t>(house.brain().facts().size());
    if (f.id >= logic::executors_max)
      throw error(errc::bad_argument, "more than 64 core groups, devices and nodes: lower cluster_options::nodes_max");
    f.name = "node:" + std::to_string(i);
    f.kind = device_kind::node;
    f.space = static_cast<memory_space>(first_space + i);
    places_.push_back(make_node(std::move(f), house.brain(), house.board(), house.link()));
    house.brain().add(*places_.back());
  }
}

neighbours::~neighbours() { stop(); }

void neighbours::start() {
  cluster_->start();
  started_ = true;
  if (!seeds_.empty()) cluster_->add_candidates(seeds_);
}

void neighbours::close_doors() {
  std::vector<peer_ptr> all;
  {
    std::lock_guard hold(lock_);
    closing_ = true;
    for (const auto& [id, p] : peers_) all.push_back(p);
  }
  for (const peer_ptr& p : all) p->guests->close_door();
}

bool neighbours::wait_released(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  return changed_.wait_until(hold, deadline, [&] {
    return std::ranges::all_of(peers_,
                               [](const auto& p) { return !p.second->place || p.second->guests->is_released(); });
  });
}

void neighbours::stop() {
  if (std::exchange(started_, false)) {
    std::promise<void> said;
    cluster_->leave([&] { said.set_value(); });
    said.get_future().wait();
  }
  transport_->stop();
  // Nothing is told after that: what is left has to be ended here.
  std::vector<peer_ptr> left;
  {
    std::lock_guard hold(lock_);
    for (auto& [id, p] : peers_) left.push_back(std::move(p));
    peers_.clear();
  }
  for (const peer_ptr& p : left)
    part(p, std::make_exception_ptr(error(errc::runtime_stopped, "this runtime was shut down")));
}

std::vector<node_report> neighbours::report() const {
  std::lock_guard hold(lock_);
  std::vector<node_report> all;
  for (const auto& [id, p] : peers_) {
    if (!p->place) continue;
    const net::identity& who = p->session->peer();
    node_report& r = all.emplace_back();
    r.name = who.name;
    r.id = who.id.text();
    if (!who.listens_on.empty()) r.address = who.listens_on.front().text();
    r.threads = static_cast<int>(p->card.threads);
    r.kernels = p->card.kernels.size();
    r.tasks = p->place->report().tasks;
    r.bytes_out = p->session->bytes_sent();
    r.bytes_in = p->session->bytes_received();
  }
  std::ranges::sort(all, {}, &node_report::name);
  return all;
}

std::vector<std::string> neighbours::addresses() const {
  std::vector<std::string> all;
  for (const net::endpoint& e : transport_->listening()) all.push_back(e.text());
  return all;
}

bool neighbours::wait_for(std::size_t nodes, std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock hold(lock_);
  const auto there = [](const auto& p) { return p.second->place != nullptr; };
  return changed_.wait_until(hold, deadline,
                             [&] { return static_cast<std::size_t>(std::ranges::count_if(peers_, there)) >= nodes; });
}

// ---- members --------------------------------------------------------------------------------------------------------

void neighbours::joined(const node_id& id, const std::shared_ptr<net::session>& s) {
  auto p = std::make_shared<peer>();
  p->session = s;
  p->guests = make_guest_house(house_, house_.brain(), house_.board(), house_.link(), s);
  {
    std::lock_guard hold(lock_);
    peers_.insert_or_assign(id, std::move(p));
    std::erase_if(leaving_, [](const auto& g) { return g->is_empty(); });
  }
  wire::card c;
  c.threads = static_cast<std::uint32_t>(house_.settings().threads);
  if (options_.take_work) c.kernels = offered_keys();
  net::writer frame;
  wire::put(frame, c);
  s->send(frame.view());
}

void neighbours::welcome(peer& p, const wire::card& c) {
  if (p.place) throw error(errc::bad_frame, "a second card");
  const auto free = std::ranges::find_if(places_, [](const auto& n) { return !n->is_there(); });
  if (free == places_.end())
    throw error(errc::no_resource, "there are as many nodes as cluster_options::nodes_max allows");
  if (options_.give_work) house_.kernels().offer((*free)->facts().id, {c.kernels.begin(), c.kernels.end()});
  (*free)->join(p.session, c);
  std::lock_guard hold(lock_);
  p.card = c;
  p.place = *free;
  changed_.notify_all();
  if (closing_) p.guests->close_door();
}

void neighbours::resumed(const node_id& id, const std::shared_ptr<net::session>& s) {
  if (const peer_ptr p = take(id))
    part(p, std::make_exception_ptr(error(errc::node_lost, "the connection to it broke")));
  joined(id, s);
}

void neighbours::suspected(const node_id& id) {
  if (const peer_ptr p = find(id); p && p->place) house_.brain().hold_back(*p->place, true);
}

void neighbours::refuted(const node_id& id) {
  if (const peer_ptr p = find(id); p && p->place) house_.brain().hold_back(*p->place, false);
}

void neighbours::lost(const node_id& id, logic::node_end why) {
  if (const peer_ptr p = take(id)) part(p, std::make_exception_ptr(error(errc::node_lost, text_of_end(why))));
}

void neighbours::part(const peer_ptr& p, const std::exception_ptr& why) {
  {
    std::lock_guard hold(lock_);
    leaving_.push_back(p->guests);
    changed_.notify_all();
  }
  p->guests->leave();
  if (!p->place) return;
  house_.kernels().offer(p->place->facts().id, {});
  p->place->lose(why);
}

neighbours::peer_ptr neighbours::find(const node_id& id) const {
  std::lock_guard hold(lock_);
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second;
}

neighbours::peer_ptr neighbours::take(const node_id& id) {
  std::lock_guard hold(lock_);
  const auto found = peers_.find(id);
  if (found == peers_.end()) return nullptr;
  peer_ptr p = std::move(found->second);
  peers_.erase(found);
  return p;
}

// ---- messages -------------------------------------------------------------------------------------------------------

void neighbours::frame(net::session& s, std::span<const std::byte> bytes) {
  const peer_ptr p = find(name_of(s.peer().id));
  if (!p || p->session.get() != &s) return;
  try {
    const wire::kind what = wire::kind_of(bytes);
    if (what == wire::kind::card) {
      net::reader from(bytes.subspan(1));
      welcome(*p, wire::take_card(from));
    } else if (is_for_guest_house(what)) {
      p->guests->frame(bytes);
      if (what == wire::kind::released) {
        std::lock_guard hold(lock_);
        changed_.notify_all();
      }
    } else if (p->place) {
      p->place->frame(bytes);
    } else {
      throw error(errc::bad_frame, "a message before the card");
    }
  } catch (...) {
    s.close(std::current_exception());
  }
}

net::pieces neighbours::arriving(net::session& s, std::span<const std::byte> head, std::uint64_t bytes) {
  const peer_ptr p = find(name_of(s.peer().id));
  if (!p || p->session.get() != &s) return {};
  try {
    if (is_for_guest_house(wire::kind_of(head))) return p->guests->arriving(head, bytes);
    if (p->place) return p->place->arriving(head, bytes);
  } catch (...) {
    s.close(std::current_exception());
  }
  return {};
}

void neighbours::arrived(net::session& s, std::span<const std::byte> head, bool whole) {
  const peer_ptr p = find(name_of(s.peer().id));
  if (!p || p->session.get() != &s) return;
  try {
    if (is_for_guest_house(wire::kind_of(head)))
      p->guests->arrived(head, whole);
    else if (p->place)
      p->place->arrived(head, whole);
  } catch (...) {
    s.close(std::current_exception());
  }
}

}  // namespace troupe::detail
