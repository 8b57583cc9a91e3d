// What this file is for: troupe-convolve as its user meets it: pictures that come out, and what is said about them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "examples/convolve/image.hpp"
#include "pictures.hpp"
#include "program.hpp"

namespace {

using convolution::image;
using troupe_test::finished_program;
using troupe_test::noise;
using troupe_test::png_colour;
using troupe_test::png_file;

constexpr std::uint64_t plenty = 1 << 30;

class convolve : public testing::Test {
 protected:
  // Runs the program on the bytes of a picture and gives what it wrote.
  image filtered(const std::string& picture, std::vector<std::string> options = {}) {
    std::vector<std::string> words{folder.put("in.picture", picture), folder / "out.png"};
    words.insert(words.end(), options.begin(), options.end());
    last = troupe_test::run_program("troupe-convolve", words);
    EXPECT_EQ(last.exit_code, 0) << last.err;
    return convolution::read_image(folder / "out.png", plenty);
  }
  std::string kernel(const std::string& text) { return folder.put("kernel.txt", text); }
  bool said(const std::string& part) const { return last.out.find(part) != std::string::npos; }

  troupe_test::scratch_folder folder;
  finished_program last;
};

// out(y, x) = in(y - dy, x - dx), with positions beyond the border moved to it.
image shifted(const image& from, int dy, int dx) {
  image to = from;
  const int h = static_cast<int>(from.height), w = static_cast<int>(from.width), c = static_cast<int>(from.channels);
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x)
      for (int i = 0; i < 3; ++i) {
        const int sy = std::clamp(y - dy, 0, h - 1), sx = std::clamp(x - dx, 0, w - 1);
        to.samples[static_cast<std::size_t>((y * w + x) * c + i)] =
            from.samples[static_cast<std::size_t>((sy * w + sx) * c + i)];
      }
  return to;
}

TEST_F(convolve, leaves_a_picture_of_one_pixel_as_it_is) {
  const image picture{1, 1, 3, {10, 200, 255}};
  const image result = filtered(png_file(picture), {"--verify"});
  EXPECT_EQ(result.width, 1u);
  EXPECT_EQ(result.height, 1u);
  EXPECT_EQ(result.samples, picture.samples);
}

TEST_F(convolve, keeps_a_picture_of_one_colour) {
  image picture{40, 33, 3, {}};
  for (int i = 0; i < 40 * 33; ++i) picture.samples.insert(picture.samples.end(), {0, 77, 255});
  EXPECT_EQ(filtered(png_file(picture), {"--tile", "16", "--verify"}).samples, picture.samples);
}

TEST_F(convolve, takes_pictures_smaller_than_the_kernel) {
  const image result = filtered(png_file(noise(7, 5, 3)), {"--verify"});
  EXPECT_EQ(result.width, 7u);
  EXPECT_EQ(result.height, 5u);
  EXPECT_TRUE(said("of 105 samples")) << last.out;
}

TEST_F(convolve, takes_prime_sizes_and_tiles_that_do_not_divide_them) {
  filtered(png_file(noise(127, 61, 3)), {"--tile", "13", "--groups", "2", "--verify"});
  EXPECT_TRUE(said("50 tiles")) << last.out;
  EXPECT_TRUE(said("of 23241 samples")) << last.out;
}

TEST_F(convolve, takes_lines_one_pixel_wide) {
  filtered(png_file(noise(1, 83, 3)), {"--tile", "8", "--verify"});
  EXPECT_TRUE(said("of 249 samples")) << last.out;
  filtered(png_file(noise(83, 1, 4)), {"--tile", "8", "--verify"});
  EXPECT_TRUE(said("of 332 samples")) << last.out;
}

TEST_F(convolve, gives_the_same_picture_whatever_the_tiles_and_groups) {
  const std::string picture = png_file(noise(67, 41, 3));
  const image whole = filtered(picture, {"--tile", "4096", "--groups", "1", "--threads", "1"});
  EXPECT_EQ(filtered(picture, {"--tile", "1"}).samples, whole.samples);
  EXPECT_EQ(filtered(picture, {"--tile", "7", "--groups", "3"}).samples, whole.samples);
  EXPECT_EQ(filtered(picture, {"--tile", "32", "--groups", "2", "--threads", "4"}).samples, whole.samples);
}

TEST_F(convolve, gives_the_same_picture_with_an_identity_kernel) {
  const image picture = noise(23, 19, 4);
  EXPECT_EQ(filtered(png_file(picture), {"--kernel", kernel("7\n")}).samples, picture.samples);
  EXPECT_EQ(filtered(png_file(picture), {"--kernel", kernel("0 0 0\n0 1 0\n0 0 0\n")}).samples, picture.samples);
}

TEST_F(convolve, applies_the_kernel_as_it_is_written) {
  const image picture = noise(20, 11, 3);
  const std::string file = png_file(picture);
  // The upper left number weighs the pixel up and to the left: the picture moves down and to the right.
  EXPECT_EQ(filtered(file, {"--kernel", kernel("1 0 0\n0 0 0\n0 0 0\n")}).samples, shifted(picture, 1, 1).samples);
  EXPECT_EQ(filtered(file, {"--kernel", kernel("0 0 0 0 1\n")}).samples, shifted(picture, 0, -2).samples);
  EXPECT_EQ(filtered(file, {"--kernel", kernel("0\n0\n1\n")}).samples, shifted(picture, -1, 0).samples);
}

