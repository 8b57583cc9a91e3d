// Troupe on an accelerator: kernels as text, one-tile arrays or tiles, counts and results checked after the clock.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "troupe_devices.hpp"

#include "device_work.hpp"
#include "workloads.hpp"

#include <troupe/stream.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace bench {

namespace {

using troupe::index_t;
using word = std::uint32_t;
using words = troupe::array<word, 1>;

constexpr auto stir =
    troupe::kernel<troupe::inout<word, 1>, word>("stir").on(troupe::gpu, troupe::source{stir_text, "stir"});
constexpr auto halve = troupe::kernel<troupe::in<double, 1>, troupe::out<double, 1>>("halve").on(
    troupe::gpu, troupe::source{halve_text, "halve"});

/// A row of a tile at a time, so that the compiler vectorises along it.
void correlate_tile(troupe::view<const float, 2> source, troupe::view<const float, 2> weights,
                    troupe::view<float, 2> result) {
  constexpr index_t strip = 64;
  constexpr auto radius = static_cast<index_t>(filter_problem::radius);
  for (index_t y = result.lo(0); y < result.hi(0); ++y)
    for (index_t x = result.lo(1); x < result.hi(1); x += strip) {
      float totals[strip] = {};
      for (index_t v = 0; v < weights.size(0); ++v)
        for (index_t u = 0; u < weights.size(1); ++u) {
          const float weight = weights(v, u);
          const float* from = &source(y + v - radius, x + u - radius);
          for (index_t i = 0; i < strip; ++i) totals[i] += weight * from[i];
        }
      std::copy(totals, totals + strip, &result(y, x));
    }
}
static_assert(filter_problem::tile % 64 == 0 && filter_problem::side % filter_problem::tile == 0, "whole strips");

constexpr auto correlate =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::out<float, 2>>("correlate")
        .on(troupe::cpu, &correlate_tile)
        .on(troupe::gpu, troupe::source{correlate_text, "correlate"});

troupe::task_options on(const std::string& device) { return {.where = troupe::scope::executor(device)}; }

troupe::executor_report report_of(const troupe::runtime& rt, const std::string& device) {
  for (auto& each : rt.executors())
    if (each.name == device) return each;
  throw wrong_answer("there is no executor " + device);
}

/// Counts kernels run on a device, as `executed` counts bodies.
class launched {
 public:
  launched(const troupe::runtime& rt, const std::string& device)
      : rt_(rt), device_(device), before_(report_of(rt, device).tasks) {}
  void check(std::uint64_t expected) const {
    const auto ran = report_of(rt_, device_).tasks - before_;
    if (ran != expected)
      throw wrong_answer(device_ + " ran " + std::to_string(ran) + " kernels of " + std::to_string(expected));
  }

 private:
  const troupe::runtime& rt_;
  const std::string& device_;
  std::uint64_t before_;
};

words ones(troupe::runtime& rt, std::size_t length, std::size_t tile) {
  return rt.filled<word>({static_cast<index_t>(length)}, troupe::tiles(static_cast<index_t>(tile)), 1);
}
words ones(troupe::runtime& rt, std::size_t length) { return ones(rt, length, length); }

void check_contents(const words& a, std::size_t times) {
  const auto v = a.read();
  check_stirred(v.data(), static_cast<std::size_t>(v.size(0)), times);
}

}  // namespace

cost launches_on(troupe::runtime& rt, const std::string& device, std::size_t n) {
  std::vector<words> arrays;
  arrays.reserve(n);
  for (std::size_t i = 0; i < n; ++i) arrays.push_back(ones(rt, tiny_length));
  const auto where = on(device);
  for (const auto& a : arrays) rt.spawn(where, stir, troupe::update(a), stir_factor);
  rt.wait_all();
  const launched proof(rt, device);
  const meter clock;
  for (const auto& a : arrays) rt.spawn(where, stir, troupe::update(a), stir_factor);
  rt.wait_all();
  const auto spent = clock.stop();
  proof.check(n);
  for (const auto& a : arrays) check_contents(a, 2);
  return spent;
}

double round_trip_on(troupe::runtime& rt, const std::string& device, std::size_t samples) {
  const auto a = ones(rt, tiny_length);
  const auto where = on(device);
  rt.spawn(where, stir, troupe::update(a), stir_factor).get();
  const launched proof(rt, device);
  const auto p50 = median_round_trip(samples, std::chrono::microseconds(0),
                                     [&] { rt.spawn(where, stir, troupe::update(a), stir_factor).get(); });
  proof.check(samples);
  check_contents(a, 1 + samples);
  return p50;
}

cost chain_on(troupe::runtime& rt, const std::string& device, std::size_t n) {
  const auto a = ones(rt, small_length);
  const auto where = on(device);
  rt.spawn(where, stir, troupe::update(a), stir_factor).get();
  const launched proof(rt, device);
  const meter clock;
  for (std::size_t i = 0; i < n; ++i) rt.spawn(where, stir, troupe::update(a), stir_factor);
  rt.wait_all();
  const auto spent = clock.stop();
  proof.check(n);
  check_contents(a, 1 + n);
  return spent;
}

