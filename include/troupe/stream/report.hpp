// What this file is for: what a running stream tells about itself: the ledger of its items, stages, edges, latencies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/stream/distribution.hpp>
#include <troupe/stream/time.hpp>

namespace troupe::stream {

/// A stage of a stream has failed. `code()` is `task_failed`; `what()` has the names of stream and stage, the item's
/// number and the text of the original exception.
class stage_failed : public error {
 public:
  stage_failed(const std::string& text, std::string stage, std::uint64_t item, int attempts, std::exception_ptr cause)
      : error(errc::task_failed, text),
        stage_(std::move(stage)),
        item_(item),
        attempts_(attempts),
        cause_(std::move(cause)) {}
  const std::string& stage() const noexcept { return stage_; }
  /// The item's number in its source, from 0 on.
  std::uint64_t item() const noexcept { return item_; }
  int attempts() const noexcept { return attempts_; }
  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  std::string stage_;
  std::uint64_t item_;
  int attempts_;
  std::exception_ptr cause_;
};

/// What has become of items. Always: pushed + created = delivered + dropped + dead + absorbed + in_flight.
struct ledger {
  std::uint64_t pushed = 0;     ///< by sources, and from outside
  std::uint64_t created = 0;    ///< by stages that make other items: elements of a flat_map, batches, copies of a tee
  std::uint64_t delivered = 0;  ///< that a sink has taken
  std::uint64_t dropped = 0;    ///< at full edges, and by stages that drop what they fail on
  std::uint64_t dead = 0;       ///< that went to the dead letters
  std::uint64_t absorbed = 0;   ///< that a filter has left out, or of which a stage has made others
  std::uint64_t in_flight = 0;  ///< in edges and in stages now
};

/// One stage. Counts its own items: in = out + absorbed - created + dropped + dead + held.
struct stage_report {
  std::string name;
  std::string kind;  ///< "map", "sink", ...
  std::uint64_t in = 0, out = 0;
  std::uint64_t created = 0, absorbed = 0, dropped = 0, dead = 0;
  std::uint64_t late = 0;   ///< of those dropped: too late for their window
  std::uint64_t ahead = 0;  ///< that have passed, but were too far ahead of this machine's clock to move the watermark
  std::uint64_t retries = 0;
  std::uint64_t held = 0;         ///< inside: of a batch that is not full, that waits for a retry, that a body works on
  std::uint64_t state_bytes = 0;  ///< of what it keeps by key and time
  /// The time of items that the stage has come to: of stages that take or use times, and of sinks; empty: of none yet.
  std::optional<event_point> watermark{};
  /// How far that is behind this machine's clock at the moment.
  std::optional<std::chrono::nanoseconds> watermark_lag{};
  int lanes = 1;         ///< calls of its function that may run at the same time now: see `stage_options::parallel`
  distribution service;  ///< time in the stage's function, of a sample of its items; of stages of tasks until they end
  /// Of that, in stages of tasks, of the same items: for how long the task that waited most has waited for copies
  /// between memories, or under `options::memory_bytes` for room and for bytes from the disk; 0 where all were in
  /// place. Copies that another node makes for a task of its own are not seen.
  distribution transfer;
};

/// An edge between two stages. pushed = taken + dropped + items.
struct edge_report {
  std::string to;  ///< the stage behind it
  std::uint64_t pushed = 0, taken = 0, dropped = 0;
  std::uint64_t items = 0, items_max = 0, items_bound = 0;  ///< now, the most there were, the bound
  std::uint64_t bytes = 0, bytes_max = 0, bytes_bound = 0;
  std::uint64_t waiting = 0;           ///< items that stages before it hold because it is full
  std::chrono::nanoseconds blocked{};  ///< time for which stages before it have waited for room, summed up
  distribution queue;                  ///< time in it, of a sample of its items
};

/// How a stream will run: what `pipeline::check` answers.
struct layout {
  /// Stages that one thread at a time runs, one after the other for each item; `lanes`: so many at the same time.
  struct part {
    std::vector<std::string> stages;
    int lanes = 1;
  };
  struct edge {
    std::string to;
    std::uint64_t items_bound = 0, bytes_bound = 0;
    std::uint64_t bytes_most = 0;  ///< that so many items can be, where all are of one size
  };
  std::vector<part> parts;
  std::vector<edge> edges;
  /// The same as lines of text.
  std::string text() const;
};

enum class state : std::uint8_t {
  runs,
  drains,     ///< `drain` was called: sources have stopped
  ended,      ///< all sources have ended and all items have gone through, or `drain` has come to its end
  cancelled,  ///< by `cancel`, the stop token, a drain out of time, or the handle's destructor
  failed      ///< `error` says why
};

/// A running stream. Counters are read in one moment in which no stage runs, unless a stage's function takes longer
/// than 10 ms: then `is_exact` is false, and each is exact for some moment during the call.
struct report {
  std::string name;
  stream::state state = stream::state::runs;
  bool is_exact = true;
  ledger items;
  std::vector<stage_report> stages;
  std::vector<edge_report> edges;
  /// From when an item was due to when a sink had it, of a sample of the items: those of a source are due when it is
  /// asked for them or when it says so, those from outside when they are pushed or when that call says so.
  distribution latency;
  std::chrono::nanoseconds elapsed{};
  /// Edges whose items nobody has taken for `start_options::stalled_after`, and what they wait for.
  std::vector<std::string> stalls;
  std::exception_ptr error;
  /// The same as a table.
  std::string text() const;
};

}  // namespace troupe::stream
