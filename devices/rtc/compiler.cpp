// What this file is for: compiling through the cache.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/compiler.hpp"

#include <array>

namespace troupe::devices::rtc {

std::string cache_key(const compiler& with, const kernel_source& source, const std::string& target,
                      std::string_view device_identity) {
  const std::string text = with.whole_text(source);
  return key_of(std::array<std::string_view, 5>{with.identity(), text, source.entry, target, device_identity});
}

std::vector<std::byte> compile_cached(compiler& with, const kernel_cache& cache, const kernel_source& source,
                                      const std::string& target, std::string_view device_identity) {
  const std::string key = cache_key(with, source, target, device_identity);
  if (auto found = cache.find(key)) return std::move(*found);
  auto binary = with.compile(source, target);
  cache.store(key, binary);
  return binary;
}

}  // namespace troupe::devices::rtc
