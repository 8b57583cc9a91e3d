// What this file is for: graphs that are recorded once and run again and again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Recording derives the dependencies once; running a graph skips that and costs a fraction of spawning its tasks. A
// run behaves as one task in program order: it waits for earlier tasks that touch its arrays, later ones wait for it.
// Data is new each time because the arrays' contents are. Recorded calls may not ask for resources or have stop tokens
// or deadlines (`record` throws that once all calls are made), and a run as a whole is not retried: error(not_supported).
//
// A run uses all core groups that are in the scopes of all recorded calls and of the run: each of their threads that has
// nothing else to do takes calls. Where there is no such group, or where the scope of the run says so, the run stays on one
// device in these scopes; none is error(no_executor). On a device each call, and each chunk of a for_each, must have a body
// as text, and each of its arrays must be exactly one tile: no part of a tile, no window beyond it, not several tiles. Errors
// name the call that cannot. Once a run has begun, its stop token and its deadline are seen by its bodies on cores
// (`task_context::stop_requested`); calls that have not begun run all the same. A call that fails is told as "task 'CALL' of 'RUN'". A device enqueues the calls in program
// order; where its vendor has graphs (CUDA, HIP, sim) the second run on the same memory is captured and the later ones are
// one call of the vendor's each, whatever the number of kernels. Priorities of recorded calls are not looked at, those of
// runs are. A graph keeps its arrays alive; it is a cheap handle.
#pragma once

#include <cstddef>
#include <memory>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

namespace troupe {

namespace detail {
struct recording;
struct recorded_graph;
}  // namespace detail

class runtime;

/// Takes calls (`spawn`, `for_each`: submitter.hpp) instead of a runtime and keeps them. Used on one thread, inside
/// `runtime::record`.
/// Futures it returns stand for the recorded task: pass them to later calls of the recorder; they are never ready.
/// Arrays that it makes are as those of the runtime; the graph keeps the ones that its calls touch.
class recorder : public array_maker<recorder>, public submitter<recorder> {
 public:
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

 private:
  friend class array_maker<recorder>;
  friend class submitter<recorder>;
  friend class runtime;
  recorder(detail::engine& the_engine, detail::recording& recorded) : engine_(&the_engine), recorded_(&recorded) {}
  detail::target submission_target() const { return {engine_, recorded_}; }
  detail::engine* engine_;
  detail::recording* recorded_;
};

/// A recorded graph; made by `runtime::record`, run by `runtime::run`.
class graph {
 public:
  graph() = default;
  /// Number of recorded tasks: one for each call, or for each chunk of a `for_each` and one more for its future.
  std::size_t size() const;
  /// Number of dependencies among them.
  std::size_t edges() const;
  bool valid() const { return graph_ != nullptr; }

 private:
  friend class runtime;
  std::shared_ptr<detail::recorded_graph> graph_;
};

}  // namespace troupe
