// What this file is for: the GPU backend on the software GPU, the absence of GPUs, and kernels compiled for every target.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include <troupe/error.hpp>

#include "devices/gpu/copy_plan.hpp"
#include "devices/gpu/gpu.hpp"
#include "devices/gpu/hip_plugin.hpp"
#include "devices/kernels/kernels.hpp"
#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"
#include "devices/sim/sim.h"

namespace {

using namespace troupe::devices;
using troupe::errc;
using troupe::error;
using troupe::index_t;
using four = std::array<index_t, troupe::rank_max>;
namespace fs = std::filesystem;

// The code of the error that the call throws; its text is kept in `said`.
std::string said;
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
int code(errc c) { return static_cast<int>(c); }

// A folder that goes with the test.
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

// Kernels that were compiled by an earlier test of this program are not compiled again.
rtc::settings wishes() {
  static const folder cache;
  auto s = rtc::settings_from_environment();
  s.cache = cache.path / "troupe";
  return s;
}

void finish(accelerator& a, int lane) {
  const ticket t = a.record(lane, false);
  while (a.completed(lane) < t) ::usleep(50);
}

template <class T>
kernel_argument value(const T& v) {
  return {false, {}, std::as_bytes(std::span(&v, 1))};
}
kernel_argument memory(void* p) { return {true, {p, 0}, {}}; }

kernels::shape shape_of(std::initializer_list<index_t> sizes) {
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

const strides line{1, 1, 1, 1};

// Every test starts the software GPU anew.
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

TEST_F(gpu_sim, tells_what_it_is) {
  const auto source = make_sim_source(wishes());
  EXPECT_EQ(source->kind(), troupe::device_kind::sim);
  EXPECT_EQ(source->count(), 2);
  const auto a = source->open(1, 3, 1 << 20);
  EXPECT_EQ(a->facts().name, "sim:1");
  EXPECT_EQ(a->facts().index, 1);
  EXPECT_EQ(a->facts().lanes, 3);
  EXPECT_EQ(a->facts().memory_bytes, 1u << 20);
  EXPECT_FALSE(a->facts().identity.empty());
  EXPECT_EQ(thrown([&] { source->open(2, 1, 0); }), code(errc::bad_argument));
}

TEST_F(gpu_sim, copies_strided_blocks_of_up_to_4_dimensions_as_a_loop_over_elements_does) {
  auto& a = device();
  std::mt19937 random(7);
  const std::size_t room = 4096;
  for (int round = 0; round < 200; ++round) {
    four n, ts, fs;
    for (auto& c : n) c = random() % 3 == 0 ? 1 : 1 + static_cast<index_t>(random() % 5);
    for (auto* s : {&ts, &fs}) {
      index_t step = random() % 4 == 0 ? 2 : 1;
      for (int d = 3; d >= 0; --d) {
        (*s)[static_cast<std::size_t>(d)] = step;
        step *= n[static_cast<std::size_t>(d)] + static_cast<index_t>(random() % 2);
      }
    }
    std::vector<std::int32_t> from(room), back(room, -1), expected(room, -1);
    std::iota(from.begin(), from.end(), round * 10000);
    for (index_t i = 0; i < n[0]; ++i)
      for (index_t j = 0; j < n[1]; ++j)
        for (index_t k = 0; k < n[2]; ++k)
          for (index_t l = 0; l < n[3]; ++l)
            expected[static_cast<std::size_t>(i * ts[0] + j * ts[1] + k * ts[2] + l * ts[3])] =
                from[static_cast<std::size_t>(i * fs[0] + j * fs[1] + k * fs[2] + l * fs[3])];
    // In strided, within the device strided, out strided: each step lays the elements out another way.
    const four dense{n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    void* one = a.allocate(0, room * 4);
    void* two = a.allocate(0, room * 4);
    a.copy_in(0, {one, 64}, dense, reinterpret_cast<const std::byte*>(from.data()), fs, n, 4);
    a.copy(0, {two, 0}, ts, {one, 64}, dense, n, 4);
    a.copy_out(0, reinterpret_cast<std::byte*>(back.data()), ts, {two, 0}, ts, n, 4);
    finish(a, 0);
    ASSERT_EQ(back, expected) << "round " << round;
    a.deallocate(0, one);
    a.deallocate(0, two);
  }
}

TEST_F(gpu_sim, nothing_is_copied_where_a_count_is_zero) {
  auto& a = device();
  EXPECT_NO_THROW(a.copy_in(0, {nullptr, 0}, line, nullptr, line, {4, 0, 4, 4}, 8));
  finish(a, 0);
}

TEST_F(gpu_sim, fills_with_elements_of_every_size) {
  auto& a = device();
  for (std::size_t element = 1; element <= 16; ++element)
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
      std::vector<std::uint8_t> v(element), expected;
      std::iota(v.begin(), v.end(), static_cast<std::uint8_t>(1));
      for (std::size_t i = 0; i < count; ++i) expected.insert(expected.end(), v.begin(), v.end());
      void* p = a.allocate(0, element * count);
      a.fill(0, {p, 0}, reinterpret_cast<const std::byte*>(v.data()), element, count);
      std::fill(v.begin(), v.end(), std::uint8_t{0});  // read at once
      ASSERT_EQ(get<std::uint8_t>(p, element * count), expected) << element << " x " << count;
      a.deallocate(0, p);
    }
}

TEST_F(gpu_sim, the_fill_kernel_repeats_its_pattern) {
  auto& a = device();
  void* p = a.allocate(0, 400);
  const std::int64_t words = 100, step = 64;
  const int period = 3;
  const std::uint32_t w[4] = {11, 22, 33, 44};
  const auto id = a.load({"fill", kernels::fill, "fill"});
  a.launch(0, id, {{64, 1, 1}, {32, 1, 1}},
           std::array{memory(p), value(words), value(step), value(period), value(w[0]), value(w[1]), value(w[2]),
                      value(w[3])});
  const auto got = get<std::uint32_t>(p, 100);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], w[i % 3]) << i;
}

