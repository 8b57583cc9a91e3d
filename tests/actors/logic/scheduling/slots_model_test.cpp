// What this file is for: the protocol by which work finds threads, written down as a model and explored in every order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The model has placement's mail, turn and backlog, a group's queue, its threads and the bodies on them, and the book
// of slots itself (logic::slots). A step is what happens under one lock or by one atomic access; between steps any
// thread may go on. Time is not modelled: a nap may end at any moment, and which mail is stale is anybody's guess. What
// must hold in every order: as long as a task has not ended, somebody can take a step that changes something. A state
// in which nobody can is a lost wake-up. Each mistake that the code has had is planted once, to see that the model
// would have found it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/logic/scheduling/slots.hpp"

namespace {

using troupe::detail::task_record;
using troupe::logic::slots;
using thread_state = slots::thread_state;

enum class kind : signed char {
  plain,
  slotless,
  wide,    // two slots
  parent,  // waits for the task after it in the program, which it submits itself
  run,     // lends its slot while tasks are queued
};
struct program_task {
  kind what = kind::plain;
  int after = -1;        // starts when that one has ended
  bool child = false;    // submitted by its parent
  int until = -1;        // its body keeps its slot until that one has ended
  bool may_pass = true;  // it ends before the first in line begins
};
using program = std::vector<program_task>;

enum class mistake {
  none,
  slotless_looks_next,    // a thread without a slot reports as one that looks for work, and is trusted
  waiters_tell_nobody,    // a waiter reports as one that looks next, and leaves its slot without a word
  waits_are_not_told,     // placement counts bodies that wait as busy
  sleeps_without_a_look,  // also over work that was posted just before
  sits_idle_over_mail,    // slots gather in the line, and nobody sees to what may pass it
};

struct setting {
  std::string name;
  int slots = 1, spares = 2, room = 1;  // placement hands over so many slots' worth of tasks
  program tasks;
  bool others_active = false;  // a thread of another group is busy, and stops some time
  mistake planted = mistake::none;
};

enum class at : signed char {
  loop,
  find,
  find_turn,
  asleep_soon,
  park,
  look,
  look_idle,
  deep,
  nap,
  behind_napper,
  idle,
  body,
  aside_ask,
  aside,
  child_seen,
  wait_note,
  wait_turn,
  wait_check,
  wait_give,
  wait_wake,
  wait_turn_again,
  wait_block,
  wait_take,
  wait_granted,
  wait_end,
  report,
  report_post,
  report_turn,
  serve_waits,
  serve_drain,
  serve_hand,
  serve_wake,
  serve_leave,
  serve_check,
  after_report,
  submit,
  submit_look,
  gone,
};

struct thread {
  at pc = at::loop, back = at::loop;  // back: where a turn leads to
  int task = -1;
  int seat = -1, ticket = 0;
  int slots = 0;
  bool look_again = false;  // idle, and sees whether it may pass the line after a while
  bool look_next = false;   // the executor that the report names
  bool awake = false, granted = false, client = false;
  bool tell = false;          // somebody is to be told of what was handed over
  signed char next_task = 0;  // a client's
  std::vector<signed char> retired, outgoing;
  auto operator<=>(const thread&) const = default;
};

struct mail {
  signed char task;
  bool done;
  auto operator<=>(const mail&) const = default;
};

enum class stage : signed char { unborn, ordered, given, ran, ended };

struct state {
  slots book{0};
  std::vector<thread> threads;
  std::vector<mail> inbox;
  std::vector<signed char> queue, kept;
  std::vector<stage> tasks;
  int turn = -1, lock = -1;
  int active = 0, awake = 0;  // active: with those of other groups
  int waiting = 0, known_waiting = 0, taken = 0;
  int napper = -1;
  bool waits_changed = false, watch_wanted = false, others_active = false;
  auto operator<=>(const state&) const = default;
};

class model {
 public:
  explicit model(const setting& s) : set_(s) {
    for (std::size_t i = 0; i < s.tasks.size(); ++i) by_record_.push_back(&records_[i]);
  }

