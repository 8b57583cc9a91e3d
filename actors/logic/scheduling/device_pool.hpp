// What this file is for: devices that tasks hold: which are free, which share a card, which task gets which.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/reservation.hpp"

namespace troupe::logic {

/// Devices that tasks hold. Pure; owned by placement. Time is a parameter, in the unit of `patience` and `guess`.
///
/// Several devices come from one card, if any card has so many. If none has them free, the request waits and keeps the
/// card that is nearest to it: later requests in the same round get only devices there that they will give back in
/// time, so a stream of small ones does not hold up a large one (see reservation). After `patience` a request takes
/// free devices of any cards. A request for more than any card has takes them from as few cards as possible. Of cards
/// that suit equally, the one to which least has to be brought is taken.
class device_pool {
 public:
  explicit device_pool(std::uint64_t patience, std::uint64_t guess = reservation::unknown)
      : patience_(patience), guess_(guess) {}

  void add(const held_device&, std::uint16_t card);
  std::size_t size() const { return size_; }
  std::size_t free() const;

  /// Throws error(not_supported) for parts of devices, error(no_resource) for more than exist.
  void check(const std::vector<resource>& request) const;
  /// Returns the number of devices that a checked request asks for.
  std::size_t asked(const std::vector<resource>& request) const;

  /// Begins a round; requests are looked at in rounds, in their order.
  void begin_round();
  /// A request's owner: its predicted duration, and how many bytes would have to be brought to a device; null: as many
  /// to all.
  struct asker {
    const void* who = nullptr;
    std::uint64_t lasts = reservation::unknown;
    const std::function<std::uint64_t(const held_device&)>* bring = nullptr;
  };
  /// Takes all devices or none. `since`: when the request began to wait; 0 at first, the caller keeps it.
  bool take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to, const asker&);
  bool take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to) {
    return take(count, since, now, to, asker());
  }
  void give(const std::vector<held_device>&, const void* who = nullptr);
  /// Returns the predicted time when so many will be free on one card, or on all together if no card has so many.
  std::uint64_t begins(std::size_t count, std::uint64_t now) const;
  /// Keeps so many devices from `at` on for `who`, which waits for something else.
  void keep(std::size_t count, const void* who, std::uint64_t at, std::uint64_t now);
  /// Returns the time when a request of this round will have waited long enough, or may pass; 0: none waits.
  std::uint64_t due() const { return due_; }

 private:
  struct slot {
    held_device device;
    bool taken = false;
  };
  struct card {
    std::uint16_t number;
    std::vector<slot> slots;
    std::size_t free;
    reservation line;
  };
  struct wish {
    std::size_t count;
    std::uint64_t now;
    const asker& by;
  };

  bool fits_somewhere(std::size_t count) const;
  card* card_for(const wish&);
  card* nearest_to(std::size_t count, std::uint64_t now);
  bool take_anywhere(const wish&, std::vector<held_device>& to);
  void keep_all(const wish&);
  void look_at(std::uint64_t when);
  static std::uint64_t bytes_to(const card&, const wish&);
  static void take_from(card&, std::size_t count, const wish&, std::vector<held_device>& to);

  const std::uint64_t patience_, guess_;
  std::vector<card> cards_;
  std::size_t size_ = 0;
  std::uint64_t due_ = 0;
};

/// True if the request names devices.
bool asks_for_devices(const std::vector<resource>& request);

}  // namespace troupe::logic
