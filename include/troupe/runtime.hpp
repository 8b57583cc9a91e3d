// What this file is for: the runtime, the object that a program creates to run task graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/array.hpp>
#include <troupe/array_maker.hpp>
#include <troupe/cluster.hpp>
#include <troupe/cluster_report.hpp>
#include <troupe/detail/deadline.hpp>
#include <troupe/future.hpp>
#include <troupe/graph.hpp>
#include <troupe/options.hpp>
#include <troupe/pinned_memory.hpp>
#include <troupe/report.hpp>
#include <troupe/submitter.hpp>

namespace troupe {

namespace detail::streams {
struct entrance;
}

/// A runtime makes arrays, runs tasks on them, waits for them, and reports what it does. The functions that it shares
/// with the recorder of graphs are documented there: arrays (`rt.array`, `filled`, `adopt`, `borrow`) in
/// array_maker.hpp, tasks (`rt.spawn`, `try_spawn`, `try_spawn_for`, `for_each`) in submitter.hpp.
///
/// Use: a runtime is a value. Create it, use it from any thread, destroy it. Several may live in one process. The
/// destructor stops and joins everything in bounded time (`options::shutdown_timeout`).
///
/// Environment: a runtime installs no signal handlers (but see `cluster_options::trusted_fabric`) and writes nothing to
/// stdout or stderr. It reads the environment variables named at `options::devices`, `eager_devices`, `plugin_folders`
/// and `cluster_options`; without devices no others, and no files of the user's. With devices see `options::cost_cache`
/// and docs/gpu.md.
///
/// `fork()`: afterwards the runtime belongs to the parent. In the child, every use of it throws
/// `error(runtime_stopped)` at once; its destructor, and those of arrays, futures and views, return without waiting and
/// free nothing; results that were there before the fork may be read. The child may make a runtime of its own. A child
/// that is forked inside a task's body must not return from that body: it calls `exec` or `_exit`.
class runtime : public array_maker<runtime>, public submitter<runtime> {
 public:
  /// Finds the cores that this process may use and starts the workers. Throws `error` for options that make no sense,
  /// with `no_resource` if the system gives too few threads, with `out_of_memory` if it gives too little memory;
  /// nothing is left behind then.
  explicit runtime(options o = {});
  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) noexcept;
  /// `shutdown(options::shutdown_timeout)`.
  ~runtime();

  /// Waits until no task is in flight, not those of other threads either: while these go on submitting it may never
  /// return. Waits also until borrowed memory whose last handle has gone is the caller's again. Does not throw what
  /// tasks threw. Throws `error(would_deadlock)` inside a task, or if a task can only go on after a host view that
  /// this thread holds; `error(runtime_stopped)` if a shutdown has left bodies behind that still run, or if the
  /// runtime has ended because a part that it needs has failed.
  void wait_all();
  /// `wait_all` with a limit. True if nothing is in flight; false if the limit has passed, or where `wait_all` throws
  /// `error(runtime_stopped)`.
  template <class Rep, class Period>
  bool wait_all_for(std::chrono::duration<Rep, Period> limit) {
    return wait_all_until(detail::deadline_after(limit));
  }
  bool wait_all_until(std::chrono::steady_clock::time_point);

  /// Pins memory of the caller's for the devices of this runtime that gain by it (CUDA, HIP), for arrays that borrow it
  /// again and again: their copies then run at the full speed of the link and beside everything else, where those of
  /// pageable memory pass through buffers. It costs about as much as writing the memory once, and keeps it from being
  /// swapped out. Pin an array's memory by one call: a copy across the end of what one call has pinned passes through
  /// buffers as before. Where no device gains nothing happens. Any thread. Throws std::bad_alloc.
  template <class T>
  [[nodiscard]] pinned_memory pin(std::span<T> memory) {
    static_assert(!std::is_const_v<T>, "memory that may not be written cannot be pinned");
    return pin_bytes(reinterpret_cast<std::byte*>(memory.data()), memory.size_bytes());
  }

  /// Records the calls that `f` makes on the recorder (graph.hpp). Nothing runs. Throws what `f` and wrong calls throw.
  graph record(const std::function<void(recorder&)>& f);
  /// Runs a recorded graph; may be called again before the last run has finished (runs of one graph are ordered). The
  /// future is done when all tasks of the run are; the first failure is its error.
  future<void> run(const graph& g);
  future<void> run(const task_options& options, const graph& g);

  // ---- control and insight ------------------------------------------------------------------------------------------

