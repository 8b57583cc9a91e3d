// What this file is for: arrays in tiles whose host memory is counted, for tests of what reads and makes their bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "devices/device.hpp"

namespace test {

/// Calls `f(i)` for i from 0 to n on as many threads at once.
template <class F>
void at_once(std::size_t n, F&& f) {
  std::latch all_there(static_cast<std::ptrdiff_t>(n));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      all_there.arrive_and_wait();
      f(i);
    });
}

/// Plain memory that is counted. Any thread.
class counted_host final : public troupe::devices::device {
 public:
  const troupe::devices::device_facts& facts() const override { return facts_; }
  std::byte* allocate(std::size_t bytes, std::size_t align) override {
    if (full) throw troupe::error(troupe::errc::out_of_memory, "the host is full");
    ++allocations;
    in_use += bytes;
    return static_cast<std::byte*>(::operator new(bytes + 1, std::align_val_t(align)));
  }
  void deallocate(std::byte* p, std::size_t bytes, std::size_t align) noexcept override {
    if (!p) return;
    in_use -= bytes;
    ::operator delete(p, std::align_val_t(align));
  }
  void copy(std::byte*, const std::array<troupe::index_t, 4>&, const std::byte*, const std::array<troupe::index_t, 4>&,
            const std::array<troupe::index_t, 4>&, std::size_t) override {}
  void fill(std::byte* to, const std::byte* value, std::size_t element, std::size_t count) override {
    ++fills;
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * element, value, element);
  }

  std::atomic<std::size_t> in_use{0};
  std::atomic<int> allocations{0}, fills{0};
  std::atomic<bool> full{false};

 private:
  troupe::devices::device_facts facts_{"counted", 0};
};

/// A runtime's memory, without a runtime.
struct host_memory_alone {
  host_memory_alone() { state->host = std::make_unique<counted_host>(); }
  ~host_memory_alone() { state->release(); }
  host_memory_alone(const host_memory_alone&) = delete;
  host_memory_alone& operator=(const host_memory_alone&) = delete;
  counted_host& host() const { return static_cast<counted_host&>(*state->host); }

  troupe::detail::runtime_state* const state = new troupe::detail::runtime_state;
};

/// A matrix of 32-bit numbers in tiles; frees their bytes.
class tiled_matrix {
 public:
  using index_t = troupe::index_t;
  tiled_matrix(host_memory_alone& memory, index_t rows, index_t columns, index_t tile_rows, index_t tile_columns)
      : rt_(*memory.state) {
    core.spec.rank = 2;
    core.spec.element = sizeof(std::uint32_t);
    core.spec.size = {rows, columns, 1, 1};
    core.spec.tile = {tile_rows, tile_columns, 1, 1};
    core.grid = {(rows + tile_rows - 1) / tile_rows, (columns + tile_columns - 1) / tile_columns, 1, 1};
    core.tile_count = static_cast<std::uint32_t>(core.grid[0] * core.grid[1]);
    core.many_bytes = std::make_unique<troupe::detail::tile_bytes[]>(core.tile_count);
    core.bytes = core.many_bytes.get();
  }
  ~tiled_matrix() {
    if (!core.spec.adopted)
      for (std::uint32_t t = 0; t < core.tile_count; ++t) troupe::detail::free_host_tile(rt_, core, t);
  }
  tiled_matrix(const tiled_matrix&) = delete;
  tiled_matrix& operator=(const tiled_matrix&) = delete;

  troupe::detail::array_core core;

 private:
  troupe::detail::runtime_state& rt_;
};

}  // namespace test
