// What this file is for: a runtime's part in a cluster: made from its options, started, asked, ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cluster/node_set.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>

#include <troupe/error.hpp>

#include "actors/placement/placement.hpp"
#include "actors/wire/node_names.hpp"
#include "net/credentials/credentials.hpp"
#include "net/tcp/tcp.hpp"
#include "net/ucx/ucx.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

// Delay before more work is sent to a busy node, so that it goes in batches.
constexpr std::chrono::microseconds a_moment{200};

std::string own_name() {
  char host[256] = "node";
  gethostname(host, sizeof host - 1);
  static std::atomic<int> given{0};  // one process may be several nodes
  const int before = given.fetch_add(1);
  return std::string(host) + "-" + std::to_string(getpid()) + (before == 0 ? "" : "-" + std::to_string(before + 1));
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

net::identity make_identity(const cluster_options& o, const runtime_environment& around) {
  net::identity self;
  self.id = around.make_id ? around.make_id() : net::node_id::random();
  self.incarnation = 1;
  self.name = o.node_name.empty() ? own_name() : o.node_name;
  self.cluster = o.cluster_name;
  self.listens_on = parsed(o.announce, "announce");
  return self;
}

// Gives the node the name that its certificate has, if it has one: peers take it from there.
void take_certified_name(net::identity& self, const cluster_options& o, const net::credentials& proof) {
  if (proof.certificate.empty()) return;
  const auto names = net::node_names_in(proof.certificate);
  if (o.node_name.empty() && !names.empty()) self.name = names.front();
  if (!o.node_name.empty() && !names.empty() && std::ranges::find(names, o.node_name) == names.end())
    throw error(errc::bad_argument, "cluster_options::node_name: the certificate '" + o.certificate + "' is node '" +
                                        names.front() + "', not '" + o.node_name +
                                        "': leave the name out, or issue a certificate for it");
}

}  // namespace

node_set::node_set(engine& the_engine, const cluster_options& o, memory_space first_space)
    : engine_(the_engine), options_(o) {
  if (o.nodes_max < 1) throw error(errc::bad_argument, "cluster_options::nodes_max must be at least 1");
  if (o.spin.count() < 0) throw error(errc::bad_argument, "cluster_options::spin must not be negative");
  if (o.link_check_after.count() < 0)
    throw error(errc::bad_argument, "cluster_options::link_check_after must not be negative");
  if (o.replay_max.count() < 0) throw error(errc::bad_argument, "cluster_options::replay_max must not be negative");
  const runtime_environment& around = the_engine.around();
  net::identity self = make_identity(o, around);
  where_.seeds = parsed(o.join, "join");
  where_.file = o.join_file;
  where_.names = parsed(o.join_dns, "join_dns");
  net::transport_options t;
  t.listen = parsed(o.listen, "listen");
  t.insecure_loopback = o.insecure_loopback;
  t.looks = o.spin;
  if (!o.secret_file.empty() || !o.certificate.empty() || !o.key.empty() || !o.authority.empty())
    t.proof = net::load({o.secret_file, o.certificate, o.key, o.authority}, o.cluster_name);
  take_certified_name(self, o, t.proof);
  t.self = self;
  if (o.multicast) use_multicast(o, t.proof);
  where_.self = self;
  if (around.make_transport)
    transport_ = around.make_transport(std::move(t));
  else
    transport_ = net::make_tcp(std::move(t), open_fabric());
  made_ = transport_->now();
  graph_parts_ = std::make_unique<graph_parts>(
      engine_, name_of(self.id), self.name,
      graph_parts::lines{
          [this](const node_id& n) -> std::shared_ptr<net::session> {
            const peer_ptr p = find(n);
            return p ? p->line : nullptr;
          },
          [this](const node_id& n) { return line_to(n, [this, n] { graph_parts_->give_up_link(n); }); }});
  cluster_events& events = *this;
  logic::membership_options m;
  std::memcpy(&m.seed, self.id.bytes.data(), sizeof m.seed);
  cluster_ = std::make_unique<cluster>(*transport_, self, m, events);
  supervise(std::shared_ptr<actor>(the_engine.shared_from_this(), cluster_.get()));
  add_places(o.nodes_max, first_space);
}

