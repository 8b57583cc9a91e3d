// The floor for accelerators: the same work by hand against the seam: one thread, lanes and tickets, no runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The floor waits by asking for the last ticket again and again, yielding in between: no listener, no second thread.
#include "device_work.hpp"
#include "gemm_work.hpp"
#include "workloads.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <thread>

#include "devices/gpu/gpu.hpp"
#include "devices/kernels/kernels.hpp"
#include "devices/opencl/opencl.hpp"
#include "devices/sim/sim.h"

namespace bench {

namespace {

namespace devices = troupe::devices;
using devices::kernels::shape;
using troupe::index_t;

std::unique_ptr<devices::accelerator_source> source_of(const std::string& kind) {
  if (kind == "cuda") return devices::make_cuda_source();
  if (kind == "hip") return devices::make_hip_source();
  if (kind == "opencl") return devices::make_opencl_source();
  if (kind == "sim") return devices::make_sim_source();
  return nullptr;
}

constexpr int lane_in = kernel_lanes, lane_out = kernel_lanes + 1;  // after those for kernels

shape flat(std::size_t first, std::size_t count) {
  shape s;
  s.lo[0] = static_cast<std::int64_t>(first);
  s.hi[0] = static_cast<std::int64_t>(first + count);
  s.stride[0] = 1;
  return s;
}

/// An accelerator, in words of its elements.
class hand {
 public:
  explicit hand(const std::string& device)
      : source_(source_of(device.substr(0, device.find(':')))),
        device_(source_->open(std::stoi(device.substr(device.find(':') + 1)), kernel_lanes + 2, 0)) {}

  devices::accelerator& operator*() { return *device_; }
  devices::accelerator* operator->() { return device_.get(); }

  void* allocate(std::size_t bytes) {
    void* p = device_->allocate(0, bytes);
    if (p == nullptr) throw std::runtime_error("no room on the device");
    for (int lane = 1; lane < kernel_lanes + 2; ++lane) device_->wait(lane, 0, device_->record(0, false));
    return p;
  }
  void* allocate_ones(std::size_t count) {
    void* p = allocate(count * sizeof(std::uint32_t));
    const std::uint32_t one = 1;
    device_->fill(0, {p}, reinterpret_cast<const std::byte*>(&one), sizeof one, count);
    return p;
  }
  void copy_in(int lane, devices::device_pointer to, const void* from, std::size_t bytes) {
    device_->copy_in(lane, to, {1}, static_cast<const std::byte*>(from), {1}, bytes_of(bytes), 1);
  }
  void copy_out(int lane, void* to, devices::device_pointer from, std::size_t bytes) {
    device_->copy_out(lane, static_cast<std::byte*>(to), {1}, from, {1}, bytes_of(bytes), 1);
  }
  void copy_in(int lane, void* to, const void* from, std::size_t bytes) {
    copy_in(lane, devices::device_pointer{to}, from, bytes);
  }
  void copy_out(int lane, void* to, void* from, std::size_t bytes) {
    copy_out(lane, to, devices::device_pointer{from}, bytes);
  }
  /// Has what is enqueued on `lane` from now on come after all that is on `other` now.
  void follow(int lane, int other) { device_->wait(lane, other, device_->record(other, false)); }
  void finish(int lane, devices::ticket t) {
    while (device_->completed(lane) < t) std::this_thread::yield();
  }
  void finish(int lane) { finish(lane, device_->record(lane, false)); }
  void finish_all() {
    for (int lane = 0; lane < kernel_lanes + 2; ++lane) finish(lane);
  }

  void stir(int lane, devices::kernel_id id, void* memory, std::size_t length) {
    const auto all = flat(0, length);
    const std::array<devices::kernel_argument, 3> arguments{memory_of(memory), bytes_of_value(all),
                                                            bytes_of_value(stir_factor)};
    device_->launch(lane, id, {{static_cast<std::uint32_t>(length), 1, 1}, {256, 1, 1}}, arguments);
  }
  void check_stirred(void* memory, std::size_t length, std::size_t times) {
    std::vector<std::uint32_t> found(length);
    copy_out(0, found.data(), memory, length * sizeof(std::uint32_t));
    finish(0);
    bench::check_stirred(found.data(), length, times);
  }

