// What this file is for: members that come and go, and which of their messages is for whom.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/neighbours.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>

#include <troupe/error.hpp>

#include "actors/node_names.hpp"
#include "actors/offers.hpp"
#include "net/credentials/credentials.hpp"
#include "net/tcp/tcp.hpp"
#include "net/ucx/ucx.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

// As long as a busy node may be kept waiting for more work, so that it comes in batches.
constexpr std::chrono::microseconds a_moment{200};

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
    case logic::node_end::given_up:
      return "it was given up, because something that it sent could not be taken in";
  }
  return "it is gone";
}

}  // namespace

cluster_options with_environment(cluster_options o) {
  const auto text = [](const char* name) {
    const char* const v = std::getenv(name);
    return std::string(v ? v : "");
  };
  const auto list = [&](const char* name) {
    std::vector<std::string> all;
    const std::string from = text(name);
    for (std::size_t begin = 0; begin < from.size();) {
      const std::size_t end = std::min(from.find(',', begin), from.size());
      if (end != begin) all.push_back(from.substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  };
  if (!o.name.empty() || !o.from_environment) return o;
  o.name = text("TROUPE_CLUSTER");
  if (o.name.empty()) return o;
  o.node = text("TROUPE_NODE");
  o.listen = list("TROUPE_LISTEN");
  o.join = list("TROUPE_JOIN");
  o.multicast = text("TROUPE_MULTICAST") == "1";
  o.secret_file = text("TROUPE_SECRET_FILE");
  o.insecure_loopback = text("TROUPE_INSECURE_LOOPBACK") == "1";
  o.trusted_fabric = text("TROUPE_TRUSTED_FABRIC") == "1";
  return o;
}

neighbours::neighbours(engine& house, const cluster_options& o, memory_space first_space) : house_(house), options_(o) {
  if (o.nodes_max < 1) throw error(errc::bad_argument, "cluster_options::nodes_max must be at least 1");
  if (o.replay_max.count() < 0) throw error(errc::bad_argument, "cluster_options::replay_max must not be negative");
  net::identity self;
  const surroundings& around = house.around();
  self.id = around.make_id ? around.make_id() : net::node_id::random();
  self.incarnation = 1;
  self.name = o.node.empty() ? own_name() : o.node;
  self.cluster = o.name;
  self.listens_on = parsed(o.announce, "announce");
  where_.seeds = parsed(o.join, "join");
  where_.file = o.join_file;
  where_.names = parsed(o.join_names, "join_names");
  net::transport_options t;
  t.self = self;
  t.listen = parsed(o.listen, "listen");
  t.insecure_loopback = o.insecure_loopback;
  if (!o.secret_file.empty() || !o.certificate.empty() || !o.key.empty() || !o.authority.empty())
    t.proof = net::load({o.secret_file, o.certificate, o.key, o.authority}, o.name);
  if (o.multicast) {
    where_.multicast.emplace();
    where_.secrets = t.proof.secrets;
    if (!o.discovery_key_file.empty()) where_.secrets = net::read_secrets(o.discovery_key_file);
    if (where_.secrets.empty())
      throw error(errc::bad_argument,
                  "cluster_options::multicast: datagrams are signed with the cluster's secret; give secret_file, or "
                  "discovery_key_file where certificates are used");
  }
  where_.self = self;
  std::string why_not;  // without it all goes through sockets, which node_report shows
  if (around.make_transport)
    transport_ = around.make_transport(std::move(t));
  else
    transport_ = net::make_tcp(std::move(t), o.trusted_fabric ? net::open_ucx(why_not) : nullptr);
  cluster_events& events = *this;
  logic::membership_options m;
  std::memcpy(&m.seed, self.id.bytes.data(), sizeof m.seed);
  cluster_ = std::make_unique<cluster>(*transport_, self, m, events);
  for (int i = 0; i < o.nodes_max; ++i) {
    executor_facts f;
    f.id = static_cast<std::uint16_t>(house.brain().facts().size());
    if (f.id >= logic::executors_max)
      throw error(errc::bad_argument,
                  "more than 1,024 core groups, devices and nodes: lower cluster_options::nodes_max");
    f.name = "node:" + std::to_string(i);
    f.kind = device_kind::node;
    f.space = static_cast<memory_space>(first_space + i);
    places_.push_back(make_node(std::move(f), house.brain(), house.board(), house.link(),
                                [this](auto what) { transport_->at(transport_->now() + a_moment, std::move(what)); }));
    house.brain().add(*places_.back());
  }
  for (const auto& n : places_) n->meet(places_);
}

neighbours::~neighbours() { stop(); }

void neighbours::start() {
  cluster_->start();
  started_ = true;
  if (where_.seeds.empty() && where_.file.empty() && where_.names.empty() && !where_.multicast) return;
  if (where_.self.listens_on.empty()) where_.self.listens_on = transport_->listening();
  discovery_ = net::make_discovery(where_);
  discovery_->start([this](std::vector<net::endpoint> all) { cluster_->add_candidates(std::move(all)); });
}

void neighbours::look_at(std::vector<net::endpoint> all) { cluster_->add_candidates(std::move(all)); }

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
                               [](const auto& p) { return !p.second->has_card || p.second->guests->is_released(); });
  });
}

