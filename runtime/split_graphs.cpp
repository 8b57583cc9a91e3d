// What this file is for: recordings cut into parts, and parts defined on their nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/split_graphs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/call_values.hpp"
#include "actors/execution/graph_nodes.hpp"
#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/graph_cut.hpp"
#include "actors/logic/data/reduction_operators.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/successors.hpp"
#include "actors/protocol/task_name.hpp"
#include "actors/wire/graph_messages.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

using logic::box4;

split_graph::~split_graph() {
  for (part& p : parts) {
    for (const access& x : p.touched) release(x.array);
    if (p.last) release(p.last);
  }
  for (task_record* t : recent) release(t);
  if (!rt) return;
  if (engine* const e = rt->the_engine.load(std::memory_order_acquire); e && number != 0)
    e->others()->parts().drop(number, members);
  rt->release();
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

std::string called(const task_record& t, std::size_t number) {
  return "recorded call " + std::to_string(number + 1) + ", '" + name_of(t) + "', of a graph over several nodes";
}

/// The state while one recording is split.
class splitter {
 public:
  splitter(engine& e, recording& r)
      : engine_(e), recorded_(r), facts_(e.placement_actor().facts()), nodes_(*e.others()) {}

  std::shared_ptr<split_graph> split() {
    if (engine_.settings().memory_bytes != 0)
      throw error(errc::not_supported,
                  "a graph over several nodes is for nodes without a memory budget (options::memory_bytes)");
    result_->rt = &engine_.state();
    result_->rt->retain();
    result_->members.push_back(nodes_.parts().self());
    const std::size_t calls = recorded_.tasks.size();
    result_->parts.emplace_back();
    for (std::size_t i = 0; i < recorded_.tasks.size(); ++i) place(i);
    while (!sums_.empty()) end_sum(sums_.begin());
    if ((result_->here & local_executors()).empty())
      throw error(errc::no_executor, "no core group is in the scopes of all calls of this node's part of the graph");
    const logic::graph_cut cut(calls_);
    sort_steps(cut);
    result_->number = nodes_.parts().new_number();
    for (std::uint32_t p = 0; p < steps_.size(); ++p)
      if (!steps_[p].empty()) define(p, cut);
    result_->calls = calls;
    result_->edges += nodes_.parts().await_ready(result_->number);
    return result_;
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
        if (const auto open = sums_.find({array, tile}); open != sums_.end()) end_sum(open);
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
  //
  // A tile that calls reduce into has a home, as others do. Calls of another part reduce into a partial of their own,
  // an array of that part alone: it is filled before the first of them, and added at home before the tile is used in
  // another way.

  /// A step beside the calls: fills a box of a partial, or adds it to the array.
  struct own_step {
    bool adds = false;
    std::uint32_t partial = 0, array = 0, tile = 0;
    box4 where{};
    std::array<std::byte, fill_bytes_max> element{};
    combine_fn op = nullptr;
  };
  /// Reductions into a tile that have not been added up.
  struct open_sum {
    std::uint32_t home = 0;
    combine_fn op = nullptr;
    std::map<std::uint32_t, logic::box_list> filled;  // by part: boxes of its partial
  };

  // Adds what the call reduces into to its pieces.
  void reduce(const task_record& t, std::size_t i, int number, logic::cut_call& c) {
    const access& x = t.accesses[number];
    const std::uint32_t array = number_of(*x.array);
    bool is_home = true;
    each_piece(x, [&](std::uint32_t tile, const box4&) {
      if (const auto open = sums_.find({array, tile}); open != sums_.end() && open->second.op != x.where->combiner)
        end_sum(open);
      open_sum& s = sums_[{array, tile}];
      if (!s.op) {
        const auto w = writers_.find({array, tile});
        s = {w == writers_.end() ? 0 : w->second, x.where->combiner, {}};
      }
      is_home = is_home && s.home == c.part;
    });
    each_piece(x, [&](std::uint32_t tile, const box4&) {
      if (!is_home && sums_.at({array, tile}).home != 0 && !combiner_of(x.where->combiner->code))
        throw error(errc::not_supported,
                    called(t, i) + " reduces by an operator that other nodes do not know into array '" +
                        x.array->spec.name + "', of which a call of another node writes something");
    });
    const std::uint32_t into = is_home ? array : partial_of(array, c.part);
    if (!is_home) partials_[{&t, number}] = into;
    each_piece(x, [&](std::uint32_t tile, const box4& b) {
      c.pieces.push_back({into, tile, b, true, true});
      if (is_home) return;
      logic::box_list& filled = sums_.at({array, tile}).filled[c.part];
      for (const box4& fresh : logic::without(logic::box_list{b}, filled)) {
        add_own({false, into, array, tile, fresh, x.where->fill, nullptr}, c.part, {{into, tile, fresh, false, true}});
        filled.push_back(fresh);
      }
    });
  }

  using sum_map = std::map<std::pair<std::uint32_t, std::uint32_t>, open_sum>;  // by array and tile
  void end_sum(sum_map::iterator at) {
    const auto [array, tile] = at->first;
    const open_sum s = std::move(at->second);
    sums_.erase(at);
    for (const auto& [part, boxes] : s.filled)
      for (const box4& b : boxes) {
        const std::uint32_t partial = partial_of(array, part);
        add_own({true, partial, array, tile, b, {}, s.op}, s.home,
                {{partial, tile, b, true, false}, {array, tile, b, true, true}});
      }
    writers_.insert_or_assign({array, tile}, s.home);
  }

  std::uint32_t partial_of(std::uint32_t array, std::uint32_t part) {
    const auto [known, is_new] = partial_arrays_.try_emplace({array, part}, 0);
    if (!is_new) return known->second;
    array_spec s = array_list_[array]->spec;
    s.fill = nullptr;
    s.adopted = nullptr;
    s.owner.reset();
    s.replicas = 1;
    s.name = "partial of " + s.name;
    array_core* const a = new_array(engine_, std::move(s));
    own_arrays_.all.push_back(a);
    known->second = number_of(*a);
    partial_numbers_.insert(known->second);
    return known->second;
  }
  bool is_partial(std::uint32_t array) const { return partial_numbers_.contains(array); }

  // Returns the number of the array on which an access of a call works.
  std::uint32_t array_of(const task_record& t, int number) const {
    const auto known = partials_.find({&t, number});
    return known != partials_.end() ? known->second : arrays_.at(t.accesses[number].array);
  }

  void add_own(own_step s, std::uint32_t part, std::vector<logic::cut_piece> pieces) {
    own_steps_.emplace(static_cast<std::uint32_t>(calls_.size()), s);
    tasks_.push_back(nullptr);
    calls_.push_back({.part = part, .pieces = std::move(pieces)});
  }

  void add(task_record& t, logic::cut_call c) {
    numbers_.emplace(&t, static_cast<std::uint32_t>(calls_.size()));
    tasks_.push_back(&t);
    calls_.push_back(std::move(c));
  }

  // Notes that the last call waits for `before`.
  void wait_for(const task_record& t, std::size_t i, task_record& before) {
    logic::cut_call& c = calls_.back();
    const bool is_for = is_join(before);
    const auto add_one = [&](std::uint32_t n) {
      const bool elsewhere = calls_[n].part != c.part;
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
    const auto [known, is_new] = arrays_.try_emplace(&a, static_cast<std::uint32_t>(array_list_.size()));
    if (is_new) array_list_.push_back(&a);
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
            static_cast<double>(p.where.volume()) * static_cast<double>(array_list_[p.array]->spec.element);
    std::uint32_t best = nowhere;
    double most = 0;
    for (const auto& [part, n] : bytes) {
      const bool suits = part == 0 ? may_be_here : may_run_in(t, scope, result_->parts[part].executor);
      if (suits && n > most) {
        best = part;
        most = n;
      }
    }
    if (best == 0 || (best == nowhere && may_be_here)) {
      result_->here &= scope;
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

  // Calls `f()`; the error of a node that has gone gets its name.
  template <class F>
  static auto if_it_is_there(const std::string& host, F&& f) {
    try {
      return f();
    } catch (const error& e) {
      if (e.code() != errc::node_lost) throw;
      throw error(errc::node_lost, "node '" + host + "', which is to have a part of the graph, has gone");
    }
  }

  std::uint32_t part_of(std::uint16_t executor) {
    if (const auto known = parts_.find(executor); known != parts_.end()) return known->second;
    const auto n = static_cast<std::uint32_t>(result_->parts.size());
    std::string host;
    for (const executor_facts& f : facts_)
      if (f.id == executor) host = f.label->text();
    result_->members.push_back(if_it_is_there(host, [&] { return nodes_.part_host(executor); }));
    split_graph::part& part = result_->parts.emplace_back();
    part.executor = executor;
    part.host = std::move(host);
    parts_.emplace(executor, n);
    return n;
  }

  // ---- steps --------------------------------------------------------------------------------------------------------

  /// A step of a part: a call, or one end of a crossing.
  struct step {
    bool is_crossing = false;
    std::uint32_t number = 0;
  };

  void sort_steps(const logic::graph_cut& cut) {
    steps_.resize(result_->parts.size());
    step_of_.assign(calls_.size(), nowhere);
    for (const logic::graph_cut::step& s : cut.steps()) {
      if (!s.is_crossing) {
        auto& own = steps_[calls_[s.number].part];
        step_of_[s.number] = static_cast<std::uint32_t>(own.size());
        own.push_back({false, s.number});
        continue;
      }
      const logic::crossing& x = cut.crossings()[s.number];
      steps_[x.from].push_back({true, s.number});
      if (!x.carries_bytes()) told_[{x.call, x.to}] = static_cast<std::uint32_t>(steps_[x.to].size());
      steps_[x.to].push_back({true, s.number});
    }
  }

  // Returns the step of a part that ends when the call has ended.
  std::uint32_t end_of(std::uint32_t call, std::uint32_t part) const {
    return calls_[call].part == part ? step_of_[call] : told_.at({call, part});
  }

  /// A tile that a part's calls and crossings touch.
  struct tile_use {
    bool outside_read = false, changes = false;
    logic::box_list unwritten;  // by the part so far
  };
  using tile_key = std::pair<std::uint32_t, std::uint32_t>;  // array, tile

  void note(std::map<tile_key, tile_use>& uses, const logic::cut_piece& p) const {
    const auto [it, is_new] = uses.try_emplace({p.array, p.tile});
    tile_use& u = it->second;
    if (is_new) u.unwritten.push_back(array_list_[p.array]->tile_box(p.tile));
    if (p.reads)
      u.outside_read =
          u.outside_read || std::ranges::any_of(u.unwritten, [&](const box4& b) { return logic::overlap(b, p.where); });
    if (!p.writes) return;
    u.changes = true;
    u.unwritten = logic::without(u.unwritten, p.where);
  }

  std::map<tile_key, tile_use> uses_of(std::uint32_t part, const logic::graph_cut& cut) const {
    std::map<tile_key, tile_use> uses;
    for (const step& s : steps_[part])
      if (!s.is_crossing) {
        for (const logic::cut_piece& p : calls_[s.number].pieces)
          if (p.reads) note(uses, {p.array, p.tile, p.where, true, false});
        for (const logic::cut_piece& p : calls_[s.number].pieces)
          if (p.writes) note(uses, {p.array, p.tile, p.where, false, true});
      } else if (const logic::crossing& x = cut.crossings()[s.number]; x.carries_bytes()) {
        note(uses, {x.array, x.tile, x.where, x.from == part, x.to == part});
      }
    return uses;
  }

  // ---- one part -----------------------------------------------------------------------------------------------------

  void define(std::uint32_t p, const logic::graph_cut& cut) {
    split_graph::part& to = result_->parts[p];
    to.is_empty = false;
    to.name = std::make_shared<part_name>(part_name{result_->members[0], result_->number, p, result_->members});
    std::vector<tile_key> bound;
    std::map<std::uint32_t, std::uint32_t> local;  // numbers of arrays in the part
    for (const step& s : steps_[p])
      if (!s.is_crossing && tasks_[s.number]) {  // also of those of which a call sees an empty box only
        const task_record& t = *tasks_[s.number];
        for (int i = 0; i < t.access_count; ++i)
          if (t.accesses[i].array) local.try_emplace(array_of(t, i), static_cast<std::uint32_t>(local.size()));
      }
    for (const auto& [key, use] : uses_of(p, cut)) {
      array_core& a = *array_list_[key.first];
      local.try_emplace(key.first, static_cast<std::uint32_t>(local.size()));
      if (is_partial(key.first)) continue;
      const auto home = cut.home_of(key.first, key.second);
      if (home && *home != p) {
        if (p == 0 && a.spec.adopted)
          throw error(errc::not_supported, "array '" + a.spec.name +
                                               "' of a graph over several nodes is memory of the caller's, and a part "
                                               "of it that another node writes is read here: use an array of the "
                                               "runtime's");
        continue;
      }
      access x;
      x.array = &a;
      x.tile = key.second;
      x.mode = !home                                        ? access_mode::read
               : use.outside_read || !use.unwritten.empty() ? access_mode::update
                                                            : access_mode::write;
      // Parts of it are written and the rest is left as it is, whether somebody has written that or not.
      if (x.mode == access_mode::update && !use.outside_read) x.link = link_mode::order;
      retain(&a);
      to.touched.push_back(x);
      to.has_home = to.has_home || home;
      bound.push_back(key);
    }
    if (to.touched.size() > 60'000)
      throw error(errc::not_supported, "a part of the graph holds more than 60000 tiles: use larger tiles");
    p == 0 ? build_here(cut, bound, local) : define_there(p, cut, bound, local);
  }

  // Builds this node's part of the recorded tasks themselves.
  void build_here(const logic::graph_cut& cut, const std::vector<tile_key>& bound,
                  const std::map<std::uint32_t, std::uint32_t>& local) {
    std::vector<array_core*> shadows(local.size());
    struct releaser {
      std::vector<array_core*>& all;
      bool armed = true;
      ~releaser() {
        if (armed)
          for (array_core* a : all)
            if (a) release(a);
      }
    } give_back{shadows};
    for (const auto& [array, number] : local) {
      array_spec s = array_list_[array]->spec;
      s.fill = nullptr;
      if (s.adopted) s.owner = std::make_shared<char>();  // the memory is the other array's
      s.replicas = 1;
      shadows[number] = new_array(engine_, std::move(s));
    }
    std::vector<graph_part::bound_tile> tiles;
    for (const tile_key& k : bound) tiles.push_back({shadows[local.at(k.first)], k.second});
    auto part = std::make_unique<graph_part>(*result_->parts[0].name, nodes_.parts().exit(), shadows, std::move(tiles));
    give_back.armed = false;
    const auto shadow = [&](std::uint32_t array) { return shadows[local.at(array)]; };
    std::vector<part_step> steps;
    for (const step& s : steps_[0]) {
      part_step& to = steps.emplace_back();
      if (s.is_crossing) {
        to.task = end_here(*part, cut.crossings()[s.number], s.number, shadow);
        if (const logic::crossing& x = cut.crossings()[s.number]; !x.carries_bytes() && x.from == 0)
          to.after.push_back({step_of_[x.call], true});
        continue;
      }
      if (!tasks_[s.number]) {
        to.task = own_step_here(*part, own_steps_.at(s.number), shadow);
        continue;
      }
      to.task = tasks_[s.number];
      use_shadows(*to.task, shadow);
      for (const std::uint32_t before : calls_[s.number].after) to.after.push_back({end_of(before, 0), true});
    }
    take_from_recording(steps);
    logic::recorded_tiles states;
    result_->parts[0].here = build_part(engine_.state(), std::move(part), std::move(steps), states);
    result_->edges += result_->parts[0].here->successors.size();
    nodes_.parts().add(result_->parts[0].here);
  }

  template <class Shadow>
  task_record* end_here(graph_part& part, const logic::crossing& x, std::uint32_t number, Shadow&& shadow) {
    const bool sends = x.from == 0;
    array_core* const a = x.carries_bytes() ? shadow(x.array) : nullptr;
    const std::size_t bytes = a ? static_cast<std::size_t>(x.where.volume()) * a->spec.element : 0;
    task_record* const t = sends ? part.make_sender(engine_.state(), number, x.to)
                                 : part.make_receiver(engine_.state(), number, x.from, bytes);
    if (!a) return t;
    describe(engine_, t->accesses[0], *a, sends ? access_mode::read : access_mode::write, x.where.lo, x.where.hi, {},
             a->spec.size, border::refuse, nullptr, 0, nullptr);
    t->access_count = 1;
    return t;
  }

  template <class Shadow>
  task_record* own_step_here(graph_part& part, const own_step& s, Shadow&& shadow) {
    task_record* const t =
        s.adds ? part.make_merger(engine_.state(), s.op) : part.make_filler(engine_.state(), s.element);
    const auto use = [&](std::uint32_t array, access_mode mode) {
      array_core& a = *shadow(array);
      describe(engine_, t->accesses[t->access_count], a, mode, s.where.lo, s.where.hi, {}, a.spec.size, border::refuse,
               nullptr, 0, nullptr);
      ++t->access_count;
    };
    use(s.partial, s.adds ? access_mode::read : access_mode::write);
    if (s.adds) use(s.array, access_mode::update);
    return t;
  }

  // Has a recorded call work on the shadows. What it waits for is told to the graph's builder, all of it.
  template <class Shadow>
  void use_shadows(task_record& t, Shadow&& shadow) {
    t.pending = 1;
    t.successor_count = 0;  // the join of its for_each
    for (int i = 0; i < t.access_count; ++i) {
      access& x = t.accesses[i];
      if (x.array) x.array = shadow(array_of(t, i));
    }
  }

  // The tasks of this node's part belong to its graph from now on; the others go with the recording.
  void take_from_recording(const std::vector<part_step>& steps) {
    std::unordered_map<const task_record*, bool> taken;
    for (const part_step& s : steps) taken[s.task] = true;
    std::erase_if(recorded_.tasks, [&](const task_record* t) { return taken.contains(t); });
  }

  void define_there(std::uint32_t p, const logic::graph_cut& cut, const std::vector<tile_key>& bound,
                    const std::map<std::uint32_t, std::uint32_t>& local) {
    wire::graph_definition d;
    d.graph = result_->number;
    d.part = p;
    d.members = result_->members;
    d.arrays.resize(local.size());
    for (const auto& [array, number] : local) {
      const array_spec& s = array_list_[array]->spec;
      d.arrays[number] = {number, s.rank, s.size, s.tile, s.element, s.align, s.name};
    }
    for (const tile_key& k : bound) d.bound.push_back({local.at(k.first), k.second});
    for (const step& s : steps_[p]) d.steps.push_back(step_there(p, s, cut, local));
    if_it_is_there(result_->parts[p].host,
                   [&] { nodes_.parts().define(result_->members[p], result_->number, wire::frames_of(d)); });
  }

  wire::graph_step step_there(std::uint32_t p, const step& s, const logic::graph_cut& cut,
                              const std::map<std::uint32_t, std::uint32_t>& local) {
    wire::graph_step to;
    if (!s.is_crossing && !tasks_[s.number]) {
      const own_step& own = own_steps_.at(s.number);
      to.kind = own.adds ? wire::graph_step::what::merge : wire::graph_step::what::fill;
      to.array = local.at(own.partial);
      to.tile = own.tile;
      to.where = own.where;
      to.element = own.element;
      if (own.adds) {
        to.into = local.at(own.array);
        to.op = own.op->code;
      }
      return to;
    }
    if (!s.is_crossing) {
      to.call = described(*tasks_[s.number], s.number, local);
      for (const std::uint32_t before : calls_[s.number].after) to.after.push_back({end_of(before, p), true});
      return to;
    }
    const logic::crossing& x = cut.crossings()[s.number];
    const bool sends = x.from == p;
    to.kind = sends ? wire::graph_step::what::send : wire::graph_step::what::take;
    to.crossing = s.number;
    to.other = sends ? x.to : x.from;
    if (x.carries_bytes()) {
      to.array = local.at(x.array);
      to.tile = x.tile;
      to.where = x.where;
    } else if (sends) {
      to.after.push_back({step_of_[x.call], true});
    }
    return to;
  }

  wire::task_descriptor described(task_record& t, std::uint32_t number,
                                  const std::map<std::uint32_t, std::uint32_t>& local) {
    wire::task_descriptor c;
    c.id = number;
    c.kernel = t.kernel->key;
    if (t.extra) {
      c.name = t.extra->options.name;
      c.retries = static_cast<std::uint32_t>(t.extra->options.retries);
    }
    for (int i = 0; i < t.access_count; ++i) {
      const access& x = t.accesses[i];
      if (!x.array) continue;
      wire::access_descriptor& w = c.accesses.emplace_back();
      w.array = local.at(array_of(t, i));
      w.mode = x.mode;
      if (x.mode == access_mode::reduce) {
        w.fresh = w.returns = true;
        w.group = combiner_of(x.where->combiner->code) ? 1 : 0;
        w.op = x.where->combiner->code;
      }
      if (!x.where) {
        w.where = x.array->tile_box(x.tile);
        w.limit = x.worker != 0 ? w.where : x.array->whole_box();
        continue;
      }
      w.where = {x.where->lo, x.where->hi};
      w.limit = {x.where->limit_lo, x.where->limit_hi};
      w.edge = x.where->edge;
      w.fill = x.where->fill;
    }
    call_values values(c.values);
    t.ops->run(t, values);
    for (const auto& v : c.values)
      if (v.size() > wire::value_max)
        throw error(errc::not_supported, called(t, number) + " has a value of more than " +
                                             std::to_string(wire::value_max) + " bytes: give it as an array");
    return c;
  }

  engine& engine_;
  recording& recorded_;
  const std::vector<executor_facts>& facts_;
  node_set& nodes_;
  const logic::executor_set every_ = logic::executor_set::every();
  std::shared_ptr<split_graph> result_ = std::make_shared<split_graph>();

  std::map<std::uint16_t, std::uint32_t> parts_;  // by executor
  std::map<std::uint32_t, std::size_t> load_;     // calls that a part was given freely
  struct array_references {
    ~array_references() {
      for (array_core* a : all) release(a);
    }
    std::vector<array_core*> all;
  };
  array_references own_arrays_;                                                      // the partials
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> partial_arrays_;  // by array and part
  std::unordered_set<std::uint32_t> partial_numbers_;
  std::map<std::pair<const task_record*, int>, std::uint32_t> partials_;  // by access
  std::map<std::uint32_t, own_step> own_steps_;                           // by call
  sum_map sums_;
  std::unordered_map<array_core*, std::uint32_t> arrays_;
  std::vector<array_core*> array_list_;
  std::map<tile_key, std::uint32_t> writers_;  // the part that wrote a tile last
  std::vector<logic::cut_call> calls_;
  std::vector<task_record*> tasks_;  // of the calls; null: an own step
  std::unordered_map<const task_record*, std::uint32_t> numbers_;
  std::unordered_map<const task_record*, std::vector<std::uint32_t>> chunks_;  // by join
  std::vector<std::vector<step>> steps_;                                       // by part
  std::vector<std::uint32_t> step_of_;                                         // by call, in its part
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> told_;  // by call and part: where its end comes in
};

}  // namespace

bool leaves_this_node(engine& e, const recording& recorded) {
  if (!e.others()) return false;
  logic::executor_set here, nodes;
  for (const executor_facts& f : e.placement_actor().facts()) (f.kind == device_kind::node ? nodes : here).insert(f.id);
  return std::ranges::any_of(recorded.tasks, [&](const task_record* t) {
    return t->extra && (t->extra->executors & here).empty() && !(t->extra->executors & nodes).empty();
  });
}

std::shared_ptr<split_graph> split(engine& e, recording& recorded) { return splitter(e, recorded).split(); }

}  // namespace troupe::detail
