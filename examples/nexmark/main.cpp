// What this file is for: the queries of NEXMark as streams: timed against loops, checked against a database.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/troupe.hpp>

#include "answers.hpp"
#include "examples/command_line.hpp"

namespace {

constexpr const char* usage =
    "usage: troupe-nexmark [--events N] [--rate N] [--query Q] [--threads N] [--repeat N] [--check]\n"
    "  --events   events that the generator makes, 1 to 10000000; 1000000 unless given\n"
    "  --rate     events in a second of their own time, 1 to 1000000; 10000 unless given\n"
    "  --query    one query, 0 to 8; all unless given\n"
    "  --threads  of the runtime, 1 to 1024; 1 unless given\n"
    "  --repeat   times that each is run, 1 to 1000; medians are told; 3 unless given\n"
    "  --check    compares what streams answer with what SQLite answers, row for row, instead of timing";

template <class F>
double seconds(F f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

bool check(troupe::runtime& rt, int query, const std::vector<nexmark::event>& events) {
  const auto wanted = nexmark::by_sqlite(query, events);
  const bool ok = nexmark::by_stream(rt, query, events, true).sorted() == wanted &&
                  nexmark::by_loop(query, events, true).sorted() == wanted;
  std::printf("q%d: %zu rows, %s: %s\n", query, wanted.size(), ok ? "the same as SQLite's" : "NOT those of SQLite",
              nexmark::questions[static_cast<std::size_t>(query)]);
  return ok;
}

bool measure(troupe::runtime& rt, int query, const std::vector<nexmark::event>& events, int repeat) {
  std::vector<double> streams, loops;
  bool same = true;
  for (int i = 0; i < repeat; ++i) {
    nexmark::answer a(false), b(false);
    loops.push_back(seconds([&] { b = nexmark::by_loop(query, events, false); }));
    streams.push_back(seconds([&] { a = nexmark::by_stream(rt, query, events, false); }));
    same = same && a == b;
  }
  const double million = static_cast<double>(events.size()) / 1e6;
  std::printf("q%d: %8.2f M events/s, a loop %8.2f, %.2fx%s: %s\n", query, million / median(streams),
              million / median(loops), median(loops) / median(streams), same ? "" : ", ANOTHER ANSWER",
              nexmark::questions[static_cast<std::size_t>(query)]);
  return same;
}

}  // namespace

int main(int count, char** arguments) try {
  if (examples::explains_itself(count, arguments, "troupe-nexmark", usage)) return 0;
  int events = 1'000'000, rate = 10'000, first = 0, last = 8, threads = 1, repeat = 3;
  bool checks = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    const auto value = [&](int least, int most) {
      if (i + 1 >= count) throw std::invalid_argument(std::string(word) + " needs a value; " + usage);
      return examples::number(arguments[++i], least, most, usage);
    };
    if (word == "--check")
      checks = true;
    else if (word == "--events")
      events = value(1, 10'000'000);
    else if (word == "--rate")
      rate = value(1, 1'000'000);
    else if (word == "--query")
      first = last = value(0, 8);
    else if (word == "--threads")
      threads = value(1, 1024);
    else if (word == "--repeat")
      repeat = value(1, 1000);
    else
      throw std::invalid_argument("'" + std::string(word) + "' is not understood; " + usage);
  }
  const auto all = nexmark::generator(1, 1'000'000'000 / rate).make(static_cast<std::size_t>(events));
  troupe::options o;
  o.threads = threads;
  troupe::runtime rt(o);
  bool ok = true;
  for (int q = first; q <= last; ++q) ok = (checks ? check(rt, q, all) : measure(rt, q, all, repeat)) && ok;
  return ok ? 0 : 1;
} catch (...) {
  return examples::complain("troupe-nexmark");
}
