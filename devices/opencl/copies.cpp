// What this file is for: strided copies as the fewest linear and rectangular commands.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/copies.hpp"

#include <algorithm>
#include <limits>

#include "devices/gpu/copy_plan.hpp"

namespace troupe::devices::opencl {

namespace {

// The shape of one command: `slices` of `rows` of `width` bytes. The row pitches are at least the width; a slice pitch
// is a multiple of its row pitch and at least as much as all rows, as OpenCL wants it.
struct cuboid {
  std::array<std::size_t, 3> size{0, 1, 1};  // width, rows, slices
  struct side {
    std::size_t row = 0, slice = 0;
  } to, from;

  bool is_line() const { return size[1] == 1 && size[2] == 1; }
};

std::size_t bytes(index_t n) { return static_cast<std::size_t>(n); }

// The longest outer dimension that can be slices of the command leaves the plan.
cuboid take_cuboid(gpu::copy_plan& plan) {
  cuboid c;
  c.size = {bytes(plan.width), bytes(plan.rows.count), 1};
  c.to.row = plan.rows.count > 1 ? bytes(plan.rows.to) : c.size[0];
  c.from.row = plan.rows.count > 1 ? bytes(plan.rows.from) : c.size[0];
  c.to.slice = c.to.row * c.size[1];
  c.from.slice = c.from.row * c.size[1];
  if (plan.rows.count == 1) return c;
  const auto fits = [&](index_t pitch, std::size_t row) {
    return pitch > 0 && bytes(pitch) >= row * c.size[1] && bytes(pitch) % row == 0;
  };
  gpu::copy_plan::dimension* best = nullptr;
  for (auto& d : plan.outer)
    if (d.count > 1 && fits(d.to, c.to.row) && fits(d.from, c.from.row) && (!best || d.count > best->count)) best = &d;
  if (best) {
    c.size[2] = bytes(best->count);
    c.to.slice = bytes(best->to);
    c.from.slice = bytes(best->from);
    *best = {};
  }
  return c;
}

gpu::copy_plan plan_of(const strides& ts, const strides& fs, const counts& count, std::size_t element) {
  return gpu::plan_copy(ts, fs, count, element, std::numeric_limits<index_t>::max());
}

cl_mem memory(device_pointer p) { return static_cast<cl_mem>(p.base); }
// Where in its memory a block begins; nonsense is left to the driver, which answers CL_INVALID_VALUE.
std::size_t offset_of(device_pointer p, index_t block) { return p.offset + bytes(block); }

constexpr std::array<std::size_t, 3> origin{};

// Enqueues a copy between device memory and the host's by the driver's two calls for its direction.
template <class Line, class Box, class Bytes>
void copy_with_host(Line line, const char* line_name, Box box, const char* box_name, cl_command_queue q,
                    device_pointer there, const strides& there_stride, Bytes* here, const strides& here_stride,
                    const counts& count, std::size_t element, code_check& check) {
  auto plan = plan_of(there_stride, here_stride, count, element);
  if (plan.width == 0) return;
  const auto c = take_cuboid(plan);
  plan.for_each_block([&](index_t t, index_t h) {
    const std::array<std::size_t, 3> at{offset_of(there, t), 0, 0};
    if (c.is_line())
      check(line(q, memory(there), CL_FALSE, at[0], c.size[0], here + h, 0, nullptr, nullptr), line_name);
    else
      check(box(q, memory(there), CL_FALSE, at.data(), origin.data(), c.size.data(), c.to.row, c.to.slice, c.from.row,
                c.from.slice, here + h, 0, nullptr, nullptr),
            box_name);
  });
}

}  // namespace

void enqueue_copy_in(cl_command_queue q, device_pointer to, const strides& ts, const std::byte* from, const strides& fs,
                     const counts& count, std::size_t element, code_check& check) {
  copy_with_host(clEnqueueWriteBuffer, "clEnqueueWriteBuffer", clEnqueueWriteBufferRect, "clEnqueueWriteBufferRect", q,
                 to, ts, from, fs, count, element, check);
}

void enqueue_copy_out(cl_command_queue q, std::byte* to, const strides& ts, device_pointer from, const strides& fs,
                      const counts& count, std::size_t element, code_check& check) {
  // Seen from the device the copy goes the same way round: its memory first, with its strides.
  copy_with_host(clEnqueueReadBuffer, "clEnqueueReadBuffer", clEnqueueReadBufferRect, "clEnqueueReadBufferRect", q,
                 from, fs, to, ts, count, element, check);
}

void enqueue_copy(cl_command_queue q, device_pointer to, const strides& ts, device_pointer from, const strides& fs,
                  const counts& count, std::size_t element, code_check& check) {
  auto plan = plan_of(ts, fs, count, element);
  if (plan.width == 0) return;
  const auto line = [&](std::size_t t, std::size_t f, std::size_t n) {
    check(clEnqueueCopyBuffer(q, memory(from), memory(to), f, t, n, 0, nullptr, nullptr), "clEnqueueCopyBuffer");
  };
  // Within one object a rectangle must have equal pitches and drivers guess at overlaps: row by row there.
  const bool within = to.base == from.base;
  const auto c = within ? cuboid{} : take_cuboid(plan);
  plan.for_each_block([&](index_t t, index_t f) {
    if (within) {
      for (index_t row = 0; row < plan.rows.count; ++row)
        line(offset_of(to, t + row * plan.rows.to), offset_of(from, f + row * plan.rows.from), bytes(plan.width));
    } else if (c.is_line()) {
      line(offset_of(to, t), offset_of(from, f), c.size[0]);
    } else {
      const std::array<std::size_t, 3> at_to{offset_of(to, t), 0, 0}, at_from{offset_of(from, f), 0, 0};
      check(clEnqueueCopyBufferRect(q, memory(from), memory(to), at_from.data(), at_to.data(), c.size.data(),
                                    c.from.row, c.from.slice, c.to.row, c.to.slice, 0, nullptr, nullptr),
            "clEnqueueCopyBufferRect");
    }
  });
}

void enqueue_fill(cl_command_queue q, device_pointer to, const std::byte* value, std::size_t element, std::size_t count,
                  code_check& check) {
  if (count == 0) return;
  const auto set = [&](std::size_t at, const std::byte* pattern, std::size_t size, std::size_t n) {
    check(clEnqueueFillBuffer(q, memory(to), pattern, size, at, n, 0, nullptr, nullptr), "clEnqueueFillBuffer");
  };
  const std::size_t total = element * count;
  if (std::all_of(value, value + element, [&](std::byte b) { return b == value[0]; }))
    return set(to.offset, value, 1, total);
  // Patterns are powers of two and lie at multiples of their size.
  if ((element & (element - 1)) == 0 && to.offset % element == 0) return set(to.offset, value, element, total);
  // The first element, then twice as much each time.
  for (std::size_t i = 0; i < element; ++i) set(to.offset + i, value + i, 1, 1);
  for (std::size_t done = element; done < total; done *= 2)
    check(clEnqueueCopyBuffer(q, memory(to), memory(to), to.offset, to.offset + done, std::min(done, total - done), 0,
                              nullptr, nullptr),
          "clEnqueueCopyBuffer");
}

}  // namespace troupe::devices::opencl
