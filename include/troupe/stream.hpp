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
#include <chrono>
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

#include <troupe/detail/deadline.hpp>
#include <troupe/detail/streams/running.hpp>
#include <troupe/detail/streams/sources.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/detail/streams/windows.hpp>
#include <troupe/detail/streams/zip.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>
#include <troupe/stream/item.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/recycled.hpp>
#include <troupe/stream/report.hpp>
#include <troupe/stream/source.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::stream {

namespace parts = troupe::detail::streams;  // not for users

template <class T>
class flow;
class pipeline;

/// The answer to a push.
enum class pushed : std::uint8_t {
  ok,      ///< the item is in the stream, or the edge has dropped one, as it was told to
  full,    ///< there was no room in time; the caller still has the item
  closed,  ///< the stream has ended or is ending; the caller still has the item
};

/// A way into a running stream for threads outside of it, made by `running::input`. A handle: copies are the same way.
/// Any thread. It keeps what it needs alive; once the stream has ended, pushes answer `closed`.
template <class T>
class input {
 public:
  /// Pushes an item, waiting for room as long as that takes. `due`: from when its latency counts. Throws
  /// `error(overrun)` where the edge is to fail when it is full; the stream has then failed. In a task, or in a stage
  /// of another stream, the worker does other things meanwhile. In a stage of the same stream it is
  /// `error(would_deadlock)` to wait; use `try_push`.
  pushed push(T&& item, std::chrono::steady_clock::time_point due = std::chrono::steady_clock::now()) {
    return push_until(std::move(item), std::chrono::steady_clock::time_point::max(), due);
  }
  pushed push(const T& item) { return push(T(item)); }
  /// The same without waiting.
  pushed try_push(T&& item, std::chrono::steady_clock::time_point due = std::chrono::steady_clock::now()) {
    return push_until(std::move(item), std::chrono::steady_clock::time_point::min(), due);
  }
  pushed try_push(const T& item) { return try_push(T(item)); }
  /// The same, waiting for room as long as the limit says.
  template <class Rep, class Period>
  pushed push_for(std::chrono::duration<Rep, Period> limit, T&& item) {
    return push_until(std::move(item), troupe::detail::deadline_after(limit), std::chrono::steady_clock::now());
  }
  /// Says that nothing more will be pushed: the stream ends when all its sources have. Idempotent.
  void close() { node_->shut(); }

 private:
  friend class running;
  input(std::shared_ptr<parts::machine> of, parts::input_node<T>& n) : of_(std::move(of)), node_(&n) {}
  pushed push_until(T&& item, std::chrono::steady_clock::time_point until, std::chrono::steady_clock::time_point due) {
    switch (node_->push(item, due, until, *of_)) {
      case parts::received::yes:
        return pushed::ok;
      case parts::received::no:
        return pushed::full;
      case parts::received::closed:
        return pushed::closed;
      case parts::received::overrun:
        break;
    }
    of_->rethrow();
    return pushed::closed;
  }
  std::shared_ptr<parts::machine> of_;
  parts::input_node<T>* node_;
};

/// A stream that has been started. The handle owns it: its destructor cancels the stream and waits 10 s at most for
/// functions of stages that run; then all items and functions of the stream are gone, but for what `input` handles keep.
/// What runs longer is left behind, with all that it uses. The runtime may go first: the stream then fails with
/// `error(runtime_stopped)`. Any thread may call. In a stage of the same stream `wait`, `wait_for` and `drain` throw
/// `error(would_deadlock)`, `report` is not exact, and the destructor waits for nothing.
class running {
 public:
  running(running&&) noexcept = default;
  running& operator=(running&& o) noexcept {
    std::swap(of_, o.of_);
    return *this;
  }
  ~running() {
    if (!of_) return;
    of_->cancel();
    try {
      const auto limit = troupe::detail::deadline_after(std::chrono::seconds(10));
      if (of_->wait_until(limit)) of_->wait_left(limit);
    } catch (const error&) {  // in a stage of its own, which is not waited for
    }
  }

