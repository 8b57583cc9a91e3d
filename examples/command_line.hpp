// What this file is for: what the examples' command lines have in common: `--help`, `--version`, `--devices LIST`, and
// how a mistake is told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/troupe.hpp>

namespace examples {

/// Where `--help` (`-h`) or `--version` is among the words, answers it. True then: the program has nothing else to do.
inline bool explains_itself(int argc, const char* const* argv, const char* program, const std::string& usage) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h")
      std::printf("%s\n", usage.c_str());
    else if (word == "--version")
      std::printf("%s %s\n", program, troupe::version());
    else
      continue;
    return true;
  }
  return false;
}

/// The number that a word is. Throws `std::invalid_argument` where it is none, or is out of range.
inline int number(std::string_view text, int least, int most, const std::string& usage) {
  int n = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault != std::errc() || end != text.data() + text.size() || n < least || n > most)
    throw std::invalid_argument("'" + std::string(text) + "' is no number from " + std::to_string(least) + " to " +
                                std::to_string(most) + "; " + usage);
  return n;
}

/// The names in a LIST, separated by commas. Throws `std::invalid_argument` where there is nothing between two of them.
/// Whether there are such devices is for the runtime to say.
inline std::vector<std::string> device_names(std::string_view option, std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      throw std::invalid_argument(std::string(option) + " takes names of devices, separated by commas, not '" +
                                  std::string(text) + "'");
    names.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

inline std::vector<troupe::device_use> devices_of(const std::vector<std::string>& names) {
  std::vector<troupe::device_use> devices;
  for (const std::string& name : names) devices.push_back({.name = name});
  return devices;
}

/// Whole numbers and `--devices LIST`, in any order.
struct command_line {
  std::vector<troupe::index_t> numbers;
  std::vector<std::string> devices;

  troupe::options options() const { return {.devices = devices_of(devices)}; }
};

struct limits {
  troupe::index_t least, most;
};

/// Throws `std::invalid_argument` with `usage` for anything else, for more numbers than there are limits, and for one
/// beyond its limits.
inline command_line read_command_line(int argc, const char* const* argv, const std::vector<limits>& allowed,
                                      const std::string& usage) {
  command_line result;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--devices") {
      if (i + 1 >= argc) throw std::invalid_argument("--devices needs a value; " + usage);
      result.devices = device_names(word, argv[++i]);
      continue;
    }
    troupe::index_t number = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::size_t n = result.numbers.size();
    if (fault != std::errc() || end != word.data() + word.size() || n >= allowed.size() || number < allowed[n].least ||
        number > allowed[n].most)
      throw std::invalid_argument("'" + std::string(word) + "' is not understood; " + usage);
    result.numbers.push_back(number);
  }
  return result;
}

/// Prints how many tasks each executor ran, where devices were named.
inline void print_executors(const troupe::runtime& rt, const command_line& asked) {
  if (asked.devices.empty()) return;
  for (const auto& e : rt.executors())
    std::printf("%-9s %6llu tasks, %6.1f MiB moved\n", e.name.c_str(), static_cast<unsigned long long>(e.tasks),
                static_cast<double>(e.bytes_moved) / 1048576);
}

/// To be called while an exception is handled: one line on stderr, and the exit code: 2 for wrong input, else 1.
inline int complain(const char* program) {
  const auto say = [program](const char* text, int code) {
    std::fprintf(stderr, "%s: %s\n", program, text);
    return code;
  };
  try {
    throw;
  } catch (const std::invalid_argument& e) {
    return say(e.what(), 2);
  } catch (const troupe::error& e) {
    return say(e.what(), e.code() == troupe::errc::bad_argument || e.code() == troupe::errc::no_executor ? 2 : 1);
  } catch (const std::exception& e) {
    return say(e.what(), 1);
  }
}

}  // namespace examples
