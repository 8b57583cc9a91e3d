// What this file is for: a host for placement alone: plain memory, and nothing is copied or filled.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "devices/device.hpp"

namespace test {

class plain_device final : public troupe::devices::device {
 public:
  const troupe::devices::device_facts& facts() const override { return facts_; }
  std::byte* allocate(std::size_t bytes, std::size_t align) override {
    return static_cast<std::byte*>(::operator new(bytes + 1, std::align_val_t(align)));
  }
  void deallocate(std::byte* p, std::size_t, std::size_t align) noexcept override {
    ::operator delete(p, std::align_val_t(align));
  }
  void copy(std::byte*, const std::array<troupe::index_t, 4>&, const std::byte*, const std::array<troupe::index_t, 4>&,
            const std::array<troupe::index_t, 4>&, std::size_t) override {}
  void fill(std::byte*, const std::byte*, std::size_t, std::size_t) override {}

 private:
  troupe::devices::device_facts facts_{"plain", 0};
};

}  // namespace test
