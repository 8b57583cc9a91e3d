// What this file is for: the first bytes of strangers, before TLS sees them: what is decided does not depend on how
// they arrive.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "net/tcp/tls_guard.hpp"
#include "tests/fuzz/fuzz.hpp"

using troupe::net::tcp::tls_guard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto all = std::span(reinterpret_cast<const std::byte*>(data), size).subspan(1);
  tls_guard whole, in_pieces;
  const bool passed = whole.pass(all);
  bool still = true;
  for (std::size_t at = 0; still && at < all.size();) {
    const std::size_t n = std::min<std::size_t>(1 + data[0] % 64, all.size() - at);
    still = in_pieces.pass(all.subspan(at, n));
    at += n;
  }
  fuzz::must(passed == still);
  if (all.size() > tls_guard::bytes_max) fuzz::must(!passed);
  return 0;
}