  static devices::kernel_argument memory_of(void* p) { return {true, {p}, {}}; }
  template <class T>
  static devices::kernel_argument bytes_of_value(const T& value) {
    return {false, {}, std::as_bytes(std::span(&value, 1))};
  }

 private:
  static std::array<index_t, troupe::rank_max> bytes_of(std::size_t n) { return {static_cast<index_t>(n), 1, 1, 1}; }

  std::unique_ptr<devices::accelerator_source> source_;
  std::unique_ptr<devices::accelerator> device_;
};

/// Device and host memory of a flow_problem, and the three operations of a tile.
class flow_by_hand {
 public:
  flow_by_hand(hand& device, const flow_problem& problem)
      : device_(device), halve_(device->load({"halve", halve_text, "halve"})) {
    const std::size_t all = problem.from.size() * sizeof(double);
    from_ = device.allocate(all);
    into_ = device.allocate(all);
    host_from_ = pinned(all);
    host_into_ = pinned(all);
  }
  flow_by_hand(const flow_by_hand&) = delete;
  flow_by_hand& operator=(const flow_by_hand&) = delete;
  ~flow_by_hand() {
    device_->deallocate_pinned(reinterpret_cast<std::byte*>(host_from_));
    device_->deallocate_pinned(reinterpret_cast<std::byte*>(host_into_));
  }

  double* input() { return host_from_; }
  [[nodiscard]] const double* output(std::size_t tile) const { return host_into_ + tile * length; }

  void copy_in(std::size_t tile) {
    device_.copy_in(lane_in, at(from_, tile), host_from_ + tile * length, length * sizeof(double));
  }
  void launch(std::size_t tile, int lane) {
    auto part = flat(tile * length, length);
    part.offset = static_cast<std::int64_t>(tile * length);  // memory may be a handle: the kernel adds it
    const std::array<devices::kernel_argument, 4> arguments{hand::memory_of(from_), hand::bytes_of_value(part),
                                                            hand::memory_of(into_), hand::bytes_of_value(part)};
    device_->launch(lane, halve_, {{static_cast<std::uint32_t>(length), 1, 1}, {256, 1, 1}}, arguments);
  }
  void copy_out(std::size_t tile) {
    device_.copy_out(lane_out, host_into_ + tile * length, at(into_, tile), length * sizeof(double));
  }

 private:
  static constexpr std::size_t length = flow_problem::tile;
  static devices::device_pointer at(void* all, std::size_t tile) { return {all, tile * length * sizeof(double)}; }
  double* pinned(std::size_t bytes) {
    auto* p = device_->allocate_pinned(bytes);
    if (p == nullptr) throw std::runtime_error("no room for pinned memory");
    return reinterpret_cast<double*>(p);
  }

  hand& device_;
  devices::kernel_id halve_;
  void *from_ = nullptr, *into_ = nullptr;
  double *host_from_ = nullptr, *host_into_ = nullptr;
};

/// The image with its border on the device, the filter, the result.
class filter_by_hand {
 public:
  filter_by_hand(hand& device, filter_problem& problem)
      : device_(device),
        problem_(problem),
        correlate_(device->load({"correlate", correlate_text, "correlate"})),
        framed_(frame * frame),
        image_(device.allocate(framed_.size() * sizeof(float))),
        weights_(device.allocate(problem.weights.size() * sizeof(float))),
        result_(device.allocate(problem.result.size() * sizeof(float))) {
    device.copy_in(lane_in, weights_, problem.weights.data(), problem.weights.size() * sizeof(float));
  }

