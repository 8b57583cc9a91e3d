// What this file is for: every device's kernels, against loops on the host; arguments, shapes and texts that are wrong.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <numeric>
#include <random>

#include "conformance.hpp"

namespace conformance_suite {

namespace {

// Memory is written by copies here: Oclgrind, which looks for reads before writes, does not count fills.

std::vector<double> random_doubles(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> in(-1, 1);
  std::vector<double> v(n);
  for (auto& x : v) x = in(random);
  return v;
}

TEST_P(conformance, axpy_agrees_with_the_host) {
  const auto a = open();
  const kernel_id k = load_core(*a, "axpy");
  for (const std::size_t n : {1, 63, 64, 65, 1000, 100000}) {
    const auto x = random_doubles(n, 1), y = random_doubles(n, 2);
    const block dx(*a, n * 8), dy(*a, n * 8);
    put(*a, 0, dx.at(), x);
    put(*a, 0, dy.at(), y);
    launch_axpy(*a, 0, k, 1.5, dx.at(), dy.at(), n);
    const auto out = content<double>(*a, dy.at(), n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], y[i] + 1.5 * x[i], 1e-15) << i << " of " << n;
  }
}

// Coordinates, strides and offset of the shape, with the rest of the memory untouched.
TEST_P(conformance, axpy_keeps_to_the_box_of_its_arguments) {
  const auto a = open();
  const kernel_id k = load_core(*a, "axpy");
  const std::size_t n = 50, total = 400;
  const auto x = random_doubles(total, 3), y = random_doubles(total, 4);
  const block dx(*a, total * 8), dy(*a, total * 8);
  put(*a, 0, dx.at(), x);
  put(*a, 0, dy.at(), y);
  shape sx = vector_shape(100, 1000 - 25), sy = vector_shape(n, 1000);
  sx.offset = 30;
  sy.stride[0] = 3;
  sy.offset = 7;
  launch_line(*a, 0, k, n, 64, {value(2.0), memory(dx.at()), value(sx), memory(dy.at()), value(sy)});
  auto expected = y;
  for (std::size_t i = 0; i < n; ++i) expected[7 + 3 * i] += 2.0 * x[30 + 25 + i];
  const auto out = content<double>(*a, dy.at(), total);
  for (std::size_t i = 0; i < total; ++i) ASSERT_NEAR(out[i], expected[i], 1e-15) << i;
}

TEST_P(conformance, block_sum_agrees_with_the_host) {
  const auto a = open();
  const kernel_id k = load_core(*a, "block_sum");
  for (const std::size_t n : {1, 64, 65, 1000, 6400}) {
    const std::size_t groups = (n + 63) / 64;
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), 1.0f);
    const block dx(*a, n * 4), ds(*a, groups * 4);
    put(*a, 0, dx.at(), x);
    const shape sx = vector_shape(static_cast<index_t>(n)), ss = vector_shape(static_cast<index_t>(groups));
    launch_line(*a, 0, k, n, 64, {memory(dx.at()), value(sx), memory(ds.at()), value(ss)});
    const auto out = content<float>(*a, ds.at(), groups);
    for (std::size_t g = 0; g < groups; ++g) {
      float sum = 0;
      for (std::size_t i = g * 64; i < std::min(n, g * 64 + 64); ++i) sum += x[i];
      ASSERT_FLOAT_EQ(out[g], sum) << "group " << g << " of " << groups;  // whole numbers below 2^24
    }
  }
}

TEST_P(conformance, histogram_counts_every_value) {
  const auto a = open();
  const kernel_id k = load_core(*a, "histogram");
  const std::size_t n = 20000, bins = 37;
  std::mt19937 random(5);
  std::vector<int> x(n), expected(bins, 2);
  for (auto& v : x) {
    v = static_cast<int>(random() % 40);  // some are in no bin
    if (v < 37) ++expected[static_cast<std::size_t>(v)];
  }
  const block dx(*a, n * 4), dc(*a, bins * 4);
  put(*a, 0, dx.at(), x);
  const std::vector<int> before(bins, 2);
  put(*a, 0, dc.at(), before);
  const shape sx = vector_shape(static_cast<index_t>(n)), sc = vector_shape(static_cast<index_t>(bins));
  launch_line(*a, 0, k, n, 128, {memory(dx.at()), value(sx), memory(dc.at()), value(sc)});
  EXPECT_EQ(content<int>(*a, dc.at(), bins), expected);
}