TEST_F(convolve, applies_raw_kernels_and_clamps_what_they_overshoot) {
  // A row 0 100 200 under (-1 3 -1): 0, 100, 400 with the border repeated, less the neighbours.
  const image picture{3, 1, 3, {0, 0, 0, 100, 100, 100, 200, 200, 200}};
  const image result = filtered(png_file(picture), {"--kernel", kernel("-1 3 -1\n"), "--raw", "--verify"});
  EXPECT_EQ(result.samples, (std::vector<std::uint8_t>{0, 0, 0, 100, 100, 100, 255, 255, 255}));
}

TEST_F(convolve, takes_kernels_that_add_up_to_zero_when_raw) {
  const image flat{5, 4, 3, std::vector<std::uint8_t>(60, 90)};
  const image result = filtered(png_file(flat), {"--kernel", kernel("0 1 0\n1 -4 1\n0 1 0\n"), "--raw", "--verify"});
  EXPECT_EQ(result.samples, std::vector<std::uint8_t>(60, 0));
}

TEST_F(convolve, verifies_a_raw_sharpening_kernel) {
  filtered(png_file(noise(61, 53, 3)), {"--kernel", kernel("0 -1 0\n-1 5 -1\n0 -1 0\n"), "--raw", "--verify"});
  EXPECT_TRUE(said("largest difference 0")) << last.out;
}

TEST_F(convolve, takes_the_largest_kernel) {
  std::string text;
  for (int y = 0; y < 63; ++y) {
    for (int x = 0; x < 63; ++x) text += std::to_string((x * 7 + y * 3) % 11) + " ";
    text += "\n";
  }
  filtered(png_file(noise(50, 40, 3)), {"--kernel", kernel(text), "--tile", "16", "--verify"});
  EXPECT_TRUE(said("verified")) << last.out;
}

TEST_F(convolve, rounds_halves_up) {
  // 0.5 * odd numbers: every result lies half way.
  const image picture{2, 1, 3, {1, 3, 5, 253, 255, 127}};
  const image result = filtered(png_file(picture), {"--kernel", kernel("0.5"), "--raw", "--verify"});
  EXPECT_EQ(result.samples, (std::vector<std::uint8_t>{1, 2, 3, 127, 128, 64}));
}

TEST_F(convolve, keeps_alpha) {
  const image picture = noise(45, 37, 4);
  const image result = filtered(png_file(picture), {"--tile", "20", "--verify"});
  ASSERT_EQ(result.channels, 4u);
  for (std::size_t i = 3; i < picture.samples.size(); i += 4) ASSERT_EQ(result.samples[i], picture.samples[i]) << i;
  EXPECT_NE(result.samples, picture.samples);
}

TEST_F(convolve, takes_grey_pictures_and_gives_colour) {
  const std::string grey = png_file(3, 1, 8, png_colour::grey, std::string("\0\x10\x80\xf0", 4));
  const image result = filtered(grey, {"--kernel", kernel("1")});
  EXPECT_EQ(result.channels, 3u);
  EXPECT_EQ(result.samples, (std::vector<std::uint8_t>{16, 16, 16, 128, 128, 128, 240, 240, 240}));
}

TEST_F(convolve, takes_jpegs) {
  const image result = filtered(troupe_test::jpeg_file(), {"--verify"});
  EXPECT_EQ(result.width, 16u);
  EXPECT_EQ(result.channels, 3u);
}

TEST_F(convolve, replaces_an_older_result) {
  folder.put("out.png", "an older file");
  EXPECT_EQ(filtered(png_file(noise(4, 4, 3))).width, 4u);
  EXPECT_EQ(folder.names(), (std::set<std::string>{"in.picture", "out.png"}));
}

TEST_F(convolve, writes_over_its_own_input) {
  const image picture = noise(9, 9, 3);
  const std::string path = folder.put("picture.png", png_file(picture));
  const auto done = troupe_test::run_program("troupe-convolve", {path, path});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(convolution::read_image(path, plenty).samples, picture.samples);
}

TEST_F(convolve, says_who_ran_what) {
  filtered(png_file(noise(64, 64, 3)), {"--tile", "16", "--groups", "2", "--threads", "2"});
  EXPECT_TRUE(said("out.png: 64x64 RGB, 31x31 kernel, 16 tiles in ")) << last.out;
  for (const char* word : {"executor", "tasks", "busy", "moved", "predicted", "measured", "cpu:0", "cpu:1", "all"})
    EXPECT_TRUE(said(word)) << word << "\n" << last.out;
}

TEST_F(convolve, shows_progress_in_at_most_ten_lines) {
  filtered(png_file(noise(100, 100, 3)), {"--tile", "5"});
  const auto lines = std::count(last.err.begin(), last.err.end(), '\n');
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, 10);
  EXPECT_NE(last.err.find("100 %, 400 of 400 tiles"), std::string::npos) << last.err;
  EXPECT_EQ(last.err.find('\r'), std::string::npos);
}

TEST_F(convolve, says_nothing_when_quiet) {
  filtered(png_file(noise(30, 30, 3)), {"--quiet", "--verify"});
  EXPECT_EQ(last.out, "");
  EXPECT_EQ(last.err, "");
}

TEST_F(convolve, writes_a_trace_when_asked) {
  filtered(png_file(noise(30, 30, 3)), {"--trace", folder / "run.json", "--tile", "10"});
  const std::string trace = troupe_test::bytes_of(folder / "run.json");
  EXPECT_NE(trace.find("convolve"), std::string::npos);
  EXPECT_TRUE(said("run.json")) << last.out;
}

TEST_F(convolve, explains_itself) {
  const auto help = troupe_test::run_program("troupe-convolve", {"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* option : {"--kernel", "--raw", "--tile", "--groups", "--threads", "--verify", "--trace", "--quiet"})
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  EXPECT_NE(help.out.find("correlation"), std::string::npos);
}

}  // namespace