TEST_F(gpu_sim, runs_axpy) {
  auto& a = device();
  std::vector<double> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0);
  std::iota(y.begin(), y.end(), 5.0);
  void *dx = put(x), *dy = put(y);
  const auto shape = shape_of({1000});
  const double factor = 2.5;
  const auto id = a.load({"core", kernels::core, "axpy"});
  EXPECT_EQ(a.load({"core", kernels::core, "axpy"}), id);
  a.launch(0, id, {{1000, 1, 1}, {128, 1, 1}},
           std::array{value(factor), memory(dx), value(shape), memory(dy), value(shape)});
  const auto got = get<double>(dy, 1000);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], y[i] + factor * x[i]) << i;
}

TEST_F(gpu_sim, runs_block_sum_with_local_memory_and_barriers) {
  auto& a = device();
  std::vector<float> x(200);
  std::iota(x.begin(), x.end(), 1.0f);
  void *dx = put(x), *sums = a.allocate(0, 4 * sizeof(float));
  const auto sx = shape_of({200}), ss = shape_of({4});
  a.launch(0, a.load({"core", kernels::core, "block_sum"}), {{200, 1, 1}, {64, 1, 1}},
           std::array{memory(dx), value(sx), memory(sums), value(ss)});
  const auto got = get<float>(sums, 4);
  for (std::size_t g = 0; g < 4; ++g) {
    float sum = 0;
    for (std::size_t i = g * 64; i < std::min<std::size_t>(200, (g + 1) * 64); ++i) sum += x[i];
    EXPECT_EQ(got[g], sum) << g;
  }
}

TEST_F(gpu_sim, runs_histogram_with_atomics) {
  auto& a = device();
  std::mt19937 random(3);
  std::vector<std::int32_t> x(5000), expected(16, 0);
  for (auto& v : x) v = static_cast<std::int32_t>(random() % 20) - 2;
  for (const auto v : x)
    if (v >= 0 && v < 16) ++expected[static_cast<std::size_t>(v)];
  void *dx = put(x), *counts = a.allocate(0, 64);
  const std::byte zero{};
  a.fill(0, {counts, 0}, &zero, 1, 64);
  const auto sx = shape_of({5000}), sc = shape_of({16});
  a.launch(0, a.load({"core", kernels::core, "histogram"}), {{5000, 1, 1}, {100, 1, 1}},
           std::array{memory(dx), value(sx), memory(counts), value(sc)});
  EXPECT_EQ(get<std::int32_t>(counts, 16), expected);
}

