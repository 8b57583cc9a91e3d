// What this file is for: the accelerator of CUDA, HIP and the software GPU: one text, compiled once for each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included by cuda.cpp, hip.cpp and sim.cpp after devices/gpu/vendors/<vendor>.h, which gives the vendor's words:
// GPU(MemcpyAsync) is cudaMemcpyAsync, and so on. Each build has a namespace of its own, so that all may be linked.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include <troupe/error.hpp>

#include "devices/gpu/copy_plan.hpp"
#include "devices/gpu/errors.gpu.h"
#include "devices/gpu/lane.gpu.h"
#include "devices/gpu/open_devices.gpu.h"
#include "devices/gpu/pinning.gpu.h"
#include "devices/gpu/staging.gpu.h"
#include "devices/kernels/kernels.hpp"

namespace troupe::devices::gpu::GPU_NS {

namespace {

constexpr index_t pitch_max = 0x7fffffff;
constexpr int peer_access_already_enabled = 704;
constexpr auto close_wait_max = std::chrono::seconds(10);

void* address(device_pointer p) { return static_cast<std::byte*>(p.base) + p.offset; }

class gpu_accelerator final : public accelerator {
 public:
  gpu_accelerator(int index, int lanes, std::uint64_t memory_limit, std::shared_ptr<toolchain> tools)
      : tools_(std::move(tools)), opened_(index), lanes_(static_cast<std::size_t>(lanes)) {
    facts_.kind = this_kind;
    facts_.index = index;
    facts_.name = GPU_NAME ":" + std::to_string(index);
    facts_.lanes = lanes;
    try {
      open(memory_limit);
    } catch (...) {
      close();
      throw;
    }
  }
  ~gpu_accelerator() override { close(); }

  const accelerator_facts& facts() const override { return facts_; }
  void give_up() noexcept override { given_up_ = true; }
  int visit() noexcept override {
    int current = facts_.index;
    if (GPU(GetDevice)(&current) != GPU(Success)) (void)GPU(GetLastError)();
    return current;
  }
  void leave(int current) noexcept override {
    if (current != facts_.index && GPU(SetDevice)(current) != GPU(Success)) (void)GPU(GetLastError)();
  }

  // ---- memory
  void* allocate(int l, std::size_t bytes) override {
    auto& in = enter(l);
    const std::size_t size = std::max<std::size_t>(256, (bytes + 255) / 256 * 256);
    if (size < bytes || size > facts_.memory_bytes - used_) return nullptr;
    void* p = nullptr;
    const auto code = pool_.allocate(&p, size, in.stream());
    if (code == GPU(ErrorMemoryAllocation)) {
      (void)GPU(GetLastError)();
      return nullptr;
    }
    check(code, "MallocAsync");
    sizes_.emplace(p, size);
    used_ += size;
    return p;
  }
  void deallocate(int l, void* p) noexcept override {
    const auto at = sizes_.find(p);
    if (at == sizes_.end() || l < 0 || l >= facts_.lanes) return;
    used_ -= at->second;
    sizes_.erase(at);
    if (failure_) return;  // goes with the device
    (void)GPU(SetDevice)(facts_.index);
    if (pool_.free(p, lanes_[static_cast<std::size_t>(l)].stream()) != GPU(Success)) (void)GPU(GetLastError)();
  }
  std::uint64_t memory_used() const override { return used_; }
  std::byte* allocate_pinned(std::size_t bytes) override {
    enter();
    void* p = nullptr;
    const auto code = malloc_pinned(&p, std::max<std::size_t>(bytes, 1));
    if (code == GPU(ErrorMemoryAllocation)) {
      (void)GPU(GetLastError)();
      return nullptr;
    }
    check(code, "MallocHost");
    pinned_.push_back(p);
    return static_cast<std::byte*>(p);
  }
  void deallocate_pinned(std::byte* p) noexcept override {
    const auto at = std::find(pinned_.begin(), pinned_.end(), static_cast<void*>(p));
    if (at == pinned_.end() || failure_) return;  // a failed device may still read it: freed when closed
    pinned_.erase(at);
    (void)GPU(SetDevice)(facts_.index);
    if (free_pinned(p) != GPU(Success)) (void)GPU(GetLastError)();
  }

