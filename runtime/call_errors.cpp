// What this file is for: errors about a call, thrown before there is a task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <exception>
#include <limits>
#include <string>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "devices/host/topology.hpp"

namespace troupe::detail {

namespace {
// Made beforehand: there may be no memory left for the error, either.
const std::exception_ptr no_memory = std::make_exception_ptr(
    error(errc::out_of_memory, "no memory is left for the record of a task, or for what it takes along"));
}  // namespace

void throw_no_memory() { std::rethrow_exception(no_memory); }

void check_chunks(double count, std::size_t bytes) {
  const double needed = count * static_cast<double>(sizeof(task_record) + sizeof(task_record*) + bytes);
  const auto there = static_cast<double>(devices::memory_bytes());
  if (count < std::numeric_limits<std::int32_t>::max() && needed <= there) return;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "for_each: %.0f chunks, whose records are made before the first one begins, take %.1f GiB of the %.1f GiB of "
      "this machine: choose larger chunks",
      count, needed / (1u << 30), there / (1u << 30));
  throw error(errc::out_of_memory, text);
}

void throw_bad_space(const task_options* o, const kernel_info* k, int d, index_t extent, index_t chunk) {
  const std::string name = o && !o->name.empty() ? o->name : k ? k->name : "";
  const std::string along = " along dimension " + std::to_string(d);
  throw error(errc::bad_argument,
              "for_each" + (name.empty() ? "" : " '" + name + "'") + ": " +
                  (extent < 0 ? "the extent " + std::to_string(extent) + along + " of the index space is negative"
                              : "the size " + std::to_string(chunk) + along +
                                    " of its chunks is negative: use 1 or more, or 0 for the whole extent"));
}

void throw_of_call(const error& e, const task_options* o, const kernel_info* k) {
  const std::string task = o && !o->name.empty() ? "task '" + o->name + "'" : "";
  const std::string kernel = k ? "kernel '" + std::string(k->name) + "'" : "";
  if (task.empty() && kernel.empty()) throw;
  throw error(e.code(), task + (task.empty() || kernel.empty() ? "" : ", ") + kernel + ": " + e.what());
}

void throw_of_array(const error& e, const array_core& a) {
  throw error(e.code(), "array '" + a.spec.name + "': " + e.what());
}

namespace {
[[noreturn]] void throw_lost(const char* kernel, argument_place at, const std::string& value, const char* type) {
  throw error(errc::bad_argument, "kernel '" + std::string(kernel) + "', argument " + std::to_string(at.number) +
                                      " of " + std::to_string(at.of) + ": " + value + " cannot be passed as " + type +
                                      " without loss: pass a value that it holds, or widen the parameter");
}
}  // namespace

void throw_lost(const char* kernel, argument_place at, long long value, const char* type) {
  throw_lost(kernel, at, std::to_string(value), type);
}
void throw_lost(const char* kernel, argument_place at, unsigned long long value, const char* type) {
  throw_lost(kernel, at, std::to_string(value), type);
}
void throw_lost(const char* kernel, argument_place at, double value, const char* type) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  throw_lost(kernel, at, std::string(text), type);
}

}  // namespace troupe::detail
