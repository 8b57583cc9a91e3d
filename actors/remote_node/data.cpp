// What this file is for: which bytes of this node's arrays are on another one, what must travel, and how it does.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <thread>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// So many boxes of one tile are remembered; beyond, all of it is sent.
constexpr std::size_t parts_max = 16;

std::uint32_t known_version(const array_core& a, std::uint32_t tile) {
  return a.homes->tiles[tile].version.load(std::memory_order_relaxed);
}

bool is_current(std::uint32_t have, std::uint32_t known) { return static_cast<std::int32_t>(have - known) >= 0; }

[[noreturn]] void refuse_transfer() {
  throw error(errc::bad_frame, "a transfer that was not asked for, of another size, or of what is coming already");
}

void put(net::writer& to, std::uint64_t number, const array_core& a, std::uint32_t tile, const logic::box4& where) {
  wire::put(to, wire::box_request{number, a.id, {tile, where}});
}

}  // namespace

// ---- what is there --------------------------------------------------------------------------------------------------

node_actor::known_array& node_actor::know(array_core& a) {
  if (a.tile_count > wire::tiles_max)
    throw too_much("array '" + a.spec.name + "' has " + std::to_string(a.tile_count) + " tiles, to another node go " +
                   std::to_string(wire::tiles_max) + " of one; use larger tiles, or");
  const auto [at, is_new] = arrays_.try_emplace(a.id);
  if (!is_new) return at->second;
  at->second.core = &a;
  wire::array_card c;
  c.id = a.id;
  c.rank = a.spec.rank;
  c.size = a.spec.size;
  c.tile = a.spec.tile;
  c.element = a.spec.element;
  c.align = a.spec.align;
  c.name = a.spec.name;
  wire::put(new_arrays_, c);
  at->second.shape = std::make_shared<const wire::array_card>(std::move(c));
  ++array_count_;
  return at->second;
}

// What of the box is not there has to be sent for; from then on it is.
void node_actor::need(job& j, wire::access_card& w, known_array& known, const logic::box4& touched) {
  array_core& a = *known.core;
  const auto add = [&](std::uint32_t tile, const logic::box4& where, bool in_use) {
    w.gaps.push_back({tile, where});
    if (w.mode == access_mode::read) ask_to_lend(j, w.gaps.back(), a);
    if (w.gaps.back().lent != 0) return;
    if (!in_use) push_with(j, w.gaps.back(), a);
    std::vector<std::uint64_t>& asks = known.tiles[tile].asks;
    if (asks.size() >= parts_max) std::erase_if(asks, [&](std::uint64_t id) { return !find_job(id); });
    if (asks.empty() || asks.back() != j.id) asks.push_back(j.id);
  };
  a.each_tile(touched, [&](std::uint32_t tile, const logic::box4& all) {
    const logic::box4 part = intersect(touched, all);
    copy& c = known.tiles[tile];
    const std::uint32_t version = known_version(a, tile);
    if (!is_current(c.version, version)) c.forget();
    c.version = is_current(c.version, version) ? c.version : version;
    const bool in_use = c.last_job != j.id && find_job(c.last_job);
    c.last_job = j.id;
    if (c.whole) return;
    for (const logic::box4& have : c.parts)
      if (have.contains(part)) return;
    if (part == all || c.parts.size() == parts_max) {
      add(tile, all, in_use);
      c.whole = true;
      c.parts.clear();
    } else {
      add(tile, part, in_use);
      c.parts.push_back(part);
    }
  });
}

// Calls f(access, copy) for each tile that the task writes as a whole.
template <class F>
void node_actor::each_written(const task_record& t, F&& f) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !logic::is_whole(x) || !logic::writes(x)) continue;
    if (const auto known = arrays_.find(x.array->id); known != arrays_.end()) f(x, known->second.tiles[x.tile]);
  }
}

