// What this file is for: recordings cut into parts, and parts defined on their nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/split_graphs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/call_values.hpp"
#include "actors/execution/graph_nodes.hpp"
#include "actors/logic/data/assembly.hpp"
#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/graph_cut.hpp"
#include "actors/logic/data/recorded_effect.hpp"
#include "actors/logic/data/reduction_operators.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/task_name.hpp"
#include "actors/wire/graph_messages.hpp"
#include "runtime/engine.hpp"
#include "runtime/placed_calls.hpp"

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

/// The parts of one graph, whose calls have been placed, while they are defined.
class definer {
 public:
  definer(engine& e, recording& r, split_graph& g, const placed_calls& placed)
      : engine_(e), recorded_(r), graph_(g), placed_(placed), nodes_(*e.others()) {
    sort_steps();
  }

  void define_all() {
    for (std::uint32_t p = 0; p < steps_.size(); ++p)
      if (!steps_[p].empty()) define(p);
  }

 private:
  // ---- steps --------------------------------------------------------------------------------------------------------

  /// A step of a part: a call, or one end of a crossing.
  struct step {
    bool is_crossing = false;
    std::uint32_t number = 0;
  };

  void sort_steps() {
    steps_.resize(graph_.parts.size());
    step_of_.assign(placed_.calls.size(), nowhere);
    for (const logic::graph_cut::step& s : cut_.steps()) {
      if (!s.is_crossing) {
        auto& own = steps_[placed_.calls[s.number].part];
        step_of_[s.number] = static_cast<std::uint32_t>(own.size());
        own.push_back({false, s.number});
        continue;
      }
      const logic::crossing& x = cut_.crossings()[s.number];
      steps_[x.from].push_back({true, s.number});
      if (!x.carries_bytes()) told_[{x.call, x.to}] = static_cast<std::uint32_t>(steps_[x.to].size());
      steps_[x.to].push_back({true, s.number});
    }
  }

  // Returns the step of a part that ends when the call has ended.
  std::uint32_t end_of(std::uint32_t call, std::uint32_t part) const {
    return placed_.calls[call].part == part ? step_of_[call] : told_.at({call, part});
  }

  /// A tile that a part's calls and crossings touch.
  struct tile_use {
    bool outside_read = false, changes = false;
    logic::box_list unwritten;  // by the part so far
    logic::recorded_effect read;

    // Returns the boxes that are read of a tile that no call writes, if they are better brought than the tile.
    logic::box_list boxes_read(const array_core& a, std::uint32_t tile) const {
      const box4 all = a.tile_box(tile);
      logic::box_list boxes = read.of({}, all).read;
      if (boxes.size() > boxes_max || logic::fetches_whole(static_cast<std::uint64_t>(logic::volume(boxes)),
                                                           static_cast<std::uint64_t>(all.volume())))
        boxes.clear();
      return boxes;
    }
  };
  static constexpr std::size_t boxes_max = 8;                // of a tile: each is an access of a run
  using tile_key = std::pair<std::uint32_t, std::uint32_t>;  // array, tile
  /// A tile that the task of a run holds, or a box of it that the task reads.
  struct held_tile {
    tile_key tile;
    std::optional<box4> box;
  };

  void note(std::map<tile_key, tile_use>& uses, const logic::cut_piece& p) const {
    const auto [it, is_new] = uses.try_emplace({p.array, p.tile});
    tile_use& u = it->second;
    if (is_new) u.unwritten.push_back(placed_.arrays[p.array]->tile_box(p.tile));
    if (p.reads) {
      u.outside_read =
          u.outside_read || std::ranges::any_of(u.unwritten, [&](const box4& b) { return logic::overlap(b, p.where); });
      u.read.read(p.where, placed_.arrays[p.array]->tile_box(p.tile));
    }
    if (!p.writes) return;
    u.changes = true;
    u.unwritten = logic::without(u.unwritten, p.where);
  }

