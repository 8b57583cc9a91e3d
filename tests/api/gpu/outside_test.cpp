// What this file is for: kernels as text that touch elements outside of their boxes: told with what helps to find them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using test::caught;
using test::error_of;
using troupe::index_t;
using word = std::uint32_t;

// b = the element of a that lies `far` further, whether it is there or not.
constexpr auto look = kernel<in<word, 1>, out<word, 1>, std::int64_t>("look").on(gpu, source{R"(
GPU_KERNEL void look(GPU_IN(unsigned, a), GPU_OUT(unsigned, b), const long far) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(a, i + far);
})",
                                                                                             "look"});
constexpr auto put = kernel<out<word, 2>, std::int64_t, std::int64_t>("put").on(gpu, source{R"(
GPU_KERNEL void put(GPU_OUT(unsigned, picture), const long y, const long x) {
  if (GPU_GLOBAL_ID(0) == 0 && GPU_GLOBAL_ID(1) == 0) GPU_AT2(picture, y, x) = 7;
})",
                                                                                            "put"});
// Once more with work-items that wait for each other.
constexpr auto together = kernel<inout<word, 1>, std::int64_t>("together")
                              .on(gpu, source{R"(
GPU_KERNEL void together(GPU_INOUT(unsigned, a), const long far) {
  GPU_LOCAL_ARRAY(unsigned, mine, 256);
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  mine[GPU_LOCAL_ID(0)] = i < GPU_HI(a, 0) ? GPU_AT1(a, i + far) : 0;
  GPU_BARRIER();
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = mine[GPU_LOCAL_ID(0)] + 1;
})",
                                              "together"});

// A device of each kind that is there; `sim` checks in any case.
class gpu_outside : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const auto& l : list_devices())
      if (std::string(GetParam()).starts_with(l.kind_name + ":") && l.devices.empty())
        GTEST_SKIP() << "no " << l.kind_name << ": " << l.remark;
    options o;
    o.threads = 1;
    o.devices = {{GetParam()}};
    o.cost_cache = "none";
    o.check_kernels = std::string(GetParam()) != "sim:0";  // sim:1: as CUDA and HIP do it
    rt_.emplace(o);
  }
  task_options here() const { return {.where = scope::gpu()}; }
  template <class Call>
  caught failure_of(Call call) {
    const auto e = error_of(call);
    EXPECT_TRUE(e) << "it ran";
    return e.value_or(caught{});
  }
  static void expect_told(const caught& e, std::initializer_list<const char*> parts) {
    EXPECT_EQ(e.code, errc::out_of_bounds) << e.text;
    for (const char* part : parts) EXPECT_TRUE(e.says(part)) << "'" << part << "' is not in: " << e.text;
  }
  // Tasks that do nothing wrong run as ever.
  void expect_well() {
    auto a = rt_->filled<word>({1000}, tiles(100), 3), b = rt_->array<word>({1000}, tiles(100));
    rt_->for_each(here(), grid(1000), look, read(a), write(b), 0);
    EXPECT_EQ(b.read()(999), 3u);
  }
  std::optional<runtime> rt_;
};

TEST_P(gpu_outside, reads_are_told_with_kernel_argument_element_and_box) {
  auto a = rt_->filled<word>({300}, tiles(100), 1), b = rt_->array<word>({300}, tiles(100));
  expect_told(failure_of([&] {
                rt_->spawn(here(), look, read(a.sub({{0}, {100}})), write(b.sub({{0}, {100}})), 1).get();
              }),
              {"look", GetParam(), "argument 'a'", "outside", "[0,100)", "(100)"});
  expect_well();
  expect_told(failure_of([&] {
                rt_->spawn(here(), look, read(a.sub({{100}, {200}})), write(b.sub({{100}, {200}})), -1).get();
              }),
              {"argument 'a'", "(-1)"});
  expect_well();
}

TEST_P(gpu_outside, elements_far_away_do_not_end_the_process) {
  auto a = rt_->filled<word>({100}, tiles(100), 1), b = rt_->array<word>({100}, tiles(100));
  for (const std::int64_t far : {std::int64_t{1} << 20, std::int64_t{1} << 40, -(std::int64_t{1} << 45)})
    expect_told(failure_of([&] { rt_->spawn(here(), look, read(a), write(b), far).get(); }), {"look", "argument 'a'"});
  expect_well();
}

