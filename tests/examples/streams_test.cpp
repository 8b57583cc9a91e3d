// What this file is for: the programs with streams, against answers that come from elsewhere: awk, one loop.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "program.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using testing::HasSubstr;
using troupe_test::bytes_of;
using troupe_test::run_program;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  std::sort(all.begin(), all.end());
  return all;
}

std::string two(int n) { return (n < 10 ? "0" : "") + std::to_string(n); }

TEST(stream_programs, logs_counts_what_awk_counts) {
  const test::scratch_folder folder;
  const std::string log = folder.path() / "log", answer = folder.path() / "answer";
  {
    std::mt19937 random(1);
    std::ofstream out(log);
    const std::vector<std::string> actions{"install", "status", "configure", "remove"};
    for (int s = 0; s < 2 * 86'400; s += static_cast<int>(random() % 40)) {
      if (random() % 100 == 0) out << "this is no such line\n";
      const int rest = s % 86'400;
      out << "2026-02-" << 27 + s / 86'400 << ' ' << two(rest / 3600) << ':' << two(rest / 60 % 60) << ':'
          << two(rest % 60) << ' ' << actions[random() % actions.size()] << " x:amd64 1 2\n";
    }
  }
  ASSERT_EQ(std::system(("awk '/^2026/ {n[substr($0,1,13) \":00 \" $3]++} "
                         "END {for (k in n) {split(k,p,\" \"); printf \"%s %s %-12s %d\\n\",p[1],p[2],p[3],n[k]}}' '" +
                         log + "' > '" + answer + "'")
                            .c_str()),
            0);
  const auto done = run_program("troupe-logs", {log});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(sorted_lines(done.out), sorted_lines(bytes_of(answer)));
  EXPECT_GT(sorted_lines(done.out).size(), 90u);
  EXPECT_THAT(done.err, HasSubstr(" of them not understood, 0 too late"));
}

TEST(stream_programs, logs_tells_what_it_cannot_read) {
  const auto done = run_program("troupe-logs", {"/no/such/log"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("/no/such/log"));
}

TEST(stream_programs, video_finds_what_one_loop_finds) {
  if (std::system("ffmpeg -version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ffmpeg is not installed";
  const test::scratch_folder folder;
  const std::string video = folder.path() / "video.mkv", picture = folder.path() / "picture.pgm";
  ASSERT_EQ(std::system(("ffmpeg -loglevel error -f lavfi -i testsrc2=size=160x120:rate=10:duration=5 -c:v ffv1 '" +
                         video + "'")
                            .c_str()),
            0);
  const auto done =
      run_program("troupe-video", {video, "--size", "160x120", "--lanes", "3", "--out", picture, "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("50 frames in "));
  EXPECT_THAT(done.out, HasSubstr("\nthe same as in one loop\n"));
  EXPECT_THAT(done.out, testing::Not(HasSubstr("; 0.00 % of the pixels move")));
  const std::string p = bytes_of(picture);
  EXPECT_EQ(p.substr(0, 15), "P5\n160 120\n255\n");
  EXPECT_EQ(p.size(), 15u + 160 * 120);

  const auto wrong = run_program("troupe-video", {"/no/such/video"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("/no/such/video: No such file"));
}

TEST(stream_programs, nexmark_answers_what_a_database_answers) {
  if (!troupe_test::has_program("troupe-nexmark")) GTEST_SKIP() << "troupe-nexmark was not built: no SQLite";
  for (const char* rate : {"30", "2000"}) {
    const auto done = run_program("troupe-nexmark", {"--events", "30000", "--rate", rate, "--threads", "2", "--check"});
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    EXPECT_EQ(sorted_lines(done.out).size(), 9u);
    EXPECT_THAT(done.out, testing::Not(HasSubstr("NOT")));
    EXPECT_THAT(done.out, testing::Not(HasSubstr(": 0 rows")));
  }
  const auto timed = run_program("troupe-nexmark", {"--events", "20000", "--repeat", "1"});
  EXPECT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_THAT(timed.out, testing::Not(HasSubstr("ANOTHER ANSWER")));
  const auto wrong = run_program("troupe-nexmark", {"--query", "9"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("'9' is no number from 0 to 8"));
}

TEST(stream_programs, spectrum_finds_what_fftw_finds_on_cores_and_on_a_device) {
  if (!troupe_test::has_program("troupe-spectrum")) GTEST_SKIP() << "troupe-spectrum was not built: no FFTW";
  const test::scratch_folder folder;
  const std::string sound = folder.path() / "sound.wav", picture = folder.path() / "picture.pgm";
  {
    // 1500 Hz and, weaker, 3000 Hz at 8000 Hz, with some noise.
    std::mt19937 random(1);
    std::string data;
    for (int i = 0; i < 24'000; ++i) {
      const double t = i / 8000.0, pi = 3.14159265358979;
      const auto v = static_cast<int>(8000 * std::sin(2 * pi * 1500 * t) + 2000 * std::sin(2 * pi * 3000 * t) +
                                      static_cast<double>(random() % 1000));
      data += static_cast<char>(v & 0xff);
      data += static_cast<char>((v >> 8) & 0xff);
    }
    std::ofstream out(sound, std::ios::binary);
    const auto number = [&](unsigned n, int bytes) {
      for (int i = 0; i < bytes; ++i) out.put(static_cast<char>(n >> (8 * i)));
    };
    out << "RIFF";
    number(static_cast<unsigned>(36 + data.size()), 4);
    out << "WAVEfmt ";
    for (const auto& [n, bytes] : {std::pair(16U, 4), {1U, 2}, {1U, 2}, {8000U, 4}, {16'000U, 4}, {2U, 2}, {16U, 2}})
      number(n, bytes);
    out << "data";
    number(static_cast<unsigned>(data.size()), 4);
    out << data;
  }
  for (const char* device : {"", "sim"}) {
    std::vector<std::string> words{sound, "--out", picture, "--check"};
    if (*device) words.insert(words.end(), {"--devices", device});
    const auto done = run_program("troupe-spectrum", words);
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    EXPECT_THAT(done.out, HasSubstr("45 spectra of 1024 samples at 8000 Hz; most power at 1500.0 Hz"));
    EXPECT_THAT(done.out, HasSubstr("\nthe same as FFTW"));
    EXPECT_EQ(bytes_of(picture).size(), std::string("P5\n45 512\n255\n").size() + 45 * 512);
  }
  const auto wrong = run_program("troupe-spectrum", {"/etc/passwd"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("'/etc/passwd': it is no WAV file"));
}

}  // namespace
