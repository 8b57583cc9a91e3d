// What this file is for: which tasks may be ordered in side turns, and what turns do with the orders of all sides.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/side_orders.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

namespace {
constexpr std::uint64_t series_of_side(std::size_t side) { return side + 1; }
static_assert(series_of_side(side_turns::sides - 1) <= logic::task_graph::series_max);
}  // namespace

bool side_orders::is_simple(const task_record& t) {
  const std::span<const access> all(t.accesses, t.access_count);
  return (!t.extra || t.extra->options.priority == 0) && std::all_of(all.begin(), all.end(), [](const access& x) {
           return x.array && !x.where && x.mode != access_mode::reduce;
         });
}

bool side_orders::may_take(const side_turns& turns, std::size_t side, const task_record& t) const {
  const logic::task_graph& graph = (*all_)[side].order.graph();
  const auto is_elsewhere = [&](const task_ref& r) { return !graph.may_follow(r); };
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!turns.has(side, *x.array) || x.array->open) return false;
    const tile_history& s = x.array->states[x.tile];
    if (s.parts || s.group || s.poison || !(s.valid || x.mode == access_mode::write) || is_elsewhere(s.writer))
      return false;
    if (x.mode != access_mode::read && std::any_of(s.readers.begin(), s.readers.end(), is_elsewhere)) return false;
  }
  return true;
}

bool side_orders::make() {
  const auto made = [&]<std::size_t... Sides>(std::index_sequence<Sides...>) {
    return new (std::nothrow) std::array<one, side_turns::sides>{one(callbacks_, main_, series_of_side(Sides))...};
  };
  all_.reset(made(std::make_index_sequence<side_turns::sides>()));
  return exist();
}

std::uint64_t side_orders::even_out() {
  std::uint64_t last = main_.graph().last_number();
  if (!all_) return last;
  for (const one& s : *all_) last = std::max(last, s.order.graph().last_number());
  for (one& s : *all_) s.order.graph().go_on_from(last);
  main_.graph().go_on_from(last);
  return last;
}

void side_orders::forget_all() {
  even_out();
  main_.graph().forget_all();
  if (!all_) return;
  for (one& s : *all_) s.order.graph().forget_all();
}

std::uint64_t side_orders::ordered() const {
  std::uint64_t n = 0;
  if (all_)
    for (const one& s : *all_) n += s.ordered;
  return n;
}

}  // namespace troupe::detail
