// What this file is for: turns blocks of events into a Chrome/Perfetto JSON file.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Format: the Trace Event Format's JSON object form; "X" slices per lane, "s"/"f" flow arrows for dependencies, "M"
// records for lane names; times in microseconds from the first event.
#pragma once

#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/protocol/trace.hpp"

namespace troupe::detail {

class trace_writer {
 public:
  explicit trace_writer(const std::string& path);
  bool good() const { return static_cast<bool>(out_); }
  void add(const trace_block&);
  /// Writes flows and names, and ends the file. Returns what went wrong, or "".
  std::string close();

 private:
  struct slice {
    int lane;
    double begin_us, end_us;
  };
  void separator();
  double us(std::uint64_t tick);

  std::string path_;
  std::ofstream out_;
  bool first_ = true, closed_ = false;
  std::uint64_t origin_ = 0;
  std::unordered_map<std::uint64_t, slice> slices_;
  std::vector<trace_edge> edges_;
  std::unordered_map<int, std::string> lanes_;
};

/// The text as a JSON string, quotes included.
std::string json_string(const std::string&);

}  // namespace troupe::detail
