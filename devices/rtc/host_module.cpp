// What this file is for: loading what the host's compiler made.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/host_module.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>
#include <string>

namespace troupe::devices::rtc {

host_module open_host_module(std::span<const std::byte> binary, const std::filesystem::path& scratch) {
  host_module m;
  // A file of its own each time: the loader takes a second file of the same name, or the same inode, for the first.
  std::string file = (scratch / "troupe-XXXXXX.so").string();
  const int fd = ::mkostemps(file.data(), 3, 0);
  if (fd < 0) return m;
  std::size_t done = 0;
  while (done < binary.size()) {
    const auto n = ::write(fd, binary.data() + done, binary.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::close(fd);
  if (done == binary.size()) m.library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ::unlink(file.c_str());
  if (!m.library) return m;
  m.invoke = reinterpret_cast<decltype(m.invoke)>(::dlsym(m.library, "troupe_kernel_invoke"));
  m.arguments = static_cast<const host_module::argument*>(::dlsym(m.library, "troupe_kernel_arguments"));
  const auto* count = static_cast<const unsigned long*>(::dlsym(m.library, "troupe_kernel_argument_count"));
  const auto* barriers = static_cast<const bool*>(::dlsym(m.library, "troupe_kernel_barriers"));
  if (!m.invoke || !m.arguments || !count || !barriers) {
    close_host_module(m);
    return m;
  }
  m.argument_count = *count;
  m.barriers = *barriers;
  return m;
}

void close_host_module(host_module& m) noexcept {
  if (m.library) ::dlclose(m.library);
  m = {};
}

}  // namespace troupe::devices::rtc
