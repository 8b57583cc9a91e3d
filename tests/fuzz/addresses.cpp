// What this file is for: lists of addresses made of any text.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>

#include "net/discovery/lists.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<endpoint> all;
  try {
    all = parse_addresses(text);
  } catch (const troupe::error& e) {
    fuzz::must(e.code() == troupe::errc::bad_argument);
    return 0;
  }
  // Addresses that were understood are understood the same way when they are written down.
  std::string again;
  for (const endpoint& e : all) again += e.text() + "\n";
  fuzz::must(parse_addresses(again) == all);
  return 0;
}
