// What this file is for: run-time compilation: all kernels that ship, for each target; parameters from text; the cache.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "devices/gpu/hip_plugin.hpp"
#include "devices/kernels/kernels.hpp"
#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"
#include "gpu_suite.hpp"

namespace {

using namespace gpu_suite;

void expect_compiles(rtc::compiler& c, const std::string& target) {
  const auto has = [&](std::string_view text, std::initializer_list<std::string_view> entries) {
    for (const bool checked : {false, true}) {
      const auto binary = c.compile({"core", text, *entries.begin(), checked}, target);
      const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
      for (const auto entry : entries) EXPECT_NE(bytes.find(entry), std::string_view::npos) << entry << ", " << target;
    }
  };
  has(kernels::core, {"axpy", "block_sum", "histogram", "dgemm"});
  has(kernels::fill, {"fill"});
  has(kernels::gather, {"gather_1", "gather_2", "gather_4", "gather_8"});
  has(kernels::gathers, {"gathers_1", "gathers_2", "gathers_4", "gathers_8"});
}

void expect_refuses(rtc::compiler& c, const std::string& target) {
  EXPECT_EQ(thrown([&] {
              c.compile({"mine", "GPU_KERNEL void f() {\n  nonsense;\n}", "f"}, target);
            }),
            code(errc::compile_failed));
  EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
  EXPECT_NE(said.find("kernel f (mine) for " + target), std::string::npos) << said;
}

TEST(rtc, every_kernel_compiles_for_nvidia) {
  std::string why;
  const auto c = rtc::open_nvrtc(wishes(), why);
  if (!c) GTEST_SKIP() << why;
  for (const char* target : {"sm_75", "sm_80", "sm_90"}) expect_compiles(*c, target);
  expect_refuses(*c, "sm_90");
}

TEST(rtc, every_kernel_compiles_for_amd) {
  std::string why;
  const auto c = gpu::open_hip_compiler(wishes(), why);
  if (!c) GTEST_SKIP() << why;
  for (const char* target : {"gfx90a", "gfx1030"}) expect_compiles(*c, target);
  expect_refuses(*c, "gfx90a");
}

TEST(rtc, reads_the_parameters_of_kernels_from_their_text) {
  const auto sizes = [](std::string_view text, std::string_view entry) {
    std::string s;
    const auto found = rtc::parameters_of(text, entry);
    if (!found) return std::string("none");
    for (const auto& p : *found)
      if (p.is_memory)
        s += 'p';
      else
        s.append("v").append(std::to_string(p.bytes));
    return s;
  };
  EXPECT_EQ(sizes(kernels::core, "axpy"), "v8pv104pv104");
  EXPECT_EQ(sizes(kernels::core, "histogram"), "pv104pv104");
  EXPECT_EQ(sizes(kernels::core, "dgemm"), "v8pv104pv104v8pv104");
  EXPECT_EQ(sizes(kernels::fill, "fill"), "pv8v8v4v4v4v4v4");
  EXPECT_EQ(sizes("GPU_KERNEL void f() {}", "f"), "");
  EXPECT_EQ(sizes("GPU_KERNEL void f(void) {}", "f"), "");
  EXPECT_EQ(sizes("/* GPU_KERNEL void f(int a) */ GPU_KERNEL void f(const unsigned char a, my_struct b) {}", "f"),
            "v1v0");
  EXPECT_EQ(sizes("void f(int a) {} GPU_KERNEL void g() { f(1); }", "f"), "none");
  EXPECT_EQ(sizes("GPU_KERNEL void f(unsigned long n, long int m, unsigned k, short int h) {}", "f"), "v8v8v4v2");
}

TEST(rtc, reads_the_sizes_of_elements_from_a_text_that_shows_them) {
  const auto element = [](const std::string& before, const std::string& parameter) {
    const std::string text = before + " GPU_KERNEL void f(" + parameter + ") {}";
    const auto found = rtc::parameters_of(text, "f");
    return found && !found->empty() ? static_cast<int>(found->front().element_bytes) : -1;
  };
  EXPECT_EQ(element("", "GPU_IN(double, a)"), 8);
  EXPECT_EQ(element("", "GPU_INOUT(unsigned char, a)"), 1);
  EXPECT_EQ(element("", "GPU_OUT( long int , a )"), 8);
  EXPECT_EQ(element("", "GPU_OUT(float4, a)"), 16);
  EXPECT_EQ(element("", "GPU_OUT(float3, a)"), 0) << "targets differ";
  EXPECT_EQ(element("", "GPU_GLOBAL const unsigned short* a"), 2);
  EXPECT_EQ(element("", "GPU_GLOBAL const void* a"), 0);
  EXPECT_EQ(element("", "GPU_IN(body, a)"), 0);
  EXPECT_EQ(element("typedef struct { float x, y; } body;", "GPU_IN(body, a)"), 0);
  EXPECT_EQ(element("typedef short word; typedef word pair2;", "GPU_IN(pair2, a)"), 2);
  EXPECT_EQ(element("using word = unsigned long;", "GPU_IN(word, a)"), 8);
  EXPECT_EQ(element("#define T double\n", "GPU_IN(T, a)"), 8);
  EXPECT_EQ(element("#ifdef A\n#define T double\n#else\n#define T float\n#endif\n", "GPU_IN(T, a)"), 0);
  EXPECT_EQ(element("typedef float* word;", "GPU_IN(word, a)"), 0);
  EXPECT_EQ(element("#define T T\n", "GPU_IN(T, a)"), 0);
}

// Functions of a text that take arrays, too.
TEST(rtc, texts_that_pass_arrays_on_compile_checked_and_unchecked) {
  constexpr std::string_view text = R"(
GPU_FUNCTION float first(GPU_IN(float, a)) { return GPU_AT1(a, GPU_LO(a, 0)); }
GPU_KERNEL void copy(GPU_IN(float, a), GPU_OUT(float, b)) { GPU_AT1(b, GPU_LO(b, 0)) = first(GPU_PASS(a)); }
)";
  std::string why;
  std::vector<std::pair<std::unique_ptr<rtc::compiler>, const char*>> all;
  all.emplace_back(rtc::open_nvrtc(wishes(), why), "sm_90");
  all.emplace_back(rtc::open_host_compiler(wishes(), why), "host");
  for (const auto& [compiler, target] : all)
    for (const bool checked : {false, true})
      if (compiler) {
        EXPECT_FALSE(compiler->compile({"copy", text, "copy", checked}, target).empty()) << target;
      }
}

TEST(rtc, names_the_arrays_among_the_parameters) {
  const auto found = rtc::parameters_of(kernels::core, "histogram");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 4u);
  EXPECT_EQ((*found)[0].array, "");
  EXPECT_EQ((*found)[1].array, "x");
  EXPECT_EQ((*found)[3].array, "counts");
}

TEST(rtc, the_cache_stays_within_its_bytes) {
  const folder f;
  const rtc::kernel_cache cache(f.path / "c", 10000);
  const std::vector<std::byte> binary(3000);
  for (int i = 0; i < 10; ++i) cache.store("key" + std::to_string(i), binary);
  std::uint64_t sum = 0;
  for (const auto& e : fs::directory_iterator(f.path / "c")) sum += e.file_size();
  EXPECT_LE(sum, 10100u);
  EXPECT_TRUE(cache.find("key9"));
  EXPECT_FALSE(cache.find("nobody"));
}

TEST(rtc, the_cache_lies_where_the_xdg_specification_says) {
  const auto s = rtc::settings_from_environment();
  if (s.cache.empty()) GTEST_SKIP() << "neither XDG_CACHE_HOME nor HOME is set";
  EXPECT_EQ(s.cache.filename(), "troupe");
}

}  // namespace
