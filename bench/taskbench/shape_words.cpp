// What this file is for: writing and reading a shape.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "shape_words.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace bench {

std::vector<std::string> words_of(const step_shape& s) {
  return {std::string(name_of(s.pattern)), std::to_string(s.width),        std::to_string(s.steps),
          std::to_string(s.graphs),        std::to_string(s.output_bytes), std::to_string(s.iterations),
          std::to_string(s.scratch_bytes)};
}

std::optional<step_shape> shape_of(const char* const* words) {
  step_shape s;
  const auto pattern =
      std::ranges::find_if(step_patterns, [&](step_pattern p) { return name_of(p) == std::string_view(words[0]); });
  if (pattern == std::end(step_patterns)) return {};
  s.pattern = *pattern;
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 10); };
  s.width = number(1);
  s.steps = number(2);
  s.graphs = number(3);
  s.output_bytes = number(4);
  s.iterations = number(5);
  s.scratch_bytes = number(6);
  if (s.scratch_bytes % (2 * scratch_piece) != 0) return {};
  if (s.width == 0 || s.steps == 0 || s.graphs == 0 || s.output_bytes == 0 || s.output_bytes % 16 != 0) return {};
  return s;
}

}  // namespace bench
