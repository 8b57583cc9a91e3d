// What this file is for: when threads that submit order their tasks themselves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"

namespace troupe::detail {

static_assert(in_flight::sides == side_turns::sides);

// True if nothing has to be decided about calls on whole tiles: there is one executor, and no trace.
bool placement::may_order_aside() const { return releases_early() && executors_.size() == 1 && !trace_.is_on(); }

// Decides, after some mail was handled, whether threads that submit are to order tasks themselves.
void placement::look_at_sides(std::size_t fetched, std::size_t lanes) {
  if (turns_.aside().are_wanted()) {
    if (side_policy_.is_to_stop(aside_.ordered())) turns_.aside().stop();
    return;
  }
  if (side_policy_.is_to_begin(fetched, lanes)) begin_sides();
}

void placement::begin_sides() {
  if (!may_order_aside() || ending_.has_begun()) return;
  if (!aside_.exist()) {
    if (!aside_.make()) return;
    in_flight_.count_sides();
  }
  turns_.aside().want(mail_.next_fetch());
  mail_.await_posting();
}

// Notes how far mail has been handled, as the turn is about to be left. Tasks that are ordered aside from now on have
// numbers behind all whose predictions hold no more.
void placement::note_handled_mail() {
  aside_.even_out();
  if (!mail_.work().empty()) return;
  mail_.fetch_nothing();
  turns_.aside().note_handled(mail_.fetched());
}

}  // namespace troupe::detail