  /// Names, kinds and counters of the executors in the scope.
  std::vector<executor_report> executors(const scope& = {}) const;
  /// Counters of the runtime. A task is counted as finished, and its records and arrays as free, a moment after its
  /// future is ready, and some of them a moment after `wait_all` has returned.
  runtime_report report() const;
  /// The other nodes that are connected, by name; of several with one name the last that came.
  std::vector<node_report> nodes() const;
  /// The links of this node, by name: `from` is always this node. Only what this end knows; nothing is sent. Any
  /// thread.
  std::vector<link_report> links() const;
  /// Collects load and link statistics from all members; blocks for at most `limit`. A member that has not answered by
  /// then is listed with what is known here. Empty without a cluster. Any thread, also inside a task, which is blocked
  /// meanwhile.
  cluster_report query_cluster(std::chrono::milliseconds limit) const;
  [[deprecated("use query_cluster")]] cluster_report survey(std::chrono::milliseconds limit) const {
    return query_cluster(limit);
  }
  /// Addresses at which the last attempt to connect to a node failed, in order, and why. An address stays in the list
  /// until a node answers there, or until 30 s after the last attempt if it is no longer tried. Any thread.
  std::vector<connection_failure> connection_failures() const;
  [[deprecated("use connection_failures")]] std::vector<connection_failure> refusals() const {
    return connection_failures();
  }
  /// Waits until `count` other nodes are connected; false if the limit has passed.
  bool wait_for_nodes(std::size_t count, std::chrono::milliseconds limit) const;
  /// Addresses on which this node listens, with the ports that the system chose.
  std::vector<std::string> addresses() const;
  /// The reason why a task ran where it did. Decisions are kept for the last `options::decisions_kept` tasks.
  template <class T>
  explanation explain(const future<T>& f) const {
    return explain_task(f.task());
  }
  /// Stops the runtime: lets the tasks in flight finish until the deadline, takes no more then, and abandons the rest.
  /// Tasks that other threads go on submitting count as in flight, so stop these threads first: else none is refused,
  /// nor does this return, until by chance none is in flight, or the deadline. The last ones may be abandoned, however
  /// long the limit.
  /// Abandoned tasks that are queued never start; running ones are asked to stop, and left behind if they do not. The
  /// futures of both report `runtime_stopped` from then on, and coroutines that wait for one are resumed with that
  /// error, on this thread. Idempotent. A body that calls it, or the destructor, is one that still runs: all of the
  /// limit passes, and the body is left behind.
  shutdown_report shutdown(std::chrono::steady_clock::time_point deadline);
  shutdown_report shutdown(std::chrono::milliseconds limit) { return shutdown(detail::deadline_after(limit)); }

 private:
  friend class array_maker<runtime>;
  friend class submitter<runtime>;
  friend struct detail::streams::entrance;
  // Inline: a `target` is larger than what functions return in registers.
  detail::target submission_target() const { return {&the_engine(), nullptr}; }

  detail::engine& the_engine() const;
  explanation explain_task(detail::task_record*) const;
  pinned_memory pin_bytes(std::byte*, std::size_t) const;
  static future<void> run_at(detail::engine&, const task_options&, const graph&);

  std::shared_ptr<detail::engine> engine_;
};

// ---- members of future that need spawn ------------------------------------------------------------------------------

namespace detail {

/// Spawns into the runtime that a record belongs to.
class runtime_of : public submitter<runtime_of> {
 public:
  explicit runtime_of(const task_record& r) : engine_(&engine_of(r)) {}

 private:
  friend class submitter<runtime_of>;
  target submission_target() const { return {engine_, nullptr}; }
  engine* engine_;
};

/// Resumes a coroutine on a worker once the task is done, whether it failed or not.
void resume_after(task_record&, std::coroutine_handle<>);

template <class T>
struct awaiter {
  future<T> from;
  bool await_ready() const noexcept { return from.is_ready(); }
  void await_suspend(std::coroutine_handle<> h) const { resume_after(*from.task(), h); }
  T await_resume() const { return future<T>(from).get(); }
};

}  // namespace detail

template <class T>
template <class F>
auto future<T>::then(F f) const {
  detail::runtime_of home(checked());
  if constexpr (std::is_void_v<T>)
    return home.spawn([f = std::move(f)](auto&&) mutable { return f(); }, *this);
  else
    return home.spawn([f = std::move(f)](const T& v) mutable { return f(v); }, *this);
}

template <class T>
auto future<T>::operator co_await() const {
  return detail::awaiter<T>{*this};
}

}  // namespace troupe