  state first() const {
    state s;
    s.book = slots(set_.spares, set_.slots);
    s.tasks.assign(set_.tasks.size(), stage::unborn);
    for (int i = 0; i < set_.slots; ++i) {
      thread t;
      t.seat = static_cast<int>(s.book.add(false));
      t.slots = 1;
      s.threads.push_back(t);
    }
    thread client;
    client.client = true;
    client.pc = at::submit;
    s.threads.push_back(client);
    s.others_active = set_.others_active;
    s.active = set_.others_active ? 1 : 0;
    return s;
  }
  bool is_over(const state& s) const {
    return std::ranges::all_of(s.tasks, [](stage t) { return t == stage::ended; });
  }

  // Calls f(next state) for every step that somebody can take.
  template <class F>
  void each_step(const state& s, F&& f) const {
    if (s.others_active) {
      state n = s;
      n.others_active = false;
      --n.active;
      f(std::move(n));
    }
    for (std::size_t i = 0; i < s.threads.size(); ++i) step(s, i, f);
  }

 private:
  int need(int task) const {
    const kind k = set_.tasks[static_cast<std::size_t>(task)].what;
    return k == kind::slotless ? 0 : k == kind::wide ? 2 : 1;
  }
  int task_of(const task_record* r) const { return static_cast<int>(r - records_.data()); }

  // ---- what the world looks like to a sleeper -----------------------------------------------------------------------
  static bool left_alone(const state& s) { return s.awake == 0 && !s.queue.empty(); }
  static bool work_in_sight(const state& s) { return !s.inbox.empty() || !s.queue.empty(); }

  // ---- parking ------------------------------------------------------------------------------------------------------
  // As parking::carry_out, and with the spares that are due.
  void carry_out(state& s) const {
    slots::effects& e = s.book.done();
    for (std::size_t i = 0; i < e.promoted.size(); ++i) {
      const slots::seat p = e.promoted[i];
      if (set_.planted == mistake::waiters_tell_nobody) continue;
      if (s.book.state_of(p) != thread_state::asleep || !work_in_sight(s)) continue;
      if (s.active == 0 || left_alone(s))
        s.book.call(p);
      else if (s.napper < 0)
        watch(s, static_cast<int>(p));
    }
    e.promoted.clear();
    for (const slots::ticket t : e.granted)
      for (thread& x : s.threads)
        if (x.ticket == static_cast<int>(t)) x.granted = true;
    e.granted.clear();
    e.roused.clear();  // whose thread finds itself awake
    for (int n = std::exchange(e.spares, 0); n > 0; --n) {
      thread t;
      t.seat = static_cast<int>(s.book.add(true));
      t.pc = at::park;
      s.threads.push_back(t);
    }
  }
  // That sleeper looks up, or the one that has slept longest.
  static void watch(state& s, int seat) {
    s.watch_wanted = true;
    for (thread& t : s.threads)
      if (t.seat == seat && (t.pc == at::deep || t.pc == at::behind_napper || t.pc == at::idle)) t.pc = at::look;
  }
  static void keep_watch(state& s) {
    if (s.napper >= 0) return;
    if (const auto passer = s.book.passer(); passer && s.book.asleep().empty())
      for (thread& t : s.threads) t.look_again = t.look_again || t.seat == static_cast<int>(*passer);
    if (s.book.asleep().empty()) return;
    watch(s, static_cast<int>(s.book.asleep().front()));
  }
  void wake(state& s, std::size_t n) const {
    for (; n != 0 && !s.book.asleep().empty(); --n) s.book.call(s.book.asleep().back());
    s.book.call_next(n);
    carry_out(s);
  }

  // ---- placement ----------------------------------------------------------------------------------------------------
  static bool has_mail(const state& s) { return !s.inbox.empty() || !s.kept.empty(); }
  // Takes the turn if there is reason to and it is free; goes on at `back` afterwards.
  static bool take_turn(state& s, thread& t, std::size_t i, bool looks_next, at back) {
    if (!has_mail(s) || s.turn >= 0) return false;
    s.turn = static_cast<int>(i);
    t.look_next = looks_next;
    t.back = back;
    t.pc = at::serve_waits;
    return true;
  }
  void make_ready(state& s, thread& t, signed char task) const {
    const auto id = static_cast<std::size_t>(task);
    s.tasks[id] = stage::given;
    t.outgoing.push_back(task);
    s.taken += need(task);
  }
  bool has_room(const state& s) const { return s.taken - s.known_waiting < set_.room; }
  bool is_free_to_start(const state& s, std::size_t id) const {
    const int after = set_.tasks[id].after;
    return after < 0 || s.tasks[static_cast<std::size_t>(after)] == stage::ended;
  }
  void place_task(state& s, thread& t, signed char task) const {
    if (need(task) == 0 || has_room(s))
      make_ready(s, t, task);
    else
      s.kept.push_back(task);
  }
  void retire(state& s, thread& t, signed char task) const {
    s.tasks[static_cast<std::size_t>(task)] = stage::ended;
    s.taken -= need(task);
    for (std::size_t next = 0; next < set_.tasks.size(); ++next)
      if (set_.tasks[next].after == task && s.tasks[next] == stage::ordered)
        place_task(s, t, static_cast<signed char>(next));
  }

