// What this file is for: which part each call of a recording belongs to, and what its reductions need beside it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/placed_calls.hpp"

#include <algorithm>

#include <troupe/runtime.hpp>

#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/open_sums.hpp"
#include "actors/logic/data/reduction_operators.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/successors.hpp"
#include "actors/protocol/task_name.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

using logic::box4;

placed_calls::~placed_calls() {
  for (array_core* a : partials_) release(a);
}

std::uint32_t placed_calls::array_of(const task_record& t, int access) const {
  const auto known = reduced_into_.find({&t, access});
  return known != reduced_into_.end() ? known->second : numbers_.at(t.accesses[access].array);
}

std::string called(const task_record& t, std::size_t number) {
  return "recorded call " + std::to_string(number + 1) + ", '" + name_of(t) + "', of a graph over several nodes";
}

namespace {

constexpr std::uint32_t nowhere = ~std::uint32_t{0};

bool is_join(const task_record& t) { return t.kind == task_kind::recorded_join; }
bool has_value(const task_record& t) { return !is_join(t) && t.ops->result(const_cast<task_record&>(t)) != nullptr; }
task_record* join_of(const task_record& t) {
  if (!(t.marks & mark_chunk)) return nullptr;
  return successor::from(t.successors[0]).task;
}

/// Calls `f(tile, box)` for what an access touches of each tile.
template <class F>
void each_piece(const access& x, F&& f) {
  if (!x.where) return f(x.tile, x.array->tile_box(x.tile));
  logic::each_touched(*x.where, [&](const box4& b) {
    x.array->each_tile(b, [&](std::uint32_t tile, const box4& tb) { f(tile, intersect(tb, b)); });
  });
}

}  // namespace

/// The state while the calls of one recording are placed.
class call_placer {
 public:
  call_placer(engine& e, recording& r, split_graph& g)
      : engine_(e), recorded_(r), facts_(e.placement_actor().facts()), nodes_(*e.others()), graph_(g) {}

  placed_calls place_all() {
    for (std::size_t i = 0; i < recorded_.tasks.size(); ++i) place(i);
    while (const auto tile = sums_.any()) end_sum(*tile);
    if ((graph_.here & local_executors()).empty())
      throw error(errc::no_executor, "no core group is in the scopes of all calls of this node's part of the graph");
    return std::move(placed_);
  }

 private:
  // ---- which part ---------------------------------------------------------------------------------------------------

  // Gives the call its part, and notes what it reads and writes.
  void place(std::size_t i) {
    task_record& t = *recorded_.tasks[i];
    if (is_join(t)) return;  // where somebody waits for it
    logic::cut_call c;
    for (int a = 0; a < t.access_count; ++a) {
      const access& x = t.accesses[a];
      if (!x.array) continue;
      const std::uint32_t array = number_of(*x.array);
      if (x.mode == access_mode::reduce) continue;
      each_piece(x, [&](std::uint32_t tile, const box4& b) {
        end_sum({array, tile});
        c.pieces.push_back({array, tile, b, x.mode != access_mode::write, x.mode != access_mode::read});
      });
    }
    c.part = part_for(t, i, c);
    for (int a = 0; a < t.access_count; ++a)
      if (t.accesses[a].array && t.accesses[a].mode == access_mode::reduce) reduce(t, i, a, c);
    for (const logic::cut_piece& p : c.pieces)
      if (p.writes) writers_.insert_or_assign({p.array, p.tile}, c.part);
    add(t, std::move(c));
    if (task_record* const join = join_of(t)) chunks_[join].push_back(numbers_.at(&t));
    for (int a = 0; a < t.access_count; ++a)
      if (const access& x = t.accesses[a]; !x.array) wait_for(t, i, *x.task);
  }

  // ---- reductions ---------------------------------------------------------------------------------------------------

