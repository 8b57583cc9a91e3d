// What this file is for: pictures in and out, and what kind of error each damage gives.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "examples/convolve/image.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "../pictures.hpp"
#include "../program.hpp"

namespace {

using convolution::image;
using convolution::image_error;
using convolution::image_fault;
using convolution::read_image;
using troupe_test::noise;
using troupe_test::png_chunk;
using troupe_test::png_colour;
using troupe_test::png_file;

constexpr std::uint64_t plenty = 1 << 30;
using samples = std::vector<std::uint8_t>;

class picture : public testing::Test {
 protected:
  image read(const std::string& bytes) { return read_image(folder.put("picture", bytes), plenty); }
  image_fault fault_of(const std::string& bytes, std::uint64_t memory = plenty) {
    try {
      read_image(folder.put("picture", bytes), memory);
    } catch (const image_error& e) {
      return e.fault();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  troupe_test::scratch_folder folder;
};

TEST_F(picture, comes_back_as_it_was_written) {
  for (const std::size_t channels : {3u, 4u}) {
    const image before = noise(37, 11, channels);
    {
      const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((folder / "p.png").c_str(), "wb"),
                                                                 std::fclose);
      convolution::write_png(file.get(), before, "p.png");
    }
    const image after = read_image(folder / "p.png", plenty);
    EXPECT_EQ(after.width, 37u);
    EXPECT_EQ(after.height, 11u);
    EXPECT_EQ(after.channels, channels);
    EXPECT_EQ(after.samples, before.samples);
  }
}

TEST_F(picture, becomes_colour_from_grey_of_any_depth) {
  EXPECT_EQ(read(png_file(2, 1, 8, png_colour::grey, std::string("\0\x01\xfe", 3))).samples,
            (samples{1, 1, 1, 254, 254, 254}));
  EXPECT_EQ(read(png_file(2, 1, 1, png_colour::grey, std::string("\0\x40", 2))).samples,
            (samples{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(read(png_file(1, 1, 16, png_colour::grey, std::string("\0\x80\x80", 3))).samples, (samples{128, 128, 128}));
}

TEST_F(picture, keeps_alpha_beside_grey) {
  const image p = read(png_file(1, 1, 8, png_colour::grey_alpha, std::string("\0\x20\x7f", 3)));
  EXPECT_EQ(p.channels, 4u);
  EXPECT_EQ(p.samples, (samples{32, 32, 32, 127}));
}

TEST_F(picture, turns_palettes_and_transparent_colours_into_colour_and_alpha) {
  const std::string palette = png_chunk("PLTE", std::string("\xff\0\0\0\xff\0", 6));
  const std::string rows("\0\x40", 2);  // entries 0 and 1, one bit each
  EXPECT_EQ(read(png_file(2, 1, 1, png_colour::palette, rows, palette)).samples, (samples{255, 0, 0, 0, 255, 0}));
  const image p = read(png_file(2, 1, 1, png_colour::palette, rows, palette + png_chunk("tRNS", "\x30")));
  EXPECT_EQ(p.channels, 4u);
  EXPECT_EQ(p.samples, (samples{255, 0, 0, 48, 0, 255, 0, 255}));
}

TEST_F(picture, may_be_interlaced) {
  // The first pass has the upper left of 2x2 pixels, the sixth the upper right, the seventh the lower row.
  const std::string passes("\0\1\0\2\0\3\4", 7);
  EXPECT_EQ(read(png_file(2, 2, 8, png_colour::grey, passes, "", true)).samples,
            (samples{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
}

TEST_F(picture, reads_jpegs_in_colour_and_grey) {
  const image colour = read(troupe_test::jpeg_file());
  EXPECT_EQ(colour.width, 16u);
  EXPECT_EQ(colour.height, 16u);
  ASSERT_EQ(colour.samples.size(), 16u * 16 * 3);
  EXPECT_LT(colour.samples[0], colour.samples[15 * 3]);           // red grows to the right
  EXPECT_LT(colour.samples[1], colour.samples[15 * 16 * 3 + 1]);  // green grows downwards
  const image grey = read(troupe_test::grey_jpeg_file());
  ASSERT_EQ(grey.samples.size(), 8u * 8 * 3);
  EXPECT_EQ(grey.samples[0], grey.samples[2]);
  EXPECT_LT(grey.samples[0], grey.samples[7 * 3]);
}

TEST_F(picture, is_refused_before_memory_is_taken) {
  const std::string bytes = png_file(noise(100, 100, 3));
  EXPECT_EQ(fault_of(bytes, 30000), image_fault::too_large);
  EXPECT_EQ(fault_of(png_file(100000, 100000, 8, png_colour::rgb, "few"), 1 << 30), image_fault::too_large);
  EXPECT_EQ(fault_of(troupe_test::jpeg_file(), 1000), image_fault::too_large);
}

TEST_F(picture, that_a_file_cannot_hold_is_damaged_whatever_the_memory) {
  const std::uint64_t endless = ~std::uint64_t{0};
  EXPECT_EQ(fault_of(png_file(200000, 200000, 16, png_colour::rgb_alpha, "few"), endless), image_fault::damaged);
  EXPECT_EQ(fault_of(troupe_test::with_size(troupe_test::jpeg_file(), 65500, 65500), endless), image_fault::damaged);
}

TEST_F(picture, errors_say_what_kind_they_are) {
  EXPECT_EQ(fault_of("text"), image_fault::unknown_format);
  EXPECT_EQ(fault_of(png_file(noise(5, 5, 3)).substr(0, 60)), image_fault::damaged);
  EXPECT_EQ(fault_of(troupe_test::jpeg_file().substr(0, 290)), image_fault::damaged);
  EXPECT_THROW(read_image(folder / "absent", plenty), image_error);
}

}  // namespace