// It is newer there from here on.
void node_actor::note_written(job& j) {
  j.wrote.clear();
  each_written(*j.task, [&](const access& x, copy& c) {
    const std::uint32_t version = known_version(*x.array, x.tile);
    if (!is_current(c.version, version)) c.forget();  // somebody else has written it since
    c.version = (is_current(c.version, version) ? c.version : version) + 1;
    c.last_write = ++writes_;
    j.wrote.push_back(c.last_write);
    if (!c.dirty) c.first_write = c.last_write;
    c.last_job = j.id;
    c.whole = c.dirty = true;
    c.in_error = false;
    c.parts.clear();
  });
  j.last_write = writes_;
}

// It ends when that is here.
void node_actor::ask_for_written(job& j) {
  each_written(*j.task, [&](const access& x, copy&) { j.copies += ask_for_copy(*x.array, x.tile, j.id); });
}

// If the task did not run there, a tile that it is to write would lose what only that node has.
bool node_actor::would_spoil(const job& j) {
  bool any = false;
  auto wrote = j.wrote.begin();
  each_written(*j.task, [&](const access&, const copy& c) {
    const std::uint64_t write = *wrote++;
    any = any || (c.dirty && c.first_write < write);
  });
  return any;
}

// It has failed: what it touched is worth nothing, and what was there before is gone. Or it was refused by a node that is
// leaving: then what was there before still is, and may be the only copy. What overwrites it may have been sent since. If
// the task is to run elsewhere, it needs what was only there before.
void node_actor::note_not_written(const job& j, const task_record& t, bool touched, bool runs_again) {
  auto wrote = j.wrote.begin();
  each_written(t, [&](const access& x, copy& c) {
    const std::uint64_t write = *wrote++;
    spoil_copies(*x.array, x.tile, write);
    if (write <= c.forgotten_write) return;
    if (runs_again && c.dirty && c.first_write < write) spoilt_.emplace_back(x.array, x.tile);
    --c.version;
    if (touched || c.first_write >= write) c.first_write = std::max(c.first_write, write + 1);
    if (c.first_write > c.last_write) c.forget();
  });
  // What it was to read may not have found room.
  if (runs_again) forget_read(t);
}

// Others that read it are not to take it for being there. Nor a part that it was to change there and send back: that has
// failed with it, and this node has what was there before, for otherwise it could not have had the part changed.
void node_actor::forget_read(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    const auto known = x.array ? arrays_.find(x.array->id) : arrays_.end();
    if (known == arrays_.end()) continue;
    const bool sends_back = !logic::is_whole(x) && !logic::uses_copies(x) && x.mode == access_mode::update;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      const auto c = known->second.tiles.find(tile);
      if (c != known->second.tiles.end() && (!c->second.dirty || sends_back)) c->second.forget();
    });
  }
}

// What comes after it there has written what it is to read or to write: there it must not run any more, and what was
// nowhere else is gone.
bool node_actor::note_overtaken(const job& j, task_record& t) {
  bool is = false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    const auto known = x.array ? arrays_.find(x.array->id) : arrays_.end();
    if (known == arrays_.end()) continue;
    const bool needs = !(logic::is_whole(x) && x.mode == access_mode::write);
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      const auto c = known->second.tiles.find(tile);
      if (c == known->second.tiles.end() || c->second.last_write <= j.last_write) return;
      is = true;
      if (needs && c->second.dirty && c->second.first_write <= j.last_write) overtaken_.push_back({&t, x.array, tile});
    });
  }
  return is;
}

// ---- what placement asks for ----------------------------------------------------------------------------------------

