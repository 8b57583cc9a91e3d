// What this file is for: an accelerator for tests of what stands around it: copies are made at once, and lanes come as
// far as the test says.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/accelerator.hpp"

namespace test {

class paper_accelerator final : public troupe::devices::accelerator {
 public:
  using strides = troupe::devices::strides;
  using counts = std::array<troupe::index_t, troupe::rank_max>;
  using device_pointer = troupe::devices::device_pointer;
  using ticket = troupe::devices::ticket;

  paper_accelerator(int lanes, std::uint64_t memory_bytes) : lanes_(static_cast<std::size_t>(lanes)) {
    facts_.name = "paper";
    facts_.memory_bytes = memory_bytes;
    facts_.lanes = lanes;
  }

  // ---- what tests see -----------------------------------------------------------------------------------------------
  struct one_lane {
    ticket recorded = 0, reached = 0;
    std::vector<ticket> notified;  // tickets for which the listener is to be called
  };
  one_lane& lane(int l) { return lanes_[static_cast<std::size_t>(l)]; }
  /// Everything that has been recorded has ended.
  void finish_all() {
    for (one_lane& l : lanes_) l.reached = l.recorded;
  }
  std::size_t blocks() const { return blocks_.size(); }
  std::vector<std::array<std::uint64_t, 3>> waits;  // lane, other, ticket
  int copies_in = 0, copies_out = 0;

  // ---- accelerator --------------------------------------------------------------------------------------------------
  const troupe::devices::accelerator_facts& facts() const override { return facts_; }
  void* allocate(int, std::size_t bytes) override {
    if (used_ + bytes > facts_.memory_bytes) return nullptr;
    auto block = std::make_unique<std::byte[]>(bytes);
    void* const at = block.get();
    blocks_.emplace(at, std::pair{std::move(block), bytes});
    used_ += bytes;
    return at;
  }
  void deallocate(int, void* p) noexcept override {
    used_ -= blocks_.at(p).second;
    blocks_.erase(p);
  }
  std::uint64_t memory_used() const override { return used_; }
  std::byte* allocate_pinned(std::size_t bytes) override { return new std::byte[bytes]; }
  void deallocate_pinned(std::byte* p) noexcept override { delete[] p; }
  void copy_in(int, device_pointer to, const strides& ts, const std::byte* from, const strides& fs, const counts& n,
               std::size_t element) override {
    ++copies_in;
    copy_all(bytes_at(to), ts, from, fs, n, element);
  }
  void copy_out(int, std::byte* to, const strides& ts, device_pointer from, const strides& fs, const counts& n,
                std::size_t element) override {
    ++copies_out;
    copy_all(to, ts, bytes_at(from), fs, n, element);
  }
  void copy(int, device_pointer to, const strides& ts, device_pointer from, const strides& fs, const counts& n,
            std::size_t element) override {
    copy_all(bytes_at(to), ts, bytes_at(from), fs, n, element);
  }
  void fill(int, device_pointer to, const std::byte* value, std::size_t element, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes_at(to) + i * element, value, element);
  }
  bool connect(const troupe::devices::accelerator_facts&) override { return false; }
  void copy_from(int, device_pointer, const strides&, const troupe::devices::accelerator_facts&, device_pointer,
                 const strides&, const counts&, std::size_t) override {
    throw troupe::error(troupe::errc::bad_argument, "not connected");
  }
  troupe::devices::kernel_id load(const troupe::devices::kernel_source&) override { return 0; }
  void launch(int, troupe::devices::kernel_id, const troupe::devices::launch_shape&,
              std::span<const troupe::devices::kernel_argument>) override {}
  void* native_lane(int) override { return nullptr; }
  ticket record(int l, bool notify) override {
    const ticket t = ++lane(l).recorded;
    if (notify) lane(l).notified.push_back(t);
    return t;
  }
  ticket recorded(int l) const override { return lanes_[static_cast<std::size_t>(l)].recorded; }
  void wait(int l, int other, ticket t) override {
    waits.push_back({static_cast<std::uint64_t>(l), static_cast<std::uint64_t>(other), t});
  }
  ticket completed(int l) override { return lane(l).reached; }
  void listen(std::function<void()>) override {}

 private:
  static std::byte* bytes_at(device_pointer p) { return static_cast<std::byte*>(p.base) + p.offset; }
  static void copy_all(std::byte* to, const strides& ts, const std::byte* from, const strides& fs, const counts& n,
                       std::size_t element) {
    const auto e = static_cast<troupe::index_t>(element);
    for (troupe::index_t i = 0; i < n[0]; ++i)
      for (troupe::index_t j = 0; j < n[1]; ++j)
        for (troupe::index_t k = 0; k < n[2]; ++k)
          for (troupe::index_t l = 0; l < n[3]; ++l)
            std::memcpy(to + (i * ts[0] + j * ts[1] + k * ts[2] + l * ts[3]) * e,
                        from + (i * fs[0] + j * fs[1] + k * fs[2] + l * fs[3]) * e, element);
  }

  troupe::devices::accelerator_facts facts_;
  std::vector<one_lane> lanes_;
  std::map<void*, std::pair<std::unique_ptr<std::byte[]>, std::size_t>> blocks_;
  std::uint64_t used_ = 0;
};

}  // namespace test
