// What this file is for: graphs that are recorded once and run again and again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
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

/// A recorder takes calls (`spawn`, `for_each`: submitter.hpp) in place of a runtime and keeps them. Used on one
/// thread, inside `runtime::record`. A future that it returns stands for the recorded task: pass it to later calls of
/// the recorder; it is never ready. Arrays that a recorder makes are like those of the runtime; the graph keeps the
/// ones that its calls touch.
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

/// A recorded graph: `runtime::record` makes it, `runtime::run` runs it, always on the arrays that it was recorded
/// with. A cheap handle; keeps its arrays alive.
///
/// Cost: recording derives the dependencies once; a run skips that and costs a fraction of spawning its tasks.
///
/// Order: a run behaves as one task in program order. It waits for earlier tasks that touch its arrays, and later ones
/// wait for it. Each run works on the contents that the arrays have by then.
///
/// Executors: a run of a graph without calls for other nodes uses all core groups that are in the scopes of all
/// recorded calls and of the run; each of their threads that has nothing else to do takes calls. If there is no such
/// group, or if the scope of the run says so, the run stays on one device in these scopes; without one it is
/// `error(no_executor)`. Priorities of recorded calls are ignored, those of runs are not.
///
/// Devices: each call, and each chunk of a `for_each`, must have a body as text, and what it changes of an array must
/// lie in one tile; no reductions. Errors name the call that breaks this. What a call reads may be any box, as a window
/// with its border: it is put together before the call. A run has whole tiles there: of those that it changes or reads
/// in part all must have been written before. A device enqueues the calls in program order. If its vendor has graphs
/// (CUDA, HIP, sim), the second run on the same memory is captured, and each later one is a single call of the
/// vendor's, whatever the number of kernels.
///
/// Nodes: a call with a scope of other nodes only (`scope::at("b")`) makes the graph one *over several nodes*. Each
/// node has a part, whose calls run on its core groups; a run sends each part one message, and what its calls need of
/// each other travels from part to part, boxes and never tiles, without this node and without a decision about it. No
/// part begins before all of the run may: each has its inputs, or waits for runs that may begin. A node gets its parts
/// in the order in which their runs may begin, whatever their priorities, four runs of a graph ahead at most. A call
/// that may run in several parts goes to the one that wrote most of what it changes; else it stays here if it may, or
/// goes to the one with the fewest such calls. The scope of a run includes all of these nodes. `record` sends the parts
/// and waits until they are built. A tile that calls write stays where the first of them ran, and is fetched when
/// somebody reads it. Each part adds up what its calls reduce; by an operator of the program (not plus, multiplies,
/// bit_and, bit_or or bit_xor of the standard library on numbers) only into arrays that no call of another node writes.
/// Calls on other nodes are of kernels that these offer. Such a graph has no value of a call (a future) that another
/// part or another node uses, and no node with a memory budget (`error(not_supported)`); borrowed and adopted arrays
/// may not have tiles that another node writes and a call here reads. If a node goes, the run and all later ones fail
/// (or `run` throws `error(no_executor)`): record again with those that are there. What its part had written is lost
/// with it (`error(data_lost)`), for a part cannot be run again alone; arrays with `array_options::replicas = 2` are
/// copied here after each run, perhaps only after its future is ready.
///
/// Failures: a call that fails is reported as "task 'CALL' of 'RUN'". All that the run was to write is in error then,
/// as the outputs of a task are, also what calls that succeeded have written. Once a run has begun, its bodies on cores
/// see its stop token and its deadline (`task_context::stop_requested`); calls that have not begun run all the same.
///
/// Not supported (`error(not_supported)`): resources, stop tokens and deadlines of recorded calls, which `record`
/// refuses once all calls are made, and retries of a run as a whole.
class graph {
 public:
  /// An empty handle.
  graph() = default;
  /// Number of recorded tasks: one for each call, or for each chunk of a `for_each` and one more for its future.
  std::size_t size() const;
  /// Number of dependencies among them; over several nodes, of those inside the parts, crossings included.
  std::size_t edges() const;
  /// True unless the handle is empty.
  bool valid() const { return graph_ != nullptr; }

 private:
  friend class runtime;
  std::shared_ptr<detail::recorded_graph> graph_;
};

}  // namespace troupe
