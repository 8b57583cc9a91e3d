// What this file is for: the spans of a stream in the trace: when each of its strands ran.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/detail/streams/node.hpp>

#include "actors/protocol/clock.hpp"
#include "actors/protocol/trace.hpp"

namespace troupe::detail::stage {

/// One lane of the trace for each strand, named by the stages that it runs. One thread at a time.
class spans {
 public:
  /// `sink`: null, and nothing is noted; it must be there while anything is.
  void open(trace_sink* sink, int first_lane, const std::string& stream, const streams::plan& p) {
    if (!sink) return;
    lanes_.resize(p.strands.size());
    names_.resize(p.strands.size());
    for (std::size_t i = 0; i < p.strands.size(); ++i) numbers_[p.strands[i].get()] = i;
    for (const auto& n : p.nodes)
      for (std::size_t lane = 0; lane < n->strands.size(); ++lane) {
        std::string& name = names_[numbers_.at(n->strands[lane])];
        name += (name.empty() ? "" : " > ") + n->name();
        if (n->strands.size() > 1) name += " #" + std::to_string(lane);
      }
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i].open(sink, first_lane + static_cast<int>(i), "stream " + stream + ": " + names_[i]);
  }
  void add(const streams::strand& s, std::uint64_t begin, std::uint64_t end) {
    const std::size_t i = numbers_.at(&s);
    lanes_[i].add(0, begin, end, names_[i].c_str());
  }
  void flush() {
    for (trace_lane& l : lanes_) l.flush();
  }

 private:
  std::vector<trace_lane> lanes_;
  std::vector<std::string> names_;
  std::unordered_map<const streams::strand*, std::size_t> numbers_;
};

}  // namespace troupe::detail::stage
