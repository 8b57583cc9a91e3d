// What this file is for: which shapes a task's body sees, and whether its kernel takes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/region.hpp"

namespace troupe::detail {

namespace {
// Returns the box of an access that the body sees.
logic::box4 seen_of(const access& x) { return x.where ? logic::view_box(*x.where) : x.array->tile_box(x.tile); }

std::string text_of_shape(const access& x) {
  const logic::box4 b = seen_of(x);
  std::string text = "array '" + x.array->spec.name + "' ";
  for (int d = 0; d < x.array->spec.rank; ++d)
    text += (d ? " x [" : "[") + std::to_string(b.lo[d]) + "," + std::to_string(b.hi[d]) + ")";
  return text;
}

bool holds(const shape_rule& r, const access& a, const access& b) {
  const logic::box4 of_a = seen_of(a), of_b = seen_of(b);
  switch (r.is) {
    case shape_rule::what::same_shape:
      for (int d = 0; d < rank_max; ++d)
        if (of_a.size(d) != of_b.size(d)) return false;
      return true;
    case shape_rule::what::same_size:
      return of_a.size(r.a_dim) == of_b.size(r.b_dim);
    case shape_rule::what::covers: {  // in the body's coordinates: from the corner of the array or sub-array passed
      const auto origin = [](const access& x) {
        return x.where ? x.where->limit_lo : x.worker != 0 ? x.array->tile_box(x.tile).lo : logic::point4{};
      };
      const logic::point4 at_a = origin(a), at_b = origin(b);
      for (int d = 0; d < a.array->spec.rank && !of_b.empty(); ++d) {
        const index_t before = (of_b.lo[d] - at_b[d]) - (of_a.lo[d] - at_a[d]);
        const index_t behind = (of_a.hi[d] - at_a[d]) - (of_b.hi[d] - at_b[d]);
        if (before < r.size || behind < r.size) return false;
      }
      return true;
    }
    case shape_rule::what::not_empty:
      return !of_a.empty();
    case shape_rule::what::has_size:
      return of_a.size(r.a_dim) == r.size;
  }
  return false;
}

bool is_of_two(const shape_rule& r) {
  return r.is != shape_rule::what::not_empty && r.is != shape_rule::what::has_size;
}

// The arrays of a parameter, among the accesses without those to futures: one, or those of a list.
struct arrays_of {
  std::size_t first = 0, count = 1;
  bool is_list = false;
};

arrays_of find(const kernel_info& k, std::size_t parameter, std::span<const std::uint32_t> lists) {
  arrays_of found;
  std::size_t list = 0;
  for (std::size_t p = 0;; ++p) {
    found.is_list = p < 64 && (k.lists >> p & 1) != 0;
    found.count = !found.is_list ? 1 : list < lists.size() ? lists[list++] : 0;
    if (p == parameter) return found;
    found.first += found.count;
  }
}
}  // namespace

void check_shapes(const task_record& t, std::span<const std::uint32_t> lists) {
  std::vector<const access*> arrays;  // where there may be many
  if (!lists.empty())
    for (const access& x : std::span(t.accesses, t.access_count))
      if (x.array) arrays.push_back(&x);
  const auto nth = [&](std::size_t n) -> const access* {
    if (!lists.empty()) return n < arrays.size() ? arrays[n] : nullptr;
    for (int i = 0; i < t.access_count; ++i)
      if (t.accesses[i].array && n-- == 0) return &t.accesses[i];
    return nullptr;
  };
  const auto refuse = [&](const std::string& what) {
    throw error(errc::bad_argument, "kernel '" + std::string(t.kernel->name) + "' takes no such shapes: " + what +
                                        "; see what it requires (kernel::requiring), and pass boxes that fit");
  };
  for (std::size_t i = 0; i < t.kernel->shape_count; ++i) {
    const shape_rule& r = t.kernel->shapes[i];
    const arrays_of of_a = find(*t.kernel, r.a, lists), of_b = is_of_two(r) ? find(*t.kernel, r.b, lists) : of_a;
    if (of_a.is_list && of_b.is_list && of_a.count != of_b.count)
      refuse("lists of " + std::to_string(of_a.count) + " and " + std::to_string(of_b.count) + " arrays");
    const std::size_t pairs = of_a.is_list ? of_a.count : of_b.count;
    for (std::size_t k = 0; k < pairs; ++k) {
      const access* const a = nth(of_a.first + (of_a.is_list ? k : 0));
      const access* const b = nth(of_b.first + (of_b.is_list ? k : 0));
      if (a && b && holds(r, *a, *b)) continue;
      const bool two = a && b && a != b;
      refuse((a ? text_of_shape(*a) : "") + (two ? " with " + text_of_shape(*b) : ""));
    }
  }
}

}  // namespace troupe::detail
