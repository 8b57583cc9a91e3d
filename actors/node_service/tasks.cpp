// What this file is for: tasks of another node: how they are made, started, stopped, and what is told of their end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {

constexpr std::size_t early_max = 65536;
// The most places of ended guests that are kept for later ones.
constexpr std::size_t idle_max = 1024;
using wire::bytes_max;

// Empties the vector and reserves as much again: about as many items will come next.
template <class T>
std::vector<T> take_all(std::vector<T>& from) {
  std::vector<T> fresh;
  fresh.reserve(from.size());
  return std::exchange(from, std::move(fresh));
}

[[noreturn]] void refuse(const std::string& what) { throw error(errc::bad_frame, what); }

errc code_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    return e.code();
  } catch (const std::bad_alloc&) {
    return errc::out_of_memory;
  } catch (...) {
    return errc::task_failed;
  }
}

wire::task_end failed(errc code, std::string text) {
  wire::task_end e;
  e.how = wire::outcome::failed;
  e.attempts = 0;  // no body of it has run
  e.code = code;
  e.text = std::move(text);
  return e;
}

// Returns how a task ended; an error without the names wrapped around it here: the owner has its own.
wire::task_end end_of(const task_record& t) {
  try {
    throw_task_error(t);
  } catch (const task_failed& f) {
    wire::task_end e = failed(f.code(), f.what());
    if (f.code() == errc::no_executor && f.cause()) {  // no device here can, those of others may
      e.how = wire::outcome::no_room;
      e.text = text_of(f.cause());
      return e;
    }
    const bool plain = f.code() == errc::task_failed;
    if (f.cause() && (plain || (f.code() != errc::poisoned && f.code() == code_of(f.cause())))) {
      e.code = code_of(f.cause());
      e.text = text_of(f.cause());
    }
    if (f.code() != errc::poisoned) return e;
    e.how = wire::outcome::not_run;
    if (f.root_task() != access_kernel.name || !f.cause()) return e;
    // Nothing of the owner's has failed: what it was to read has not come in.
    e.code = code_of(f.cause());
    e.how = e.code == errc::unreachable ? wire::outcome::unfilled : wire::outcome::no_room;
    e.text = text_of(f.cause());
    return e;
  } catch (...) {
    return failed(code_of(std::current_exception()), text_of(std::current_exception()));
  }
  wire::task_end e;
  e.measured_ns = std::max(0.0f, t.measured_ns);
  return e;
}

}  // namespace

bool is_for_guest_house(wire::kind k) {
  switch (k) {
    case wire::kind::tasks:
    case wire::kind::fill:
    case wire::kind::cancel:
    case wire::kind::recall:
    case wire::kind::give:
    case wire::kind::copy:
    case wire::kind::forget:
    case wire::kind::released:
    case wire::kind::lend:
    case wire::kind::unlend:
    case wire::kind::no_pull:
    case wire::kind::bytes_in:
    case wire::kind::bytes_pushed:
      return true;
    default:
      return false;
  }
}

// ---- messages -------------------------------------------------------------------------------------------------------

void guest_actor::frame(std::span<const std::byte> bytes) {
  net::reader from(bytes);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  if (left_) return;
  switch (what) {
    case wire::kind::tasks:
      wire::each_of_tasks(
          from, [this](const wire::array_card& c) { take_in(c); }, [this](const wire::task_card& c) { start(c); });
      break;
    case wire::kind::fill:
      take_in(wire::take_gaps(from));
      break;
    case wire::kind::cancel:
      for (const std::uint64_t id : wire::take_numbers(from)) cancel(id);
      break;
    case wire::kind::recall:
      for (const std::uint64_t id : wire::take_numbers(from)) recall(id);
      break;
    case wire::kind::give:
    case wire::kind::copy:
      for (const wire::box_request& r : wire::take_requests(from)) give(r, what == wire::kind::copy);
      break;
    case wire::kind::forget:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (const auto a = arrays_.find(id); a != arrays_.end()) drop(a);
      break;
    case wire::kind::released:
      released_ = closed_;
      break;
    case wire::kind::lend:
      for (const wire::box_request& r : wire::take_requests(from)) keep_for_others(r);
      break;
    case wire::kind::unlend:
      for (const std::uint64_t number : wire::take_numbers(from)) unlend(number);
      break;
    case wire::kind::no_pull: {
      const std::uint64_t number = from.varint();
      no_pull(number, wire::take_node(from));
      break;
    }
    default:
      refuse("a message of an unknown kind");
  }
  work_off(hold);
}