TEST_P(gpu_outside, writes_are_told_and_change_nothing_else) {
  auto other = rt_->filled<word>({64}, tiles(64), 5);
  auto p = rt_->array<word>({20, 30}, tiles(20, 30), "picture of nobody");
  rt_->spawn(here(), put, write(p), 19, 29).get();
  expect_told(failure_of([&] { rt_->spawn(here(), put, write(p), 19, 30).get(); }),
              {"put", "argument 'picture'", "(19,30)", "[0,20) x [0,30)"});
  expect_told(failure_of([&] { rt_->spawn(here(), put, write(p), -1, 0).get(); }), {"(-1,0)"});
  EXPECT_EQ(other.read()(63), 5u);
  expect_well();
}

TEST_P(gpu_outside, work_items_that_wait_for_others_are_told_too) {
  auto a = rt_->filled<word>({500}, tiles(500), 1);
  rt_->spawn(here(), together, update(a), 0).get();
  EXPECT_EQ(a.read()(499), 2u);
  expect_told(failure_of([&] { rt_->spawn(here(), together, update(a), 400).get(); }),
              {"together", "argument 'a'", "[0,500)"});
  expect_well();
}

// Nobody has waited between them, so what follows may have run on wrong data by the time that is known.
TEST_P(gpu_outside, what_follows_on_the_device_fails_and_what_is_beside_it_does_not) {
  for (int round = 0; round < 20; ++round) {
    auto a = rt_->filled<word>({100}, tiles(100), 1), b = rt_->array<word>({100}, tiles(100)),
         c = rt_->array<word>({100}, tiles(100)), d = rt_->array<word>({100}, tiles(100));
    auto wrong = rt_->spawn(here(), look, read(a), write(b), 50);
    auto behind = rt_->spawn(here(), look, read(b), write(c), 0);
    auto last = rt_->spawn(here(), look, read(c), write(d), 0);
    auto beside = rt_->spawn(here(), look, read(a), write(b), 0);  // overwrites what went wrong
    auto after = rt_->spawn(here(), look, read(b), write(c), 0);
    expect_told(failure_of([&] { wrong.get(); }), {"look"});
    EXPECT_EQ(test::code_of([&] { behind.get(); }), errc::dependency_failed);
    EXPECT_EQ(test::code_of([&] { last.get(); }), errc::dependency_failed);
    EXPECT_EQ(test::code_of([&] { beside.get(); }), std::nullopt);
    EXPECT_EQ(test::code_of([&] { after.get(); }), std::nullopt);
    EXPECT_EQ(c.read()(99), 1u);
    EXPECT_EQ(test::code_of([&] { (void)d.read(); }), errc::dependency_failed);
  }
  expect_well();
}

// More of them are sent there while the first ones are found to be of no use.
TEST_P(gpu_outside, a_long_row_that_follows_fails_to_its_last) {
  for (int round = 0; round < 20; ++round) {
    std::vector<array<word, 1>> row;
    for (int i = 0; i < 40; ++i) row.push_back(rt_->filled<word>({100}, tiles(100), 1));
    std::vector<future<void>> follow;
    auto wrong = rt_->spawn(here(), look, read(row[0]), write(row[1]), 50);
    for (std::size_t i = 2; i < row.size(); ++i)
      follow.push_back(rt_->spawn(here(), look, read(row[i - 1]), write(row[i]), 0));
    expect_told(failure_of([&] { wrong.get(); }), {"look"});
    for (std::size_t i = 0; i < follow.size(); ++i)
      EXPECT_EQ(test::code_of([&] { follow[i].get(); }), errc::dependency_failed) << "number " << i + 2;
    EXPECT_EQ(test::code_of([&] { (void)row.back().read(); }), errc::dependency_failed);
  }
  expect_well();
}

TEST_P(gpu_outside, recorded_graphs_fail_each_time_they_are_run) {
  auto a = rt_->filled<word>({100}, tiles(100), 1), b = rt_->array<word>({100}, tiles(100));
  const auto record = [&](std::int64_t far) {
    return rt_->record([&](recorder& r) {
      r.for_each(grid(100).chunks(100), look, read(a), write(b), std::int64_t{0});
      r.spawn({.name = "second"}, look, read(a), write(b), std::int64_t{far});
    });
  };
  auto right = record(0), wrong = record(1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(test::code_of([&] { rt_->run(here(), right).get(); }), std::nullopt);
    const auto e = failure_of([&] { rt_->run(here(), wrong).get(); });
    expect_told(e, {"look", "argument 'a'", "task 'second' of 'graph run' failed"});
    EXPECT_EQ(e.root, "second");
  }
  expect_well();
}

INSTANTIATE_TEST_SUITE_P(devices, gpu_outside, testing::Values("sim:0", "sim:1", "opencl:0", "cuda:0", "hip:0"),
                         [](const auto& device) {
                           const std::string name = device.param;
                           return name == "sim:1" ? "sim_with_notes" : name.substr(0, name.find(':'));
                         });

}  // namespace
