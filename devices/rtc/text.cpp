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

std::size_t bytes_of_type(std::span<const std::string_view>, std::string_view text, int depth);

// Bytes of what a word of a type means where every target agrees: 0 for vectors of three, which fill four in OpenCL
// only.
std::size_t bytes_of_word(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 24> sizes{
      {{"char", 1},     {"short", 2},    {"int", 4},     {"long", 8},
       {"float", 4},    {"double", 8},   {"bool", 1},    {"unsigned", 4},
       {"uchar", 1},    {"ushort", 2},   {"uint", 4},    {"ulong", 8},
       {"half", 2},     {"signed", 4},   {"int8_t", 1},  {"int16_t", 2},
       {"int32_t", 4},  {"int64_t", 8},  {"uint8_t", 1}, {"uint16_t", 2},
       {"uint32_t", 4}, {"uint64_t", 8}, {"size_t", 8},  {"gpu_shape", sizeof(kernels::shape)}}};
  const auto alone = [](std::string_view w) -> std::size_t {
    const auto* known = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == w; });
    return known == sizes.end() ? 0 : known->second;
  };
  if (const std::size_t bytes = alone(word)) return bytes;
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 4> lanes{
      {{"16", 16}, {"2", 2}, {"4", 4}, {"8", 8}}};
  for (const auto& [ending, count] : lanes)
    if (word.ends_with(ending)) return alone(word.substr(0, word.size() - ending.size())) * count;
  return 0;
}

// Bytes of a type that the text names itself: by typedef, using or #define. 0 where it does not, or not always the
// same.
std::size_t bytes_of_alias(std::string_view word, std::string_view text, int depth) {
  std::size_t bytes = 0;
  const auto is_it = [&](std::string_view type) {
    const std::size_t found = bytes_of_type(words_of(type), text, depth + 1);
    const bool same = found != 0 && (bytes == 0 || found == bytes) && type.find_first_of("*[({<") == type.npos;
    bytes = found;
    return same;
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) continue;
    const std::string_view before = text.substr(0, at), after = text.substr(end);
    const auto last = [&](std::string_view what) {
      const auto words = words_of(before.substr(before.size() - std::min<std::size_t>(before.size(), 40)));
      return !words.empty() && words.back() == what;
    };
    const std::size_t begin = before.find_last_of(";}#");  // of a statement
    const std::string_view statement = before.substr(begin == before.npos ? 0 : begin + 1);
    const auto words = words_of(statement);
    if (last("define")) {
      if (!is_it(after.substr(0, after.find('\n')))) return 0;
    } else if (last("using")) {
      const std::size_t equals = after.find('=');
      if (equals == after.npos || !is_it(after.substr(equals + 1, after.find(';') - equals - 1))) return 0;
    } else if (const auto def = std::ranges::find(words, "typedef"); def != words.end()) {
      const std::size_t stop = after.find_first_not_of(" \t\r\n");
      if (stop == after.npos || after[stop] != ';') continue;  // its type, not its name
      if (!is_it(statement.substr(statement.rfind("typedef") + 7))) return 0;
    }
  }
  return bytes;
}

// Bytes of a type such as "const unsigned int"; 0 where it is neither one of C's nor shown by the text.
std::size_t bytes_of_type(std::span<const std::string_view> words, std::string_view text, int depth) {
  static constexpr std::array<std::string_view, 8> silent{"const",    "volatile",   "restrict",     "__restrict",
                                                          "__global", "GPU_GLOBAL", "__restrict__", "global"};
  if (depth > 4) return 0;
  std::size_t bytes = 0;
  for (const auto w : words) {
    if (std::ranges::find(silent, w) != silent.end()) continue;
    std::size_t known = bytes_of_word(w);
    if (!known && !bytes) known = bytes_of_alias(w, text, depth);
    if (!known) return 0;
    // "unsigned char", "long int", "short int": the word that is not the filler decides.
    if (!bytes || !(w == "unsigned" || w == "signed" || w == "int")) bytes = known;
  }
  return bytes;
}

// Bytes of a parameter such as "const unsigned int n".
std::size_t bytes_of(std::string_view declaration, std::string_view text) {
  if (declaration.find('[') != std::string_view::npos) return 0;
  auto words = words_of(declaration);
  if (words.size() < 2) return 0;
  words.pop_back();  // the name
  return bytes_of_type(words, text, 0);
}

void read_parameter(std::string_view declaration, std::string_view text, std::vector<parameter>& out) {
  const auto words = words_of(declaration);
  if (words.empty() || (words.size() == 1 && words[0] == "void")) return;
  const auto star = declaration.find('*');
  if (words[0] == "GPU_IN" || words[0] == "GPU_OUT" || words[0] == "GPU_INOUT") {
    const std::size_t from = declaration.find('(') + 1;
    const std::string_view type = declaration.substr(from, declaration.rfind(',') - from);
    const bool plain = type.find_first_of("*[(<") == type.npos;
    out.push_back({true, sizeof(void*), {}, plain ? bytes_of_type(words_of(type), text, 0) : 0});
    out.push_back({false, sizeof(kernels::shape), std::string(words.back())});
  } else if (star != std::string_view::npos) {
    const bool one = declaration.find('*', star + 1) == declaration.npos;
    out.push_back({true, sizeof(void*), {}, one ? bytes_of_type(words_of(declaration.substr(0, star)), text, 0) : 0});
  } else {
    out.push_back({false, bytes_of(declaration, text)});
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
        read_parameter(std::string_view(text).substr(start, i - start), text, out);
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

std::string does_not_compile(const kernel_source& source, std::string_view target, const std::string& by,
                             const std::string& log) {
  const auto line_at = [&](std::size_t at) {
    const std::size_t before = log.rfind('\n', at), end = std::min(log.find('\n', at), log.size());
    const std::size_t begin = before == log.npos ? 0 : before + 1;
    return log.substr(begin, end - begin);
  };
  // Notes of where it was come before it.
  std::size_t at = log.find("error");
  if (at == log.npos) at = log.find_first_not_of(" \t\r\n");
  const std::string first = at == log.npos ? "" : ": " + line_at(at);
  return described(source, target) + " does not compile" + first + " (" + by + ")" +
         (log.empty() ? "" : "; the log:\n" + log);
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
    if (a.is_memory && a.element_bytes && p.element_bytes && a.element_bytes != p.element_bytes) {
      const std::string name = i + 1 < parameters.size() ? parameters[i + 1].array : std::string();
      bad(": argument " + std::to_string(i) + (name.empty() ? "" : ", the array '" + name + "',") +
          " has elements of " + std::to_string(p.element_bytes) + " bytes in the text, but of " +
          std::to_string(a.element_bytes) + " in the kernel's signature: give them the same type");
    }
  }
}

}  // namespace troupe::devices::rtc
