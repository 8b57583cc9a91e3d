// What this file is for: choosing cards and devices for requests.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/device_pool.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <troupe/error.hpp>

namespace troupe::logic {

namespace {
double amount_of(const std::vector<resource>& request) {
  double sum = 0;
  for (const resource& r : request)
    if (r.name == "gpu") sum += r.amount;
  return sum;
}
}  // namespace

bool asks_for_devices(const std::vector<resource>& request) { return amount_of(request) > 0; }

void device_pool::add(const held_device& d, std::uint16_t number) {
  auto c = std::find_if(cards_.begin(), cards_.end(), [&](const card& x) { return x.number == number; });
  if (c == cards_.end()) c = cards_.insert(c, card{number, {}});
  c->slots.push_back({d});
  ++c->free;
  ++size_;
}

std::size_t device_pool::free() const {
  std::size_t n = 0;
  for (const card& c : cards_) n += c.free;
  return n;
}

void device_pool::check(const std::vector<resource>& request) const {
  const double amount = amount_of(request);
  if (amount == 0) return;
  if (size_ == 0)
    throw error(errc::no_resource, "gpu: devices asked, 0 is the maximum: the runtime has none, see options::devices");
  if (amount == resource::all) return;
  if (amount != std::floor(amount))
    throw error(errc::not_supported, "gpu: " + std::to_string(amount) +
                                         " asked: a part of a device has no name that a task could be told; name the "
                                         "device several times in options::devices");
  if (amount > static_cast<double>(size_))
    throw error(errc::no_resource, "gpu: " + std::to_string(static_cast<std::uint64_t>(std::min(amount, 1e18))) +
                                       " devices asked, " + std::to_string(size_) + " is the maximum");
}

std::size_t device_pool::asked(const std::vector<resource>& request) const {
  return static_cast<std::size_t>(std::min(amount_of(request), static_cast<double>(size_)));
}

void device_pool::begin_round() {
  due_ = 0;
  for (card& c : cards_) c.kept = false;
}

bool device_pool::take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to) {
  if (card* c = card_for(count)) {
    take_from(*c, count, to);
    return true;
  }
  const auto fits = [&](const card& c) { return c.slots.size() >= count; };
  if (std::none_of(cards_.begin(), cards_.end(), fits)) {
    if (take_anywhere(count, to)) return true;
    for (card& c : cards_) c.kept = true;
    return false;
  }
  if (count == 1) return false;  // it gets the next that is free
  if (since == 0) since = now;
  if (now - since >= patience_) {
    if (take_anywhere(count, to)) return true;
  } else if (due_ == 0 || since + patience_ < due_) {
    due_ = since + patience_;
  }
  card* nearest = nullptr;
  for (card& c : cards_)
    if (fits(c) && !c.kept && (!nearest || c.free > nearest->free)) nearest = &c;
  if (nearest) nearest->kept = true;
  return false;
}

void device_pool::give(const std::vector<held_device>& back) {
  for (const held_device& d : back)
    for (card& c : cards_)
      for (slot& s : c.slots)
        if (s.device.name == d.name && s.taken) {
          s.taken = false;
          ++c.free;
        }
}

// One device comes from the card that fewest share, several from the one that they fill best.
device_pool::card* device_pool::card_for(std::size_t count) {
  card* best = nullptr;
  const auto better = [&](const card& a, const card& b) {
    return count == 1 ? a.slots.size() - a.free < b.slots.size() - b.free : a.free < b.free;
  };
  for (card& c : cards_)
    if (!c.kept && c.free >= count && (!best || better(c, *best))) best = &c;
  return best;
}

bool device_pool::take_anywhere(std::size_t count, std::vector<held_device>& to) {
  std::vector<card*> open;
  std::size_t free = 0;
  for (card& c : cards_) {
    if (c.kept) continue;
    open.push_back(&c);
    free += c.free;
  }
  if (free < count) return false;
  std::stable_sort(open.begin(), open.end(), [](const card* a, const card* b) { return a->free > b->free; });
  for (card* c : open) {
    const std::size_t some = std::min(count, c->free);
    take_from(*c, some, to);
    count -= some;
  }
  return true;
}

void device_pool::take_from(card& c, std::size_t count, std::vector<held_device>& to) {
  for (slot& s : c.slots) {
    if (count == 0) return;
    if (s.taken) continue;
    s.taken = true;
    to.push_back(s.device);
    --c.free;
    --count;
  }
}

}  // namespace troupe::logic
