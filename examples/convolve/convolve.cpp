// What this file is for: the troupe program: a picture as tiles, a window with clamped borders, cores and accelerators.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "convolve.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

#include <troupe/error.hpp>
#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "correlate.hpp"
#include "examples/command_line.hpp"

namespace convolution {
namespace {

using troupe::index_t;

// The task of a tile, with what it needs and gives: the pixels around it, the filter, its own pixels.
constexpr auto filter_tile =
    troupe::kernel<troupe::in<std::uint8_t, 3>, troupe::in<float, 2>, troupe::out<std::uint8_t, 3>>("convolve")
        .on(troupe::cpu, &correlate)
        .on(troupe::gpu, troupe::source{correlate_text, "correlate", {16, 8, 1}});

// Other nodes of a cluster may run it here (TROUPE_CLUSTER; see docs).
const troupe::offer offered{filter_tile};

constexpr std::chrono::milliseconds watch_interval{50};
// For nodes that were asked for to come.
constexpr std::chrono::seconds patience{20};

troupe::options options_for(const settings& how) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t groups = how.groups.value_or(std::min<std::size_t>(2, how.threads.value_or(cores)));
  troupe::options options;
  // 0 lets the runtime count; more groups than cores need a thread each all the same.
  options.threads = static_cast<int>(how.threads.value_or(groups > cores ? groups : 0));
  options.core_groups = static_cast<int>(groups);
  options.trace = how.trace;
  options.devices = examples::devices_of(how.devices);
  return options;
}

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::vector<executor_share> shares_of(const troupe::runtime& runtime) {
  std::vector<executor_share> shares;
  for (const troupe::executor_report& r : runtime.executors())
    shares.push_back({r.name, r.tasks, seconds(r.busy), r.bytes_moved, seconds(r.predicted), seconds(r.measured)});
  return shares;
}

std::uint64_t tasks_run(const troupe::runtime& runtime) {
  std::uint64_t tasks = 0;
  for (const troupe::executor_report& r : runtime.executors()) tasks += r.tasks;
  return tasks;
}

}  // namespace

outcome convolve(image& picture, weights& filter, const settings& how,
                 const std::function<void(std::uint64_t, std::uint64_t)>& watch) {
  outcome result;
  result.picture = {picture.width, picture.height, picture.channels, {}};
  result.picture.samples.resize(picture.samples.size());

  const auto h = static_cast<index_t>(picture.height), w = static_cast<index_t>(picture.width);
  const auto c = static_cast<index_t>(picture.channels), tile = static_cast<index_t>(how.tile);
  const auto filter_h = static_cast<index_t>(filter.height), filter_w = static_cast<index_t>(filter.width);
  result.tiles = static_cast<std::uint64_t>(((h + tile - 1) / tile) * ((w + tile - 1) / tile));

  troupe::runtime runtime(options_for(how));
  if (!runtime.wait_for_nodes(how.nodes, patience))
    throw troupe::error(troupe::errc::unreachable, "of " + std::to_string(how.nodes) + " other nodes " +
                                                       std::to_string(runtime.nodes().size()) + " came");
  const auto tiles = troupe::tiles(tile, tile, c);
  const auto before = runtime.borrow(std::span(picture.samples), {h, w, c}, tiles, "picture");
  const auto after = runtime.borrow(std::span(result.picture.samples), {h, w, c}, tiles, "result");
  const auto factors =
      runtime.borrow(std::span(filter.values), {filter_h, filter_w}, troupe::tiles(filter_h, filter_w), "filter");

  const auto start = std::chrono::steady_clock::now();
  const auto done = runtime.for_each(troupe::grid(h, w, c).chunks(tile, tile, c), filter_tile,
                                     troupe::read(before, troupe::window(filter_h / 2, filter_w / 2, 0).clamp()),
                                     troupe::read(factors, troupe::all{}), troupe::write(after, troupe::one_to_one{}));
  while (!done.wait_for(watch_interval)) watch(tasks_run(runtime), result.tiles);
  done.get();
  result.seconds = seconds(std::chrono::steady_clock::now() - start);
  watch(result.tiles, result.tiles);
  result.shares = shares_of(runtime);
  return result;
}

void work_for_others(const settings& how, const std::function<void()>& wait_for_end) {
  troupe::runtime runtime(options_for(how));
  wait_for_end();
}

}  // namespace convolution
