// What this file is for: windows that slide, put together from panes that do not overlap.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/streams/event_times.hpp>
#include <troupe/detail/streams/node.hpp>

namespace troupe::detail::streams {

/// Windows of `size` that begin every `slide`, of which `size` is a multiple. An item is added to one pane, as long as
/// `slide`, and not to each of its windows; a window is the sum of its panes when it is over (Li, Maier, Tufte,
/// Papadimos, Tucker: "No pane, no gain", 2005). For folds that can be merged.
template <class K, class S, class Fold>
class sliding_panes {
 public:
  sliding_panes(Fold& f, std::int64_t size, std::int64_t slide, state_account& state)
      : fold_(f), size_(size), slide_(slide), state_(state) {}

  /// `begin`: of the pane that the item is in, a multiple of `slide`.
  template <class T>
  void add(std::int64_t begin, K key, const T& item, const origin& from) {
    if (!last_ || last_begin_ != begin) {
      last_ = &panes_.try_emplace(begin, typename pane::allocator_type(state_)).first->second;
      last_begin_ = begin;
    }
    auto at = last_->find(key);
    if (at == last_->end()) {
      at = last_->emplace(std::move(key), part(fold_.initial, order_++, from)).first;
      at->second.of_key.changed(state_, at->first);
    }
    std::invoke(fold_.add, at->second.state, item);
    at->second.of_state.changed(state_, at->second.state);
  }
  /// Calls `tell(key, begin, end, state, from)` for what windows that end by then hold, earlier ends first, equal ones
  /// in the order of their keys' first items.
  template <class Tell>
  void end_until(std::int64_t now, bool all, Tell tell) {
    while (!panes_.empty()) {
      const std::int64_t begin = std::max(next_, panes_.begin()->first - size_ + slide_);
      if (begin + size_ > now && !all) break;
      end(begin, tell);
      next_ = begin + slide_;
      if (panes_.begin()->first > begin) continue;
      panes_.erase(panes_.begin());
      last_ = nullptr;
    }
    // Windows in which there was nothing are over, too: what comes late is not told of them.
    if (!all) next_ = std::max(next_, window_starts::of(saturated(now, -size_), slide_, slide_).last + slide_);
  }

 private:
  struct part {
    part(const S& s, std::uint64_t o, const origin& f) : state(s), order(o), from(f) {}
    S state;
    std::uint64_t order;  // of its first item
    origin from;
    [[no_unique_address]] counted_bytes<S> of_state{};
    [[no_unique_address]] counted_bytes<K> of_key{};
  };
  using pane = std::unordered_map<K, part, std::hash<K>, std::equal_to<K>, state_allocator<std::pair<const K, part>>>;

  template <class Tell>
  void end(std::int64_t begin, Tell& tell) {
    pane sum{typename pane::allocator_type(state_)};
    for (auto it = panes_.begin(); it != panes_.end() && it->first < begin + size_; ++it)
      for (const auto& [key, p] : it->second) {
        const auto [at, is_new] = sum.try_emplace(key, p.state, p.order, p.from);
        if (is_new) continue;
        S other = p.state;  // a merge may take it apart, and later windows need it
        std::invoke(fold_.merge, at->second.state, other);
        if (p.order < at->second.order) {
          at->second.order = p.order;
          at->second.from = p.from;
        }
      }
    std::vector<std::pair<const K*, part*>> sorted;
    sorted.reserve(sum.size());
    for (auto& [key, p] : sum) sorted.emplace_back(&key, &p);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
    for (auto& [key, p] : sorted) tell(*key, begin, begin + size_, std::move(p->state), p->from);
  }

  Fold& fold_;
  const std::int64_t size_, slide_;
  state_account& state_;
  std::map<std::int64_t, pane, std::less<>, state_allocator<std::pair<const std::int64_t, pane>>> panes_{
      state_allocator<std::pair<const std::int64_t, pane>>(state_)};  // by their beginnings
  std::int64_t next_ = std::numeric_limits<std::int64_t>::min();      // windows that begin earlier have been told
  pane* last_ = nullptr;
  std::int64_t last_begin_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace troupe::detail::streams