void guest_actor::take_in(const wire::array_card& c) {
  array_spec s;
  s.rank = c.rank;
  s.size = c.size;
  s.tile = c.tile;
  s.element = static_cast<std::size_t>(c.element);
  s.align = static_cast<std::size_t>(c.align);
  s.name = c.name;
  double bytes = static_cast<double>(c.element);
  for (const index_t n : c.size) bytes *= static_cast<double>(std::max<index_t>(n, 1));  // products of some of them too
  if (bytes > bytes_max) refuse("an array that is too large");
  if (arrays_.contains(c.id)) refuse("an array that is there already");
  arrays_.emplace(c.id, new_array(house_, std::move(s)));
}

// Asks for the boxes of the next task. After `close_door` no task is taken, and their pushes are forgotten.
void guest_actor::take_in(const wire::gaps& g) {
  const auto a = arrays_.find(g.array);
  if (a == arrays_.end()) refuse("an array that was not named before");
  if (closed_) return forget_pushes(g.all);
  for (const wire::gap& one : g.all) ask_for(*a->second, g.array, one);
}

void guest_actor::drop(std::unordered_map<std::uint64_t, array_core*>::iterator a) {
  to_drop_.push_back(a->second);
  arrays_.erase(a);
}

// ---- starting -------------------------------------------------------------------------------------------------------

void guest_actor::start(const wire::task_card& c) {
  if (guests_.contains(c.id)) refuse("a task that is there already");
  newest_ = std::max(newest_, c.id);
  guest& g = new_guest(c.id);
  if (closed_) {
    wire::task_end end = failed(errc::runtime_stopped, "the node is leaving");
    end.how = wire::outcome::not_run;
    for (const wire::access_card& x : c.accesses) forget_pushes(x.gaps);
    return refuse_task(g, std::move(end));
  }
  try {
    const offered_kernel* const k = find_offer(c.kernel);
    if (!k) throw error(errc::no_executor, "the kernel is not offered there");
    fill_in(g, c, *k);
  } catch (const std::exception& e) {
    wire::task_end end = failed(code_of(std::current_exception()), e.what());
    for (const wire::access_card& x : c.accesses) forget_pushes(x.gaps);
    if (end.code == errc::bad_frame) {
      to_drop_.insert(to_drop_.end(), g.arrays.begin(), g.arrays.end());
      forget(g);
      throw;
    }
    return refuse_task(g, std::move(end));
  }
  asked_.clear();
  if (idle_places_.empty()) {
    by_task_.emplace(g.task, &g);
  } else {
    auto place = std::move(idle_places_.back());
    idle_places_.pop_back();
    place.key() = g.task;
    place.mapped() = &g;
    by_task_.insert(std::move(place));
  }
  to_submit_.push_back(g.task);
  if (cancelled_early_.erase(c.id) != 0) g.stop.request_stop();
}

guest_actor::guest& guest_actor::new_guest(std::uint64_t id) {
  if (idle_guests_.empty()) {
    guest& g = *guests_.emplace(id, std::make_unique<guest>()).first->second;
    g.id = id;
    return g;
  }
  auto place = std::move(idle_guests_.back());
  idle_guests_.pop_back();
  place.key() = id;
  guest& g = *guests_.insert(std::move(place)).position->second;
  g.id = id;
  return g;
}

