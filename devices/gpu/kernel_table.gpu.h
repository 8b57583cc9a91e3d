// What this file is for: the kernels that a GPU has loaded, and their launches.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "devices/gpu/access_notes.gpu.h"
#include "devices/gpu/errors.gpu.h"
#include "devices/gpu/open_devices.gpu.h"

namespace troupe::devices::gpu::GPU_NS {

/// Codes go to `check(code, call)`, which throws.
class kernel_table {
 public:
  /// `device` outlives it, and is complete when the first kernel is loaded.
  kernel_table(std::shared_ptr<toolchain> tools, const accelerator_facts& device)
      : tools_(std::move(tools)), device_(device) {}
  kernel_table(const kernel_table&) = delete;
  kernel_table& operator=(const kernel_table&) = delete;

  /// What is compiled for, and how many work-items a group may have.
  void open(std::string target, std::uint32_t group_max) {
    target_ = std::move(target);
    group_max_ = group_max;
  }

  /// What kernels touch outside of their arrays is noted from now on.
  void check_accesses() { checks_ = true; }

  /// `is_broken()`: the device answers no call any more.
  template <class Broken, class Check>
  kernel_id load(const kernel_source& wanted, Broken is_broken, Check check) {
    const auto key = std::make_pair(std::string(wanted.entry), std::string(wanted.text));
    if (const auto at = ids_.find(key); at != ids_.end()) return at->second;
    kernel_source source = wanted;
    entry e;
    if (checks_) note_arrays(e, source);
    e.name = source.entry;
    e.kernel.watch_by(complaints_, source.name.empty() ? source.entry : source.name);
    auto code = e.kernel.load(tools_->code(source, target_, device_.identity), source, tools_->wishes());
    if (code != GPU(Success) && meaning(code) != errc::device_lost) {
      // What was on disk may be of no use here; what is fresh must be.
      (void)GPU(GetLastError)();
      e.kernel.unload();
      code = e.kernel.load(tools_->fresh_code(source, target_, device_.identity), source, tools_->wishes());
    }
    if (code != GPU(Success)) {
      e.kernel.unload();
      if (meaning(code) != errc::device_lost && !is_broken()) {
        (void)GPU(GetLastError)();
        // SymbolNotFound of CUDA, NotFound of HIP.
        if (static_cast<int>(code) == 500) throw error(errc::compile_failed, rtc::no_function(source, target_));
        throw error(errc::compile_failed,
                    rtc::described(source, target_) + " cannot be loaded or is not in the text: " + code_text(code));
      }
      check(code, "LibraryLoadData");
    }
    if (e.checked && e.kernel.parameters) note_elements(e);
    all_.push_back(std::move(e));
    return ids_[key] = static_cast<kernel_id>(all_.size() - 1);
  }

  /// `address(pointer)`: as the device knows it.
  template <class Address, class Check>
  void launch(GPU(Stream_t) stream, kernel_id id, const launch_shape& shape, std::span<const kernel_argument> arguments,
              Address address, Check check) {
    if (id >= all_.size()) bad("launch: no kernel has the id " + std::to_string(id));
    const auto& e = all_[id];
    if (e.checked)
      rtc::check_arguments(arguments, e.parameters, e.name);
    else if (e.kernel.parameters)
      rtc::check_arguments(arguments, *e.kernel.parameters, e.name);
    dim3 groups, group;
    if (!grid_of(shape, e.name, groups, group)) return;
    ++launched_;
    std::byte* note = e.checked ? notes_.begin(launched_, e.watched->name, stream, check) : nullptr;
    values_.resize(2 * arguments.size());  // their addresses must stay
    pointers_.clear();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& a = arguments[i];
      if (a.is_memory) values_[2 * i] = address(a.memory);
      pointers_.push_back(a.is_memory ? static_cast<void*>(&values_[2 * i])
                                      : const_cast<void*>(static_cast<const void*>(a.value.data())));
      if (!e.checked || e.parameters[i].array.empty()) continue;
      values_[2 * i + 1] = note;
      note += sizeof(rtc::access_note);
      pointers_.push_back(&values_[2 * i + 1]);
    }
    const auto code = e.kernel.launch(groups, group, pointers_.data(), stream, launched_);
    if (const int n = static_cast<int>(code); n == 9 || n == 701) {  // InvalidConfiguration, LaunchOutOfResources
      (void)GPU(GetLastError)();
      refuse("kernel " + e.name + ": " GPU_NAME "LaunchKernel answered " + code_text(code));
    }
    check(code, "LaunchKernel");
    if (e.checked) notes_.end(launched_, stream, check);
  }