  // Adds what the call reduces into to its pieces.
  void reduce(const task_record& t, std::size_t i, int number, logic::cut_call& c) {
    const access& x = t.accesses[number];
    const std::uint32_t array = number_of(*x.array);
    bool is_home = true;
    each_piece(x, [&](std::uint32_t tile, const box4&) {
      if (sums_.has_other({array, tile}, x.where->combiner)) end_sum({array, tile});
      const auto w = writers_.find({array, tile});
      sums_.open({array, tile}, x.where->combiner, w == writers_.end() ? 0 : w->second);
      is_home = is_home && sums_.home_of({array, tile}) == c.part;
    });
    each_piece(x, [&](std::uint32_t tile, const box4&) {
      if (!is_home && sums_.home_of({array, tile}) != 0 && !combiner_of(x.where->combiner->code))
        throw error(errc::not_supported,
                    called(t, i) + " reduces by an operator that other nodes do not know into array '" +
                        x.array->spec.name + "', of which a call of another node writes something");
    });
    const std::uint32_t into = is_home ? array : partial_of(array, c.part);
    if (!is_home) placed_.reduced_into_[{&t, number}] = into;
    each_piece(x, [&](std::uint32_t tile, const box4& b) {
      c.pieces.push_back({into, tile, b, true, true});
      if (is_home) return;
      for (const box4& fresh : sums_.fill({array, tile}, c.part, b))
        add_own({false, into, array, tile, fresh, x.where->fill, nullptr}, c.part, {{into, tile, fresh, false, true}});
    });
  }

  // Ends the sum into a tile, if one is open: all partials are added at home.
  void end_sum(const logic::open_sums::tile_key& t) {
    const auto sum = sums_.end(t);
    if (!sum) return;
    const auto [array, tile] = t;
    for (const auto& [part, where, op] : sum->addends) {
      const std::uint32_t partial = partial_of(array, part);
      add_own({true, partial, array, tile, where, {}, op}, sum->home,
              {{partial, tile, where, true, false}, {array, tile, where, true, true}});
    }
    writers_.insert_or_assign(t, sum->home);
  }

  // Returns the number of the array that has the partials of a part for another array.
  std::uint32_t partial_of(std::uint32_t array, std::uint32_t part) {
    const auto [known, is_new] = partial_of_.try_emplace({array, part}, 0);
    if (!is_new) return known->second;
    array_spec s = placed_.arrays[array]->spec;
    s.fill = nullptr;
    s.adopted = nullptr;
    s.owner.reset();
    s.replicas = 1;
    s.name = "partial of " + s.name;
    placed_.partials_.push_back(new_array(engine_, std::move(s)));
    known->second = number_of(*placed_.partials_.back());
    placed_.partial_numbers_.insert(known->second);
    return known->second;
  }

  void add_own(partial_step s, std::uint32_t part, std::vector<logic::cut_piece> pieces) {
    placed_.partial_steps.emplace(static_cast<std::uint32_t>(placed_.calls.size()), s);
    placed_.tasks.push_back(nullptr);
    placed_.calls.push_back({.part = part, .pieces = std::move(pieces)});
  }

  void add(task_record& t, logic::cut_call c) {
    numbers_.emplace(&t, static_cast<std::uint32_t>(placed_.calls.size()));
    placed_.tasks.push_back(&t);
    placed_.calls.push_back(std::move(c));
  }

  // Notes that the last call waits for `before`.
  void wait_for(const task_record& t, std::size_t i, task_record& before) {
    logic::cut_call& c = placed_.calls.back();
    const bool is_for = is_join(before);
    const auto add_one = [&](std::uint32_t n) {
      const bool elsewhere = placed_.calls[n].part != c.part;
      if (!is_for && has_value(before) && (elsewhere || c.part != 0))
        throw error(errc::not_supported, called(t, i) + " uses the value of a call of another part, or on another " +
                                             "node: values travel in arrays");
      c.after.push_back(n);
    };
    if (!is_for) {
      const auto known = numbers_.find(&before);
      if (known == numbers_.end())
        throw error(errc::bad_argument, called(t, i) + " waits for a call of another recording");
      add_one(known->second);
    } else {
      for (const std::uint32_t n : chunks_[&before]) add_one(n);
    }
  }