  void run() {
    for (std::size_t y = 0; y < frame; ++y) {
      const float* from = &problem_.image[std::clamp(y, radius, radius + side - 1) * side - radius * side];
      float* to = &framed_[y * frame];
      std::fill(to, to + radius, from[0]);
      std::copy(from, from + side, to + radius);
      std::fill(to + radius + side, to + frame, from[side - 1]);
    }
    device_.copy_in(lane_in, image_, framed_.data(), framed_.size() * sizeof(float));
    for (int lane = 0; lane < kernel_lanes; ++lane) device_.follow(lane, lane_in);
    int lane = 0;
    for (std::size_t y = 0; y < side; y += tile)
      for (std::size_t x = 0; x < side; x += tile) launch_tile(lane++ % kernel_lanes, y, x);
    for (lane = 0; lane < kernel_lanes; ++lane) device_.follow(lane_out, lane);
    device_.copy_out(lane_out, problem_.result.data(), result_, problem_.result.size() * sizeof(float));
    device_.finish(lane_out);
  }

 private:
  static constexpr std::size_t side = filter_problem::side, tile = filter_problem::tile,
                               radius = filter_problem::radius, width = filter_problem::width,
                               frame = side + 2 * radius;

  void launch_tile(int lane, std::size_t y, std::size_t x) {
    const auto box = [](std::size_t row, std::size_t column, std::size_t rows, std::size_t columns, std::size_t pitch) {
      shape s;
      s.lo = {static_cast<std::int64_t>(row), static_cast<std::int64_t>(column), 0, 0};
      s.hi = {s.lo[0] + static_cast<std::int64_t>(rows), s.lo[1] + static_cast<std::int64_t>(columns), 0, 0};
      s.stride = {static_cast<std::int64_t>(pitch), 1, 0, 0};
      return s;
    };
    shape source = box(0, 0, side, side, frame), result = box(y, x, tile, tile, side);
    const shape weights = box(0, 0, width, width, width);
    for (int d : {0, 1}) {  // with the border, or a device that checks keeps it from the kernel
      source.lo[d] -= static_cast<std::int64_t>(radius);
      source.hi[d] += static_cast<std::int64_t>(radius);
    }
    result.offset = static_cast<std::int64_t>(y * side + x);
    const std::array<devices::kernel_argument, 6> arguments{hand::memory_of(image_),   hand::bytes_of_value(source),
                                                            hand::memory_of(weights_), hand::bytes_of_value(weights),
                                                            hand::memory_of(result_),  hand::bytes_of_value(result)};
    constexpr auto items = static_cast<std::uint32_t>(tile);
    device_->launch(lane, correlate_, {{items, items, 1}, {16, 16, 1}}, arguments);
  }

  hand& device_;
  filter_problem& problem_;
  devices::kernel_id correlate_;
  std::vector<float> framed_;
  void *image_, *weights_, *result_;
};

class raw final : public contender {
 public:
  std::string name() const override { return "raw"; }
  std::string description() const override { return "accelerators by hand: one thread, lanes and tickets, no runtime"; }

  void start(unsigned, purpose) override {}
  void stop() override { device_.reset(); }
  bool start_on(const std::string& device, unsigned, std::uint64_t) override {
    if (!source_of(device.substr(0, device.find(':')))) return false;
    device_.emplace(device);
    stir_ = (*device_)->load({"stir", stir_text, "stir"});
    has_library_ = device.starts_with("cuda:");
    return true;
  }

  std::optional<cost> device_launches(std::size_t n) override {
    std::vector<void*> arrays(n);
    for (auto& a : arrays) a = device_->allocate_ones(tiny_length);
    for (int lane = 1; lane < kernel_lanes; ++lane) device_->follow(lane, 0);
    const auto launch_all = [&] {
      for (std::size_t i = 0; i < n; ++i)
        device_->stir(static_cast<int>(i) % kernel_lanes, stir_, arrays[i], tiny_length);
      device_->finish_all();
    };
    launch_all();
    const meter clock;
    launch_all();
    const auto spent = clock.stop();
    for (auto* a : arrays) {
      device_->check_stirred(a, tiny_length, 2);
      (*device_)->deallocate(0, a);
    }
    return spent;
  }

