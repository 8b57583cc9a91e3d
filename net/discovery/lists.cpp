// What this file is for: reading lists of addresses, and asking the system for those of a name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/lists.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include <troupe/error.hpp>

namespace troupe::net {

namespace {

constexpr std::size_t addresses_max = 65536, file_bytes_max = 8u << 20;

std::string_view without_spaces(std::string_view s) {
  constexpr std::string_view spaces = " \t\r";
  const auto from = s.find_first_not_of(spaces);
  if (from == s.npos) return {};
  return s.substr(from, s.find_last_not_of(spaces) - from + 1);
}

}  // namespace

std::vector<endpoint> parse_addresses(std::string_view text) {
  std::vector<endpoint> all;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto address = without_spaces(line.substr(0, line.find('#')));
    if (address.empty()) continue;
    auto e = endpoint::parse(address);
    if (!e || e->port == 0)
      throw error(errc::bad_argument, "line " + std::to_string(number) + " is not an address like 10.0.0.1:4711");
    if (all.size() == addresses_max) throw error(errc::bad_argument, "there are more than 65536 addresses");
    all.push_back(std::move(*e));
  }
  return all;
}

address_file::state address_file::state_now() const {
  struct stat s {};
  state now;
  if (::stat(path_.c_str(), &s) != 0) {
    now.fault = errno;
    return now;
  }
  now.device = s.st_dev;
  now.number = s.st_ino;
  now.size = static_cast<std::uint64_t>(s.st_size);
  now.changed_s = s.st_mtim.tv_sec;
  now.changed_ns = s.st_mtim.tv_nsec;
  now.inode_s = s.st_ctim.tv_sec;
  now.inode_ns = s.st_ctim.tv_nsec;
  if (!S_ISREG(s.st_mode)) now.fault = EINVAL;
  return now;
}

std::optional<std::vector<endpoint>> address_file::look() {
  const state now = state_now();
  if (now == last_) return std::nullopt;
  last_ = now;
  if (now.fault == EINVAL) throw error(errc::bad_argument, "'" + path_ + "' is not a regular file");
  const auto cannot = [this](int code) {
    throw error(errc::io_failed, "cannot read '" + path_ + "': " + std::generic_category().message(code));
  };
  if (now.fault != 0) cannot(now.fault);
  if (now.size > file_bytes_max)
    throw error(errc::bad_argument, "'" + path_ + "' is too large for a list of addresses");
  errno = 0;
  std::ifstream in(path_, std::ios::binary);
  std::string text;
  // No more than was there: it may be growing, and is looked at again then.
  std::copy_n(std::istreambuf_iterator<char>(in), in ? now.size : 0, std::back_inserter(text));
  if (!in) cannot(errno != 0 ? errno : EIO);
  try {
    return parse_addresses(text);
  } catch (const error& e) {
    throw error(e.code(), "'" + path_ + "': " + e.what());
  }
}

void be_an_impatient_resolver() {
  // Changes the resolver's state of this thread alone. By default the resolver asks for 10 s and more; a thread that
  // asks every few seconds anyway need not, and one that waits for this thread to end should not have to. A state that
  // has been changed is not brought up to date by glibc when resolv.conf changes, so it is made anew.
  if ((_res.options & RES_INIT) != 0) ::res_nclose(&_res);
  if (::res_ninit(&_res) != 0) return;
  _res.retrans = 1;
  _res.retry = 1;
}

std::vector<endpoint> resolve(const endpoint& of) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int fault = ::getaddrinfo(of.host.c_str(), nullptr, &hints, &all);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(all, [](addrinfo* a) {
    if (a) ::freeaddrinfo(a);
  });
  if (fault != 0)
    throw error(errc::unreachable, "the name '" + of.host + "' has no address: " +
                                       (fault == EAI_SYSTEM ? std::generic_category().message(errno)
                                                            : std::string(::gai_strerror(fault))));
  std::vector<endpoint> found;
  for (const addrinfo* a = all; a; a = a->ai_next) {
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    endpoint e{text, of.port};
    if (std::find(found.begin(), found.end(), e) == found.end()) found.push_back(std::move(e));
  }
  return found;
}

}  // namespace troupe::net
