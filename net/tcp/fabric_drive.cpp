// What this file is for: turns of a fabric: while there is something to do others get theirs between, else it waits.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/fabric_drive.hpp"

#include <utility>

namespace troupe::net::tcp {

namespace {
constexpr int steps_a_turn = 2;
/// A peer that has gone ends its paths, too, so one is no proof.
constexpr int failures_max = 3;
constexpr std::size_t remembered_max = 1024;
}  // namespace

void fabric_drive::begin() {
  watch_ = std::make_unique<watch>(loop_, fabric_->descriptor());
  kick();
}

void fabric_drive::end() { watch_.reset(); }

void fabric_drive::kick() {
  if (!watch_ || std::exchange(kicked_, true)) return;
  loop_.post([this] {
    kicked_ = false;
    run();
  });
}

void fabric_drive::run() {
  if (!watch_) return;
  for (int i = 0; i < steps_a_turn; ++i) {
    if (fabric_->work()) continue;
    if (!fabric_->rest()) break;
    if (!std::exchange(waiting_, true)) {
      watch_->readable([this] {
        waiting_ = false;
        run();
      });
    }
    return;
  }
  kick();
}

bool fabric_drive::is_tried_with(const node_id& peer) const {
  const auto found = failures_.find(peer);
  return found == failures_.end() ? failures_.size() < remembered_max : found->second < failures_max;
}

}  // namespace troupe::net::tcp
