// What this file is for: what nodes say of each other, made of any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/membership_messages.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::detail;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decodes([&] {
    const auto message = decode_membership(bytes);
    fuzz::must(is_membership(bytes));
    // A node that passes on what it has heard says the same.
    const auto once = encode(message);
    fuzz::must(encode(decode_membership(once)) == once);
  });
  return 0;
}