// Removes a guest and keeps its place for another, unless it was asked to stop: that cannot be undone.
void guest_actor::forget(guest& g) {
  auto place = guests_.extract(g.id);
  if (idle_guests_.size() == idle_max || g.stop.stop_requested()) return;
  g.task = nullptr;
  g.returns.clear();
  g.arrays.clear();
  g.recalled = false;
  g.on_their_way = 0;
  g.untold.reset();
  idle_guests_.push_back(std::move(place));
}

// Ends a task that cannot run here. Boxes it asked for are awaited first: the owner keeps them until told the end.
void guest_actor::refuse_task(guest& g, wire::task_end end) {
  end.id = g.id;
  for (task_record* t : std::exchange(asked_, {}))
    if (const auto d = doors_.find(t); d != doors_.end() && d->second->what == door::use::in && !d->second->of) {
      d->second->of = &g;
      ++g.on_their_way;
    }
  if (g.on_their_way != 0) {
    g.untold = std::make_unique<wire::task_end>(std::move(end));
    return;
  }
  for (array_core* a : g.arrays) to_drop_.push_back(a);
  forget(g);
  tell_end(end);
}

// The boxes of an access lie as they may: one long beyond the rank of the array, so that what the body sees of them is
// empty where it has no memory; the limits inside the array. Only what was written goes back, and each partial does.
void guest_actor::check(const array_core& a, const wire::access_card& x) {
  const array_spec& s = a.spec;
  double volume = static_cast<double>(s.element);
  for (int d = 0; d < rank_max; ++d) {
    if (x.limit.lo[d] < 0 || x.limit.hi[d] > s.size[d]) refuse("a box outside of its array");
    const bool is_one = x.where.lo[d] == 0 && x.where.hi[d] == 1 && x.limit.lo[d] == 0 && x.limit.hi[d] == 1;
    if (d >= s.rank && !is_one) refuse("a box of more dimensions than its array");
    volume *= static_cast<double>(std::max<index_t>(x.where.size(d), 1));
  }
  if (volume > bytes_max) refuse("a box that is too large");
  const bool reads = x.mode == access_mode::read;
  if (!reads && x.edge != border::clip && !x.limit.contains(x.where)) refuse("a border of what is written");
  if (x.returns && reads) refuse("what was only read is to be sent back");
  if (x.fresh && (!x.returns || !x.gaps.empty())) refuse("a partial that stays, or is to be sent");
  if ((x.fresh || x.edge == border::fill) && s.element > x.fill.size())
    refuse("a constant of elements that are too large");
}

