// What this file is for: recording graphs and running them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/graph_nodes.hpp"
#include "actors/logic/data/assembly.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/destruction.hpp"
#include "actors/protocol/task_name.hpp"
#include "runtime/engine.hpp"
#include "runtime/split_graphs.hpp"

namespace troupe {

namespace detail {

namespace {

constexpr unsigned char cpu_bit = 1u << static_cast<int>(device_kind::cpu);

// Kernel of a run on a device: one task of it, placed, moved and measured as any other.
constexpr unsigned char all_kinds = (1u << device_kind_count) - 1;
constexpr kernel_info run_on_device{.name = "graph run", .key = 0x67726170685f7231, .kinds = all_kinds};
constexpr kernel_info run_on_device_once{
    .name = "graph run", .key = 0x67726170685f7232, .kinds = all_kinds, .repeat = purity::once};

void refuse_what_cannot_be_recorded(const task_record& t) {
  if (!t.extra) return;
  if (!t.extra->options.resources.empty())
    throw error(errc::not_supported, "recorded calls cannot ask for resources: ask for them where the graph is run");
  if (t.extra->options.deadline.count() != 0)
    throw error(errc::not_supported,
                "task '" + name_of(t) + "': recorded calls have no deadline: give one where the graph is run");
  if (t.extra->options.stop.stop_possible())
    throw error(errc::not_supported, "recorded calls have no stop token: give one where the graph is run");
}

// Throws if a call waits for a call of another recording.
void check_links(const std::vector<task_record*>& tasks) {
  const std::unordered_set<const task_record*> own(tasks.begin(), tasks.end());
  for (const task_record* t : tasks)
    for (int i = 0; i < t->access_count; ++i)
      if (const access& x = t->accesses[i]; !x.array && !own.contains(x.task))
        throw error(errc::bad_argument,
                    "task '" + name_of(*t) + "': a recorded call can only wait for calls of the same recording");
}

// The effect of a whole run on a tile.
struct touch {
  std::uint32_t tile = 0;
  logic::recorded_effect::accesses what;

  bool is_whole() const { return what.read.empty() && what.written.empty(); }
};

// Returns the boxes of a tile that the recording writes.
logic::box_list boxes_written(const tile_history& s, const logic::box4& tile) {
  logic::box_list boxes;
  if (s.writer.task) boxes.push_back(tile);
  if (s.parts)
    s.parts->each([&](const fragment& f) {
      if (f.task.task && f.writes) boxes.push_back(f.where);
    });
  return boxes;
}

// Returns "recorded call 3, 'smooth'"; the calls of a for_each are counted one by one.
std::string called(const std::vector<const task_record*>& calls, std::size_t i) {
  return "recorded call " + std::to_string(i + 1) + ", '" + name_of(*calls[i]) + "',";
}

std::size_t tiles_of(const access& x) {
  std::size_t n = 0;
  x.array->each_tile(logic::view_box(*x.where), [&](auto&&...) { ++n; });
  return n;
}

// Returns why the executor cannot run the call as a part of a graph; empty if it can. Devices enqueue calls as they
// are.
std::string reason_against(const task_record& t, const executor_facts& f, const std::vector<executor_facts>& facts) {
  if (f.kind == device_kind::node) return "stays on this node";
  if (t.extra && !t.extra->executors.contains(f.id)) return "has another scope";
  const auto k = static_cast<std::size_t>(f.kind);
  if (f.space == host_space) return (t.kernel->kinds & cpu_bit) != 0 ? "" : "has no body for cores";
  if (t.kernel->routines[k]) return "is a routine there";
  if (!t.kernel->texts[k].text) return "has no body as text for it";
  if (!logic::able_to_run(*t.kernel, facts).contains(f.id)) return std::string(logic::reason_against(*t.kernel, f));
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    if (x.mode == access_mode::reduce) return "reduces into array '" + x.array->spec.name + "'";
    if (x.where && x.mode != access_mode::read && tiles_of(x) > 1)
      return "changes several tiles of array '" + x.array->spec.name + "' at once";
  }
  return {};
}

constexpr char needed_on_devices[] =
    "; on a device each call needs a body as text, and changes one tile of an array at most";

/// Executors that can run all calls, and why others cannot. The join of a for_each is no call: nothing runs for it.
class candidates {
 public:
  template <class Tasks>
  candidates(const Tasks& tasks, const std::vector<executor_facts>& facts) : facts_(facts) {
    for (const task_record* t : tasks)
      if (t->kind == task_kind::recorded) calls_.push_back(t);
  }
  /// Returns why the executor cannot run the first call that it cannot run; empty if it can run them all.
  std::string against(const executor_facts& f) const {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (const std::string why = reason_against(*calls_[i], f, facts_); !why.empty())
        return called(calls_, i) + " " + why;
    return {};
  }
  /// Returns the reasons against some executors, as "; sim:0, sim:1: recorded call 1, 'f', has no body as text for it".
  std::string against(const logic::executor_set& some) const {
    std::string text, last;
    for (const executor_facts& f : facts_) {
      if (!some.contains(f.id) || f.kind == device_kind::node) continue;
      const std::string why = against(f);
      if (why.empty()) continue;
      if (why == last)
        text.insert(text.size() - why.size() - 2, ", " + f.name);
      else
        text += "; " + f.name + ": " + why;
      last = why;
    }
    return text;
  }
  const std::vector<const task_record*>& calls() const { return calls_; }

