// What this file is for: medians, edges, and the choice.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/cost_model.hpp"

#include <algorithm>
#include <bit>

#include <troupe/kernel.hpp>

namespace troupe::logic {

size_class size_class_of(std::uint64_t bytes) { return static_cast<size_class>(std::bit_width(bytes)); }

void run_time::learn(float ns) {
  if (seen_++ == 0) {
    first_ = std::max(ns, 1.0f);
    return;
  }
  recent_[kept_++ % window] = ns;
  // Early samples move the median at once; later it is computed anew each time half of the window has been replaced.
  if (kept_ > window && kept_ % (window / 2) != 0) return;
  std::array<float, window> sorted = recent_;
  const std::uint32_t have = std::min(kept_, window);
  const auto middle = sorted.begin() + (have - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + have);
  median_ = std::max(*middle, 1.0f);
}

void run_time::remember(float ns) {
  if (seen_ != 0 || kept_ != 0) return;
  recent_[kept_++] = ns;
  median_ = std::max(ns, 1.0f);
}

namespace {

// Share by which one transfer moves an edge, and the factor by which it counts as slower or faster than expected at
// most: a transfer that was held up moves little, and a link that has become ten times slower is known as such after
// about eight. An edge moves down as fast as up: 1 + learning * 3 is the inverse of 1 - learning_faster * 0.75. Else a
// link that is held up now and then would count as slower than it mostly is.
constexpr float learning = 0.25f, learning_faster = 4.0f / 7, surprise_max = 4;
// Factor over the cost of an idle link from which the believed cost is not believed any more.
constexpr float doubted_from = 2;
// Number of samples below which there is no median to keep.
constexpr std::uint32_t samples_to_keep = 3;

std::uint32_t rest_of(size_class size, device_kind kind) {
  return (std::uint32_t{size} << 8) | static_cast<std::uint32_t>(kind);
}
std::uint64_t key_of(std::uint64_t kernel, std::uint32_t rest) {
  return kernel ^ (std::uint64_t{rest} * 0x9e3779b97f4a7c15ull);
}

// Returns a key that outlives the runtime; other texts make another kernel. 0: the kernel runs on one kind only, where
// nothing is weighed.
std::uint64_t lasting_key(const detail::kernel_info& k) {
  if (std::has_single_bit(k.kinds)) return 0;
  std::uint64_t key = k.key;
  for (const detail::kernel_text& t : k.texts)
    if (t.text) key = detail::hash_of(t.text, key);
  return key;
}

}  // namespace

cost_model::cost_model() = default;

std::size_t cost_model::shortcut_of(const detail::kernel_info& k, std::uint32_t rest) {
  return ((reinterpret_cast<std::uintptr_t>(&k) >> 4) ^ (std::uint64_t{rest} * 0x9e3779b1u >> 7)) % shortcut_count;
}

// A kernel without a key is told apart by its address: the type name of a closure may be that of another one in the
// same function, its constant has an address of its own.
std::uint64_t cost_model::entry_key(const detail::kernel_info& k, std::uint32_t rest) {
  return key_of(k.key != 0 ? k.key : reinterpret_cast<std::uintptr_t>(&k), rest);
}

run_time& cost_model::of(const detail::kernel_info& k, size_class size, device_kind kind) {
  const std::uint32_t rest = rest_of(size, kind);
  shortcut& s = shortcuts_[shortcut_of(k, rest)];
  if (s.kernel == &k && s.rest == rest) return *s.entry;
  auto& e = entries_[entry_key(k, rest)];
  if (!e) {
    e = std::make_unique<entry>();
    e->key = {lasting_key(k), size, kind, 0};
    if (e->key.kernel != 0 && !remembered_.empty())
      if (const auto known = remembered_.find(key_of(e->key.kernel, rest)); known != remembered_.end())
        e->time.remember(known->second);
  }
  s = {&k, rest, &e->time};
  return e->time;
}

const run_time* cost_model::find(const detail::kernel_info& k, size_class size, device_kind kind) const {
  const std::uint32_t rest = rest_of(size, kind);
  if (const shortcut& s = shortcuts_[shortcut_of(k, rest)]; s.kernel == &k && s.rest == rest) return s.entry;
  const auto at = entries_.find(entry_key(k, rest));
  return at != entries_.end() ? &at->second->time : nullptr;
}

void cost_model::remember(const remembered_time& t) { remembered_[key_of(t.kernel, rest_of(t.size, t.kind))] = t.ns; }

std::vector<remembered_time> cost_model::measured() const {
  std::vector<remembered_time> all;
  for (const auto& [key, e] : entries_) {
    if (e->key.kernel == 0 || e->time.seen() < samples_to_keep) continue;
    all.push_back(e->key);
    all.back().ns = e->time.predicted_ns();
  }
  return all;
}

cost_model::edge& cost_model::edge_of(std::uint16_t from, std::uint16_t to) {
  const std::size_t spaces = std::max<std::size_t>({spaces_, from + 1u, to + 1u});
  if (spaces > spaces_) {
    const std::size_t side = std::bit_ceil(spaces);  // doubled: spaces are named one after the other
    std::vector<edge> larger(side * side, edge{unknown_edge});
    for (std::size_t row = 0; row < spaces_; ++row)
      for (std::size_t column = 0; column < spaces_; ++column)
        larger[row * side + column] = edges_[row * spaces_ + column];
    edges_ = std::move(larger);
    spaces_ = side;
  }
  return edges_[from * spaces_ + to];
}

void cost_model::set_edge(std::uint16_t from, std::uint16_t to, edge_cost c) { edge_of(from, to) = {c, true, 0}; }

void cost_model::learn_transfer(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns) {
  if (bytes == 0 || !(ns > 0)) return;
  edge& e = edge_of(from, to);
  if (!e.measured) e.cost = unknown_edge;
  ++e.transfers;
  auto& [latency, rate] = e.cost;
  const float moving = static_cast<float>(bytes) / rate, expected = latency + moving, surprise = ns / expected;
  if (e.measured) {
    // The excess is divided between latency and rate in their shares of the expected time: small copies teach the one,
    // large ones the other.
    const float change = (surprise < 1 ? learning_faster : learning) *
                         (std::clamp(surprise, 1 / surprise_max, surprise_max) - 1) / expected;
    latency *= 1 + change * latency;
    rate /= 1 + change * moving;
  } else {  // the first measurement replaces the guess
    latency *= surprise;
    rate /= surprise;
    e.measured = true;
  }
  const edge_cost learned = e.cost;
  if (edge& back = edge_of(to, from); !back.measured) back.cost = learned;
}

bool cost_model::correct(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns, float round_trip_ns) {
  if (from == to || bytes == 0 || !(ns > 0) || !(round_trip_ns > 0)) return false;
  if (transfer_ns(from, to, bytes) <= doubted_from * ns) return false;
  edge& e = edge_of(from, to);
  auto& [latency, rate] = e.cost;
  latency = std::min({latency, round_trip_ns, ns / 2});
  rate = std::max(rate, static_cast<float>(bytes) / (ns - latency));
  e.measured = true;
  return true;
}

bool cost_model::knows_edge(std::uint16_t from, std::uint16_t to) const {
  const edge* const e = find(from, to);
  return e && e->measured;
}

std::size_t best_offer(std::span<const offer> offers) {
  std::size_t best = 0;
  float earliest = offers[0].finish_ns();
  for (std::size_t i = 1; i < offers.size(); ++i) {
    const float finish = offers[i].finish_ns();
    if (finish > earliest || (finish == earliest && offers[i].bytes_missing >= offers[best].bytes_missing)) continue;
    best = i;
    earliest = finish;
  }
  return best;
}

}  // namespace troupe::logic
