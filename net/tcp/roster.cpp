// What this file is for: tells of sessions that begin and end, one at a time for each process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/roster.hpp"

#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {

/// Two processes cannot listen at the same place: the one that was there before is gone, even if no packet says so.
bool same_place(const tcp_session::terms& a, const tcp_session::terms& b) {
  if (a.remote.host != b.remote.host) return false;
  const auto& there = b.peer.listens_on;
  return std::any_of(a.peer.listens_on.begin(), a.peer.listens_on.end(),
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
    return old.peer().id == mine.peer.id || same_place(old.agreed(), mine);
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
