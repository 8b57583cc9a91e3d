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

#include <array>
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

#include <troupe/detail/streams/joins.hpp>
#include <troupe/detail/streams/sources.hpp>
#include <troupe/detail/streams/ways.hpp>
#include <troupe/detail/streams/zip.hpp>
#include <troupe/error.hpp>
#include <troupe/kernel.hpp>
#include <troupe/stream/codec.hpp>
#include <troupe/stream/item.hpp>
#include <troupe/stream/joins.hpp>
#include <troupe/stream/offers.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/pipeline.hpp>
#include <troupe/stream/process.hpp>
#include <troupe/stream/recycled.hpp>
#include <troupe/stream/report.hpp>
#include <troupe/stream/running.hpp>
#include <troupe/stream/source.hpp>
#include <troupe/stream/stages.hpp>
#include <troupe/stream/tasks.hpp>
#include <troupe/stream/time.hpp>
#include <troupe/stream/watch.hpp>

namespace troupe::stream {

/// Joins a stage to what comes out of another one.
template <class T, class Stage>
requires requires(Stage s, const flow<T>& f) { std::move(s).after(f); }
auto operator|(const flow<T>& f, Stage s) { return std::move(s).after(f); }

template <class Stage>
void operator|(const pipeline&, Stage&&) {
  static_assert(sizeof(Stage) == 0, "troupe::stream: nothing comes out of a sink that another stage could take");
}
template <class T, std::size_t N, class Stage>
void operator|(const std::array<flow<T>, N>&, Stage&&) {
  static_assert(sizeof(Stage) == 0,
                "troupe::stream: a tee or a route has several flows: auto [a, b] = ...; then put stages behind each");
}

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
template <class F>
requires(std::invocable<F&> && !std::ranges::range<std::decay_t<F>> &&
         !requires(F & f) { {*f()}; }) void from(const std::string&, F&&) {
  static_assert(sizeof(F) == 0, "troupe::stream::from: the function must return a std::optional: empty at the end");
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
/// Passes on the elements of the range that `f` returns for each item, as there is room: the range may be endless.
/// Elements have the number and the time of their item. Of the options `fail` and `edge` count.
template <class F>
stages::flat_map<F> flat_map(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}
/// Passes on what `f(state, item)` returns; the state begins as `initial` and is the stage's own.
template <class S, class F>
auto scan(std::string name, S initial, F f, const stage_options& o = {}) {
  if (o.parallel != lanes(1)) stages::refuse(name, "a stage with a state runs one call at a time");
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
/// The same with an edge that keeps the latest: where it is full, an item takes the place of the last one that waits
/// with the same key, which is dropped; where none has, what has waited longest is dropped. `edge_options::full` does
/// not count. What is worked on is in the edge, too: one item more than there are keys. Not behind a parallel stage
/// that keeps the order, nor before a merge. The key is taken under the edge's lock, often: let it be a member; what it
/// throws fails the stream.
template <class Key>
stages::latest_by<Key> latest_by(Key key, const edge_options& o = {}) {
  return {std::move(key), o};
}
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
/// to the next item. Once an item's tasks are done, what `f` has returned is passed on, or the item itself, as the
/// tasks have left it, where `f` returns nothing. `f` gets the item by reference; the stage keeps it until its tasks
/// have ended, so arrays that it holds go back to their recycler after that. One call of `f` at a time. See
/// stream/tasks.hpp.
template <class F>
stages::tasks<F> tasks(std::string name, F f, const tasks_options& o = {}) {
  return {std::move(name), "tasks", std::move(f), o};
}
/// Calls a kernel of signature (inout<T, N>, scalars...) on each item, an array or a frame, or on each of a vector (of
/// a `batch`), which then passes on.
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
template <class T, class U, class... Rest>
requires(!std::same_as<T, U> || (!std::same_as<flow<T>, Rest> || ...)) void merge(const std::string&, const flow<T>&,
                                                                                  const flow<U>&, const Rest&...) {
  static_assert(sizeof(T) == 0, "troupe::stream::merge: the flows are of different items; map them to one type before");
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
/// Puts items into the order of their times: holds each until the watermark has reached its time, or more than
/// `reorder_options::items` wait: then the earliest goes on. Items of one time keep their order. An item that is
/// earlier than one that has gone on is dropped, and counted as late; one without a time fails the stream, unless
/// `fail` says else.
inline stages::in_time_order in_time_order(std::string name, const reorder_options& o = {}) {
  return {std::move(name), o};
}
/// Has the stage behind it keep what `f` says apart: a key, with `==` and `std::hash`.
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
/// The same without options.
template <class Fold>
stages::window<Fold> window(std::string name, const windowing& w, Fold f) {
  return {std::move(name), w, {}, std::move(f)};
}
/// Has stages run in so many lanes, each with the items of its own keys: `make` is called once for each lane and puts
/// stages behind a flow; those of different lanes run at the same time, and what comes out of the lanes is merged:
///
///     by_key("lanes", 4, &hit::host, [](auto f) { return f | key_by(&hit::host) | window(...); })
///
/// Items of one key keep their order and find the state of that key. Keys are shared out by their hash; a key that has
/// most of the items keeps one lane busy. The stages of lane i have "#i" behind their names. `edge`: before each lane.
/// 1 to 128 lanes.
template <class Key, class Make>
stages::lanes_by_key<Key, Make> by_key(std::string name, int lanes, Key key, Make make, const edge_options& edge = {}) {
  return {std::move(name), lanes, std::move(key), std::move(make), edge};
}
/// Passes on pairs: the first item of `a` with the first of `b`, and so on. When one of the two has ended, what the
/// other one still has is left out. Both wait for each other, each in an edge: where one is fed by what the other one
/// is fed by too, neither may leave out more items than the edges hold.
template <class A, class B>
flow<std::pair<A, B>> zip(std::string name, const flow<A>& a, const flow<B>& b) {
  return stages::end_both<std::pair<A, B>>(a, b, std::make_unique<parts::zip_node<A, B>>(std::move(name)));
}
/// Passes on what `f(first, second)` returns for all pairs of items of the two flows that have the same key and belong
/// together in time, as soon as both are there: `join("clicked", ads | key_by(&ad::id), clicks | key_by(&click::ad),
/// within(0s, 1min), f)`. The pair has the later one's time. An item whose time is before the watermark of both flows
/// is dropped, and counted as dropped and late; one without a time fails the stream, as what is thrown does. Items are
/// kept, in memory, until the watermark says that nothing more belongs to them, and then up to twice as many. A flow
/// that is ahead of the other one is held back (`join_options::ahead`): where both are fed by the same one, what comes
/// between may not be longer than that.
template <class A, class KeyA, class B, class KeyB, class F>
auto join(std::string name, const stages::keyed<A, KeyA>& a, const stages::keyed<B, KeyB>& b, const joining& when, F f,
          const join_options& o = {}) {
  static_assert(std::is_invocable_v<F&, const A&, const B&>,
                "troupe::stream::join: the function cannot be called with const items of the two flows");
  stages::check_ahead(name, o.ahead);
  if (parts::saturated(when.before.count(), when.after.count()) < 0)
    stages::refuse(name, "an interval that holds no time");
  if (when.kind == joining::shape::window && (when.size.count() <= 0 || when.size.count() > parts::window_ns_max))
    stages::refuse(name, "a window of no time, or of more than 36 years");
  using R = std::decay_t<std::invoke_result_t<F&, const A&, const B&>>;
  static_assert(!std::is_void_v<R>, "troupe::stream::join: the function returns nothing; return what is to go on");
  static_assert(stages::is_key<std::decay_t<std::invoke_result_t<KeyA&, const A&>>>,
                "troupe::stream::join: keys need std::hash and ==");
  using body = parts::pairing<A, B, KeyA, KeyB, F, R>;
  static_assert(std::is_same_v<typename body::K, std::decay_t<std::invoke_result_t<KeyB&, const B&>>>,
                "troupe::stream::join: the keys of the two flows are of different types");
  using node = parts::join_node<A, B, R, body>;
  return stages::end_both<R>(a.of, b.of,
                             std::make_unique<node>(std::move(name), "join", a.key, b.key, std::move(f), when, o));
}
/// Passes on, for each item of the first flow, what `f(item, row)` returns: `row` points to the item of the second
/// flow, the table, that was the last with the same key at the item's time; it is null if there was none. So an item
/// waits until the watermark of the table has passed its time, or the table has ended, or is idle. Items keep their
/// order. One whose time is before the watermark of its own flow is dropped, and counted as late: its row may be
/// forgotten. A table without times: items that have times wait until it has ended; those without are answered at once,
/// with what is there. Rows are kept until a newer one of their key counts for all items to come; keys are kept for
/// ever.
template <class A, class KeyA, class B, class KeyB, class F>
auto lookup(std::string name, const stages::keyed<A, KeyA>& a, const stages::keyed<B, KeyB>& table, F f,
            const lookup_options& o = {}) {
  static_assert(std::is_invocable_v<F&, const A&, const B*>,
                "troupe::stream::lookup: the function cannot be called with a const item and a pointer to a const row");
  if (o.waiting < 1 || o.waiting > (std::size_t{1} << 24))
    stages::refuse(name, "room for " + std::to_string(o.waiting) + " items that wait; 1 to 2^24");
  stages::check_ahead(name, o.ahead);
  using R = std::decay_t<std::invoke_result_t<F&, const A&, const B*>>;
  static_assert(!std::is_void_v<R>, "troupe::stream::lookup: the function returns nothing; return what is to go on");
  static_assert(stages::is_key<std::decay_t<std::invoke_result_t<KeyA&, const A&>>>,
                "troupe::stream::lookup: keys need std::hash and ==");
  using body = parts::looking_up<A, B, KeyA, KeyB, F, R>;
  static_assert(std::is_same_v<typename body::K, std::decay_t<std::invoke_result_t<KeyB&, const B&>>>,
                "troupe::stream::lookup: the keys of items and rows are of different types");
  using node = parts::join_node<A, B, R, body>;
  return stages::end_both<R>(a.of, table.of,
                             std::make_unique<node>(std::move(name), "lookup", a.key, table.key, std::move(f), o));
}
template <class A, class B, class... Rest>
void join(const std::string&, const flow<A>&, const flow<B>&, const Rest&...) {
  static_assert(sizeof(A) == 0, "troupe::stream::join: put key_by behind each of the two flows");
}
template <class A, class B, class... Rest>
void lookup(const std::string&, const flow<A>&, const flow<B>&, const Rest&...) {
  static_assert(sizeof(A) == 0, "troupe::stream::lookup: put key_by behind each of the two flows");
}
/// Keeps a state for each key, which begins as `initial`: calls `on_item(context, state, item)` for each item; it may
/// pass on items of type U, any number of them, and ask for a call of `on_time(context, state)` at a time: see
/// `key_context`. At the end of the stream the times that have been asked for come, in their order.
template <class U, class S, class OnItem, class OnTime = no_times>
stages::process<U, S, OnItem, OnTime> process(std::string name, S initial, OnItem on_item, OnTime on_time = {},
                                              const process_options& o = {}) {
  return {std::move(name), std::move(initial), std::move(on_item), std::move(on_time), o};
}
template <class U, class S, class OnItem>
stages::process<U, S, OnItem, no_times> process(std::string name, S initial, OnItem on_item, const process_options& o) {
  return {std::move(name), std::move(initial), std::move(on_item), {}, o};
}
/// Passes on the bytes of each item, a std::string, by its `codec`.
inline auto encode(std::string name, const stage_options& o = {}) {
  return map(
      std::move(name), []<class T>(const T& item) { return encoded(item); }, o);
}
/// Passes on the value that an item's bytes are: those of a string, or of what has them in `bytes`, as messages of
/// sockets have. Bytes that are no such value are a failure of the item, with `error(bad_argument)`.
template <class T>
auto decode(std::string name, const stage_options& o = {}) {
  return map(
      std::move(name),
      []<class Item>(const Item& item) {
        if constexpr (requires { std::string_view(item.bytes); })
          return decoded<T>(item.bytes);
        else
          return decoded<T>(item);
      },
      o);
}
/// Hands each item to `f`: the end. The item counts as delivered when `f` returns.
template <class F>
stages::sink<F> sink(std::string name, F f, const stage_options& o = {}) {
  return {std::move(name), std::move(f), o};
}

}  // namespace troupe::stream