TEST_P(conformance, dgemm_agrees_with_the_host) {
  const auto a = open();
  const kernel_id k = load_core(*a, "dgemm");
  for (const auto& [m, n, depth, beta] : {std::tuple{16, 16, 16, 0.0}, {33, 17, 40, 0.5}, {1, 50, 3, 0.0}}) {
    const index_t pa = depth + 3, pb = n + 1, pc = n + 5;
    const auto um = static_cast<std::size_t>(m), un = static_cast<std::size_t>(n);
    const auto A = random_doubles(um * static_cast<std::size_t>(pa), 6);
    const auto B = random_doubles(static_cast<std::size_t>(depth * pb), 7);
    auto expected = random_doubles(um * static_cast<std::size_t>(pc), 8);
    const auto before = expected;
    const block da(*a, A.size() * 8), db(*a, B.size() * 8), dc(*a, before.size() * 8);
    put(*a, 0, da.at(), A);
    put(*a, 0, db.at(), B);
    if (beta != 0) put(*a, 0, dc.at(), before);  // else it is not read, whatever is in it
    const shape sa = matrix_shape(m, depth, pa), sb = matrix_shape(depth, n, pb), sc = matrix_shape(m, n, pc);
    a->launch(0, k, {{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(m), 1}, {16, 16, 1}},
              std::vector{value(1.25), memory(da.at()), value(sa), memory(db.at()), value(sb), value(beta),
                          memory(dc.at()), value(sc)});
    const auto out = content<double>(*a, dc.at(), before.size());
    for (std::size_t i = 0; i < um; ++i)
      for (std::size_t j = 0; j < un; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < static_cast<std::size_t>(depth); ++l)
          sum += A[i * static_cast<std::size_t>(pa) + l] * B[l * static_cast<std::size_t>(pb) + j];
        const std::size_t at = i * static_cast<std::size_t>(pc) + j;
        ASSERT_NEAR(out[at], 1.25 * sum + (beta != 0 ? beta * before[at] : 0), 1e-13) << i << ", " << j;
      }
  }
}

constexpr std::string_view ids_text = R"(
GPU_KERNEL void ids(GPU_OUT(int, to), const int width, const int height) {
  int x = GPU_GLOBAL_ID(0), y = GPU_GLOBAL_ID(1), z = GPU_GLOBAL_ID(2);
  if (x < width && y < height && z < GPU_SIZE(to, 0) / (width * height))
    GPU_AT1(to, (z * height + y) * width + x) = x + 100 * y + 10000 * z + 1000000 * (GPU_LOCAL_ID(0) +
        GPU_LOCAL_SIZE(0) * GPU_GROUP_ID(0) - x + GPU_LOCAL_ID(1) + GPU_LOCAL_SIZE(1) * GPU_GROUP_ID(1) - y);
}
)";

TEST_P(conformance, work_items_know_their_place_in_three_dimensions) {
  const auto a = open();
  const kernel_id k = a->load({"ids", ids_text, "ids"});
  const int w = 13, h = 7, d = 5;
  const block on(*a, w * h * d * 4);
  const shape s = vector_shape(w * h * d);
  a->launch(0, k, {{w, h, d}, {4, 2, 3}}, std::vector{memory(on.at()), value(s), value(w), value(h)});
  std::vector<int> expected;
  for (int z = 0; z < d; ++z)
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) expected.push_back(x + 100 * y + 10000 * z);
  EXPECT_EQ(content<int>(*a, on.at(), expected.size()), expected);
}

constexpr std::string_view values_text = R"(
GPU_KERNEL void values(const char a, const double b, const short c, const int d, GPU_OUT(double, to), const float e,
                       const long f, const unsigned char g) {
  GPU_AT1(to, 0) = a;
  GPU_AT1(to, 1) = b;
  GPU_AT1(to, 2) = c;
  GPU_AT1(to, 3) = d;
  GPU_AT1(to, 4) = e;
  GPU_AT1(to, 5) = (double)f;
  GPU_AT1(to, 6) = g;
}
)";

TEST_P(conformance, values_of_every_size_arrive) {
  const auto a = open();
  const kernel_id k = a->load({"values", values_text, "values"});
  const block on(*a, 7 * 8);
  {
    // The arguments are copied at once.
    std::int8_t va = -3;
    double vb = 0.25;
    std::int16_t vc = -300;
    std::int32_t vd = 70000;
    float ve = 1.5f;
    std::int64_t vf = std::int64_t{1} << 40;
    std::uint8_t vg = 200;
    shape s = vector_shape(7);
    launch_line(
        *a, 0, k, 1, 1,
        {value(va), value(vb), value(vc), value(vd), memory(on.at()), value(s), value(ve), value(vf), value(vg)});
    va = 0, vb = 0, vc = 0, vd = 0, ve = 0, vf = 0, vg = 0, s = {};
  }
  EXPECT_EQ(content<double>(*a, on.at(), 7), (std::vector<double>{-3, 0.25, -300, 70000, 1.5, 1099511627776.0, 200}));
}

