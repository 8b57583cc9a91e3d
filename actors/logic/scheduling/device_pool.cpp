// What this file is for: choosing cards and devices for requests.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/device_pool.hpp"

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

std::string number_text(double amount) {
  return amount == std::floor(amount) ? std::to_string(static_cast<std::uint64_t>(std::min(amount, 1e18)))
                                      : std::to_string(amount);
}
}  // namespace

bool asks_for_devices(const std::vector<resource>& request) { return amount_of(request) > 0; }

void device_pool::add(const held_device& d, std::uint16_t number) {
  auto c = std::find_if(cards_.begin(), cards_.end(), [&](const card& x) { return x.number == number; });
  if (c == cards_.end()) c = cards_.insert(c, card{number, {}, 0, reservation(guess_)});
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
    throw error(errc::no_resource,
                "gpu: " + (amount == resource::all ? "all" : number_text(amount)) +
                    " devices asked, 0 is the maximum: the runtime has none; name some in options::devices");
  if (amount == resource::all) return;
  if (amount != std::floor(amount))
    throw error(errc::not_supported, "gpu: " + std::to_string(amount) +
                                         " asked: a part of a device has no name that a task could be told; name the "
                                         "device several times in options::devices");
  if (amount > static_cast<double>(size_))
    throw error(errc::no_resource, "gpu: " + number_text(amount) + " devices asked, " + std::to_string(size_) +
                                       " is the maximum: ask for fewer, or name more in options::devices");
}

std::size_t device_pool::asked(const std::vector<resource>& request) const {
  return static_cast<std::size_t>(std::min(amount_of(request), static_cast<double>(size_)));
}

void device_pool::begin_round() {
  due_ = 0;
  for (card& c : cards_) c.line.begin_round();
}

bool device_pool::fits_somewhere(std::size_t count) const {
  return std::ranges::any_of(cards_, [&](const card& c) { return c.slots.size() >= count; });
}

bool device_pool::take(std::size_t count, std::uint64_t& since, std::uint64_t now, std::vector<held_device>& to,
                       const asker& by) {
  const wish r{count, now, by};
  if (card* c = card_for(r)) {
    take_from(*c, count, r, to);
    return true;
  }
  if (!fits_somewhere(count)) {
    if (take_anywhere(r, to)) return true;
    keep_all(r);
    return false;
  }
  for (const card& c : cards_)  // a card that lets it pass later
    if (c.free >= count) look_at(c.line.look_at(now, guess_));
  if (count == 1) return false;  // it gets the next device that is free
  if (since == 0) since = now;
  if (now - since >= patience_) {
    if (take_anywhere(r, to)) return true;
  } else {
    look_at(since + patience_);
  }
  if (card* const c = nearest_to(count, now))
    c->line.keep(by.who, static_cast<double>(count), static_cast<double>(c->free),
                 c->line.when_back(static_cast<double>(count) - static_cast<double>(c->free), now).at, now);
  return false;
}

void device_pool::give(const std::vector<held_device>& back, const void* who) {
  for (card& c : cards_) {
    bool any = false;
    for (const held_device& d : back)
      for (slot& s : c.slots)
        if (s.device.name == d.name && s.taken) {
          s.taken = false;
          ++c.free;
          any = true;
        }
    if (any) c.line.end(who);
  }
}

std::uint64_t device_pool::begins(std::size_t count, std::uint64_t now) const {
  std::uint64_t first = reservation::never, last = now;
  for (const card& c : cards_) {
    const auto lacks = [&](std::size_t n) { return static_cast<double>(n) - static_cast<double>(c.free); };
    if (c.slots.size() >= count) first = std::min(first, c.line.when_back(lacks(count), now).at);
    last = std::max(last, c.line.when_back(lacks(c.slots.size()), now).at);
  }
  return fits_somewhere(count) ? first : last;
}

void device_pool::keep(std::size_t count, const void* who, std::uint64_t at, std::uint64_t now) {
  if (!fits_somewhere(count)) return keep_all({count, now, {who}});
  card* const c = nearest_to(count, now);
  if (!c) return;
  const double free = static_cast<double>(c->free), asks = static_cast<double>(count);
  c->line.keep(who, asks, free, at, now);
}

