// What this file is for: cuts transfers into chunks and writes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/bulk_out.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "net/tcp/packer.hpp"

namespace troupe::net::tcp {

namespace {
/// A part up to this size goes out in one piece, with its header.
constexpr std::size_t small_max = 12u << 10;
constexpr std::size_t pieces_a_call = 64;
/// Bytes that have just been summed are still near when they are sent: larger chunks were measured to be slower.
constexpr std::size_t chunk_near = 256u << 10;
constexpr std::size_t sample_bytes = 64u << 10;
}  // namespace

outcome bulk_out::step(stream& io, std::size_t budget) {
  sums_ = io.plain();
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
  notes_.clear();
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

void bulk_out::say(part what, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> content) {
  chunk_header h{.what = what, .transfer = transfer, .offset = size, .hash = chunk_hash::of(content)};
  h.raw = h.stored = static_cast<std::uint32_t>(content.size());
  h.write(notes_);
  notes_.raw(content.data(), content.size());
}

void bulk_out::prepare() {
  saying_ = !notes_.empty();
  if (saying_) {
    std::swap(gathered_, notes_);
    notes_.clear();
    segments_.assign(1, gathered_.view());
    return;
  }
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
  part_began_ = now_();
}

void bulk_out::begin(turn& t) {
  chunk_header h{.what = part::begin, .transfer = t.number, .offset = t.size, .hash = chunk_hash::of(t.head)};
  h.raw = h.stored = static_cast<std::uint32_t>(t.head.size());
  h.write(gathered_);
  gathered_.raw(t.head.data(), t.head.size());
  t.begun = true;
}

void bulk_out::next_chunk(turn& t) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(std::min(chunk_bytes_, chunk_near), t.size - t.at));
  std::vector<std::span<const std::byte>> body;
  t.body.take(n, body);
  chunk_header h{.transfer = t.number, .offset = t.at};
  h.raw = h.stored = static_cast<std::uint32_t>(n);
  const auto smaller = packed(body, n);
  if (sums_ || !smaller.empty()) {
    hash_.start();
    for (const auto& b : body) hash_.add(b);
    h.hash = hash_.value();
  }
  if (!smaller.empty()) {
    body.assign(1, smaller);
    h.how = packing::lz4;
    h.stored = static_cast<std::uint32_t>(smaller.size());
  }
  h.write(gathered_);
  const bool gathers = h.stored <= small_max || h.stored / body.size() < scattered_below;
  for (const auto& b : body) {
    if (gathers) gathered_.raw(b.data(), b.size());
  }
  segments_.assign(1, gathered_.view());
  if (!gathers) segments_.insert(segments_.end(), body.begin(), body.end());
  t.at += n;
}

std::span<const std::byte> bulk_out::packed(const std::vector<std::span<const std::byte>>& body, std::size_t size) {
  if (size <= small_max) return {};
  auto way = choice_.next();
  if (way == packing_choice::way::plain) return {};
  std::span<const std::byte> raw = body.front();
  if (way == packing_choice::way::sample_first) {
    const auto some = raw.first(std::min(raw.size(), sample_bytes));
    packed_.resize(std::max(packed_.size(), some.size()));
    const auto began = now_();
    const std::size_t n = pack(some, std::span(packed_).first(some.size()));
    choice_.packed(some.size(), n == 0 ? some.size() : n, seconds_since(began));
    return {};  // the next one goes by what was learned
  }
  const auto began = now_();
  if (body.size() > 1) {
    raw_.clear();
    for (const auto& b : body) raw_.insert(raw_.end(), b.begin(), b.end());
    raw = raw_;
  }
  packed_.resize(std::max(packed_.size(), size));
  const std::size_t n = pack(raw, std::span(packed_).first(size - 1));
  choice_.packed(size, n == 0 ? size : n, seconds_since(began));
  return std::span<const std::byte>(packed_).first(n);
}

double bulk_out::seconds_since(std::chrono::steady_clock::time_point began) const {
  return std::chrono::duration<double>(now_() - began).count();
}

void bulk_out::finish_turn() {
  if (std::exchange(saying_, false)) {
    segments_.clear();
    segment_ = at_ = 0;
    return;
  }
  std::size_t bytes = 0;
  for (const auto& s : segments_) bytes += s.size();
  choice_.wrote(bytes, seconds_since(part_began_));
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
