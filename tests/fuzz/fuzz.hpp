// What this file is for: what fuzz targets share: a demand that stops the run, in any build.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <troupe/error.hpp>

namespace fuzz {

inline void must(bool right) {
  if (!right) std::abort();
}

/// A decoder either decodes or throws `error(protocol_error)`. True: it decoded.
template <class F>
bool decodes(F&& f) {
  try {
    f();
    return true;
  } catch (const troupe::error& e) {
    must(e.code() == troupe::errc::protocol_error);
    return false;
  }
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
