// What this file is for: cuts transfers into chunks and writes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/bulk_out.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::net::tcp {

namespace {
/// A part up to this size goes out in one piece, with its header.
constexpr std::size_t small_max = 12u << 10;
constexpr std::size_t pieces_a_call = 64;
}  // namespace

outcome bulk_out::step(stream& io, std::size_t budget) {
  for (std::size_t written = 0; written < budget;) {
    if (segments_.empty()) prepare();
    if (segments_.empty()) break;
    const moved m = write(io);
    if (m.what != outcome::moved) return m.what;
    written += m.bytes;
    at_ += m.bytes;
    while (segment_ < segments_.size() && at_ >= segments_[segment_].size()) at_ -= segments_[segment_++].size();
    if (segment_ == segments_.size()) finish_turn();
  }
  return outcome::moved;
}

void bulk_out::abort() {
  segments_.clear();
  auto turns = std::exchange(turns_, {});
  auto waiting = std::exchange(waiting_, {});
  for (auto& t : turns) t.done(false);
  for (auto& t : waiting) t.done(false);
}

moved bulk_out::write(stream& io) {
  const auto first = segments_[segment_].subspan(at_);
  if (!io.plain() || segment_ + 1 == segments_.size()) return io.write(first.data(), first.size());
  std::array<iovec, pieces_a_call> pieces;
  std::size_t n = 0;
  for (std::size_t i = segment_; i < segments_.size() && n < pieces.size(); ++i) {
    const auto s = i == segment_ ? first : segments_[i];
    pieces[n++] = {const_cast<std::byte*>(s.data()), s.size()};
  }
  return io.write(std::span(pieces).first(n));
}

void bulk_out::prepare() {
  while (turns_.size() < transfers_max && !waiting_.empty()) {
    transfer_out t = std::move(waiting_.front());
    waiting_.pop_front();
    const std::uint64_t size = piece_cursor<const std::byte>::size(t.body);
    turns_.push_back({++last_number_, size, 0, std::move(t.head), piece_cursor(std::move(t.body)), std::move(t.done)});
  }
  if (turns_.empty()) return;
  gathered_.clear();
  turn& t = turns_.front();
  if (!t.begun) begin(t);
  if (t.at < t.size) {
    next_chunk(t);
  } else {
    segments_.assign(1, gathered_.view());
  }
}

void bulk_out::begin(turn& t) {
  chunk_header h{.what = part::begin, .transfer = t.number, .offset = t.size, .hash = chunk_hash::of(t.head)};
  h.raw = h.stored = static_cast<std::uint32_t>(t.head.size());
  h.write(gathered_);
  gathered_.raw(t.head.data(), t.head.size());
  t.begun = true;
}

void bulk_out::next_chunk(turn& t) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes_, t.size - t.at));
  std::vector<std::span<const std::byte>> body;
  t.body.take(n, body);
  hash_.start();
  for (const auto& b : body) hash_.add(b);
  chunk_header h{.transfer = t.number, .offset = t.at, .hash = hash_.value()};
  h.raw = h.stored = static_cast<std::uint32_t>(n);
  h.write(gathered_);
  const bool gathers = n <= small_max || n / body.size() < scattered_below;
  if (gathers) gather(body);
  segments_.assign(1, gathered_.view());
  if (!gathers) segments_.insert(segments_.end(), body.begin(), body.end());
  t.at += n;
}

void bulk_out::gather(const std::vector<std::span<const std::byte>>& body) {
  for (const auto& b : body) gathered_.raw(b.data(), b.size());
}

void bulk_out::finish_turn() {
  segments_.clear();
  segment_ = at_ = 0;
  if (turns_.front().at < turns_.front().size) {
    turns_.splice(turns_.end(), turns_, turns_.begin());
    return;
  }
  const auto done = std::move(turns_.front().done);
  turns_.pop_front();
  done(true);
}

}  // namespace troupe::net::tcp
