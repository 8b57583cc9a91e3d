// What this file is for: what functions that keep a state for each key may do: pass items on, be called at a time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <troupe/stream/options.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::stream {

/// The argument of a function of `process`, beside the state of the key: valid during the call. Times are event time.
template <class K, class U>
class key_context {
 public:
  virtual const K& key() const = 0;
  /// The time of the item, or the one at which the function was to be called. An item without a time has the least one.
  virtual event_point time() const = 0;
  /// Nothing earlier is expected any more; the least time where nothing is known.
  virtual event_point watermark() const = 0;
  /// Passes an item on, with that time.
  virtual void emit(U u) = 0;
  /// Has `on_time` called for the key when the watermark has reached this time, once: at once after this call if it
  /// has. A key has one such time; the last one that was said counts.
  virtual void wake_at(event_point) = 0;
  /// Forgets the key's state, and its time, when the function returns.
  virtual void forget() = 0;

 protected:
  ~key_context() = default;
};

struct process_options {
  /// So long after a key's last item, in event time, its state is forgotten, with the time that it has asked for, and
  /// begins anew with the next item. 0: never.
  std::chrono::nanoseconds keep{0};
  /// What happens to an item on which `on_item` throws. It is not tried again, for the state may have changed; what the
  /// call has emitted goes on.
  failure fail = stream::fail;
};

/// For `process` without an `on_time`.
struct no_times {
  template <class Context, class S>
  void operator()(Context&, S&) const {}
};

}  // namespace troupe::stream