  // ---- copies
  void copy_in(int l, device_pointer to, const strides& ts, const std::byte* from, const strides& fs,
               const std::array<index_t, rank_max>& count, std::size_t element) override {
    if (!copy_staged(l, coming_, const_cast<std::byte*>(from), fs, address(to), ts, count, element))
      copy_blocks(l, address(to), ts, from, fs, count, element, GPU(MemcpyHostToDevice));
  }
  void copy_out(int l, std::byte* to, const strides& ts, device_pointer from, const strides& fs,
                const std::array<index_t, rank_max>& count, std::size_t element) override {
    if (!copy_staged(l, going_, to, ts, address(from), fs, count, element))
      copy_blocks(l, to, ts, address(from), fs, count, element, GPU(MemcpyDeviceToHost));
  }
  void copy(int l, device_pointer to, const strides& ts, device_pointer from, const strides& fs,
            const std::array<index_t, rank_max>& count, std::size_t element) override {
    copy_blocks(l, address(to), ts, address(from), fs, count, element, GPU(MemcpyDeviceToDevice));
  }

  void fill(int l, device_pointer to, const std::byte* value, std::size_t element, std::size_t count) override {
    auto& in = enter(l);
    if (element == 0 || element > 16) bad("fill: an element has 1 to 16 bytes, not " + std::to_string(element));
    if (count == 0) return;
    auto* p = static_cast<std::byte*>(address(to));
    const std::size_t bytes = element * count;
    const auto set = [&](std::byte* at, std::byte b, std::size_t n) {
      check(GPU(MemsetAsync)(at, std::to_integer<int>(b), n, in.stream()), "MemsetAsync");
    };
    if (std::all_of(value, value + element, [&](std::byte b) { return b == value[0]; })) return set(p, value[0], bytes);
    if (fill_ && element % 4 == 0 && reinterpret_cast<std::uintptr_t>(p) % 4 == 0)
      return fill_words(l, p, value, element, bytes / 4);
    // The first element, then twice as much each time.
    for (std::size_t i = 0; i < element; ++i) set(p + i, value[i], 1);
    for (std::size_t done = element; done < bytes; done *= 2)
      check(GPU(MemcpyAsync)(p + done, p, std::min(done, bytes - done), GPU(MemcpyDeviceToDevice), in.stream()),
            "MemcpyAsync");
  }

  // ---- other devices
  bool connect(const accelerator_facts& other) override {
    if (other.kind != facts_.kind) return false;
    if (other.index != facts_.index && !reach(other.index)) return false;
    connected_.insert(other.index);
    return true;
  }
  void copy_from(int l, device_pointer to, const strides& ts, const accelerator_facts& other, device_pointer from,
                 const strides& fs, const std::array<index_t, rank_max>& count, std::size_t element) override {
    if (other.kind != facts_.kind || !connected_.contains(other.index))
      bad("copy_from: there is no connection to " + other.name);
    auto& in = enter(l);
    const auto plan = plan_copy(ts, fs, count, element, pitch_max);
    if (plan.width == 0) return;
    const auto width = static_cast<std::size_t>(plan.width);
    plan.for_each_block([&](index_t t, index_t f) {
      auto* const block_to = static_cast<std::byte*>(address(to)) + t;
      const auto* const block_from = static_cast<const std::byte*>(address(from)) + f;
      if (plan.rows.count == 1)
        check(GPU(MemcpyPeerAsync)(block_to, facts_.index, block_from, other.index, width, in.stream()),
              "MemcpyPeerAsync");
      else  // the addresses say whose they are
        check(GPU(Memcpy2DAsync)(block_to, static_cast<std::size_t>(plan.rows.to), block_from,
                                 static_cast<std::size_t>(plan.rows.from), width,
                                 static_cast<std::size_t>(plan.rows.count), GPU(MemcpyDefault), in.stream()),
              "Memcpy2DAsync");
    });
  }

