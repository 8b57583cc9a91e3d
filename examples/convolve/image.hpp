// What this file is for: pictures in memory, and reading and writing them as PNG and JPEG.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "input_error.hpp"

namespace convolution {

/// The fault of a picture, for a caller that wants more than the sentence in `what()`.
enum class image_fault { unreadable, unknown_format, damaged, too_large, unwritable };

class image_error : public input_error {
 public:
  image_error(image_fault fault, const std::string& sentence) : input_error(sentence), fault_(fault) {}
  image_fault fault() const { return fault_; }

 private:
  image_fault fault_;
};

/// Rows of pixels from the top, each pixel 3 (red, green, blue) or 4 (and alpha) samples of 8 bits, without gaps.
struct image {
  std::size_t width = 0;
  std::size_t height = 0;
  std::size_t channels = 3;
  std::vector<std::uint8_t> samples;

  std::size_t row_bytes() const { return width * channels; }
};

/// Reads a PNG or a JPEG, told apart by their first bytes. Grey and palettes become RGB, 16 bits become 8, transparency
/// of any kind becomes an alpha channel. Colour profiles and the orientation tag are not applied.
/// Throws `image_error`: `unreadable`, `unknown_format`, `damaged` (also for anything that a JPEG decoder would only
/// warn of, such as a premature end), and `too_large` before memory is taken, when filtering the picture needs more
/// than `memory_bytes_max`.
image read_image(const std::string& path, std::uint64_t memory_bytes_max);

/// Writes a PNG to an open stream. Throws `image_error(unwritable)`; `name` is for the message.
void write_png(std::FILE* stream, const image& picture, const std::string& name);

}  // namespace convolution
