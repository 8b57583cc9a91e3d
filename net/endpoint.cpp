// What this file is for: addresses as people write them: host:port, with brackets around what has colons of its own.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>

#include "net/transport.hpp"

namespace troupe::net {

std::optional<endpoint> endpoint::parse(std::string_view s) {
  const bool brackets = s.starts_with('[');
  const std::size_t colon = brackets ? s.find("]:") : s.rfind(':');
  if (colon == s.npos) return std::nullopt;
  std::string_view host = brackets ? s.substr(1, colon - 1) : s.substr(0, colon);
  const std::string_view port = s.substr(colon + (brackets ? 2 : 1));
  const auto printable = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '[' && c != ']'; };
  if (host.empty() || host.size() > 255 || !std::all_of(host.begin(), host.end(), printable)) return std::nullopt;
  if (!brackets && host.find(':') != host.npos) return std::nullopt;
  endpoint e{std::string(host), 0};
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), e.port);
  if (port.empty() || failed != std::errc{} || end != port.data() + port.size()) return std::nullopt;
  return e;
}

std::string endpoint::text() const {
  const bool brackets = host.find(':') != host.npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace troupe::net