  /// The way in that was named by `from<T>(name)`. Throws `error(bad_argument)` if there is none of that name and type.
  template <class T>
  stream::input<T> input(const std::string& name) const {
    return {of_, static_cast<parts::input_node<T>&>(of_->input(name, typeid(T)))};
  }
  /// Counters, distributions and stalls; waits up to 10 ms for functions of stages that run.
  stream::report report() const { return of_->report(); }
  /// Waits until the stream has ended. Throws `stage_failed` if a stage has failed, `error` if something else has
  /// (`runtime_stopped`, `overrun`, `out_of_memory`), `error(cancelled)` if the stream was cancelled.
  void wait() const {
    of_->wait_until(std::chrono::steady_clock::time_point::max());
    of_->rethrow();
  }
  /// The same with a limit: false if the stream has not ended by then.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> limit) const {
    if (!of_->wait_until(troupe::detail::deadline_after(limit))) return false;
    of_->rethrow();
    return true;
  }
  /// Stops sources and inputs, and waits until what is in the stream has gone through, batches that are not full
  /// included. If that takes longer than the limit, the stream is cancelled; what is left is `in_flight` in the report
  /// that is returned. Throws nothing of what stages have thrown: see `report::error`. May be called again.
  template <class Rep, class Period>
  stream::report drain(std::chrono::duration<Rep, Period> limit) const {
    of_->drain();
    if (!of_->wait_until(troupe::detail::deadline_after(limit))) {
      of_->cancel();
      of_->wait_until(troupe::detail::deadline_after(std::chrono::milliseconds(100)));
    }
    return of_->report();
  }
  /// Has the stream end without working off what is in it. Returns at once; functions that run come to their end.
  void cancel() const noexcept { of_->cancel(); }

 private:
  friend class pipeline;
  explicit running(std::shared_ptr<parts::machine> m) : of_(std::move(m)) {}
  std::shared_ptr<parts::machine> of_;
};

/// Stages that are joined, from sources to sinks. It can be started once.
class pipeline {
 public:
  /// Checks what `start` checks and says how the stream will run.
  layout check(runtime& rt) const { return parts::entrance::check(rt, *root(plan_)); }
  /// Starts the stream on the cores of a runtime. Throws `error(bad_argument)`, with the stage's name, if an end is
  /// open, two stages have one name, or an option makes no sense; and if it has been started before.
  [[nodiscard]] running start(runtime& rt, const start_options& o = {}) {
    return running(parts::entrance::start(rt, root(plan_), o));
  }
  /// Both, as one stream: for branches of a `tee` or a `route`, and for several chains.
  friend pipeline operator+(pipeline a, const pipeline& b) {
    join(a.plan_, b.plan_);
    return a;
  }

  /// Used by the library.
  using draft = std::shared_ptr<parts::plan>;
  explicit pipeline(draft p) : plan_(std::move(p)) {}
  static draft root(draft p) {
    while (p->joined) p = p->joined;
    return p;
  }
  static void join(const draft& a, const draft& b) {
    const draft to = root(a), from = root(b);
    if (to == from) return;
    for (auto& n : from->nodes) to->nodes.push_back(std::move(n));
    from->nodes.clear();
    from->joined = to;
  }

 private:
  draft plan_;
};

/// What comes out of a stage and has not gone into another one yet. A handle; goes on to one stage.
template <class T>
class flow {
 public:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "troupe::stream: items must be movable without throwing: their move constructor must be noexcept");
  using item = T;
  /// Used by the library.
  flow(pipeline::draft p, parts::outlet<T>& from) : plan_(std::move(p)), from_(&from) {}
  pipeline::draft plan() const { return pipeline::root(plan_); }
  parts::outlet<T>& from() const { return *from_; }
  /// Joins a node to it.
  template <class Node>
  Node& lead_to(std::unique_ptr<Node> n) const {
    Node& added = *n;
    connect(added, added, 0);
    plan()->nodes.push_back(std::move(n));
    return added;
  }
  void connect(parts::node& to, parts::port_base<T>& port, std::size_t number) const {
    if (from_->to)
      throw error(errc::bad_argument, "stage '" + to.name() + "': what comes out of '" + from_->from->name() +
                                          "' goes to '" + from_->to->name() + "' already; use tee for copies");
    from_->to = &to;
    from_->port = static_cast<int>(number);
    from_->target = &port;
    if (to.ports.size() <= number) to.ports.resize(number + 1);
    to.ports[number].push_back(from_);
  }

 private:
  pipeline::draft plan_;
  parts::outlet<T>* from_;
};