 private:
  std::vector<const task_record*> calls_;
  const std::vector<executor_facts>& facts_;
};

void find_executors(recorded_graph& g, const recording& recorded, const std::vector<executor_facts>& facts) {
  const candidates all(recorded.tasks, facts);
  const auto& calls = all.calls();
  const bool for_cores =
      std::ranges::all_of(calls, [](const task_record* t) { return (t->kernel->kinds & cpu_bit) != 0; });
  const logic::executor_set scope = g.executors;
  g.executors.clear();
  if (for_cores) g.executors = scope & logic::with_body(cpu_bit, facts);
  for (const executor_facts& f : facts)
    if (f.space != host_space && f.kind != device_kind::node && scope.contains(f.id) && all.against(f).empty())
      g.devices.insert(f.id);
  g.executors |= g.devices;
  g.once = std::ranges::any_of(calls, [](const task_record* t) { return t->kernel->repeat == purity::once; });
  if (!g.executors.empty()) return;
  throw error(for_cores ? errc::no_executor : errc::not_supported,
              "no executor can run the whole graph, and a run stays on one" +
                  all.against(logic::executor_set::every()) + needed_on_devices);
}

// Notes how large the windows of a call are at most, the first of each call, the second, and so on.
void measure_windows(recorded_graph& g, const std::vector<task_record*>& calls) {
  std::vector<logic::piece> pieces;
  for (const task_record* t : calls) {
    std::size_t k = 0;
    for (int i = 0; i < t->access_count; ++i) {
      const access& x = t->accesses[i];
      if (!x.array || !x.where || x.mode != access_mode::read) continue;
      if (g.windows.size() == k) g.windows.push_back(0);
      logic::pieces_of(*x.where, *x.array, pieces);
      const auto bytes = static_cast<std::uint64_t>(logic::view_box(*x.where).volume()) * x.array->spec.element;
      if (!logic::is_in_place(*x.where, pieces)) g.windows[k] = std::max(g.windows[k], bytes);
      ++k;
    }
  }
}

void summarize(recorded_graph& g, recording& recorded) {
  std::map<array_core*, std::vector<touch>> by_array;
  for (auto& [key, state] : recorded.tiles.states) {
    const logic::box4 tile = key.array->tile_box(key.tile);
    logic::box_list written = boxes_written(state, tile);
    const logic::recorded_effect effect = recorded.tiles.effect_of(state);
    if (!written.empty() || effect.reads_outside())
      by_array[key.array].push_back({key.tile, effect.of(std::move(written), tile)});
  }
  for (auto& [array, tiles] : by_array) {
    std::ranges::sort(tiles, {}, &touch::tile);
    const bool uniform = tiles.size() == array->tile_count && std::ranges::all_of(tiles, [&](const touch& t) {
                           return t.what.mode == tiles[0].what.mode && t.is_whole();
                         });
    access x;
    x.array = array;
    const auto add = [&](std::uint32_t number, access_mode mode, extent_of how) {
      x.tile = number;
      x.mode = mode;
      x.worker = static_cast<std::uint16_t>(how);
      retain(array);
      g.touched.push_back(x);
    };
    if (!g.devices.empty())
      for (const touch& t : tiles) {
        x.tile = t.tile;
        x.mode = t.is_whole() || t.what.mode == access_mode::read ? t.what.mode : access_mode::update;
        g.tiles.push_back(x);
      }
    if (uniform && array->tile_count > 1) {
      add(0, tiles[0].what.mode, extent_of::whole_array);
      continue;
    }
    const auto add_boxes = [&](const logic::box_list& boxes, access_mode mode) {
      for (const logic::box4& b : boxes) {
        add(static_cast<std::uint32_t>(g.boxes.size()), mode, extent_of::box);
        g.boxes.push_back(b);
      }
    };
    for (const touch& t : tiles) {
      if (t.is_whole()) add(t.tile, t.what.mode, extent_of::tile);
      add_boxes(t.what.read, access_mode::read);  // before what it writes of these elements
      add_boxes(t.what.written, access_mode::write);
    }
  }
  if (g.touched.size() > 60'000 || g.tiles.size() > 60'000)
    throw error(errc::not_supported,
                "the graph touches more than 60000 tiles, and parts of tiles, of partly used arrays");
}

// A graph whose calls run on several nodes: its parts do the work.
std::shared_ptr<recorded_graph> compile_split(engine& the_engine, recording& recorded) {
  check_links(recorded.tasks);
  for (const task_record* t : recorded.tasks) refuse_what_cannot_be_recorded(*t);
  auto g = std::make_shared<recorded_graph>();
  g->rt = &the_engine.state();
  g->rt->retain();
  g->split = split(the_engine, recorded);
  return g;
}

std::shared_ptr<recorded_graph> compile(engine& the_engine, recording& recorded) {
  if (leaves_this_node(the_engine, recorded)) return compile_split(the_engine, recorded);
  nothing_runs around(the_engine.state());
  logic::dependencies deps(around, &recorded.tiles);
  auto g = std::make_shared<recorded_graph>();
  g->rt = &the_engine.state();
  g->rt->retain();
  check_links(recorded.tasks);
  const std::size_t calls = recorded.tasks.size();
  std::vector<task_record*> combines;  // appended after the calls
  for (std::size_t i = 0; i < calls; ++i) {
    refuse_what_cannot_be_recorded(*recorded.tasks[i]);
    if (recorded.tasks[i]->extra) g->executors &= recorded.tasks[i]->extra->executors;
    deps.order(*recorded.tasks[i], combines);
  }
  find_executors(*g, recorded, the_engine.placement_actor().facts());
  if (!g->devices.empty()) measure_windows(*g, recorded.tasks);
  deps.combine_recorded(combines);
  recorded.tasks.insert(recorded.tasks.end(), combines.begin(), combines.end());
  make_nodes(*g, recorded.tasks, deps.graph());
  recorded.tasks.clear();  // the graph owns them now
  let_nodes_meet(*g);
  summarize(*g, recorded);
  return g;
}

[[noreturn]] void throw_no_runner(const recorded_graph& g, const logic::executor_set& allowed,
                                  const std::vector<executor_facts>& facts) {
  std::vector<const task_record*> tasks;
  for (const replay_node& n : g.nodes) tasks.push_back(n.task);
  throw error(errc::no_executor, "no executor of this node in the scope of the run can run the whole graph" +
                                     candidates(tasks, facts).against(allowed) + needed_on_devices);
}

void run_nothing() {}

}  // namespace

}  // namespace detail

