// What this file is for: the process-wide table of offered kernels.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/kernel_registry.hpp"

#include <cstring>
#include <map>
#include <mutex>

namespace troupe::detail {

namespace {

struct table {
  std::mutex lock;
  std::map<std::uint64_t, offered_kernel> all;  // nodes of a map stay where they are
};

// Offers are made before main, in any order, and asked for until the last thread has ended.
table& offers() {
  static table* const all = new table;
  return *all;
}

}  // namespace

void offer_kernel(offered_kernel k) {
  table& to = offers();
  std::lock_guard hold(to.lock);
  to.all.try_emplace(k.info.key, std::move(k));
}

const offered_kernel* find_offer(std::uint64_t key) {
  table& from = offers();
  std::lock_guard hold(from.lock);
  const auto found = from.all.find(key);
  return found == from.all.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> offered_keys() {
  table& from = offers();
  std::lock_guard hold(from.lock);
  std::vector<std::uint64_t> keys;
  for (const auto& [key, k] : from.all) keys.push_back(key);
  return keys;
}

bool is_size_of(const parameter_facts& p, std::size_t bytes) {
  if (p.is_array) return bytes == sizeof(list_length);
  return p.is_list ? bytes % p.bytes == 0 : bytes == p.bytes;
}

list_length length_of(std::span<const std::byte> value) {
  list_length n;
  std::memcpy(&n, value.data(), sizeof n);
  return n;
}

}  // namespace troupe::detail