TEST_F(gpu_sim, runs_tiled_dgemm_on_a_box_inside_a_larger_array) {
  auto& a = device();
  const index_t m = 37, n = 21, depth = 50;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<double> x(m * depth), y(depth * n), z((m + 4) * (n + 6));
  for (auto* v : {&x, &y, &z})
    for (auto& e : *v) e = number(random);
  void *dx = put(x), *dy = put(y), *dz = put(z);
  const auto sx = shape_of({m, depth}), sy = shape_of({depth, n});
  kernels::shape sz = shape_of({m, n});  // element (2, 3) of the array is (100, 200) of the kernel
  sz.lo = {100, 200, 0, 0};
  sz.hi = {100 + m, 200 + n, 1, 1};
  sz.stride = {n + 6, 1, 0, 0};
  sz.offset = 2 * (n + 6) + 3;
  const double alpha = 0.5, beta = 2;
  a.launch(0, a.load({"core", kernels::core, "dgemm"}),
           {{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(m), 1}, {16, 16, 1}},
           std::array{value(alpha), memory(dx), value(sx), memory(dy), value(sy), value(beta), memory(dz), value(sz)});
  const auto got = get<double>(dz, z.size());
  auto expected = z;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      double sum = 0;
      for (index_t k = 0; k < depth; ++k)
        sum += x[static_cast<std::size_t>(i * depth + k)] * y[static_cast<std::size_t>(k * n + j)];
      auto& e = expected[static_cast<std::size_t>(sz.offset + i * (n + 6) + j)];
      e = alpha * sum + beta * e;
    }
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-13) << i;
}

TEST_F(gpu_sim, text_that_does_not_compile_gives_the_log_with_name_line_and_target) {
  auto& a = device();
  const char* text = "GPU_KERNEL void wrong(GPU_OUT(float, a)) {\n  GPU_AT1(a, 0) = nonsense;\n}\n";
  EXPECT_EQ(thrown([&] { a.load({"my kernels", text, "wrong"}); }), code(errc::compile_failed));
  EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
  EXPECT_NE(said.find("my_kernels:2"), std::string::npos) << said;
  EXPECT_NE(said.find("kernel wrong (my kernels) for host"), std::string::npos) << said;
  EXPECT_NO_THROW(a.load({"core", kernels::core, "axpy"}));  // the device goes on
}

TEST_F(gpu_sim, an_entry_that_is_not_in_the_text_does_not_compile) {
  auto& a = device();
  EXPECT_EQ(thrown([&] { a.load({"core", kernels::core, "saxpy"}); }), code(errc::compile_failed));
  EXPECT_NE(said.find("saxpy"), std::string::npos) << said;
  EXPECT_EQ(thrown([&] { a.load({"core", kernels::core, "axpy; int x"}); }), code(errc::compile_failed));
}

TEST_F(gpu_sim, arguments_and_shapes_that_do_not_fit_are_refused) {
  auto& a = device();
  void* p = a.allocate(0, 800);
  const auto shape = shape_of({100});
  const double d = 1;
  const float f = 1;
  const auto id = a.load({"core", kernels::core, "axpy"});
  const launch_shape fine{{100, 1, 1}, {64, 1, 1}};
  const auto good = std::array{value(d), memory(p), value(shape), memory(p), value(shape)};
  const auto refused = [&](launch_shape s, std::span<const kernel_argument> args, kernel_id k) {
    return thrown([&] { a.launch(0, k, s, args); }) == code(errc::bad_argument);
  };
  EXPECT_TRUE(refused(fine, std::span(good).first(4), id));
  EXPECT_NE(said.find("takes 5 arguments, not 4"), std::string::npos) << said;
  EXPECT_TRUE(refused(fine, std::array{value(f), memory(p), value(shape), memory(p), value(shape)}, id));
  EXPECT_TRUE(refused(fine, std::array{value(d), value(d), value(shape), memory(p), value(shape)}, id));
  EXPECT_TRUE(refused({{100, 1, 1}, {0, 1, 1}}, good, id));
  EXPECT_TRUE(refused({{4096, 1, 1}, {2048, 1, 1}}, good, id));
  EXPECT_TRUE(refused(fine, good, id + 1));
  EXPECT_EQ(thrown([&] { a.record(2, false); }), code(errc::bad_argument));
  EXPECT_NO_THROW(a.launch(0, id, {{0, 1, 1}, {64, 1, 1}}, good));  // nothing to run
  EXPECT_NO_THROW(finish(a, 0));
}