graph runtime::record(const std::function<void(recorder&)>& f) {
  detail::recording recorded;
  graph g;
  struct giver {
    detail::recording& recorded;
    ~giver() {
      for (auto* t : recorded.tasks) detail::release(t);
      for (auto* a : recorded.arrays) detail::release(a);
    }
  } give_back{recorded};
  recorder r(the_engine(), recorded);
  f(r);
  g.graph_ = detail::compile(the_engine(), recorded);
  return g;
}

future<void> runtime::run(const graph& g) { return run(task_options{}, g); }

future<void> runtime::run(const task_options& options, const graph& g) { return run_at(the_engine(), options, g); }

future<void> runtime::run_at(detail::engine& e, const task_options& options, const graph& g) {
  using namespace detail;
  if (!g.valid()) throw error(errc::bad_argument, "run() of an empty graph");
  recorded_graph& rg = *g.graph_;
  if (rg.rt != &e.state()) throw error(errc::bad_argument, "the graph was recorded by another runtime");
  if (options.retries != 0) throw error(errc::not_supported, "a graph as a whole is not retried");
  if (rg.split) return detail::run(e, options, rg.split);
  const target to{.the_engine = &e, .recorded = nullptr, .waits = false};
  task_record* t = make_record(to, &options, &run_on_device, &run_nothing, static_cast<const box<1>*>(nullptr),
                               static_cast<const extent<1>*>(nullptr));
  if (const auto allowed = t->extra->executors & e.placement_actor().all(); (allowed & rg.executors).empty()) {
    discard(t);
    release(t);
    throw_no_runner(rg, allowed, e.placement_actor().facts());
  }
  // Chooses cores where they can run the graph: the time of a whole graph on a device is not known beforehand.
  t->extra->executors &= rg.executors;
  if (const auto rest = t->extra->executors - rg.devices; !rest.empty()) t->extra->executors = rest;
  const bool on_device = !(t->extra->executors & rg.devices).empty();
  t->kernel = !on_device ? &t->ops->closure : rg.once ? &run_on_device_once : &run_on_device;
  const std::vector<access>& touched = on_device ? rg.tiles : rg.touched;
  t->kind = task_kind::graph_run;
  if (options.name.empty()) t->extra->options.name = "graph run";
  t->extra->payload = g.graph_;
  future<void> done(t);
  // Blocked before the lock is taken: what has to drain first may be a task that runs the same graph.
  if (!current_task() && !destruction::is_here()) e.placement_actor().block_at_bound();
  // Runs follow each other: the nodes' counters belong to the run in progress.
  std::lock_guard hold(rg.lock);
  const std::size_t links = rg.last ? 1 : 0;
  if (touched.size() + links > task_record::inline_accesses) size_accesses(*t, touched.size() + links);
  int n = 0;
  // First: what the last run has read is then known to be read before this one.
  if (rg.last) {
    retain(rg.last);
    access& x = t->accesses[n];
    x = {};
    x.task = rg.last;
    x.link = link_mode::order;
    t->access_count = static_cast<std::uint16_t>(++n);
  }
  for (const access& x : touched) {
    if (const auto how = static_cast<extent_of>(x.worker); how != extent_of::tile) {
      const logic::box4 b = how == extent_of::box ? rg.boxes[x.tile] : x.array->whole_box();
      describe(e, t->accesses[n], *x.array, x.mode, b.lo, b.hi, {}, x.array->spec.size, border::refuse, nullptr, 0,
               nullptr);
    } else {
      t->accesses[n] = x;
      t->accesses[n].where = nullptr;
    }
    t->access_count = static_cast<std::uint16_t>(++n);
  }
  submit(to, t);
  retain(t);
  if (rg.last) release(rg.last);
  rg.last = t;
  return done;
}

std::size_t graph::size() const {
  if (!graph_) return 0;
  return graph_->split ? graph_->split->calls : graph_->nodes.size();
}
std::size_t graph::edges() const {
  if (!graph_) return 0;
  return graph_->split ? graph_->split->edges : graph_->successors.size();
}

}  // namespace troupe