  std::map<tile_key, tile_use> uses_of(std::uint32_t part) const {
    std::map<tile_key, tile_use> uses;
    for (const step& s : steps_[part])
      if (!s.is_crossing) {
        for (const logic::cut_piece& p : placed_.calls[s.number].pieces)
          if (p.reads) note(uses, {p.array, p.tile, p.where, true, false});
        for (const logic::cut_piece& p : placed_.calls[s.number].pieces)
          if (p.writes) note(uses, {p.array, p.tile, p.where, false, true});
      } else if (const logic::crossing& x = cut_.crossings()[s.number]; x.carries_bytes()) {
        note(uses, {x.array, x.tile, x.where, x.from == part, x.to == part});
      }
    return uses;
  }

  // ---- one part -----------------------------------------------------------------------------------------------------

  void define(std::uint32_t p) {
    split_graph::part& to = graph_.parts[p];
    to.is_empty = false;
    to.name = std::make_shared<part_name>(part_name{graph_.members[0], graph_.number, p, graph_.members});
    std::vector<held_tile> bound;
    std::map<std::uint32_t, std::uint32_t> local;  // numbers of arrays in the part
    for (const step& s : steps_[p])
      if (!s.is_crossing && placed_.tasks[s.number]) {  // also of those of which a call sees an empty box only
        const task_record& t = *placed_.tasks[s.number];
        for (int i = 0; i < t.access_count; ++i)
          if (t.accesses[i].array) local.try_emplace(placed_.array_of(t, i), static_cast<std::uint32_t>(local.size()));
      }
    for (const auto& [key, use] : uses_of(p)) {
      array_core& a = *placed_.arrays[key.first];
      local.try_emplace(key.first, static_cast<std::uint32_t>(local.size()));
      if (placed_.is_partial(key.first)) continue;
      const auto home = cut_.home_of(key.first, key.second);
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
      const auto hold = [&](std::optional<box4> box) {
        x.worker = static_cast<std::uint16_t>(box ? extent_of::box : extent_of::tile);
        x.tile = box ? static_cast<std::uint32_t>(to.boxes.size()) : key.second;
        if (box) to.boxes.push_back(*box);
        retain(&a);
        to.touched.push_back(x);
        bound.push_back({key, box});
      };
      if (const logic::box_list boxes =
              home || (p == 0 && a.spec.adopted) ? logic::box_list{} : use.boxes_read(a, key.second);
          !boxes.empty()) {
        x.mode = access_mode::read;
        for (const box4& b : boxes) hold(b);
        continue;
      }
      x.mode = !home                                        ? access_mode::read
               : use.outside_read || !use.unwritten.empty() ? access_mode::update
                                                            : access_mode::write;
      // Parts of it are written and the rest is left as it is, whether somebody has written that or not.
      if (x.mode == access_mode::update && !use.outside_read) x.link = link_mode::order;
      hold(std::nullopt);
      to.has_home = to.has_home || home;
    }
    if (to.touched.size() > 60'000)
      throw error(errc::not_supported, "a part of the graph holds more than 60000 tiles: use larger tiles");
    p == 0 ? build_here(bound, local) : define_there(p, bound, local);
  }

  // Builds this node's part of the recorded tasks themselves.
  void build_here(const std::vector<held_tile>& bound, const std::map<std::uint32_t, std::uint32_t>& local) {
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
      array_spec s = placed_.arrays[array]->spec;
      s.fill = nullptr;
      if (s.adopted) s.owner = std::make_shared<char>();  // the memory is the other array's
      s.replicas = 1;
      shadows[number] = new_array(engine_, std::move(s));
    }
    std::vector<graph_part::bound_tile> tiles;
    for (const held_tile& h : bound) tiles.push_back({shadows[local.at(h.tile.first)], h.tile.second, h.box});
    auto part = std::make_unique<graph_part>(*graph_.parts[0].name, nodes_.parts().exit(), shadows, std::move(tiles));
    give_back.armed = false;
    const auto shadow = [&](std::uint32_t array) { return shadows[local.at(array)]; };
    std::vector<part_step> steps;
    for (const step& s : steps_[0]) {
      part_step& to = steps.emplace_back();
      if (s.is_crossing) {
        to.task = end_here(*part, cut_.crossings()[s.number], s.number, shadow);
        if (const logic::crossing& x = cut_.crossings()[s.number]; !x.carries_bytes() && x.from == 0)
          to.after.push_back({step_of_[x.call], true});
        continue;
      }
      if (!placed_.tasks[s.number]) {
        to.task = own_step_here(*part, placed_.partial_steps.at(s.number), shadow);
        continue;
      }
      to.task = placed_.tasks[s.number];
      use_shadows(*to.task, shadow);
      for (const std::uint32_t before : placed_.calls[s.number].after) to.after.push_back({end_of(before, 0), true});
    }
    take_from_recording(steps);
    logic::recorded_tiles states;
    graph_.parts[0].here = build_part(engine_.state(), std::move(part), std::move(steps), states);
    graph_.edges += graph_.parts[0].here->successors.size();
    nodes_.parts().add(graph_.parts[0].here);
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
  task_record* own_step_here(graph_part& part, const partial_step& s, Shadow&& shadow) {
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
      if (x.array) x.array = shadow(placed_.array_of(t, i));
    }
  }

