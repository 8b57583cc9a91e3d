// What this file is for: what is refused of a call that an owner describes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/call_checks.hpp"

#include <algorithm>

#include <troupe/error.hpp>

#include "actors/logic/data/reduction_operators.hpp"

namespace troupe::detail {

void refuse_peer(const std::string& what) { throw error(errc::protocol_error, what); }

array_spec spec_of(const wire::array_descriptor& c) {
  array_spec s;
  s.rank = c.rank;
  s.size = c.size;
  s.tile = c.tile;
  s.element = static_cast<std::size_t>(c.element);
  s.align = static_cast<std::size_t>(c.align);
  s.name = c.name;
  double bytes = static_cast<double>(c.element);
  for (const index_t n : c.size) bytes *= static_cast<double>(std::max<index_t>(n, 1));  // products of some of them too
  if (bytes > wire::bytes_max) refuse_peer("an array that is too large");
  return s;
}

// The boxes of an access lie as they may: one long beyond the rank of the array, so that what the body sees of them is
// empty where it has no memory; the limits inside the array. Only what was written goes back, and each partial does.
void check_access(const array_core& a, const wire::access_descriptor& x) {
  const array_spec& s = a.spec;
  double volume = static_cast<double>(s.element);
  for (int d = 0; d < rank_max; ++d) {
    if (x.limit.lo[d] < 0 || x.limit.hi[d] > s.size[d]) refuse_peer("a box outside of its array");
    const bool is_one = x.where.lo[d] == 0 && x.where.hi[d] == 1 && x.limit.lo[d] == 0 && x.limit.hi[d] == 1;
    if (d >= s.rank && !is_one) refuse_peer("a box of more dimensions than its array");
    volume *= static_cast<double>(std::max<index_t>(x.where.size(d), 1));
  }
  if (volume > wire::bytes_max) refuse_peer("a box that is too large");
  const bool reads = x.mode == access_mode::read;
  if (!reads && x.edge != border::clip && !x.limit.contains(x.where)) refuse_peer("a border of what is written");
  if ((x.returns || x.copied) && reads) refuse_peer("what was only read is to be sent back");
  if (x.fresh && (!x.returns || !x.gaps.empty())) refuse_peer("a partial that stays, or is to be sent");
  if (x.group != 0 && (!combiner_of(x.op) || element_of(x.op) != s.element))
    refuse_peer("a reduction by an operator that is not known");
  if ((x.fresh || x.edge == border::fill) && s.element > x.fill.size())
    refuse_peer("a constant of elements that are too large");
}

void check_sums(const wire::task_descriptor& c) {
  const auto adds = [](const wire::access_descriptor& x) { return x.group != 0; };
  const auto makes = [](const wire::access_descriptor& x) { return x.mode != access_mode::read; };
  if (std::ranges::any_of(c.accesses, adds) && std::ranges::count_if(c.accesses, makes) != 1)
    refuse_peer("a partial that is to be added up, of a task that makes other things");
}

checked_call check_call(const wire::task_descriptor& c, const offered_kernel& k, const named_array& array_of) {
  std::size_t array = 0, value = 0;
  checked_call checked;
  for (const parameter_facts& p : k.parameters) {
    if (!p.is_array || p.is_list) {
      if (value == c.values.size() || !is_size_of(p, c.values[value].size()))
        refuse_peer("values that are not the kernel's");
      const auto is_no_truth = [](std::byte b) { return std::to_integer<unsigned>(b) > 1; };
      if (p.is_truth && std::ranges::any_of(c.values[value], is_no_truth))
        refuse_peer("a value that is neither 0 nor 1");
      checked.values.emplace_back(c.values[value++]);
    }
    if (!p.is_array) continue;
    if (p.is_list) checked.lists.push_back(length_of(checked.values.back()));
    const std::size_t count = p.is_list ? checked.lists.back() : 1;
    if (count > c.accesses.size() - array) refuse_peer("fewer arrays than the kernel has");
    for (const std::size_t end = array + count; array != end; ++array) {
      const wire::access_descriptor& x = c.accesses[array];
      const array_core* const known = array_of(x.array);
      if (!known) refuse_peer("an array that was not named before");
      const array_spec& s = known->spec;
      const bool same_mode = p.mode == x.mode && x.fresh == (p.mode == access_mode::reduce);
      if (!same_mode || s.rank != p.rank || s.element != p.bytes) refuse_peer("an array that is not the kernel's");
      check_access(*known, x);
    }
  }
  if (array != c.accesses.size() || value != c.values.size()) refuse_peer("more arguments than the kernel has");
  return checked;
}

}  // namespace troupe::detail
