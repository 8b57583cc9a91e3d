// What this file is for: the records of a part's steps, checked against its arrays and the kernels that are offered here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cluster/part_maker.hpp"

#include <map>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "actors/execution/graph_nodes.hpp"
#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/reduction_operators.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/node_service/call_checks.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

/// The records of a part's steps while it is built.
class part_maker {
 public:
  part_maker(engine& the_engine, const node_id& owner, graph_part::outlet& exit, const wire::graph_definition& d)
      : engine_(the_engine), definition_(d) {
    shadows_.all.reserve(d.arrays.size());
    for (const wire::array_descriptor& a : d.arrays) shadows_.all.push_back(new_array(the_engine, spec_of(a)));
    part_ =
        std::make_unique<graph_part>(part_name{owner, d.graph, d.part, d.members}, exit, shadows_.all, bound_tiles());
    shadows_.are_parts = true;
  }
  ~part_maker() {
    for (const part_step& s : steps_) release(s.task);
  }
  part_maker(const part_maker&) = delete;
  part_maker& operator=(const part_maker&) = delete;

  std::shared_ptr<recorded_graph> make() {
    for (const wire::graph_step& s : definition_.steps) {
      part_step& step = steps_.emplace_back();
      try {
        step.task = record_of(s);
      } catch (...) {
        steps_.pop_back();
        throw;
      }
      for (const wire::graph_step::link& l : s.after) {
        if (l.step + 1 >= steps_.size()) refuse_peer("a step that waits for a later one");
        step.after.push_back({l.step, l.data});
      }
    }
    const std::vector<graph_part::bound_tile> all = bound_tiles();
    std::map<std::pair<const array_core*, std::uint32_t>, held_tile> bound;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const graph_part::bound_tile& b = all[i];
      const auto [held, is_new] = bound.try_emplace({b.shadow, b.tile});
      if (!is_new && (!b.box || !held->second.in_boxes || all[i - 1].shadow != b.shadow || all[i - 1].tile != b.tile))
        refuse_peer("a part that holds a tile twice");
      held->second.in_boxes = b.box.has_value();
      held->second.boxes.push_back(b.box ? *b.box : b.shadow->tile_box(b.tile));
    }
    logic::recorded_tiles tiles;
    auto graph = build_part(engine_.state(), std::move(part_), std::exchange(steps_, {}), tiles);
    // The part may see of other tiles and boxes what has come from other parts, not what lay in their memory before.
    for (const auto& [key, state] : tiles.states) {
      const logic::recorded_effect effect = tiles.effect_of(state);
      const auto held = bound.find({key.array, key.tile});
      if (!(held == bound.end() ? effect.outside() : logic::without(effect.outside(), held->second.boxes)).empty())
        refuse_peer("a part that reads what nothing has written");
      if (held != bound.end() && held->second.in_boxes && is_written(state))
        refuse_peer("a part that writes a tile of which it holds boxes to read");
    }
    return graph;
  }

 private:
  /// The boxes that a part holds of a tile, or the one that is all of it.
  struct held_tile {
    bool in_boxes = false;
    logic::box_list boxes;
  };
  static bool is_written(const tile_history& s) {
    bool some = s.writer.task != nullptr;
    if (s.parts) s.parts->each([&](const fragment& f) { some = some || (f.task.task && f.writes); });
    return some;
  }
  /// Arrays that are released here, also if the constructor throws, until the part owns them.
  struct shadows {
    ~shadows() {
      if (!are_parts)
        for (array_core* a : all) release(a);
    }
    std::vector<array_core*> all;
    bool are_parts = false;
  };

  array_core* shadow(std::uint64_t number) const {
    if (number >= shadows_.all.size()) refuse_peer("an array that the graph does not have");
    return shadows_.all[number];
  }
  std::vector<graph_part::bound_tile> bound_tiles() {
    std::vector<graph_part::bound_tile> all;
    for (const wire::graph_tile& b : definition_.bound) {
      array_core* const a = shadow(b.array);
      if (b.tile >= a->tile_count) refuse_peer("a tile that the array does not have");
      if (b.box && (b.box->empty() || !a->tile_box(b.tile).contains(*b.box)))
        refuse_peer("a box that is not in its tile");
      all.push_back({a, b.tile, b.box});
    }
    return all;
  }
  task_record* record_of(const wire::graph_step& s) {
    if (s.kind == wire::graph_step::what::call) return call_of(s.call);
    if (s.kind == wire::graph_step::what::fill) return filler_of(s);
    if (s.kind == wire::graph_step::what::merge) return merger_of(s);
    if (s.other >= definition_.members.size()) refuse_peer("a part of nobody");
    const bool sends = s.kind == wire::graph_step::what::send;
    array_core* a = nullptr;
    std::size_t bytes = 0;
    if (s.array != wire::graph_step::no_array) {
      a = box_of(s.array, s);
      bytes = static_cast<std::size_t>(s.where.volume()) * a->spec.element;
    }
    task_record* const t = sends ? part_->make_sender(engine_.state(), s.crossing, s.other)
                                 : part_->make_receiver(engine_.state(), s.crossing, s.other, bytes);
    if (a) give_access(*t, *a, s.where, sends ? access_mode::read : access_mode::write);
    return t;
  }
  task_record* filler_of(const wire::graph_step& s) {
    array_core* const a = box_of(s.array, s);
    if (a->spec.element > s.element.size()) refuse_peer("a partial of elements that are too large");
    task_record* const t = part_->make_filler(engine_.state(), s.element);
    give_access(*t, *a, s.where, access_mode::write);
    return t;
  }
  task_record* merger_of(const wire::graph_step& s) {
    array_core *const from = box_of(s.array, s), *const to = box_of(s.into, s);
    const combine_fn op = combiner_of(s.op);
    if (from == to || from->spec.rank != to->spec.rank) refuse_peer("a partial of another array");
    if (!op || element_of(s.op) != from->spec.element || element_of(s.op) != to->spec.element)
      refuse_peer("a partial by an operator that is not known");
    task_record* const t = part_->make_merger(engine_.state(), op);
    give_access(*t, *from, s.where, access_mode::read);
    give_access(*t, *to, s.where, access_mode::update);
    return t;
  }
  // Returns the array of a step's box, which is inside the tile.
  array_core* box_of(std::uint32_t array, const wire::graph_step& s) const {
    array_core* const a = shadow(array);
    if (s.tile >= a->tile_count || s.where.empty() || !a->tile_box(s.tile).contains(s.where))
      refuse_peer("a box that is not in its tile");
    return a;
  }
  void give_access(task_record& t, array_core& a, const logic::box4& where, access_mode mode) {
    try {
      describe(engine_, t.accesses[t.access_count], a, mode, where.lo, where.hi, {}, a.spec.size, border::refuse,
               nullptr, 0, nullptr);
      ++t.access_count;
    } catch (...) {
      release(&t);
      throw;
    }
  }
  task_record* call_of(const wire::task_descriptor& c) {
    const offered_kernel* const k = find_offer(c.kernel);
    if (!k) throw error(errc::no_executor, "a kernel of the graph is not offered there");
    const checked_call checked = check_call(c, *k, [this](std::uint64_t id) -> const array_core* {
      return id < shadows_.all.size() ? shadows_.all[static_cast<std::size_t>(id)] : nullptr;
    });
    task_record* const t = take_record(engine_.state());
    t->references.store(1, std::memory_order_relaxed);
    t->kind = task_kind::recorded;
    t->body_gone = true;  // until it is filled in
    try {
      if (c.accesses.size() > task_record::inline_accesses) size_accesses(*t, c.accesses.size());
      for (const wire::access_descriptor& x : c.accesses) {
        array_core* const a = shadow(x.array);
        // By an operator that is not known here one body after the other adds to the partial itself.
        const combine_fn op = x.fresh && x.group != 0 ? combiner_of(x.op) : nullptr;
        const access_mode mode = x.fresh && !op ? access_mode::update : x.mode;
        describe(engine_, t->accesses[t->access_count], *a, mode, x.where.lo, x.where.hi, x.limit.lo, x.limit.hi,
                 x.edge, x.fill.data(), op || x.edge == border::fill ? a->spec.element : 0, op);
        ++t->access_count;
      }
      t->kernel = intern(engine_, k->info);
      check_shapes(*t, checked.lists);
      if (!c.name.empty() || c.retries != 0) {
        task_options o;
        o.name = c.name;
        o.retries = static_cast<int>(c.retries);
        apply(engine_, *t, o);
      }
      k->fill(*t, k->body.get(), checked.values);
      t->body_gone = false;
    } catch (...) {
      release(t);
      throw;
    }
    return t;
  }

  engine& engine_;
  const wire::graph_definition& definition_;
  shadows shadows_;
  std::unique_ptr<graph_part> part_;
  std::vector<part_step> steps_;
};

}  // namespace

std::shared_ptr<recorded_graph> make_part(engine& the_engine, const node_id& owner, graph_part::outlet& exit,
                                          const wire::graph_definition& d) {
  part_maker maker(the_engine, owner, exit, d);
  return maker.make();
}

}  // namespace troupe::detail