// False: it has to wait for what is on its way.
bool node_actor::start_errand(task_record& t) {
  const access& x = t.accesses[0];
  const auto known = arrays_.find(x.array->id);
  if (t.kind == task_kind::forget) {
    if (known != arrays_.end()) {
      if (known->second.coming_home != 0) return false;  // until then the array's memory must stay
      net::writer frame;
      frame.fixed(wire::kind::forget);
      frame.varint(x.array->id);
      session_->send(frame.view());
      arrays_.erase(known);
    }
    claim(t);
    end_errand(t, nullptr);
    return true;
  }
  claim(t);
  copy* c = nullptr;
  if (known != arrays_.end())
    if (const auto found = known->second.tiles.find(x.tile); found != known->second.tiles.end()) c = &found->second;
  if (t.kind != task_kind::transfer) {
    end_errand(t, std::make_exception_ptr(error(errc::not_supported, "nodes do not lend")));
    return true;
  }
  if (x.mode == access_mode::update) {  // one that is not dirty would do
    if (!c || !c->whole || !is_current(c->version, known_version(*x.array, x.tile))) {
      end_errand(t, *static_cast<const std::exception_ptr*>(t.extra->payload.get()));
      return true;
    }
  } else if (!c || !c->dirty) {  // lost, which placement has been told
    end_errand(t, nullptr);
    return true;
  }
  if (x.mode == access_mode::write) {  // given up: somebody overwrites all of it
    c->forget();
    end_errand(t, nullptr);
    return true;
  }
  if (!has_free_job()) return false;
  job& j = take_job(t);
  j.begin = begin_share(home_share_);
  ++known->second.coming_home;
  net::writer frame;
  frame.fixed(wire::kind::give);
  put(frame, j.id, *x.array, x.tile, x.array->tile_box(x.tile));
  session_->send(frame.view());
  return true;
}

// A tile has come home, or there was nothing to send.
void node_actor::come_home(job& j, std::exception_ptr why) {
  task_record& t = *j.task;
  if (!is_internal(t.kind) || j.writing != 0) throw error(errc::bad_frame, "the answer to what was not asked");
  const access& x = t.accesses[0];
  known_array& known = arrays_.at(x.array->id);
  const float taken_ns = end_share(home_share_, j.begin);
  if (!why) {
    known.tiles[x.tile].dirty = false;
    t.measured_ns = std::max(1.0f, taken_ns);
  } else {
    known.tiles[x.tile].forget();
    why = lost_with(t, why);
  }
  give_job(j);
  end_errand(t, std::move(why));
  one_less_coming(known.core->id);
}

