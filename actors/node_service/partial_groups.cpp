// What this file is for: sums are begun, added to and taken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/partial_groups.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::detail {

bool partial_groups::came(std::uint64_t number, combine_fn by, std::uint64_t bytes) {
  group& g = groups_.try_emplace(number, group{.by = by, .bytes = bytes}).first->second;
  if (g.by != by || g.bytes != bytes) return false;
  ++g.here;
  return true;
}

void partial_groups::left(std::uint64_t number) {
  const auto at = groups_.find(number);
  group& g = at->second;
  if (--g.here == 0 && g.open.tasks.empty()) groups_.erase(at);
}

bool partial_groups::add(std::uint64_t number, std::uint64_t task, int access, const net::pieces& rows,
                         std::size_t element) {
  group& g = groups_.at(number);
  std::uint64_t all = 0;
  for (const auto& row : rows) all += row.size();
  if (all != g.bytes) throw error(errc::protocol_error, "a partial of another size than its reduction's");
  const bool begins = g.open.tasks.empty();
  try {
    g.open.tasks.reserve(sum_max);
    if (begins) {
      auto bytes = std::make_shared<std::vector<std::byte>>();
      bytes->reserve(static_cast<std::size_t>(all));
      for (const auto& row : rows) bytes->insert(bytes->end(), row.begin(), row.end());
      g.open.bytes = std::move(bytes);
    }
  } catch (const std::bad_alloc&) {
    throw error(errc::out_of_memory, "no memory to add up partials of a reduction");
  }
  if (!begins) {
    std::byte* to = g.open.bytes->data();
    for (const auto& row : rows) {
      g.by->combine(to, row.data(), row.size() / element);
      to += row.size();
    }
  } else {
    g.open.access = access;
  }
  g.open.tasks.push_back(task);
  --g.here;
  return begins;
}

std::optional<partial_groups::sum> partial_groups::take(std::uint64_t number) {
  const auto at = groups_.find(number);
  if (at == groups_.end() || at->second.open.tasks.empty()) return {};
  if (at->second.here != 0 && at->second.open.tasks.size() < sum_max) return {};
  return take_from(at);
}

std::optional<partial_groups::sum> partial_groups::take_any() {
  const auto at = std::ranges::find_if(groups_, [](const auto& g) { return !g.second.open.tasks.empty(); });
  if (at == groups_.end()) return {};
  return take_from(at);
}

std::optional<partial_groups::sum> partial_groups::take_from(std::unordered_map<std::uint64_t, group>::iterator at) {
  sum s = std::exchange(at->second.open, {});
  if (at->second.here == 0) groups_.erase(at);
  return s;
}

}  // namespace troupe::detail
