// What this file is for: members: a vote about a view is passed on for as long as it gathers something new.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "actors/protocol/membership.hpp"

namespace troupe::logic {

/// Remembers the last poll that was looked at, and since when it has been the same.
class poll_relay {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// True if the poll is to be passed on: it has gathered votes, or is another one, within `limit`. One that gathers
  /// nothing is not passed on any more: there will be another one.
  bool is_news(const detail::view_poll& poll, time_point now, std::chrono::milliseconds limit) {
    std::size_t votes = 0;
    for (const std::uint8_t v : poll.votes) votes += v;
    const std::tuple is(poll.ballot, poll.accepting, votes);
    if (is != last_) since_ = now;
    last_ = is;
    return now - since_ <= limit;
  }

 private:
  std::tuple<detail::view_ballot, bool, std::size_t> last_{};
  time_point since_{};
};

}  // namespace troupe::logic