  // ---- kernels
  kernel_id load(const kernel_source& source) override {
    enter();
    const auto key = std::make_pair(std::string(source.entry), std::string(source.text));
    if (const auto at = ids_.find(key); at != ids_.end()) return at->second;
    entry e;
    e.name = source.entry;
    auto code = e.kernel.load(tools_->code(source, target_, facts_.identity), source, tools_->wishes());
    if (code != GPU(Success) && meaning(code) != errc::device_lost) {
      // What was on disk may be of no use here; what is fresh must be.
      (void)GPU(GetLastError)();
      e.kernel.unload();
      code = e.kernel.load(tools_->fresh_code(source, target_, facts_.identity), source, tools_->wishes());
    }
    if (code != GPU(Success)) {
      e.kernel.unload();
      if (meaning(code) != errc::device_lost && !is_broken()) {
        (void)GPU(GetLastError)();
        throw error(errc::compile_failed,
                    rtc::described(source, target_) + " cannot be loaded or is not in the text: " + code_text(code));
      }
      check(code, "LibraryLoadData");
    }
    kernels_.push_back(std::move(e));
    return ids_[key] = static_cast<kernel_id>(kernels_.size() - 1);
  }

  void launch(int l, kernel_id id, const launch_shape& shape, std::span<const kernel_argument> arguments) override {
    auto& in = enter(l);
    if (id >= kernels_.size()) bad("launch: no kernel has the id " + std::to_string(id));
    const auto& e = kernels_[id];
    if (e.kernel.parameters) rtc::check_arguments(arguments, *e.kernel.parameters, e.name);
    dim3 groups, group;
    if (!grid_of(shape, e.name, groups, group)) return;
    values_.resize(arguments.size());
    pointers_.resize(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& a = arguments[i];
      if (a.is_memory) values_[i] = address(a.memory);
      pointers_[i] =
          a.is_memory ? static_cast<void*>(&values_[i]) : const_cast<void*>(static_cast<const void*>(a.value.data()));
    }
    check(e.kernel.launch(groups, group, pointers_.data(), in.stream()), "LaunchKernel");
  }

  void begin_capture(int l) override { check(captured_calls::begin(enter(l).stream()), "StreamBeginCapture"); }
  capture_id end_capture(int l) override {
    captured_calls calls;
    check(calls.end(enter(l).stream()), "StreamEndCapture");
    const auto unused =
        std::find_if(captured_.begin(), captured_.end(), [](const captured_calls& c) { return c.is_empty(); });
    const auto at = unused - captured_.begin();
    unused == captured_.end() ? captured_.push_back(calls) : void(*unused = calls);
    return static_cast<capture_id>(at);
  }
  void replay(int l, capture_id id) override {
    auto& in = enter(l);
    if (id >= captured_.size() || captured_[id].is_empty())
      bad("replay: nothing was captured as " + std::to_string(id));
    check(captured_[id].launch(in.stream()), "GraphLaunch");
  }
  void drop(capture_id id) noexcept override {
    if (id >= captured_.size() || failure_) return;
    (void)GPU(SetDevice)(facts_.index);
    captured_[id].drop();
  }

  void* native_lane(int l) override { return enter(l).stream(); }

  // ---- order
  ticket record(int l, bool notify) override { return enter(l).record(notify, facts_.index, listener_, checker()); }
  void wait(int l, int other, ticket t) override {
    auto& in = enter(l);
    if (other < 0 || other >= facts_.lanes || t > lanes_[static_cast<std::size_t>(other)].recorded())
      bad("wait: lane " + std::to_string(other) + " has no ticket " + std::to_string(t));
    if (l == other) return;
    if (const auto event = lanes_[static_cast<std::size_t>(other)].event_of(t))
      check(GPU(StreamWaitEvent)(in.stream(), event, 0), "StreamWaitEvent");
  }
  ticket recorded(int l) const override { return lanes_[static_cast<std::size_t>(l)].recorded(); }
  ticket completed(int l) override { return enter(l).completed(checker()); }
  void listen(std::function<void()> listener) override { listener_ = std::move(listener); }

