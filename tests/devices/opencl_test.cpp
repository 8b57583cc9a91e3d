// What this file is for: what is particular to OpenCL: its plugin, its loader, parameters as the driver tells them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "conformance.hpp"
#include "devices/opencl/opencl.hpp"
#include "devices/opencl/plugin.hpp"

namespace {

using namespace conformance_suite;

class opencl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (source_->count() == 0) GTEST_SKIP() << "no OpenCL device: " << source_->remark();
    device_ = source_->open(0, 2, 0);
  }

  std::unique_ptr<accelerator_source> source_ = make_opencl_source();
  std::unique_ptr<accelerator> device_;
};

// The file that the process has opened.
std::string plugin_path() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(std::string("/") + troupe::devices::opencl::plugin_file)) return line.substr(line.find('/'));
  return {};
}

TEST_F(opencl, the_plugin_refuses_a_library_of_another_release) {
  void* plugin = ::dlopen(plugin_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  auto* entry = reinterpret_cast<troupe::devices::opencl::plugin_function*>(
      ::dlsym(plugin, troupe::devices::opencl::plugin_entry));
  ASSERT_NE(entry, nullptr) << ::dlerror();
  EXPECT_EQ(entry("troupe 0.0.0, seam 0"), nullptr);
  const std::unique_ptr<accelerator_source> mine(entry(troupe::devices::opencl::plugin_version));
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(mine->count(), source_->count());
  (void)::dlclose(plugin);
}

TEST(opencl_death, a_machine_without_drivers_counts_no_devices_and_says_why) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // the loader reads its settings once per process
  EXPECT_EXIT(
      {
        ::setenv("OCL_ICD_VENDORS", "/nowhere", 1);
        const auto source = make_opencl_source();
        const bool told = source->count() == 0 && (source->remark().starts_with("no driver (-1001") ||
                                                   source->remark().starts_with("no plugin"));
        std::exit(told ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(opencl, a_log_counts_lines_from_the_first_of_the_text) {
  if (device_->facts().model.starts_with("Oclgrind")) GTEST_SKIP() << "Oclgrind does not look at #line";
  std::string said;
  const kernel_source wrong{"wrong.k", "GPU_KERNEL void wrong(const int n) {\n  int i = no_such_word;\n}\n", "wrong"};
  EXPECT_EQ(thrown([&] { (void)device_->load(wrong); }, &said), code(errc::compile_failed));
  EXPECT_NE(said.find("wrong.k:2"), std::string::npos) << said;
  EXPECT_NE(said.find(device_->facts().name), std::string::npos) << said;
}

// Where macros hide the signature in the text, the driver still knows it.
TEST_F(opencl, the_driver_tells_the_parameters_of_a_kernel) {
  const kernel_source hidden{"hidden",
                             "#define NAME hidden\n#define NUMBER const int\n"
                             "GPU_KERNEL void NAME(GPU_GLOBAL int* to, NUMBER n) { to[GPU_GLOBAL_ID(0)] = n; }\n",
                             "hidden"};
  const kernel_id k = device_->load(hidden);
  const block on(*device_, 64 * 4);
  const auto m = memory(on.at());
  std::string said;
  for (const auto& wrong : std::vector<std::vector<kernel_argument>>{
           {}, {m}, {m, m}, {value(7), value(7)}, {m, value(7), value(7)}, {m, value(std::int64_t{7})}}) {
    EXPECT_EQ(thrown([&] { launch_line(*device_, 0, k, 64, 64, wrong); }, &said), code(errc::bad_argument));
    EXPECT_NE(said.find("hidden"), std::string::npos) << said;
  }
  launch_line(*device_, 0, k, 64, 64, {m, value(7)});
  EXPECT_EQ(content<int>(*device_, on.at(), 64), std::vector<int>(64, 7));
}

// A cl_kernel serves all lanes: its arguments are taken when the launch is enqueued.
TEST_F(opencl, launches_on_two_lanes_keep_their_own_arguments) {
  const kernel_source text{
      "set", "GPU_KERNEL void set(GPU_GLOBAL int* to, const int n) { to[GPU_GLOBAL_ID(0)] = n; }\n", "set"};
  const kernel_id k = device_->load(text);
  const std::size_t n = 4096;
  std::vector<std::unique_ptr<block>> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(std::make_unique<block>(*device_, 2 * n * 4, i % 2));
    // The second half through a view, which the launch keeps alive.
    for (const std::size_t offset : {std::size_t{0}, n * 4})
      launch_line(*device_, i % 2, k, n, 64, {memory(blocks.back()->at(offset)), value(i)});
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(content<int>(*device_, blocks[static_cast<std::size_t>(i)]->at(), 2 * n, i % 2),
              std::vector<int>(2 * n, i));
}

TEST_F(opencl, memory_in_use_outlives_its_return) {
  const std::size_t n = 1 << 18;
  std::vector<std::vector<int>> out(8, std::vector<int>(n));
  for (int i = 0; i < 8; ++i) {
    const block on(*device_, n * 4);
    fill(*device_, 0, on.at(), i, n);
    get(*device_, 0, out[static_cast<std::size_t>(i)], on.at());
  }
  finish(*device_);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], std::vector<int>(n, i));
}

TEST_F(opencl, closing_waits_for_what_is_enqueued) {
  const std::size_t n = 1 << 18;
  std::vector<int> out(n);
  void* on = device_->allocate(0, n * 4);
  ASSERT_NE(on, nullptr);
  fill(*device_, 0, {on, 0}, 5, n);
  device_->wait(1, 0, device_->record(0, false));
  get(*device_, 1, out, {on, 0});
  device_.reset();
  EXPECT_EQ(out, std::vector<int>(n, 5));
}

TEST_F(opencl, tickets_that_nobody_asks_for_are_let_go) {
  ticket last = 0;
  for (int i = 0; i < 20000; ++i) last = device_->record(0, false);
  reach(*device_, 0, last);
  EXPECT_EQ(device_->completed(0), 20000u);
}

TEST_F(opencl, copies_outside_of_memory_are_refused) {
  const block on(*device_, 1024);
  std::vector<std::byte> host(4096);
  EXPECT_EQ(thrown([&] { put(*device_, 0, on.at(), host); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { get(*device_, 0, host, on.at()); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { fill(*device_, 0, on.at(), 1, 1024); }), code(errc::bad_argument));
  fill(*device_, 0, on.at(), 3, 256);
  EXPECT_EQ(content<int>(*device_, on.at(), 256), std::vector<int>(256, 3)) << "the device goes on";
}

}  // namespace
