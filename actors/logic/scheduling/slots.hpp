// What this file is for: which threads hold a core group's slots, which tasks wait for some, and idle threads' work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A slot is the right to run bodies. Each slot is at any time in one of four states: held by a thread that is awake,
// held by a thread that sleeps, free, or lent to a helping thread from outside. A thread that has nothing to do is
// asleep (with a slot) or idle (without one). Work for idle threads is assigned here, to one of them by number, and not
// announced to all: so no thread is counted for two purposes, and no work is left without a thread.
//
// Bodies that go on after waiting, and tasks that need several slots, form a line. The line takes the slots of threads
// that sleep without waking them, and of others when they arrive. A holder of slots never waits for more, so the line
// moves. While the line waits for the rest, gathered slots are free, and a thread may pass: it gets one of them for a
// task that will have ended in time. The caller decides which task that is (see backfill).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

/// Pure: no lock, no thread. Owned by detail::parking, which calls it under its lock.
class slots {
 public:
  /// Number of a thread of the group.
  using seat = std::uint32_t;
  /// Caller's own number of a body that waits for slots.
  using ticket = std::uintptr_t;
  enum class thread_state : unsigned char { awake, asleep, idle };
  /// Order to a thread that comes back to work: run `task`, or, if it is null, look for work. The thread holds `slots`
  /// slots from then on. `at_once`: it looks for work first, though others want its slot.
  struct duty {
    detail::task_record* task = nullptr;
    int slots = 0;
    bool at_once = false;
    auto operator<=>(const duty&) const = default;
  };
  /// Consequences of a call, for the caller to carry out and clear.
  struct effects {
    std::vector<seat> roused;     // asleep or idle before; they have a duty now
    std::vector<seat> promoted;   // idle before and asleep now: check that they do not miss work
    std::vector<ticket> granted;  // these bodies go on
    int spares = 0;               // number of threads to create
    auto operator<=>(const effects&) const = default;
  };

  /// `spares_max`: threads created for bodies that wait, at most. Beyond it, they are created one at a time while no
  /// thread at all has a slot of the `total` (the created one is then the only one to do what all wait for), or while
  /// only restless bodies have slots (see `relieve`).
  explicit slots(int spares_max, int total = std::numeric_limits<int>::max())
      : spares_max_(spares_max), total_(total) {}

  // ---- threads ------------------------------------------------------------------------------------------------------
  /// Adds a thread that comes for the first time. `spare`: it was created because `effects::spares` asked for it.
  seat add(bool spare);
  /// Adds a thread that was dismissed again, as a spare.
  void add_again(seat);
  /// Takes in a thread that has nothing to do and holds so many slots, 1 at most; a thread with a slot leaves it to the
  /// line, if there is one. `state_of` returns the result: awake (see `take_duty`), asleep, or idle.
  void arrive(seat, int held);
  thread_state state_of(seat s) const { return threads_[s].state; }
  duty take_duty(seat);
  /// Removes a thread that is asleep or idle and returns the slots that it had.
  int leave(seat);
  /// Removes an idle spare beyond the limit that is not needed any more, and returns true: the thread is to end.
  bool dismiss(seat);
  /// Returns an idle thread that `dismiss` would remove; nothing: there is none.
  std::optional<seat> surplus() const;
  /// Frees the slots of a thread that was awake and has ended.
  void ended(int held);
  /// Frees slots of an awake thread: those that it holds beside its own, or all of them because its body waits.
  void give(int n);
  /// Takes n slots and returns true if they can be had at once. Else the body waits until its ticket is granted.
  bool take(ticket, int n);
  /// Lets a body go on that has waited long enough: it leaves the line, and the missing slots are taken from the
  /// threads that arrive next. The body counts as restless until `calm`: it may wait again at once.
  void take_missing(ticket, int n);
  /// Ends restlessness: the body waits again or has ended, and had so many slots; called before it gives them.
  void calm(int n) { restless_ -= n; }
  /// Finds a slot for work that waits when a restless body waits again. Bodies that only look whether something has
  /// ended must not keep others from beginning: unless other threads have all slots, an idle thread gets one, or a
  /// spare is created, whatever the limit. That slot is missing then, as with `take_missing`.
  void relieve();
  /// Returns true if an idle thread can look for work with the slot of a body that has one. Else a thread with a slot
  /// of its own is called, unless one comes, or a spare is created for the next time, within the limit.
  bool may_stand_aside();
  /// Has an idle thread do so: it leaves the slot to the line once it has run something. False: the body waits until
  /// its ticket is granted. True: it goes on, as there is no such thread any more.
  bool stand_aside(ticket);

