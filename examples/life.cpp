// What this file is for: lets a glider fly over a world without edges.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

#include "algorithms/stencil.hpp"
#include "examples/command_line.hpp"

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

int main(int count, char** arguments) try {
  const std::string usage = "usage: troupe-life [GENERATIONS] [--devices LIST]   from 0 to 1000000; 32 unless given";
  if (examples::explains_itself(count, arguments, "troupe-life", usage)) return 0;
  const auto asked = examples::read_command_line(count, arguments, {{0, 1'000'000}}, usage);
  const int generations = asked.numbers.empty() ? 32 : static_cast<int>(asked.numbers[0]);

  troupe::runtime rt(asked.options());
  auto world = rt.filled<std::uint8_t>({height, width}, troupe::tiles(4, 8), 0, "world");
  {
    auto cells = world.update();
    cells(1, 2) = cells(2, 3) = cells(3, 1) = cells(3, 2) = cells(3, 3) = 1;
  }
  print(world, 0);
  print(troupe::algorithms::life(rt, world, generations, troupe::border::wrap), generations);
  std::printf("%llu tasks\n", static_cast<unsigned long long>(rt.report().finished));
  examples::print_executors(rt, asked);
  return 0;
} catch (...) {
  return examples::complain("troupe-life");
}
