// What this file is for: texts around kernels, and a reader of kernel signatures in the portable dialect.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <troupe/error.hpp>

#include "devices/kernels/kernels.hpp"

namespace troupe::devices::rtc {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Comments become spaces.
std::string without_comments(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto two = text.substr(i, 2);
    if (two == "//" || two == "/*") {
      const auto end = two == "//" ? text.find('\n', i) : text.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      out += ' ';
      i = two == "//" ? end : end + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view s) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < s.size();) {
    std::size_t n = 0;
    while (i + n < s.size() && is_word(s[i + n])) ++n;
    if (n) words.push_back(s.substr(i, n));
    i += n ? n : 1;
  }
  return words;
}

// Bytes of a scalar parameter such as "const unsigned int n"; 0 where the type is not one of C's.
std::size_t bytes_of(std::string_view declaration) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 9> sizes{{{"char", 1},
                                                                                  {"short", 2},
                                                                                  {"int", 4},
                                                                                  {"long", 8},
                                                                                  {"float", 4},
                                                                                  {"double", 8},
                                                                                  {"bool", 1},
                                                                                  {"gpu_shape", sizeof(kernels::shape)},
                                                                                  {"unsigned", 4}}};
  if (declaration.find('[') != std::string_view::npos) return 0;
  auto words = words_of(declaration);
  if (words.size() < 2) return 0;
  words.pop_back();  // the name
  std::size_t bytes = 0;
  for (const auto w : words) {
    if (w == "const" || w == "signed") continue;
    const auto* known = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == w; });
    if (known == sizes.end()) return 0;
    // "unsigned char", "long int", "short int": the word that is not the filler decides.
    if (w == "unsigned" || w == "int")
      bytes = bytes ? bytes : 4;
    else
      bytes = known->second;
  }
  return bytes;
}

void read_parameter(std::string_view text, std::vector<parameter>& out) {
  const auto words = words_of(text);
  if (words.empty() || (words.size() == 1 && words[0] == "void")) return;
  if (words[0] == "GPU_IN" || words[0] == "GPU_OUT" || words[0] == "GPU_INOUT") {
    out.push_back({true, sizeof(void*)});
    out.push_back({false, sizeof(kernels::shape), std::string(words.back())});
  } else if (text.find('*') != std::string_view::npos) {
    out.push_back({true, sizeof(void*)});
  } else {
    out.push_back({false, bytes_of(text)});
  }
}

}  // namespace

std::string with_preludes(std::string_view target_prelude, const kernel_source& source) {
  std::string text(source.checked ? "#define GPU_CHECK_ACCESSES\n" : "");
  text += target_prelude;
  text += kernels::prelude_common;
  text += "#line 1 \"";
  for (const char c : source.name) text += is_word(c) || c == '.' || c == '-' || c == '/' ? c : '_';
  text += "\"\n";
  text += source.text;
  text += '\n';
  return text;
}

std::string told(const access_note& n, std::string_view kernel, std::string_view array) {
  std::string element, box;
  for (int d = 0; d < n.rank && d < 4; ++d) {
    element += (d ? "," : "") + std::to_string(n.at[d]);
    box += (d ? " x [" : "[") + std::to_string(n.lo[d]) + "," + std::to_string(n.hi[d]) + ")";
  }
  return "kernel '" + std::string(kernel) + "': argument '" + std::string(array) + "': element (" + element +
         ") is outside its box " + box;
}

std::optional<std::vector<parameter>> parameters_of(std::string_view source, std::string_view entry) {
  const std::string text = without_comments(source);
  for (std::size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
    // GPU_KERNEL void entry (
    if (at == 0 || is_word(text[at - 1])) continue;
    std::size_t open = at + entry.size();
    while (open < text.size() && std::isspace(static_cast<unsigned char>(text[open]))) ++open;
    if (open >= text.size() || text[open] != '(') continue;
    const auto before = words_of(std::string_view(text).substr(0, at));
    if (before.size() < 2 || before.back() != "void" || before[before.size() - 2] != "GPU_KERNEL") continue;

    std::vector<parameter> out;
    int depth = 0;
    std::size_t start = open + 1;
    for (std::size_t i = open; i < text.size(); ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')') --depth;
      if (depth == 0 || (depth == 1 && text[i] == ',')) {
        read_parameter(std::string_view(text).substr(start, i - start), out);
        start = i + 1;
      }
      if (depth == 0) return out;
    }
  }
  return std::nullopt;
}

std::string described(const kernel_source& source, std::string_view target) {
  std::string s = "kernel " + std::string(source.entry);
  if (!source.name.empty() && source.name != source.entry) s += " (" + std::string(source.name) + ")";
  return s + " for " + std::string(target);
}

std::string no_function(const kernel_source& source, std::string_view target) {
  const std::string text = without_comments(source.text);
  const auto words = words_of(text);
  std::string there;
  for (std::size_t i = 0; i + 2 < words.size(); ++i)
    if (words[i] == "GPU_KERNEL" && words[i + 1] == "void")
      there += (there.empty() ? ", which has: " : ", ") + std::string(words[i + 2]);
  return described(source, target) + ": there is no function '" + std::string(source.entry) + "' in the text" +
         (there.empty() ? ", which has no GPU_KERNEL void" : there);
}

void check_arguments(std::span<const kernel_argument> arguments, const std::vector<parameter>& parameters,
                     std::string_view entry) {
  // Runs with every launch: sentences are made only where they are needed.
  const auto bad = [&](const std::string& text) {
    throw error(errc::bad_argument, "kernel " + std::string(entry) + text);
  };
  if (arguments.size() != parameters.size())
    bad(" takes " + std::to_string(parameters.size()) + " arguments, not " + std::to_string(arguments.size()) +
        " (an array is two: pointer and shape)");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& p = parameters[i];
    const auto& a = arguments[i];
    if (a.is_memory != p.is_memory)
      bad(": argument " + std::to_string(i) + (p.is_memory ? " must be device memory" : " must be a value"));
    if (!a.is_memory && p.bytes && a.value.size() != p.bytes)
      bad(": argument " + std::to_string(i) + " has " + std::to_string(p.bytes) + " bytes, not " +
          std::to_string(a.value.size()));
  }
}

}  // namespace troupe::devices::rtc
