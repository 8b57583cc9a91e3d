// What this file is for: pushed bytes find their place, or are kept until they have one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/push_store.hpp"

#include <exception>
#include <utility>

#include <troupe/error.hpp>

#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

namespace {
[[noreturn]] void refuse(const char* what) { throw error(errc::protocol_error, what); }
}  // namespace

void push_store::expect(std::uint64_t number, std::uint64_t size, transfer& to) {
  if (number <= newest_) refuse("a number under which something was sent before");
  newest_ = number;
  const auto [at, is_new] = all_.try_emplace(number);
  push& p = at->second;
  if (is_new) p.size = size;
  if (p.size != size) refuse("bytes of another size than the box that they are for");
  p.to = &to;
}

push_store::state push_store::look(std::uint64_t number) {
  const auto at = all_.find(number);
  if (at == all_.end()) return state::ask;
  if (at->second.refused) {
    all_.erase(at);
    return state::ask;
  }
  return at->second.whole ? state::here : state::coming;
}

push_store::destination push_store::arriving(std::uint64_t number, std::uint64_t bytes) {
  auto at = all_.find(number);
  if (at == all_.end()) {
    if (number <= newest_) return {};  // it is not wanted any more
    if (all_.size() >= pushes_max) refuse("too many transfers that nobody knows what they are for");
    at = all_.try_emplace(number).first;
    at->second.size = bytes;
  }
  push& p = at->second;
  if (p.writing || p.whole) refuse("a transfer into a place where another one is being written");
  if (p.refused) return {};
  if (p.size != bytes) refuse("a transfer of another size than the box that it is for");
  if (p.to && p.to->open) {
    drop_kept(p);  // a connection broke while it was being written
    return {.to = p.to};
  }
  if (!p.kept) make_room(p);
  p.refused = !p.kept;
  p.writing = !p.refused;
  if (p.refused) return {};
  return {.kept = {{p.kept.get(), bytes}}};
}

void push_store::make_room(push& p) {
  if (rt_.bounded || kept_bytes_ + p.size > wire::pushed_bytes_max) return;
  try {
    p.kept = new_loose_bytes(rt_, p.size);
    kept_bytes_ += p.size;
  } catch (const std::exception&) {  // it is asked for when the tile has room
  }
}

push_store::arrival push_store::arrived(std::uint64_t number, bool whole) {
  const auto at = all_.find(number);
  if (at == all_.end()) return {};
  push& p = at->second;
  if (!std::exchange(p.writing, false)) {
    transfer* const to = p.to;
    if (!to || !std::exchange(to->writing, false) || !whole) return {};
    forget(*to);
    return {.written = to};
  }
  p.whole = whole;
  if (!p.to && number <= newest_) {
    drop_kept(p);
    all_.erase(at);
  } else if (whole && p.to && p.to->open) {
    return {.here = p.to};
  }
  return {};
}

loose_bytes push_store::take(const transfer& t) {
  const auto at = all_.find(t.what_box.pushed);
  kept_bytes_ -= at->second.size;
  loose_bytes kept = std::move(at->second.kept);
  all_.erase(at);
  return kept;
}

void push_store::forget(const transfer& t) {
  const auto at = all_.find(t.what_box.pushed);
  if (at == all_.end() || at->second.to != &t) return;
  push& p = at->second;
  p.to = nullptr;
  if (p.writing) return;  // then when that has ended
  drop_kept(p);
  all_.erase(at);
}

void push_store::forget(const std::vector<wire::gap>& gaps) {
  for (const wire::gap& g : gaps) {
    if (g.pushed <= newest_) continue;
    newest_ = g.pushed;
    if (const auto at = all_.find(g.pushed); at != all_.end() && !at->second.writing) {
      drop_kept(at->second);
      all_.erase(at);
    }
  }
}

void push_store::forget_unwanted() {
  for (auto p = all_.begin(); p != all_.end();) {
    if (p->second.to || p->second.writing) {
      ++p;
      continue;
    }
    drop_kept(p->second);
    p = all_.erase(p);
  }
}

void push_store::drop_kept(push& p) {
  if (p.kept) kept_bytes_ -= p.size;
  p.kept.reset();
}

}  // namespace troupe::detail