  // The tasks of this node's part belong to its graph from now on; the others go with the recording.
  void take_from_recording(const std::vector<part_step>& steps) {
    std::unordered_map<const task_record*, bool> taken;
    for (const part_step& s : steps) taken[s.task] = true;
    std::erase_if(recorded_.tasks, [&](const task_record* t) { return taken.contains(t); });
  }

  void define_there(std::uint32_t p, const std::vector<held_tile>& bound,
                    const std::map<std::uint32_t, std::uint32_t>& local) {
    wire::graph_definition d;
    d.graph = graph_.number;
    d.part = p;
    d.members = graph_.members;
    d.arrays.resize(local.size());
    for (const auto& [array, number] : local) {
      const array_spec& s = placed_.arrays[array]->spec;
      d.arrays[number] = {number, s.rank, s.size, s.tile, s.element, s.align, s.name};
    }
    for (const held_tile& h : bound) d.bound.push_back({local.at(h.tile.first), h.tile.second, h.box});
    for (const step& s : steps_[p]) d.steps.push_back(step_there(p, s, local));
    if_it_is_there(graph_.parts[p].host,
                   [&] { nodes_.parts().define(graph_.members[p], graph_.number, wire::frames_of(d)); });
  }

  wire::graph_step step_there(std::uint32_t p, const step& s, const std::map<std::uint32_t, std::uint32_t>& local) {
    wire::graph_step to;
    if (!s.is_crossing && !placed_.tasks[s.number]) {
      const partial_step& own = placed_.partial_steps.at(s.number);
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
      to.call = described(*placed_.tasks[s.number], s.number, local);
      for (const std::uint32_t before : placed_.calls[s.number].after) to.after.push_back({end_of(before, p), true});
      return to;
    }
    const logic::crossing& x = cut_.crossings()[s.number];
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
      w.array = local.at(placed_.array_of(t, i));
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
  split_graph& graph_;
  const placed_calls& placed_;
  node_set& nodes_;
  const logic::graph_cut cut_{placed_.calls};
  std::vector<std::vector<step>> steps_;                                   // by part
  std::vector<std::uint32_t> step_of_;                                     // by call, in its part
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

std::shared_ptr<split_graph> split(engine& e, recording& recorded) {
  if (e.settings().memory_bytes != 0)
    throw error(errc::not_supported,
                "a graph over several nodes is for nodes without a memory budget (options::memory_bytes)");
  graph_parts& parts = e.others()->parts();
  auto graph = std::make_shared<split_graph>();
  graph->rt = &e.state();
  graph->rt->retain();
  graph->members.push_back(parts.self());
  graph->parts.emplace_back();
  graph->calls = recorded.tasks.size();
  const placed_calls placed = place_calls(e, recorded, *graph);
  definer definition(e, recorded, *graph, placed);
  graph->number = parts.new_number();
  definition.define_all();
  graph->edges += parts.await_ready(graph->number);
  return graph;
}

}  // namespace troupe::detail