void device_pool::look_at(std::uint64_t when) {
  if (when != reservation::never && (due_ == 0 || when < due_)) due_ = when;
}

// Returns the bytes that have to be brought to the nearest free device of the card.
std::uint64_t device_pool::bytes_to(const card& c, const wish& r) {
  if (!r.by.bring) return 0;
  std::uint64_t least = ~std::uint64_t{0};
  for (const slot& s : c.slots)
    if (!s.taken) least = std::min(least, (*r.by.bring)(s.device));
  return least;
}

// Returns the card to take from, or null. Cards that are kept for no request come first; then the one to which least
// has to be brought; then, for one device, the card that fewest share, for several the one that they fill best.
device_pool::card* device_pool::card_for(const wish& r) {
  card* best = nullptr;
  std::uint64_t best_bytes = 0;
  for (card& c : cards_) {
    if (c.free < r.count || !c.line.lets_pass(static_cast<double>(r.count), r.now, r.by.lasts)) continue;
    const std::uint64_t bytes = bytes_to(c, r);
    const auto is_better = [&](const card& b) {
      if (c.line.is_kept() != b.line.is_kept()) return b.line.is_kept();
      if (bytes != best_bytes) return bytes < best_bytes;
      return r.count == 1 ? c.slots.size() - c.free < b.slots.size() - b.free : c.free < b.free;
    };
    if (best && !is_better(*best)) continue;
    best = &c;
    best_bytes = bytes;
  }
  return best;
}

// Returns the card to keep for the request: the one whose missing devices are free first, where that is known; else the
// one with most devices free.
device_pool::card* device_pool::nearest_to(std::size_t count, std::uint64_t now) {
  card* nearest = nullptr;
  reservation::opening first;
  for (card& c : cards_) {
    if (c.slots.size() < count || c.line.is_kept()) continue;
    const reservation::opening o = c.line.when_back(static_cast<double>(count) - static_cast<double>(c.free), now);
    const bool sooner = nearest && o.sure && first.sure ? o.at < first.at : !nearest || c.free > nearest->free;
    if (!sooner) continue;
    nearest = &c;
    first = o;
  }
  return nearest;
}

bool device_pool::take_anywhere(const wish& r, std::vector<held_device>& to) {
  std::vector<card*> open;
  std::size_t free = 0;
  for (card& c : cards_) {
    if (c.line.is_kept()) continue;
    open.push_back(&c);
    free += c.free;
  }
  if (free < r.count) return false;
  std::stable_sort(open.begin(), open.end(), [](const card* a, const card* b) { return a->free > b->free; });
  std::size_t count = r.count;
  for (card* c : open) {
    const std::size_t some = std::min(count, c->free);
    take_from(*c, some, r, to);
    count -= some;
  }
  return true;
}

// Keeps all cards, from the time when the last device that the request lacks will be free.
void device_pool::keep_all(const wish& r) {
  std::vector<std::uint64_t> ends;
  std::size_t free = 0;
  for (const card& c : cards_) {
    free += c.free;
    for (std::size_t n = 1; n <= c.slots.size() - c.free; ++n)
      ends.push_back(c.line.when_back(static_cast<double>(n), r.now).at);
  }
  std::ranges::sort(ends);
  const std::size_t lacks = r.count > free ? r.count - free : 0;
  const std::uint64_t at = lacks == 0 ? r.now : lacks <= ends.size() ? ends[lacks - 1] : reservation::never;
  for (card& c : cards_)
    if (!c.line.is_kept())
      c.line.keep(r.by.who, static_cast<double>(c.slots.size()), static_cast<double>(c.free), at, r.now);
}

void device_pool::take_from(card& c, std::size_t count, const wish& r, std::vector<held_device>& to) {
  if (count == 0) return;
  c.line.hold(r.by.who, static_cast<double>(count), r.now, r.by.lasts);
  for (; count != 0; --count, --c.free) {
    slot* least = nullptr;
    std::uint64_t least_bytes = 0;
    for (slot& s : c.slots) {
      if (s.taken) continue;
      const std::uint64_t bytes = r.by.bring ? (*r.by.bring)(s.device) : 0;
      if (least && bytes >= least_bytes) continue;
      least = &s;
      least_bytes = bytes;
    }
    least->taken = true;
    to.push_back(least->device);
  }
}

}  // namespace troupe::logic
