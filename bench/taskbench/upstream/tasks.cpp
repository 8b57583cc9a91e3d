// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tasks.hpp"

#include <core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace task_bench {

namespace {

const App* graphs_of_process = nullptr;

// Which task it is.
struct call {
  std::int64_t graph = 0, step = 0, point = 0;
};

char* scratch_of_thread(std::size_t bytes) {
  thread_local std::vector<char> scratch;
  if (scratch.size() < bytes) {
    scratch.resize(bytes);
    TaskGraph::prepare_scratch(scratch.data(), bytes);
  }
  return scratch.data();
}

void run_point(const call& c, const char** inputs, const std::size_t* bytes, std::size_t count,
               const troupe::view<char, 1>& out) {
  const TaskGraph& g = graphs_of_process->graphs[static_cast<std::size_t>(c.graph)];
  g.execute_point(c.step, c.point, out.data(), g.output_bytes_per_task, inputs, bytes, count,
                  scratch_of_thread(g.scratch_bytes_per_task), g.scratch_bytes_per_task);
}

// `in`: views, however they are counted and found.
template <class Views>
void run_with_list(const call& c, const Views& in, const troupe::view<char, 1>& out) {
  std::array<const char*, 64> few_inputs;
  std::array<std::size_t, 64> few_bytes;
  std::vector<const char*> many_inputs;
  std::vector<std::size_t> many_bytes;
  const char** inputs = few_inputs.data();
  std::size_t* bytes = few_bytes.data();
  if (in.size() > few_inputs.size()) {
    many_inputs.resize(in.size());
    many_bytes.resize(in.size());
    inputs = many_inputs.data();
    bytes = many_bytes.data();
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    inputs[i] = in[i].data();
    bytes[i] = static_cast<std::size_t>(in[i].size(0));
  }
  run_point(c, inputs, bytes, in.size(), out);
}

// The kernel that other nodes know.
constexpr auto point_kernel =
    troupe::kernel<call, troupe::in_all<char, 1>, troupe::out<char, 1>>("task_bench.point")
        .on(troupe::cpu, [](call c, std::span<const troupe::view<const char, 1>> in, troupe::view<char, 1> out) {
          run_with_list(c, in, out);
        });

template <class Submitter>
void submit_to(Submitter& to, const all_graphs& graphs, const outputs& memory, std::span<const troupe::scope> where,
               bool spread) {
  std::vector<troupe::task_options> placed;
  for (const troupe::scope& s : where) placed.push_back({.where = s});

  const auto& all = graphs.app().graphs;
  long steps = 0;
  for (const TaskGraph& g : all) steps = std::max(steps, g.timesteps);
  std::vector<output> list;
  for (long step = 0; step < steps; ++step)
    for (std::size_t number = 0; number < all.size(); ++number) {
      const TaskGraph& g = all[number];
      if (step >= g.timesteps) continue;
      const long begin = g.offset_at_timestep(step), end = begin + g.width_at_timestep(step);
      for (long point = begin; point < end; ++point) {
        const call c{static_cast<std::int64_t>(number), step, point};
        const output& out = memory.at(number, step, point);
        list.clear();
        for (const long i : graphs.inputs(number, step, point)) list.push_back(memory.at(number, step - 1, i));
        if (spread) {
          const auto node = static_cast<std::size_t>(point) * where.size() / static_cast<std::size_t>(g.max_width);
          to.spawn(placed[node], point_kernel, c, troupe::read_all(list), troupe::write(out));
        } else {
          to.spawn([c](const troupe::views<const char, 1>& in,
                       const troupe::view<char, 1>& made) { run_with_list(c, in, made); },
                   troupe::read_all(list), troupe::write(out));
        }
      }
    }
}

}  // namespace

all_graphs::all_graphs(int argc, char** argv) : app_(std::make_unique<App>(argc, argv)) {
  graphs_of_process = app_.get();
  static const troupe::offer offered{point_kernel};
  for (const TaskGraph& g : app_->graphs) {
    auto& of_graph = inputs_.emplace_back();
    for (long step = 0; step < g.timesteps; ++step) {
      const long begin = g.offset_at_timestep(step), end = begin + g.width_at_timestep(step);
      const long before = step == 0 ? 0 : g.offset_at_timestep(step - 1);
      const long after = step == 0 ? 0 : before + g.width_at_timestep(step - 1);
      for (long point = 0; point < g.max_width; ++point) {
        auto& list = of_graph.emplace_back();
        if (point < begin || point >= end) continue;
        for (const auto& [first, last] : g.dependencies(g.dependence_set_at_timestep(step), point))
          for (long i = std::max(first, before); i <= std::min(last, after - 1); ++i) list.push_back(i);
      }
    }
  }
}

all_graphs::~all_graphs() = default;
void all_graphs::display() const { app_->display(); }
void all_graphs::report(double seconds) const { app_->report_timing(seconds); }

std::span<const long> all_graphs::inputs(std::size_t graph, long step, long point) const {
  return inputs_[graph][static_cast<std::size_t>(step * app_->graphs[graph].max_width + point)];
}

outputs::outputs(troupe::runtime& rt, const all_graphs& graphs) {
  for (const TaskGraph& g : graphs.app().graphs) {
    const auto bytes = static_cast<troupe::index_t>(g.output_bytes_per_task);
    for (auto& of_parity : all_) {
      auto& list = of_parity.emplace_back();
      for (long point = 0; point < g.max_width; ++point)
        list.push_back(rt.filled<char>({bytes}, troupe::tiles(bytes), '\0'));
    }
  }
}

void submit(troupe::runtime& to, const all_graphs& g, const outputs& o, std::span<const troupe::scope> where,
            bool spread) {
  submit_to(to, g, o, where, spread);
}
void submit(troupe::recorder& to, const all_graphs& g, const outputs& o, std::span<const troupe::scope> where,
            bool spread) {
  submit_to(to, g, o, where, spread);
}

}  // namespace task_bench
