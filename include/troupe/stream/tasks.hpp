// What this file is for: stages of streams whose work is tasks of the runtime: kernels on accelerators and on cores.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   auto frames = st::frames<float>(rt, {576, 768});            // arrays that are used again and again
//   auto p = st::from("camera", camera(frames))                 // items: st::frame<float, 2>
//          | st::kernel("blur", blur, frames, {.where = scope::gpu()}, 2.0f)
//          | st::sink("show", [](const st::frame<float, 2>& f) { show(f->read()); });
//
// An item is in such a stage from when its tasks are spawned until they are done; `in_flight` items at once, so that
// one is copied to a device while it works on another. No thread waits for them. Where tasks run, what is copied and
// what stays in which cache is decided as for all tasks; arrays that are used again keep their room on devices.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/access.hpp>
#include <troupe/array.hpp>
#include <troupe/detail/streams/running.hpp>
#include <troupe/future.hpp>
#include <troupe/graph.hpp>
#include <troupe/options.hpp>
#include <troupe/runtime.hpp>
#include <troupe/scope.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/recycled.hpp>
#include <troupe/submitter.hpp>

namespace troupe::detail::streams {
template <class T, class U, class F>
class tasks_lane;
}

namespace troupe::stream {

/// An array that is used again by a later item; `*f` is the array.
template <class T, int N>
using frame = recycled<array<T, N>>;

/// Makes frames: arrays of one tile with these sizes, of which `kept_max` at most are kept for later. What they hold at
/// first was written by an earlier item, or by nobody. The runtime must be there, as the same object, when one is
/// taken.
template <class T, std::size_t N>
recycler<array<T, static_cast<int>(N)>> frames(runtime& rt, const index_t (&size)[N], std::size_t kept_max = 64,
                                               std::string name = "frame") {
  extent<static_cast<int>(N)> e;
  for (std::size_t d = 0; d < N; ++d) e[static_cast<int>(d)] = size[d];
  return recycler<array<T, static_cast<int>(N)>>(kept_max, [of = &rt, e, name = std::move(name)] {
    return of->template array<T, static_cast<int>(N)>(e, tile_shape<static_cast<int>(N)>{e}, name);
  });
}

/// How a stage of tasks is run.
struct tasks_options {
  /// Executors for its tasks, beside what the options of a call say.
  scope where{};
  /// Items whose tasks are under way at once, 1 to 1024.
  int in_flight = 3;
  /// Priority of its tasks, where the options of a call have none.
  int priority = 0;
  stream::order order = stream::ordered;
  /// Retries of each of its tasks, where the options of a call have none: what a body updates is put back first.
  int retries = 0;
  /// What happens to an item when the stage's function throws or one of its tasks fails: once all its tasks have ended.
  /// A retry calls the function again, with the item as function and tasks have left it: that helps where they write
  /// their arrays anew. What a failed task was to update is in error until it is written; use `retries` there. A letter
  /// has the item as it is then, too.
  failure fail = stream::fail;
  /// The edge before the stage. What is in flight is not counted in it.
  edge_options edge{};
};

/// What a stage's function spawns its item's tasks with. Valid during the call. Members as those of `runtime`; options
/// have the stage's scope and priority, and the tasks are asked to stop when the stream ends early.
class spawner {
 public:
  /// See `submitter::spawn`. Never blocks.
  template <class... A>
  auto spawn(const task_options& o, A&&... args) {
    return note(home_.spawn(merged(o), std::forward<A>(args)...));
  }
  template <class A, class... Rest>
  requires(!std::is_same_v<std::remove_cvref_t<A>, task_options>) auto spawn(A&& first, Rest&&... rest) {
    return note(home_.spawn(options_, std::forward<A>(first), std::forward<Rest>(rest)...));
  }
  /// See `submitter::for_each`.
  template <class... A>
  future<void> for_each(const task_options& o, A&&... args) {
    return note(home_.for_each(merged(o), std::forward<A>(args)...));
  }
  template <class A, class... Rest>
  requires(!std::is_same_v<std::remove_cvref_t<A>, task_options>) future<void> for_each(A&& first, Rest&&... rest) {
    return note(home_.for_each(options_, std::forward<A>(first), std::forward<Rest>(rest)...));
  }
  /// See `runtime::run`.
  future<void> run(const graph& g) { return run(task_options(), g); }
  future<void> run(const task_options& o, const graph& g) {
    task_options how = merged(o);
    how.retries = o.retries;  // a graph as a whole is not retried
    return note(detail::streams::entrance::run(home_.the_engine(), how, g));
  }

 private:
  template <class T, class U, class F>
  friend class troupe::detail::streams::tasks_lane;
  class home : public submitter<home> {
   public:
    explicit home(detail::engine& e) : engine_(&e) {}
    detail::engine& the_engine() const { return *engine_; }

   private:
    friend class submitter<home>;
    detail::target submission_target() const { return {engine_, nullptr, false}; }
    detail::engine* engine_;
  };
  spawner(detail::engine& e, const task_options& o, std::vector<future<void>>& log)
      : home_(e), options_(o), log_(log) {}
  spawner(const spawner&) = delete;
  spawner& operator=(const spawner&) = delete;
  task_options merged(task_options o) const {
    o.where = o.where & options_.where;
    if (o.priority == 0) o.priority = options_.priority;
    if (o.retries == 0) o.retries = options_.retries;
    if (!o.stop.stop_possible()) o.stop = options_.stop;
    return o;
  }
  template <class R>
  future<R> note(future<R> f) {
    detail::retain(f.task());
    log_.push_back(future<void>(f.task()));
    return f;
  }

  home home_;
  const task_options& options_;
  std::vector<future<void>>& log_;
};

/// The array that an item is.
template <class T, int N>
const array<T, N>& array_of(const array<T, N>& a) {
  return a;
}
template <class T, int N>
const array<T, N>& array_of(const frame<T, N>& f) {
  return *f;
}

namespace stages {

/// Calls a kernel that updates the item's array, or that of each element of a vector.
template <class Kernel, class... Scalars>
struct update_with {
  Kernel k;
  std::tuple<Scalars...> scalars;
  template <class T>
  void operator()(spawner& on, T& item) const {
    static_assert(
        requires { array_of(item); } || requires { array_of(*item.begin()); },
        "troupe::stream::kernel: the items are no arrays and no frames, nor vectors of those");
    if constexpr (requires { array_of(item); })
      std::apply([&](const Scalars&... s) { on.spawn(k, update(array_of(item)), s...); }, scalars);
    else if constexpr (requires { item.begin(); })
      for (auto& x : item) (*this)(on, x);
  }
};
/// Calls a kernel that reads the item's array and writes a frame, which goes on.
template <class Kernel, class A, class... Scalars>
struct write_with {
  Kernel k;
  recycler<A> frames;
  std::tuple<Scalars...> scalars;
  template <class T>
  auto operator()(spawner& on, T& item) const {
    static_assert(
        requires { array_of(item); } || requires { array_of(*item.begin()); },
        "troupe::stream::kernel: the items are no arrays and no frames, nor vectors of those");
    if constexpr (requires { array_of(item); }) {
      recycled<A> to = frames.take();
      std::apply([&](const Scalars&... s) { on.spawn(k, read(array_of(item)), write(*to), s...); }, scalars);
      return to;
    } else if constexpr (requires { item.begin(); }) {
      std::vector<recycled<A>> all;
      all.reserve(item.size());
      for (auto& x : item) all.push_back((*this)(on, x));
      return all;
    }
  }
};

}  // namespace stages

}  // namespace troupe::stream
