// What this file is for: the shape of graphs in steps as words of a command line, for peers in processes of their own.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "steps.hpp"

namespace bench {

/// "PATTERN WIDTH STEPS GRAPHS BYTES ITERATIONS SCRATCH".
inline constexpr int shape_words = 7;
std::vector<std::string> words_of(const step_shape&);
/// Reads `shape_words` words from there; none: they are no shape.
std::optional<step_shape> shape_of(const char* const* words);

}  // namespace bench
