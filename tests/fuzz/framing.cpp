// What this file is for: lines and records cut out of any bytes, which come in blocks of any size.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "connectors/detail/framing.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::connectors::detail;

namespace {

// What comes out of bytes in blocks whose sizes the input says.
template <class Cutter>
std::vector<piece> cut(Cutter c, const std::string& bytes, std::size_t first, std::size_t step) {
  std::vector<piece> all;
  for (std::size_t at = 0, n = first; at < bytes.size(); at += n, n = 1 + (n + step) % 97) {
    const std::size_t take = std::min(n, bytes.size() - at);
    c.add(bytes.data() + at, take);
    while (auto p = c.next()) all.push_back(std::move(*p));
    n = take;
  }
  if (auto p = c.rest()) all.push_back(std::move(*p));
  return all;
}

bool same(const std::vector<piece>& a, const std::vector<piece>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].text != b[i].text || a[i].offset != b[i].offset || a[i].is_whole != b[i].is_whole) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::size_t most = 1 + data[0] % 64, first = 1 + data[1] % 97, step = data[2];
  const std::string bytes(reinterpret_cast<const char*>(data) + 3, size - 3);

  const auto lines = cut(line_cutter(most, 0), bytes, first, step);
  fuzz::must(same(lines, cut(line_cutter(most, 0), bytes, bytes.size() + 1, 0)));
  std::string again;
  for (const piece& p : lines) {
    fuzz::must(p.text.size() <= most && p.offset == again.size() && p.text.find('\n') == std::string::npos);
    again += p.text;
    if (again.size() < bytes.size() && bytes[again.size()] == '\n') {
      // The newline belongs to this piece unless the next one begins with it.
      const std::size_t next = static_cast<std::size_t>(&p - lines.data()) + 1;
      if (next == lines.size() || lines[next].offset == again.size() + 1) again += '\n';
    }
  }
  fuzz::must(again == bytes);

  const auto records = cut(record_cutter(most), bytes, first, step);
  std::string all;
  for (const piece& p : records) {
    fuzz::must(p.text.size() <= most + 4 && p.offset == all.size());
    if (p.is_whole)
      for (int shift = 24; shift >= 0; shift -= 8) all += static_cast<char>(p.text.size() >> shift);
    all += p.text;
  }
  fuzz::must(bytes.compare(0, all.size(), all) == 0);
  return 0;
}
