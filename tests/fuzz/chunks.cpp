// What this file is for: what stands before a part of a transfer, made of any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "net/tcp/chunk.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decodes([&] {
    const auto header = tcp::chunk_header::read(bytes);
    fuzz::must(size == tcp::chunk_header::bytes);
    writer to;
    header.write(to);
    fuzz::must(std::ranges::equal(bytes, to.view()));
  });
  return 0;
}
