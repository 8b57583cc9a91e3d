// What this file is for: two mistakes that oclgrind.sh expects to be found; not run otherwise.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "conformance.hpp"
#include "devices/opencl/opencl.hpp"

namespace conformance_suite {

namespace {

void run(const char* text) {
  const auto source = make_opencl_source();
  if (source->count() == 0) GTEST_SKIP() << source->remark();
  const auto a = source->open(0, 1, 0);
  const block b(*a, 64 * 4);
  launch_line(*a, 0, a->load({"planted", text, "planted"}), 64, 64, {memory(b.at()), value(vector_shape(64))});
  finish(*a);
  EXPECT_EQ(content<int>(*a, b.at(), 64).size(), 64u);
}

TEST(planted, DISABLED_race) {
  run("GPU_KERNEL void planted(GPU_OUT(int, a)) { GPU_AT1(a, GPU_LOCAL_ID(0) / 2) = GPU_LOCAL_ID(0); }");
}

TEST(planted, DISABLED_uninitialized) {
  run("GPU_KERNEL void planted(GPU_INOUT(int, a)) { if (GPU_AT1(a, 5) > 3) GPU_AT1(a, 6) = 1; }");
}

}  // namespace

}  // namespace conformance_suite
