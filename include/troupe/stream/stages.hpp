// What this file is for: stages before they are joined to a flow: their options are checked, and their types.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users: stream.hpp has the functions that make them.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/streams/batch.hpp>
#include <troupe/detail/streams/process.hpp>
#include <troupe/detail/streams/reorder.hpp>
#include <troupe/detail/streams/stages.hpp>
#include <troupe/detail/streams/tasks.hpp>
#include <troupe/detail/streams/ways.hpp>
#include <troupe/detail/streams/windows.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/pipeline.hpp>
#include <troupe/stream/process.hpp>
#include <troupe/stream/tasks.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::stream::stages {

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
      if (o.parallel.least < 1 || o.parallel.most > 1024 || o.parallel.least > o.parallel.most)
        refuse(name, "parallel is " + std::to_string(o.parallel.least) +
                         (o.parallel.least == o.parallel.most ? "" : " to " + std::to_string(o.parallel.most)) +
                         "; 1 to 1024, the least first");
      using node = typename parts::map_stage<T, U, F>::node_type;
      auto n = std::make_unique<node>(name, std::move(f), o.parallel.most);
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
struct in_time_order {
  std::string name;
  reorder_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    if (o.items < 1 || o.items > (std::size_t{1} << 24))
      refuse(name, "room for " + std::to_string(o.items) + " items that wait; 1 to 2^24");
    if (o.fail.retries != 0) refuse(name, "there is nothing to be tried again");
    auto n = std::make_unique<parts::reorder_node<T>>(name, o);
    n->options.fail = o.fail;
    auto& added = in.lead_to(std::move(n));
    return out_of<T>(in.plan(), added, added.out);
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
template <class Key>
struct latest_by {
  Key key;
  edge_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(std::is_invocable_v<const Key&, const T&>,
                  "troupe::stream::latest_by: the key cannot be taken from a const item of the stage before");
    if (in.from().has_edge) refuse(in.from().from->name(), "there is an edge behind it already");
    in.from().has_edge = true;
    in.from().edge = o;
    in.from().edge.full = when_full::drop_oldest;
    in.from().keeps_latest = true;
    in.from().same = [key = std::move(key)](const T& a, const T& b) {
      return std::invoke(key, a) == std::invoke(key, b);
    };
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
struct tasks {
  std::string name;
  const char* kind;
  F f;
  tasks_options o;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(std::is_invocable_v<F&, spawner&, T&>,
                  "troupe::stream::tasks: the function cannot be called with a spawner& and an item of the stage "
                  "before, by reference");
    if constexpr (std::is_invocable_v<F&, spawner&, T&>) {
      using R = std::invoke_result_t<F&, spawner&, T&>;
      using U = std::conditional_t<std::is_void_v<R>, T, std::decay_t<R>>;
      static_assert(!parts::is_future<U>,
                    "troupe::stream::tasks: the function returns a future; return what is to go on, or nothing");
      if (o.in_flight < 1 || o.in_flight > 1024)
        refuse(name, "in_flight is " + std::to_string(o.in_flight) + "; 1 to 1024");
      using node = parts::tasks_node<T, U, F>;
      node& added = in.lead_to(std::make_unique<node>(name, kind, std::move(f), o));
      return out_of<U>(in.plan(), added, added.out);
    }
  }
};

template <class X>
inline constexpr bool is_flow = false;
template <class T>
inline constexpr bool is_flow<flow<T>> = true;
template <class K>
concept is_key = requires(const K& a, const K& b) {
  { std::hash<K>()(a) } -> std::convertible_to<std::size_t>;
  { a == b } -> std::convertible_to<bool>;
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
/// Joins a stage to items with a key.
template <class T, class F, class Stage>
auto operator|(const keyed<T, F>& f, Stage s) {
  constexpr bool knows_keys = requires { std::move(s).after(f); };
  static_assert(knows_keys, "troupe::stream::key_by: only window, process, join and lookup can come next");
  if constexpr (knows_keys) return std::move(s).after(f);
}
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
    static_assert(is_key<K>, "troupe::stream::window: keys need std::hash and ==");
    static_assert(std::is_invocable_v<decltype(f.add)&, S&, const T&>,
                  "troupe::stream::window: the fold cannot add an item of the stage before");
    static_assert(std::is_same_v<std::decay_t<decltype(f.merge)>, not_mergeable> ||
                      std::is_invocable_v<decltype(f.merge)&, S&, S&>,
                  "troupe::stream::window: the fold's merge cannot be called with two states, by reference");
    static_assert(parts::is_copyable<S>::value, "troupe::stream::window: states are copied, and this one cannot be");
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
template <class U, class S, class OnItem, class OnTime>
struct process {
  std::string name;
  S initial;
  OnItem on_item;
  OnTime on_time;
  process_options o;
  template <class T, class F>
  auto after(const keyed<T, F>& in) && {
    using K = std::decay_t<std::invoke_result_t<const F&, const T&>>;
    using context = key_context<K, U>;
    static_assert(is_key<K>, "troupe::stream::process: keys need std::hash and ==");
    static_assert(std::is_invocable_v<OnItem&, context&, S&, const T&>,
                  "troupe::stream::process: on_item cannot be called with key_context&, the state and a const item");
    static_assert(std::is_invocable_v<OnTime&, context&, S&>,
                  "troupe::stream::process: on_time cannot be called with key_context& and the state");
    if (o.keep.count() < 0) refuse(name, "a negative time");
    if (o.fail.retries != 0) refuse(name, "a stage with a state does not try items again: the state may have changed");
    using node = parts::process_node<T, U, K, S, F, OnItem, OnTime>;
    auto n = std::make_unique<node>(
        name, typename node::lane_type::functions{in.key, std::move(initial), std::move(on_item), std::move(on_time)},
        o);
    n->options.fail = o.fail;
    node& added = in.of.lead_to(std::move(n));
    return out_of<U>(in.of.plan(), added, added.out);
  }
  template <class T>
  auto after(const flow<T>& in) && {
    constexpr auto all = [](const T&) { return all_items{}; };
    return std::move(*this).after(keyed<T, std::decay_t<decltype(all)>>{in, all});
  }
};

/// Groups of keys: what is kept for a key belongs to its group, and groups to lanes.
inline constexpr std::size_t key_groups = 128;
template <class Key>
struct lane_of {
  Key key;
  std::size_t lanes;
  template <class T>
  std::size_t operator()(const T& item) const {
    using K = std::decay_t<std::invoke_result_t<const Key&, const T&>>;
    const auto mixed = static_cast<std::uint64_t>(std::hash<K>()(std::invoke(key, item))) * 0x9e3779b97f4a7c15U;
    return (mixed >> 32) % key_groups % lanes;
  }
};
template <class Key, class Make>
struct lanes_by_key {
  std::string name;
  int lanes;
  Key key;
  Make make;
  edge_options edge;
  template <class T>
  auto after(const flow<T>& in) && {
    static_assert(std::is_invocable_v<const Key&, const T&>,
                  "troupe::stream::by_key: the key cannot be taken from a const item of the stage before");
    static_assert(std::is_invocable_v<Make&, flow<T>>,
                  "troupe::stream::by_key: the last argument is a function that takes a flow and returns what it has "
                  "become");
    static_assert(is_flow<std::invoke_result_t<Make&, flow<T>>>,
                  "troupe::stream::by_key: the last argument has to return a flow: no sink, and no key_by, at its end");
    static_assert(is_key<std::decay_t<std::invoke_result_t<const Key&, const T&>>>,
                  "troupe::stream::by_key: keys need std::hash and ==");
    using R = typename std::invoke_result_t<Make&, flow<T>>::item;
    if (edge.items < 1 || edge.items > (std::size_t{1} << 24) || edge.bytes < 1)
      refuse(name, "an edge for " + std::to_string(edge.items) + " items and " + std::to_string(edge.bytes) + " bytes");
    if (lanes < 1 || lanes > static_cast<int>(key_groups))
      refuse(name, std::to_string(lanes) + " lanes; 1 to " + std::to_string(key_groups));
    const auto count = static_cast<std::size_t>(lanes);
    using chooser = lane_of<Key>;
    auto split = std::make_unique<parts::split_node<T, chooser>>(name, "by_key", chooser{key, count}, count);
    auto& splitting = in.lead_to(std::move(split));
    auto merge = std::make_unique<parts::merge_node<R>>(name + " merge");
    parts::merge_node<R>& merging = *merge;
    for (std::size_t i = 0; i < count; ++i) {
      flow<T> way = out_of<T>(in.plan(), splitting, *splitting.outs[i]);
      way.from().has_edge = true;
      way.from().edge = edge;
      const std::uint64_t before = parts::node::last_serial();
      const flow<R> end = std::invoke(make, way);
      for (const auto& n : in.plan()->nodes)
        if (n->serial() > before) n->rename(n->name() + '#' + std::to_string(i));
      end.connect(merging, merging, 0);
    }
    in.plan()->nodes.push_back(std::move(merge));
    return out_of<R>(in.plan(), merging, merging.out);
  }
};

/// Puts a stage behind two flows.
template <class R, class Node, class A, class B>
flow<R> end_both(const flow<A>& a, const flow<B>& b, std::unique_ptr<Node> n) {
  Node& added = *n;
  a.connect(added, added.first, 0);
  b.connect(added, added.second, 1);
  pipeline::join(a.plan(), b.plan());
  a.plan()->nodes.push_back(std::move(n));
  return out_of<R>(a.plan(), added, added.out);
}

}  // namespace troupe::stream::stages
