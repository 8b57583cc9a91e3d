// What this file is for: streams: continuous data through typed stages with bounds, on the cores of a runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   namespace st = troupe::stream;
//   auto p = st::from("numbers", std::views::iota(0, 1000))
//          | st::map("square", [](int i) { return i * i; })
//          | st::sink("print", [](int i) { std::printf("%d\n", i); });
//   p.start(rt).wait();
//
// A pipeline is made of stages and says nothing of threads. Stages that follow one another are fused: one thread passes
// an item through all of them by calls. An edge, a bounded queue, lies where stages may run at the same time: at both
// sides of a stage with `parallel` above 1, behind `async`, before `merge`, and behind an input. Stages run on the
// runtime's workers, among its tasks, a millisecond at a time; what waits for a core, for room or for an item has no
// thread. A function of a stage that blocks holds a worker; `troupe::yield_core` gives it away meanwhile.
//
// Bounds: every edge has one in items and one in bytes. Where it is full, the stages before it wait, back to the
// source, which is not asked for items (a socket is not read); `edge_options::full` says otherwise.
//
// Items are moved from stage to stage: their move constructor must be noexcept. They need not be copyable.
//
// Order: items keep it, except behind a stage with `order::unordered`, behind `merge`, and where some are dropped.
//
// Functions of stages are called by one thread at a time, unless the stage has `parallel` above 1, not always by the
// same one; what a call writes is seen by the next. They take an item by value, by `const T&` or by `T&&`.
//
// Errors: wrong calls throw `error(bad_argument)`, with the stage's name, when stages are joined or at `start`. What a
// stage's function throws is treated as `stage_options::fail` says.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/streams/sources.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/detail/streams/zip.hpp>
#include <troupe/error.hpp>
#include <troupe/kernel.hpp>
#include <troupe/stream/item.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/pipeline.hpp>
#include <troupe/stream/recycled.hpp>
#include <troupe/stream/report.hpp>
#include <troupe/stream/running.hpp>
#include <troupe/stream/source.hpp>
#include <troupe/stream/stages.hpp>
#include <troupe/stream/tasks.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::stream {

/// The same for items with a key.
template <class T, class F, class Stage>
auto operator|(const stages::keyed<T, F>& f, Stage s) {
  constexpr bool is_window = requires { std::move(s).after(f); };
  static_assert(is_window, "troupe::stream::key_by: only a window can come next");
  if constexpr (is_window) return std::move(s).after(f);
}
/// Joins a stage to what comes out of another one.
template <class T, class Stage>
requires requires(Stage s, const flow<T>& f) { std::move(s).after(f); }
auto operator|(const flow<T>& f, Stage s) { return std::move(s).after(f); }

// ---- sources --------------------------------------------------------------------------------------------------------

/// A coroutine's items; see `source`.
template <class T>
flow<T> from(std::string name, source<T> s) {
  using node = parts::source_node<T, parts::coroutine_source<T>>;
  return stages::begin<T>(std::make_unique<node>(std::move(name), parts::coroutine_source<T>(std::move(s))));
}
/// The elements of a range, of which the stream has a copy: `from("n", std::views::iota(0, 10))`, a vector.
template <class R>
requires std::ranges::input_range<std::decay_t<R>>
auto from(std::string name, R&& r) {
  using range = std::decay_t<R>;
  using T = std::ranges::range_value_t<range>;
  static_assert(std::is_constructible_v<T, std::ranges::range_reference_t<range>>,
                "troupe::stream::from: the elements of the range are copied, and cannot be");
  using made = parts::range_source<T, range>;
  return stages::begin<T>(
      std::make_unique<parts::source_node<T, made>>(std::move(name), made(range(std::forward<R>(r)))));
}
/// What a function returns, a `std::optional`; an empty one ends the stream.
template <class F>
requires requires(F& f) {
  {*f()};
  requires std::same_as<std::invoke_result_t<F&>, std::optional<std::decay_t<decltype(*f())>>>;
}
auto from(std::string name, F f) {
  using T = typename std::invoke_result_t<F&>::value_type;
  using made = parts::function_source<T, F>;
  return stages::begin<T>(std::make_unique<parts::source_node<T, made>>(std::move(name), made(std::move(f))));
}
/// What threads outside push through `running::input<T>(name)`; they wait in an edge with these bounds.
template <class T>
flow<T> from(std::string name, const edge_options& o = {}) {
  if (o.items < 1 || o.items > (std::size_t{1} << 24) || o.bytes < 1)
    stages::refuse(name, "an edge for " + std::to_string(o.items) + " items and " + std::to_string(o.bytes) + " bytes");
  return stages::begin<T>(std::make_unique<parts::input_node<T>>(std::move(name), o));
}

// ---- stages ---------------------------------------------------------------------------------------------------------

