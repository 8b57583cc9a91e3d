// What this file is for: bodies that drive an OpenCL device themselves, with its queue and its memory objects.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#if __has_include(<CL/cl.h>)

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <troupe/troupe.hpp>

#include "tests/support/driver_leaks.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using troupe::index_t;
using test::word;

// From the loader that the plugin has opened.
template <class F>
F* function(const char* name) {
  static void* const loader = ::dlopen("libOpenCL.so.1", RTLD_NOW);
  void* const f = loader ? ::dlsym(loader, name) : nullptr;
  if (!f) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<F*>(f);
}
#define CALL(name) function<decltype(name)>(#name)

void check(cl_int code) {
  if (code != CL_SUCCESS) throw std::runtime_error("OpenCL says " + std::to_string(code));
}
cl_command_queue queue_of(const device_call& c) { return static_cast<cl_command_queue>(c.lane()); }
template <class T>
cl_mem memory_of(const view<T, 1>& v) {
  return reinterpret_cast<cl_mem>(const_cast<std::remove_const_t<T>*>(v.data()));
}

constexpr word mark = 0xabcd1234;

// b = a, by way of memory of its own; then the first four are marked.
void copy_and_mark(device_call& call, view<const word, 1> a, view<word, 1> b) {
  const std::size_t bytes = static_cast<std::size_t>(a.size(0)) * sizeof(word);
  const cl_command_queue queue = queue_of(call);
  auto* const between = static_cast<cl_mem>(call.scratch(bytes));
  check(CALL(clEnqueueCopyBuffer)(queue, memory_of(a), between, 0, 0, bytes, 0, nullptr, nullptr));
  check(CALL(clEnqueueCopyBuffer)(queue, between, memory_of(b), 0, 0, bytes, 0, nullptr, nullptr));
  check(CALL(clEnqueueFillBuffer)(queue, memory_of(b), &mark, sizeof mark, 0, 4 * sizeof mark, 0, nullptr, nullptr));
}
constexpr auto copy = kernel<in<word, 1>, out<word, 1>>("copy").on(opencl, routine<&copy_and_mark>);

constexpr auto stir = test::stir_on_gpu;

int spoils_left = 0;

// Marks the first one; but before that more than it should, and fails as often as it is to.
void spoil_and_mark(device_call& call, view<word, 1> a) {
  const bool spoils = spoils_left > 0;
  const std::size_t bytes = (spoils ? 5u : 1u) * sizeof mark;
  check(CALL(clEnqueueFillBuffer)(queue_of(call), memory_of(a), &mark, sizeof mark, 0, bytes, 0, nullptr, nullptr));
  --spoils_left;
  if (spoils) throw std::runtime_error("not this time");
}
constexpr auto halfway = kernel<inout<word, 1>>("halfway").on(opencl, routine<&spoil_and_mark>);

class gpu_routines_opencl : public testing::Test {
 protected:
  void SetUp() override {
    options o;
    o.threads = 1;
    o.devices = {{"opencl:0"}};
    o.cost_cache = "none";
    try {
      rt_.emplace(o);
    } catch (const error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  runtime& rt() { return *rt_; }

 private:
  std::optional<runtime> rt_;
};

TEST_F(gpu_routines_opencl, enqueue_on_the_queue_they_are_given_inside_the_flow_of_data) {
  auto a = rt().filled<word>({50}, tiles(50), 2), b = rt().array<word>({50}, tiles(50));
  rt().spawn(stir, update(a), word{3});
  rt().spawn(copy, read(a), write(b));
  rt().spawn(stir, update(b), word{2});
  const auto v = b.read();
  for (index_t i = 0; i < 50; ++i) {
    const auto n = static_cast<word>(i);
    ASSERT_EQ(v(i), (i < 4 ? mark : 6 + n) * 2 + n) << i;
  }
}

// A memory object begins where it begins: the part is a copy.
TEST_F(gpu_routines_opencl, see_the_part_of_a_tile_that_they_were_given) {
  auto a = rt().filled<word>({40}, tiles(40), 0), b = rt().array<word>({10}, tiles(10));
  rt().spawn(stir, update(a), word{1});
  rt().spawn(copy, read(a.sub({{20}, {30}})), write(b));
  EXPECT_EQ(b.read()(9), 29u);
  EXPECT_EQ(b.read()(0), mark);
}

TEST_F(gpu_routines_opencl, that_throw_are_tried_again_on_what_they_were_to_update) {
  spoils_left = 1;
  auto a = rt().filled<word>({50}, tiles(50), 7);
  rt().spawn(task_options{.retries = 1}, halfway, update(a)).get();
  const auto v = a.read();
  for (index_t i = 0; i < 50; ++i) ASSERT_EQ(v(i), i == 0 ? mark : 7u) << i;
}

}  // namespace

#else

TEST(gpu_routines_opencl, enqueue_on_the_queue_they_are_given) { GTEST_SKIP() << "built without OpenCL's headers"; }

#endif