void node_actor::one_less_coming(std::uint64_t array) {
  --arrays_.at(array).coming_home;
  if (!put_off_.empty()) {
    std::lock_guard hold(queue_lock_);
    errands_.insert(errands_.end(), put_off_.begin(), put_off_.end());
    put_off_.clear();
  }
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

net::pieces node_actor::back::pieces() {
  net::pieces rows = rows_of(to, element);
  if (!is_update) return rows;
  std::size_t bytes = 0;
  for (const auto& r : rows) bytes += r.size();
  if (!staged) staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
  return {{staged.get(), bytes}};
}

void node_actor::back::take_over() {
  if (!staged) return;
  const std::byte* from = staged.get();
  for (const auto& row : rows_of(to, element)) {
    std::memcpy(row.data(), from, row.size());
    from += row.size();
  }
}

double node_actor::begin_share(logic::link_share& s) {
  std::lock_guard hold(share_lock_);
  return s.begin(link_.clock.ticks());
}
float node_actor::end_share(logic::link_share& s, double begun) {
  std::lock_guard hold(share_lock_);
  return static_cast<float>(s.end(link_.clock.ticks(), begun) * link_.clock.ns_per_tick());
}

// One that has not ended, so nobody else has that memory.
node_actor::job* node_actor::asker_of(copy& c) {
  while (!c.asks.empty()) {
    if (job* const j = find_job(c.asks.back())) return j;
    c.asks.pop_back();
  }
  return nullptr;
}

// It has been read. What has been said of the task's end meanwhile holds from now on.
void node_actor::sent(std::uint64_t id) {
  std::unique_lock hold(lock_);
  job* const j = find_job(id);
  if (!session_ || !j || j->sending == 0) return;
  if (--j->sending != 0 || !j->end) return;
  finish_awaited(*j);
  send_some();
  tell(hold);
}

// The tasks that want them have not ended, so nobody writes there; and they do not end before it has been sent.
void node_actor::serve_wants(net::reader& from) {
  for (const wire::box_request& r : wire::take_requests(from)) {
    const auto known = arrays_.find(r.array);
    const bool fits = known != arrays_.end() && r.what.tile < known->second.core->tile_count &&
                      known->second.core->tile_box(r.what.tile).contains(r.what.where) && !r.what.where.empty();
    if (!fits) throw error(errc::bad_frame, "bytes of an array were asked for that are not there");
    job* const asker = asker_of(known->second.tiles[r.what.tile]);
    if (!asker) throw error(errc::bad_frame, "bytes were asked for that no task there is to read");
    ++asker->sending;
    const net::pieces body = rows_of(link_, *known->second.core, r.what.tile, r.what.where, false);
    const std::uint64_t bytes = static_cast<std::uint64_t>(r.what.where.volume()) * known->second.core->spec.element;
    counts_.bytes_out.fetch_add(bytes, std::memory_order_relaxed);
    net::writer head;
    head.fixed(wire::kind::bytes_in);
    head.varint(r.number);
    const double begin = begin_share(out_share_);
    // If the session has ended it is told at once, with the lock held; then all of its tasks come back anyway.
    struct call {
      const std::thread::id by = std::this_thread::get_id();
      bool is_under_way = true;  // looked at by that thread only
    };
    const auto here = std::make_shared<call>();
    session_->send_bulk(head.view(), net::const_pieces(body.begin(), body.end()),
                        [this, bytes, begin, here, id = asker->id](bool all) {
                          const float taken_ns = end_share(out_share_, begin);
                          if (all) placement_.report_transfer(host_space, facts_.space, bytes, taken_ns);
                          if (here->by != std::this_thread::get_id() || !here->is_under_way) sent(id);
                        });
    here->is_under_way = false;
  }
}

net::pieces node_actor::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::lock_guard hold(lock_);
  const std::uint64_t number = from.varint();
  if (const auto c = copies_.find(number); c != copies_.end() && what == wire::kind::bytes_home && session_) {
    saved_tile& s = c->second.what;
    const std::size_t room = s.array->bytes_of(s.tile);
    if (room != bytes || c->second.writing) refuse_transfer();
    if (!s.bytes) s.bytes = new_loose_bytes(link_, room);
    c->second.writing = true;
    counts_.bytes_in.fetch_add(bytes, std::memory_order_relaxed);
    return {{s.bytes.get(), room}};
  }
  job* const j = find_job(number);
  if (!j || !session_) return {};
  net::pieces to;
  back* part = nullptr;
  if (what == wire::kind::bytes_home && j->task->kind == task_kind::transfer && j->writing == 0) {
    const access& x = j->task->accesses[0];
    to = rows_of(link_, *x.array, x.tile, x.array->tile_box(x.tile), true);
  } else {
    part = what == wire::kind::bytes_back ? back_of(*j, from.varint()) : nullptr;
    if (!part || part->writing) refuse_transfer();
    if (j->end && j->end->how != wire::outcome::ran) return {};  // another part of it could not be sent
    to = part->pieces();
  }
  std::uint64_t room = 0;
  for (const auto& piece : to) room += piece.size();
  if (room != bytes) refuse_transfer();
  if (part) part->writing = true;
  ++j->writing;
  counts_.bytes_in.fetch_add(bytes, std::memory_order_relaxed);
  return to;
}

node_actor::back* node_actor::back_of(job& j, std::uint64_t access) {
  if (!j.data) return nullptr;
  const auto is_it = [&](const back& b) { return static_cast<std::uint64_t>(b.number) == access; };
  const auto b = std::ranges::find_if(j.data->to, is_it);
  return b == j.data->to.end() ? nullptr : &*b;
}

void node_actor::arrived(std::span<const std::byte> head, bool whole) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  const std::uint64_t number = from.varint();
  job* const j = find_job(number);
  if (!session_) return;
  if (const auto c = copies_.find(number); c != copies_.end()) {
    // Under another title nothing of it was written, and what is may go on being.
    if (what != wire::kind::bytes_home || !std::exchange(c->second.writing, false) || !whole) return;
    copy_arrived(number, true);
  } else if (!j || j->writing == 0) {
    return;
  } else if (what == wire::kind::bytes_home) {
    --j->writing;
    if (!whole) return;
    come_home(*j, nullptr);
  } else {
    back* const b = back_of(*j, from.varint());
    if (!b || !std::exchange(b->writing, false)) return;
    --j->writing;
    if (whole && j->data->awaited != 0) --j->data->awaited;
    finish_awaited(*j);
  }
  send_some();
  tell(hold);
}

}  // namespace troupe::detail