  // ---- one thread ---------------------------------------------------------------------------------------------------
  static void be_awake(state& s, thread& t, bool now) {
    if (t.awake == now) return;
    t.awake = now;
    s.awake += now ? 1 : -1;
    s.active += now ? 1 : -1;
  }

  template <class F>
  void step(const state& before, std::size_t i, F&& f) const {
    // Under parking's lock nobody else is in parking.
    const auto is_parking = [](at pc) {
      return pc == at::park || pc == at::nap || pc == at::wait_give || pc == at::wait_wake || pc == at::wait_take ||
             pc == at::serve_hand || pc == at::serve_wake || pc == at::submit_look || pc == at::aside_ask;
    };
    if (before.lock >= 0 && before.lock != static_cast<int>(i) && is_parking(before.threads[i].pc)) return;
    state s = before;
    thread& t = s.threads[i];
    const auto go = [&](at pc) {
      s.threads[i].pc = pc;
      f(s);
    };
    switch (t.pc) {
      case at::loop:
        if (t.slots == 0) return go(at::asleep_soon);
        be_awake(s, t, true);
        if (s.book.line() != 0) {
          if (s.queue.empty()) return go(at::find_turn);
          const auto passes = [&](signed char q) { return set_.tasks[static_cast<std::size_t>(q)].may_pass; };
          if (const auto q = std::ranges::find_if(s.queue, passes); q != s.queue.end()) {
            t.task = *q;
            s.queue.erase(q);
            return go(at::body);
          }
          t.look_again = true;
          return go(at::asleep_soon);
        }
        [[fallthrough]];
      case at::find:
        if (s.queue.empty()) return go(at::find_turn);
        t.task = s.queue.front();
        s.queue.erase(s.queue.begin());
        return go(at::body);
      case at::find_turn:
        if (take_turn(s, t, i, true, at::loop)) return f(s);
        return go(at::asleep_soon);
      case at::asleep_soon:
        be_awake(s, t, false);
        return go(at::park);

      case at::park: {
        const int held = std::exchange(t.slots, 0);
        const auto seat = static_cast<slots::seat>(t.seat);
        s.book.arrive(seat, held);
        carry_out(s);  // may add threads: `t` is not used afterwards
        const thread_state p = s.book.state_of(seat);
        if (p == thread_state::awake) return arrive_awake(s, i, f);
        s.lock = static_cast<int>(i);
        return go(p == thread_state::idle ? at::look_idle : at::look);
      }
      case at::look: {  // asleep, and the lock is held; or woken to look again
        if (s.lock >= 0 && s.lock != static_cast<int>(i)) return;
        s.lock = -1;
        const auto seat = static_cast<slots::seat>(t.seat);
        const thread_state p = s.book.state_of(seat);
        if (p == thread_state::awake) return arrive_awake(s, i, f);
        if (p == thread_state::idle) return go(at::idle);
        const bool others = s.active != 0;
        if (set_.planted != mistake::sleeps_without_a_look && (others ? left_alone(s) : work_in_sight(s))) {
          s.book.call(seat);
          carry_out(s);
          return arrive_awake(s, i, f);
        }
        s.watch_wanted = false;
        if (!others) return go(at::deep);
        if (s.napper >= 0) return go(at::behind_napper);
        s.napper = t.seat;
        return go(at::nap);
      }
      case at::look_idle: {  // the lock is held
        s.lock = -1;
        const bool may_pass = s.book.passer() && set_.planted != mistake::sits_idle_over_mail;
        if (may_pass && work_in_sight(s)) s.threads[i].look_again = true;
        return go(at::idle);
      }
      case at::deep:
      case at::behind_napper:
      case at::idle: {
        const thread_state p = s.book.state_of(static_cast<slots::seat>(t.seat));
        if (p == thread_state::awake) return arrive_awake(s, i, f);
        if (t.pc == at::idle && t.look_again && s.book.pass(static_cast<slots::seat>(t.seat))) {
          carry_out(s);
          return arrive_awake(s, i, f);
        }
        if (t.pc == at::idle && s.book.dismiss(static_cast<slots::seat>(t.seat))) return go(at::gone);
        if (t.pc == at::idle) return;  // also if it has a slot by now: it sleeps on
        if (p == thread_state::idle) return go(at::idle);
        if (t.pc == at::behind_napper && s.napper < 0 && s.watch_wanted) return go(at::look);
        return;
      }
      case at::nap: {
        const auto seat = static_cast<slots::seat>(t.seat);
        const bool over = s.book.state_of(seat) != thread_state::asleep;
        // Nobody takes turns or comes to the queue for as long as that takes to see.
        const bool overdue = !s.queue.empty() || (has_mail(s) && s.turn < 0);
        s.napper = -1;
        if (!over && !overdue) return s.active == 0 ? go(at::look) : void();
        s.watch_wanted = true;
        if (!over) {
          s.book.call(seat);
          carry_out(s);
        }
        if (!s.book.asleep().empty()) watch(s, static_cast<int>(s.book.asleep().front()));
        if (s.book.state_of(seat) == thread_state::idle) return go(at::idle);
        return arrive_awake(s, i, f);
      }

      case at::body: {
        const program_task& p = set_.tasks[static_cast<std::size_t>(t.task)];
        if (p.what == kind::run && !s.queue.empty() && s.book.line() == 0) {
          state n = s;
          --n.awake;
          --n.active;
          n.threads[i].pc = at::aside_ask;
          f(std::move(n));
        }
        if (p.until >= 0 && s.tasks[static_cast<std::size_t>(p.until)] != stage::ended) return;
        if (p.what != kind::parent) {
          s.tasks[static_cast<std::size_t>(t.task)] = stage::ran;
          t.look_next = t.slots > 0 || set_.planted == mistake::slotless_looks_next;
          return go(at::report);
        }
        s.inbox.push_back({static_cast<signed char>(t.task + 1), false});
        return go(at::child_seen);
      }
      case at::aside_ask: {
        t.ticket = static_cast<int>(i) + 1;
        t.granted = s.book.stand_aside(static_cast<slots::ticket>(t.ticket));
        if (!t.granted) t.slots = 0;
        carry_out(s);
        return go(at::aside);
      }
      case at::aside:
        if (!t.granted) return;
        t.ticket = 0;
        t.granted = false;
        t.slots = 1;
        ++s.awake;
        ++s.active;
        return go(at::body);
      case at::child_seen:  // the submitting thread looks at the sleepers
        if (s.inbox.size() == 1) keep_watch(s);
        return go(at::wait_note);
      case at::wait_note:
        ++s.waiting;
        s.waits_changed = s.waits_changed || set_.planted != mistake::waits_are_not_told;
        return go(at::wait_turn);
      case at::wait_turn:
        if (take_turn(s, t, i, set_.planted == mistake::waiters_tell_nobody, at::wait_check)) return f(s);
        return go(at::wait_check);
      case at::wait_check:
        if (s.tasks[static_cast<std::size_t>(t.task + 1)] >= stage::ran) return go(at::wait_end);
        --s.awake;
        --s.active;
        return go(at::wait_give);
      case at::wait_give:
        s.book.give(std::exchange(t.slots, 0));
        carry_out(s);
        return go(set_.planted == mistake::waiters_tell_nobody ? at::wait_block : at::wait_wake);
      case at::wait_wake:
        if (!s.queue.empty()) wake(s, s.queue.size());
        return go(at::wait_turn_again);
      case at::wait_turn_again:
        if (take_turn(s, t, i, false, at::wait_block)) return f(s);
        return go(at::wait_block);
      case at::wait_block:
        if (s.tasks[static_cast<std::size_t>(t.task + 1)] < stage::ran) return;
        ++s.awake;
        ++s.active;
        return go(at::wait_take);
      case at::wait_take: {
        t.ticket = static_cast<int>(i) + 1;
        t.granted = false;
        const bool at_once = s.book.take(static_cast<slots::ticket>(t.ticket), 1);
        if (at_once) t.granted = true;
        carry_out(s);
        return go(at::wait_granted);
      }
      case at::wait_granted:
        if (!t.granted) return;
        t.ticket = 0;
        t.granted = false;
        t.slots = 1;
        return go(at::wait_end);
      case at::wait_end:
        --s.waiting;
        s.waits_changed = s.waits_changed || set_.planted != mistake::waits_are_not_told;
        s.tasks[static_cast<std::size_t>(t.task)] = stage::ran;
        t.look_next = true;
        return go(at::report);

      case at::report:
        if (s.turn < 0) {
          s.turn = static_cast<int>(i);
          t.retired.push_back(static_cast<signed char>(t.task));
          t.back = at::after_report;
          return go(at::serve_waits);
        }
        return go(at::report_post);
      case at::report_post:
        s.inbox.push_back({static_cast<signed char>(t.task), true});
        return go(at::report_turn);
      case at::report_turn:
        if (take_turn(s, t, i, t.look_next, at::after_report)) return f(s);
        return go(at::after_report);
      case at::after_report:
        t.task = -1;
        if (t.slots > 1) {
          t.slots = 1;
          s.book.give(1);
          carry_out(s);
          return go(at::find);
        }
        return go(t.slots == 0 ? at::park : at::loop);

      case at::serve_waits:
        if (s.waits_changed) {
          s.waits_changed = false;
          s.known_waiting = s.waiting;
        }
        [[fallthrough]];
      case at::serve_drain: {
        for (const signed char r : std::exchange(t.retired, {})) retire(s, t, r);
        for (const mail& m : std::exchange(s.inbox, {})) {
          const auto id = static_cast<std::size_t>(m.task);
          if (m.done) {
            retire(s, t, m.task);
          } else {
            s.tasks[id] = stage::ordered;
            if (is_free_to_start(s, id)) place_task(s, t, m.task);
          }
        }
        while (!s.kept.empty() && has_room(s)) {
          make_ready(s, t, s.kept.front());
          s.kept.erase(s.kept.begin());
        }
        return go(t.outgoing.empty() ? at::serve_leave : at::serve_hand);
      }
      case at::serve_hand: {  // run_tasks: each to where it belongs
        const std::vector<signed char> out = std::exchange(t.outgoing, {});
        int plain = 0;
        const bool caller = t.look_next;
        for (const signed char o : out) {
          if (need(o) == 1) {
            s.queue.push_back(o);
            ++plain;
          } else if (need(o) == 0) {
            s.book.add_slotless(*by_record_[static_cast<std::size_t>(o)]);
          } else {
            s.book.add_wide(*by_record_[static_cast<std::size_t>(o)], 2, 0);
          }
        }
        carry_out(s);
        if (plain == 0) return go(at::serve_leave);
        s.threads[i].tell = plain > 1 || !caller;
        return go(at::serve_wake);
      }
      case at::serve_wake: {
        // Small tasks: they are worth a wake-up if nobody is awake here. Else, or if that is uncertain, a watch is
        // kept.
        if (const auto passer = s.book.passer()) {
          (void)s.book.pass(*passer);
          carry_out(s);
        }
        const bool trusts = set_.planted == mistake::slotless_looks_next;
        if (s.awake == 0 && !(trusts && !t.tell))
          wake(s, 1);
        else if (t.tell)
          keep_watch(s);
        t.tell = false;
        return go(at::serve_leave);
      }
      case at::serve_leave:
        s.turn = -1;
        return go(at::serve_check);
      case at::serve_check:
        if ((!s.inbox.empty() || (!s.kept.empty() && s.waits_changed)) && s.turn < 0) {
          s.turn = static_cast<int>(i);
          return go(at::serve_waits);
        }
        return go(t.back);

      case at::submit: {
        while (static_cast<std::size_t>(t.next_task) < set_.tasks.size() &&
               set_.tasks[static_cast<std::size_t>(t.next_task)].child)
          ++t.next_task;
        if (static_cast<std::size_t>(t.next_task) == set_.tasks.size()) {
          if (take_turn(s, t, i, false, at::gone)) return f(s);
          return go(at::gone);
        }
        s.inbox.push_back({t.next_task++, false});
        return go(at::submit_look);
      }
      case at::submit_look:
        if (s.book.asleep().empty() && !(s.book.passer() && set_.planted != mistake::sits_idle_over_mail))
          return go(at::submit);
        if (s.active == 0) {
          if (take_turn(s, t, i, false, at::submit)) return f(s);
        } else if (s.inbox.size() == 1) {
          keep_watch(s);
        }
        return go(at::submit);
      case at::gone:
        return;
    }
  }

