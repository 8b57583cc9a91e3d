// What this file is for: the accelerator of CUDA, HIP and the software GPU: one text, compiled once for each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included by cuda.cpp, hip.cpp and sim.cpp after devices/gpu/vendors/<vendor>.h, which gives the vendor's words:
// GPU(MemcpyAsync) is cudaMemcpyAsync, and so on. Each build has a namespace of its own, so that all may be linked.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include <troupe/error.hpp>

#include "devices/gpu/copies.gpu.h"
#include "devices/gpu/errors.gpu.h"
#include "devices/gpu/kernel_table.gpu.h"
#include "devices/gpu/lane.gpu.h"
#include "devices/gpu/open_devices.gpu.h"
#include "devices/gpu/pinning.gpu.h"
#include "devices/gpu/staging.gpu.h"
#include "devices/kernels/kernels.hpp"

namespace troupe::devices::gpu::GPU_NS {

namespace {

constexpr int peer_access_already_enabled = 704;
constexpr auto close_wait_max = std::chrono::seconds(10);

void* address(device_pointer p) { return static_cast<std::byte*>(p.base) + p.offset; }

class gpu_accelerator final : public accelerator {
 public:
  gpu_accelerator(int index, int lanes, std::uint64_t memory_limit, std::shared_ptr<toolchain> tools)
      : opened_(index), lanes_(static_cast<std::size_t>(lanes)), kernels_(std::move(tools), facts_) {
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
    copy_of_host(l, plan_staged(fs, ts, count, element), true, const_cast<std::byte*>(from), address(to),
                 [&] { copy_blocks(l, address(to), ts, from, fs, count, element, GPU(MemcpyHostToDevice)); });
  }
  void copy_out(int l, std::byte* to, const strides& ts, device_pointer from, const strides& fs,
                const std::array<index_t, rank_max>& count, std::size_t element) override {
    copy_of_host(l, plan_staged(ts, fs, count, element), false, to, address(from),
                 [&] { copy_blocks(l, to, ts, address(from), fs, count, element, GPU(MemcpyDeviceToHost)); });
  }
  void copy(int l, device_pointer to, const strides& ts, device_pointer from, const strides& fs,
            const std::array<index_t, rank_max>& count, std::size_t element) override {
    copy_blocks(l, address(to), ts, address(from), fs, count, element, GPU(MemcpyDeviceToDevice));
  }

  void fill(int l, device_pointer to, const std::byte* value, std::size_t element, std::size_t count) override {
    auto& in = enter(l);
    if (element == 0 || element > fill_max) bad("fill: an element has 1 to 32 bytes, not " + std::to_string(element));
    if (count == 0) return;
    auto* p = static_cast<std::byte*>(address(to));
    const bool in_words = element <= 16 && element % 4 == 0 && reinterpret_cast<std::uintptr_t>(p) % 4 == 0;
    if (fill_ && in_words && !is_one_byte(value, element)) return fill_words(l, p, value, element, element * count / 4);
    fill_by_copies(in.stream(), p, value, element, count, checker());
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
    const auto stream = enter(l).stream();
    const auto line = [&](void* t, const void* f, std::size_t bytes) {
      check(GPU(MemcpyPeerAsync)(t, facts_.index, f, other.index, bytes, stream), "MemcpyPeerAsync");
    };  // with a pitch the addresses say whose they are
    enqueue_copy(stream, address(to), ts, address(from), fs, count, element, GPU(MemcpyDefault), line, checker());
  }

  // ---- kernels
  kernel_id load(const kernel_source& source) override {
    enter();
    return kernels_.load(
        source, [this] { return is_broken(); }, checker());
  }
  void launch(int l, kernel_id id, const launch_shape& shape, std::span<const kernel_argument> arguments) override {
    kernels_.launch(enter(l).stream(), id, shape, arguments, address, checker());
  }

  void check_kernels() override {
    kernels_.check_accesses();
    facts_.captures = false;  // notes are of one launch each
  }
  std::uint64_t launched() const override { return kernels_.launched(); }
  std::string complaint(std::uint64_t first, std::uint64_t last) override { return kernels_.complaint(first, last); }

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
  ticket completed(int l) override {
    lane& asked = enter(l);
    const ticket reached = asked.completed(checker());
    // Small copies arrive when somebody looks: also those of lanes that this one has waited for.
    for (lane& other : lanes_)
      if (&other != &asked && other.going.any()) (void)other.completed(checker());
    return reached;
  }
  void listen(std::function<void()> listener) override { listener_ = std::move(listener); }

