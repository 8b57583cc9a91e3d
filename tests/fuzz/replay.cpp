// What this file is for: a fuzz target run by any compiler: once on each file of its corpus, so that what was found
// stays found, and for a time on what random changes make of those.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   PROGRAM FOLDER...                           each file once
//   PROGRAM --seconds N [--seed S] --keep FILE FOLDER...   then changed ones; one that ends the program stays in FILE
//
// Without the coverage that libFuzzer looks at, which wants clang and all of a target's sources in one command: for
// what is as large as a node it is the structure of its inputs that reaches far.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace {

using input = std::vector<std::uint8_t>;

constexpr std::size_t bytes_max = 4096;

class changes {
 public:
  explicit changes(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  /// Returns an input of the corpus with some bytes changed, put in, taken out, or a piece of another one put in.
  input next(const std::vector<input>& corpus) {
    input made = corpus.empty() || below(8) == 0 ? input() : corpus[below(corpus.size())];
    for (std::size_t left = 1 + below(8); left != 0; --left) {
      const std::size_t at = made.empty() ? 0 : below(made.size());
      const auto position = made.begin() + static_cast<std::ptrdiff_t>(at);
      switch (made.empty() ? 2 : below(5)) {
        case 0:
          *position = byte();
          break;
        case 1:
          *position ^= static_cast<std::uint8_t>(1u << below(8));
          break;
        case 2: {
          input more(1 + below(32));
          for (auto& b : more) b = byte();
          made.insert(made.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
          break;
        }
        case 3:
          made.erase(position, position + static_cast<std::ptrdiff_t>(std::min(1 + below(16), made.size() - at)));
          break;
        default: {
          if (corpus.empty()) break;
          const input& other = corpus[below(corpus.size())];
          const std::size_t from = other.empty() ? 0 : below(other.size());
          const std::size_t count = std::min<std::size_t>(1 + below(64), other.size() - from);
          made.insert(position, other.begin() + static_cast<std::ptrdiff_t>(from),
                      other.begin() + static_cast<std::ptrdiff_t>(from + count));
        }
      }
    }
    if (made.size() > bytes_max) made.resize(bytes_max);
    return made;
  }

 private:
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }
  std::mt19937_64 random_;
};

}  // namespace

int main(int count, char** words) {
  std::vector<input> corpus;
  long seconds = 0;
  std::uint64_t seed = std::random_device{}();
  std::string keep;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word.starts_with("--") && i + 1 < count) {
      const char* const value = words[++i];
      if (word == "--seconds")
        seconds = std::atol(value);
      else if (word == "--seed")
        seed = std::strtoull(value, nullptr, 10);
      else if (word == "--keep")
        keep = value;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(words[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      corpus.emplace_back(text.begin(), text.end());
    }
  }
  if (corpus.empty()) return 1;
  for (const input& i : corpus) LLVMFuzzerTestOneInput(i.data(), i.size());
  std::printf("%zu inputs\n", corpus.size());
  if (seconds == 0) return 0;

  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  changes next(seed);
  std::size_t runs = 0;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
       std::chrono::steady_clock::now() < end; ++runs) {
    const input made = next.next(corpus);
    if (!keep.empty())
      std::ofstream(keep, std::ios::binary)
          .write(reinterpret_cast<const char*>(made.data()), static_cast<std::streamsize>(made.size()));
    LLVMFuzzerTestOneInput(made.data(), made.size());
  }
  if (!keep.empty()) std::filesystem::remove(keep);
  std::printf("%zu changed inputs\n", runs);
}