void node_set::use_multicast(const cluster_options& o, const net::credentials& proof) {
  where_.multicast.emplace();
  where_.secrets = o.discovery_key_file.empty() ? proof.secrets : net::read_secrets(o.discovery_key_file);
  if (where_.secrets.empty())
    throw error(errc::bad_argument,
                "cluster_options::multicast: datagrams are signed with the cluster's secret; give secret_file, or "
                "discovery_key_file where certificates are used");
}

// Adds executors for nodes that come.
void node_set::add_places(int count, memory_space first_space) {
  placement& p = engine_.placement_actor();
  for (int i = 0; i < count; ++i) {
    executor_facts f;
    f.id = static_cast<std::uint16_t>(p.facts().size());
    if (f.id >= logic::executors_max)
      throw error(errc::bad_argument,
                  "more than 1,024 core groups, devices and nodes: lower cluster_options::nodes_max");
    f.name = "node:" + std::to_string(i);
    f.kind = device_kind::node;
    f.space = static_cast<memory_space>(first_space + i);
    places_.push_back(make_node(
        std::move(f), p, engine_.board(), engine_.state(),
        [this](auto what) { transport_->at(transport_->now() + a_moment, std::move(what)); },
        [this, i = static_cast<std::size_t>(i)](auto) { give_up(*places_[i]); }));
    supervise(places_.back());
    p.add(*places_.back());
  }
  for (const auto& n : places_) n->meet(places_);
}

node_set::~node_set() { stop(); }

// Opens the fabric for long bodies; null: all bytes go through sockets.
std::unique_ptr<net::bulk_fabric> node_set::open_fabric() {
  bulk_ = "sockets";
  if (!options_.trusted_fabric) return nullptr;
  std::string why_not;
  auto fabric = net::open_ucx(why_not, engine_.settings().plugin_folders);
  // A reader of a table needs only the beginning of the kind: "ucx 1.13".
  bulk_ = fabric ? fabric->kind().substr(0, fabric->kind().find(" parts")) : "sockets, without UCX: " + why_not;
  return fabric;
}

void node_set::start() {
  cluster_->start();
  started_ = true;
  transport_->at(transport_->now(), [this] { tell_again(); });
  if (where_.seeds.empty() && where_.file.empty() && where_.names.empty() && !where_.multicast) return;
  if (where_.self.listens_on.empty()) where_.self.listens_on = transport_->listening();
  discovery_ = net::make_discovery(where_);
  discovery_->start([this](std::vector<net::endpoint> all) { cluster_->add_candidates(std::move(all)); });
}

void node_set::look_at(std::vector<net::endpoint> all) { cluster_->add_candidates(std::move(all)); }

void node_set::close_intake() {
  std::vector<peer_ptr> all;
  {
    std::lock_guard hold(lock_);
    closing_ = true;
    changed_.notify_all();
    for (const auto& [id, p] : peers_) all.push_back(p);
  }
  for (const peer_ptr& p : all) p->service->close_intake();
}

bool node_set::wait_released(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  return changed_.wait_until(hold, deadline, [&] {
    return std::ranges::all_of(
        peers_, [](const auto& p) { return !p.second->has_descriptor || p.second->service->is_released(); });
  });
}

bool node_set::bring_home(std::chrono::steady_clock::time_point deadline) {
  engine_.placement_actor().with_turn([] {});  // from here on, arrays that were dropped are on their way
  for (const auto& n : places_) n->bring_home_lent();
  return std::ranges::all_of(places_, [&](const auto& n) { return n->wait_idle(deadline); });
}

void node_set::failed(std::exception_ptr why) {
  leaver_.start(
      "leaves", engine_.shared_from_this(), [this, why] { end_all(why); }, nullptr);
}

// Ends all sessions without a goodbye: membership has failed. The runtime goes on alone.
void node_set::end_all(const std::exception_ptr& why) {
  std::lock_guard hold(ending_);
  if (!std::exchange(started_, false)) return;
  if (discovery_) discovery_->stop();
  transport_->stop();
  part_all(why);
}

void node_set::stop() {
  {
    std::lock_guard hold(ending_);
    stop_all();
  }
  leaver_.join();
}