 private:
  struct entry {
    std::string name;
    loaded_kernel kernel;
  };

  [[noreturn]] void bad(const std::string& text) const { throw error(errc::bad_argument, facts_.name + ": " + text); }

  /// Every call begins here: the thread's current device is this one, which has not failed.
  void enter() {
    if (failure_) throw *failure_;
    check(GPU(SetDevice)(facts_.index), "SetDevice");
  }
  lane& enter(int l) {
    if (l < 0 || l >= facts_.lanes) bad("there is no lane " + std::to_string(l));
    enter();
    return lanes_[static_cast<std::size_t>(l)];
  }

  // Of another physical device. Whoever is refused goes through the host: no error.
  bool reach(int other) {
    enter();
    int can = 0, may = 0;
    auto code = GPU(DeviceCanAccessPeer)(&can, facts_.index, other);
    if (code == GPU(Success)) code = GPU(DeviceCanAccessPeer)(&may, other, facts_.index);
    if (code == GPU(Success) && can && may) {
      code = GPU(DeviceEnablePeerAccess)(other, 0);  // for memory that is not of a pool
      if (static_cast<int>(code) == peer_access_already_enabled) code = GPU(Success);
      if (code == GPU(Success)) code = pool_.open_to(other);
    }
    (void)GPU(GetLastError)();
    return code == GPU(Success) && can && may;
  }

  /// A sticky error answers every call; what is only this call's does not.
  bool is_broken() const {
    (void)GPU(GetLastError)();
    std::size_t free = 0, total = 0;
    return GPU(MemGetInfo)(&free, &total) != GPU(Success);
  }

  void check(GPU(Error_t) code, const char* call) {
    if (code == GPU(Success)) return;
    (void)GPU(GetLastError)();
    const errc what = meaning(code);
    const error e(what, facts_.name + " (" + facts_.model + "): " GPU_NAME + call + " answered " + code_text(code));
    if (what == errc::device_failed || what == errc::device_lost) {
      failure_ = std::make_unique<error>(e);
      if (listener_) listener_();
    }
    throw e;
  }
  struct checking {
    gpu_accelerator& of;
    void operator()(GPU(Error_t) code, const char* call) const { of.check(code, call); }
  };
  checking checker() { return {*this}; }

  void open(std::uint64_t memory_limit) {
    enter();
    device_properties p{};
    check(GPU(GetDeviceProperties)(&p, facts_.index), "GetDeviceProperties");
    int driver = 0, runtime = 0;
    check(GPU(DriverGetVersion)(&driver), "DriverGetVersion");
    check(GPU(RuntimeGetVersion)(&runtime), "RuntimeGetVersion");
    std::size_t free = 0, total = 0;
    check(GPU(MemGetInfo)(&free, &total), "MemGetInfo");
    stages_ = gains_by_pinning(p);
    target_ = target_of(p);
    facts_.model = p.name;
    facts_.driver = GPU_NAME " driver " + std::to_string(driver) + ", runtime " + std::to_string(runtime);
    facts_.identity = facts_.model + ", " + target_ + ", " + facts_.driver;
    char bus[64] = "";
    if (GPU(DeviceGetPCIBusId)(bus, sizeof bus, facts_.index) == GPU(Success))
      facts_.bus = bus;
    else
      (void)GPU(GetLastError)();
    facts_.memory_bytes = memory_limit ? std::min<std::uint64_t>(memory_limit, free) : free;
    facts_.has_double = has_double(p);
    facts_.captures = captures_calls;
    facts_.compute_units = p.multiProcessorCount;
    threads_max_ = static_cast<std::uint32_t>(p.maxThreadsPerBlock);
    check(pool_.open(facts_.index), "MemPoolCreate");
    for (auto& l : lanes_) l.open(checker());
    if constexpr (fills_by_kernel) try {
        fill_ = std::make_unique<kernel_id>(load({"fill", kernels::fill, "fill"}));
      } catch (const error&) {
        if (failure_) throw;  // otherwise without a compiler: by copies
      }
  }

