// What this file is for: trace events and their way: executors and placement fill blocks, the observer writes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// From | message | may repeat | may be lost
// executor, placement | trace_block: events of one lane, oldest first | no | no
// engine | close_trace: all blocks have been sent; finish the file and answer | no | no
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::detail {

struct trace_event {
  std::uint64_t task = 0;            // sequence number; 0: not a task
  std::uint64_t begin = 0, end = 0;  // ticks
  std::array<char, 40> name{};
};

struct trace_edge {
  std::uint64_t from = 0, to = 0;
};

struct trace_block {
  int lane = 0;
  std::string lane_name;
  std::vector<trace_event> events;
  std::vector<trace_edge> edges;
};

/// Takes blocks from any thread.
class trace_sink {
 public:
  virtual ~trace_sink() = default;
  virtual void take(trace_block&&) = 0;
};

/// The buffer of one lane. One thread at a time.
class trace_lane {
 public:
  void open(trace_sink* sink, int lane, std::string name) {
    sink_ = sink;
    block_.lane = lane;
    block_.lane_name = std::move(name);
  }
  bool on() const { return sink_ != nullptr; }
  void add(std::uint64_t task, std::uint64_t begin, std::uint64_t end, const char* name) {
    trace_event e{task, begin, end, {}};
    for (std::size_t i = 0; i + 1 < e.name.size() && name[i]; ++i) e.name[i] = name[i];
    block_.events.push_back(e);
    if (block_.events.size() >= block_max) flush();
  }
  void add_edge(std::uint64_t from, std::uint64_t to) {
    block_.edges.push_back({from, to});
    if (block_.edges.size() >= block_max) flush();
  }
  void flush() {
    if (!sink_ || (block_.events.empty() && block_.edges.empty())) return;
    trace_block full{block_.lane, block_.lane_name, std::move(block_.events), std::move(block_.edges)};
    block_.events.clear();
    block_.edges.clear();
    sink_->take(std::move(full));
  }

 private:
  static constexpr std::size_t block_max = 4096;
  trace_sink* sink_ = nullptr;
  trace_block block_;
};

}  // namespace troupe::detail