  std::uint32_t number_of(array_core& a) {
    const auto [known, is_new] = placed_.numbers_.try_emplace(&a, static_cast<std::uint32_t>(placed_.arrays.size()));
    if (is_new) placed_.arrays.push_back(&a);
    return known->second;
  }

  // Returns the part of the call: of those in its scope, the one that wrote most of what it changes.
  std::uint32_t part_for(const task_record& t, std::size_t i, const logic::cut_call& c) {
    const logic::executor_set& scope = t.extra ? t.extra->executors : every_;
    const bool may_be_here = !(scope & local_executors() & engine_.placement_actor().able_to_run(*t.kernel)).empty();
    std::map<std::uint32_t, double> bytes;  // by part
    for (const logic::cut_piece& p : c.pieces)
      if (const auto w = writers_.find({p.array, p.tile}); p.writes && w != writers_.end())
        bytes[w->second] +=
            static_cast<double>(p.where.volume()) * static_cast<double>(placed_.arrays[p.array]->spec.element);
    std::uint32_t best = nowhere;
    double most = 0;
    for (const auto& [part, n] : bytes) {
      const bool suits = part == 0 ? may_be_here : may_run_in(t, scope, graph_.parts[part].executor);
      if (suits && n > most) {
        best = part;
        most = n;
      }
    }
    if (best == 0 || (best == nowhere && may_be_here)) {
      graph_.here &= scope;
      return 0;
    }
    if (best != nowhere) return best;
    std::uint32_t fewest = nowhere;
    for (const executor_facts& f : facts_)
      if (f.kind == device_kind::node && may_run_in(t, scope, f.id)) {
        const std::uint32_t p = part_of(f.id);
        if (fewest == nowhere || load_[p] < load_[fewest]) fewest = p;
      }
    if (fewest == nowhere)
      throw error(errc::no_executor,
                  called(t, i) + " can run on no node in its scope: " +
                      (t.kernel->portable ? "none of them offers its kernel, and no core here is in it"
                                          : "only calls of kernels go to other nodes"));
    ++load_[fewest];
    return fewest;
  }

  logic::executor_set local_executors() const {
    logic::executor_set set;
    for (const executor_facts& f : facts_)
      if (f.kind == device_kind::cpu) set.insert(f.id);
    return set;
  }

  bool may_run_in(const task_record& t, const logic::executor_set& scope, std::uint16_t executor) const {
    return scope.contains(executor) && t.kernel->portable && t.kernel->nodes &&
           t.kernel->nodes->get().contains(executor);
  }

  std::uint32_t part_of(std::uint16_t executor) {
    if (const auto known = parts_.find(executor); known != parts_.end()) return known->second;
    const auto n = static_cast<std::uint32_t>(graph_.parts.size());
    std::string host;
    for (const executor_facts& f : facts_)
      if (f.id == executor) host = f.label->text();
    graph_.members.push_back(if_it_is_there(host, [&] { return nodes_.part_host(executor); }));
    split_graph::part& part = graph_.parts.emplace_back();
    part.executor = executor;
    part.host = std::move(host);
    parts_.emplace(executor, n);
    return n;
  }

  engine& engine_;
  recording& recorded_;
  const std::vector<executor_facts>& facts_;
  node_set& nodes_;
  split_graph& graph_;
  const logic::executor_set every_ = logic::executor_set::every();
  placed_calls placed_;

  std::map<std::uint16_t, std::uint32_t> parts_;  // by executor
  std::map<std::uint32_t, std::size_t> load_;     // calls that a part was given freely
  logic::open_sums sums_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> partial_of_;  // by array and part
  std::map<logic::open_sums::tile_key, std::uint32_t> writers_;                  // the part that wrote a tile last
  std::unordered_map<const task_record*, std::uint32_t> numbers_;
  std::unordered_map<const task_record*, std::vector<std::uint32_t>> chunks_;  // by join
};

placed_calls place_calls(engine& e, recording& r, split_graph& g) { return call_placer(e, r, g).place_all(); }

}  // namespace troupe::detail
