// What this file is for: the accelerator's calls on an OpenCL context: memory here, the rest where it is kept.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/device.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "devices/opencl/copies.hpp"
#include "devices/opencl/lane.hpp"
#include "devices/opencl/programs.hpp"

namespace troupe::devices::opencl {

namespace {

constexpr auto close_wait_max = std::chrono::seconds(10);

template <class T>
T info(cl_device_id device, cl_device_info what, code_check& check) {
  T value{};
  check(clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

template <class Get>
std::string text_of(Get get) {
  std::size_t size = 0;
  if (get(0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  if (get(size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(std::min(text.find('\0'), text.size()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

class opencl_accelerator final : public accelerator {
 public:
  opencl_accelerator(cl_device_id device, int index, int lane_count, std::uint64_t memory_limit)
      : bell_(std::make_shared<bell>()),
        check_("opencl:" + std::to_string(index) + " (" + device_text(device, CL_DEVICE_NAME) + ")",
               [this] { bell_->ring(); }) {
    describe(device, index, lane_count, memory_limit);
    cl_int code = CL_SUCCESS;
    context_ = context_handle(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code));
    check_(code, "clCreateContext");
    for (int i = 0; i <= lane_count; ++i) {
      queue_handle queue(clCreateCommandQueue(context_.get(), device, 0, &code));
      check_(code, "clCreateCommandQueue");
      if (i < lane_count)
        lanes_.emplace_back(std::move(queue));
      else
        pins_ = std::move(queue);
    }
    programs_.emplace(context_.get(), device, check_);
  }

  ~opencl_accelerator() override {
    if (!check_.is_lost()) {
      // All flushed before one is waited for: they may wait for each other.
      for (const auto& l : lanes_) (void)clFlush(l.queue());
      for (const auto& l : lanes_) (void)clFinish(l.queue());
    }
    (void)bell_->silence(check_.is_lost() ? std::chrono::milliseconds(0) : close_wait_max);
    for (auto& [p, memory] : pinned_) (void)clEnqueueUnmapMemObject(pins_.get(), memory.get(), p, 0, nullptr, nullptr);
    if (!check_.is_lost()) (void)clFinish(pins_.get());
  }

  const accelerator_facts& facts() const override { return facts_; }

  // ---- memory
  // Drivers keep memory until the commands that use it have ended, so what the lane gave back counts as free at once.
  void* allocate(int l, std::size_t bytes) override {
    (void)enter(l);
    const std::size_t size = std::max<std::size_t>(256, (bytes + 255) / 256 * 256);
    if (size < bytes || size > facts_.memory_bytes - used_ || size > block_max_) return nullptr;
    cl_int code = CL_SUCCESS;
    memory_handle memory(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, size, nullptr, &code));
    if (is_no_room(code)) return nullptr;
    check_(code, "clCreateBuffer");
    void* p = memory.get();
    blocks_.emplace(p, block{std::move(memory), size});
    used_ += size;
    return p;
  }
  void deallocate(int, void* p) noexcept override {
    const auto at = blocks_.find(p);
    if (at == blocks_.end()) return;
    used_ -= at->second.bytes;
    blocks_.erase(at);
  }
  std::uint64_t memory_used() const override { return used_; }
  std::byte* allocate_pinned(std::size_t bytes) override {
    check_.alive();
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    cl_int code = CL_SUCCESS;
    memory_handle memory(
        clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &code));
    if (is_no_room(code)) return nullptr;
    check_(code, "clCreateBuffer");
    // Blocks on a queue that has nothing to do.
    void* p = clEnqueueMapBuffer(pins_.get(), memory.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, nullptr,
                                 nullptr, &code);
    if (is_no_room(code) || code == CL_MAP_FAILURE) return nullptr;
    check_(code, "clEnqueueMapBuffer");
    pinned_.emplace(p, std::move(memory));
    return static_cast<std::byte*>(p);
  }
  void deallocate_pinned(std::byte* p) noexcept override {
    const auto at = pinned_.find(p);
    if (at == pinned_.end()) return;
    (void)clEnqueueUnmapMemObject(pins_.get(), at->second.get(), p, 0, nullptr, nullptr);
    (void)clFlush(pins_.get());
    pinned_.erase(at);
  }

  // ---- copies
  void copy_in(int l, device_pointer to, const strides& ts, const std::byte* from, const strides& fs,
               const counts& count, std::size_t element) override {
    enqueue_copy_in(enter(l).queue(), to, ts, from, fs, count, element, check_);
  }
  void copy_out(int l, std::byte* to, const strides& ts, device_pointer from, const strides& fs, const counts& count,
                std::size_t element) override {
    enqueue_copy_out(enter(l).queue(), to, ts, from, fs, count, element, check_);
  }
  void copy(int l, device_pointer to, const strides& ts, device_pointer from, const strides& fs, const counts& count,
            std::size_t element) override {
    enqueue_copy(enter(l).queue(), to, ts, from, fs, count, element, check_);
  }
  void fill(int l, device_pointer to, const std::byte* value, std::size_t element, std::size_t count) override {
    auto& in = enter(l);
    if (element == 0 || element > fill_max) bad("fill: an element has 1 to 32 bytes, not " + std::to_string(element));
    enqueue_fill(in.queue(), to, value, element, count, check_);
  }

  // Devices have a context each here: there is no way around the host.
  bool connect(const accelerator_facts&) override { return false; }
  void copy_from(int, device_pointer, const strides&, const accelerator_facts& other, device_pointer, const strides&,
                 const counts&, std::size_t) override {
    bad("copy_from: there is no connection to " + other.name);
  }

  // ---- kernels
  kernel_id load(const kernel_source& source) override {
    check_.alive();
    return programs_->load(source);
  }
  void launch(int l, kernel_id id, const launch_shape& shape, std::span<const kernel_argument> arguments) override {
    programs_->launch(enter(l).queue(), id, shape, arguments);
  }
  void check_kernels() override { programs_->check(); }
  std::uint64_t launched() const override { return programs_->launched(); }
  std::string complaint(std::uint64_t first, std::uint64_t last) override { return programs_->complaint(first, last); }
  void* native_lane(int l) override { return enter(l).queue(); }

  // ---- order
  ticket record(int l, bool notify) override { return enter(l).record(notify, bell_, check_); }
  void wait(int l, int other, ticket t) override {
    auto& in = enter(l);
    if (other < 0 || other >= facts_.lanes || t > lanes_[static_cast<std::size_t>(other)].recorded())
      bad("wait: lane " + std::to_string(other) + " has no ticket " + std::to_string(t));
    if (l == other) return;
    if (cl_event event = lanes_[static_cast<std::size_t>(other)].event_of(t))
      check_(clEnqueueBarrierWithWaitList(in.queue(), 1, &event, nullptr), "clEnqueueBarrierWithWaitList");
  }
  ticket recorded(int l) const override { return lanes_[static_cast<std::size_t>(l)].recorded(); }
  ticket completed(int l) override { return enter(l).completed(check_); }
  void listen(std::function<void()> listener) override { bell_->listen(std::move(listener)); }

 private:
  struct block {
    memory_handle memory;
    std::size_t bytes;
  };

  void describe(cl_device_id device, int index, int lane_count, std::uint64_t memory_limit) {
    const auto platform = info<cl_platform_id>(device, CL_DEVICE_PLATFORM, check_);
    const auto version = device_text(device, CL_DEVICE_VERSION), driver = device_text(device, CL_DRIVER_VERSION);
    const auto memory = info<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE, check_);
    facts_.kind = device_kind::opencl;
    facts_.index = index;
    facts_.name = "opencl:" + std::to_string(index);
    facts_.model = device_text(device, CL_DEVICE_NAME);
    facts_.driver = platform_text(platform, CL_PLATFORM_VERSION) + ", driver " + driver;
    facts_.identity =
        "opencl|" + platform_text(platform, CL_PLATFORM_NAME) + "|" + facts_.model + "|" + version + "|" + driver;
    facts_.memory_bytes = memory_limit ? std::min<std::uint64_t>(memory_limit, memory) : memory;
    // Devices of before OpenCL 2.0 may not know the question.
    cl_device_fp_config doubles = 0;
    facts_.has_double =
        clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr) == CL_SUCCESS &&
        doubles != 0;
    facts_.compute_units = static_cast<int>(info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS, check_));
    if (info<cl_device_type>(device, CL_DEVICE_TYPE, check_) & CL_DEVICE_TYPE_CPU)
      facts_.takes_cores = facts_.compute_units;
    facts_.lanes = lane_count;
    block_max_ = info<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, check_);
  }

  [[noreturn]] void bad(const std::string& text) const { throw error(errc::bad_argument, facts_.name + ": " + text); }

  lane& enter(int l) {
    check_.alive();
    if (l < 0 || l >= facts_.lanes) bad("there is no lane " + std::to_string(l));
    return lanes_[static_cast<std::size_t>(l)];
  }

  std::shared_ptr<bell> bell_;
  code_check check_;
  accelerator_facts facts_;
  std::uint64_t block_max_ = 0, used_ = 0;
  context_handle context_;
  queue_handle pins_;  // maps pinned memory
  std::vector<lane> lanes_;
  std::optional<programs> programs_;
  std::unordered_map<void*, block> blocks_;
  std::unordered_map<void*, memory_handle> pinned_;
};

}  // namespace

std::unique_ptr<accelerator> open_device(cl_device_id device, int index, int lanes, std::uint64_t memory_limit) {
  return std::make_unique<opencl_accelerator>(device, index, lanes, memory_limit);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  return text_of(
      [&](std::size_t size, char* to, std::size_t* needed) { return clGetDeviceInfo(device, what, size, to, needed); });
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return text_of([&](std::size_t size, char* to, std::size_t* needed) {
    return clGetPlatformInfo(platform, what, size, to, needed);
  });
}

}  // namespace troupe::devices::opencl
