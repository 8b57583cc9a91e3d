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
  sliding_panes(Fold& f, std::int64_t size, std::int64_t slide) : fold_(f), size_(size), slide_(slide) {}

  /// `begin`: of the pane that the item is in, a multiple of `slide`.
  template <class T>
  void add(std::int64_t begin, K key, const T& item, const origin& from) {
    if (!last_ || last_begin_ != begin) {
      last_ = &panes_[begin];
      last_begin_ = begin;
    }
    auto at = last_->find(key);
    if (at == last_->end()) at = last_->emplace(std::move(key), part{fold_.initial, order_++, from}).first;
    std::invoke(fold_.add, at->second.state, item);
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
    S state;
    std::uint64_t order;  // of its first item
    origin from;
  };
  using pane = std::unordered_map<K, part>;

  template <class Tell>
  void end(std::int64_t begin, Tell& tell) {
    pane sum;
    for (auto it = panes_.begin(); it != panes_.end() && it->first < begin + size_; ++it)
      for (const auto& [key, p] : it->second) {
        const auto [at, is_new] = sum.try_emplace(key, p);
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
  std::map<std::int64_t, pane> panes_;                            // by their beginnings
  std::int64_t next_ = std::numeric_limits<std::int64_t>::min();  // windows that begin earlier have been told
  pane* last_ = nullptr;
  std::int64_t last_begin_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace troupe::detail::streams
