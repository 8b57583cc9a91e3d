// What this file is for: a fabric within this process, for tests: it does what it is told, faults too.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/bulk_fabric.hpp"

namespace wires {

/// The space that ends of imagined fabrics meet on. The faults may be changed at any time.
class imagined_space {
 public:
  std::atomic<bool> unreachable{false};
  std::atomic<bool> swallows_greetings{false};
  /// The path of the end that greets first breaks, and then the greeting arrives; others are swallowed.
  std::atomic<bool> breaks_with_a_greeting{false};
  /// So many parts are delivered, then the path of the sender breaks; -1: never.
  std::atomic<int> parts_until_break{-1};
  std::atomic<int> parts{0};

  std::unique_ptr<troupe::net::bulk_fabric> make(std::string kind = "imagined");

 private:
  class end;
  class path;
  struct message {
    enum { greeting, part, sent, broken, broken_with_a_greeting } what;
    troupe::net::fabric_token token{};
    path* from = nullptr;
    std::uint64_t transfer = 0, offset = 0;
    std::span<const std::byte> body{};
  };

  std::recursive_mutex lock_;  ///< while memory is copied, too
  std::map<std::string, end*> ends_;
};

}  // namespace wires
