// What this file is for: sets of elements of a tile as lists of boxes that do not overlap.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "actors/logic/data/box4.hpp"

namespace troupe::logic {

/// Boxes that do not overlap and are not empty, in no order.
using box_list = std::vector<box4>;

/// Returns the elements of the list that do not lie in the box.
box_list without(const box_list&, const box4&);
/// The same, of those that lie in none of the others.
box_list without(box_list, const box_list& others);
/// Returns the number of elements.
index_t volume(const box_list&);
/// Joins boxes that are one box together, along one dimension after the other.
void unite(box_list&);

}  // namespace troupe::logic
