// What this file is for: everything a user can do wrong: one clear line, exit code 2, nothing left behind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pictures.hpp"
#include "program.hpp"

namespace {

using troupe_test::noise;
using troupe_test::png_colour;
using troupe_test::png_file;

class convolve_refuses : public testing::Test {
 protected:
  // The words must be refused with one line that holds `reason`, and every file must stay as it was.
  void refused(const std::vector<std::string>& words, const std::string& reason) {
    const auto before = folder.names();
    judge(troupe_test::run_program("troupe-convolve", words), reason);
    EXPECT_EQ(folder.names(), before);
  }
  void judge(const troupe_test::finished_program& done, const std::string& reason) {
    EXPECT_EQ(done.exit_code, 2) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_EQ(done.err.rfind("troupe-convolve: ", 0), 0u) << done.err;
    EXPECT_NE(done.err.find(reason), std::string::npos) << done.err;
  }
  void refused_picture(const std::string& bytes, const std::string& reason) {
    refused({folder.put("in.png", bytes), out}, reason);
  }
  void refused_kernel(const std::string& text, const std::string& reason, const std::string& option = "--quiet") {
    refused({good, out, "--kernel", folder.put("kernel.txt", text), option}, reason);
  }

  troupe_test::scratch_folder folder;
  std::string good = folder.put("good.png", png_file(noise(12, 9, 3)));
  std::string out = folder / "out.png";
};

TEST_F(convolve_refuses, a_missing_file) { refused({folder / "absent.png", out}, "No such file"); }

TEST_F(convolve_refuses, a_folder_as_picture) { refused({folder / ".", out}, "not a regular file"); }

TEST_F(convolve_refuses, a_file_that_is_no_picture) {
  refused_picture("", "neither a PNG nor a JPEG");
  refused_picture("\x89PNG", "neither a PNG nor a JPEG");
  refused_picture("hello, this is a letter and not a photograph", "neither a PNG nor a JPEG");
  refused_picture(std::string(1000, '\0'), "neither a PNG nor a JPEG");
}

TEST_F(convolve_refuses, a_png_cut_anywhere) {
  const std::string whole = png_file(noise(12, 9, 3));
  for (std::size_t length = 8; length < whole.size(); length += 7)
    refused_picture(whole.substr(0, length), "truncated or unsupported PNG");
  refused_picture(whole.substr(0, whole.size() - 1), "truncated or unsupported PNG");
}

TEST_F(convolve_refuses, a_png_with_flipped_bits) {
  std::string bytes = png_file(noise(12, 9, 3));
  bytes[bytes.size() / 2] ^= 1;
  refused_picture(bytes, "truncated or unsupported PNG");
}

TEST_F(convolve_refuses, a_png_with_rows_missing) {
  refused_picture(png_file(2, 3, 8, png_colour::grey, std::string("\0\1\2", 3)), "truncated or unsupported PNG");
}

TEST_F(convolve_refuses, a_jpeg_cut_anywhere) {
  const std::string whole = troupe_test::jpeg_file();
  for (std::size_t length = 3; length < whole.size(); length += 7)
    refused_picture(whole.substr(0, length), "truncated or unsupported JPEG");
  refused_picture(whole.substr(0, whole.size() - 2), "truncated or unsupported JPEG");  // only the end mark is missing
}

TEST_F(convolve_refuses, pictures_that_would_not_fit_into_memory) {
  refused_picture(png_file(100000, 100000, 8, png_colour::rgb, "few"), "100000x100000");
  refused_picture(png_file(2147483647, 2147483647, 16, png_colour::rgb_alpha, "few"), "2147483647x2147483647");
}

TEST_F(convolve_refuses, headers_that_promise_more_than_the_file_can_hold) {
  refused_picture(png_file(20000, 20000, 8, png_colour::rgb, "few"), "");
  refused_picture(troupe_test::with_size(troupe_test::jpeg_file(), 65500, 65500), "");
  refused_picture(troupe_test::with_size(troupe_test::jpeg_file(), 3000, 3000), "too short for the size");
}

TEST_F(convolve_refuses, a_png_without_pixels) {
  refused_picture(png_file(0, 5, 8, png_colour::rgb, ""), "truncated or unsupported PNG");
}

TEST_F(convolve_refuses, places_that_cannot_be_written) {
  refused({good, folder / "absent/out.png"}, "No such file");
  refused({good, good + "/out.png"}, "Not a directory");
  refused({good, "/proc/out.png"}, "cannot write /proc/out.png");
  std::filesystem::create_directory(folder / "folder.png");
  refused({good, folder / "folder.png"}, "not a regular file");
}

TEST_F(convolve_refuses, a_disk_that_fills_up_and_keeps_the_older_result) {
  const std::string picture = folder.put("large.png", png_file(noise(300, 300, 3)));
  const std::string one = folder.put("one.txt", "1");
  folder.put("out.png", "an older file");
  const auto before = folder.names();
  judge(troupe_test::run_program_on_small_disk(8, "troupe-convolve", {picture, out, "--kernel", one, "--quiet"}),
        "cannot write " + out + ": File too large");
  EXPECT_EQ(folder.names(), before);
  EXPECT_EQ(troupe_test::bytes_of(out), "an older file");
}

TEST_F(convolve_refuses, without_touching_an_older_result) {
  folder.put("out.png", "an older file");
  refused_picture("not a picture", "neither a PNG nor a JPEG");
  refused_kernel("1 2\n", "odd");
  EXPECT_EQ(troupe_test::bytes_of(out), "an older file");
}

TEST_F(convolve_refuses, kernels_of_even_size) {
  refused_kernel("1 2\n3 4\n", "must be odd");
  refused_kernel("1 2 3\n4 5 6\n", "must be odd");
}

TEST_F(convolve_refuses, ragged_kernels) { refused_kernel("1 2 3\n4 5\n6 7 8\n", "kernel.txt:2: a row of 2 numbers"); }

TEST_F(convolve_refuses, kernels_that_are_not_numbers) {
  refused_kernel("1 2 three\n", "kernel.txt:1: 'three' is not a number");
  refused_kernel("1 nan 1\n", "'nan' is not a number");
  refused_kernel(std::string("1 \0 1\n", 6), "is not a number");
  refused_kernel("1 a\nb 1\n", "is not a number");
}

TEST_F(convolve_refuses, kernels_that_are_too_large) {
  std::string row;
  for (int i = 0; i < 65; ++i) row += "1 ";
  refused_kernel(row, "more than 63 numbers");
  std::string column;
  for (int i = 0; i < 65; ++i) column += "1\n";
  refused_kernel(column, "more than 63 rows");
  refused_kernel(std::string(2 << 20, ' '), "too long");
}

TEST_F(convolve_refuses, kernels_that_add_up_to_zero) { refused_kernel("-1 0 1\n", "add up to zero"); }

TEST_F(convolve_refuses, kernels_beyond_float) { refused_kernel("1e38 1e38 1e38\n", "too large", "--raw"); }

TEST_F(convolve_refuses, kernel_files_that_cannot_be_read) {
  refused_kernel("", "holds no numbers");
  refused({good, out, "--kernel", folder / "absent.txt"}, "No such file");
  refused({good, out, "--kernel", folder / "."}, "Is a directory");
}

TEST_F(convolve_refuses, numbers_that_make_no_sense) {
  for (const char* option : {"--tile", "--groups", "--threads"})
    for (const char* number : {"0", "-1", "1.5", "many", "", " 4", "99999999999999999999"})
      refused({good, out, option, number}, std::string(option) + " takes a whole number");
  refused({good, out, "--groups", "4", "--threads", "2"}, "--groups 4 needs");
}

TEST_F(convolve_refuses, wrong_command_lines) {
  refused({}, "two files are needed");
  refused({good}, "two files are needed");
  refused({good, out, out}, "two files are needed");
  refused({good, out, "--fast"}, "unknown option '--fast'");
  refused({good, out, "--tile"}, "--tile needs a value");
  refused({good, out, "--raw"}, "--kernel FILE");
  refused({good, folder / "out.jpg"}, "must end in .png");
  refused({good, ""}, "must end in .png");
  refused({good, out, "--trace", folder / "absent/run.json"}, "cannot write");
}

TEST_F(convolve_refuses, devices_that_are_not_there) {
  refused({good, out, "--quiet", "--devices", "toaster"}, "'toaster' is no kind of device");
  refused({good, out, "--quiet", "--devices", "sim:99"}, "there is no sim:99");
  refused({good, out, "--quiet", "--devices", "sim,"}, "separated by commas, not 'sim,'");
}

TEST_F(convolve_refuses, in_one_line_even_where_a_name_holds_several) {
  refused({folder / "two\nlines.png", out}, "two?lines.png");
}

}  // namespace
