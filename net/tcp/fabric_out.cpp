// What this file is for: cuts transfers into parts and keeps few of them under way, so that a short one waits briefly.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/fabric_out.hpp"

#include <algorithm>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {
constexpr std::size_t part_bytes = 4u << 20;
constexpr int parts_under_way = 3;
/// Shorter pieces are gathered: a part for each would cost more than copying them.
constexpr std::size_t alone_from = 64u << 10;
constexpr std::size_t gathered_bytes = 512u << 10;
}  // namespace

void fabric_out::add(transfer_out t) {
  waiting_.push_back(std::move(t));
  offer();
}

void fabric_out::offer() {
  while (turns_.size() < transfers_max && !waiting_.empty()) {
    transfer_out t = std::move(waiting_.front());
    waiting_.pop_front();
    turn& next = turns_[++last_number_];
    next.body = piece_map(std::move(t.body));
    next.head = std::move(t.head);
    next.done = std::move(t.done);
    say_(part::offer, last_number_, next.body.size(), next.head);
  }
}

void fabric_out::taken(std::uint64_t number) {
  find(number, false).taken = true;
  order_.push_back(number);
  send_parts();
}

void fabric_out::left(std::uint64_t number) {
  find(number, false);
  finish(turns_.find(number));
}

void fabric_out::had(std::uint64_t number) {
  turn& t = find(number, true);
  if (t.at < t.body.size()) throw error(errc::protocol_error, "a peer has more of a transfer than was sent");
  t.had = true;
  say_(part::kept, number, 0, {});
  if (t.under_way == 0) finish(turns_.find(number));
}

std::size_t fabric_out::sent(std::uint64_t number, std::uint64_t offset) {
  const auto ended = parts_.extract({number, offset});
  const auto t = turns_.find(number);
  if (ended.empty() || t == turns_.end()) return 0;
  --under_way_;
  if (--t->second.under_way == 0 && t->second.had) finish(t);
  send_parts();
  return ended.mapped().bytes;
}

void fabric_out::abort() {
  auto open = std::exchange(turns_, {});
  auto waiting = std::exchange(waiting_, {});
  order_.clear();
  parts_.clear();
  for (auto& [number, t] : open) t.done(false);
  for (auto& t : waiting) t.done(false);
}

void fabric_out::send_parts() {
  while (under_way_ < parts_under_way && !order_.empty()) {
    const std::uint64_t number = order_.front();
    turn& t = turns_.find(number)->second;
    order_.pop_front();
    next_part(number, t);
    if (t.at < t.body.size()) order_.push_back(number);
  }
}

void fabric_out::next_part(std::uint64_t number, turn& t) {
  const std::uint64_t offset = t.at;
  const auto left = static_cast<std::size_t>(std::min<std::uint64_t>(t.body.size() - offset, part_bytes));
  part_out& p = parts_[{number, offset}];
  std::span<const std::byte> body = t.body.run(offset);
  body = body.first(std::min(body.size(), left));
  if (body.size() < std::min(alone_from, left)) {
    p.gathered.reserve(std::min(left, gathered_bytes));
    t.body.each(offset, std::min(left, gathered_bytes),
                [&](std::span<const std::byte> run) { p.gathered.insert(p.gathered.end(), run.begin(), run.end()); });
    body = p.gathered;
  }
  p.bytes = body.size();
  t.at += body.size();
  ++t.under_way;
  ++under_way_;
  send_(number, offset, body);
}

fabric_out::turn& fabric_out::find(std::uint64_t number, bool taken) {
  const auto t = turns_.find(number);
  if (t == turns_.end() || t->second.taken != taken || t->second.had)
    throw error(errc::protocol_error, "an answer to a transfer that does not wait for it");
  return t->second;
}

void fabric_out::finish(turns::iterator t) {
  const auto done = std::move(t->second.done);
  turns_.erase(t);
  done(true);
  offer();
}

}  // namespace troupe::net::tcp