  void close() noexcept {
    (void)GPU(SetDevice)(facts_.index);
    const auto patience = given_up_ && reset_ends_hangs ? std::chrono::seconds(0) : close_wait_max;
    const auto give_up = std::chrono::steady_clock::now() + patience;
    const auto all_idle = [&] { return std::all_of(lanes_.begin(), lanes_.end(), [](auto& l) { return l.idle(); }); };
    bool answers = true;
    while (!failure_ && !(answers = all_idle()) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (staging* s : {&coming_, &going_}) s->stop();
    // A device that failed is of no use to anybody before it is reset; its last user does that.
    const bool reset = (answers ? failure_ || is_broken() : reset_ends_hangs) && opened_.is_last();
    if (reset) answers = GPU(DeviceReset)() == GPU(Success) || answers;
    const bool alive = answers && (!reset || handles_outlive_reset);
    for (auto& l : lanes_) l.close(answers, alive);
    for (staging* s : {&coming_, &going_}) s->close(alive);
    if (alive) {
      for (const auto& [p, size] : sizes_) (void)pool_.free(p, nullptr);
      for (auto* p : pinned_) (void)free_pinned(p);
      for (auto& c : captured_) c.drop();
      for (auto& e : kernels_) e.kernel.unload();
      pool_.close();
    }
    (void)GPU(GetLastError)();
  }

  // False: the host's memory is pinned, or nothing is gained by that.
  bool copy_staged(int l, staging& through, std::byte* host, const strides& hs, void* device, const strides& ds,
                   const std::array<index_t, rank_max>& count, std::size_t element) {
    auto& in = enter(l);
    if (!stages_) return false;
    const auto plan = plan_staged(hs, ds, count, element);
    if (plan.width == 0) return true;
    index_t last = plan.width - 1;
    for (const auto& d : plan.outer) last += (d.count - 1) * d.host;
    if (is_pinned(host) && is_pinned(host + last)) return false;
    (void)GPU(GetLastError)();
    const auto pinned = [&](std::size_t bytes) { return allocate_pinned(bytes); };
    return through.copy(in.stream(), plan, host, static_cast<std::byte*>(device), pinned, checker());
  }

  void copy_blocks(int l, void* to, const strides& ts, const void* from, const strides& fs,
                   const std::array<index_t, rank_max>& count, std::size_t element, GPU(MemcpyKind) kind) {
    auto& in = enter(l);
    const auto plan = plan_copy(ts, fs, count, element, pitch_max);
    if (plan.width == 0) return;
    const auto width = static_cast<std::size_t>(plan.width);
    plan.for_each_block([&](index_t t, index_t f) {
      auto* block_to = static_cast<std::byte*>(to) + t;
      const auto* block_from = static_cast<const std::byte*>(from) + f;
      if (plan.rows.count == 1)
        check(GPU(MemcpyAsync)(block_to, block_from, width, kind, in.stream()), "MemcpyAsync");
      else
        check(GPU(Memcpy2DAsync)(block_to, static_cast<std::size_t>(plan.rows.to), block_from,
                                 static_cast<std::size_t>(plan.rows.from), width,
                                 static_cast<std::size_t>(plan.rows.count), kind, in.stream()),
              "Memcpy2DAsync");
    });
  }

  void fill_words(int l, void* to, const std::byte* value, std::size_t element, std::size_t count) {
    const auto words = static_cast<std::int64_t>(count);
    const std::int64_t step = std::min<std::int64_t>((words + 255) / 256 * 256, 1 << 20);
    const int period = static_cast<int>(element / 4);
    std::array<std::uint32_t, 4> pattern{};
    std::memcpy(pattern.data(), value, element);
    const auto bytes = [](const auto& v) { return kernel_argument{false, {}, std::as_bytes(std::span(&v, 1))}; };
    const std::array<kernel_argument, 8> arguments{{{true, {to, 0}, {}},
                                                    bytes(words),
                                                    bytes(step),
                                                    bytes(period),
                                                    bytes(pattern[0]),
                                                    bytes(pattern[1]),
                                                    bytes(pattern[2]),
                                                    bytes(pattern[3])}};
    launch(l, *fill_, {{static_cast<std::uint32_t>(step), 1, 1}, {256, 1, 1}}, arguments);
  }

  // False: nothing to run.
  bool grid_of(const launch_shape& shape, const std::string& name, dim3& groups, dim3& group) const {
    std::array<std::uint32_t, 3> g{};
    std::uint64_t threads = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      if (shape.group[d] == 0) bad("kernel " + name + ": a group has at least one work-item in each dimension");
      threads *= shape.group[d];
      g[d] = static_cast<std::uint32_t>((std::uint64_t{shape.items[d]} + shape.group[d] - 1) / shape.group[d]);
      if (threads > threads_max_)
        bad("kernel " + name + ": a group may have " + std::to_string(threads_max_) + " work-items on this device");
      if (d > 0 && g[d] > 65535) bad("kernel " + name + ": more than 65535 groups in dimension " + std::to_string(d));
    }
    groups = dim3(g[0], g[1], g[2]);
    group = dim3(shape.group[0], shape.group[1], shape.group[2]);
    return g[0] && g[1] && g[2];
  }

