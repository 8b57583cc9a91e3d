// What this file is for: what a node says of itself when it is asked, and what it is told when it asks all others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <future>
#include <memory>
#include <utility>

#include <troupe/error.hpp>

#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/node_names.hpp"
#include "devices/host/topology.hpp"
#include "devices/host/usage.hpp"
#include "runtime/cluster/node_set.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

// Extra time for a question to the control thread, which answers from what this node knows itself.
constexpr std::chrono::milliseconds asked_more{100};

std::uint64_t rounded(double v) { return v > 0 ? static_cast<std::uint64_t>(v + 0.5) : 0; }

wire::way way_of(double rate, std::uint64_t bytes, std::uint64_t fabric_bytes) {
  return {rounded(rate), bytes, fabric_bytes};
}

}  // namespace

wire::self_descriptor node_set::describe() const {
  wire::self_descriptor c;
  const runtime_report r = engine_.report();
  const load_report l = engine_.load({});
  c.takes_work = options_.take_work;
  c.up_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(transport_->now() - made_).count());
  c.slots = static_cast<std::uint32_t>(l.slots);
  c.busy = static_cast<std::uint32_t>(l.busy);
  c.queued = l.queued;
  for (const executor_report& e : r.executors) {
    if (e.kind == device_kind::node) continue;
    c.devices += e.kind == device_kind::cpu ? 0 : 1;
    c.tasks += e.tasks;
    c.failed += e.failed;
  }
  if (options_.take_work) c.kernels = offered_keys().size();
  c.memory_used = r.bytes_allocated;
  c.memory_limit = engine_.settings().memory_bytes;
  c.memory_resident = devices::resident_bytes();
  c.memory_machine = devices::memory_bytes();
  c.load_percent = static_cast<std::uint32_t>(rounded(100 * devices::load_average()));
  c.bulk = bulk_;
  c.links = own_links();
  std::lock_guard hold(lock_);
  c.leaving = closing_;
  return c;
}

std::vector<wire::link_descriptor> node_set::own_links() const {
  std::vector<wire::link_descriptor> all;
  std::lock_guard hold(lock_);
  for (const auto& [id, p] : peers_) {
    if (!p->has_descriptor) continue;
    wire::link_descriptor& k = all.emplace_back();
    const net::lasting_session& line = *p->line;
    k.peer = id;
    k.name = line.peer().name;
    k.suspect = p->suspect;
    k.round_trip_ns = static_cast<std::uint64_t>(p->trips.median().count());
    k.resets = line.resets();
    k.out = way_of(line.rate_out(), line.bytes_sent(), line.fabric_sent());
    k.in = way_of(line.rate_in(), line.bytes_received(), line.fabric_received());
  }
  return all;
}

heard_member node_set::heard(const peer& p) const {
  const net::identity& who = p.line->peer();
  heard_member m;
  m.id = name_of(who.id);
  m.name = who.name;
  if (!who.listens_on.empty()) m.address = who.listens_on.front().text();
  m.incarnation = who.incarnation;
  m.suspect = p.suspect;
  return m;
}

heard_member node_set::heard_self(wire::self_descriptor c) const {
  heard_member m;
  m.id = name_of(where_.self.id);
  m.name = where_.self.name;
  m.incarnation = where_.self.incarnation;
  const auto& told = where_.self.listens_on;
  const std::vector<std::string> own = told.empty() ? addresses() : std::vector{told.front().text()};
  if (!own.empty()) m.address = own.front();
  m.is_self = true;
  m.descriptor = std::move(c);
  return m;
}

std::vector<link_report> node_set::links() const {
  wire::self_descriptor c;
  c.links = own_links();
  return links_of(heard_self(std::move(c)));
}

cluster_report node_set::query_cluster(std::chrono::steady_clock::time_point deadline) {
  net::writer frame;
  std::vector<peer_ptr> asked;
  std::uint64_t number = 0;
  {
    std::lock_guard hold(lock_);
    std::set<node_id> awaited;
    for (const auto& [id, p] : peers_) {
      if (!p->has_descriptor) continue;
      awaited.insert(id);
      asked.push_back(p);
    }
    number = surveys_.open(std::move(awaited));
  }
  wire::put_numbered(frame, wire::kind::describe, number);
  for (const peer_ptr& p : asked) p->line->send(frame.view());
  std::vector<heard_member> all{heard_self(describe())};
  std::unique_lock hold(lock_);
  changed_.wait_until(hold, deadline, [&] { return surveys_.is_complete(number); });
  open_surveys::answers answered = surveys_.close(number);
  for (const peer_ptr& p : asked) {
    const node_id id = name_of(p->line->peer().id);
    const auto still = peers_.find(id);
    if (still == peers_.end() || still->second != p) continue;  // it has gone meanwhile
    heard_member& m = all.emplace_back(heard(*p));
    if (const auto c = answered.find(id); c != answered.end()) m.descriptor = std::move(c->second);
  }
  hold.unlock();
  return picture_of(all, addresses().empty() ? deaf_ones(deadline) : std::set<node_id>());
}

// Returns members that listen nowhere: a node that does not listen either has no link with them.
std::set<node_id> node_set::deaf_ones(std::chrono::steady_clock::time_point deadline) const {
  const auto found = std::make_shared<std::promise<std::set<node_id>>>();
  std::future<std::set<node_id>> all = found->get_future();
  transport_->at(transport_->now(), [this, found] {
    std::set<node_id> deaf;
    for (const node_id& n : cluster_->members().members())
      if (const auto r = cluster_->members().record_of(n); r && r->addresses.empty()) deaf.insert(n);
    found->set_value(std::move(deaf));
  });
  return all.wait_until(deadline + asked_more) == std::future_status::ready ? all.get() : std::set<node_id>();
}

void node_set::refused(const net::endpoint& where, std::exception_ptr why) {
  const auto now = transport_->now();
  std::lock_guard hold(lock_);
  refusals_.add(where, std::move(why), now);
}

void node_set::reached(const net::endpoint& where) {
  std::lock_guard hold(lock_);
  refusals_.remove(where);
}

std::vector<connection_failure> node_set::connection_failures() const {
  const auto now = transport_->now();
  std::vector<connection_failure> all;
  std::lock_guard hold(lock_);
  refusals_.each(now, [&](const net::endpoint& where, const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const error& e) {
      all.push_back({where.text(), e.code(), e.what()});
    } catch (const std::exception& e) {
      all.push_back({where.text(), errc::unreachable, e.what()});
    }
  });
  return all;
}

void node_set::note_answer(const peer& p, wire::self_descriptor c) {
  std::lock_guard hold(lock_);
  if (surveys_.answer(name_of(p.line->peer().id), std::move(c))) changed_.notify_all();
}

std::vector<std::string> node_set::addresses() const {
  std::vector<std::string> all;
  for (const net::endpoint& e : transport_->listening()) all.push_back(e.text());
  return all;
}

}  // namespace troupe::detail
