// What this file is for: addresses that were dialled and from which no session came, and why.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <utility>

#include "net/transport.hpp"

namespace troupe::detail {

/// The last refusal of each address, for as long as it may be dialled again. Not thread-safe.
class dial_refusals {
 public:
  using time_point = net::transport::time_point;
  /// Refusals are kept for longer than any pause between two dials of an address (logic::dialling): an address that was
  /// not dialled since is not looked for.
  static constexpr std::chrono::seconds kept_for{30};
  static constexpr std::size_t kept_max = 1024;

  void add(const net::endpoint& where, std::exception_ptr why, time_point now) {
    std::erase_if(all_, [&](const auto& r) { return now - r.second.last > kept_for; });
    if (all_.size() < kept_max || all_.contains(where)) all_.insert_or_assign(where, refusal{std::move(why), now});
  }
  /// Forgets an address that has been reached.
  void remove(const net::endpoint& where) { all_.erase(where); }
  /// Calls f(address, why) for each that is not too old.
  template <class F>
  void each(time_point now, F&& f) const {
    for (const auto& [where, r] : all_)
      if (now - r.last <= kept_for) f(where, r.why);
  }

 private:
  struct refusal {
    std::exception_ptr why;
    time_point last;
  };
  std::map<net::endpoint, refusal> all_;
};

}  // namespace troupe::detail
