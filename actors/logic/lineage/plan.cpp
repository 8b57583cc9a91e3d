// What this file is for: which calls to repeat, in which order and from what, so that lost values exist again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/logic/lineage/lineage.hpp"

namespace troupe::logic {

remake_plan lineage::remake(std::span<const value> lost) const {
  using place = remake_plan::place;
  struct step_state {
    std::optional<std::pair<value, remake_plan::reason>> lacks;
    bool wanted = false;
    std::uint32_t step = 0;
  };
  const auto can_repeat = [](const known_value& v) { return v.maker && !v.maker->broken; };
  // Returns why a value that is not here cannot be made.
  const auto why_not = [](const known_value* v, const value& name) -> std::pair<value, remake_plan::reason> {
    if (!v || !v->maker) return {name, remake_plan::reason::gone};
    if (v->maker->why == remake_plan::reason::runs_once) return {name, remake_plan::reason::runs_once};
    return {v->maker->lacks, remake_plan::reason::gone};
  };

  // Collects all calls that may matter, and sorts them in the order in which they ran.
  std::unordered_map<const logged*, step_state> states;
  std::vector<const logged*> calls;
  const auto look_at = [&](const known_value& v) {
    if (!is_here(v) && can_repeat(v) && states.try_emplace(v.maker).second) calls.push_back(v.maker);
  };
  for (const value& l : lost)
    if (const known_value* const v = find(l)) look_at(*v);
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (const read_link& r : calls[i]->reads) look_at(*r.what);
  std::sort(calls.begin(), calls.end(), [](const logged* a, const logged* b) { return a->number < b->number; });

  // Finds out which of the calls can be repeated.
  for (const logged* c : calls) {
    step_state& s = states.at(c);
    for (const read_link& r : c->reads) {
      if (s.lacks || is_here(*r.what)) continue;
      if (can_repeat(*r.what))
        s.lacks = states.at(r.what->maker).lacks;
      else
        s.lacks = why_not(r.what, name_of(*r.what));
    }
  }

  // Finds out which of these are wanted.
  remake_plan plan;
  std::unordered_map<const known_value*, std::uint32_t> last_use;  // of values that steps make
  constexpr std::uint32_t to_the_end = ~std::uint32_t{0};
  for (const value& l : lost) {
    const known_value* const v = find(l);
    if (v && is_here(*v)) {
      plan.remade.push_back({l, is_at_home(*v) ? place::home : place::kept, 0});
    } else if (!v || !can_repeat(*v)) {
      const auto [lacks, why] = why_not(v, l);
      plan.holes.push_back({l, lacks, why});
    } else if (step_state& s = states.at(v->maker); s.lacks) {
      plan.holes.push_back({l, s.lacks->first, s.lacks->second});
    } else {
      s.wanted = true;
      last_use[v] = to_the_end;
      plan.remade.push_back({l, place::step, 0});
    }
  }
  for (auto c = calls.rbegin(); c != calls.rend(); ++c) {
    if (!states.at(*c).wanted) continue;
    for (const read_link& r : (*c)->reads)
      if (!is_here(*r.what)) states.at(r.what->maker).wanted = true;
  }

  std::uint32_t count = 0;
  for (const logged* c : calls) {
    step_state& s = states.at(c);
    if (!s.wanted) continue;
    s.step = count++;
    remake_plan::step& to = plan.steps.emplace_back();
    to.what = c->what;
    plan.cost_ns += static_cast<double>(c->cost_ns);
    for (const read_link& r : c->reads) {
      if (is_here(*r.what)) {
        to.reads.push_back({name_of(*r.what), is_at_home(*r.what) ? place::home : place::kept, 0});
        continue;
      }
      to.reads.push_back({name_of(*r.what), place::step, states.at(r.what->maker).step});
      if (std::uint32_t& last = last_use.at(r.what); last != to_the_end) last = s.step;
    }
    for (const known_value* v : c->writes) {
      to.writes.push_back(name_of(*v));
      last_use.try_emplace(v, s.step);
    }
  }
  for (const auto& [v, last] : last_use)
    if (last != to_the_end) plan.steps[last].done_with.push_back(name_of(*v));
  for (remake_plan::source& r : plan.remade)
    if (r.where == place::step) r.step = states.at(find(r.what)->maker).step;
  return plan;
}

}  // namespace troupe::logic
