// What this file is for: puts chunks together to transfers, and believes nothing that the other side says of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/bulk_in.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "net/tcp/packer.hpp"

namespace troupe::net::tcp {

namespace {

constexpr std::size_t pieces_a_call = 64;
/// Read at once, so that it is still near when its checksum is computed.
constexpr std::size_t read_max = 256u << 10;

[[noreturn]] void wrong(const std::string& what) {
  throw error(errc::protocol_error, "a transfer is malformed: " + what);
}

}  // namespace

outcome bulk_in::step(stream& io, std::size_t budget) {
  sums_ = io.plain();
  for (std::size_t taken = 0; taken < budget;) {
    const moved m = read(io);
    if (m.what != outcome::moved) return m.what;
    taken += m.bytes;
    for (std::size_t left = m.bytes; left > 0;) {
      const auto target = targets_[target_].subspan(at_);
      const std::size_t n = std::min(left, target.size());
      if (hashes_) hash_.add(target.first(n));
      left -= n;
      at_ += n;
      if (at_ == targets_[target_].size()) {
        ++target_;
        at_ = 0;
      }
    }
    // Parts may be empty: the head of a transfer, a transfer of nothing.
    while (target_ == targets_.size()) {
      target_ = 0;
      if (state_ == state::header) {
        header_read();
      } else if (state_ == state::head) {
        is_note(header_.what) ? note_read() : begin_read();
      } else {
        chunk_read();
      }
    }
  }
  return outcome::moved;
}

std::size_t bulk_in::outstanding() const {
  std::size_t bytes = 0;
  for (std::size_t i = target_; i < targets_.size(); ++i) bytes += targets_[i].size();
  return bytes - at_;
}

void bulk_in::abort() {
  auto open = std::exchange(open_, {});
  for (auto& [number, t] : open) arrived_(t.head, false);
}

moved bulk_in::read(stream& io) {
  const auto first = targets_[target_].subspan(at_);
  if (!io.plain() || target_ + 1 == targets_.size()) return io.read(first.data(), std::min(first.size(), read_max));
  std::array<iovec, pieces_a_call> pieces;
  std::size_t n = 0;
  for (std::size_t i = target_; i < targets_.size() && n < pieces.size(); ++i) {
    const auto t = i == target_ ? first : targets_[i];
    pieces[n++] = {t.data(), t.size()};
  }
  return io.read(std::span<const iovec>(pieces).first(n));
}

void bulk_in::next_header() {
  hashes_ = false;
  state_ = state::header;
  fill(header_bytes_);
}

void bulk_in::header_read() {
  header_ = chunk_header::read(header_bytes_);
  hash_.start();
  hashes_ = header_.how == packing::none && (sums_ || header_.what != part::chunk);
  if (header_.what == part::begin) {
    expect_begin();
  } else if (is_note(header_.what)) {
    expect_note();
  } else {
    expect_chunk();
  }
}

void bulk_in::expect_begin() {
  if (header_.transfer <= last_number_) wrong("its number has been used");
  if (open_.size() >= transfers_max) wrong("too many are under way at once");
  if (header_.raw > head_max || header_.raw != header_.stored || header_.how != packing::none)
    wrong("its head is too long");
  expect_head();
}

void bulk_in::expect_note() {
  if (!note_) wrong("a note that nobody understands");
  if (header_.raw > note_max || header_.raw != header_.stored || header_.how != packing::none)
    wrong("a note is too long");
  expect_head();
}

void bulk_in::expect_head() {
  head_.resize(header_.raw);
  state_ = state::head;
  targets_.clear();
  if (!head_.empty()) fill(head_);
}

void bulk_in::begin_read() {
  if (hash_.value() != header_.hash) wrong("the checksum of its head is wrong");
  last_number_ = header_.transfer;
  transfer& t = open_[header_.transfer];
  t.head = head_;
  t.size = header_.offset;
  pieces to = arriving_(t.head, t.size);
  t.wanted = piece_cursor<std::byte>::size(to) == t.size;
  if (t.wanted) t.to = piece_cursor(std::move(to));
  next_header();
  if (t.size == 0) {
    const auto node = open_.extract(header_.transfer);
    arrived_(node.mapped().head, true);
  }
}

void bulk_in::note_read() {
  if (hash_.value() != header_.hash) wrong("the checksum of a note is wrong");
  next_header();
  note_(header_.what, header_.transfer, header_.offset, head_);
}

void bulk_in::expect_chunk() {
  const auto it = open_.find(header_.transfer);
  if (it == open_.end()) wrong("a chunk belongs to none that is under way");
  transfer& t = it->second;
  if (header_.offset != t.at) wrong("a chunk does not follow the one before it");
  if (header_.raw == 0 || header_.raw > chunk_max_ || header_.raw > t.size - t.at) wrong("the size of a chunk");
  const bool packed = header_.how != packing::none;
  if (packed ? header_.stored == 0 || header_.stored >= header_.raw : header_.stored != header_.raw)
    wrong("the size of a chunk on the wire");
  state_ = state::body;
  belongs_.clear();
  if (t.wanted) t.to.take(header_.raw, belongs_);
  direct_ = t.wanted && !packed && header_.raw / belongs_.size() >= scattered_below;
  if (direct_) {
    targets_ = belongs_;
  } else {
    if (scratch_.size() < header_.stored) scratch_.resize(header_.stored);
    fill(std::span(scratch_).first(header_.stored));
  }
}

void bulk_in::chunk_read() {
  transfer& t = open_.find(header_.transfer)->second;
  if (!direct_ && t.wanted) {
    std::span<const std::byte> raw = std::span(scratch_).first(header_.stored);
    if (header_.how == packing::lz4) raw = unpacked(raw);
    for (const auto& b : belongs_) {
      if (b.data() != raw.data()) std::memcpy(b.data(), raw.data(), b.size());
      raw = raw.subspan(b.size());
    }
  }
  const bool has_sum = header_.how == packing::none ? sums_ : t.wanted;
  if (has_sum && hash_.value() != header_.hash) wrong("the checksum of a chunk is wrong");
  t.at += header_.raw;
  next_header();
  if (t.at == t.size) {
    const auto node = open_.extract(header_.transfer);
    arrived_(node.mapped().head, true);
  }
}

std::span<const std::byte> bulk_in::unpacked(std::span<const std::byte> stored) {
  std::span<std::byte> to = belongs_.front();
  if (belongs_.size() > 1) {
    if (unpacked_.size() < header_.raw) unpacked_.resize(header_.raw);
    to = std::span(unpacked_).first(header_.raw);
  }
  if (!unpack(stored, to)) wrong("a chunk does not unpack to its size");
  hash_.add(to);
  return to;
}

}  // namespace troupe::net::tcp