/// Passes on what `f` returns for each item.
template <class F>
stages::map<F> map(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}
/// Passes on the items for which `f` returns true. Of the options `fail` and `edge` count.
template <class F>
stages::filter<F> filter(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}
/// Passes on the elements of the range that `f` returns for each item, as there is room: the range may be endless. Elements
/// have the number and the time of their item. Of the options `fail` and `edge` count.
template <class F>
stages::flat_map<F> flat_map(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}
/// Passes on what `f(state, item)` returns; the state begins as `initial` and is the stage's own.
template <class S, class F>
auto scan(std::string name, S initial, F f, const stage_options& o = {}) {
  if (o.parallel != 1) stages::refuse(name, "a stage with a state runs one call at a time");
  auto call = [ state = std::move(initial),
                f = std::move(f) ]<class T>(T && item) mutable requires std::is_invocable_v<F&, S&, T&&> {
    return std::invoke(f, state, std::forward<T>(item));
  };
  return map(std::move(name), std::move(call), o);
}
/// Gathers items in vectors. A vector has the number of its first item and no time: put `event_time` behind `batch` and
/// `unbatch`, not before.
inline stages::batch batch(std::string name, const batch_options& o = {}) { return {std::move(name), o}; }
/// Passes on the elements of each item, a range.
inline auto unbatch(std::string name) {
  return flat_map(
      std::move(name), []<class R>(R && items) requires(!std::is_lvalue_reference_v<R>) { return std::move(items); });
}
/// Has the next stage run at the same time as those before: puts an edge between them, with these bounds, whatever the
/// next stage's options say.
inline stages::async async(const edge_options& o = {}) { return {o}; }
/// Passes a copy of each item to each of N flows: `auto [a, b] = f | tee<2>("copies")`.
template <std::size_t N>
stages::split<std::nullptr_t, N> tee(std::string name) {
  static_assert(N >= 1);
  return {std::move(name), "tee", nullptr};
}
/// Passes each item to one of N flows, which `f` says by number; items with other numbers are left out.
template <std::size_t N, class F>
stages::split<F, N> route(std::string name, F f) {
  static_assert(N >= 1);
  return {std::move(name), "route", std::move(f)};
}
/// Has each item worked on by tasks: calls `f(on, item)`, which spawns them (`on.spawn(...)`, a `spawner`), and goes on
/// to the next item. Once an item's tasks are done, what `f` has returned is passed on, or the item itself, as the tasks
/// have left it, where `f` returns nothing. `f` gets the item by reference; the stage keeps it until its tasks have ended,
/// so arrays that it holds go back to their recycler after that. One call of `f` at a time. See stream/tasks.hpp.
template <class F>
stages::tasks<F> tasks(std::string name, F f, const tasks_options& o = {}) {
  return {std::move(name), "tasks", std::move(f), o};
}
/// Calls a kernel of signature (inout<T, N>, scalars...) on each item, an array or a frame, or on each of a vector (of a
/// `batch`), which then passes on.
template <class... P, class... S>
auto kernel(std::string name, const troupe::kernel<P...>& k, const tasks_options& o = {}, const S&... scalars) {
  using body = stages::update_with<troupe::kernel<P...>, S...>;
  return stages::tasks<body>{std::move(name), "kernel", body{k, {scalars...}}, o};
}
/// The same for a kernel of signature (in<T, N>, out<U, M>, scalars...): passes on frames that it has written.
template <class... P, class A, class... S>
auto kernel(std::string name, const troupe::kernel<P...>& k, const recycler<A>& to, const tasks_options& o = {},
            const S&... scalars) {
  using body = stages::write_with<troupe::kernel<P...>, A, S...>;
  return stages::tasks<body>{std::move(name), "kernel", body{k, to, {scalars...}}, o};
}
/// Passes on the items of all flows, as they come.
template <class T, std::same_as<flow<T>>... Rest>
flow<T> merge(std::string name, const flow<T>& first, const Rest&... rest) {
  auto n = std::make_unique<parts::merge_node<T>>(std::move(name));
  parts::merge_node<T>& added = *n;
  first.connect(added, added, 0);
  (rest.connect(added, added, 0), ...);
  (pipeline::join(first.plan(), rest.plan()), ...);
  first.plan()->nodes.push_back(std::move(n));
  return stages::out_of<T>(first.plan(), added, added.out);
}
/// Takes the time of each item from what `f` says of it: a time_point of the system's clock, a duration since 1970, or
/// a whole number of ns. An item whose time is not a number, or more than 146 years from 1970, fails the stream.
template <class F>
stages::event_time<F> event_time(std::string name, F f, const event_time_options& o = {}) {
  return {std::move(name), std::move(f), o};
}
/// Has the window behind it keep what `f` says apart: a key, with `==` and `std::hash`.
template <class F>
stages::key_by<F> key_by(F f) {
  return {std::move(f)};
}
/// Gathers items that are near each other in event time, for each key, and passes on what the fold has made of them
/// when the window is over: as `windowed<key, state>`. At the end of the stream all windows are over. An item without a
/// time fails the stream. What is kept is not bounded by anything but the number of keys and of windows that are not
/// over.
template <class Fold>
stages::window<Fold> window(std::string name, const windowing& w, const window_options& o, Fold f) {
  return {std::move(name), w, o, std::move(f)};
}
/// Passes on pairs: the first item of `a` with the first of `b`, and so on. When one of the two has ended, what the
/// other one still has is left out. Both wait for each other, each in an edge: where one is fed by what the other one
/// is fed by too, neither may leave out more items than the edges hold.
template <class A, class B>
flow<std::pair<A, B>> zip(std::string name, const flow<A>& a, const flow<B>& b) {
  auto n = std::make_unique<parts::zip_node<A, B>>(std::move(name));
  parts::zip_node<A, B>& added = *n;
  a.connect(added, added.first, 0);
  b.connect(added, added.second, 1);
  pipeline::join(a.plan(), b.plan());
  a.plan()->nodes.push_back(std::move(n));
  return stages::out_of<std::pair<A, B>>(a.plan(), added, added.out);
}
/// Hands each item to `f`: the end. The item counts as delivered when `f` returns.
template <class F>
stages::sink<F> sink(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}

}  // namespace troupe::stream
