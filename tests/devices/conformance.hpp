// What this file is for: one suite for the seam of accelerators; the table of devices that take it, and its tools.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A device joins with an entry in conformance.cpp. The tests are in conformance_*_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "devices/accelerator.hpp"
#include "devices/kernels/kernels.hpp"

namespace conformance_suite {

using namespace troupe::devices;
using troupe::errc;
using troupe::error;
using troupe::index_t;
using four = std::array<index_t, troupe::rank_max>;
using shape = kernels::shape;

struct candidate {
  std::string name;
  /// Prepares the process and gives the source; with fewer than `devices` the tests are skipped with its remark.
  std::function<std::unique_ptr<accelerator_source>()> source;
  int devices = 1;
  // The device's limits, and what it does beyond the seam.
  std::size_t argument_align = 1;  ///< of the offset of memory passed to kernels; OpenCL cannot pass any other
  bool fresh_is_nan = false;       ///< memory that nobody wrote reads as NaN
  std::size_t block_max = std::size_t{8} << 20;  ///< size of the largest copies; smaller where they are slow
};
void PrintTo(const candidate&, std::ostream*);

const std::vector<candidate>& candidates();

/// Waits for what an actor would be told of. Polls with yields; false after a minute.
bool eventually(const std::function<bool()>&);

class conformance : public ::testing::TestWithParam<candidate> {
 protected:
  void SetUp() override;

  /// Opens the device with two lanes and all its memory, unless asked otherwise.
  std::unique_ptr<accelerator> open(int index = 0, int lanes = 2, std::uint64_t memory_limit = 0) const {
    return source_->open(index, lanes, memory_limit);
  }

  std::unique_ptr<accelerator_source> source_;
};

/// Waits until the ticket is reached; throws error(device_failed) after a minute.
void reach(accelerator&, int lane, ticket);
/// Waits for all that has been enqueued on the lane.
void finish(accelerator&, int lane = 0);

inline strides line() { return {0, 0, 0, 1}; }
inline four line_of(std::size_t n) { return {1, 1, 1, static_cast<index_t>(n)}; }

/// Device memory that is given back in its lane.
class block {
 public:
  block(accelerator& a, std::size_t bytes, int lane = 0) : in_(&a), lane_(lane), base_(a.allocate(lane, bytes)) {
    if (!base_) throw error(errc::out_of_memory, "the test's memory does not fit the device");
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block() { in_->deallocate(lane_, base_); }

  device_pointer at(std::size_t offset = 0) const { return {base_, offset}; }

 private:
  accelerator* in_;
  int lane_;
  void* base_;
};

template <class T>
void put(accelerator& a, int lane, device_pointer to, const std::vector<T>& from) {
  a.copy_in(lane, to, line(), reinterpret_cast<const std::byte*>(from.data()), line(), line_of(from.size()), sizeof(T));
}
template <class T>
void get(accelerator& a, int lane, std::vector<T>& to, device_pointer from) {
  a.copy_out(lane, reinterpret_cast<std::byte*>(to.data()), line(), from, line(), line_of(to.size()), sizeof(T));
}
/// `get`, and waits for it.
template <class T>
std::vector<T> content(accelerator& a, device_pointer from, std::size_t n, int lane = 0) {
  std::vector<T> to(n);
  get(a, lane, to, from);
  finish(a, lane);
  return to;
}
template <class T>
void fill(accelerator& a, int lane, device_pointer to, const T& value, std::size_t n) {
  a.fill(lane, to, reinterpret_cast<const std::byte*>(&value), sizeof(T), n);
}
inline kernel_argument memory(device_pointer p) { return {true, p, {}}; }
template <class T>
kernel_argument value(const T& v) {
  return {false, {}, std::as_bytes(std::span(&v, 1))};
}
/// All of a one-dimensional array.
inline shape vector_shape(index_t n, index_t lo = 0) {
  shape s;
  s.lo[0] = lo;
  s.hi[0] = lo + n;
  s.stride[0] = 1;
  return s;
}
/// All of a row-major matrix, whose rows are `pitch` apart.
inline shape matrix_shape(index_t rows, index_t columns, index_t pitch) {
  shape s;
  s.hi = {rows, columns, 0, 0};
  s.stride = {pitch, 1, 0, 0};
  return s;
}

kernel_id load_core(accelerator&, const char* entry);
/// Launches items in groups, both along dimension 0.
void launch_line(accelerator&, int lane, kernel_id, std::size_t items, std::uint32_t group,
                 const std::vector<kernel_argument>&);
/// y += a * x on all of two vectors.
void launch_axpy(accelerator&, int lane, kernel_id, double a, device_pointer x, device_pointer y, std::size_t n);

/// The code of the error that the call throws, and its text in `said`; -1 where it throws none.
template <class Call>
int thrown(Call call, std::string* said = nullptr) {
  try {
    call();
  } catch (const error& e) {
    if (said) *said = e.what();
    return static_cast<int>(e.code());
  }
  return -1;
}
inline int code(errc c) { return static_cast<int>(c); }

}  // namespace conformance_suite
