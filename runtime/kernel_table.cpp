// What this file is for: the kernels that a runtime has seen.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/kernel_table.hpp"

#include <algorithm>
#include <string>

#include <troupe/error.hpp>

namespace troupe::detail {

namespace {

// Refuses a kernel without a text or entry now: a null pointer that is read later has no caller to report to.
void check_texts(const kernel_info& k) {
  for (int kind = 0; kind < device_kind_count; ++kind) {
    const bool is_text = kind != static_cast<int>(device_kind::cpu) && !k.routines[static_cast<std::size_t>(kind)];
    if (!is_text || !(k.kinds & (1u << kind))) continue;
    const kernel_text& t = k.texts[static_cast<std::size_t>(kind)];
    if (!t.text || !*t.text || !t.entry || !*t.entry)
      throw error(errc::bad_argument, "kernel '" + std::string(k.name) + "': its body for an accelerator has no " +
                                          (!t.text || !*t.text ? "text" : "entry, the name of the function"));
  }
}

}  // namespace

const kernel_info* kernel_table::intern(const kernel_info& k) {
  const auto same = [&](const kernel_info& have) {
    for (std::size_t i = 0; i < k.texts.size(); ++i)
      if (have.texts[i].text != k.texts[i].text || have.texts[i].entry != k.texts[i].entry ||
          have.texts[i].group != k.texts[i].group)
        return false;
    return have.key == k.key && have.routines == k.routines && have.kinds == k.kinds && have.repeat == k.repeat &&
           have.resources == k.resources && have.shape_count == k.shape_count &&
           std::equal(k.shapes.begin(), k.shapes.begin() + k.shape_count, have.shapes.begin());
  };
  std::size_t at = k.key % slots;
  for (std::size_t i = 0; i < slots; ++i, at = (at + 1) % slots) {
    const kernel_info* have = table_[at].load(std::memory_order_acquire);
    if (!have) break;
    if (same(*have)) return have;
  }
  check_texts(k);
  std::lock_guard hold(lock_);
  for (const kernel_info& have : kept_)
    if (same(have)) return &have;
  kernel_info& fresh = kept_.emplace_back(k);
  shown_ids& nodes = nodes_.emplace_back();
  if (const auto known = offered_.find(k.key); known != offered_.end() && k.portable) nodes = known->second;
  fresh.nodes = &nodes;
  for (std::size_t kind = 0; kind < k.texts.size(); ++kind)
    if (k.texts[kind].text && !k.routines[kind] && logic::uses_double(k.texts[kind].text))
      fresh.doubles = static_cast<unsigned char>(fresh.doubles | 1u << kind);
  at = k.key % slots;
  for (std::size_t i = 0; i < slots; ++i, at = (at + 1) % slots) {
    const kernel_info* none = nullptr;
    if (table_[at].compare_exchange_strong(none, &fresh, std::memory_order_acq_rel)) break;
  }
  return &fresh;  // if the table is full it is found in the list
}

void kernel_table::offer(std::uint16_t id, const std::unordered_set<std::uint64_t>& keys) {
  std::lock_guard hold(lock_);
  for (auto& [key, nodes] : offered_) nodes.erase(id);
  for (const std::uint64_t key : keys) offered_[key].insert(id);
  std::erase_if(offered_, [](const auto& o) { return o.second.empty(); });
  auto nodes = nodes_.begin();
  for (const kernel_info& k : kept_) {
    const auto known = offered_.find(k.key);
    *nodes++ = known != offered_.end() && k.portable ? known->second : logic::executor_set();
  }
}

}  // namespace troupe::detail