  std::optional<double> device_round_trip(std::size_t samples) override {
    void* const a = device_->allocate_ones(tiny_length);
    const auto once = [&] {
      device_->stir(0, stir_, a, tiny_length);
      device_->finish(0);
    };
    once();
    const auto p50 = median_round_trip(samples, std::chrono::microseconds(0), once);
    device_->check_stirred(a, tiny_length, 1 + samples);
    (*device_)->deallocate(0, a);
    return p50;
  }

  std::optional<cost> device_chain(std::size_t n) override {
    void* const a = device_->allocate_ones(small_length);
    device_->stir(0, stir_, a, small_length);
    device_->finish(0);
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) device_->stir(0, stir_, a, small_length);
    device_->finish(0);
    const auto spent = clock.stop();
    device_->check_stirred(a, small_length, 1 + n);
    (*device_)->deallocate(0, a);
    return spent;
  }

  std::optional<cost> device_flow(flow_problem& problem) override {
    flow_by_hand work(*device_, problem);
    cost spent;
    for (int pass = 0; pass < 2; ++pass) {
      problem.fill(work.input());
      device_->finish_all();
      std::vector<devices::ticket> ends(problem.tiles);
      bool right = true;
      const meter clock;
      for (std::size_t i = 0; i < problem.tiles; ++i) {
        const int lane = static_cast<int>(i) % kernel_lanes;
        work.copy_in(i);
        device_->follow(lane, lane_in);
        work.launch(i, lane);
        device_->follow(lane_out, lane);
        work.copy_out(i);
        ends[i] = (*device_)->record(lane_out, false);
      }
      for (std::size_t i = 0; i < problem.tiles; ++i) {
        device_->finish(lane_out, ends[i]);
        right = problem.right(work.output(i), i * flow_problem::tile, flow_problem::tile) && right;
      }
      spent = clock.stop();
      if (!right) throw wrong_answer("a tile came back wrong");
    }
    return spent;
  }

  std::optional<filter_cost> filter(filter_problem& problem, filter_scope where, int images) override {
    if (where != filter_scope::device) return {};
    filter_by_hand work(*device_, problem);
    double nanoseconds = 0;
    for (int i = 0; i <= images; ++i) {
      problem.fill(problem.image.data());
      const meter clock;
      work.run();
      if (i > 0) nanoseconds += clock.stop().nanoseconds;
      problem.check(problem.result.data());
    }
    return filter_cost{nanoseconds / 1e6 / images, 100};
  }

