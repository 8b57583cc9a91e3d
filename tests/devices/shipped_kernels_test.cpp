// What this file is for: the kernels of the algorithms and the examples, compiled for GPUs that need not be there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/histogram_text.hpp"
#include "algorithms/linear_algebra_text.hpp"
#include "algorithms/stencil_text.hpp"
#include "devices/gpu/hip_plugin.hpp"
#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"
#include "examples/convolve/correlate.hpp"

namespace {

using namespace troupe::devices;
namespace texts = troupe::algorithms::texts;

std::vector<troupe::source> shipped() {
  std::vector<troupe::source> all{{convolution::correlate_text, "correlate"}};
  all.insert(all.end(), std::begin(texts::linear_algebra), std::end(texts::linear_algebra));
  all.insert(all.end(), std::begin(texts::stencils), std::end(texts::stencils));
  all.insert(all.end(), std::begin(texts::histograms), std::end(texts::histograms));
  return all;
}

void expect_compiles(rtc::compiler& c, const std::string& target) {
  for (const auto& s : shipped()) {
    for (const bool checked : {false, true}) {
      const auto binary = c.compile({s.entry, s.text, s.entry, checked}, target);
      const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
      EXPECT_NE(bytes.find(s.entry), std::string_view::npos) << s.entry << ", " << target;
    }
  }
}

rtc::settings without_cache() {
  auto s = rtc::settings_from_environment();
  s.cache.clear();
  return s;
}

TEST(shipped_kernels, compile_for_nvidia) {
  std::string why;
  const auto c = rtc::open_nvrtc(without_cache(), why);
  if (!c) GTEST_SKIP() << why;
  for (const char* target : {"sm_75", "sm_80", "sm_90"}) expect_compiles(*c, target);
}

TEST(shipped_kernels, compile_for_amd) {
  std::string why;
  const auto c = gpu::open_hip_compiler(without_cache(), why);
  if (!c) GTEST_SKIP() << why;
  for (const char* target : {"gfx90a", "gfx1030"}) expect_compiles(*c, target);
}

// Counts and kinds of arguments are read from the text where CUDA and HIP are concerned.
TEST(shipped_kernels, show_their_parameters) {
  for (const auto& s : shipped()) {
    const auto read = rtc::parameters_of(s.text, s.entry);
    ASSERT_TRUE(read) << s.entry;
    for (const auto& p : *read) EXPECT_NE(p.bytes, 0u) << s.entry;
  }
}

}  // namespace