TEST_F(gpu_sim, a_compiled_kernel_is_found_on_disk_and_one_that_is_damaged_is_made_again) {
  const folder f;
  auto s = wishes();
  s.cache = f.path / "cache";
  const kernel_source source{"core", kernels::core, "axpy"};
  const auto files = [&] {
    std::vector<fs::path> all;
    for (const auto& e : fs::directory_iterator(s.cache)) all.push_back(e.path());
    return all;
  };
  make_sim_source(s)->open(0, 1, 0)->load(source);
  ASSERT_EQ(files().size(), 1u);
  const auto file = files()[0];
  const auto size = fs::file_size(file);

  // A hit: nothing is written.
  const auto good_time = fs::last_write_time(file);
  make_sim_source(s)->open(0, 1, 0)->load(source);
  EXPECT_EQ(fs::last_write_time(file), good_time);

  // Cut off, then with one byte wrong: ignored, and written anew.
  fs::resize_file(file, size / 2);
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_EQ(fs::file_size(file), size);
  {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    io.seekp(static_cast<std::streamoff>(size / 2));
    io.put('\x5a').put('\x5b').put('\x5c');
  }
  const rtc::kernel_cache cache(s.cache, s.cache_bytes_max);
  const auto key = file.stem().string();
  EXPECT_FALSE(cache.find(key));
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_TRUE(cache.find(key));

  // Whole, but of no use to the loader.
  const std::vector<std::byte> nonsense(100, std::byte{1});
  cache.store(key, nonsense);
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load(source));
  EXPECT_EQ(fs::file_size(file), size);
}

TEST_F(gpu_sim, a_cache_that_cannot_be_written_is_no_error) {
  auto s = wishes();
  s.cache = "/proc/troupe";
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load({"core", kernels::core, "axpy"}));
  s.cache.clear();
  EXPECT_NO_THROW(make_sim_source(s)->open(0, 1, 0)->load({"core", kernels::core, "axpy"}));
}

TEST_F(gpu_sim, without_a_compiler_kernels_are_not_supported) {
  auto s = wishes();
  s.programs.clear();
  const auto a = make_sim_source(s)->open(0, 1, 0);
  EXPECT_EQ(thrown([&] { a->load({"core", kernels::core, "axpy"}); }), code(errc::not_supported));
  EXPECT_NE(said.find("no C++ compiler"), std::string::npos) << said;
}

TEST_F(gpu_sim, a_lane_waits_for_the_ticket_of_another) {
  troupe::soft_gpu::sim_options o;
  o.copy_gb_per_s = 0.05;  // 1 MiB lasts 20 ms
  configure(o);
  auto& a = device(2);
  const std::vector<std::int32_t> host(1 << 18, 42);
  void* p = a.allocate(0, host.size() * 4);
  void* q = a.allocate(0, host.size() * 4);
  const four n{1, 1, 1, static_cast<index_t>(host.size())};
  for (int round = 0; round < 3; ++round) {
    a.copy_in(0, {p, 0}, line, reinterpret_cast<const std::byte*>(host.data()), line, n, 4);
    const ticket in = a.record(0, false);
    a.wait(1, 0, in);
    a.copy(1, {q, 0}, line, {p, 0}, line, n, 4);
    EXPECT_EQ(get<std::int32_t>(q, host.size(), 1), host);
    EXPECT_GE(a.completed(0), in);
    EXPECT_NO_THROW(a.wait(1, 0, in));  // long reached
    EXPECT_NO_THROW(a.wait(1, 0, 0));
  }
  EXPECT_EQ(thrown([&] { a.wait(1, 0, 1000); }), code(errc::bad_argument));
}

TEST_F(gpu_sim, tickets_count_from_1_and_the_listener_hears_of_those_that_notify) {
  auto& a = device(2);
  std::mutex guard;
  std::condition_variable changed;
  int heard = 0;
  a.listen([&] {
    const std::lock_guard lock(guard);
    ++heard;
    changed.notify_all();
  });
  EXPECT_EQ(a.completed(0), 0u);
  EXPECT_EQ(a.record(0, false), 1u);
  for (int i = 1; i <= 100; ++i) {
    const int lane = i % 2;
    const ticket t = a.record(lane, true);
    std::unique_lock lock(guard);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return heard == i; }));
    lock.unlock();
    ASSERT_EQ(a.completed(lane), t);
  }
}

TEST_F(gpu_sim, allocates_up_to_its_limit_and_again_what_was_freed) {
  auto& a = device(1, 1 << 20);
  EXPECT_EQ(a.allocate(0, (1 << 20) + 1), nullptr);
  void* p = a.allocate(0, 1 << 19);
  void* q = a.allocate(0, 1 << 19);
  ASSERT_NE(p, nullptr);
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
  EXPECT_EQ(a.allocate(0, 1), nullptr);
  a.deallocate(0, p);
  EXPECT_NE(a.allocate(0, 1 << 19), nullptr);
}

