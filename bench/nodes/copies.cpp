// A library, loaded before all others, that counts the bytes that memcpy and memmove move, a KiB or more at a time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The copies are made here, by one instruction, instead of asking for the C library's: that would need one of these
// functions before it has been found. Programs ask `troupe_bench_copied`, if it is there.
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t counted_from = 1024;
std::atomic<std::uint64_t> copied{0};

inline void note(std::size_t n) {
  if (n >= counted_from) copied.fetch_add(n, std::memory_order_relaxed);
}
inline void* forwards(void* to, const void* from, std::size_t n) {
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
  return to;
}
inline void* backwards(void* to, const void* from, std::size_t n) {
  char* at = static_cast<char*>(to) + n - 1;
  const char* last = static_cast<const char*>(from) + n - 1;
  asm volatile("std; rep movsb; cld" : "+D"(at), "+S"(last), "+c"(n) : : "memory");
  return to;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] std::uint64_t troupe_bench_copied() { return copied.load(std::memory_order_relaxed); }

[[gnu::visibility("default")]] void* memcpy(void* to, const void* from, std::size_t n) {
  note(n);
  return forwards(to, from, n);
}
[[gnu::visibility("default")]] void* memmove(void* to, const void* from, std::size_t n) {
  note(n);
  const auto distance = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  return distance >= n ? forwards(to, from, n) : n == 0 ? to : backwards(to, from, n);
}
[[gnu::visibility("default")]] void* __memcpy_chk(void* to, const void* from, std::size_t n, std::size_t) {
  note(n);
  return forwards(to, from, n);
}
[[gnu::visibility("default")]] void* __memmove_chk(void* to, const void* from, std::size_t n, std::size_t) {
  return memmove(to, from, n);
}

}  // extern "C"
