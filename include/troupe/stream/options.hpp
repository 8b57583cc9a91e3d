// What this file is for: what can be set on streams, their stages and their edges, each with its default.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <typeinfo>
#include <utility>

namespace troupe::stream {

/// What happens to an item that comes to an edge without room for it.
enum class when_full : std::uint8_t {
  block,        ///< it waits, and so do the stages before the edge, back to the source
  drop_newest,  ///< it is dropped, and counted
  drop_oldest,  ///< what has waited longest is dropped, and counted; what is worked on is not: 1 item: the newest is
  fail          ///< the stream fails with `error(overrun)`
};

/// The bounds of an edge: where items wait between two stages that may run at the same time, and are while the stage
/// behind works on them. Both hold at any time, with two exceptions. An item of more bytes than `bytes` passes alone.
/// Behind a parallel stage that keeps the order, the item for which others wait is let in: one item above the bytes.
/// There items always wait, whatever `full` says.
struct edge_options {
  std::size_t items = 64;         ///< 1 to 2^24
  std::size_t bytes = 64u << 20;  ///< as `item_bytes` counts; at least 1
  when_full full = when_full::block;
};

/// Of a stage with `parallel` above 1: the order in which its items go on.
enum class order : std::uint8_t {
  ordered,   ///< as they came; an item that takes long holds the others back, at most as many as the next edge holds
  unordered  ///< as they are done
};
inline constexpr order ordered = order::ordered, unordered = order::unordered;

/// What a stage does when its function throws. Values are made by `fail`, `drop`, `dead_letter` and `retry`.
struct failure {
  enum class act : std::uint8_t { fail, drop, dead_letter };
  act last = act::fail;
  int retries = 0;
  std::chrono::nanoseconds backoff{0};  ///< before the first retry; doubles from one to the next, up to a minute
  /// What is done after the last retry.
  constexpr failure then(failure f) const {
    failure both = *this;
    both.last = f.last;
    return both;
  }
};
/// The stream fails; `running::wait` throws `stage_failed`. The default.
inline constexpr failure fail{failure::act::fail, 0, {}};
/// The item is dropped, and counted.
inline constexpr failure drop{failure::act::drop, 0, {}};
/// The item goes to `start_options::on_dead_letter`, if there is one, and is counted.
inline constexpr failure dead_letter{failure::act::dead_letter, 0, {}};
/// The function is called again, `times` times at most, after a pause; then the stream fails, unless `then` says else.
/// The stage needs a function that can be called with a const item.
constexpr failure retry(int times, std::chrono::nanoseconds backoff = std::chrono::nanoseconds(0)) {
  return {failure::act::fail, times, backoff};
}

/// Calls of a stage's function at the same time: so many, or between two numbers, as there is work for them: one more
/// where the edge before the stage is full, twice as many where items have waited for 10 ms, fewer after 100 ms in
/// which half of them would have done. Items of less than 2 us are no reason for more.
struct lanes {
  int least = 1, most = 1;
  template <std::integral N>
  constexpr lanes(N n) : lanes(n, n) {}
  template <std::integral A, std::integral B>
  constexpr lanes(A a, B b) : least(number(a)), most(number(b)) {}
  bool operator==(const lanes&) const = default;

 private:
  template <std::integral N>
  static constexpr int number(N n) {
    return std::in_range<int>(n) ? static_cast<int>(n) : -1;  // which is refused
  }
};

/// How one stage is run.
struct stage_options {
  /// Calls of the function at the same time, 1 to 1024, as far as there are cores; `{1, 8}`: see `lanes`. Above 1 the
  /// function must be safe to call from several threads, and there is an edge on each side of the stage.
  lanes parallel = 1;
  stream::order order = stream::ordered;
  failure fail = stream::fail;
  /// The edge before the stage, where there is one.
  edge_options edge{};
};

/// When a batch is passed on: as soon as one of these is reached.
struct batch_options {
  std::size_t items = 16;         ///< at least 1
  std::size_t bytes = 64u << 20;  ///< as `item_bytes` counts; at least 1
  /// Since the batch's first item came. 0: as soon as no more items wait.
  std::chrono::nanoseconds delay{0};
};

/// An item that a stage gives up.
struct letter {
  std::string stage;
  std::exception_ptr error;
  int attempts = 1;
  std::uint64_t number = 0;  ///< of the item in its source, from 0 on
  const void* item = nullptr;
  const std::type_info* type = nullptr;
  /// The item, while the handler runs; null if it is of another type, or if the stage's function had taken it.
  template <class T>
  const T* as() const {
    return item && *type == typeid(T) ? static_cast<const T*>(item) : nullptr;
  }
};

/// How a stream is run.
struct start_options {
  std::string name = "stream";
  /// Cancels the stream.
  std::stop_token stop{};
  /// Called for each item that goes to the dead letters, by the thread that runs the stage: for several stages at the
  /// same time. What it throws fails the stream.
  std::function<void(const letter&)> on_dead_letter{};
  /// What all stages may keep by key and time (windows, joins, tables, states), in bytes, to within 64 KiB for each of
  /// them. A stage that is to keep more fails on the item, as if its function had thrown `error(out_of_memory)`;
  /// windows, joins and lookups fail the stream. What values have in memory of their own counts as `item_bytes` says,
  /// and is looked at now and then where that takes long. 0: `options::memory_bytes`, and no limit where that is 0,
  /// too.
  std::uint64_t state_bytes = 0;
  /// Time after which an edge whose items nobody takes is reported as standing still; positive.
  std::chrono::milliseconds stalled_after{10'000};
};

}  // namespace troupe::stream
