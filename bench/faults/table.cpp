// Laying out table.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace bench {

namespace {

constexpr std::array<const char*, 8> columns{"lost",   "wrong",       "detected", "flows",
                                             "memory", "descriptors", "threads",  "slots"};

struct line {
  std::string fault;
  std::array<std::string, columns.size()> cells{};
  std::string own{}, marks{}, missed{};
  bool judged = false;
};

std::string text_of(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value != 0 && value < 10 ? "%.1f" : "%.0f", value);
  std::string s = text.data();
  if (s.ends_with(".0")) s.resize(s.size() - 2);
  return s;
}

void append(std::string& to, const std::string& more) { to += (to.empty() ? "" : ", ") + more; }

void take(line& l, const std::string& figure, const row_result& r) {
  const auto* const found = r.of("troupe");
  const auto value = found == nullptr ? "-" : text_of(r.spec.direction == better::lower ? found->max : found->min);
  const auto column = std::find(columns.begin(), columns.end(), figure);
  if (column != columns.end())
    l.cells.at(static_cast<std::size_t>(column - columns.begin())) = value;
  else
    append(l.own, figure + " " + value + (r.spec.unit == figure ? "" : " " + r.spec.unit));
  if (r.spec.bound && *r.spec.bound != 0) append(l.marks, figure + " " + text_of(*r.spec.bound));
  if (!r.met) return;
  l.judged = true;
  if (!*r.met) append(l.missed, figure);
}

}  // namespace

void print_faults(std::ostream& out, const std::vector<row_result>& rows) {
  std::vector<line> lines;
  for (const auto& r : rows) {
    const auto slash = r.spec.name.find('/');
    const auto fault = r.spec.name.substr(0, slash);
    if (lines.empty() || lines.back().fault != fault) lines.push_back({.fault = fault});
    take(lines.back(), r.spec.name.substr(slash + 1), r);
  }
  const auto print = [&out](const line& l, const std::string& met) {
    std::array<char, 320> text{};
    std::snprintf(text.data(), text.size(), "%-26s %5s %5s %9s %7s | %6s %4s %7s %5s | %-30s | %-28s %s",
                  l.fault.c_str(), l.cells[0].c_str(), l.cells[1].c_str(), l.cells[2].c_str(), l.cells[3].c_str(),
                  l.cells[4].c_str(), l.cells[5].c_str(), l.cells[6].c_str(), l.cells[7].c_str(), l.own.c_str(),
                  l.marks.c_str(), met.c_str());
    out << text.data() << '\n';
  };
  line head{.fault = "fault"};
  head.cells = {"lost", "wrong", "detected", "flows", "KiB", "fds", "threads", "slots"};
  head.own = "of its own";
  head.marks = "marks";
  print(head, "met");
  for (const auto& l : lines) print(l, !l.judged ? "-" : l.missed.empty() ? "yes" : "NO: " + l.missed);
  out << "the worst of all turns; detected and flows in ms; behind the bar what is left over of it. No task lost, no "
         "result wrong, nothing left over are marks of all\n";
}

}  // namespace bench