void guest_actor::fill_in(guest& g, const wire::task_card& c, const offered_kernel& k) {
  // What the kernel's signature says, the call must be.
  std::size_t array = 0, value = 0;
  std::vector<std::span<const std::byte>> values;
  for (const parameter_facts& p : k.parameters) {
    if (!p.is_array) {
      if (value == c.values.size() || c.values[value].size() != p.bytes) refuse("values that are not the kernel's");
      if (p.is_truth && std::to_integer<unsigned>(c.values[value][0]) > 1) refuse("a value that is neither 0 nor 1");
      values.emplace_back(c.values[value++]);
      continue;
    }
    if (array == c.accesses.size()) refuse("fewer arrays than the kernel has");
    const wire::access_card& x = c.accesses[array++];
    const auto known = arrays_.find(x.array);
    if (known == arrays_.end()) refuse("an array that was not named before");
    const array_spec& s = known->second->spec;
    const bool same_mode = p.mode == x.mode && x.fresh == (p.mode == access_mode::reduce);
    if (!same_mode || s.rank != p.rank || s.element != p.bytes) refuse("an array that is not the kernel's");
    check(*known->second, x);
  }
  if (array != c.accesses.size() || value != c.values.size()) refuse("more arguments than the kernel has");

  struct holder {
    task_record* task;
    ~holder() {
      if (!task) return;
      discard(task);
      release(task);
    }
  } made{new_task(house_)};
  task_record& t = *made.task;
  t.ops = nullptr;
  if (static_cast<int>(c.accesses.size()) > task_record::inline_accesses)
    size_accesses(t, static_cast<int>(c.accesses.size()));
  for (std::size_t i = 0; i < c.accesses.size(); ++i) {
    const wire::access_card& x = c.accesses[i];
    array_core* a = arrays_.at(x.array);
    if (x.fresh) {
      array_spec s = a->spec;
      s.fill = x.fill.data();
      a = new_array(house_, std::move(s));
      g.arrays.push_back(a);
    } else if (x.returns) {
      retain(a);
      g.arrays.push_back(a);
    }
    for (const wire::gap& gap : x.gaps) ask_for(*a, x.array, gap);
    const access_mode mode = x.fresh ? access_mode::update : x.mode;
    describe(house_, t.accesses[i], *a, mode, x.where.lo, x.where.hi, x.limit.lo, x.limit.hi, x.edge, x.fill.data(),
             x.edge == border::fill ? a->spec.element : 0, nullptr);
    ++t.access_count;
    if (x.returns) g.returns.emplace_back(static_cast<int>(i), x);
  }
  t.kernel = intern(house_, k.info);
  task_options o;
  o.name = c.name;
  o.priority = c.priority;
  o.retries = static_cast<int>(c.retries);
  o.resources = c.resources;
  o.stop = g.stop.get_token();
  o.where = here_;
  apply(house_, t, o);
  check_kernel(house_, t);
  extra_of(t).listener = this;
  t.extra->watched = c.watched;
  k.fill(t, k.body.get(), values);
  g.task = std::exchange(made.task, nullptr);
}

void guest_actor::cancel(std::uint64_t id) {
  if (const auto g = guests_.find(id); g != guests_.end())
    g->second->stop.request_stop();
  else if (id > newest_ && cancelled_early_.size() < early_max)
    cancelled_early_.insert(id);
}

// The owner takes a task back that has not begun. Placement is done with it when its turn comes, as with any task that was
// cancelled in time.
void guest_actor::recall(std::uint64_t id) {
  const auto g = guests_.find(id);
  if (g == guests_.end() || !g->second->task || !claim(*g->second->task)) return;
  g->second->recalled = true;
  // Tasks after it do not run here either and go back as well, for it was not cancelled.
  g->second->task->error = refused_error(*g->second->task, errc::unreachable, "its owner has taken it back");
  fulfil(*g->second->task, board_);
}

// ---- what placement tells -------------------------------------------------------------------------------------------

void guest_actor::note(task_record& t, bool was_granted) {
  std::lock_guard hold(notes_lock_);
  notes_.emplace_back(&t, was_granted);
}

// From the thread that runs it: if the process does not survive that, the owner is to know by whom, and what has been.
void guest_actor::tell_of_body(task_record& t, wire::kind what) {
  std::lock_guard hold(lock_);
  const auto g = by_task_.find(&t);
  if (left_ || g == by_task_.end()) return;
  net::writer frame;
  frame.fixed(what);
  frame.varint(g->second->id);
  session_->send(frame.view());
}

void guest_actor::after_turn() {
  std::unique_lock hold(lock_);
  noted_.clear();
  {
    std::lock_guard noted(notes_lock_);
    noted_.swap(notes_);
  }
  for (const auto& [t, was_granted] : noted_) {
    if (const auto d = doors_.find(t); d != doors_.end())
      was_granted ? opened(*d->second) : closed(*d->second);
    else if (const auto g = by_task_.find(t); g != by_task_.end())
      ended(*g->second);
  }
  work_off(hold);
}

