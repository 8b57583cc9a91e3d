// What this file is for: partials of an owner's reductions, added up here before they are sent.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <troupe/access.hpp>

#include "net/transport.hpp"

namespace troupe::detail {

/// The sums of reductions. A sum is sent in the name of its first task, and says whose partials are in it. It is complete
/// once no task of its reduction is left here, or when it has been asked for: so that nobody waits long for tasks that
/// take long, the node service asks a while after a sum has begun.
///
/// A part of the node service, under its lock. Numbers of tasks are the owner's.
class partial_groups {
 public:
  /// Partials in one sum, at most: their numbers have room in the head of a transfer.
  static constexpr std::size_t sum_max = 256;

  /// What is to be sent: packed bytes. The first task's partial is that of the access; the others follow it.
  struct sum {
    int access = 0;
    std::vector<std::uint64_t> tasks{};
    std::shared_ptr<std::vector<std::byte>> bytes{};
  };

  /// A task of the reduction has come, whose partial has so many bytes. False: it is not as those that are here.
  bool came(std::uint64_t group, combine_fn, std::uint64_t bytes);
  /// Nothing of it is to be added, or not any more: it has failed, goes back, or its partial cannot be had.
  void left(std::uint64_t group);
  /// Adds the partial of a task that has ended, which has then left. True if a sum has begun with it. Throws
  /// error(out_of_memory), or error(protocol_error) for one of another size; then it is still here.
  bool add(std::uint64_t group, std::uint64_t task, int access, const net::pieces& rows, std::size_t element);
  /// Takes the group's sum if it is complete.
  std::optional<sum> take(std::uint64_t group);
  /// Takes a sum, complete or not; empty: there is none.
  std::optional<sum> take_any();
  bool empty() const { return groups_.empty(); }

 private:
  struct group {
    combine_fn by = nullptr;
    std::uint64_t bytes = 0;  // of each partial
    std::size_t here = 0;     // tasks that have not left
    sum open{};
  };
  std::optional<sum> take_from(std::unordered_map<std::uint64_t, group>::iterator);

  std::unordered_map<std::uint64_t, group> groups_;
};

}  // namespace troupe::detail
