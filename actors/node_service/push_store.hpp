// What this file is for: bytes of another node's arrays that come with their task, before this node has asked for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   owner --tasks: sent under that number--> node service
//   owner --bytes_pushed-------------------^
//
// The two go over different connections, so either may be here first, and the place may still be in use by what came
// before. Bytes that come to their open access are written there. Others are kept, and become the tile's memory when it
// opens: nothing is copied, but for parts of tiles. Where there is no room for that they are thrown away and asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/memory/host_tiles.hpp"
#include "actors/node_service/transfer.hpp"

namespace troupe::detail {

/// Pushes by the owner's numbers, which grow: those that have come and those that are expected. Under the service's
/// lock; the functions say what is to be done. Those that take a word of the peer throw error(protocol_error).
class push_store {
 public:
  explicit push_store(runtime_state& rt) : rt_(rt) {}

  /// Notes that bytes for a transfer come, or have come, under a number that is larger than all before.
  void expect(std::uint64_t number, std::uint64_t size, transfer& to);
  enum class state {
    ask,     ///< they have been thrown away, or never were sent: they are to be asked for
    coming,  ///< they will come
    here     ///< they are kept: `take` them
  };
  /// Returns what has become of the bytes for a transfer that has been opened.
  state look(std::uint64_t number);

  struct destination {
    transfer* to = nullptr;  // the bytes are to be written to the memory of that transfer, which is open
    net::pieces kept{};      // or here; nowhere: they are thrown away
  };
  /// Returns where bytes that begin to come are to be written.
  destination arriving(std::uint64_t number, std::uint64_t bytes);
  struct arrival {
    transfer* written = nullptr;  // its bytes are in place
    transfer* here = nullptr;     // its bytes are kept: `take` them
  };
  /// Notes that what `arriving` has said where to write has come; not `whole`: the connection broke.
  arrival arrived(std::uint64_t number, bool whole);

  /// Returns the bytes that are kept for a transfer, and forgets them.
  loose_bytes take(const transfer&);
  /// Forgets the push of a transfer whose bytes are in place or will not be needed.
  void forget(const transfer&);
  /// Forgets the pushes of a task that does not run here.
  void forget(const std::vector<wire::gap>&);
  /// Forgets all that no transfer waits for and that is not being written.
  void forget_unwanted();

 private:
  /// Most pushes that have come or are expected.
  static constexpr std::size_t pushes_max = 65536;

  struct push {
    transfer* to = nullptr;  // null: the task that they go with has not been told yet, or its access has ended
    std::uint64_t size = 0;
    loose_bytes kept;
    bool writing = false, whole = false;  // of what is kept
    bool refused = false;                 // there was no room for them: they are asked for
  };
  void make_room(push&);
  void drop_kept(push&);

  runtime_state& rt_;
  std::unordered_map<std::uint64_t, push> all_;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t newest_ = 0;  // the largest number that was expected
};

}  // namespace troupe::detail
