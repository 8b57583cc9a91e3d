// What this file is for: bytes of another node's arrays that come with their task, before this node has asked for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   owner --tasks: sent under that number--> guest house
//   owner --bytes_pushed-------------------^
//
// The two go over different connections, so either may be here first, and the place may still be in use by what came
// before. Bytes that come to their open access are written there. Others are kept, and become the tile's memory when it
// opens: nothing is copied, but for parts of tiles. Where there is no room for that they are thrown away and asked for.
#include <cstring>

#include <troupe/error.hpp>

#include "actors/node_service/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// The most pushes that have come or are expected.
constexpr std::size_t pushes_max = 65536;

[[noreturn]] void refuse(const char* what) { throw error(errc::bad_frame, what); }

}  // namespace

void guest_actor::expect_push(door& d, const array_core& a) {
  const std::uint64_t number = d.what_box.pushed;
  if (number <= newest_push_) refuse("a number under which something was sent before");
  newest_push_ = number;
  const std::uint64_t size = static_cast<std::uint64_t>(d.what_box.where.volume()) * a.spec.element;
  const auto [at, is_new] = pushes_.try_emplace(number);
  push& p = at->second;
  if (is_new) p.size = size;
  if (p.size != size) refuse("bytes of another size than the box that they are for");
  p.to = &d;
}

// True if the bytes of an open door are pushed: they are put in place if here, else they come.
bool guest_actor::await_push(door& d) {
  const auto p = pushes_.find(d.what_box.pushed);
  if (p == pushes_.end()) return false;
  if (p->second.refused) {
    pushes_.erase(p);
    d.what_box.pushed = 0;
    return false;
  }
  if (p->second.whole) put_in_place(d, p->second);
  return true;
}

net::pieces guest_actor::push_arriving(std::uint64_t number, std::uint64_t bytes) {
  if (left_) return {};
  auto at = pushes_.find(number);
  if (at == pushes_.end()) {
    if (number <= newest_push_) return {};  // nobody wants it any more
    if (pushes_.size() >= pushes_max) refuse("too many transfers that nobody knows what they are for");
    at = pushes_.try_emplace(number).first;
    at->second.size = bytes;
  }
  push& p = at->second;
  if (p.writing || p.whole) refuse("a transfer into a place where another one is being written");
  if (p.refused) return {};
  if (p.size != bytes) refuse("a transfer of another size than the box that it is for");
  if (p.to && p.to->open) {
    drop_kept(p);  // a connection broke while it was being written
    return give_room(*p.to, bytes);
  }
  if (!p.kept) make_room(p);
  p.refused = !p.kept;
  p.writing = !p.refused;
  return p.refused ? net::pieces() : net::pieces{{p.kept.get(), bytes}};
}

void guest_actor::make_room(push& p) {
  if (link_.bounded || pushed_bytes_ + p.size > wire::pushed_bytes_max) return;
  try {
    p.kept = new_loose_bytes(link_, p.size);
    pushed_bytes_ += p.size;
  } catch (const std::exception&) {  // it is asked for when the tile has room
  }
}

void guest_actor::push_arrived(std::uint64_t number, bool whole) {
  const auto at = pushes_.find(number);
  if (at == pushes_.end()) return;
  push& p = at->second;
  if (!std::exchange(p.writing, false)) {
    door* const d = p.to;
    if (!d || !std::exchange(d->writing, false) || !whole) return;
    forget_push(*d);
    return close(*d);
  }
  p.whole = whole;
  if (!p.to && number <= newest_push_) {
    drop_kept(p);
    pushes_.erase(at);
  } else if (whole && p.to && p.to->open) {
    put_in_place(*p.to, p);
  }
}

// Moves or copies kept bytes into the tile of an open door, which no task uses, and closes the door.
void guest_actor::put_in_place(door& d, push& p) {
  array_core& a = *d.task->accesses[0].array;
  if (d.what_box.where == a.tile_box(d.what_box.tile)) {
    pushed_bytes_ -= p.size;
    exchange_host_tile(link_, a, d.what_box.tile, std::move(p.kept));
  } else {
    const std::byte* from = p.kept.get();
    for (const auto& row : rows_of(d.view, d.element)) {
      std::memcpy(row.data(), from, row.size());
      from += row.size();
    }
  }
  forget_push(d);
  close(d);
}

// Forgets the push of a door whose bytes are in place or will not be needed.
void guest_actor::forget_push(const door& d) {
  const auto at = pushes_.find(d.what_box.pushed);
  if (at == pushes_.end() || at->second.to != &d) return;
  push& p = at->second;
  p.to = nullptr;
  if (p.writing) return;  // then when that has ended
  drop_kept(p);
  pushes_.erase(at);
}

// Forgets the pushes of a task that does not run here.
void guest_actor::forget_pushes(const std::vector<wire::gap>& all) {
  for (const wire::gap& g : all) {
    if (g.pushed <= newest_push_) continue;
    newest_push_ = g.pushed;
    if (const auto at = pushes_.find(g.pushed); at != pushes_.end() && !at->second.writing) {
      drop_kept(at->second);
      pushes_.erase(at);
    }
  }
}

void guest_actor::drop_kept(push& p) {
  if (p.kept) pushed_bytes_ -= p.size;
  p.kept.reset();
}

}  // namespace troupe::detail
