// What this file is for: medians, edges, and the choice.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/cost_model.hpp"

#include <algorithm>
#include <bit>

namespace troupe::logic {

size_class size_class_of(std::uint64_t bytes) { return static_cast<size_class>(std::bit_width(bytes)); }

void run_time::learn(float ns) {
  if (seen_++ == 0) return;
  const std::uint32_t n = seen_ - 1;  // samples kept so far, this one included
  recent_[(n - 1) % window] = ns;
  // Early samples move the median at once; later it is looked at again when the window has been renewed by half.
  if (n > window && n % (window / 2) != 0) return;
  std::array<float, window> sorted = recent_;
  const std::uint32_t have = std::min(n, window);
  const auto middle = sorted.begin() + (have - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + have);
  median_ = std::max(*middle, 1.0f);
}

cost_model::cost_model() = default;

run_time& cost_model::of(const detail::kernel_info& k, size_class size, device_kind kind) {
  const std::uint32_t rest = (std::uint32_t{size} << 8) | static_cast<std::uint32_t>(kind);
  const std::size_t place =
      ((reinterpret_cast<std::uintptr_t>(&k) >> 4) ^ (std::uint64_t{rest} * 0x9e3779b1u >> 7)) % shortcut_count;
  shortcut& s = shortcuts_[place];
  if (s.kernel == &k && s.rest == rest) return *s.entry;
  auto& entry = entries_[k.key ^ (std::uint64_t{rest} * 0x9e3779b97f4a7c15ull)];
  if (!entry) entry = std::make_unique<run_time>();
  s = {&k, rest, entry.get()};
  return *entry;
}

void cost_model::set_edge(std::uint16_t from, std::uint16_t to, edge_cost c) {
  edges_[(std::uint32_t{from} << 16) | to] = c;
}

void cost_model::learn_transfer(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns) {
  if (bytes == 0 || ns <= 0) return;
  edge_cost& e = edges_[(std::uint32_t{from} << 16) | to];
  if (bytes < 4096) {  // small ones tell the latency
    e.latency_ns = e.latency_ns == 0 ? ns : 0.75f * e.latency_ns + 0.25f * ns;
    return;
  }
  const float rate = static_cast<float>(bytes) / std::max(ns - e.latency_ns, 1.0f);
  e.bytes_per_ns = e.bytes_per_ns == 0 ? rate : 0.75f * e.bytes_per_ns + 0.25f * rate;
}

float cost_model::transfer_ns(std::uint16_t from, std::uint16_t to, std::uint64_t bytes) const {
  if (from == to || bytes == 0) return 0;
  const auto e = edges_.find((std::uint32_t{from} << 16) | to);
  // An edge nobody has measured: 10 us and 1 GB/s, slow enough to prefer a known one.
  if (e == edges_.end()) return 10'000.0f + static_cast<float>(bytes);
  const float rate = e->second.bytes_per_ns > 0 ? e->second.bytes_per_ns : 1.0f;
  return e->second.latency_ns + static_cast<float>(bytes) / rate;
}

std::size_t best_offer(std::span<const offer> offers) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < offers.size(); ++i) {
    const float a = offers[i].finish_ns(), b = offers[best].finish_ns();
    if (a < b || (a == b && offers[i].bytes_missing < offers[best].bytes_missing)) best = i;
  }
  return best;
}

}  // namespace troupe::logic
