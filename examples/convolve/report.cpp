// What this file is for: drawing progress and laying out the table.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace convolution {
namespace {

constexpr int bar_width = 40;

bool redraws() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) && terminal && std::string_view(terminal) != "dumb";
}

std::string line(const executor_share& share) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, " %8" PRIu64 " %10.3f %12.1f %14.3f %13.3f", share.tasks, share.busy_s,
                static_cast<double>(share.moved_bytes) / 1048576, share.predicted_s, share.measured_s);
  std::string text = share.executor;
  text.resize(std::max<std::size_t>(text.size(), 12), ' ');
  text += numbers;
  if (share.predicted_s > 0) {
    std::snprintf(numbers, sizeof numbers, " %9.2f", share.measured_s / share.predicted_s);
    text += numbers;
  } else {
    text += "         -";
  }
  return text + "\n";
}

}  // namespace

progress::progress(bool shown) : shown_(shown), terminal_(shown && redraws()) {}

progress::~progress() {
  if (terminal_) std::fputs("\r\x1b[K", stderr);
}

void progress::show(std::uint64_t done, std::uint64_t total) {
  if (!shown_ || total == 0 || done == drawn_) return;
  drawn_ = done;
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  if (terminal_) {
    const int filled = static_cast<int>(fraction * bar_width);
    const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                            std::string(static_cast<std::size_t>(bar_width - filled), '.');
    std::fprintf(stderr, "\r[%s] %3.0f %%, %" PRIu64 " of %" PRIu64 " tiles\x1b[K", bar.c_str(), fraction * 100, done,
                 total);
    std::fflush(stderr);
  } else if (const int tenths = static_cast<int>(fraction * 10); tenths > tenths_) {
    tenths_ = tenths;
    std::fprintf(stderr, "%3.0f %%, %" PRIu64 " of %" PRIu64 " tiles\n", fraction * 100, done, total);
  }
}

void progress::say(const std::string& what) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r%s\x1b[K", what.c_str());
  std::fflush(stderr);
}

std::string table(const std::vector<executor_share>& shares) {
  std::string text = "executor        tasks   busy (s)  moved (MiB)  predicted (s)  measured (s)     ratio\n";
  executor_share sum{.executor = "all"};
  for (const executor_share& share : shares) {
    text += line(share);
    sum.tasks += share.tasks;
    sum.busy_s += share.busy_s;
    sum.moved_bytes += share.moved_bytes;
    sum.predicted_s += share.predicted_s;
    sum.measured_s += share.measured_s;
  }
  if (shares.size() > 1) text += line(sum);
  return text;
}

std::string sentence(const verdict& result) {
  char text[320];
  std::snprintf(text, sizeof text,
                "%s: %" PRIu64 " of %" PRIu64
                " samples equal the serial reference in double precision, largest "
                "difference %d",
                result.passed() ? "verified" : "WRONG", result.exact, result.samples, result.difference_max);
  std::string line = text;
  if (result.borderline > 0) {
    std::snprintf(text, sizeof text,
                  "; %" PRIu64 " differ by 1 within %.2g of a rounding boundary, where both are right",
                  result.borderline, result.tolerance);
    line += text;
  }
  if (result.wrong > 0) line += "; " + std::to_string(result.wrong) + " samples are wrong";
  return line;
}

}  // namespace convolution
