// What this file is for: memory that bodies and host views may see, where it is no tile: copies, partials.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// All such memory is aligned to `element_align_max`, as the memory of tiles is: a view keeps the alignment of its
// elements.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include <troupe/error.hpp>
#include <troupe/view.hpp>

namespace troupe::detail {

struct free_view_bytes {
  void operator()(std::byte* p) const noexcept { ::operator delete(p, std::align_val_t{element_align_max}); }
};
using view_bytes = std::unique_ptr<std::byte[], free_view_bytes>;

/// Allocates memory that is not cleared. Throws error(out_of_memory) that names the array.
inline view_bytes new_view_bytes(std::size_t bytes, const std::string& array) {
  if (void* p = ::operator new(bytes, std::align_val_t{element_align_max}, std::nothrow))
    return view_bytes(static_cast<std::byte*>(p));
  throw error(errc::out_of_memory, "array '" + array + "': " + std::to_string(bytes) +
                                       " bytes for what one task sees of it could not be had; choose smaller windows "
                                       "or chunks, or free handles");
}

}  // namespace troupe::detail
