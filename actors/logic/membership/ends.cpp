// What this file is for: members: suspicion, and the end of one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

void membership::doubt(member& m, time_point now) {
  if (m.doubt.stands || !m.met) return;
  m.doubt.stands = true;
  m.doubt.since = now;
  m.doubt.probed = {};
  actions_.push_back(suspected{m.record.node});
}

void membership::end(member& m, node_end why, node_claim claim, time_point now) {
  const node_id n = m.record.node;
  const bool was_met = std::exchange(m.met, false), had_session = std::exchange(m.session.up, false);
  m.record.claim = claim;
  m.session.greeted = m.doubt.stands = m.watch.wanted = m.watch.chosen = m.session.said_link = m.session.heard_link =
      false;
  m.ended = now;
  m.askers.clear();
  turns_.clear();
  if (was_met) actions_.push_back(gone{n, why});
  show(m, why);
  changed(m);
  if (had_session) actions_.push_back(close{n});
  if (claim == node_claim::left)
    dials_.drop(n);
  else if (is_mesh_)
    dials_.lost(n, now, why != node_end::ended);
  else
    dials_.let_be(n, now, false);
  spread(n);
  if (why != node_end::said && why != node_end::left)
    say_all({m.record});
  else if (!is_mesh_)
    pass_on(m);
}

}  // namespace troupe::logic
