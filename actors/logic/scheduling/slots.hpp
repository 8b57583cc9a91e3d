// What this file is for: who holds the slots of a core group, who waits for some, and which idle thread is given what.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A slot is the right to run bodies. Each slot is at any time in one of four hands: a thread that is awake, a thread that
// sleeps, nobody (free), or a helping thread from outside (lent). A thread that has nothing to do is asleep (with a slot)
// or idle (without one). Work for idle threads is assigned here, to one of them by number, and not announced to all: so
// none can be counted for two purposes, and nothing is left for which nobody comes.
//
// Bodies that go on after waiting, and tasks that need several slots, form a line. The line takes the slots of threads
// that sleep without waking them, and of others as they come by. Who holds slots never waits for more, so the line moves.
// While it waits for the rest, slots that have gathered are nobody's, and a thread may pass: it has one of them for a task
// that will have ended in time. Which one that is, is for others to say (see backfill).
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
  /// A thread of the group, by its number.
  using seat = std::uint32_t;
  /// A body that waits for slots; the caller's own number.
  using ticket = std::uintptr_t;
  enum class place : unsigned char { awake, asleep, idle };
  /// What a thread that comes back to work is to do: run `task`, or, if there is none, look for work. It holds `slots` of
  /// them from then on. `at_once`: it looks for work first, though others want its slot.
  struct duty {
    detail::task_record* task = nullptr;
    int slots = 0;
    bool at_once = false;
    auto operator<=>(const duty&) const = default;
  };
  /// What follows from a call, for the caller to carry out and clear.
  struct effects {
    std::vector<seat> roused;     // they were asleep or idle and have a duty
    std::vector<seat> promoted;   // they were idle and are asleep now: somebody has to see that they sleep over no work
    std::vector<ticket> granted;  // these bodies go on
    int spares = 0;               // so many threads are to be made
    auto operator<=>(const effects&) const = default;
  };

  /// `spares_max`: threads made for bodies that wait, at most; beyond, one at a time while nobody at all has a slot of the
  /// `total`, who would be the only one to do what all wait for, or only restless bodies have (see `relieve`).
  explicit slots(int spares_max, int total = std::numeric_limits<int>::max())
      : spares_max_(spares_max), total_(total) {}

  // ---- threads ------------------------------------------------------------------------------------------------------
  /// A thread that comes for the first time. `spare`: it was made because `effects::spares` said so.
  seat add(bool spare);
  /// One that was dismissed comes again, as a spare.
  void add_again(seat);
  /// The thread has nothing to do and holds so many slots, 1 at most; with one it leaves it to the line, if there is one.
  /// `place_of` says what has become of it: awake (see `take_duty`), asleep, or idle.
  void arrive(seat, int held);
  place place_of(seat s) const { return threads_[s].at; }
  duty take_duty(seat);
  /// A thread that is not awake ends, or is awake and has ended with so many slots.
  int leave(seat);
  /// An idle one that was made beyond the limit, and is not needed any more: it leaves, and is to end.
  bool dismiss(seat);
  void ended(int held);
  /// The thread is awake and gives away slots that it holds beside its own, or all of them because its body waits.
  void give(int n);
  /// Some are to be had at once: true. Else the body waits until its ticket is granted.
  bool take(ticket, int n);
  /// The body has waited long enough for them: it goes on, and the slots that are missing are those of who comes next. It
  /// counts as restless until `calm`: such a body may wait again at once.
  void take_missing(ticket, int n);
  /// A restless body waits again or has ended, and had so many slots; called before it gives them.
  void calm(int n) { restless_ -= n; }
  /// A restless body waits again, and there is work that needs a slot. Bodies that only look whether something has ended
  /// keep nobody from beginning: unless others have all slots, an idle thread gets one, or a spare is made, whatever the
  /// limit. It is missing then, as with `take_missing`.
  void relieve();

  // ---- tasks --------------------------------------------------------------------------------------------------------
  /// Needs a thread and no slot.
  void add_slotless(detail::task_record&);
  /// Needs so many slots, at least two; stands before tasks of a lower priority that came just before it.
  void add_wide(detail::task_record&, int n, int priority);
  /// Takes back those that no thread has been given.
  std::size_t take_unstarted(detail::task_record** room, std::size_t n,
                             const std::function<bool(const detail::task_record&)>& wanted);

  // ---- passing the line ---------------------------------------------------------------------------------------------
  struct claim {
    int slots = 0;     ///< that it needs
    int priority = 0;  ///< of a task
    const void* who = nullptr;
    bool is_task = false;
  };
  /// Who is first in line, where there is a line.
  claim first() const;
  /// An idle thread that could have a slot which has gathered.
  std::optional<seat> passer() const {
    if (line_.empty() || free_ == 0 || idle_.empty()) return {};
    return idle_.back();
  }
  /// That one is to look whether there is something for which it may pass. False: no slot has gathered.
  bool pass(seat);

  // ---- others -------------------------------------------------------------------------------------------------------
  /// Threads that sleep, who went to sleep first before the others.
  std::span<const seat> asleep() const { return asleep_; }
  /// One that sleeps is to look for work.
  void call(seat);
  /// Of those that were called, so many have not come yet: they will see what there is by then.
  std::size_t called() const { return called_.size(); }
  /// So many more were called than sleep: whoever gets a slot back, or comes to sleep, is called instead. Only while slots
  /// are lent; else who is awake looks by itself.
  void call_next(std::size_t n);
  /// A thread from outside uses the slot of a sleeper, not this one's if there is another, or of one that was called and has
  /// not come, which is called again afterwards. False: there is none, or somebody is in line.
  bool lend(seat not_his);
  void give_back();
  /// A spare could not be made: who is there has to do until something else changes.
  void no_spare();
  /// No spares are made any more.
  void close() { closed_ = true; }

  /// Below 0: so many bodies go on with slots that others still have.
  int free() const { return free_; }
  /// Spares that have been asked for and are not here yet.
  int coming() const { return coming_; }
  std::size_t line() const { return line_.size(); }
  /// Nobody is there who could take these on.
  std::size_t slotless() const { return slotless_.size(); }
  effects& done() { return effects_; }

  friend auto operator<=>(const slots&, const slots&) = default;

 private:
  struct thread {
    place at = place::awake;
    bool spare = false;
    duty next;
    auto operator<=>(const thread&) const = default;
  };
  struct claimant {
    int slots;
    int priority;
    detail::task_record* task;  // null: a body that goes on
    ticket body;
    auto operator<=>(const claimant&) const = default;
  };

  void note_come();
  void rouse(seat, duty);
  seat take_idle();
  void promote();
  void reclaim(int needed);
  void serve_line();
  void serve_slotless(bool no_more_spares);
  void settle(bool refused = false);

  int spares_max_, total_;
  std::vector<thread> threads_;
  std::vector<seat> asleep_, idle_;
  std::vector<seat> called_;  // awake, with a slot, and not here yet
  std::vector<claimant> line_;
  std::vector<detail::task_record*> slotless_;
  int free_ = 0, lent_ = 0;
  int restless_ = 0;         // slots of bodies that went on without waiting for them
  bool relief_due_ = false;  // a spare was made for work that those keep from beginning
  int spares_ = 0, coming_ = 0;  // made in all; of these, not here yet
  std::size_t calls_ = 0;
  bool closed_ = false;
  effects effects_;
};

}  // namespace troupe::logic
