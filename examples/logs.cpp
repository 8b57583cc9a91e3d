// What this file is for: counts what a package manager has done, for each action and hour of its log.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "connectors/lines.hpp"
#include "examples/command_line.hpp"

namespace st = troupe::stream;
using troupe::connectors::line;

namespace {

struct action {
  std::chrono::sys_seconds at;
  std::string what;
};

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int n = 0;
  const char* const begin = text.data() + from;
  const auto [end, fault] = std::from_chars(begin, begin + count, n);
  if (fault != std::errc() || end != begin + count) throw std::invalid_argument("no date and time");
  return n;
}

// "2026-11-25 20:38:22 install ..."; the time is taken for UTC.
action parse(const line& l) {
  const std::string_view s = l.text;
  if (!l.is_whole || s.size() < 21 || s[4] != '-' || s[7] != '-' || s[10] != ' ' || s[13] != ':' || s[16] != ':' ||
      s[19] != ' ')
    throw std::invalid_argument("no line of a log of dpkg");
  const std::chrono::year_month_day day{std::chrono::year(digits(s, 0, 4)),
                                        std::chrono::month(static_cast<unsigned>(digits(s, 5, 2))),
                                        std::chrono::day(static_cast<unsigned>(digits(s, 8, 2)))};
  if (!day.ok()) throw std::invalid_argument("no such day");
  const auto time = std::chrono::hours(digits(s, 11, 2)) + std::chrono::minutes(digits(s, 14, 2)) +
                    std::chrono::seconds(digits(s, 17, 2));
  return {std::chrono::sys_days(day) + time, std::string(s.substr(20, s.find(' ', 20) - 20))};
}

void print(const st::windowed<std::string, std::uint64_t>& w) {
  const auto day = std::chrono::floor<std::chrono::days>(w.window.begin);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::minutes>(w.window.begin - day));
  std::printf("%04d-%02u-%02u %02d:%02d %-12s %llu\n", static_cast<int>(date.year()),
              static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
              static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()), w.key.c_str(),
              static_cast<unsigned long long>(w.value));
}

constexpr const char* usage = "usage: troupe-logs [FILE]   a log of dpkg; /var/log/dpkg.log unless given";

}  // namespace

int main(int count, char** arguments) try {
  if (examples::explains_itself(count, arguments, "troupe-logs", usage)) return 0;
  std::string file = "/var/log/dpkg.log";
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word.starts_with('-') || i > 1)
      throw std::invalid_argument("'" + std::string(word) + "' is not understood; " + usage);
    file = word;
  }

  using namespace std::chrono_literals;
  troupe::runtime rt;
  // clang-format off
  auto p = st::from("log", troupe::connectors::file_lines(file))
         | st::map("parse", parse, {.parallel = 2, .fail = st::dead_letter})
         | st::event_time("time", &action::at, {.out_of_order = 2s})
         | st::key_by(&action::what)
         | st::window("hours", st::tumbling(1h), {.late = 1min}, st::count())
         | st::sink("print", print);
  auto r = p.start(rt, {.name = "log"});
  r.wait();
  // clang-format on

  const st::report told = r.report();
  std::fprintf(stderr, "%llu lines, %llu of them not understood, %llu too late\n",
               static_cast<unsigned long long>(told.items.pushed), static_cast<unsigned long long>(told.items.dead),
               static_cast<unsigned long long>(told.items.dropped));
  return 0;
} catch (...) {
  return examples::complain("troupe-logs");
}
