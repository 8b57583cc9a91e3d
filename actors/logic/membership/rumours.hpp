// What this file is for: members: changes that are passed on with heartbeats, each a few times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "actors/protocol/node.hpp"

namespace troupe::logic {

/// Nodes of which something new is to be told, and how often each has been told. They are told in turn.
class rumours {
 public:
  using node_id = detail::node_id;

  /// Has the node's record told, from the first time again if it is told already. `first`: before all others, else
  /// after them. Does nothing while quiet.
  void add(const node_id& n, bool first) {
    if (quiet_) return;
    const auto same = std::ranges::find(all_, n, &rumour::node);
    if (same != all_.end())
      same->told = 0;
    else if (first)
      all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(std::min(next_, all_.size())), {n, 0});
    else
      all_.push_back({n, 0});
  }
  /// Keeps what is added from now on from being told: others know it.
  void be_quiet(bool quiet) { quiet_ = quiet; }

  /// Calls `tell(node)` for the next nodes, `most` at most, and forgets each after it has been told `enough` times or
  /// `tell` has returned false: nothing is known of it any more.
  template <class F>
  void tell(std::size_t most, std::size_t enough, F&& tell) {
    for (std::size_t i = std::min(most, all_.size()); i > 0 && !all_.empty(); --i) {
      if (next_ >= all_.size()) next_ = 0;
      rumour& r = all_[next_];
      if (!tell(r.node) || ++r.told >= enough)
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(next_));
      else
        ++next_;
    }
  }

 private:
  struct rumour {
    node_id node;
    std::size_t told;
  };
  std::vector<rumour> all_;
  std::size_t next_ = 0;
  bool quiet_ = false;
};

}  // namespace troupe::logic
