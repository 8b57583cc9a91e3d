// What this file is for: tells of sessions that begin and end, one at a time for each process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/roster.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {

/// A process that says nothing for `silence` is not there any more: members say something every 250 ms. What was on its
/// way when another process came with its name does not count, so it is looked at in the second half of `patience`.
constexpr std::chrono::milliseconds patience{1000}, silence{500};

/// Two processes cannot listen at the same endpoint: the one that was there before is gone, even if no packet says so.
bool same_endpoint(const tcp_session::terms& old, const identity& who, const endpoint& remote) {
  if (old.remote.host != remote.host) return false;
  const auto& there = who.listens_on;
  return std::any_of(old.peer.listens_on.begin(), old.peer.listens_on.end(),
                     [&](const endpoint& e) { return std::find(there.begin(), there.end(), e) != there.end(); });
}

}  // namespace

void roster::admit(tcp_session::terms t, tcp_session::streams s) {
  if (done_) return;
  peers_.begins(t.peer, t.number);
  auto fresh = tcp_session::make(control_, bulk_, fabric_, std::move(t), std::move(s), events_,
                                 [this](const auto& which, std::exception_ptr why) { ended(which, std::move(why)); });
  const auto& mine = fresh->agreed();
  coming next{fresh, {}};
  const auto replaces = [&](const tcp_session& old) {
    return old.peer().id == mine.peer.id || same_endpoint(old.agreed(), mine.peer, mine.remote);
  };
  for (const auto& old : live_) {
    if (replaces(*old)) next.after.push_back(old);
  }
  for (const auto& old : coming_) {
    if (replaces(*old.session)) next.after.push_back(old.session);
  }
  const auto after = next.after;
  coming_.push_back(std::move(next));
  for (const auto& old : after) {
    old->close(std::make_exception_ptr(
        error(errc::node_lost, "node " + old->peer().name + " has been replaced by a new session from " +
                                   mine.remote.text() + ": it has started again, or has lost the connection")));
  }
  raise_ready();
}

std::shared_ptr<tcp_session> roster::holder(const identity& who, const endpoint& remote,
                                            std::optional<std::uint64_t> last) const {
  const auto is_in_the_way = [&](const tcp_session& old) {
    const tcp_session::terms& is = old.agreed();
    if (is.peer.id == who.id) return is.peer.name != who.name || last != is.number;
    return !who.name.empty() && is.peer.name == who.name && !same_endpoint(is, who, remote);
  };
  for (const auto& old : live_)
    if (is_in_the_way(*old)) return old;
  for (const auto& c : coming_)
    if (is_in_the_way(*c.session)) return c.session;
  return nullptr;
}

void roster::when_free(const identity& who, const endpoint& remote, std::optional<std::uint64_t> last,
                       std::function<void(const std::string&)> then) {
  const auto first = holder(who, remote, last);
  if (!first) return then("");
  const std::string where = first->agreed().remote.host;
  if (first->peer().id == who.id && first->peer().name != who.name)
    return then("its id is that of node " + first->peer().name + " at " + where);
  const auto since = std::chrono::steady_clock::now();
  control_.at(since + patience, [this, who, remote, last, where, since, then = std::move(then)] {
    const auto still = holder(who, remote, last);
    if (!still || still->heard() <= since + (patience - silence)) return then("");
    then(still->peer().id == who.id
             ? "its id is that of a node at " + where + ", which is there"
             : "another node with the name " + who.name + " is there, at " + where + ": give each its own");
  });
}

std::optional<std::uint64_t> roster::number_of(const identity& who) const {
  for (const auto& s : live_)
    if (s->peer().id == who.id && s->peer().incarnation == who.incarnation) return s->agreed().number;
  return std::nullopt;
}

void roster::end_all(std::exception_ptr why, std::function<void()> done) {
  done_ = std::move(done);
  auto all = live_;
  for (const auto& c : coming_) all.push_back(c.session);
  if (all.empty()) return done_();
  for (const auto& s : all) s->close(why);
}

void roster::ended(const std::shared_ptr<tcp_session>& which, std::exception_ptr why) {
  peers_.ended(which->peer().id, which->agreed().number);
  const bool was_up = std::erase(live_, which) > 0;
  coming_.remove_if([&](const coming& c) { return c.session == which; });
  for (auto& c : coming_) std::erase(c.after, which);
  if (was_up) events_.down(*which, std::move(why));
  raise_ready();
  if (done_ && live_.empty() && coming_.empty()) done_();
}

void roster::raise_ready() {
  for (auto it = coming_.begin(); it != coming_.end() && !done_;) {
    if (!it->after.empty()) {
      ++it;
      continue;
    }
    const auto fresh = it->session;
    it = coming_.erase(it);
    live_.push_back(fresh);
    events_.up(fresh);
    fresh->begin();
  }
}

}  // namespace troupe::net::tcp
