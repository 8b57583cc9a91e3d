// What this file is for: the GPU backend on a software GPU that each test starts anew.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "devices/gpu/gpu.hpp"
#include "devices/kernels/kernels.hpp"
#include "devices/rtc/compiler.hpp"
#include "devices/sim/sim.h"

namespace gpu_suite {

using namespace troupe::devices;
using troupe::errc;
using troupe::error;
using troupe::index_t;
namespace fs = std::filesystem;

/// The code of the error that the call throws; its text is kept in `said`.
inline std::string said;
template <class Call>
int thrown(Call call) {
  try {
    call();
  } catch (const error& e) {
    said = e.what();
    return static_cast<int>(e.code());
  }
  return -1;
}
inline int code(errc c) { return static_cast<int>(c); }

/// A folder that goes with the test.
struct folder {
  fs::path path;
  folder() {
    std::string name = (fs::temp_directory_path() / "troupe-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// Kernels that were compiled by an earlier test of this program are not compiled again.
inline rtc::settings wishes() {
  static const folder cache;
  auto s = rtc::settings_from_environment();
  s.cache = cache.path / "troupe";
  return s;
}

inline void finish(accelerator& a, int lane) {
  const ticket t = a.record(lane, false);
  while (a.completed(lane) < t) ::usleep(50);
}

template <class T>
kernel_argument value(const T& v) {
  return {false, {}, std::as_bytes(std::span(&v, 1))};
}
inline kernel_argument memory(void* p) { return {true, {p, 0}, {}}; }

inline kernels::shape shape_of(std::initializer_list<index_t> sizes) {
  kernels::shape s;
  s.hi = {1, 1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), s.hi.begin());
  index_t step = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    s.stride[static_cast<std::size_t>(d)] = step;
    step *= s.hi[static_cast<std::size_t>(d)];
  }
  return s;
}

inline const strides line{1, 1, 1, 1};

/// Every test starts the software GPU anew.
class gpu_sim : public testing::Test {
 protected:
  void SetUp() override { configure({}); }
  void TearDown() override {
    open.reset();
    configure({});
  }
  static void configure(troupe::soft_gpu::sim_options o) {
    ASSERT_EQ(troupe::soft_gpu::simConfigure(std::move(o)), troupe::soft_gpu::simSuccess);
  }
  accelerator& device(int lanes = 2, std::uint64_t limit = 0) {
    open = make_sim_source(wishes())->open(0, lanes, limit);
    return *open;
  }
  template <class T>
  void* put(const std::vector<T>& host) {
    void* p = open->allocate(0, host.size() * sizeof(T));
    open->copy_in(0, {p, 0}, line, reinterpret_cast<const std::byte*>(host.data()), line,
                  {1, 1, 1, static_cast<index_t>(host.size())}, sizeof(T));
    return p;
  }
  template <class T>
  std::vector<T> get(void* p, std::size_t n, int lane = 0) {
    std::vector<T> host(n);
    open->copy_out(lane, reinterpret_cast<std::byte*>(host.data()), line, {p, 0}, line,
                   {1, 1, 1, static_cast<index_t>(n)}, sizeof(T));
    finish(*open, lane);
    return host;
  }
  std::unique_ptr<accelerator> open;
};

}  // namespace gpu_suite
