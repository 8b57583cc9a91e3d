// What this file is for: the rules by which one session of two processes stays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/peers.hpp"

namespace troupe::net::tcp {

namespace {
constexpr std::size_t past_max = 4096;
}

const peers::entry* peers::find(const node_id& id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

hello_result peers::dialled(const identity& who, std::uint64_t number, std::uint64_t instead) {
  if (who.id == self_) return hello_result::yourself;
  entry& e = entries_[who.id];
  if (e.now && e.now->incarnation > who.incarnation) return hello_result::outdated;
  const bool replaces = e.now && instead != 0 && e.now->number == instead;
  if (e.own || (e.now && e.now->incarnation == who.incarnation && !replaces)) return hello_result::duplicate;
  e.own = number;
  e.instead = replaces ? instead : 0;
  return hello_result::welcome;
}

bool peers::wanted(const node_id& id, std::uint64_t number) const {
  const entry* e = find(id);
  return e != nullptr && e->own == number && (!e->now || e->is_replaced());
}

bool peers::confirmed(const identity& who, std::uint64_t number) {
  gave_up(who.id, number);
  const entry* e = find(who.id);
  return e == nullptr || !e->now || e->is_replaced() || e->now->incarnation < who.incarnation;
}

void peers::gave_up(const node_id& id, std::uint64_t number) {
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.own == number) it->second.own.reset();
}

hello_result peers::asked(const hello& h) const {
  if (h.who.id == self_) return hello_result::yourself;
  const entry* e = find(h.who.id);
  if (e == nullptr) return hello_result::welcome;
  if (e->now && e->now->incarnation > h.who.incarnation) return hello_result::outdated;
  if (h.who.id < self_) return hello_result::welcome;  // it decides
  if (e->own) return hello_result::duplicate;
  if (h.kind == channel::bulk && e->now && e->now->incarnation == h.who.incarnation && e->now->number != h.last)
    return hello_result::duplicate;
  return hello_result::welcome;
}

void peers::begins(const identity& who, std::uint64_t number) { entries_[who.id].now = live{who.incarnation, number}; }

void peers::ended(const node_id& id, std::uint64_t number) {
  entry& e = entries_[id];
  if (e.now && e.now->number == number) e.now.reset();
  e.last = number;
  past_.push_back(id);
  forget_oldest();
}

bool peers::has(const node_id& id) const {
  const entry* e = find(id);
  return e != nullptr && e->now;
}

std::uint64_t peers::last(const node_id& id) const {
  const entry* e = find(id);
  if (e == nullptr) return 0;
  return e->own && e->is_replaced() ? e->instead : e->last;
}

void peers::forget_oldest() {
  while (past_.size() > past_max) {
    const auto it = entries_.find(past_.front());
    if (it != entries_.end() && !it->second.now && !it->second.own) entries_.erase(it);
    past_.pop_front();
  }
}

}  // namespace troupe::net::tcp
