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
#include <utility>
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

struct order {
  int customer;
  std::chrono::sys_seconds at;
  double sum;
};
struct payment {
  int customer;
  std::chrono::sys_seconds at;
};
struct account {
  int customer;
  std::chrono::sys_seconds at;
  std::string name;
};

// What has been paid within an hour, by whom, and how much each has ordered of it so far.
static void joins(troupe::runtime& rt, const std::vector<order>& orders, const std::vector<payment>& payments,
                  const std::vector<account>& accounts) {
  auto timed = [](const char* name, const auto& all, auto at) {
    return st::from(name, all) | st::event_time(std::string(name) + " time", at);
  };
  // clang-format off
  auto paid = st::join("paid", timed("orders", orders, &order::at) | st::key_by(&order::customer),
                               timed("payments", payments, &payment::at) | st::key_by(&payment::customer),
                       st::within(0s, 1h), [](const order& o, const payment&) { return o; });
  auto named = st::lookup("names", paid | st::key_by(&order::customer),
                                   timed("accounts", accounts, &account::at) | st::key_by(&account::customer),
                          [](const order& o, const account* a) { return std::pair(a ? a->name : "?", o.sum); });
  auto p = named
         | st::key_by([](const auto& x) { return x.first; })
         | st::process<std::pair<std::string, double>>("sums", 0.0, [](auto& context, double& sum, const auto& x) {
             context.emit({x.first, sum += x.second});
           })
         | st::sink("print", [](const auto& x) { std::printf("%s %.0f\n", x.first.c_str(), x.second); });
  // clang-format on
  p.start(rt).wait();
}

inline constexpr auto sharpen = troupe::kernel<troupe::in<float, 2>, troupe::out<float, 2>, float>("sharpen").on(
    troupe::cpu, [](troupe::view<const float, 2> a, troupe::view<float, 2> b, float by) {
      for (auto y = b.lo(0); y < b.hi(0); ++y)
        for (auto x = b.lo(1); x < b.hi(1); ++x) b(y, x) = by * a(y, x);
    });

static st::source<st::frame<float, 2>> camera(st::recycler<troupe::array<float, 2>> frames) {
  for (int i = 0; i < 10; ++i) {
    auto f = frames.take();
    {
      auto to = f->write();
      for (auto y = to.lo(0); y < to.hi(0); ++y)
        for (auto x = to.lo(1); x < to.hi(1); ++x) to(y, x) = 1;
    }
    co_yield std::move(f);
  }
}

static void devices(troupe::runtime& rt) {
  double sum = 0;
  // clang-format off
  auto frames = st::frames<float>(rt, {576, 768});  // arrays that are used again and again
  auto p = st::from("camera", camera(frames))
         | st::kernel("sharpen", sharpen, frames, {.in_flight = 3}, 2.0F)
         | st::sink("show", [&](const st::frame<float, 2>& f) { sum += f->read()(0, 0); });
  // clang-format on
  p.start(rt).wait();
  std::printf("%.0f\n", sum);
}

int main() {
  troupe::runtime rt;
  using at = std::chrono::sys_seconds;
  joins(rt, {{1, at(1min), 20}, {2, at(2min), 5}, {1, at(3min), 22}}, {{1, at(4min)}, {2, at(90min)}},
        {{1, at(0s), "Ada"}});
  devices(rt);
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
