// What this file is for: the first program: a kernel, tiled arrays, a stencil, a task of one's own and its result.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include <troupe/troupe.hpp>

constexpr auto blur = troupe::kernel<troupe::in<float, 2>, troupe::out<float, 2>>("blur").on(
    troupe::cpu, [](troupe::view<const float, 2> from, troupe::view<float, 2> to) {
      for (auto y = to.lo(0); y < to.hi(0); ++y)
        for (auto x = to.lo(1); x < to.hi(1); ++x)
          to(y, x) = (from(y, x) + from(y - 1, x) + from(y + 1, x) + from(y, x - 1) + from(y, x + 1)) / 5;
    });

int main() try {
  troupe::runtime rt;  // the cores this process may use
  auto sharp = rt.filled<float>({1000, 1000}, troupe::tiles(256, 256), 0, "sharp");
  auto soft = rt.array<float>({1000, 1000}, troupe::tiles(256, 256), "soft");
  sharp.update()(500, 500) = 100;

  rt.for_each(troupe::grid(1000, 1000), blur, read(sharp, troupe::window(1, 1).clamp()), write(soft));
  auto brightest = rt.spawn(
      [](troupe::view<const float, 2> image) {
        float most = 0;
        for (int y = 0; y < 1000; ++y)
          for (int x = 0; x < 1000; ++x) most = std::max(most, image(y, x));
        return most;
      },
      read(soft));

  std::printf("brightest pixel: %.0f before, %.0f after the blur\n", sharp.read()(500, 500), brightest.get());
  rt.wait_all();  // a result may be there a moment before its task is counted
  std::printf("%llu tasks ran\n", static_cast<unsigned long long>(rt.report().finished));
} catch (const troupe::error& e) {
  std::fprintf(stderr, "troupe-hello: %s\n", e.what());
  return 2;
}