bool neighbours::bring_home(std::chrono::steady_clock::time_point deadline) {
  house_.brain().with_turn([] {});  // arrays that were dropped are on their way from here on
  for (const auto& n : places_) n->bring_home_lent();
  return std::ranges::all_of(places_, [&](const auto& n) { return n->wait_idle(deadline); });
}

void neighbours::stop() {
  if (discovery_) discovery_->stop();
  if (std::exchange(started_, false)) {
    std::promise<void> said;
    cluster_->leave([&] { said.set_value(); });
    const auto over = said.get_future();
    if (const auto& wait = house_.around().wait)
      wait([&] { return over.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    else
      over.wait();
  }
  transport_->stop();
  // Nothing is told after that: what is left has to be ended here.
  std::vector<peer_ptr> left;
  {
    std::lock_guard hold(lock_);
    for (auto& [id, p] : peers_) left.push_back(std::move(p));
    left.insert(left.end(), parting_.begin(), parting_.end());
    peers_.clear();
    parting_.clear();
    waiting_.clear();
  }
  for (const peer_ptr& p : left)
    part(p, std::make_exception_ptr(error(errc::runtime_stopped, "this runtime was shut down")));
}

std::vector<node_report> neighbours::report() const {
  std::lock_guard hold(lock_);
  std::vector<node_report> all;
  for (const auto& [id, p] : peers_) {
    if (!p->place) continue;
    const net::identity& who = p->line->peer();
    node_report& r = all.emplace_back();
    r.name = who.name;
    r.id = who.id.text();
    if (!who.listens_on.empty()) r.address = who.listens_on.front().text();
    r.threads = static_cast<int>(p->card.threads);
    r.kernels = p->card.kernels.size();
    r.tasks = p->place->report().tasks;
    r.bytes_out = p->line->bytes_sent();
    r.bytes_in = p->line->bytes_received();
    r.fabric_out = p->line->fabric_sent();
    r.fabric_in = p->line->fabric_received();
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
  p->all = this;
  p->line = std::make_shared<net::lasting_session>(s);
  p->over = s.get();
  p->guests = make_guest_house(house_, house_.brain(), house_.board(), house_.link(), p->line,
                               [this](const node_id& n) -> std::shared_ptr<net::session> {
                                 const peer_ptr other = find(n);
                                 return other ? other->line : nullptr;
                               });
  {
    std::lock_guard hold(lock_);
    peers_.insert_or_assign(id, p);
    std::erase_if(leaving_, [](const auto& g) { return g->is_empty(); });
  }
  wire::card c;
  c.threads = static_cast<std::uint32_t>(house_.settings().threads);
  c.lends = house_.settings().memory_bytes == 0;
  if (options_.take_work) c.kernels = offered_keys();
  net::writer frame;
  wire::put(frame, c);
  p->line->send(frame.view());
}

void neighbours::welcome(peer& p, const wire::card& c) {
  {
    std::lock_guard hold(lock_);
    if (p.has_card) throw error(errc::bad_frame, "a second card");
    p.card = c;
    p.has_card = true;
    if (closing_) p.guests->close_door();
  }
  give_place(p);
}

// Those beyond cluster_options::nodes_max wait until somebody goes: they are members, and may send tasks here.
void neighbours::give_place(peer& p) {
  if (p.leaves) return;
  const auto free = std::ranges::find_if(places_, [](const auto& n) { return !n->is_there(); });
  if (free == places_.end()) {
    std::lock_guard hold(lock_);
    waiting_.push_back(&p);
    return;
  }
  if (options_.give_work) house_.kernels().offer((*free)->facts().id, {p.card.kernels.begin(), p.card.kernels.end()});
  (*free)->join(p.line, p.card);
  if (p.suspect) (*free)->suspect(true);
  std::lock_guard hold(lock_);
  p.place = *free;
  changed_.notify_all();
}

// Nothing is lost: what was under way comes over this connection.
void neighbours::resumed(const node_id& id, const std::shared_ptr<net::session>& s) {
  const peer_ptr p = find(id);
  if (!p) return joined(id, s);
  {
    std::lock_guard hold(lock_);
    p->over = s.get();
  }
  p->line->attach(s);
  suspect(*p, false);
}

void neighbours::suspected(const node_id& id) {
  if (const peer_ptr p = find(id)) suspect(*p, true);
}

void neighbours::refuted(const node_id& id) {
  if (const peer_ptr p = find(id)) suspect(*p, false);
}

void neighbours::suspect(peer& p, bool is) {
  p.suspect = is;
  if (p.place) p.place->suspect(is);
}

// Its connection may still be reading from and writing to memory of this node: first that has to end.
void neighbours::lost(const node_id& id, logic::node_end end) {
  const peer_ptr p = take(id);
  if (!p) return;
  const auto why = std::make_exception_ptr(error(errc::node_lost, text_of_end(end)));
  {
    std::lock_guard hold(lock_);
    p->gone = why;
    if (p->over) parting_.push_back(p);
  }
  if (p->over)
    p->line->close(why);
  else
    part(p, why);
}

void neighbours::ended(net::session& s) {
  peer_ptr gone;
  {
    std::lock_guard hold(lock_);
    for (const auto& [id, p] : peers_)
      if (p->over == &s) p->over = nullptr;
    const auto p = std::ranges::find_if(parting_, [&](const auto& x) { return x->over == &s; });
    if (p != parting_.end()) {
      gone = *p;
      gone->over = nullptr;
      parting_.erase(p);
    }
  }
  if (gone) part(gone, gone->gone);
}

void neighbours::part(const peer_ptr& p, const std::exception_ptr& why) {
  {
    std::lock_guard hold(lock_);
    leaving_.push_back(p->guests);
    std::erase(waiting_, p.get());
    changed_.notify_all();
  }
  p->line->end();
  p->guests->leave();
  for (const auto& g : guest_houses()) g->lost(name_of(p->line->peer().id));
  if (!p->place) return;
  house_.kernels().offer(p->place->facts().id, {});
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

std::vector<std::shared_ptr<guest_house>> neighbours::guest_houses() const {
  std::lock_guard hold(lock_);
  std::vector<std::shared_ptr<guest_house>> all;
  for (const auto& [id, p] : peers_) all.push_back(p->guests);
  all.insert(all.end(), leaving_.begin(), leaving_.end());
  return all;
}

// Also of an owner that has gone: what was on its way when it went goes on being written, and is sent again after a reset.
std::vector<std::shared_ptr<guest_house>> neighbours::guests_of(const node_id& owner) const {
  std::vector<std::shared_ptr<guest_house>> all = guest_houses();
  std::erase_if(all, [&](const auto& g) { return g->owner() != owner; });
  return all;
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
  std::erase(waiting_, p.get());
  return p;
}

std::shared_ptr<node> neighbours::place_of(const peer& p) const {
  std::lock_guard hold(lock_);
  return p.place;
}

neighbours::peer_ptr neighbours::find(net::session& s) const {
  std::lock_guard hold(lock_);
  for (const auto& [id, p] : peers_)
    if (p->over == &s) return p;
  return nullptr;
}

// Something of what it said is lost: another connection would go on without it, and somebody would wait for ever.
void neighbours::give_up(net::session& s, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    if (e.code() != errc::no_resource) cluster_->give_up(name_of(s.peer().id));
  } catch (...) {
    cluster_->give_up(name_of(s.peer().id));
  }
  s.close(why);
}

// ---- messages -------------------------------------------------------------------------------------------------------

void neighbours::frame(net::session& s, std::span<const std::byte> bytes) {
  const peer_ptr p = find(s);
  if (!p) return;
  try {
    p->line->take(s, bytes, *p);
  } catch (...) {
    give_up(s, std::current_exception());
  }
}

net::pieces neighbours::arriving(net::session& s, std::span<const std::byte> head, std::uint64_t bytes) {
  const peer_ptr p = find(s);
  if (!p) return {};
  try {
    return p->line->arriving(s, head, bytes, *p);
  } catch (...) {
    s.close(std::current_exception());
    return {};
  }
}

void neighbours::arrived(net::session& s, std::span<const std::byte> head, bool whole) {
  const peer_ptr p = find(s);
  if (!p) return;
  try {
    p->line->arrived(s, head, whole, *p);
  } catch (...) {
    give_up(s, std::current_exception());
  }
}

void neighbours::peer::frame(std::span<const std::byte> bytes) {
  const wire::kind what = wire::kind_of(bytes);
  if (what == wire::kind::card) {
    net::reader from(bytes.subspan(1));
    all->welcome(*this, wire::take_card(from));
  } else if (is_for_guest_house(what)) {
    guests->frame(bytes);
    if (what == wire::kind::released) {
      std::lock_guard hold(all->lock_);
      all->changed_.notify_all();
    }
  } else if (what == wire::kind::pull) {
    net::reader from(bytes.subspan(1));
    const wire::pull_request r = wire::take_pull(from);
    if (const peer_ptr owner = all->find(r.owner)) {
      owner->guests->pull(r, line);
    } else {
      net::writer frame;
      wire::put(frame, wire::pull_refusal{r.owner, r.lent, r.number, "its owner is not known here"});
      line->send(frame.view());
    }
  } else if (what == wire::kind::cannot_pull) {
    net::reader from(bytes.subspan(1));
    const wire::pull_refusal r = wire::take_pull_refusal(from);
    if (const peer_ptr owner = all->find(r.owner)) owner->guests->cannot_pull(r, name_of(line->peer().id));
  } else if (place) {
    place->frame(bytes);
  } else if (what == wire::kind::leaving && has_card) {  // nothing of this node's is there
    {
      std::lock_guard hold(all->lock_);
      leaves = true;
      std::erase(all->waiting_, this);
    }
    net::writer frame;
    frame.fixed(wire::kind::released);
    line->send(frame.view());
  } else {
    throw error(errc::bad_frame, "a message before the card");
  }
}

net::pieces neighbours::peer::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  if (is_for_guest_house(wire::kind_of(head))) return guests->arriving(head, bytes);
  if (wire::kind_of(head) == wire::kind::bytes_pulled) {
    const wire::pulled_head h = wire::take_pulled_head(head);
    for (const auto& g : all->guests_of(h.owner))
      if (auto to = g->pulled_arriving(h, bytes, name_of(line->peer().id)); !to.empty()) return to;
    return {};
  }
  const std::shared_ptr<node> to = all->place_of(*this);
  return to ? to->arriving(head, bytes) : net::pieces();
}

void neighbours::peer::arrived(std::span<const std::byte> head) {
  if (is_for_guest_house(wire::kind_of(head)))
    guests->arrived(head, true);
  else if (wire::kind_of(head) == wire::kind::bytes_pulled) {
    const wire::pulled_head h = wire::take_pulled_head(head);
    for (const auto& g : all->guests_of(h.owner)) g->pulled_arrived(h, name_of(line->peer().id));
  } else if (const std::shared_ptr<node> to = all->place_of(*this))
    to->arrived(head, true);
}

}  // namespace troupe::detail
