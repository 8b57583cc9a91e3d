// What this file is for: what this node keeps of another one's arrays until a third node has pulled it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "actors/node_service/transfer.hpp"

namespace troupe::detail {

/// Loans by the owner's numbers. The loan, the pull, and the word that nothing is lent under a number come over
/// different connections, in any order. Under the service's lock; the functions say what is to be done.
class loans {
 public:
  /// False if the owner has taken the loan back before it came: then nothing is to be kept. Throws
  /// error(protocol_error) for a number that is in use.
  bool wants(std::uint64_t number) const;
  /// Adds a loan under a number that is wanted. If it has been pulled already, `t.whom` is set.
  void add(std::uint64_t number, transfer& t);

  struct pulled {
    transfer* from = nullptr;  // the loan, which has been given its borrower
    bool waits = false;        // the loan has not come yet; else, without `from`: the borrower is to be turned away
  };
  /// Notes that a loan is pulled. `is_over`: the owner has gone, and no loan will come. Throws error(protocol_error) if
  /// it was pulled before.
  pulled pull(const borrower& who, bool is_over);

  struct taken_back {
    transfer* loan = nullptr;           // it is to be ended, unless it is being sent
    std::optional<borrower> too_early;  // it waited for the loan and is to be turned away
  };
  /// Notes that nobody is to pull under that number any more.
  taken_back take_back(std::uint64_t number);

  void remove(std::uint64_t number) { all_.erase(number); }
  /// Forgets the pulls that wait for loans and that `is_gone` agrees to.
  template <class F>
  void forget_early(F&& is_gone) {
    std::erase_if(early_, [&](const auto& e) { return is_gone(e.second); });
  }
  template <class F>
  void each(F&& f) {
    for (const auto& [number, t] : all_) f(*t);
  }
  /// Returns the pulls that wait for loans, and forgets them.
  std::unordered_map<std::uint64_t, borrower> take_early() { return std::exchange(early_, {}); }

 private:
  /// Most pulls, and most numbers taken back, that are kept before their loans come.
  static constexpr std::size_t early_max = 65536;

  std::unordered_map<std::uint64_t, transfer*> all_;
  std::unordered_set<std::uint64_t> taken_back_;
  std::deque<std::uint64_t> taken_back_in_order_;
  std::unordered_map<std::uint64_t, borrower> early_;
};

}  // namespace troupe::detail
