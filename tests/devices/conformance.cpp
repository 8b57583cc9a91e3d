// What this file is for: the devices that take the conformance suite, each with what it needs and what it cannot do.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "conformance.hpp"

#include <filesystem>
#include <ostream>

#include "devices/gpu/gpu.hpp"
#include "devices/opencl/opencl.hpp"
#include "devices/sim/sim.h"
#include "tests/support/driver_leaks.hpp"

namespace conformance_suite {

namespace {

// Kernels are compiled once for all tests.
rtc::settings with_cache() {
  auto s = rtc::settings_from_environment();
  s.cache = std::filesystem::temp_directory_path() / "troupe-conformance-cache";
  return s;
}

candidate sim(int devices, bool peer = false) {
  candidate c;
  c.name = (peer ? "sim_peers_x" : "sim_x") + std::to_string(devices);
  c.source = [devices, peer] {
    troupe::soft_gpu::sim_options o;
    o.devices = devices;
    o.memory_bytes = std::size_t{64} << 20;
    o.peer = peer;
    o.seed = static_cast<std::uint64_t>(devices);  // operations are delayed at random
    if (troupe::soft_gpu::simConfigure(o) != troupe::soft_gpu::simSuccess)
      throw error(errc::device_failed, "sim is still in use by an earlier test");
    return make_sim_source(with_cache());
  };
  c.devices = devices;
  c.fresh_is_nan = true;
  return c;
}

// Copies from and to pageable memory would hold their caller, as on CUDA: everything that the tests copy is staged.
candidate pageable_sim() {
  candidate c = sim(1);
  c.name = "sim_pageable";
  c.source = [] {
    troupe::soft_gpu::sim_options o;
    o.devices = 1;
    o.memory_bytes = std::size_t{64} << 20;
    o.seed = 4;
    o.pageable_blocks = true;
    if (troupe::soft_gpu::simConfigure(o) != troupe::soft_gpu::simSuccess)
      throw error(errc::device_failed, "sim is still in use by an earlier test");
    return make_sim_source(with_cache());
  };
  return c;
}

// Whatever OpenCL finds here: PoCL gives as many devices as the environment of the test asks for (POCL_DEVICES).
candidate opencl(int devices) {
  candidate c;
  c.name = "opencl_x" + std::to_string(devices);
  c.source = [] { return make_opencl_source(); };
  c.devices = devices;
  c.argument_align = 256;
  return c;
}

candidate cuda() {
  candidate c;
  c.name = "cuda";
  c.source = [] { return make_cuda_source(with_cache()); };
  return c;
}

candidate hip() {
  candidate c;
  c.name = "hip";
  c.source = [] { return make_hip_source(with_cache()); };
  return c;
}

std::string name_of(const ::testing::TestParamInfo<candidate>& info) { return info.param.name; }

}  // namespace

const std::vector<candidate>& candidates() {
  static const std::vector<candidate> all{sim(1),    sim(2),    sim(3), sim(2, true), pageable_sim(),
                                          opencl(1), opencl(2), cuda(), hip()};
  return all;
}

INSTANTIATE_TEST_SUITE_P(accelerators, conformance, ::testing::ValuesIn(candidates()), name_of);

void PrintTo(const candidate& c, std::ostream* out) { *out << c.name; }

void conformance::SetUp() {
  source_ = GetParam().source();
  if (source_->count() < GetParam().devices)
    GTEST_SKIP() << GetParam().name << ": there are " << source_->count() << " devices of " << GetParam().devices
                 << (source_->remark().empty() ? "" : ": ") << source_->remark();
}

bool eventually(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void reach(accelerator& a, int lane, ticket t) {
  if (!eventually([&] { return a.completed(lane) >= t; }))
    throw error(errc::device_failed, "a ticket was not reached within a minute");
}

void finish(accelerator& a, int lane) { reach(a, lane, a.record(lane, false)); }

kernel_id load_core(accelerator& a, const char* entry) { return a.load({"core", kernels::core, entry}); }

void launch_line(accelerator& a, int lane, kernel_id k, std::size_t items, std::uint32_t group,
                 const std::vector<kernel_argument>& arguments) {
  a.launch(lane, k, {{static_cast<std::uint32_t>(items), 1, 1}, {group, 1, 1}}, arguments);
}

void launch_axpy(accelerator& a, int lane, kernel_id k, double factor, device_pointer x, device_pointer y,
                 std::size_t n) {
  const shape s = vector_shape(static_cast<index_t>(n));
  launch_line(a, lane, k, n, 64, {value(factor), memory(x), value(s), memory(y), value(s)});
}

}  // namespace conformance_suite
