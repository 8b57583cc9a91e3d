// What this file is for: questions to all members that have not been answered by all of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "actors/protocol/node.hpp"
#include "actors/wire/node_messages.hpp"

namespace troupe::detail {

/// Surveys by number, with what has been answered. Not thread-safe.
class open_surveys {
 public:
  using answers = std::map<node_id, wire::self_descriptor>;

  /// Opens a survey of these members and returns its number.
  std::uint64_t open(std::set<node_id> asked) {
    all_.emplace(++last_, survey{std::move(asked), {}});
    return last_;
  }
  bool is_complete(std::uint64_t number) const { return all_.at(number).awaited.empty(); }
  /// Ends a survey and returns the answers that have come.
  answers close(std::uint64_t number) {
    answers all = std::move(all_.at(number).answered);
    all_.erase(number);
    return all;
  }
  /// Takes an answer; false: it is too late, or was not asked for.
  bool answer(const node_id& by, wire::self_descriptor what) {
    const auto s = all_.find(what.number);
    if (s == all_.end() || s->second.awaited.erase(by) == 0) return false;
    s->second.answered.emplace(by, std::move(what));
    return true;
  }
  /// Notes that a member has gone: it will not answer.
  void lose(const node_id& who) {
    for (auto& [number, s] : all_) s.awaited.erase(who);
  }

 private:
  struct survey {
    std::set<node_id> awaited;
    answers answered;
  };
  std::map<std::uint64_t, survey> all_;
  std::uint64_t last_ = 0;
};

}  // namespace troupe::detail
