// What this file is for: a network in virtual time: events in their order, delays, and faults.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/loopback/network.hpp"

#include <algorithm>

#include "net/loopback/process.hpp"

namespace troupe::net::loopback {

using namespace std::chrono_literals;

// ---- time -----------------------------------------------------------------------------------------------------------

void network::state::post(time_point at, process* to, task f) {
  queue.push_back({std::max(at, now), ++turns, to, std::move(f)});
  std::push_heap(queue.begin(), queue.end(), later);
}

bool network::state::step(time_point until) {
  const std::lock_guard turn(running);
  event e;  // ends after the lock has been left: it may be the last to know something
  const std::lock_guard hold(lock);
  if (queue.empty() || queue.front().at > until) return false;
  std::pop_heap(queue.begin(), queue.end(), later);
  e = std::move(queue.back());
  queue.pop_back();
  now = e.at;
  ++done;
  if (!e.to) {
    e.f();
  } else if (e.to->paused) {
    e.to->held.push_back(std::move(e.f));
  } else if (e.to->lives) {
    e.f();
  }
  return true;
}

void network::state::pass(time_point until) {
  const std::lock_guard hold(lock);
  now = until;
}

void network::run_for(duration d) {
  const time_point until = now() + d;
  while (state_->step(until)) {
  }
  state_->pass(until);
}

bool network::run_until(const std::function<bool()>& f, duration limit) {
  const time_point until = now() + limit;
  while (!f()) {
    if (state_->step(until)) continue;
    state_->pass(until);
    return f();
  }
  return true;
}

void network::at(time_point t, std::function<void()> f) {
  const std::lock_guard hold(state_->lock);
  state_->post(t, nullptr, [s = state_.get(), f = std::move(f)] { s->tell([&] { f(); }); });
}

// ---- paths ----------------------------------------------------------------------------------------------------------

const link& network::state::link_of(const process& from, const process& to) const {
  if (own_links.empty()) return links;
  const auto own = own_links.find({from.self.id, to.self.id});
  return own == own_links.end() ? links : own->second;
}

time_point::duration network::state::delay(const process& from, const process& to) {
  const link& l = link_of(from, to);
  const auto span = static_cast<std::uint64_t>((l.delay_most - l.delay_least).count());
  auto d = l.delay_least + std::chrono::nanoseconds(span ? random() % (span + 1) : 0);
  if (l.loss > 0)
    for (auto again = 200ms; chance() < l.loss && again < 10s; again *= 2) d += again;
  return std::chrono::duration_cast<time_point::duration>(d);
}

time_point network::state::carry(wire& w, process& from, process& to, std::size_t bytes, task arrive) {
  if (is_cut(from, to) || w.stalled) {
    w.held.push_back({bytes, std::move(arrive)});
    w.held_bytes += bytes;
    return now;
  }
  w.free = std::max(w.free, now);
  if (const std::uint64_t rate = link_of(from, to).bytes_per_s)
    w.free += std::chrono::nanoseconds(
        static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / static_cast<double>(rate)));
  w.last = std::max(w.last, w.free + delay(from, to));
  post(w.last, &to, std::move(arrive));
  return w.free;
}

void network::state::keep(const std::shared_ptr<end>& e) {
  if (ends.size() > 2 * ends_kept + 16) {
    std::erase_if(ends, [](const auto& x) { return x.expired(); });
    ends_kept = ends.size();
  }
  ends.push_back(e);
}

void network::state::flush() {
  for (const auto& x : ends) {
    const auto e = x.lock();
    if (!e || is_cut(e->owner(), e->other())) continue;
    for (wire* w : {&e->control, &e->bulk}) {
      if (w->held.empty() || w->stalled) continue;
      auto held = std::exchange(w->held, {});
      w->held_bytes = 0;
      w->free = std::max(w->free, now + std::chrono::milliseconds(random() % 200));  // when it is tried again
      for (auto& i : held) carry(*w, e->owner(), e->other(), i.bytes, std::move(i.arrive));
    }
    e->pump();
  }
}

process* network::state::find(const node_id& n) const {
  const auto found = latest.find(n);
  return found == latest.end() ? nullptr : found->second;
}

// ---- dials ----------------------------------------------------------------------------------------------------------

void network::state::dial(process& by, const endpoint& to, std::shared_ptr<session> instead) {
  const std::uint64_t id = ++dials;
  by.dials[id] = {to, nullptr, false, std::move(instead), now};
  post(now + by.options.handshake, &by, [this, &by, id] {
    if (by.dials.contains(id)) refuse(by, id, dial_error::reason::no_answer, {}, now);
  });
  try_dial(by, id);
}

