// What this file is for: memory for what kernels note of elements that they touch outside of their arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "devices/rtc/text.hpp"

namespace troupe::devices::gpu::GPU_NS {

/// One note for each array of a launch; kept until somebody asks for the launch, then used again. Codes go to
/// `check(code, call)`, which throws.
class access_notes {
 public:
  static constexpr std::size_t arrays_max = 16;

  /// Enqueues empty notes for the launch, and gives the address of the first as kernels know it; the next ones follow.
  template <class Check>
  std::byte* begin(std::uint64_t launch, const std::string& kernel, GPU(Stream_t) stream, Check check) {
    if (free_.empty()) free_.push_back(make(check));
    used& now = under_way_[launch];
    now = {free_.back(), &kernel};
    free_.pop_back();
    check(GPU(MemsetAsync)(now.at.there, 0, bytes, stream), "MemsetAsync");
    return now.at.there;
  }
  /// Behind the launch: what it noted comes here.
  template <class Check>
  void end(std::uint64_t launch, GPU(Stream_t) stream, Check check) {
    const slot& s = under_way_.at(launch).at;
    check(GPU(MemcpyAsync)(s.here, s.there, bytes, GPU(MemcpyDeviceToHost), stream), "MemcpyAsync");
  }
  /// Of the launches [first, last], which have ended. `name(kernel, i)`: of its i-th array.
  template <class Name>
  std::string take(std::uint64_t first, std::uint64_t last, Name name) {
    std::string said;
    const auto from = under_way_.lower_bound(first), to = under_way_.upper_bound(last);
    for (auto u = from; u != to; ++u) {
      const auto* const all = static_cast<const rtc::access_note*>(u->second.at.here);
      for (std::size_t i = 0; i < arrays_max && said.empty(); ++i)
        if (all[i].there != 0) said = rtc::told(all[i], *u->second.kernel, name(*u->second.kernel, i));
      free_.push_back(u->second.at);
    }
    under_way_.erase(from, to);
    return said;
  }

  /// The device answers, and nothing is under way on it.
  void close() noexcept {
    for (const auto& [launch, u] : under_way_) free_.push_back(u.at);
    under_way_.clear();
    for (const slot& s : free_) {
      (void)GPU(Free)(s.there);
      (void)free_pinned(s.here);
    }
    free_.clear();
  }

 private:
  struct slot {
    std::byte* there = nullptr;
    void* here = nullptr;  // pinned
  };
  struct used {
    slot at;
    const std::string* kernel = nullptr;
  };
  static constexpr std::size_t bytes = arrays_max * sizeof(rtc::access_note);

  template <class Check>
  static slot make(Check check) {
    slot s;
    void* there = nullptr;
    check(GPU(Malloc)(&there, bytes), "Malloc");
    s.there = static_cast<std::byte*>(there);
    check(malloc_pinned(&s.here, bytes), "MallocHost");
    return s;
  }

  std::vector<slot> free_;
  std::map<std::uint64_t, used> under_way_;  // by the number of the launch
};

}  // namespace troupe::devices::gpu::GPU_NS
