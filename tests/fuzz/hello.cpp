// What this file is for: the first message of a connection and its answer, made of any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "net/tcp/hello.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

namespace {

// A message that is understood of this version is written the same way again.
template <class Decode>
void same_again(std::span<const std::byte> bytes, Decode&& decode) {
  fuzz::decodes([&] {
    const auto message = decode(bytes);
    if (message.version == tcp::protocol_version) fuzz::must(std::ranges::equal(bytes, encode(message)));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  same_again(bytes, tcp::decode_hello);
  same_again(bytes, tcp::decode_answer);
  return 0;
}
