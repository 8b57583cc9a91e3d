// What this file is for: devices that tasks hold themselves: which are free, which belong to one card, who gets which.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

/// Pure; owned by placement. Time is a parameter, in any unit that `patience` has as well.
///
/// Several devices come from one card, if any has so many. Where none has them free, the request waits and keeps the card
/// that is nearest to it: later requests in the same round get nothing there, so a stream of small ones does not hold up
/// a large one. After its patience it takes what is free anywhere. More than any card has come from as few as possible.
class device_pool {
 public:
  explicit device_pool(std::uint64_t patience) : patience_(patience) {}

  void add(const held_device&, std::uint16_t card);
  std::size_t size() const { return size_; }
  std::size_t free() const;

  /// Throws error(not_supported) for parts of devices, error(no_resource) for more than there are.
  void check(const std::vector<resource>& request) const;
  /// How many devices a checked request means.
  std::size_t asked(const std::vector<resource>& request) const;

  /// Requests are looked at in rounds, in their order.
  void begin_round();
  /// Takes all or nothing. `since`: 0 at first; kept for the request.
  bool take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to);
  void give(const std::vector<held_device>&);
  /// When some request of this round will have waited long enough; 0: none waits.
  std::uint64_t due() const { return due_; }

 private:
  struct slot {
    held_device device;
    bool taken = false;
  };
  struct card {
    std::uint16_t number;
    std::vector<slot> slots;
    std::size_t free = 0;
    bool kept = false;
  };

  card* card_for(std::size_t count);
  bool take_anywhere(std::size_t count, std::vector<held_device>& to);
  static void take_from(card&, std::size_t count, std::vector<held_device>& to);

  const std::uint64_t patience_;
  std::vector<card> cards_;
  std::size_t size_ = 0;
  std::uint64_t due_ = 0;
};

/// Whether the request names devices.
bool asks_for_devices(const std::vector<resource>& request);

}  // namespace troupe::logic
