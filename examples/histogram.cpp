// What this file is for: draws numbers in tasks, counts them by a reduction and prints the bell they make.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <string>

#include <troupe/troupe.hpp>

#include "algorithms/histogram.hpp"
#include "examples/command_line.hpp"

namespace {

using troupe::index_t;

// A number in (0, 1) that depends on its position only, so that every tiling gives the same (splitmix64).
double uniform(std::uint64_t i) {
  i += 0x9e3779b97f4a7c15;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
  i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
  return (static_cast<double>((i ^ (i >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

// Normally distributed numbers (Box and Muller, "A note on the generation of random normal deviates", 1958).
constexpr auto draw = troupe::kernel<troupe::out<double, 1>>("draw").on(troupe::cpu, [](troupe::view<double, 1> to) {
  for (index_t i = to.lo(0); i < to.hi(0); ++i) {
    const auto k = static_cast<std::uint64_t>(i);
    to(i) = std::sqrt(-2 * std::log(uniform(2 * k))) * std::cos(2 * std::numbers::pi * uniform(2 * k + 1));
  }
});

}  // namespace

int main(int count, char** arguments) try {
  const std::string usage =
      "usage: troupe-histogram [SAMPLES] [--devices LIST]   from 1 to 1000000000; 1000000 unless given";
  if (examples::explains_itself(count, arguments, "troupe-histogram", usage)) return 0;
  const auto asked = examples::read_command_line(count, arguments, {{1, 1'000'000'000}}, usage);
  const index_t samples = asked.numbers.empty() ? 1'000'000 : asked.numbers[0];

  troupe::runtime rt(asked.options());
  auto numbers = rt.array<double>({samples}, troupe::tiles(65536), "numbers");
  auto bins = rt.filled<std::uint64_t>({16}, troupe::tiles(16), 0, "bins");
  rt.for_each(troupe::grid(samples), draw, write(numbers));
  troupe::algorithms::histogram(rt, numbers, -4.0, 4.0, bins);

  const auto seen = bins.read();  // waits for the last partial
  const std::uint64_t most = std::max<std::uint64_t>(*std::max_element(seen.data(), seen.data() + 16), 1);
  for (int bin = 0; bin < 16; ++bin)
    std::printf("%5.1f %9llu %s\n", -4 + 0.5 * bin, static_cast<unsigned long long>(seen(bin)),
                std::string(static_cast<std::size_t>(seen(bin) * 50 / most), '#').c_str());
  examples::print_executors(rt, asked);
  return 0;
} catch (...) {
  return examples::complain("troupe-histogram");
}
