// What this file is for: a kernel that the host's compiler made, in this process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "devices/sim/item.h"

namespace troupe::devices::rtc {

struct host_module {
  struct argument {
    unsigned long bytes;
    bool pointer;
    unsigned long element;  // bytes of what it points to; 0: not known
  };

  void* library = nullptr;  ///< null: not loaded
  void (*invoke)(const troupe_sim_item*, void** args) = nullptr;
  const argument* arguments = nullptr;
  std::size_t argument_count = 0;
  bool barriers = false;
};

/// Not loaded where the bytes are no such kernel, or no file may be written or executed in the folder.
host_module open_host_module(std::span<const std::byte>, const std::filesystem::path& scratch);
void close_host_module(host_module&) noexcept;

}  // namespace troupe::devices::rtc
