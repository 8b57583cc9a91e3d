// What this file is for: the tools of the suite for wires, and which wires take it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "conformance.hpp"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>
#include <utility>

#include "imagined_fabric.hpp"
#include "loopback_network.hpp"
#include "tcp_network.hpp"

namespace wires {

const std::vector<candidate>& candidates() {
  static const std::vector<candidate> all = {
      {"tcp_plain", [] { return tcp_network(proof::none); }},
      {"tcp_secret", [] { return tcp_network(proof::secret); }},
      {"tcp_certificates", [] { return tcp_network(proof::certificates); }},
      {"tcp_imagined_fabric",
       [] { return fabric_network([space = std::make_shared<imagined_space>()] { return space->make(); }); }},
#ifdef TROUPE_HAVE_UCX
      {"tcp_ucx", [] { return fabric_network(real_ucx); }},
#endif
      {"loopback", [] { return loopback_network(); }, 0, true},
  };
  return all;
}

void PrintTo(const candidate& c, std::ostream* to) { *to << c.name; }

node::node(network& n, transport_options o) : self_(o.self), wire_(n.make(std::move(o))) {}

node::~node() {
  wire_->stop();
  sessions_.clear();
}

std::vector<node::event> node::events() const {
  const std::lock_guard hold(lock_);
  return events_;
}

std::vector<node::event> node::events(kind k) const {
  std::vector<event> some = events();
  std::erase_if(some, [&](const event& e) { return e.what != k; });
  return some;
}

std::size_t node::count(kind k) const {
  const std::lock_guard hold(lock_);
  return static_cast<std::size_t>(
      std::count_if(events_.begin(), events_.end(), [&](const event& e) { return e.what == k; }));
}

std::shared_ptr<session> node::with(const node& other) const {
  const std::lock_guard hold(lock_);
  for (const auto& s : sessions_) {
    if (s->peer().id == other.self_.id) return s;
  }
  return nullptr;
}

std::shared_ptr<session> node::with_anyone() const {
  const std::lock_guard hold(lock_);
  return sessions_.empty() ? nullptr : sessions_.front();
}

std::vector<bytes> node::frames() const {
  std::vector<bytes> all;
  for (event& e : events(kind::frame)) all.push_back(std::move(e.content));
  return all;
}

bytes node::body(const std::string& head) const {
  const std::lock_guard hold(lock_);
  const auto it = bodies_.find(head);
  return it == bodies_.end() ? bytes{} : it->second;
}

void node::record(event e, const std::shared_ptr<session>& fresh) {
  e.thread = std::this_thread::get_id();
  {
    const std::lock_guard hold(lock_);  // a thread that sees the session sees that it has been told
    if (fresh) sessions_.push_back(fresh);
    events_.push_back(e);
  }
  if (also) also(e);
}

void node::up(const std::shared_ptr<session>& s) { record({.what = kind::up, .of = s.get(), .peer = s->peer().id}, s); }

void node::frame(session& s, std::span<const std::byte> f) {
  record({.what = kind::frame, .of = &s, .peer = s.peer().id, .content = {f.begin(), f.end()}});
}

pieces node::arriving(session& s, std::span<const std::byte> head, std::uint64_t size) {
  record({.what = kind::arriving, .of = &s, .peer = s.peer().id, .content = {head.begin(), head.end()}});
  if (destinations) return destinations(s, head, size);
  const std::lock_guard hold(lock_);
  bytes& body = bodies_[as_text(head)];
  body.resize(size);
  return {std::span(body)};
}

void node::arrived(session& s, std::span<const std::byte> head, bool whole) {
  record({.what = kind::arrived, .of = &s, .peer = s.peer().id, .content = {head.begin(), head.end()}, .whole = whole});
}

void node::down(session& s, std::exception_ptr why) {
  {
    const std::lock_guard hold(lock_);
    std::erase_if(sessions_, [&](const auto& which) { return which.get() == &s; });
  }
  record({.what = kind::down, .of = &s, .peer = s.peer().id, .why = std::move(why)});
}

void node::refused(const endpoint& where, std::exception_ptr why) {
  record({.what = kind::refused, .why = std::move(why), .where = where});
}

bytes as_bytes(const std::string& s) {
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}

std::string as_text(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

bytes noise(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  bytes b(n);
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t v = random();
    std::memcpy(b.data() + i, &v, std::min<std::size_t>(8, n - i));
  }
  return b;
}

std::optional<dial_error::reason> reason_of(const std::exception_ptr& why) {
  try {
    if (why) std::rethrow_exception(why);
  } catch (const dial_error& e) {
    return e.why();
  } catch (...) {
  }
  return {};
}

errc code_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    return e.code();
  }
}

std::string text_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    return e.what();
  }
}

transport_options conformance::options(const std::string& name) const {
  transport_options o;
  o.self.id = node_id::random();
  o.self.incarnation = 1;
  o.self.name = name;
  o.self.cluster = "test";
  o.listen = {network_->anywhere()};
  return o;
}

std::unique_ptr<node> conformance::begin(transport_options o) {
  auto n = std::make_unique<node>(*network_, std::move(o));
  n->start();
  return n;
}

void conformance::join(node& from, node& to) {
  const auto ups = [](const node& on, const node& with) {
    const auto all = on.events(node::kind::up);
    return std::count_if(all.begin(), all.end(), [&](const auto& e) { return e.peer == with.self().id; });
  };
  const auto before_from = ups(from, to), before_to = ups(to, from);
  const auto refusals = from.count(node::kind::refused);
  from.wire().dial(to.address());
  ASSERT_TRUE(until([&] {
    return (ups(from, to) > before_from && ups(to, from) > before_to) || from.count(node::kind::refused) > refusals;
  }));
  for (const auto& e : from.events(node::kind::refused)) ADD_FAILURE() << text_of(e.why);
}

}  // namespace wires
