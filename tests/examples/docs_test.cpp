// What this file is for: the C++ in the README and in docs/ is cut from files that are compiled.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"

namespace {

namespace fs = std::filesystem;
using troupe_test::bytes_of;

const fs::path root = TROUPE_SOURCE_DIR;

// Its lines, each without the space that it begins and ends with.
std::string plain(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) all += line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
    all += '\n';
  }
  return all;
}

// Returns what stands between ```cpp and ```, cut where a line is "...".
std::vector<std::string> pieces_of(const std::string& page) {
  std::istringstream lines(page);
  std::vector<std::string> all;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!inside && line == "```cpp") {
      inside = true;
      all.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside && line == "...") {
      all.emplace_back();
    } else if (inside) {
      all.back() += line + '\n';
    }
  }
  return all;
}

std::vector<std::string> compiled_files() {
  std::vector<std::string> all;
  for (const char* folder : {"examples", "tests/docs", "tests/house/consumer"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (const auto kind = entry.path().extension(); kind == ".cpp" || kind == ".hpp")
        all.push_back('\n' + plain(bytes_of(entry.path().string())));
  return all;
}

TEST(docs, show_code_that_is_compiled) {
  std::vector<fs::path> pages{root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  const std::vector<std::string> sources = compiled_files();
  std::size_t pieces = 0;
  for (const fs::path& page : pages)
    for (const std::string& piece : pieces_of(bytes_of(page.string()))) {
      ++pieces;
      const std::string wanted = '\n' + plain(piece);
      EXPECT_TRUE(
          std::ranges::any_of(sources, [&](const std::string& s) { return s.find(wanted) != std::string::npos; }))
          << page << " shows what is in no file that is compiled:\n"
          << piece;
    }
  EXPECT_GE(pieces, 10u);
}

}  // namespace