namespace stages {

template <class T>
flow<T> out_of(const pipeline::draft& p, parts::node& n, parts::outlet<T>& o) {
  o.from = &n;
  n.outlets.push_back(&o);
  return flow<T>(p, o);
}
template <class T, class Node>
flow<T> begin(std::unique_ptr<Node> n) {
  auto p = std::make_shared<parts::plan>();
  Node& added = *n;
  p->nodes.push_back(std::move(n));
  return out_of<T>(p, added, added.out);
}
[[noreturn]] inline void refuse(const std::string& stage, const std::string& why) {
  throw error(errc::bad_argument, "stage '" + stage + "': " + why);
}
template <class T, class F>
void check_failure(const std::string& stage, const stage_options& o) {
  const bool keeps = o.fail.retries != 0 || o.fail.last == failure::act::dead_letter;
  if (keeps && !parts::takes_const<F, T>)
    refuse(stage, "retries and dead letters need a function that takes a const item, for it leaves the item as it is");
}
inline void check_lanes(const std::string& stage, const stage_options& o) {
  if (o.parallel != 1) refuse(stage, "it runs one call at a time; only map has `parallel`");
}
template <class F, class T>
inline constexpr bool takes = std::is_invocable_v<F&, T&&> || std::is_invocable_v<F&, const T&>;
template <class F, class T>
using result = std::decay_t<typename std::conditional_t<std::is_invocable_v<F&, T&&>, std::invoke_result<F&, T&&>,
                                                        std::invoke_result<F&, const T&>>::type>;

template <class F>
struct map {
  std::string name;
  F f;
  stage_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(takes<F, T>, "troupe::stream::map: the function cannot be called with an item of the stage before");
    if constexpr (takes<F, T>) {
      using U = result<F, T>;
      static_assert(!std::is_void_v<U>,
                    "troupe::stream::map: the function returns nothing; use sink, or return the item");
      check_failure<T, F>(name, o);
      if (o.parallel < 1 || o.parallel > 1024)
        refuse(name, "parallel is " + std::to_string(o.parallel) + "; 1 to 1024");
      using node = typename parts::map_stage<T, U, F>::node_type;
      auto n = std::make_unique<node>(name, std::move(f), o.parallel);
      n->options = o;
      node& added = in.lead_to(std::move(n));
      return out_of<U>(in.plan(), added, added.out);
    }
  }
};
template <class F>
struct filter {
  std::string name;
  F f;
  stage_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(std::is_invocable_r_v<bool, F&, const T&>,
                  "troupe::stream::filter: the function cannot be called with a const item of the stage before, or "
                  "returns no bool");
    check_lanes(name, o);
    using node = parts::function_node<T, T, F, parts::filter_lane<T, F>>;
    auto n = std::make_unique<node>(name, "filter", std::move(f));
    n->options = o;
    node& added = in.lead_to(std::move(n));
    return out_of<T>(in.plan(), added, added.out);
  }
};
template <class F>
struct flat_map {
  std::string name;
  F f;
  stage_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(takes<F, T>,
                  "troupe::stream::flat_map: the function cannot be called with an item of the stage before");
    using range = result<F, T>;
    static_assert(std::ranges::input_range<range>, "troupe::stream::flat_map: the function returns no range");
    using U = std::ranges::range_value_t<range>;
    check_failure<T, F>(name, o);
    check_lanes(name, o);
    using node = parts::function_node<T, U, F, parts::flat_lane<T, range, U, F>>;
    auto n = std::make_unique<node>(name, "flat_map", std::move(f));
    n->options = o;
    node& added = in.lead_to(std::move(n));
    return out_of<U>(in.plan(), added, added.out);
  }
};
struct batch {
  std::string name;
  batch_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    if (o.items < 1 || o.bytes < 1) refuse(name, "a batch of no items or no bytes");
    if (o.delay.count() < 0) refuse(name, "a delay that is negative");
    using node = parts::batch_node<T>;
    auto n = std::make_unique<node>(name, o);
    node& added = in.lead_to(std::move(n));
    return out_of<std::vector<T>>(in.plan(), added, added.out);
  }
};
struct async {
  edge_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    if (in.from().has_edge) refuse(in.from().from->name(), "there is an edge behind it already");
    in.from().has_edge = true;
    in.from().edge = o;
    return in;
  }
};
template <class F, std::size_t N>
struct split {
  std::string name;
  const char* kind;
  F f;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(!std::is_same_v<F, std::nullptr_t> || std::is_copy_constructible_v<T>,
                  "troupe::stream::tee: items must be copyable");
    static_assert(std::is_same_v<F, std::nullptr_t> || std::is_invocable_r_v<std::size_t, F&, const T&>,
                  "troupe::stream::route: the function cannot be called with a const item of the stage before, or "
                  "returns no number");
    using node = parts::split_node<T, F>;
    auto n = std::make_unique<node>(name, kind, std::move(f), N);
    node& added = in.lead_to(std::move(n));
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<flow<T>, N>{out_of<T>(in.plan(), added, *added.outs[I])...};
    }
    (std::make_index_sequence<N>());
  }
};
template <class F>
struct sink {
  std::string name;
  F f;
  stage_options o;
  template <class T>
  pipeline after(const flow<T>& in) && {
    static_assert(takes<F, T>, "troupe::stream::sink: the function cannot be called with an item of the stage before");
    if constexpr (takes<F, T>) {
      check_failure<T, F>(name, o);
      check_lanes(name, o);
      using node = parts::sink_node<T, F>;
      auto n = std::make_unique<node>(name, std::move(f));
      n->options = o;
      in.lead_to(std::move(n));
    }
    return pipeline(in.plan());
  }
};

