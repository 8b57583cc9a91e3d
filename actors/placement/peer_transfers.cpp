// What this file is for: placement's decisions about copies between devices: which device lends a tile, and to which.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --lend--> device that has the tile --done--> placement --task with the loan--> device that copies it
//
// A tile stays dirty in its device while others have copies of it: that device remains its owner, and copies it to host
// memory when it must make room or a task needs it there. Only a task that writes the tile elsewhere takes that over.
// So there is one loan for a version, shared by all that read it; see protocol/peer_loan.hpp.
#include <algorithm>
#include <bit>

#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/peer_loan.hpp"

namespace troupe::detail {

void placement::connect(memory_space a, memory_space b) {
  assignment_.connect(a, b);
  assignment_.connect(b, a);
}

void placement::know_peers(memory_space a, memory_space b, logic::edge_cost into_a, logic::edge_cost into_b) {
  assignment_.know_link(b, a, into_a);
  assignment_.know_link(a, b, into_b);
}

// Has a task borrow a tile from the device that owns it. Refused: the device wanted its memory back, and the tile is in
// host memory by now or on its way.
placement::borrowed placement::borrow(task_record& t, array_core& a, std::uint32_t tile, tile_home& home) {
  const std::uint32_t version = home.version.load(std::memory_order_relaxed);
  if (!home.loan || home.loan->version != version || home.loan->from != home.dirty_in) {
    home.loan = std::make_shared<peer_loan>(a, tile, version, home.dirty_in);
    task_record* const lend = make_lend(link_, home.loan);
    hand_over(*lend, home.dirty_in);
    home.lending = {lend, lend->sequence};
  }
  const auto is_over = [&] { return home.lending.task == retiring_ || !deps_.alive(home.lending); };
  if (!is_over() && deps_.link(home.lending, t, true)) return borrowed::waits;
  if (!home.loan->is_open()) return borrowed::refused;
  if (!t.extra) t.extra = new task_extra;
  auto& loans = t.extra->loans;
  if (std::find(loans.begin(), loans.end(), home.loan) == loans.end()) loans.push_back(home.loan);
  return borrowed::has;
}

// Asks devices that may have copied a tile, one after the other, for their copy after the dirty one is lost; marks the
// tile lost if there is none.
void placement::rescue(array_core& a, std::uint32_t tile, tile_home& home, std::exception_ptr lost) {
  // A borrower that has written it since will report so; till then no other task needs it.
  const bool replaced = home.loan && home.loan->is_replaced();
  home.loan = nullptr;
  if (home.cached.empty() || replaced) {
    home.dirty_in = host_space;
    home.lost = std::move(lost);
    return;
  }
  const auto guest = static_cast<memory_space>(home.cached.first());
  task_record* const errand = make_rescue(link_, a, tile, std::move(lost));
  hand_over(*errand, guest);
  home.dirty_in = no_space;
  home.moving = {errand, errand->sequence};
}

}  // namespace troupe::detail
