// What this file is for: what an executor is and has: its kind, its memory, its slots, its name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <troupe/detail/task.hpp>
#include <troupe/report.hpp>

#include "actors/protocol/memory_space.hpp"
#include "actors/protocol/node_label.hpp"

namespace troupe::detail {

struct executor_facts {
  std::uint16_t id = 0;
  std::string name;
  device_kind kind = device_kind::cpu;
  memory_space space = host_space;
  int slots = 1;
  std::uint64_t memory_bytes = 0;  // its own memory; 0: it uses the host's
  int index = 0;                   // of a device, among those of its kind
  std::uint16_t card = 0;          // devices of one number are slots of one card
  bool has_double = true;          // kernels as text may use doubles
  int takes_cores = 0;             // a device that computes on the cores: how many a task of it takes
  bool shares_cores() const { return takes_cores != 0; }
  std::shared_ptr<node_label> label{};  // of another node
  /// Returns the name to show to people: for a node, that of the process which has the place now.
  std::string shown_name() const {
    const std::string there = label ? label->text() : std::string();
    return there.empty() ? name : there;
  }
};

}  // namespace troupe::detail
