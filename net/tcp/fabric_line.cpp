// What this file is for: how two sides come to use a fabric, and that they go on without one where it does not work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/fabric_line.hpp"

#include <cstring>
#include <utility>

#include <troupe/error.hpp>

#include "net/tcp/fabric_note.hpp"

namespace troupe::net::tcp {

namespace {
/// Below that a socket was measured to be as fast: there are two exchanges less.
constexpr std::uint64_t worth_it = 128u << 10;

fabric_token fresh_token() {
  static_assert(sizeof(fabric_token) == sizeof(node_id));
  const node_id random = node_id::random();
  fabric_token t;
  std::memcpy(t.data(), random.bytes.data(), t.size());
  return t;
}
}  // namespace

fabric_line::fabric_line(fabric_drive* drive, const node_id& peer, std::string name, std::shared_ptr<meter> counts)
    : drive_(drive), peer_(peer), name_(std::move(name)), counts_(std::move(counts)) {}

void fabric_line::begin(bulk_in::arriving_told arriving, bulk_in::arrived_told arrived, say_told say, failure failed) {
  if (!drive_ || !drive_->is_tried_with(peer_)) return;
  say_ = std::move(say);
  failed_ = std::move(failed);
  in_.tell(std::move(arriving), std::move(arrived), say_);
  out_.tell(say_, [this](std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) {
    path_->send(transfer, offset, body);
    drive_->kick();
  });
  const auto address = drive_->fabric().address();
  const fabric_note own{drive_->fabric().kind(), fresh_token(), {address.begin(), address.end()}};
  writer w;
  own.write(w);
  if (w.size() > note_max) return;
  path_ = drive_->fabric().open(own.token, *this);
  say_(part::fabric, 0, 0, w.view());
}

bool fabric_line::takes(std::uint64_t bytes) const { return ready_ && bytes >= worth_it; }

void fabric_line::hear(part what, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> content) {
  if (what == part::fabric) return connect(content);
  if (!path_) throw error(errc::protocol_error, "a note about a fabric that this side has not offered");
  switch (what) {
    case part::ready:
      ready_ = connected_;
      return;
    case part::offer:
      return in_.offered(transfer, size, content);
    case part::take:
      return out_.taken(transfer);
    case part::leave:
      return out_.left(transfer);
    case part::have:
      return out_.had(transfer);
    default:
      return in_.kept(transfer);
  }
}

void fabric_line::connect(std::span<const std::byte> note) {
  const auto theirs = fabric_note::read(note);
  if (std::exchange(heard_, true)) throw error(errc::protocol_error, "a peer says twice where its fabric is");
  if (!path_ || theirs.address.empty() || theirs.kind != drive_->fabric().kind()) return;
  // If it cannot be reached, bodies go the way they go without a fabric.
  connected_ = !path_->connect(theirs.address, theirs.token);
  if (connected_) path_->greet();
  drive_->kick();
}

void fabric_line::close(std::function<void()> closed) {
  ready_ = false;
  if (!path_) return closed();
  path_->close([this, closed = std::move(closed)] {
    in_.abort();
    out_.abort();
    closed();
  });
  drive_->kick();
}

void fabric_line::greeted() {
  said_ready_ = true;
  say_(part::ready, 0, 0, {});
}

std::span<std::byte> fabric_line::destination(std::uint64_t transfer, std::uint64_t offset, std::uint64_t bytes) {
  if (refused_) return {};
  try {
    const auto to = in_.destination(transfer, offset, bytes);
    counts_->heard_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    counts_->fabric_received += bytes;
    return to;
  } catch (...) {
    refuse(std::current_exception());
    return {};
  }
}

void fabric_line::placed(std::uint64_t transfer, std::uint64_t offset) { in_.placed(transfer, offset); }

void fabric_line::sent(std::uint64_t transfer, std::uint64_t offset) {
  counts_->fabric_sent += out_.sent(transfer, offset);
}

void fabric_line::broken(const std::string& why) {
  drive_->failed_with(peer_);
  connected_ = false;
  if (!ready_ && !said_ready_) return;  // nothing has gone that way: sockets will do
  refuse(std::make_exception_ptr(error(errc::node_lost, name_ + " cannot be reached through the fabric: " + why)));
}

void fabric_line::refuse(std::exception_ptr why) {
  ready_ = false;
  if (!std::exchange(refused_, true)) failed_(std::move(why));
}

}  // namespace troupe::net::tcp
