// What this file is for: XXH3 by its library, or by its header for a better processor; the sums are the same.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/chunk_hash.hpp"

#include <xxhash.h>

#include <new>

namespace troupe::net::tcp {

#if defined(TROUPE_HASH_AVX2)
namespace avx2 {
int update(void* state, const void* from, std::size_t bytes);
}  // namespace avx2
#endif

struct chunk_hash::inside {
  inside() : state(XXH3_createState(), XXH3_freeState) {
    if (!state) throw std::bad_alloc();
  }
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state;
};

chunk_hash::chunk_hash() : inside_(std::make_unique<inside>()) { start(); }
chunk_hash::~chunk_hash() = default;

void chunk_hash::start() { XXH3_64bits_reset(inside_->state.get()); }
void chunk_hash::add(std::span<const std::byte> b) {
#if defined(TROUPE_HASH_AVX2)
  static const bool fast = __builtin_cpu_supports("avx2");
  if (fast) {
    avx2::update(inside_->state.get(), b.data(), b.size());
    return;
  }
#endif
  XXH3_64bits_update(inside_->state.get(), b.data(), b.size());
}
std::uint64_t chunk_hash::value() const { return XXH3_64bits_digest(inside_->state.get()); }
std::uint64_t chunk_hash::of(std::span<const std::byte> b) { return XXH3_64bits(b.data(), b.size()); }

}  // namespace troupe::net::tcp