TEST_P(conformance, memory_may_be_passed_from_an_offset_on) {
  const auto a = open();
  const kernel_id k = load_core(*a, "axpy");
  const std::size_t n = 64, align = std::max<std::size_t>(GetParam().argument_align, 8);
  const block on(*a, 8192);
  const std::vector<double> before(1024, 1.0);
  put(*a, 0, on.at(), before);
  auto expected = before;
  const std::size_t offset = 4096 + align;
  launch_axpy(*a, 0, k, 3, on.at(), on.at(offset), n);
  for (std::size_t i = 0; i < n; ++i) expected[offset / 8 + i] += 3;
  const auto out = content<double>(*a, on.at(), 1024);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], expected[i]) << i;
  if (GetParam().argument_align > 8) {
    std::string said;
    EXPECT_EQ(thrown([&] { launch_axpy(*a, 0, k, 3, on.at(), on.at(8), n); }, &said), code(errc::bad_argument));
    EXPECT_NE(said.find("axpy"), std::string::npos) << said;
  }
}

TEST_P(conformance, the_same_source_gives_the_same_kernel) {
  const auto a = open();
  const std::string copy(kernels::core);
  const kernel_id k = load_core(*a, "axpy");
  EXPECT_EQ(a->load({"core", copy, "axpy"}), k);
  EXPECT_NE(load_core(*a, "histogram"), k);
}

TEST_P(conformance, a_text_that_does_not_compile_gives_its_log) {
  const auto a = open();
  std::string said;
  const kernel_source wrong{"wrong.k", "\nGPU_KERNEL void wrong(const int n) { int i = no_such_word; }\n", "wrong"};
  EXPECT_EQ(thrown([&] { (void)a->load(wrong); }, &said), code(errc::compile_failed));
  EXPECT_NE(said.find("no_such_word"), std::string::npos) << said;
  EXPECT_NE(said.find("kernel wrong"), std::string::npos) << said;
  (void)load_core(*a, "axpy");  // the device goes on
}

TEST_P(conformance, an_entry_that_is_not_in_the_text_is_told) {
  const auto a = open();
  std::string said;
  EXPECT_EQ(thrown([&] { (void)load_core(*a, "no_such_entry"); }, &said), code(errc::compile_failed));
  EXPECT_NE(said.find("no_such_entry"), std::string::npos) << said;
  EXPECT_NE(said.find("there is no function 'no_such_entry' in the text, which has: axpy, block_sum, histogram, dgemm"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  (void)load_core(*a, "axpy");
}

TEST_P(conformance, wrong_arguments_are_refused_with_the_name_of_the_kernel) {
  const auto a = open();
  const kernel_id k = load_core(*a, "axpy");
  const block on(*a, 64 * 8);
  const shape s = vector_shape(64);
  const auto m = memory(on.at());
  const double factor = 1;
  const float narrow = 1;
  const std::vector<std::pair<const char*, std::vector<kernel_argument>>> wrong{
      {"none", {}},
      {"too few", {value(factor), m, value(s), m}},
      {"too many", {value(factor), m, value(s), m, value(s), value(s)}},
      {"a value for memory", {value(factor), value(factor), value(s), m, value(s)}},
      {"memory for a value", {m, m, value(s), m, value(s)}},
      {"a value of another size", {value(narrow), m, value(s), m, value(s)}},
  };
  for (const auto& [what, arguments] : wrong) {
    std::string said;
    EXPECT_EQ(thrown([&] { launch_line(*a, 0, k, 64, 64, arguments); }, &said), code(errc::bad_argument)) << what;
    EXPECT_NE(said.find("axpy"), std::string::npos) << what << ": " << said;
  }
  EXPECT_EQ(thrown([&] { launch_line(*a, 0, k + 1000, 64, 64, {}); }), code(errc::bad_argument));
  const std::vector<double> before(64, 2.0);
  put(*a, 0, on.at(), before);
  launch_axpy(*a, 0, k, 1, on.at(), on.at(), 64);
  EXPECT_EQ(content<double>(*a, on.at(), 64), std::vector<double>(64, 4.0)) << "the device goes on";
}

TEST_P(conformance, groups_that_cannot_be_are_refused) {
  const auto a = open();
  const kernel_id k = load_core(*a, "axpy");
  const block on(*a, 64 * 8);
  const std::vector<double> before(64, 1.0);
  put(*a, 0, on.at(), before);
  const shape s = vector_shape(64);
  const std::vector<kernel_argument> arguments{value(1.0), memory(on.at()), value(s), memory(on.at()), value(s)};
  using three = std::array<std::uint32_t, 3>;
  for (const three group : {three{0, 1, 1}, three{64, 0, 1}, three{1 << 20, 1, 1}, three{4096, 4096, 64}}) {
    std::string said;
    EXPECT_EQ(thrown(
                  [&] {
                    a->launch(0, k, {{64, 1, 1}, group}, arguments);
                  },
                  &said),
              code(errc::bad_argument))
        << group[0] << "x" << group[1] << "x" << group[2];
    EXPECT_NE(said.find("axpy"), std::string::npos) << said;
  }
  EXPECT_EQ(thrown([&] { a->launch(0, k, {{0, 1, 1}, {64, 1, 1}}, arguments); }), -1) << "nothing to run is no error";
  EXPECT_EQ(content<double>(*a, on.at(), 64), before) << "something ran";
}

}  // namespace

}  // namespace conformance_suite