template <class F>
struct event_time {
  std::string name;
  F f;
  event_time_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(std::is_invocable_v<F&, const T&>,
                  "troupe::stream::event_time: the function cannot be called with a const item of the stage before");
    static_assert(parts::says_time<std::decay_t<std::invoke_result_t<F&, const T&>>>,
                  "troupe::stream::event_time: the function returns no time_point, duration or whole number");
    if (o.out_of_order.count() < 0 || o.ahead_max.count() < 0 || o.idle.count() < 0) refuse(name, "a negative time");
    using node = parts::time_node<T, F>;
    node& added = in.lead_to(std::make_unique<node>(name, std::move(f), o));
    return out_of<T>(in.plan(), added, added.out);
  }
};
template <class T, class F>
struct keyed {
  flow<T> of;
  F key;
};
template <class F>
struct key_by {
  F f;
  template <class T>
  keyed<T, F> after(const flow<T>& in) && {
    static_assert(std::is_invocable_v<F&, const T&>,
                  "troupe::stream::key_by: the function cannot be called with a const item of the stage before");
    return {in, std::move(f)};
  }
};
template <class Fold>
struct window {
  std::string name;
  windowing w;
  window_options o;
  Fold f;
  template <class T, class F>
  auto after(const keyed<T, F>& in) && {
    using K = std::decay_t<std::invoke_result_t<const F&, const T&>>;
    using S = std::decay_t<decltype(f.initial)>;
    static_assert(std::is_invocable_v<decltype(f.add)&, S&, const T&>,
                  "troupe::stream::window: the fold cannot add an item of the stage before");
    if (w.size.count() <= 0 || w.slide.count() <= 0) refuse(name, "a window of no time");
    if (w.slide > w.size) refuse(name, "windows that begin more seldom than they are long leave items out");
    if (w.size.count() > parts::window_ns_max) refuse(name, "a window of more than 36 years");
    if (o.late.count() < 0) refuse(name, "a negative time");
    if (w.kind == windowing::shape::session && std::is_same_v<std::decay_t<decltype(f.merge)>, not_mergeable>)
      refuse(name, "sessions become one when an item comes between them: the fold needs a merge");
    using node = parts::window_node<T, K, F, Fold, S>;
    node& added = in.of.lead_to(std::make_unique<node>(name, in.key, std::move(f), w, o));
    return out_of<windowed<K, S>>(in.of.plan(), added, added.out);
  }
  template <class T>
  auto after(const flow<T>& in) && {
    constexpr auto all = [](const T&) { return all_items{}; };
    return std::move(*this).after(keyed<T, std::decay_t<decltype(all)>>{in, all});
  }
};

}  // namespace stages

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
