// What this file is for: moves bulk whenever the socket lets it, a few chunks at a time so that all sessions get on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/bulk_line.hpp"

#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {
/// In one direction of one session, before others get their turn.
constexpr std::size_t turn_bytes = 1u << 20;
/// So much is worth waking up for in the middle of a chunk. A sender that wakes its receiver for each record of TLS
/// spends a good part of its time on that, and where both share a core they take turns.
constexpr std::size_t awaited_max = 64u << 10;
}  // namespace

bulk_line::bulk_line(loop& l, std::unique_ptr<stream> io, std::size_t out_max, std::size_t in_max, std::string peer,
                     std::unique_ptr<fabric_line> fabric)
    : loop_(l), peer_(std::move(peer)), io_(std::move(io)), in_(in_max), out_(out_max), fabric_(std::move(fabric)) {}

bulk_line::~bulk_line() = default;

void bulk_line::begin(bulk_in::arriving_told arriving, bulk_in::arrived_told arrived, failure failed) {
  if (!io_) return;
  failed_ = std::move(failed);
  in_.tell(arriving, arrived,
           [this](part what, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> content) {
             fabric_->hear(what, transfer, size, content);
           });
  watch_ = std::make_unique<watch>(loop_, io_->socket());
  fabric_->begin(
      std::move(arriving), std::move(arrived),
      [this](part what, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> content) {
        if (!watch_) return;
        out_.say(what, transfer, size, content);
        if (!writing_) put_out();
      },
      failed_);
  take_in();
  collect();
}

void bulk_line::send(transfer_out t) {
  {
    const std::lock_guard hold(lock_);
    if (!closed_) {
      new_.push_back(std::move(t));
      if (std::exchange(told_, true)) return;
      loop_.post([this, owner = owner_] {
        if (const auto alive = owner.lock()) collect();
      });
      return;
    }
  }
  t.done(false);
}

void bulk_line::close(std::function<void()> closed) {
  std::vector<transfer_out> never;
  {
    const std::lock_guard hold(lock_);
    closed_ = true;
    never.swap(new_);
  }
  watch_.reset();
  if (io_) io_->finish();
  io_.reset();
  in_.abort();
  out_.abort();
  for (auto& t : never) t.done(false);
  fabric_->close(std::move(closed));
}

void bulk_line::collect() {
  std::vector<transfer_out> fresh;
  {
    const std::lock_guard hold(lock_);
    if (!watch_) return;  // not begun: `begin` comes back to them
    told_ = false;
    fresh.swap(new_);
  }
  for (auto& t : fresh) {
    if (fabric_->takes(piece_cursor<const std::byte>::size(t.body))) {
      fabric_->send(std::move(t));
    } else {
      out_.add(std::move(t));
    }
  }
  if (!writing_) put_out();
}

void bulk_line::take_in() {
  const auto alive = owner_.lock();
  if (!watch_ || !alive) return;
  outcome what = outcome::failed;
  try {
    what = in_.step(*io_, turn_bytes);
  } catch (...) {
    return failed_(std::current_exception());
  }
  if (what == outcome::wants_read) {
    // Without TLS a piece is copied faster than waiting for more of them saves.
    if (!io_->plain()) io_->await(std::min(in_.outstanding(), awaited_max));
    watch_->readable([this] { take_in(); });
  } else if (what == outcome::wants_write) {
    reading_wants_write_ = true;
    wait_to_write();
  } else if (!broken(what)) {
    loop_.post([this, owner = owner_] {
      if (const auto still = owner.lock()) take_in();
    });
  }
}

void bulk_line::put_out() {
  const auto alive = owner_.lock();
  if (!watch_ || !alive) return;
  const outcome what = out_.step(*io_, turn_bytes);
  if (what == outcome::wants_write || what == outcome::wants_read) {
    writing_ = true;
    wait_to_write();
  } else if (!broken(what)) {
    writing_ = !out_.idle();
    if (!writing_) return;
    loop_.post([this, owner = owner_] {
      if (const auto still = owner.lock()) put_out();
    });
  }
}

void bulk_line::wait_to_write() {
  watch_->writable([this] {
    if (std::exchange(reading_wants_write_, false)) take_in();
    if (writing_) put_out();
  });
}

bool bulk_line::broken(outcome what) {
  if (what == outcome::moved) return false;
  const std::string how =
      what == outcome::ended ? "has closed the connection" : "cannot be reached any more: " + io_->failure();
  failed_(std::make_exception_ptr(error(errc::node_lost, peer_ + " " + how)));
  return true;
}

}  // namespace troupe::net::tcp