  std::uint64_t launched() const { return launched_; }
  std::string complaint(std::uint64_t first, std::uint64_t last) {
    const std::string said = notes_.take(first, last, [this](const std::string& kernel, std::size_t i) {
      for (const entry& e : all_)
        if (e.watched && &e.watched->name == &kernel) return e.watched->arrays[i];
      return std::string();
    });
    return said.empty() ? complaints_.take(first, last) : said;
  }

  void unload() noexcept {
    notes_.close();
    for (auto& e : all_) e.kernel.unload();
  }

 private:
  struct entry {
    std::string name;
    loaded_kernel kernel;
    bool checked = false;
    std::vector<rtc::parameter> parameters;  // where it is checked: without those for notes
    struct known {                           // to people
      std::string name;
      std::vector<std::string> arrays;
    };
    std::shared_ptr<const known> watched;
  };

  // Only where the text shows its arrays can they be given memory for notes.
  static void note_arrays(entry& e, kernel_source& source) {
    auto parameters = rtc::parameters_of(source.text, source.entry);
    if (!parameters) return;
    auto known = std::make_shared<typename entry::known>();
    known->name = source.name.empty() ? source.entry : source.name;
    for (const rtc::parameter& p : *parameters)
      if (!p.array.empty()) known->arrays.push_back(p.array);
    if (known->arrays.size() > access_notes::arrays_max) return;
    e.checked = source.checked = true;
    e.parameters = std::move(*parameters);
    e.watched = std::move(known);
  }

  // What the compiler told of the elements of arrays is better than what the text shows.
  static void note_elements(entry& e) {
    const std::vector<rtc::parameter>& told = *e.kernel.parameters;
    std::size_t at = 0;
    for (rtc::parameter& p : e.parameters) {
      if (at < told.size() && p.is_memory) p.element_bytes = told[at].element_bytes;
      at += p.array.empty() ? 1 : 2;  // a note follows
    }
  }

  [[noreturn]] void bad(const std::string& text) const { throw error(errc::bad_argument, device_.name + ": " + text); }

  [[noreturn]] void refuse(const std::string& text) const {
    throw cannot_run(errc::bad_argument, device_.name + ": " + text);
  }

  // False: nothing to run.
  bool grid_of(const launch_shape& shape, const std::string& name, dim3& groups, dim3& group) const {
    std::array<std::uint32_t, 3> g{};
    std::uint64_t threads = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      if (shape.group[d] == 0) bad("kernel " + name + ": a group has at least one work-item in each dimension");
      threads *= shape.group[d];
      g[d] = static_cast<std::uint32_t>((std::uint64_t{shape.items[d]} + shape.group[d] - 1) / shape.group[d]);
      if (threads > group_max_)
        refuse("kernel " + name + ": a group may have " + std::to_string(group_max_) + " work-items on this device");
      if (d > 0 && g[d] > 65535)
        refuse("kernel " + name + ": more than 65535 groups in dimension " + std::to_string(d));
    }
    groups = dim3(g[0], g[1], g[2]);
    group = dim3(shape.group[0], shape.group[1], shape.group[2]);
    return g[0] && g[1] && g[2];
  }

  const std::shared_ptr<toolchain> tools_;
  const accelerator_facts& device_;
  std::string target_;
  std::uint32_t group_max_ = 1024;
  std::vector<entry> all_;
  complaint_book complaints_;
  access_notes notes_;
  bool checks_ = false;
  std::uint64_t launched_ = 0;
  std::map<std::pair<std::string, std::string>, kernel_id> ids_;
  std::vector<void*> values_, pointers_;  // of a launch; kept for their memory
};

}  // namespace troupe::devices::gpu::GPU_NS
