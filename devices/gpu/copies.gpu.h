// What this file is for: copies and fills of a GPU as calls of the vendor: rows, and rows at a pitch.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after a vendor's header; see backend.gpu.cpp. Codes go to `check(code, call)`, which throws.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "devices/gpu/copy_plan.hpp"
#include "devices/gpu/staged_copy.hpp"

namespace troupe::devices::gpu::GPU_NS {

/// What the vendors take as distance of two rows, in bytes.
constexpr index_t pitch_max = 0x7fffffff;

/// `line(to, from, bytes)` is called for what is one row; rows at a pitch are copied as `kind` says.
template <class Line, class Check>
void enqueue_copy(GPU(Stream_t) stream, void* to, const strides& ts, const void* from, const strides& fs,
                  const std::array<index_t, rank_max>& count, std::size_t element, GPU(MemcpyKind) kind, Line line,
                  Check check) {
  const auto plan = plan_copy(ts, fs, count, element, pitch_max);
  if (plan.width == 0) return;
  const auto width = static_cast<std::size_t>(plan.width);
  plan.for_each_block([&](index_t t, index_t f) {
    auto* const block_to = static_cast<std::byte*>(to) + t;
    const auto* const block_from = static_cast<const std::byte*>(from) + f;
    if (plan.rows.count == 1)
      line(block_to, block_from, width);
    else
      check(GPU(Memcpy2DAsync)(block_to, static_cast<std::size_t>(plan.rows.to), block_from,
                               static_cast<std::size_t>(plan.rows.from), width,
                               static_cast<std::size_t>(plan.rows.count), kind, stream),
            "Memcpy2DAsync");
  });
}

/// A piece between the device's memory and a pinned buffer that holds it, its lines one behind the other.
template <class Check>
void enqueue_staged(GPU(Stream_t) stream, const staged_copy& plan, staged_copy::piece piece, std::byte* device,
                    std::byte* staged, bool in, Check check) {
  const auto kind = in ? GPU(MemcpyHostToDevice) : GPU(MemcpyDeviceToHost);
  const auto line = [&](std::byte* there, std::byte* here, index_t bytes) {
    check(GPU(MemcpyAsync)(in ? there : here, in ? here : there, static_cast<std::size_t>(bytes), kind, stream),
          "MemcpyAsync");
  };
  if (plan.is_packed_there()) return line(device + piece.begin, staged, piece.end - piece.begin);
  const index_t pitch = plan.outer.back().device;
  plan.for_each_block(piece, [&](index_t, index_t at, index_t bytes, index_t rows) {
    std::byte *there = device + at, *here = staged;
    staged += bytes * rows;
    if (rows > 1 && pitch >= bytes && pitch <= pitch_max) {
      const auto wide = static_cast<std::size_t>(bytes), far = static_cast<std::size_t>(pitch);
      check(GPU(Memcpy2DAsync)(in ? there : here, in ? far : wide, in ? here : there, in ? wide : far, wide,
                               static_cast<std::size_t>(rows), kind, stream),
            "Memcpy2DAsync");
      return;
    }
    for (index_t r = 0; r < rows; ++r, there += pitch, here += bytes) line(there, here, bytes);
  });
}

/// All bytes of the value are the same.
inline bool is_one_byte(const std::byte* value, std::size_t element) {
  return std::all_of(value, value + element, [&](std::byte b) { return b == value[0]; });
}

/// `count` times a value of `element` bytes, without a kernel.
template <class Check>
void fill_by_copies(GPU(Stream_t) stream, std::byte* to, const std::byte* value, std::size_t element, std::size_t count,
                    Check check) {
  const std::size_t bytes = element * count;
  const auto set = [&](std::byte* at, std::byte b, std::size_t n) {
    check(GPU(MemsetAsync)(at, std::to_integer<int>(b), n, stream), "MemsetAsync");
  };
  if (is_one_byte(value, element)) return set(to, value[0], bytes);
  // The first element, then twice as much each time.
  for (std::size_t i = 0; i < element; ++i) set(to + i, value[i], 1);
  for (std::size_t done = element; done < bytes; done *= 2)
    check(GPU(MemcpyAsync)(to + done, to, std::min(done, bytes - done), GPU(MemcpyDeviceToDevice), stream),
          "MemcpyAsync");
}

}  // namespace troupe::devices::gpu::GPU_NS
