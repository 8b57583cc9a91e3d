// What this file is for: the time of items: where it is taken from, windows over it, and what is kept for each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// An item's own time (event time) comes from its data. A *watermark* is the time before which nothing more is expected:
// the latest time seen, less `out_of_order`; it is said after each 64th item and when no item waits, so an item may be
// in time that came a little later than promised. It travels among the items, holds for the slowest of merged flows,
// and never goes back. A window is over when the watermark has reached its end. How long that takes on the clock
// depends on the items alone, except where a flow is idle.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/stream/options.hpp>

namespace troupe::stream {

/// A moment of event time, in ns since 1970.
using event_point = std::chrono::sys_time<std::chrono::nanoseconds>;

struct event_time_options {
  /// An item may come so long after a later one and still be in time.
  std::chrono::nanoseconds out_of_order{0};
  /// A time that is further ahead of the clock of this machine does not move the watermark: one wrong clock must not
  /// make all others late. The item passes. Where the clock of this machine itself is behind, because it was set back
  /// or has not been set yet, all times of now are ahead of it: windows and lookups wait until it is right, or the
  /// stream ends. (The clock is asked for times that are this much above all before them, and for those above what it
  /// has allowed. So where times come close together, the watermark moves for this long after the clock was set back.)
  std::chrono::nanoseconds ahead_max = std::chrono::minutes(1);
  /// When no item has come for so long, on the steady clock, other flows do not wait for the times of this one. 0:
  /// never idle.
  std::chrono::nanoseconds idle{0};
};

struct reorder_options {
  /// Items that may wait for earlier ones, 1 to 2^24.
  std::size_t items = 1024;
  /// What happens to an item without a time, or for which there is no memory.
  failure fail = stream::fail;
};

/// Where an item is in event time: [begin, end).
struct span {
  event_point begin, end;
  bool operator==(const span&) const = default;
};

/// How time is cut into windows; made by `tumbling`, `sliding`, `session`.
struct windowing {
  enum class shape : std::uint8_t { fixed, session };
  shape kind = shape::fixed;
  std::chrono::nanoseconds size{0}, slide{0};
};
/// Windows of one size, one after the other, from 1970 on.
constexpr windowing tumbling(std::chrono::nanoseconds size) { return {windowing::shape::fixed, size, size}; }
/// Windows of one size that begin every `slide`; each item is in size / slide of them, rounded up or down.
constexpr windowing sliding(std::chrono::nanoseconds size, std::chrono::nanoseconds slide) {
  return {windowing::shape::fixed, size, slide};
}
/// For each key, windows that end `gap` after their last item; an item at that moment begins another one. What is kept
/// for them must be mergeable.
constexpr windowing session(std::chrono::nanoseconds gap) { return {windowing::shape::session, gap, gap}; }

struct window_options {
  /// So long after its end, in event time, a window is kept: an item for it that comes then has it passed on again, as
  /// the next revision. Items that come later are dropped, and counted as dropped and late.
  std::chrono::nanoseconds late{0};
};

/// What a window has come to for a key.
template <class K, class R>
struct windowed {
  K key;
  span window;
  R value;
  int revision = 0;  ///< 0 when the window is over; 1, 2, ... each time a late item has changed it
};
/// The key of windows over all items.
struct all_items {
  bool operator==(const all_items&) const = default;
};

}  // namespace troupe::stream
template <>
struct std::hash<troupe::stream::all_items> {
  std::size_t operator()(const troupe::stream::all_items&) const noexcept { return 0; }
};
namespace troupe::stream {

/// What is kept for a window: begins as `initial`; `add(state, item)` for each item; `merge(state, other)` where two
/// are one. That is so for sessions, and for windows that slide by a part of their size, which are put together from
/// parts, the earlier ones first, if there is a merge and no `late`: there `initial` must add nothing. The state is
/// what is passed on.
template <class S, class Add, class Merge>
struct fold_of {
  S initial;
  Add add;
  Merge merge;
};
struct not_mergeable {};
template <class S, class Add>
fold_of<S, Add, not_mergeable> fold(S initial, Add add) {
  return {std::move(initial), std::move(add), {}};
}
template <class S, class Add, class Merge>
fold_of<S, Add, Merge> fold(S initial, Add add, Merge merge) {
  return {std::move(initial), std::move(add), std::move(merge)};
}
/// The number of items.
inline auto count() {
  return fold(
      std::uint64_t{0}, [](std::uint64_t& n, const auto&) { ++n; },
      [](std::uint64_t& n, std::uint64_t other) { n += other; });
}
/// The sum of what `f` says of each item.
template <class S, class F>
auto sum_of(S zero, F f) {
  return fold(
      std::move(zero), [f](S& s, const auto& item) { s += std::invoke(f, item); },
      [](S& s, const S& other) { s += other; });
}
/// The items themselves, as they came; of windows that slide, part by part.
template <class T>
auto collect() {
  return fold(
      std::vector<T>{}, [](std::vector<T>& all, const T& item) { all.push_back(item); },
      [](std::vector<T>& all, std::vector<T>& other) {
        all.insert(all.end(), std::make_move_iterator(other.begin()), std::make_move_iterator(other.end()));
      });
}

}  // namespace troupe::stream