TEST_F(gpu_sim, a_full_device_answers_null_and_goes_on) {
  troupe::soft_gpu::sim_options o;
  o.memory_bytes = 1 << 20;
  configure(o);
  const auto source = make_sim_source(wishes());
  const auto a = source->open(0, 1, 0), b = source->open(0, 1, 0);  // two logical devices that both count on all of it
  EXPECT_NE(a->allocate(0, 700 << 10), nullptr);
  EXPECT_EQ(b->allocate(0, 700 << 10), nullptr);
  EXPECT_NE(b->allocate(0, 100 << 10), nullptr);
  EXPECT_NO_THROW(finish(*b, 0));
}

TEST_F(gpu_sim, pinned_memory_can_be_copied_from_and_to) {
  auto& a = device();
  std::byte* p = a.allocate_pinned(4096);
  ASSERT_NE(p, nullptr);
  std::memset(p, 7, 4096);
  void* d = a.allocate(0, 4096);
  a.copy_in(0, {d, 0}, line, p, line, {1, 1, 1, 4096}, 1);
  EXPECT_EQ(get<std::uint8_t>(d, 4096), std::vector<std::uint8_t>(4096, 7));
  a.deallocate_pinned(p);
}

TEST_F(gpu_sim, a_sticky_error_fails_the_device_calls_the_listener_and_leaves_it_fit_to_be_opened_again) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back(
      {.call = "MemcpyAsync", .nth = 1, .device = 0, .error = troupe::soft_gpu::simErrorIllegalAddress, .sticky = true});
  configure(o);
  auto& a = device(2);
  std::atomic<int> heard = 0;
  a.listen([&] { ++heard; });
  const std::vector<double> host(100, 1.0);
  const int code_seen = thrown([&] {
    put(host);
    const ticket t = a.record(0, true);
    while (heard == 0) ::usleep(100);  // nobody asks: the failure is told
    while (a.completed(0) < t) ::usleep(100);
  });
  EXPECT_EQ(code_seen, code(errc::device_failed)) << said;
  EXPECT_NE(said.find("IllegalAddress"), std::string::npos) << said;
  EXPECT_NE(said.find("sim:0"), std::string::npos) << said;
  EXPECT_EQ(thrown([&] { a.completed(1); }), code(errc::device_failed));
  EXPECT_EQ(thrown([&] { a.allocate(0, 1); }), code(errc::device_failed));
  open.reset();

  auto& b = device(2);
  EXPECT_EQ(get<double>(put(host), 100), host);
  EXPECT_NO_THROW(finish(b, 1));
}

TEST_F(gpu_sim, logical_devices_fail_together_and_the_last_one_closed_cures_the_device) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back({.call = "MemsetAsync", .device = 0, .error = troupe::soft_gpu::simErrorLaunchFailure, .sticky = true});
  configure(o);
  const auto source = make_sim_source(wishes());
  auto a = source->open(0, 1, 1 << 20), b = source->open(0, 1, 1 << 20);
  const std::byte zero{};
  a->fill(0, {a->allocate(0, 64), 0}, &zero, 1, 64);
  EXPECT_EQ(thrown([&] { finish(*a, 0); }), code(errc::device_failed)) << said;
  EXPECT_EQ(thrown([&] { finish(*b, 0); }), code(errc::device_failed)) << said;
  a.reset();
  EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::device_failed));  // b still has it
  b.reset();
  a = source->open(0, 1, 0);
  EXPECT_NO_THROW(finish(*a, 0));
}

using slow_gpu_sim = gpu_sim;

TEST_F(slow_gpu_sim, closing_gives_up_an_operation_that_does_not_end) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back({.call = "MemsetAsync", .device = 0, .error = troupe::soft_gpu::simSuccess, .hang = true});
  configure(o);
  auto& a = device(1);
  a.listen([] {});
  const std::byte zero{};
  a.fill(0, {a.allocate(0, 64), 0}, &zero, 1, 64);
  const ticket t = a.record(0, true);
  EXPECT_LT(a.completed(0), t);
  open.reset();  // would not return
  EXPECT_NO_THROW(finish(device(1), 0));
}

