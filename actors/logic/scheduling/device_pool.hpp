// What this file is for: devices that tasks hold themselves: which are free, which belong to one card, who gets which.
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

/// Pure; owned by placement. Time is a parameter, in any unit that `patience` and `guess` have as well.
///
/// Several devices come from one card, if any has so many. Where none has them free, the request waits and keeps the card
/// that is nearest to it: later requests in the same round get there only what is given back in time, so a stream of small
/// ones does not hold up a large one (see reservation). After its patience it takes what is free anywhere. More than any
/// card has come from as few as possible. Of cards that would do as well the one to which least has to be brought is taken.
class device_pool {
 public:
  explicit device_pool(std::uint64_t patience, std::uint64_t guess = reservation::unknown)
      : patience_(patience), guess_(guess) {}

  void add(const held_device&, std::uint16_t card);
  std::size_t size() const { return size_; }
  std::size_t free() const;

  /// Throws error(not_supported) for parts of devices, error(no_resource) for more than there are.
  void check(const std::vector<resource>& request) const;
  /// How many devices a checked request means.
  std::size_t asked(const std::vector<resource>& request) const;

  /// Requests are looked at in rounds, in their order.
  void begin_round();
  /// Who asks: for how long, as predicted, and how many bytes would have to be brought to a device; null: as many to all.
  struct asker {
    const void* who = nullptr;
    std::uint64_t lasts = reservation::unknown;
    const std::function<std::uint64_t(const held_device&)>* bring = nullptr;
  };
  /// Takes all or nothing. `since`: 0 at first; kept for the request.
  bool take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to, const asker&);
  bool take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to) {
    return take(count, since, now, to, asker());
  }
  void give(const std::vector<held_device>&, const void* who = nullptr);
  /// When so many will be free on a card, or anywhere if none has so many, as predicted.
  std::uint64_t begins(std::size_t count, std::uint64_t now) const;
  /// Keeps them for `who` from then on, who waits for something else.
  void keep(std::size_t count, const void* who, std::uint64_t at, std::uint64_t now);
  /// When some request of this round will have waited long enough, or may pass; 0: none waits.
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

/// Whether the request names devices.
bool asks_for_devices(const std::vector<resource>& request);

}  // namespace troupe::logic
