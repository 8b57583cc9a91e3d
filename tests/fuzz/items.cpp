// What this file is for: items of streams decoded from any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/stream/codec.hpp>

#include "tests/fuzz/fuzz.hpp"

namespace {

// What is decoded at all is encoded again as the same bytes, but for what has an order of its own.
template <class T>
void try_as(std::string_view bytes, bool comes_back = true) {
  T x;
  try {
    x = troupe::stream::decoded<T>(bytes);
  } catch (const troupe::error& e) {
    fuzz::must(e.code() == troupe::errc::bad_argument);
    return;
  }
  const std::string again = troupe::stream::encoded(x);
  if (comes_back)
    fuzz::must(again == bytes);
  else
    fuzz::must(troupe::stream::decoded<T>(again) == x);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_as<std::uint32_t>(bytes);
  try_as<std::string>(bytes);
  try_as<std::vector<std::uint64_t>>(bytes);
  try_as<std::vector<bool>>(bytes);
  try_as<std::vector<std::vector<std::string>>>(bytes);
  try_as<std::optional<std::pair<std::string, bool>>>(bytes);
  try_as<std::tuple<std::uint8_t, std::string, std::vector<std::pair<int, std::string>>>>(bytes);
  try_as<std::vector<std::tuple<>>>(bytes);
  try_as<std::map<std::string, std::vector<int>>>(bytes, false);
  return 0;
}