TEST_F(gpu_sim, a_lost_device_says_so_and_closes) {
  troupe::soft_gpu::sim_options o;
  o.faults.push_back(
      {.call = "MemcpyAsync", .nth = 1, .device = 0, .error = troupe::soft_gpu::simErrorDevicesUnavailable, .lost = true});
  configure(o);
  auto& a = device(1);
  EXPECT_EQ(thrown([&] {
              put(std::vector<double>(100, 1.0));
              finish(a, 0);
            }),
            code(errc::device_lost))
      << said;
  open.reset();
}

TEST_F(gpu_sim, closing_waits_for_what_runs) {
  troupe::soft_gpu::sim_options o;
  o.copy_gb_per_s = 0.05;
  configure(o);
  auto& a = device(2);
  const std::vector<double> host(1 << 17, 1.0);
  std::atomic<bool> gone = false;
  a.listen([&] { EXPECT_FALSE(gone); });
  for (int i = 0; i < 3; ++i) {
    put(host);
    a.record(0, true);
  }
  open.reset();
  gone = true;
}

TEST_F(gpu_sim, no_devices_are_counted_with_the_reason) {
  troupe::soft_gpu::sim_options o;
  o.devices = 0;
  configure(o);
  const auto source = make_sim_source(wishes());
  EXPECT_EQ(source->count(), 0);
  EXPECT_NE(source->remark().find("NoDevice"), std::string::npos) << source->remark();
  EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::bad_argument));
}

// ---- copies as few calls ------------------------------------------------------------------------------------------

TEST(copy_plan, what_lies_together_is_one_row_and_the_longest_dimension_is_left_to_the_device) {
  const auto blocks = [](const gpu::copy_plan& p) {
    int n = 0;
    p.for_each_block([&](index_t, index_t) { ++n; });
    return n;
  };
  const strides dense{60, 20, 5, 1}, apart{120, 40, 10, 1}, columns{60, 20, 5, 2};
  auto p = gpu::plan_copy(dense, dense, {2, 3, 4, 5}, 8, 1 << 20);
  EXPECT_EQ(p.width, 2 * 3 * 4 * 5 * 8);
  EXPECT_EQ(p.rows.count, 1);
  EXPECT_EQ(blocks(p), 1);
  p = gpu::plan_copy(dense, apart, {2, 3, 4, 5}, 8, 1 << 20);  // rows of 5 at pitches of 5 and 10, all at one distance
  EXPECT_EQ(p.width, 5 * 8);
  EXPECT_EQ(p.rows.count, 2 * 3 * 4);
  EXPECT_EQ(p.rows.from, 10 * 8);
  EXPECT_EQ(blocks(p), 1);
  p = gpu::plan_copy(dense, columns, {1, 1, 1, 5}, 8, 1 << 20);
  EXPECT_EQ(p.width, 8);
  EXPECT_EQ(p.rows.count, 5);
  p = gpu::plan_copy(dense, {7, 0, 0, 0}, {2, 1, 1, 5}, 8, 1 << 20);  // one element, five times: no pitch
  EXPECT_EQ(p.rows.count, 2);
  EXPECT_EQ(blocks(p), 5);
  EXPECT_EQ(blocks(gpu::plan_copy(dense, apart, {2, 3, 4, 5}, 8, 64)), 24);  // pitches beyond what the device takes
  EXPECT_EQ(gpu::plan_copy(dense, dense, {2, 0, 4, 5}, 8, 1 << 20).width, 0);
}

// ---- the other vendors ----------------------------------------------------------------------------------------------

TEST(gpu_vendors, absence_is_a_count_of_zero_and_a_remark) {
  for (const auto& source : {make_cuda_source(wishes()), make_hip_source(wishes())}) {
    ASSERT_GE(source->count(), 0);
    if (source->count() > 0) continue;
    EXPECT_FALSE(source->remark().empty());
    EXPECT_EQ(thrown([&] { source->open(0, 1, 0); }), code(errc::bad_argument));
    RecordProperty(source->kind() == troupe::device_kind::cuda ? "cuda" : "hip", source->remark());
  }
}

void expect_compiles(rtc::compiler& c, const std::string& target) {
  const auto has = [&](std::string_view text, std::initializer_list<std::string_view> entries) {
    const auto binary = c.compile({"core", text, *entries.begin()}, target);
    const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
    for (const auto entry : entries) EXPECT_NE(bytes.find(entry), std::string_view::npos) << entry << ", " << target;
  };
  has(kernels::core, {"axpy", "block_sum", "histogram", "dgemm"});
  has(kernels::fill, {"fill"});
  has(kernels::gather, {"gather_1", "gather_2", "gather_4", "gather_8"});
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
