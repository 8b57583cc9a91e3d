// What this file is for: other nodes as placement has them: they come, wait and send once the turn has been left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/placement.hpp"

namespace troupe::detail {

// Whoever was told something in this turn goes on outside of it.
void placement::leave_and_tell() {
  const std::vector<executor*> nodes = std::exchange(told_nodes_, {});
  const std::vector<task_listener*> listeners = std::exchange(told_listeners_, {});
  std::vector<std::pair<executor*, std::pair<array_core*, std::uint32_t>>> saves;
  for (const auto& s : std::exchange(to_save_, {})) {
    const memory_space in = s.first->homes->tiles[s.second].dirty_in;
    const auto of = std::ranges::find_if(
        executors_, [&](executor* e) { return e->facts().kind == device_kind::node && e->facts().space == in; });
    saves.emplace_back(of == executors_.end() ? nullptr : *of, s);
  }
  turn_.store(false, std::memory_order_seq_cst);
  for (const auto& [e, s] : saves) e ? e->save(*s.first, s.second) : release(s.first);
  for (executor* e : nodes) e->after_turn();
  for (task_listener* l : listeners) l->after_turn();
}

void placement::told(executor& e) {
  if (e.facts().kind == device_kind::node && std::ranges::find(told_nodes_, &e) == told_nodes_.end())
    told_nodes_.push_back(&e);
}

void placement::told(task_listener& l) {
  if (std::ranges::find(told_listeners_, &l) == told_listeners_.end()) told_listeners_.push_back(&l);
}

void placement::admit_node(executor& e, int slots, logic::edge_cost in, logic::edge_cost out) {
  hold_turn();
  know_link(e.facts().space, in, out);
  assignment_.restore(e.facts().id, slots);
  std::vector<task_record*> kept;  // without this one in mind
  assignment_.drop_kept([&](task_record& t) { kept.push_back(&t); });
  for (task_record* t : kept) assign(*t);
  serve(nullptr);  // leaves the turn
}

void placement::hold_back(const executor& e, bool back) {
  with_turn([&] { assignment_.pause(e.facts().id, back); });
}

}  // namespace troupe::detail
