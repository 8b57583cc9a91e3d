// What this file is for: the values that a call of a kernel is made with, as bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Collects the values of a call of a kernel, which is run with it as its context; views go by their accesses.
class call_values final : public task_context, private argument_sink {
 public:
  explicit call_values(std::vector<std::vector<std::byte>>& to) : to_(to) { sink_ = this; }
  const char* executor() const override { return ""; }
  bool stop_requested() const override { return false; }
  int attempt() const override { return 1; }
  raw_view view_of(int) override { return {}; }

 private:
  void array(const raw_view&, int, std::size_t) override {}
  void value(const void* data, std::size_t bytes) override {
    const auto* b = static_cast<const std::byte*>(data);
    to_.emplace_back(b, b + bytes);
  }
  bool wants_tuple() const override { return false; }
  void tuple(const void*) override {}

  std::vector<std::vector<std::byte>>& to_;
};

}  // namespace troupe::detail
