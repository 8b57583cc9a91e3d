// What this file is for: candidates from a file with addresses, and from a name with several of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/transport.hpp"

namespace troupe::net {

/// Reads one address a line; what follows '#' is a comment. Throws `error(bad_argument)` with the number of a line that
/// is something else, or for more than 65,536 addresses.
std::vector<endpoint> parse_addresses(std::string_view text);

/// A file that may change.
class address_file {
 public:
  explicit address_file(std::string path) : path_(std::move(path)) {}
  /// Its addresses, if it is not as it was at the last call. Throws `error(io_failed)` or `error(bad_argument)`; once
  /// for each state that it is found in.
  std::optional<std::vector<endpoint>> look();

 private:
  struct state {
    std::uint64_t device = 0, number = 0, size = 0;
    std::int64_t changed_s = 0, changed_ns = 0, inode_s = 0, inode_ns = 0;
    int fault = 0;
    bool operator==(const state&) const = default;
  };
  state state_now() const;

  std::string path_;
  std::optional<state> last_;
};

/// All addresses of a name. Throws `error(unreachable)`.
std::vector<endpoint> resolve(const endpoint&);
/// Called by a thread before it resolves some names: it is not held up by each for longer than about 3 s then.
void be_an_impatient_resolver();

}  // namespace troupe::net