  /// Multiplies one tile again and again in one lane, times the tasks. With cuBLAS that is another contender's.
  std::optional<double> device_gemm(const gemm_problem& problem) override {
    if (has_library_) return {};
    const std::size_t t = problem.tile;
    std::vector<float> a(t * t), b(t * t), c(t * t);
    for (std::size_t i = 0; i < t; ++i)
      for (std::size_t j = 0; j < t; ++j) {
        a[i * t + j] = element_of_a(i, j);
        b[i * t + j] = element_of_b(i, j);
      }
    std::array<void*, 3> memory{};
    for (auto& p : memory) p = device_->allocate(t * t * sizeof(float));
    device_->copy_in(0, memory[0], a.data(), t * t * sizeof(float));
    device_->copy_in(0, memory[1], b.data(), t * t * sizeof(float));
    shape square;
    square.hi = {static_cast<std::int64_t>(t), static_cast<std::int64_t>(t), 0, 0};
    square.stride = {static_cast<std::int64_t>(t), 1, 0, 0};
    const auto first = (*device_)->load({"product", gemm_text, "product"}),
               more = (*device_)->load({"add_product", gemm_text, "add_product"});
    const auto items = static_cast<std::uint32_t>(t);
    const auto launch = [&](devices::kernel_id id) {
      const std::array<devices::kernel_argument, 6> arguments{hand::memory_of(memory[0]), hand::bytes_of_value(square),
                                                              hand::memory_of(memory[1]), hand::bytes_of_value(square),
                                                              hand::memory_of(memory[2]), hand::bytes_of_value(square)};
      (*device_)->launch(0, id, {{items, items, 1}, {16, 16, 1}}, arguments);
    };
    constexpr int calls = 8;
    double spent = 0;
    for (int pass = 0; pass < 2; ++pass) {
      device_->finish_all();
      const meter clock;
      for (int i = 0; i < calls; ++i) launch(i == 0 ? first : more);
      device_->finish_all();
      spent = clock.stop().nanoseconds;
    }
    launch(first);
    device_->copy_out(0, c.data(), memory[2], t * t * sizeof(float));
    device_->finish(0);
    for (auto* p : memory) (*device_)->deallocate(0, p);
    check_product(t, [&](std::size_t i, std::size_t j) { return c[i * t + j]; });
    return spent / calls * static_cast<double>(problem.tasks());
  }

  std::optional<transfer_cost> device_transfer(std::size_t bytes) override {
    auto* const host = (*device_)->allocate_pinned(bytes);
    if (host == nullptr) throw std::runtime_error("no room for pinned memory");
    void* const there = device_->allocate(bytes);
    std::fill_n(host, bytes, std::byte{1});
    transfer_cost spent;
    for (int pass = 0; pass < 3; ++pass) {
      device_->finish_all();
      const meter in;
      device_->copy_in(lane_in, there, host, bytes);
      device_->finish(lane_in);
      spent.in_ns = in.stop().nanoseconds;
      const meter out;
      device_->copy_out(lane_out, host, there, bytes);
      device_->finish(lane_out);
      spent.out_ns = out.stop().nanoseconds;
    }
    (*device_)->deallocate(0, there);
    (*device_)->deallocate_pinned(host);
    return spent;
  }

 private:
  std::optional<hand> device_;
  devices::kernel_id stir_ = 0;
  bool has_library_ = false;
};

}  // namespace

std::optional<stage_times> time_stages(const std::string& name, flow_problem& problem) {
  if (!source_of(name.substr(0, name.find(':')))) return {};
  hand device(name);
  flow_by_hand work(device, problem);
  problem.fill(work.input());
  const auto timed = [&](auto&& stage) {
    device.finish_all();
    const meter clock;
    for (std::size_t i = 0; i < problem.tiles; ++i) stage(i);
    device.finish_all();
    return clock.stop().nanoseconds;
  };
  stage_times found;
  found.copy_in = timed([&](std::size_t i) { work.copy_in(i); });
  found.kernels = timed([&](std::size_t i) { work.launch(i, static_cast<int>(i) % kernel_lanes); });
  found.copy_out = timed([&](std::size_t i) { work.copy_out(i); });
  for (std::size_t i = 0; i < problem.tiles; ++i)
    if (!problem.right(work.output(i), i * flow_problem::tile, flow_problem::tile))
      throw wrong_answer("a tile came back wrong by hand");
  return found;
}

sim_speed::sim_speed(double copy_gb_per_s, double launch_us, bool like_cuda) {
  troupe::soft_gpu::sim_options options;
  options.copy_gb_per_s = copy_gb_per_s;
  options.launch_us = launch_us;
  options.pageable_blocks = like_cuda;
  if (troupe::soft_gpu::simConfigure(options) != troupe::soft_gpu::simSuccess)
    throw std::runtime_error("the software GPU is in use");
}

sim_speed::~sim_speed() { (void)troupe::soft_gpu::simConfigure({}); }

std::unique_ptr<contender> make_raw() { return std::make_unique<raw>(); }

}  // namespace bench
