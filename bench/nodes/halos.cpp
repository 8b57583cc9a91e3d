// The stencils of halos.hpp. The nodes are runtimes of this process, joined over loopback: all bytes are counted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "halos.hpp"

#include "../workloads.hpp"
#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

namespace {

using troupe::index_t;
using word = std::uint64_t;
using grid_of_words = troupe::array<word, 2>;

constexpr int steps_before = 2, steps_counted = 10;

constexpr word mixed(word h, word x) { return (h ^ x) * 0x9e3779b97f4a7c15u + (h >> 29); }

/// The step of one tile. `from`: the tile, and a line around it where the grid goes on. `y0`, `x0`: where in it the
/// tile begins.
inline constexpr auto stencil =
    troupe::kernel<troupe::in<word, 2>, troupe::out<word, 2>, index_t, index_t>("bench.halo")
        .on(troupe::cpu,
            [](troupe::view<const word, 2> from, troupe::view<word, 2> to, index_t y0, index_t x0) {
              const auto at = [&](index_t y, index_t x) {
                return y < 0 || x < 0 || y >= from.size(0) || x >= from.size(1)
                           ? 0
                           : from.data()[y * from.stride(0) + x * from.stride(1)];
              };
              for (index_t y = 0; y < to.size(0); ++y)
                for (index_t x = 0; x < to.size(1); ++x) {
                  word h = at(y + y0, x + x0);
                  for (const word v :
                       {at(y + y0 - 1, x + x0), at(y + y0 + 1, x + x0), at(y + y0, x + x0 - 1), at(y + y0, x + x0 + 1)})
                    h = mixed(h, v);
                  to.data()[y * to.stride(0) + x * to.stride(1)] = h;
                }
            })
        .on(troupe::gpu, {.text = R"(
GPU_KERNEL void halo(GPU_IN(ulong, from), GPU_OUT(ulong, to), const long y0, const long x0) {
  const long x = GPU_LO(to, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(to, 0) + GPU_GLOBAL_ID(1);
  if (x >= GPU_HI(to, 1) || y >= GPU_HI(to, 0)) return;
  const long v = y - GPU_LO(to, 0) + y0 + GPU_LO(from, 0), u = x - GPU_LO(to, 1) + x0 + GPU_LO(from, 1);
  ulong h = GPU_AT2(from, v, u);
  for (int i = 0; i < 4; ++i) {
    const long b = v + (i == 1) - (i == 0), a = u + (i == 3) - (i == 2);
    const int is_in = b >= GPU_LO(from, 0) && b < GPU_HI(from, 0) && a >= GPU_LO(from, 1) && a < GPU_HI(from, 1);
    const ulong w = is_in ? GPU_AT2(from, b, a) : 0;
    h = (h ^ w) * 0x9e3779b97f4a7c15ul + (h >> 29);
  }
  GPU_AT2(to, y, x) = h;
})",
                          .entry = "halo"});
const troupe::offer offered{stencil};

/// The grid, twice, and a tile for each executor.
struct plane {
  plane(troupe::runtime& rt, index_t length, index_t down, index_t across)
      : owner(rt), side(length), height(length / down), width(length / across) {
    for (auto* const a : {&from, &to}) *a = rt.array<word>({length, length}, troupe::tiles(height, width));
    auto all = from.write();
    model.resize(static_cast<std::size_t>(length * length));
    for (std::size_t i = 0; i < model.size(); ++i) model[i] = test::hashed(1, i);
    for (index_t y = 0; y < length; ++y)
      for (index_t x = 0; x < length; ++x) all(y, x) = model[static_cast<std::size_t>(y * length + x)];
  }
  /// An even number of steps; tile i goes where `on[i]` says.
  template <class Submitter>
  void run(Submitter& by, const std::vector<troupe::task_options>& on, int steps) {
    for (int s = 0; s < steps; ++s) {
      std::size_t tile = 0;
      for (index_t y = 0; y < side; y += height)
        for (index_t x = 0; x < side; x += width) {
          const troupe::box<2> own{{y, x}, {y + height, x + width}};
          const troupe::box<2> around{{std::max<index_t>(0, y - 1), std::max<index_t>(0, x - 1)},
                                      {std::min(side, y + height + 1), std::min(side, x + width + 1)}};
          by.spawn(on[tile++], stencil, troupe::read(from.sub(around)), troupe::write(to.sub(own)), y - around.lo[0],
                   x - around.lo[1]);
        }
      std::swap(from, to);
    }
  }
  void check(int steps) {
    std::vector<word> next(model.size());
    const auto at = [&](index_t y, index_t x) {
      return y < 0 || x < 0 || y >= side || x >= side ? 0 : model[static_cast<std::size_t>(y * side + x)];
    };
    for (int s = 0; s < steps; ++s) {
      for (index_t y = 0; y < side; ++y)
        for (index_t x = 0; x < side; ++x) {
          word h = at(y, x);
          for (const word v : {at(y - 1, x), at(y + 1, x), at(y, x - 1), at(y, x + 1)}) h = mixed(h, v);
          next[static_cast<std::size_t>(y * side + x)] = h;
        }
      model.swap(next);
    }
    const auto all = from.read();
    for (index_t y = 0; y < side; ++y)
      for (index_t x = 0; x < side; ++x)
        if (all(y, x) != model[static_cast<std::size_t>(y * side + x)])
          throw wrong_answer("a stencil whose halos have moved is not what a serial run makes");
  }