 private:
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

  // Opens the way to the memory of another physical device. False: copies go through the host, which is no error.
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
    const std::string target = target_of(p);
    kernels_.open(target, static_cast<std::uint32_t>(p.maxThreadsPerBlock));
    facts_.model = p.name;
    facts_.driver = GPU_NAME " driver " + std::to_string(driver) + ", runtime " + std::to_string(runtime);
    facts_.identity = facts_.model + ", " + target + ", " + facts_.driver;
    char bus[64] = "";
    if (GPU(DeviceGetPCIBusId)(bus, sizeof bus, facts_.index) == GPU(Success))
      facts_.bus = bus;
    else
      (void)GPU(GetLastError)();
    facts_.memory_bytes = memory_limit ? std::min<std::uint64_t>(memory_limit, free) : free;
    facts_.has_double = has_double(p);
    facts_.takes_cores = takes_cores;
    facts_.captures = captures_calls;
    facts_.large_arguments = true;
    facts_.compute_units = p.multiProcessorCount;
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
    if (answers && !failure_ && !is_broken()) {
      for (auto& l : lanes_) l.going.reach(l.recorded() + 1);
    }
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
      kernels_.unload();
      pool_.close();
    }
    (void)GPU(GetLastError)();
  }

  // `direct()` enqueues the copy by the vendor's own calls.
  template <class Direct>
  void copy_of_host(int l, const staged_copy& plan, bool in, std::byte* host, void* device, Direct direct) {
    lane& on = enter(l);
    if (plan.width == 0) return;
    if (!stages_) return direct();
    if (!in) let_arrive(host, host + plan.host_reach(), &on);
    if (is_pinned(host) && is_pinned(host + plan.host_reach() - 1)) try {
        if (!in) let_arrive(host, host + plan.host_reach(), nullptr);
        return direct();
      } catch (const error& e) {  // vendors refuse copies that leave the memory that was pinned by one call
        if (e.code() != errc::bad_argument) throw;
      }
    (void)GPU(GetLastError)();
    if (!stage(on, plan, in, host, static_cast<std::byte*>(device))) direct();
  }
  // False: there is no pinned memory.
  bool stage(lane& on, const staged_copy& plan, bool in, std::byte* host, std::byte* device) {
    const auto pinned = [&](std::size_t bytes) { return allocate_pinned(bytes); };
    small_copies& small = in ? on.coming : on.going;
    const auto copy_now = [&] {
      return small.copy(on.stream(), plan, host, device, on.recorded() + 1, pinned, checker());
    };
    if (small.takes(plan)) {
      if (copy_now()) return true;
      (void)on.completed(checker());  // there may be room by now
      if (copy_now()) return true;
    }
    if (!in) let_arrive(host, host + plan.host_reach(), nullptr);
    return (in ? coming_ : going_).copy(on.stream(), plan, host, device, pinned, checker());
  }
  // Small copies of other lanes to that memory come before any that is made there now.
  void let_arrive(const std::byte* begin, const std::byte* end, const lane* but) {
    for (lane& l : lanes_) {
      if (&l == but || !l.going.touches(begin, end)) continue;
      check(GPU(StreamSynchronize)(l.stream()), "StreamSynchronize");
      l.going.reach(l.recorded() + 1);
    }
  }

  void copy_blocks(int l, void* to, const strides& ts, const void* from, const strides& fs,
                   const std::array<index_t, rank_max>& count, std::size_t element, GPU(MemcpyKind) kind) {
    const auto stream = enter(l).stream();
    const auto line = [&](void* t, const void* f, std::size_t bytes) {
      check(GPU(MemcpyAsync)(t, f, bytes, kind, stream), "MemcpyAsync");
    };
    enqueue_copy(stream, to, ts, from, fs, count, element, kind, line, checker());
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

  open_device opened_;
  bool given_up_ = false;
  accelerator_facts facts_;
  std::vector<lane> lanes_;
  bool stages_ = false;  // copies from and to pageable memory would hold their caller
  staging coming_{true}, going_{false};
  memory_pool pool_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::uint64_t used_ = 0;
  std::vector<void*> pinned_;
  std::set<int> connected_;  // indices of devices
  kernel_table kernels_;
  std::vector<captured_calls> captured_;
  std::unique_ptr<kernel_id> fill_;
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
