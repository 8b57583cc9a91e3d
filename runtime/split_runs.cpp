// What this file is for: runs of graphs over several nodes: a task for each part, submitted together, and their join.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/logic/scheduling/scope.hpp"
#include "actors/placement/gangs.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/destruction.hpp"
#include "runtime/engine.hpp"
#include "runtime/split_graphs.hpp"

namespace troupe::detail {

namespace {

/// What the record of a run of a part on another node keeps in its storage: the values of its call.
struct part_call {
  std::uint64_t graph, run;
  static part_call& of(task_record& t) { return *std::launder(reinterpret_cast<part_call*>(t.storage)); }
};
constexpr task_ops part_call_ops{[](task_record& t, task_context& c) {
                                   if (argument_sink* const to = c.sink()) {
                                     to->value(&part_call::of(t).graph, sizeof(std::uint64_t));
                                     to->value(&part_call::of(t).run, sizeof(std::uint64_t));
                                   }
                                 },
                                 [](task_record&) {}, [](task_record&) noexcept {},
                                 [](task_record&) noexcept -> void* { return nullptr; }};

void run_nothing() {}

/// Records of one run; given back unless they are submitted.
struct run_records {
  std::vector<task_record*> parts;
  task_record* join = nullptr;
  ~run_records() {
    for (task_record* t : parts) {
      discard(t);
      release(t);
    }
    if (join) {
      discard(join);
      release(join);
    }
  }
};

task_record* new_join(engine& e, const task_options& options, const std::shared_ptr<split_graph>& g) {
  const target to{.the_engine = &e, .recorded = nullptr, .waits = false};
  task_options o;
  o.name = options.name.empty() ? "graph run" : options.name;
  task_record* const t = make_record(to, &o, static_cast<const kernel_info*>(nullptr), &run_nothing,
                                     static_cast<const box<1>*>(nullptr), static_cast<const extent<1>*>(nullptr));
  t->kind = task_kind::join;
  t->extra->payload = g;
  return t;
}

// Makes the task of one part, without its accesses.
task_record* new_part_task(engine& e, const task_options& options, const std::shared_ptr<split_graph>& g,
                           std::uint32_t p, std::uint64_t run) {
  split_graph::part& part = g->parts[p];
  task_options o = options;
  if (o.name.empty()) o.name = "graph run";
  o.where = scope::any();
  task_record* const t = new_task(e);
  t->body_gone = true;
  t->ops = &part_call_ops;
  try {
    new (t->storage) part_call{g->number, run};
    t->kernel = part.here ? &part_call_ops.closure : intern(e, graph_part_kernel);
    apply(e, *t, o);
    task_extra& x = extra_of(*t);
    if (part.here) {
      t->kind = task_kind::graph_run;
      x.payload = part.here;
      x.executors &= g->here & logic::with_body(1u << static_cast<int>(device_kind::cpu), e.placement_actor().facts());
    } else {
      x.executors.clear();
      x.executors.insert(part.executor);
    }
    x.run_of_part = run;
    x.for_listener = part.name;
    x.listener = &e.others()->parts().ends();
    if (!options.where.is_any()) {
      const logic::executor_set allowed = logic::resolve(options.where, e.placement_actor().facts());
      x.executors &= allowed;
    }
    if ((x.executors & e.placement_actor().able_to_run(*t->kernel)).empty())
      throw error(errc::no_executor,
                  "the part of the graph that is to run on " + (part.here ? "this node" : "node '" + part.host + "'") +
                      " has no executor in the scope of the run, or the node has gone: a run needs all nodes for which "
                      "calls were recorded");
  } catch (...) {
    discard(t);
    release(t);
    throw;
  }
  return t;
}

void add_link(task_record& t, task_record& before) {
  retain(&before);
  access& x = t.accesses[t.access_count++];
  x = {};
  x.task = &before;
  x.link = link_mode::order;
}

}  // namespace

future<void> run(engine& e, const task_options& options, const std::shared_ptr<split_graph>& g) {
  if (!current_task() && !destruction::is_here()) e.placement_actor().block_at_bound();
  const std::lock_guard hold(g->lock);
  const std::uint64_t number = g->runs + 1;
  run_records all;
  all.join = new_join(e, options, g);
  const auto gang = std::make_shared<run_gang>();
  std::vector<std::uint32_t> which;
  for (std::uint32_t p = 0; p < g->parts.size(); ++p) {
    split_graph::part& part = g->parts[p];
    if (part.is_empty) continue;
    task_record* const t = new_part_task(e, options, g, p, number);
    all.parts.push_back(t);
    gang->add(*t, !part.here ? part.executor : options.resources.empty() ? run_gang::no_node : run_gang::here_in_order);
    t->extra->gang = gang;
    which.push_back(p);
    // A run begins once the one so many runs before it has ended in all parts: what comes early has to be kept.
    task_record* const earlier = g->recent.size() == graph_part::runs_ahead ? g->recent.front() : nullptr;
    task_record* const last = part.has_home ? nullptr : part.last;
    const std::size_t links = (earlier != nullptr) + (last != nullptr);
    if (part.touched.size() + links > task_record::inline_accesses) size_accesses(*t, part.touched.size() + links);
    for (const access& x : part.touched) {
      access& to = t->accesses[t->access_count];
      if (static_cast<extent_of>(x.worker) == extent_of::box) {
        const logic::box4& b = part.boxes[x.tile];
        describe(e, to, *x.array, x.mode, b.lo, b.hi, {}, x.array->spec.size, border::refuse, nullptr, 0, nullptr);
      } else {
        to = x;
      }
      ++t->access_count;
    }
    if (earlier) add_link(*t, *earlier);
    if (last) add_link(*t, *last);
  }
  e.placement_actor().check_open();
  extra_of(*all.join).chunks = all.parts.size();
  all.join->extra->chunks_at.resize(e.placement_actor().facts().size());
  for (task_record* t : all.parts) add_join_edge(*t, *all.join);
  future<void> done(all.join);
  std::vector<task_record*> tasks = std::exchange(all.parts, {});
  task_record* const join = std::exchange(all.join, nullptr);
  g->runs = number;
  retain(join);
  if (g->recent.size() == graph_part::runs_ahead) {
    release(g->recent.front());
    g->recent.pop_front();
  }
  g->recent.push_back(join);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    split_graph::part& part = g->parts[which[i]];
    if (part.has_home) continue;
    if (part.last) release(part.last);
    part.last = tasks[i];
    retain(tasks[i]);
  }
  tasks.push_back(join);
  e.placement_actor().submit_together(tasks, true);
  for (std::size_t i = 0; i + 1 < tasks.size(); ++i) release(tasks[i]);
  return done;
}

}  // namespace troupe::detail