void network::state::try_dial(process& by, std::uint64_t id) {
  const auto found = by.dials.find(id);
  if (found == by.dials.end()) return;
  process::dial& d = found->second;
  using reason = dial_error::reason;
  const auto listener = listeners.find(d.to);
  if (listener == listeners.end()) return refuse(by, id, reason::nobody_listens, {}, now + 2 * links.delay_least);
  process& at = *listener->second;
  if (&at == &by) return refuse(by, id, reason::self, by.self.id, now + links.delay_least);
  if (is_cut(by, at) || is_cut(at, by)) {
    post(now + 200ms, &by, [this, &by, id] { try_dial(by, id); });
    return;
  }
  const time_point there = now + delay(by, at), back = there + delay(at, by);
  if (!at.lives) return refuse(by, id, reason::nobody_listens, {}, back);
  if (broken_dials > 0 && chance() < broken_dials) return refuse(by, id, reason::no_answer, {}, back);
  d.target = &at;
  d.sent = true;
  // Three ways: the process that answers knows that the other is there.
  post(back + delay(by, at), &at, [this, &at, &by, id] { requested(at, by, id); });
}

bool network::state::admits(const process& at, const process& by) const {
  if (at.self.cluster != by.self.cluster || at.options.insecure_loopback != by.options.insecure_loopback) return false;
  if (at.options.insecure_loopback) return true;
  const auto& secrets = by.options.proof.secrets;
  const auto& accepted = at.options.proof.secrets;
  if (!secrets.empty()) return std::find(accepted.begin(), accepted.end(), secrets.front()) != accepted.end();
  return !by.options.proof.authority.empty() && at.options.proof.authority == by.options.proof.authority;
}

void network::state::requested(process& at, process& by, std::uint64_t id) {
  if (!by.lives || !by.dials.contains(id)) return;
  using reason = dial_error::reason;
  if (!admits(at, by)) return refuse(by, id, reason::not_admitted, at.self.id, now + delay(at, by));
  if (const process* last = find(by.self.id); last && last->self.incarnation > by.self.incarnation)
    return refuse(by, id, reason::not_admitted, at.self.id, now + delay(at, by));
  const auto old = at.sessions.find(by.self.id);
  if (old != at.sessions.end()) {
    const std::shared_ptr<end> e = old->second;
    process::dial& d = by.dials.at(id);
    if (const auto far = e->far(); far && far->is_open() && &far->owner() == &by) {
      if (d.instead != far || far->has_heard_since(d.began))
        return refuse(by, id, reason::known, at.self.id, now + delay(at, by));
      if (!std::exchange(d.waited, true)) {  // as long as a handshake takes: it may speak meanwhile
        const auto handshake = 2 * (delay(at, by) + delay(by, at));
        return post(now + handshake, &at, [this, &at, &by, id] { requested(at, by, id); });
      }
    } else if (far && &far->owner() == &by && !by.sessions.contains(at.self.id) && e->is_open() && !far->has_ended()) {
      return;  // another dial of the same process was answered a moment ago
    }
    e->finish(std::make_exception_ptr(error(errc::node_lost, "the peer has connected again")), true);
    // `down` comes first.
    post(now, &at, [this, &at, &by, id] { requested(at, by, id); });
    return;
  }
  // The two dial each other: the dial of the smaller id stays, and the other one waits for it.
  for (const auto& [other, d] : at.dials)
    if (d.sent && d.target == &by && at.self.id < by.self.id) return;

  std::optional<endpoint> to = by.dials.at(id).to;
  const auto here = std::make_shared<end>(*this, at, by, std::nullopt);
  const auto there = std::make_shared<end>(*this, by, at, std::move(to));
  here->connect(there);
  there->connect(here);
  keep(here);
  keep(there);
  carry(here->control, at, by, 0, [this, &by, id, there] { answered(by, id, there); });
  std::erase_if(at.dials, [&](const auto& d) { return d.second.target == &by; });  // it has led to this
  here->open();
}

void network::state::answered(process& at, std::uint64_t id, const std::shared_ptr<end>& e) {
  const auto d = at.dials.find(id);
  const auto old = at.sessions.find(e->peer().id);
  if (d != at.dials.end() && old != at.sessions.end() && d->second.instead == old->second && !e->has_ended()) {
    const std::shared_ptr<end> replaced = old->second;
    replaced->finish(std::make_exception_ptr(error(errc::node_lost, "another connection has taken its place")), true);
    replaced->tell_end();  // `down` comes first
  }
  if (!at.dials.contains(id) || at.sessions.contains(e->peer().id) || e->has_ended()) return e->finish(nullptr, true);
  std::erase_if(at.dials, [&](const auto& x) { return x.first == id || x.second.target == &e->other(); });
  e->open();
}

