// What this file is for: the pieces of docs/streams.md that no example has.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

namespace st = troupe::stream;
using namespace std::chrono_literals;

struct reading {
  int sensor;
  std::chrono::system_clock::time_point at;
  double value;
};

st::source<reading> readings(int descriptor) {
  for (reading r;;) {
    co_await st::readable(descriptor);  // no thread waits
    if (::read(descriptor, &r, sizeof r) != sizeof r) co_return;
    co_yield r;
  }
}

static double calibrate(const reading& r) {
  if (r.value < 0) throw std::invalid_argument("a reading below zero");
  return r.value * 1.5;
}

int main() {
  troupe::runtime rt;
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return 1;
  const auto begin = std::chrono::system_clock::now();
  for (int i = 0; i < 100; ++i) {
    const reading r{i % 2, begin + i * 100ms, i == 50 ? -1.0 : 2.0};
    if (::write(ends[1], &r, sizeof r) != sizeof r) return 1;
  }
  ::close(ends[1]);

  int lost = 0;
  double sum = 0;
  // clang-format off
  auto p = st::from("sensors", readings(ends[0]))
         | st::async({.items = 256, .full = st::when_full::drop_oldest})
         | st::map("calibrate", calibrate, {.parallel = 4, .fail = st::retry(2, 10ms).then(st::dead_letter)})
         | st::batch("batch", {.items = 16, .delay = 5ms})
         | st::sink("store", [&](const std::vector<double>& values) { for (double v : values) sum += v; });
  // clang-format on
  auto r = p.start(rt, {.on_dead_letter = [&](const st::letter&) { ++lost; }});
  r.wait();
  ::close(ends[0]);

  // clang-format off
  auto q = st::from<std::string>("requests", {.items = 1000})
         | st::map("answer", [](std::string s) { return "re: " + s; })
         | st::sink("send", [](const std::string& s) { std::printf("%s\n", s.c_str()); });
  auto s = q.start(rt, {.name = "service"});
  auto in = s.input<std::string>("requests");
  if (in.try_push("hello") == st::pushed::full) return 1;  // say so to whoever asks
  const st::report told = s.drain(5s);
  // clang-format on
  std::printf("%d lost, sum %.0f, delivered %llu\n", lost, sum, static_cast<unsigned long long>(told.items.delivered));
}
