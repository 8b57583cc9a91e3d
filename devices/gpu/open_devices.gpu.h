// What this file is for: what the accelerators of one vendor share: the compiler, and who has which device open.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"

namespace troupe::devices::gpu::GPU_NS {

/// The compiler, opened when it is first needed, and its cache. Thread-safe.
class toolchain {
 public:
  explicit toolchain(rtc::settings wishes)
      : wishes_(std::move(wishes)), cache_(wishes_.cache, wishes_.cache_bytes_max) {}

  const rtc::settings& wishes() const { return wishes_; }
  std::vector<std::byte> code(const kernel_source& source, const std::string& target, std::string_view identity) {
    return rtc::compile_cached(with(source, target), cache_, source, target, identity);
  }
  /// Compiled again, whatever the cache holds.
  std::vector<std::byte> fresh_code(const kernel_source& source, const std::string& target, std::string_view identity) {
    auto& compiler = with(source, target);
    auto binary = compiler.compile(source, target);
    cache_.store(rtc::cache_key(compiler, source, target, identity), binary);
    return binary;
  }

 private:
  rtc::compiler& with(const kernel_source& source, const std::string& target) {
    const std::lock_guard lock(guard_);
    if (!compiler_) {
      std::string why;
      compiler_ = open_compiler(wishes_, why);
      if (!compiler_)
        throw cannot_run(errc::not_supported, rtc::described(source, target) + " cannot be compiled: " + why);
    }
    return *compiler_;
  }

  rtc::settings wishes_;
  rtc::kernel_cache cache_;
  std::mutex guard_;
  std::unique_ptr<rtc::compiler> compiler_;
};

/// A device may be opened several times, as logical devices; only the last that closes may reset it.
class open_device {
 public:
  explicit open_device(int index) : index_(index) {
    const std::lock_guard lock(guard());
    ++counts()[index_];
  }
  open_device(const open_device&) = delete;
  open_device& operator=(const open_device&) = delete;
  ~open_device() {
    const std::lock_guard lock(guard());
    --counts()[index_];
  }
  bool is_last() const {
    const std::lock_guard lock(guard());
    return counts()[index_] == 1;
  }

 private:
  // Neither is ever destroyed: a device whose thread was left behind at shutdown may be closed while the process ends.
  static std::mutex& guard() {
    static auto* const m = new std::mutex;
    return *m;
  }
  static std::map<int, int>& counts() {
    static auto* const c = new std::map<int, int>;
    return *c;
  }

  int index_;
};

}  // namespace troupe::devices::gpu::GPU_NS
