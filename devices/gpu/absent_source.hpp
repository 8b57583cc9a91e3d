// What this file is for: a source without devices, in place of one whose libraries are missing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "devices/accelerator.hpp"

namespace troupe::devices::gpu {

class absent_source final : public accelerator_source {
 public:
  absent_source(device_kind kind, std::string why) : kind_(kind), why_(std::move(why)) {}
  device_kind kind() const override { return kind_; }
  int count() const override { return 0; }
  std::string remark() const override { return why_; }
  std::unique_ptr<accelerator> open(int, int, std::uint64_t) override {
    throw error(errc::bad_argument, "there are no such devices: " + why_);
  }

 private:
  device_kind kind_;
  std::string why_;
};

inline std::unique_ptr<accelerator_source> make_absent_source(device_kind kind, std::string why) {
  return std::make_unique<absent_source>(kind, std::move(why));
}

}  // namespace troupe::devices::gpu
