// What this file is for: loans, pulls and words that take them back meet in any order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/loans.hpp"

#include <troupe/error.hpp>

namespace troupe::detail {

namespace {
[[noreturn]] void refuse(const char* what) { throw error(errc::protocol_error, what); }
}  // namespace

bool loans::wants(std::uint64_t number) const {
  if (all_.contains(number)) refuse("something was lent under a number that is in use");
  return !taken_back_.contains(number);  // the two come from different threads of the owner's
}

void loans::add(std::uint64_t number, transfer& t) {
  if (const auto early = early_.find(number); early != early_.end()) {
    t.whom = std::move(early->second);
    early_.erase(early);
  }
  all_.emplace(number, &t);
}

loans::pulled loans::pull(const borrower& who, bool is_over) {
  if (const auto found = all_.find(who.lent); found != all_.end()) {
    if (found->second->whom) refuse("what was lent once was pulled twice");
    found->second->whom = who;
    return {.from = found->second};
  }
  if (is_over || taken_back_.contains(who.lent) || early_.size() == early_max) return {};
  if (!early_.emplace(who.lent, who).second) refuse("what was lent once was pulled twice");
  return {.waits = true};
}

loans::taken_back loans::take_back(std::uint64_t number) {
  if (const auto found = all_.find(number); found != all_.end()) return {.loan = found->second, .too_early = {}};
  taken_back r;
  if (const auto early = early_.find(number); early != early_.end()) {
    r.too_early = std::move(early->second);
    early_.erase(early);
  } else {
    // The loan has been pulled, or never will be, or a pull is about to come.
    if (taken_back_.insert(number).second) taken_back_in_order_.push_back(number);
    if (taken_back_in_order_.size() > early_max) {
      taken_back_.erase(taken_back_in_order_.front());
      taken_back_in_order_.pop_front();
    }
  }
  return r;
}

}  // namespace troupe::detail
