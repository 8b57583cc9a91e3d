// What this file is for: which calls to repeat, in which order and from what, so that lost values exist again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/logic/lineage/lineage.hpp"

namespace troupe::logic {

/// Makes one plan: collects the calls that may matter, finds out which can be repeated and which are wanted, and writes
/// the wanted ones down as steps.
class lineage::planner {
 public:
  planner(const lineage& log, std::span<const value> lost) : log_(log), lost_(lost) {}

  reexecution_plan make() {
    collect();
    find_lacks();
    find_wanted();
    write_steps();
    return std::move(plan_);
  }

 private:
  using origin = reexecution_plan::origin;
  using lack = std::pair<value, reexecution_plan::reason>;
  struct step_state {
    std::optional<lack> lacks;
    bool wanted = false;
    std::uint32_t step = 0;
  };
  static constexpr std::uint32_t to_the_end = ~std::uint32_t{0};

  static bool can_repeat(const known_value& v) { return v.maker && !v.maker->broken; }
  static origin origin_of(const known_value& v) { return is_at_home(v) ? origin::home : origin::kept; }
  // Returns why a value that is not here cannot be made.
  static lack why_not(const known_value* v, const value& name) {
    if (!v || !v->maker) return {name, reexecution_plan::reason::gone};
    if (v->maker->why == reexecution_plan::reason::runs_once) return {name, reexecution_plan::reason::runs_once};
    return {v->maker->lacks, reexecution_plan::reason::gone};
  }

  // Collects all calls that may matter, and sorts them in the order in which they ran.
  void collect() {
    const auto look_at = [&](const known_value& v) {
      if (!is_here(v) && can_repeat(v) && states_.try_emplace(v.maker).second) calls_.push_back(v.maker);
    };
    for (const value& l : lost_)
      if (const known_value* const v = log_.find(l)) look_at(*v);
    for (std::size_t i = 0; i < calls_.size(); ++i)
      for (const read_link& r : calls_[i]->reads) look_at(*r.what);
    std::sort(calls_.begin(), calls_.end(), [](const logged* a, const logged* b) { return a->number < b->number; });
  }

  // Finds out which of the calls can be repeated.
  void find_lacks() {
    for (const logged* c : calls_) {
      step_state& s = states_.at(c);
      for (const read_link& r : c->reads) {
        if (s.lacks || is_here(*r.what)) continue;
        if (can_repeat(*r.what))
          s.lacks = states_.at(r.what->maker).lacks;
        else
          s.lacks = why_not(r.what, name_of(*r.what));
      }
    }
  }

  // Says for each lost value where it comes from, and finds out which calls are wanted for that.
  void find_wanted() {
    for (const value& l : lost_) {
      const known_value* const v = log_.find(l);
      if (v && is_here(*v)) {
        plan_.reexecuted.push_back({l, origin_of(*v), 0});
      } else if (!v || !can_repeat(*v)) {
        const auto [lacks, why] = why_not(v, l);
        plan_.holes.push_back({l, lacks, why});
      } else if (step_state& s = states_.at(v->maker); s.lacks) {
        plan_.holes.push_back({l, s.lacks->first, s.lacks->second});
      } else {
        s.wanted = true;
        last_use_[v] = to_the_end;
        plan_.reexecuted.push_back({l, origin::step, 0});
      }
    }
    for (auto c = calls_.rbegin(); c != calls_.rend(); ++c) {
      if (!states_.at(*c).wanted) continue;
      for (const read_link& r : (*c)->reads)
        if (!is_here(*r.what)) states_.at(r.what->maker).wanted = true;
    }
  }

  void write_steps() {
    std::uint32_t count = 0;
    for (const logged* c : calls_) {
      step_state& s = states_.at(c);
      if (!s.wanted) continue;
      s.step = count++;
      reexecution_plan::step& to = plan_.steps.emplace_back();
      to.what = c->what;
      plan_.cost_ns += static_cast<double>(c->cost_ns);
      for (const read_link& r : c->reads) {
        if (is_here(*r.what)) {
          to.reads.push_back({name_of(*r.what), origin_of(*r.what), 0});
          continue;
        }
        to.reads.push_back({name_of(*r.what), origin::step, states_.at(r.what->maker).step});
        if (std::uint32_t& last = last_use_.at(r.what); last != to_the_end) last = s.step;
      }
      for (const known_value* v : c->writes) {
        to.writes.push_back(name_of(*v));
        last_use_.try_emplace(v, s.step);
      }
    }
    for (const auto& [v, last] : last_use_)
      if (last != to_the_end) plan_.steps[last].done_with.push_back(name_of(*v));
    for (reexecution_plan::source& r : plan_.reexecuted)
      if (r.where == origin::step) r.step = states_.at(log_.find(r.what)->maker).step;
  }

  const lineage& log_;
  const std::span<const value> lost_;
  std::unordered_map<const logged*, step_state> states_;
  std::vector<const logged*> calls_;                                // of `states_`
  std::unordered_map<const known_value*, std::uint32_t> last_use_;  // step, of values that steps make
  reexecution_plan plan_;
};

reexecution_plan lineage::reexecute(std::span<const value> lost) const { return planner(*this, lost).make(); }

}  // namespace troupe::logic