  // ---- tasks --------------------------------------------------------------------------------------------------------
  /// Adds a task that needs a thread and no slot.
  void add_slotless(detail::task_record&);
  /// Adds a task that needs so many slots, at least two; it goes before tasks of a lower priority that came just before
  /// it.
  void add_wide(detail::task_record&, int n, int priority);
  /// Takes back tasks that have not been given to a thread.
  std::size_t take_unstarted(detail::task_record** room, std::size_t n,
                             const std::function<bool(const detail::task_record&)>& wanted);

  // ---- passing the line ---------------------------------------------------------------------------------------------
  struct request {
    int slots = 0;     ///< number that it needs
    int priority = 0;  ///< of a task
    const void* who = nullptr;
    bool is_task = false;
  };
  /// Returns the first in line; there must be one.
  request first() const;
  /// Returns an idle thread that could have a gathered slot.
  std::optional<seat> passer() const {
    if (line_.empty() || free_ == 0 || idle_.empty()) return {};
    return idle_.back();
  }
  /// Gives that thread a gathered slot, to look for a task with which it may pass. False: no slot has gathered.
  bool pass(seat);

  // ---- lending and calling ------------------------------------------------------------------------------------------
  /// Returns the threads that sleep, the one that went to sleep first before the others.
  std::span<const seat> asleep() const { return asleep_; }
  /// Wakes a sleeping thread to look for work.
  void call(seat);
  /// Returns the number of threads that were called and have not come yet: they will see the work there is by then.
  std::size_t called() const { return called_.size(); }
  /// Notes that so many more were called than sleep: threads that get a slot back, or arrive with one, are called
  /// instead. Only while slots are lent; else threads that are awake look by themselves.
  void call_next(std::size_t n);
  /// Lends a slot to a thread from outside: that of a sleeper (not `not_his` if there is another), or of a thread that
  /// was called and has not come, which is called again afterwards. False: there is none, or there is a line.
  bool lend(seat not_his);
  void give_back();
  /// Notes that a spare could not be created: the existing threads have to do until something else changes.
  void no_spare();
  /// Stops the creation of spares.
  void close() { closed_ = true; }

  /// Returns the number of free slots. Below 0: so many slots of bodies that go on are still held by others.
  int free() const { return free_; }
  /// Returns the number of spares that have been asked for and are not here yet.
  int coming() const { return coming_; }
  std::size_t line() const { return line_.size(); }
  /// Returns the number of slotless tasks for which there is no thread.
  std::size_t slotless() const { return slotless_.size(); }
  effects& done() { return effects_; }

  friend auto operator<=>(const slots&, const slots&) = default;

 private:
  struct thread {
    thread_state state = thread_state::awake;
    bool spare = false;
    duty next;
    auto operator<=>(const thread&) const = default;
  };
  struct line_entry {
    int slots;
    int priority;
    detail::task_record* task;  // null: a body that goes on
    ticket body;
    auto operator<=>(const line_entry&) const = default;
  };

  bool has_too_many_threads() const;
  void note_come();
  void rouse(seat, duty);
  seat take_idle();
  void promote();
  void reclaim(int needed);
  void serve_line();
  void serve_slotless(bool no_more_spares);
  void distribute(bool refused = false);

  int spares_max_, total_;
  std::vector<thread> threads_;
  std::vector<seat> asleep_, idle_;
  std::vector<seat> called_;  // awake, with a slot, and not here yet
  std::vector<line_entry> line_;
  std::vector<detail::task_record*> slotless_;
  int free_ = 0, lent_ = 0;
  int restless_ = 0;             // slots of bodies that went on without waiting for them
  bool relief_due_ = false;      // a spare was created for work that restless bodies block
  int spares_ = 0, coming_ = 0;  // created in all; of these, not here yet
  std::size_t calls_ = 0;
  bool closed_ = false;
  effects effects_;
};

}  // namespace troupe::logic