void node_set::stop_all() {
  if (discovery_) discovery_->stop();
  if (std::exchange(started_, false)) {
    std::promise<void> said;
    cluster_->leave([&] { said.set_value(); });
    const auto over = said.get_future();
    if (const auto& wait = engine_.around().wait)
      wait([&] { return over.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    else
      over.wait();
  }
  transport_->stop();
  part_all(std::make_exception_ptr(error(errc::runtime_stopped, "this runtime was shut down")));
}

// Ends the peers that are left. No event comes after the transport's end.
void node_set::part_all(const std::exception_ptr& why) {
  std::vector<peer_ptr> left;
  {
    std::lock_guard hold(lock_);
    for (auto& [id, p] : peers_) left.push_back(std::move(p));
    left.insert(left.end(), parting_.begin(), parting_.end());
    peers_.clear();
    parting_.clear();
    waiting_.clear();
    for (const peer_ptr& p : left) leaving_.push_back(p->service);
  }
  for (const peer_ptr& p : left) part(p, why);
}

std::vector<std::shared_ptr<actor>> node_set::node_actors() const {
  std::lock_guard hold(lock_);
  std::vector<std::shared_ptr<actor>> all;
  for (const auto& [id, p] : peers_)
    if (p->place) all.push_back(p->place);
  return all;
}

std::vector<std::shared_ptr<actor>> node_set::service_actors() const {
  std::lock_guard hold(lock_);
  std::vector<std::shared_ptr<actor>> all;
  for (const auto& [id, p] : peers_)
    if (p->place) all.push_back(p->service);
  return all;
}

bool node_set::is_succeeded(const peer& p) const {
  if (p.over && !p.suspect) return false;
  const net::identity& who = p.line->peer();
  return std::ranges::any_of(peers_, [&](const auto& other) {
    const peer& o = *other.second;
    return &o != &p && o.over && !o.suspect && o.line->peer().name == who.name;
  });
}

std::vector<node_report> node_set::report() const {
  std::lock_guard hold(lock_);
  std::vector<node_report> all;
  for (const auto& [id, p] : peers_) {
    if (!p->place || is_succeeded(*p)) continue;
    const net::identity& who = p->line->peer();
    node_report& r = all.emplace_back();
    r.name = who.name;
    r.id = who.id.text();
    if (!who.listens_on.empty()) r.address = who.listens_on.front().text();
    r.threads = static_cast<int>(p->descriptor.threads);
    r.kernels = p->descriptor.kernels.size();
    r.tasks = p->place->report().tasks;
    r.bytes_out = p->line->bytes_sent();
    r.bytes_in = p->line->bytes_received();
    r.fabric_out = p->line->fabric_sent();
    r.fabric_in = p->line->fabric_received();
  }
  std::ranges::sort(all, {}, &node_report::name);
  return all;
}

executor_report node_set::gone() const {
  executor_report r;
  r.name = "nodes that have gone";
  r.kind = device_kind::node;
  for (const auto& n : places_) n->add_gone(r);
  return r;
}

std::uint64_t node_set::came() const {
  std::lock_guard hold(lock_);
  return came_;
}

bool node_set::wait_for_another(std::uint64_t came, std::chrono::steady_clock::time_point deadline) const {
  if (const auto& wait = engine_.around().wait) return wait([&] { return this->came() != came; });
  std::unique_lock hold(lock_);
  return changed_.wait_until(hold, deadline, [&] { return came_ != came || closing_; }) && !closing_;
}

void node_set::give_up_overdue(std::chrono::milliseconds since) {
  std::vector<std::pair<node_id, std::shared_ptr<node>>> all;
  {
    std::lock_guard hold(lock_);
    for (const auto& [id, p] : peers_)
      if (p->place) all.emplace_back(id, p->place);
  }
  for (const auto& [id, place] : all)
    if (place->has_overdue(since)) cluster_->give_up(id);
}

bool node_set::wait_for(std::size_t nodes, std::chrono::steady_clock::time_point deadline) const {
  cluster_->want_links(std::min(nodes, places_.size()));
  std::unique_lock hold(lock_);
  const auto there = [this](const auto& p) { return p.second->place != nullptr && !is_succeeded(*p.second); };
  return changed_.wait_until(hold, deadline,
                             [&] { return static_cast<std::size_t>(std::ranges::count_if(peers_, there)) >= nodes; });
}

}  // namespace troupe::detail
