// What this file is for: writing slices, flows and lane names.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/trace_writer.hpp"

#include <cstdio>

#include "actors/protocol/clock.hpp"

namespace troupe::detail {

namespace {

// Bytes that are no UTF-8, of which a name may have some at its end where it was cut, become '?'.
void replace_broken(std::string& s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t more = c < 0x80                ? 0
                             : c >= 0xc2 && c < 0xe0 ? 1
                             : c >= 0xe0 && c < 0xf0 ? 2
                             : c >= 0xf0 && c < 0xf5 ? 3
                                                     : 9;
    bool good = more < 9 && i + more < s.size();
    for (std::size_t k = 1; good && k <= more; ++k) good = (static_cast<unsigned char>(s[i + k]) & 0xc0) == 0x80;
    if (good && more >= 2) {  // neither longer than it need be, nor half of a pair, nor beyond the last character
      const auto second = static_cast<unsigned char>(s[i + 1]);
      good = !(c == 0xe0 && second < 0xa0) && !(c == 0xed && second > 0x9f) && !(c == 0xf0 && second < 0x90) &&
             !(c == 0xf4 && second > 0x8f);
    }
    if (!good) s[i] = '?';
    i += good ? more + 1 : 1;
  }
}

}  // namespace

std::string json_string(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      s += '\\';
      s += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      s += code;
    } else {
      s += c;
    }
  }
  replace_broken(s);
  return s += '"';
}

trace_writer::trace_writer(const std::string& path) : path_(path), out_(path) {
  out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  out_.precision(3);
  out_ << std::fixed;
}

void trace_writer::separator() {
  out_ << (first_ ? "\n" : ",\n");
  first_ = false;
}

double trace_writer::us(std::uint64_t tick) {
  if (origin_ == 0) origin_ = tick;
  // Lanes arrive one after the other: a tick may lie before the first one seen.
  return static_cast<double>(static_cast<std::int64_t>(tick - origin_)) * ns_per_tick() / 1000.0;
}

void trace_writer::add(const trace_block& b) {
  lanes_.emplace(b.lane, b.lane_name);
  for (const trace_event& e : b.events) {
    const double begin = us(e.begin), end = us(e.end);
    separator();
    out_ << "{\"ph\":\"X\",\"pid\":1,\"tid\":" << b.lane << ",\"ts\":" << begin << ",\"dur\":" << end - begin
         << ",\"name\":" << json_string(e.name.data());
    if (e.task != 0) {
      out_ << ",\"args\":{\"task\":" << e.task << "}";
      slices_[e.task] = {b.lane, begin, end};
    }
    out_ << "}";
  }
  edges_.insert(edges_.end(), b.edges.begin(), b.edges.end());
}

std::string trace_writer::close() {
  if (closed_) return {};
  closed_ = true;
  std::uint64_t id = 0;
  for (const trace_edge& e : edges_) {
    const auto from = slices_.find(e.from), to = slices_.find(e.to);
    if (from == slices_.end() || to == slices_.end()) continue;
    ++id;
    separator();
    out_ << "{\"ph\":\"s\",\"pid\":1,\"tid\":" << from->second.lane << ",\"ts\":" << from->second.end_us
         << ",\"id\":" << id << ",\"cat\":\"dependency\",\"name\":\"dependency\"}";
    separator();
    out_ << "{\"ph\":\"f\",\"bp\":\"e\",\"pid\":1,\"tid\":" << to->second.lane << ",\"ts\":" << to->second.begin_us
         << ",\"id\":" << id << ",\"cat\":\"dependency\",\"name\":\"dependency\"}";
  }
  for (const auto& [lane, name] : lanes_) {
    separator();
    out_ << "{\"ph\":\"M\",\"pid\":1,\"tid\":" << lane
         << ",\"name\":\"thread_name\",\"args\":{\"name\":" << json_string(name) << "}}";
  }
  out_ << "\n]}\n";
  out_.close();
  return out_ ? std::string() : "the trace '" + path_ + "' could not be written completely";
}

}  // namespace troupe::detail
