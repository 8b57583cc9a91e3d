// What this file is for: picture files made byte by byte, without the libraries that the program reads them with.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "examples/convolve/image.hpp"

namespace troupe_test {

/// Colour types of the PNG standard (ISO/IEC 15948, 11.2.2).
enum class png_colour : int { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };

/// A PNG of the given header whose rows, each with its filter byte, are `rows`, stored without compression.
/// `more` goes between the header and the data. Interlaced rows come pass by pass (8.2).
std::string png_file(std::uint32_t width, std::uint32_t height, int bits, png_colour colour, const std::string& rows,
                     const std::string& more = "", bool interlaced = false);
/// Returns a chunk with its checksum.
std::string png_chunk(const std::string& type, const std::string& data);

/// The same picture as such a file.
std::string png_file(const convolution::image& picture);

/// Reproducible noise over a slope: every sample differs from its neighbours.
convolution::image noise(std::size_t width, std::size_t height, std::size_t channels);

/// A 16x16 JPEG in colour: red grows to the right, green downwards.
std::string jpeg_file();
/// An 8x8 JPEG in grey that grows to the right.
std::string grey_jpeg_file();
/// `jpeg` with another size in its header.
std::string with_size(std::string jpeg, std::uint16_t width, std::uint16_t height);

}  // namespace troupe_test
