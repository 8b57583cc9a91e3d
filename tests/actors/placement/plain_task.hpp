// What this file is for: a task without a body, for tests that complete tasks by hand.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/engine.hpp>

#include "actors/memory/record_pool.hpp"

namespace test {

using namespace troupe::detail;

/// A tile of an array of one tile, and what a task does with it.
struct use {
  array_core* array;
  troupe::access_mode mode;
};

inline task_extra& extra(task_record* t) { return extra_of(*t); }

/// Makes a task of kernel "kernel" that uses these tiles.
inline task_record* plain_task(runtime_state& rt, const std::vector<use>& uses, std::string name) {
  static constexpr task_ops ops{nullptr, [](task_record&) noexcept {}, [](task_record&) noexcept {},
                                [](task_record&) noexcept -> void* { return nullptr; },
                                kernel_info{.name = "kernel", .key = 1}};
  task_record* t = take_record(rt);
  t->ops = &ops;
  t->kernel = &ops.closure;
  for (const use& u : uses) {
    troupe::detail::access& x = t->accesses[t->access_count++];
    x = {};
    x.array = u.array;
    x.mode = u.mode;
  }
  if (!name.empty()) extra(t).options.name = std::move(name);
  return t;
}

}  // namespace test