void guest_actor::ended(guest& g) {
  auto place = by_task_.extract(g.task);
  if (idle_places_.size() < idle_max) idle_places_.push_back(std::move(place));
  wire::task_end end = end_of(*g.task);
  const int bodies = g.task->extra->bodies;
  end.id = g.id;
  end.attempts = bodies;
  if (g.recalled) end.how = wire::outcome::unfilled;
  to_release_.push_back(g.task);
  g.task = nullptr;
  if (end.how == wire::outcome::ran && !left_ && !g.returns.empty()) {
    try {
      send_back(g);
    } catch (const std::exception& e) {  // for want of memory; what is on its way is thrown away there
      end = failed(code_of(std::current_exception()), e.what());
      end.id = g.id;
      end.attempts = bodies;
    }
  }
  tell_end(end);
  if (g.on_their_way != 0) return;
  for (array_core* a : g.arrays) to_drop_.push_back(a);
  forget(g);
}

void guest_actor::tell_end(const wire::task_end& e) {
  if (left_) return;
  if (done_.empty()) done_.fixed(wire::kind::done);
  wire::put(done_, e);
  if (done_.size() < gathered_bytes) return;
  send(unfilled_);  // before the ends of those that needed it
  send(done_);
}

void guest_actor::send(net::writer& gathered) {
  if (gathered.empty()) return;
  session_->send(gathered.view());
  gathered.clear();
}

// ---- what must not be done with the lock held, or can be gathered ---------------------------------------------------

void guest_actor::work_off(std::unique_lock<std::mutex>& hold) {
  send(wants_);
  send(unfilled_);  // before the ends of those that needed it
  send(done_);
  const auto submit = take_all(to_submit_), close = take_all(to_close_), release_tasks = take_all(to_release_);
  const auto drop = take_all(to_drop_);
  const auto parcels = std::exchange(to_send_, {});
  auto ask = std::exchange(to_ask_, {});
  const auto answers = std::exchange(to_answer_, {});
  hold.unlock();
  for (const parcel& p : parcels) {
    if (p.task)
      p.over->send_bulk(p.head, p.body, [this, t = p.task](bool) { sent(t); });
    else
      p.over->send_bulk(p.head, p.body, [kept = p.copied](bool) {});
  }
  for (const auto& [line, frame] : answers) line->send(frame.view());
  if (!close.empty()) placement_.report_done(close, nullptr);
  for (task_record* t : submit) placement_.submit(t, true);
  for (task_record* t : release_tasks) release(t);
  for (array_core* a : drop) release(a);
  if (!ask.empty()) ask_others(std::move(ask));
}

void guest_actor::close_door() {
  std::unique_lock hold(lock_);
  if (left_ || std::exchange(closed_, true)) return;
  net::writer frame;
  frame.fixed(wire::kind::leaving);
  session_->send(frame.view());
}

bool guest_actor::is_released() const {
  std::lock_guard hold(lock_);
  return left_ || released_;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void guest_actor::leave() {
  std::unique_lock hold(lock_);
  if (std::exchange(left_, true)) return;
  for (auto& [id, g] : guests_) {
    if (!g->task) continue;
    if (claim(*g->task)) {
      g->task->error = cancelled_error(*g->task, "");
      fulfil(*g->task, board_);
    }
    g->stop.request_stop();
  }
  // What was to come never will; those that would have read it have just been cancelled.
  // But what a third node is sending goes on being written to its place.
  const auto is_written = [](const door& d) { return d.what_box.lent != 0 && d.placed; };
  for (auto& [t, d] : doors_)
    if (d->open && d->what == door::use::in && !is_written(*d)) close(*d);
  std::erase_if(coming_, [&](const auto& c) { return !is_written(*c.second); });
  std::erase_if(pushes_, [](const auto& p) { return !p.second.to && !p.second.writing; });
  drop_lends();
  while (!arrays_.empty()) drop(arrays_.begin());
  work_off(hold);
}

bool guest_actor::is_empty() const {
  std::lock_guard hold(lock_);
  return guests_.empty() && doors_.empty();
}

std::shared_ptr<guest_house> make_guest_house(engine& house, placement& p, wait_board& b, house_link& link,
                                              std::shared_ptr<net::session> s, find_line lines) {
  return std::make_shared<guest_actor>(house, p, b, link, std::move(s), std::move(lines));
}

}  // namespace troupe::detail