  troupe::runtime& owner;
  const index_t side, height, width;
  grid_of_words from, to;
  std::vector<word> model;
};

}  // namespace

double halo_bytes_of_nodes(int nodes, index_t side, bool recorded) {
  auto options = test::owner_options("-");
  options.cluster.link_check_after = std::chrono::hours(1);  // only what the stencil moves is to be counted
  options.cluster.replay_max = std::chrono::hours(1);        // nor what is saved so that it need not be made again
  troupe::runtime owner(options);
  std::vector<std::unique_ptr<troupe::runtime>> others;
  std::vector<troupe::task_options> on{{.where = troupe::scope::here()}};
  for (int i = 1; i < nodes; ++i) {
    const std::string name = "node" + std::to_string(i);
    auto its = options;
    its.cluster.node_name = name;
    its.cluster.join = owner.addresses();
    others.push_back(std::make_unique<troupe::runtime>(its));
    on.push_back({.where = troupe::scope::at(name)});
  }
  const auto all_there = static_cast<std::size_t>(nodes - 1);
  bool met = owner.wait_for_nodes(all_there, std::chrono::seconds(10));
  for (const auto& o : others) met = o->wait_for_nodes(all_there, std::chrono::seconds(10)) && met;
  if (!met) throw std::runtime_error("the nodes did not come");
  const auto sent = [&] {
    std::uint64_t bytes = 0;
    for (const auto& n : owner.nodes()) bytes += n.bytes_out;
    for (const auto& o : others)
      for (const auto& n : o->nodes()) bytes += n.bytes_out;
    return bytes;
  };

  plane p(owner, side, 2, nodes == 2 ? 1 : 2);
  std::uint64_t bytes = 0;
  if (recorded) {
    const auto before = owner.record([&](troupe::recorder& r) { p.run(r, on, steps_before); });
    const auto counted = owner.record([&](troupe::recorder& r) { p.run(r, on, steps_counted); });
    owner.run(before).get();
    const auto so_far = sent();
    owner.run(counted).get();
    bytes = sent() - so_far;
  } else {
    p.run(owner, on, steps_before);
    owner.wait_all();
    const auto so_far = sent();
    p.run(owner, on, steps_counted);
    owner.wait_all();
    bytes = sent() - so_far;
  }
  p.check(steps_before + steps_counted);
  // Lines on both sides of each cut; where four tiles meet, each gets a corner of its opposite too.
  const index_t elements = nodes == 2 ? 2 * side : 4 * side + 4;
  return static_cast<double>(bytes) / (steps_counted * static_cast<double>(elements) * sizeof(word));
}

double halo_bytes_of_devices(index_t side) {
  troupe::options o{.threads = 1};
  o.devices = {{"sim:0"}, {"sim:1"}};
  o.cost_cache = "none";
  troupe::runtime rt(o);
  const auto moved = [&] {
    std::uint64_t bytes = 0;
    for (const auto& e : rt.executors())
      if (e.kind == troupe::device_kind::sim) bytes += e.bytes_moved + e.bytes_from_peers;
    return bytes;
  };
  const std::vector<troupe::task_options> on{{.where = troupe::scope::executor("sim:0")},
                                             {.where = troupe::scope::executor("sim:1")}};
  plane p(rt, side, 2, 1);
  p.run(rt, on, steps_before);
  rt.wait_all();
  const auto so_far = moved();
  p.run(rt, on, steps_counted);
  rt.wait_all();
  const auto bytes = moved() - so_far;
  p.check(steps_before + steps_counted);
  return static_cast<double>(bytes) / (steps_counted * 4.0 * static_cast<double>(side) * sizeof(word));
}

}  // namespace bench
