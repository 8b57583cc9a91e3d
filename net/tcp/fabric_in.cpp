// What this file is for: takes transfers through a fabric, with every number of the peer's checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/fabric_in.hpp"

#include <cstring>
#include <string>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {
/// More than any node sends at once.
constexpr std::uint64_t part_max = 16u << 20;
constexpr std::size_t parts_max = 16;

[[noreturn]] void wrong(const std::string& what) {
  throw error(errc::protocol_error, "a transfer through the fabric is malformed: " + what);
}
}  // namespace

void fabric_in::offered(std::uint64_t number, std::uint64_t size, std::span<const std::byte> head) {
  if (number <= last_number_) wrong("its number has been used");
  if (open_.size() >= transfers_max) wrong("too many are under way at once");
  if (head.size() > head_max) wrong("its head is too long");
  if (size == 0) wrong("there is nothing in it");
  last_number_ = number;
  piece_map<std::byte> to(arriving_(head, size));
  if (to.size() == size) {
    open_[number] = {{head.begin(), head.end()}, std::move(to)};
    say_(part::take, number, 0, {});
  } else {
    say_(part::leave, number, 0, {});
    arrived_(head, true);
  }
}

std::span<std::byte> fabric_in::destination(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
  const auto found = open_.find(number);
  if (found == open_.end()) wrong("a part belongs to none that is under way");
  transfer& t = found->second;
  // Parts come one after the other, so that none can be missing when as many bytes are there.
  if (offset != t.begun) wrong("a part does not follow the one before it");
  if (bytes == 0 || bytes > part_max || bytes > t.to.size() - t.begun) wrong("the size of a part");
  if (parts_.size() >= parts_max) wrong("too many parts are under way at once");
  t.begun += bytes;
  part_in& p = parts_[{number, offset}];
  p.bytes = static_cast<std::size_t>(bytes);
  const std::span<std::byte> straight = t.to.run(offset);
  if (straight.size() >= p.bytes) return straight.first(p.bytes);
  p.scratch.resize(p.bytes);
  return p.scratch;
}

void fabric_in::placed(std::uint64_t number, std::uint64_t offset) {
  const auto ended = parts_.extract({number, offset});
  const auto found = open_.find(number);
  if (ended.empty() || found == open_.end()) return;
  transfer& t = found->second;
  const part_in& p = ended.mapped();
  const std::byte* from = p.scratch.data();
  if (from) {
    t.to.each(offset, p.bytes, [&](std::span<std::byte> run) {
      std::memcpy(run.data(), from, run.size());
      from += run.size();
    });
  }
  t.there += p.bytes;
  if (t.there == t.to.size()) say_(part::have, number, 0, {});
}

void fabric_in::kept(std::uint64_t number) {
  const auto found = open_.find(number);
  if (found == open_.end() || found->second.there != found->second.to.size())
    wrong("it is confirmed before it is there");
  const auto ended = open_.extract(found);
  arrived_(ended.mapped().head, true);
}

void fabric_in::abort() {
  auto open = std::exchange(open_, {});
  parts_.clear();
  for (auto& [number, t] : open) arrived_(t.head, false);
}

}  // namespace troupe::net::tcp