void network::state::refuse(process& by, std::uint64_t id, dial_error::reason why, std::optional<node_id> peer,
                            time_point when) {
  post(when, &by, [this, &by, id, why, peer] {
    const auto found = by.dials.find(id);
    if (found == by.dials.end()) return;
    const endpoint to = found->second.to;
    by.dials.erase(found);
    using reason = dial_error::reason;
    std::string text = to.text() + ": ";
    if (why == reason::nobody_listens) text += "nobody listens there";
    if (why == reason::no_answer) text += "nobody answers in time";
    if (why == reason::known) text += "it is connected already";
    if (why == reason::self) text += "it is this process";
    if (why == reason::not_admitted) {
      const process* at = peer ? find(*peer) : nullptr;
      text += "it does not admit this node";
      if (at && at->self.cluster != by.self.cluster) text += ": it belongs to cluster " + at->self.cluster;
    }
    tell([&] { by.events->refused(to, std::make_exception_ptr(dial_error(why, text, peer))); });
  });
}

// ---- faults ---------------------------------------------------------------------------------------------------------

void network::state::stop(process& p, std::exception_ptr why, bool killed) {
  if (!p.lives || !p.started) {
    p.lives = false;
    for (const auto& e : std::exchange(p.ending, {})) e->let_go();
    return;
  }
  for (const auto& [n, e] : std::map(p.sessions)) e->finish(why, killed);
  if (!killed)  // nothing is told afterwards
    for (const auto& e : std::exchange(p.ending, {})) e->tell_end();
  p.lives = false;
  p.held.clear();
  p.dials.clear();
}

void network::set_links(const link& l) {
  const std::lock_guard hold(state_->lock);
  state_->links = l;
}
void network::set_link(const node_id& from, const node_id& to, const link& l) {
  const std::lock_guard hold(state_->lock);
  state_->own_links[{from, to}] = l;
}
void network::cut(const node_id& from, const node_id& to) {
  const std::lock_guard hold(state_->lock);
  state_->cuts.insert({from, to});
}
void network::mend(const node_id& from, const node_id& to) {
  const std::lock_guard hold(state_->lock);
  if (state_->cuts.erase({from, to})) state_->flush();
}
void network::mend_all() {
  const std::lock_guard hold(state_->lock);
  state_->cuts.clear();
  state_->flush();
}

void network::stall(const node_id& a, const node_id& b) {
  const std::lock_guard hold(state_->lock);
  const process* const p = state_->find(a);
  if (!p) return;
  const auto found = p->sessions.find(b);
  if (found == p->sessions.end()) return;
  for (const auto& e : {found->second, found->second->far()})
    if (e) e->control.stalled = e->bulk.stalled = true;
}

void network::reset(const node_id& a, const node_id& b) {
  const std::lock_guard hold(state_->lock);
  process* p = state_->find(a);
  if (!p) return;
  const auto found = p->sessions.find(b);
  if (found == p->sessions.end()) return;
  const auto e = found->second;
  e->finish(std::make_exception_ptr(error(errc::node_lost, "the connection was reset")), true);
}

void network::break_dials(double part) {
  const std::lock_guard hold(state_->lock);
  state_->broken_dials = part;
}

void network::pause(const node_id& n) {
  const std::lock_guard hold(state_->lock);
  if (process* p = state_->find(n)) p->paused = true;
}

void network::resume(const node_id& n) {
  const std::scoped_lock hold(state_->running, state_->lock);
  process* p = state_->find(n);
  if (!p || !p->paused) return;
  p->paused = false;
  while (!p->held.empty() && p->lives && !p->paused) {
    const task f = std::move(p->held.front());
    p->held.pop_front();
    f();
  }
}

void network::kill(const node_id& n) {
  const std::scoped_lock hold(state_->running, state_->lock);
  if (process* p = state_->find(n)) {
    p->paused = false;
    state_->stop(*p, nullptr, true);
  }
}

// ---- to look at -----------------------------------------------------------------------------------------------------

network::network(std::uint64_t seed) : state_(std::make_unique<state>(seed)) {}
network::~network() {
  // Items that are held back on a wire hold the ends of that wire.
  for (const auto& x : state_->ends)
    if (const auto e = x.lock()) e->control.held.clear(), e->bulk.held.clear();
}

time_point network::now() const {
  const std::lock_guard hold(state_->lock);
  return state_->now;
}
bool network::is_cut(const node_id& from, const node_id& to) const {
  const std::lock_guard hold(state_->lock);
  return state_->cuts.contains({from, to});
}
bool network::are_connected(const node_id& a, const node_id& b) const {
  const std::lock_guard hold(state_->lock);
  const process* p = state_->find(a);
  if (!p) return false;
  const auto found = p->sessions.find(b);
  if (found == p->sessions.end() || !found->second->is_open()) return false;
  const auto far = found->second->far();
  return far && far->is_open();
}
std::uint64_t network::bytes_sent(const node_id& n) const {
  const std::lock_guard hold(state_->lock);
  const process* p = state_->find(n);
  return p ? p->bytes_sent : 0;
}
std::uint64_t network::frames_sent(const node_id& n) const {
  const std::lock_guard hold(state_->lock);
  const process* p = state_->find(n);
  return p ? p->frames_sent : 0;
}
std::uint64_t network::events() const {
  const std::lock_guard hold(state_->lock);
  return state_->done;
}

}  // namespace troupe::net::loopback
