// What this file is for: the points of a box, one by one, for models that look at single elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/logic/data/box4.hpp"

namespace test {

template <class F>
void each_point(const troupe::logic::box4& b, F&& f) {
  troupe::logic::point4 p;
  for (p[0] = b.lo[0]; p[0] < b.hi[0]; ++p[0])
    for (p[1] = b.lo[1]; p[1] < b.hi[1]; ++p[1])
      for (p[2] = b.lo[2]; p[2] < b.hi[2]; ++p[2])
        for (p[3] = b.lo[3]; p[3] < b.hi[3]; ++p[3]) f(p);
}

}  // namespace test
