// What this file is for: memory of this node that a task on another one writes: where its bytes go as they come.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/job.hpp"

#include <algorithm>
#include <cstring>

#include "actors/wire/rows.hpp"

namespace troupe::detail {

net::pieces job::back::pieces() {
  net::pieces rows = rows_of(to, element);
  if (!is_update) return rows;
  std::size_t bytes = 0;
  for (const auto& r : rows) bytes += r.size();
  if (!staged) staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
  return {{staged.get(), bytes}};
}

void job::back::take_over() {
  if (!staged) return;
  const std::byte* from = staged.get();
  for (const auto& row : rows_of(to, element)) {
    std::memcpy(row.data(), from, row.size());
    from += row.size();
  }
}

job::back* job::back_of(std::uint64_t access) {
  if (!data) return nullptr;
  const auto is_it = [&](const back& b) { return static_cast<std::uint64_t>(b.number) == access; };
  const auto b = std::ranges::find_if(data->to, is_it);
  return b == data->to.end() ? nullptr : &*b;
}

}  // namespace troupe::detail
