// What this file is for: bytes that go to another node with the task that reads them, before it has asked for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// Of one box. To be asked takes some 50 us, which is a tenth of what this much takes on a fast link; for more of them it is
// the node there that knows when.
constexpr std::uint64_t push_max = 1u << 20;
// A small box counts as that much.
constexpr std::uint64_t push_min = 4u << 10;

std::uint64_t weight_of(std::uint64_t bytes) { return std::max(bytes, push_min); }

}  // namespace

// Not where memory is counted, nor into what tasks there still use: it would have to be kept twice. What the task reads
// stays until it has ended here.
void node_actor::push_with(job& j, wire::gap& g, array_core& a) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(g.where.volume()) * a.spec.element;
  const bool fits = bytes <= push_max && pushing_bytes_ + weight_of(bytes) <= wire::pushed_bytes_max;
  if (!takes_pushes_ || g.lent != 0 || !fits) return;
  const net::pieces body = rows_of(link_, a, g.tile, g.where, false);
  net::writer head;
  head.fixed(wire::kind::bytes_pushed);
  head.varint(last_push_ + 1);
  pushes_.push_back({session_, j.id, bytes, head.take(), {body.begin(), body.end()}});
  g.pushed = ++last_push_;
  pushing_bytes_ += weight_of(bytes);
  ++j.pushing;
}

// They have not been begun, and the task does not go there.
void node_actor::drop_pushes(std::uint64_t with) {
  std::erase_if(pushes_, [&](const push& p) {
    if (p.job != with) return false;
    pushing_bytes_ -= weight_of(p.bytes);
    return true;
  });
}

// Their tasks have been sent. Without the lock: a session that has ended answers at once.
void node_actor::start_pushes(std::vector<push> all) {
  for (push& p : all) {
    counts_.bytes_out.fetch_add(p.bytes, std::memory_order_relaxed);
    const double begin = begin_share(out_share_);
    p.to->send_bulk(p.head, std::move(p.body), [this, with = p.job, bytes = p.bytes, begin](bool sent) {
      const float taken_ns = end_share(out_share_, begin);
      if (sent) placement_.report_transfer(host_space, facts_.space, bytes, taken_ns);
      pushed(with, bytes);
    });
  }
}

// Its memory is not read any more.
void node_actor::pushed(std::uint64_t with, std::uint64_t bytes) {
  std::unique_lock hold(lock_);
  pushing_bytes_ -= weight_of(bytes);
  if (job* const j = find_job(with)) {
    --j->pushing;
    finish_awaited(*j);
  }
  send_some();
  tell(hold);
}

}  // namespace troupe::detail
