// What this file is for: XXH3 for processors with AVX2, twice as fast as the library, which is built for all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled with -mavx2 where the compiler knows that; called only where the processor does. Nothing that another file
// might share is instantiated here: the linker could keep this file's copy of it for processors without.
#if defined(__AVX2__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace troupe::net::tcp::avx2 {

int update(void* state, const void* from, decltype(sizeof 0) bytes) {
  return XXH3_64bits_update(static_cast<XXH3_state_t*>(state), from, bytes) == XXH_OK ? 1 : 0;
}

}  // namespace troupe::net::tcp::avx2
#endif