  // A thread arrives awake: it has been given something, or is to look for work.
  template <class F>
  void arrive_awake(state& s, std::size_t i, F&& f) const {
    const slots::duty d = s.book.take_duty(static_cast<slots::seat>(s.threads[i].seat));
    thread& t = s.threads[i];
    t.slots = d.slots;
    t.look_again = false;
    if (s.watch_wanted && !d.task && !s.book.asleep().empty()) watch(s, static_cast<int>(s.book.asleep().front()));
    if (!d.task) {
      if (d.at_once) be_awake(s, t, true);
      t.pc = d.at_once ? at::find : at::loop;
      return f(s);
    }
    s.threads[i].task = task_of(d.task);
    be_awake(s, s.threads[i], d.slots != 0);
    s.threads[i].pc = at::body;
    f(s);
  }

  const setting& set_;
  std::array<task_record, 8> records_;
  mutable std::vector<task_record*> by_record_;
};

// The book is left to the comparison: it follows from the rest in most states.
struct hash_of_state {
  std::size_t operator()(const state& s) const {
    std::size_t h = 1469598103934665603u;
    const auto add = [&](auto v) { h = (h ^ static_cast<std::size_t>(v)) * 1099511628211u; };
    const auto add_all = [&](const std::vector<signed char>& all) {
      add(all.size());
      for (const signed char v : all) add(v);
    };
    for (const thread& t : s.threads) {
      add(t.pc), add(t.back), add(t.task), add(t.slots), add(t.next_task);
      add(t.look_again * 16 + t.look_next * 8 + t.awake * 4 + t.granted * 2 + t.tell);
      add_all(t.retired), add_all(t.outgoing);
      if (t.seat >= 0) add(s.book.state_of(static_cast<slots::seat>(t.seat)));
    }
    for (const mail& m : s.inbox) add(m.task * 2 + m.done);
    add_all(s.queue), add_all(s.kept);
    for (const stage t : s.tasks) add(t);
    add(s.turn), add(s.lock), add(s.active), add(s.awake), add(s.waiting), add(s.known_waiting), add(s.taken),
        add(s.napper);
    add(s.waits_changed * 4 + s.watch_wanted * 2 + s.others_active);
    add(s.book.free()), add(s.book.line()), add(s.book.slotless());
    return h ^ (h >> 29);
  }
};

struct finding {
  std::size_t states = 0;
  bool stuck = false, ended = false;
  std::string where;
};

// A state with its hash, which a table asks for again and again.
struct seen_state {
  explicit seen_state(state s) : what(std::move(s)), hash(hash_of_state()(what)) {}
  bool operator==(const seen_state& other) const { return hash == other.hash && what == other.what; }
  state what;
  std::size_t hash;
};
struct known_hash {
  std::size_t operator()(const seen_state& s) const { return s.hash; }
};

finding explore(const setting& set) {
  const model m(set);
  std::unordered_set<seen_state, known_hash> seen;
  std::vector<const state*> to_do;
  const auto visit = [&](state s) {
    const auto [at, fresh] = seen.insert(seen_state(std::move(s)));
    if (fresh) to_do.push_back(&at->what);
  };
  visit(m.first());
  finding found;
  while (!to_do.empty()) {
    const state& s = *to_do.back();
    to_do.pop_back();
    ++found.states;
    bool any = false;
    m.each_step(s, [&](state next) {
      any |= next != s;
      visit(std::move(next));
    });
    if (m.is_over(s)) {
      found.ended = true;
    } else if (!any) {
      found.stuck = true;
      for (const thread& t : s.threads) found.where += " " + std::to_string(static_cast<int>(t.pc));
      found.where += "; queued " + std::to_string(s.queue.size()) + ", kept " + std::to_string(s.kept.size()) +
                     ", mail " + std::to_string(s.inbox.size()) + ", asleep " + std::to_string(s.book.asleep().size()) +
                     ", free " + std::to_string(s.book.free());
      return found;
    }
  }
  return found;
}

const program_task plain{}, slotless{kind::slotless}, wide{kind::wide}, parent{kind::parent},
    child{kind::plain, -1, true}, slotless_child{kind::slotless, -1, true};
const program_task long_plain{kind::plain, -1, false, -1, false};
program_task until(int i, kind k = kind::plain) { return {k, -1, false, i}; }
program_task after(int i, kind k = kind::plain) { return {k, i}; }

std::vector<setting> settings() {
  return {
      {"two plain tasks on one thread", 1, 2, 1, {plain, plain}},
      {"three plain tasks on two threads", 2, 2, 2, {plain, plain, plain}},
      {"a parent on one thread", 1, 2, 1, {parent, child}},
      {"a parent where no spare is allowed", 1, 0, 1, {parent, child}},
      {"a task without a slot where no spare is allowed, beside a plain one",
       1,
       0,
       2,
       {{kind::slotless, -1, false, 1}, plain}},
      {"a parent beside a plain task", 1, 2, 1, {parent, child, plain}},
      {"a task after one without a slot", 1, 2, 1, {slotless, after(0)}},
      {"a parent where an idle thread is", 1, 2, 1, {slotless, after(0, kind::parent), child}},
      {"a task without a slot after a plain one", 1, 2, 1, {plain, after(0, kind::slotless), plain}},
      {"a run that lends its slot", 1, 2, 2, {until(1, kind::run), long_plain}},
      {"a run that lends its slot to two", 1, 1, 3, {until(2, kind::run), long_plain, long_plain}},
      {"two slots at once beside plain tasks", 2, 2, 2, {plain, wide, plain}},
      {"a task that has to pass two slots at once", 2, 1, 4, {until(2), wide, plain}},
      {"tasks of which some may pass two slots at once", 2, 1, 4, {until(3), wide, long_plain, plain}},
      {"a parent while others are active", 1, 2, 1, {parent, child}, true},
      {"plain tasks while others are active", 2, 2, 1, {plain, plain, plain}, true},
      {"after one without a slot while others are active", 1, 2, 1, {slotless, after(0)}, true},
  };
}

// Millions of states.
std::vector<setting> large_settings() {
  return {
      {"a parent and two threads", 2, 2, 2, {parent, child}},
      {"a parent of a task without a slot", 1, 3, 1, {parent, slotless_child}},
      {"after one without a slot, two threads", 2, 2, 2, {slotless, after(0)}},
      {"two slots at once after one without", 2, 2, 2, {slotless, after(0, kind::wide)}},
      {"two parents where no spare is allowed", 1, 0, 4, {parent, child, parent, child}},
      {"two slots at once beside a parent", 2, 3, 2, {wide, parent, child}},
  };
}

void PrintTo(const setting& s, std::ostream* os) { *os << s.name; }

class work_finds_threads : public testing::TestWithParam<setting> {};

TEST_P(work_finds_threads, in_every_order) {
  const finding f = explore(GetParam());
  EXPECT_FALSE(f.stuck) << "nobody can go on:" << f.where;
  EXPECT_TRUE(f.ended);
  RecordProperty("states", static_cast<int>(f.states));
}

INSTANTIATE_TEST_SUITE_P(settings, work_finds_threads, testing::ValuesIn(settings()));

class slow_work_finds_threads : public work_finds_threads {};

TEST_P(slow_work_finds_threads, in_every_order) {
  const finding f = explore(GetParam());
  EXPECT_FALSE(f.stuck) << "nobody can go on:" << f.where;
  EXPECT_TRUE(f.ended);
}

INSTANTIATE_TEST_SUITE_P(settings, slow_work_finds_threads, testing::ValuesIn(large_settings()));

struct planted {
  mistake what;
  std::string in;  // the setting in which it shows
};

TEST(work_and_threads, miss_each_other_if_one_of_the_rules_is_broken) {
  const std::vector<setting> all = settings();
  for (const planted& p : {planted{mistake::slotless_looks_next, "a task after one without a slot"},
                           planted{mistake::waiters_tell_nobody, "a parent where an idle thread is"},
                           planted{mistake::waits_are_not_told, "a parent on one thread"},
                           planted{mistake::sleeps_without_a_look, "two plain tasks on one thread"},
                           planted{mistake::sits_idle_over_mail, "a task that has to pass two slots at once"}}) {
    setting s = *std::ranges::find(all, p.in, &setting::name);
    s.planted = p.what;
    EXPECT_TRUE(explore(s).stuck) << p.in;
  }
}

}  // namespace