/// The first pass makes room on the device; the second is timed.
cost flow_on(troupe::runtime& rt, const std::string& device, flow_problem& problem) {
  const auto n = static_cast<index_t>(problem.from.size());
  const auto tiles = troupe::tiles(static_cast<index_t>(flow_problem::tile));
  const auto pinned = {rt.pin(std::span(problem.from)), rt.pin(std::span(problem.into))};
  const auto from = rt.borrow<double>(std::span(problem.from), {n}, tiles);
  const auto into = rt.borrow<double>(std::span(problem.into), {n}, tiles);
  const auto where = on(device);
  cost spent;
  for (int pass = 0; pass < 2; ++pass) {
    problem.fill(from.write().data());
    rt.wait_all();
    const launched proof(rt, device);
    const executed looks;
    std::atomic<bool> right{true};
    const meter clock;
    rt.for_each(where, troupe::grid(n).chunks(flow_problem::tile), halve, troupe::read(from), troupe::write(into));
    rt.for_each(
        troupe::grid(n).chunks(flow_problem::tile),
        [&](troupe::view<const double, 1> results) {
          if (!problem.right(&results(results.lo(0)), static_cast<std::size_t>(results.lo(0)),
                             static_cast<std::size_t>(results.size(0))))
            right = false;
          tally::add();
        },
        troupe::read(into));
    rt.wait_all();
    spent = clock.stop();
    proof.check(problem.tiles);
    looks.check(problem.tiles);
    if (!right) throw wrong_answer("a tile came back wrong");
  }
  return spent;
}

/// Batches of four arrays, three batches in flight; by hand the batch before the last three is waited for.
stream_to_hand_cost stream_batches_on(troupe::runtime& rt, const std::string& device, std::size_t batches) {
  namespace st = troupe::stream;
  constexpr std::size_t in_a_batch = 4, in_flight = 3, turns = 5;
  using batch = std::vector<words>;
  std::vector<batch> all(in_flight + 1);
  for (batch& b : all)
    for (std::size_t i = 0; i < in_a_batch; ++i) b.push_back(ones(rt, frame_length));
  const auto where = on(device);
  for (const batch& b : all)
    for (const words& a : b) rt.spawn(where, stir, troupe::update(a), stir_factor);
  rt.wait_all();
  const launched proof(rt, device);
  std::vector<double> streamed, by_hand;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    auto p =
        st::from("batches",
                 [&all, i = std::size_t{0}, batches]() mutable -> std::optional<batch> {
                   if (i == batches) return {};
                   return all[i++ % (in_flight + 1)];
                 }) |
        st::kernel("stir", stir, {.where = where.where, .in_flight = static_cast<int>(in_flight), .edge = {.items = 1}},
                   stir_factor) |
        st::sink("end", [](const batch&) {});
    const meter stream_clock;
    p.start(rt).wait();
    streamed.push_back(stream_clock.stop().nanoseconds);
    const meter hand_clock;
    std::vector<std::vector<troupe::future<void>>> flying(in_flight);
    for (std::size_t i = 0; i < batches; ++i) {
      auto& slot = flying[i % in_flight];
      for (auto& f : slot) f.get();
      slot.clear();
      for (const words& a : all[i % (in_flight + 1)])
        slot.push_back(rt.spawn(where, stir, troupe::update(a), stir_factor));
    }
    rt.wait_all();
    by_hand.push_back(hand_clock.stop().nanoseconds);
  }
  proof.check(2 * turns * batches * in_a_batch);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const words& a : all[i]) check_contents(a, 1 + 2 * turns * ((batches + all.size() - 1 - i) / all.size()));
  const auto median = [](std::vector<double>& v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  return {median(streamed), median(by_hand)};
}

double traffic_on(troupe::runtime& rt, const std::string& device, std::size_t calls) {
  constexpr std::size_t tiles = 16;
  const auto a = ones(rt, tiles * small_length, small_length);
  const auto where = on(device);
  const auto call = [&] { rt.for_each(where, troupe::grid(a.size(0)), stir, troupe::update(a), stir_factor); };
  call();
  rt.wait_all();
  const launched proof(rt, device);
  const auto before = report_of(rt, device).bytes_moved;
  for (std::size_t i = 0; i < calls; ++i) call();
  rt.wait_all();
  const auto moved = report_of(rt, device).bytes_moved - before;
  proof.check(calls * tiles);
  check_contents(a, 1 + calls);
  return static_cast<double>(moved) / static_cast<double>(calls);
}

/// Filters images; one more is untimed: kernels are compiled, and placement learns from it.
filter_cost filter_on(troupe::runtime& rt, const std::string& device, filter_problem& problem, filter_scope where,
                      int images) {
  constexpr auto side = static_cast<index_t>(filter_problem::side), tile = static_cast<index_t>(filter_problem::tile),
                 width = static_cast<index_t>(filter_problem::width),
                 radius = static_cast<index_t>(filter_problem::radius);
  const auto tiles = troupe::tiles(tile, tile);
  const auto image = rt.borrow<float>(std::span(problem.image), {side, side}, tiles);
  const auto result = rt.borrow<float>(std::span(problem.result), {side, side}, tiles);
  const auto weights = rt.borrow<float>(std::span(problem.weights), {width, width}, troupe::tiles(width, width));
  troupe::task_options options;
  if (where == filter_scope::cores) options.where = troupe::scope::cpu();
  if (where == filter_scope::device) options = on(device);
  double nanoseconds = 0;
  std::uint64_t before = 0;
  for (int i = 0; i <= images; ++i) {
    problem.fill(image.write().data());
    rt.wait_all();
    if (i == 1) before = report_of(rt, device).tasks;
    const meter clock;
    rt.for_each(options, troupe::grid(side, side).chunks(tile, tile), correlate,
                troupe::read(image, troupe::window(radius, radius).clamp()), troupe::read(weights, troupe::all{}),
                troupe::write(result));
    const auto filtered = result.read();
    if (i > 0) nanoseconds += clock.stop().nanoseconds;
    problem.check(filtered.data());
  }
  rt.wait_all();
  const auto on_device = static_cast<double>(report_of(rt, device).tasks - before);
  constexpr auto tiles_per_image = static_cast<double>((side / tile) * (side / tile));
  return {nanoseconds / 1e6 / images, 100 * on_device / (tiles_per_image * images)};
}

}  // namespace bench
