// What this file is for: the first program of docs/gpu.md.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <troupe/troupe.hpp>

constexpr auto scale =
    troupe::kernel<troupe::in<float, 2>, troupe::out<float, 2>, float>("scale")
        .on(troupe::cpu,
            [](troupe::view<const float, 2> a, troupe::view<float, 2> b, float factor) {
              for (auto y = b.lo(0); y < b.hi(0); ++y)
                for (auto x = b.lo(1); x < b.hi(1); ++x) b(y, x) = factor * a(y, x);
            })
        .on(troupe::gpu, troupe::source{R"(
GPU_KERNEL void scale(GPU_IN(float, a), GPU_OUT(float, b), const float factor) {
  const long x = GPU_LO(b, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(b, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(b, 0) && x < GPU_HI(b, 1)) GPU_AT2(b, y, x) = factor * GPU_AT2(a, y, x);
})",
                                        "scale"});

int main() {
  troupe::options how;
  how.devices = {{"cuda"}, {"sim:0", 64 << 20}};  // every CUDA device there is, and 64 MiB of a GPU in software
  troupe::runtime rt(how);
  auto a = rt.filled<float>({1000, 1000}, troupe::tiles(250, 250), 2.0f);
  auto b = rt.array<float>({1000, 1000}, troupe::tiles(250, 250));

  rt.for_each(troupe::grid(1000, 1000), scale, read(a), write(b), 3.0f);  // cores and devices, as placement sees fit
  rt.for_each({.where = troupe::scope::gpu()}, troupe::grid(1000, 1000), scale, read(b), write(a), 7.0f);

  std::printf("%.0f\n", a.read()(999, 999));
  for (const auto& e : rt.executors())
    std::printf("%-7s %2llu tasks\n", e.name.c_str(), static_cast<unsigned long long>(e.tasks));
}