  std::shared_ptr<toolchain> tools_;
  open_device opened_;
  bool given_up_ = false;
  accelerator_facts facts_;
  std::string target_;
  std::uint32_t threads_max_ = 1024;
  std::vector<lane> lanes_;
  bool stages_ = false;  // copies from and to pageable memory would hold their caller
  staging coming_{true}, going_{false};
  memory_pool pool_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::uint64_t used_ = 0;
  std::vector<void*> pinned_;
  std::set<int> connected_;  // indices of devices
  std::vector<entry> kernels_;
  std::vector<captured_calls> captured_;
  std::map<std::pair<std::string, std::string>, kernel_id> ids_;
  std::unique_ptr<kernel_id> fill_;
  std::vector<void*> values_, pointers_;  // of a launch; kept for their memory
  std::function<void()> listener_;
  std::unique_ptr<error> failure_;
};

class gpu_source final : public accelerator_source {
 public:
  explicit gpu_source(const rtc::settings& wishes) : tools_(std::make_shared<toolchain>(wishes)) {
    int n = 0;
    const auto code = GPU(GetDeviceCount)(&n);
    (void)GPU(GetLastError)();  // a program without devices must not find our error later
    if (code == GPU(Success) && n > 0)
      count_ = n;
    else if (static_cast<int>(code) == 35)
      remark_ = "no driver (" + code_text(code) + ")";
    else
      remark_ = code == GPU(Success) ? "no device" : "no device (" + code_text(code) + ")";
  }

  device_kind kind() const override { return this_kind; }
  int count() const override { return count_; }
  std::string remark() const override { return remark_; }
  std::unique_ptr<accelerator> open(int index, int lanes, std::uint64_t memory_limit) override {
    if (index < 0 || index >= count_)
      throw error(errc::bad_argument, "there is no device " GPU_NAME ":" + std::to_string(index) + " among " +
                                          std::to_string(count_) + (remark_.empty() ? "" : ": " + remark_));
    if (lanes < 1) throw error(errc::bad_argument, GPU_NAME ": a device has at least one lane");
    return std::make_unique<gpu_accelerator>(index, lanes, memory_limit, tools_);
  }
  std::unique_ptr<page_pinning> pinning(int index) override {
    device_properties p{};
    if (GPU(GetDeviceProperties)(&p, index) == GPU(Success) && gains_by_pinning(p))
      return std::make_unique<registering>(index);
    (void)GPU(GetLastError)();
    return nullptr;
  }

 private:
  int count_ = 0;
  std::string remark_;
  std::shared_ptr<toolchain> tools_;
};

}  // namespace

std::unique_ptr<accelerator_source> make_source(const rtc::settings& wishes) {
  return std::make_unique<gpu_source>(wishes);
}

}  // namespace troupe::devices::gpu::GPU_NS
