// What this file is for: a kernel that a program spawns and a plugin offers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/troupe.hpp>

inline constexpr auto scale =
    troupe::kernel<troupe::inout<float, 1>, float>("lab.scale").on(troupe::cpu, [](troupe::view<float, 1> a, float by) {
      for (auto i = a.lo(0); i < a.hi(0); ++i) a(i) *= by;
    });
