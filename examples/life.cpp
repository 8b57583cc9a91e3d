// What this file is for: lets a glider fly over a world without edges: troupe-life [GENERATIONS].
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <troupe/troupe.hpp>

#include "algorithms/stencil.hpp"

namespace {

constexpr int height = 12, width = 32;

void print(const troupe::array<std::uint8_t, 2>& world, int generation) {
  const auto cells = world.read();
  std::printf("generation %d\n", generation);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) std::putchar(cells(y, x) ? '#' : '.');
    std::putchar('\n');
  }
}

}  // namespace

int main(int count, char** arguments) {
  int generations = 32;
  if (count > 1) {
    const char* end = arguments[1] + std::strlen(arguments[1]);
    const auto [stopped, failure] = std::from_chars(arguments[1], end, generations);
    if (count > 2 || failure != std::errc() || stopped != end || generations < 0 || generations > 1'000'000) {
      std::fprintf(stderr, "usage: troupe-life [GENERATIONS]   from 0 to 1000000; 32 unless given\n");
      return 2;
    }
  }
  try {
    troupe::runtime rt;
    auto world = rt.filled<std::uint8_t>({height, width}, troupe::tiles(4, 8), 0, "world");
    {
      auto cells = world.update();
      cells(1, 2) = cells(2, 3) = cells(3, 1) = cells(3, 2) = cells(3, 3) = 1;
    }
    print(world, 0);
    print(troupe::algorithms::life(rt, world, generations, troupe::border::wrap), generations);
    std::printf("%llu tasks\n", static_cast<unsigned long long>(rt.report().finished));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "troupe-life: %s\n", e.what());
    return 1;
  }
}
