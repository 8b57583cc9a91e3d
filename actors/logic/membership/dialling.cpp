// What this file is for: which addresses are dialled next, and how long to wait after a dial that led nowhere.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/dialling.hpp"

#include <algorithm>

namespace troupe::logic {

dialling::entry* dialling::entry_of(const node_address& a) {
  const auto found = entries_.find(a);
  if (found != entries_.end()) return &found->second;
  if (entries_.size() >= limits_.addresses) return nullptr;
  entry& made = entries_[a];
  made.wait = limits_.first;
  return &made;
}

void dialling::add(const node_address& a, time_point now) {
  changed();
  const bool is_new = !entries_.contains(a);
  entry* e = entry_of(a);
  if (!e) return;
  e->found = true;
  if (is_new) e->next = now;
}

void dialling::want(const node_id& n, const std::vector<node_address>& addresses, time_point first) {
  changed();
  for (const node_address& a : addresses) {
    const bool is_new = !entries_.contains(a);
    entry* e = entry_of(a);
    if (!e || (e->rests && e->node != n)) continue;  // it leads to another node that is connected
    e->node = n;
    e->until = time_point::max();
    e->rests = e->once = false;
    if (is_new || (!e->asked && e->next > first)) e->next = first;
  }
}

void dialling::reached(const node_id& n, const std::vector<node_address>& addresses,
                       const std::optional<node_address>& dialled) {
  changed();
  const auto rest = [&](const node_address& a) {
    if (entry* e = entry_of(a)) {
      e->node = n;
      e->rests = true;
      e->asked = e->once = false;
      e->until = time_point::max();
    }
  };
  for (const node_address& a : addresses) rest(a);
  if (dialled) rest(*dialled);
}

void dialling::proved(const node_id& n) {
  for (auto& [a, e] : entries_)
    if (e.node == n) e.wait = limits_.first;
}

void dialling::lost(const node_id& n, time_point now, bool at_once) {
  changed();
  for (auto& [a, e] : entries_) {
    if (e.node != n) continue;
    if (!e.found) e.until = now + limits_.forget;
    e.rests = false;
    if (e.asked) continue;
    if (at_once)
      e.next = now;
    else
      failed(e, now);
  }
}

void dialling::drop(const node_id& n) {
  changed();
  std::erase_if(entries_, [&](const auto& x) { return x.second.node == n && !x.second.found; });
  for (auto& [a, e] : entries_)  // another node may come to an address that discovery names
    if (e.node == n) {
      e.node.reset();
      e.rests = false;
    }
}

void dialling::let_be(const node_id& n, time_point now, bool is_there) {
  changed();
  std::erase_if(entries_, [&](const auto& x) { return x.second.node == n && !x.second.found; });
  for (auto& [a, e] : entries_) {
    if (e.node != n) continue;
    e.rests = is_there;
    if (!is_there && !e.asked) failed(e, now);
  }
}

void dialling::probe_gone(const node_id& n, const std::vector<node_address>& addresses, time_point now) {
  changed();
  for (const node_address& a : addresses) {
    if (entries_.contains(a)) continue;
    entry* e = entry_of(a);
    if (!e) return;
    e->node = n;
    e->next = now;
    e->once = true;
  }
}

void dialling::refused(const node_address& a, time_point now) {
  changed();
  const auto found = entries_.find(a);
  if (found == entries_.end() || found->second.rests) return;
  if (found->second.once)
    entries_.erase(found);
  else
    failed(found->second, now);
}

void dialling::is_self(const node_address& a) {
  changed();
  if (entry* e = entry_of(a)) {
    e->node.reset();
    e->rests = true;
    e->asked = e->once = false;
  }
}

void dialling::failed(entry& e, time_point now) {
  e.asked = false;
  // Varies the wait: nodes that lost each other at the same moment must not dial in step for ever.
  const auto quarter = static_cast<std::uint64_t>(e.wait.count() / 4);
  e.next = now + e.wait - milliseconds(quarter) + milliseconds(random_() % (2 * quarter + 1));
  e.wait = std::min(2 * e.wait, limits_.longest);
}

std::vector<node_address> dialling::due(time_point now) {
  if (next() > now) return {};
  changed();
  std::vector<node_address> all;
  for (auto i = entries_.begin(); i != entries_.end();) {
    entry& e = i->second;
    if (e.until <= now || (e.once && e.asked && e.next <= now)) {
      i = entries_.erase(i);
      continue;
    }
    if (!e.rests && e.next <= now) {
      if (e.asked) {
        failed(e, now);
      } else {
        e.asked = true;
        e.next = now + limits_.answer;
        all.push_back(i->first);
      }
    }
    ++i;
  }
  return all;
}

dialling::time_point dialling::next() const {
  if (next_) return *next_;
  time_point first = time_point::max();
  for (const auto& [a, e] : entries_)
    if (!e.rests) first = std::min(first, e.next);
  next_ = first;
  return first;
}

std::optional<node_id> dialling::node_at(const node_address& a) const {
  const auto found = entries_.find(a);
  return found == entries_.end() ? std::nullopt : found->second.node;
}

}  // namespace troupe::logic
