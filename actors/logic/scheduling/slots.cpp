// What this file is for: handing slots and tasks to idle threads, and serving the line.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/slots.hpp"

#include <algorithm>
#include <utility>

namespace troupe::logic {

using detail::task_record;

// ---- threads --------------------------------------------------------------------------------------------------------

slots::seat slots::add(bool spare) {
  threads_.emplace_back().spare = spare;
  if (spare) note_come();
  return static_cast<seat>(threads_.size() - 1);
}

void slots::arrive(seat s, int held) {
  thread& self = threads_[s];
  if (held != 0 && free_ < 0) {
    free_ += held;
    held = 0;
  }
  if (held != 0 && !line_.empty()) {
    const line_entry& first = line_.front();
    if (first.task && free_ + held >= first.slots) {
      self.next = {first.task, first.slots};
      free_ -= first.slots - held;
      line_.erase(line_.begin());
      distribute();
      return;
    }
    free_ += held;
    held = 0;
  }
  if (held != 0 && !slotless_.empty() && coming_ == 0) {  // no spare may be created for these
    free_ += held;
    held = 0;
  }
  if (held != 0) {
    if (calls_ != 0) {
      --calls_;
      self.next = {nullptr, held};
      return;
    }
    self.state = thread_state::asleep;
    asleep_.push_back(s);
    return;
  }
  self.state = thread_state::idle;
  idle_.push_back(s);
  distribute();
  if (self.state == thread_state::idle && std::exchange(relief_due_, false)) relieve();
  // The slot was free: no thread has looked for work since it was given away.
  if (self.state == thread_state::asleep) {
    std::erase(effects_.promoted, s);
    call(s);
  }
  std::erase(effects_.roused, s);  // the thread is here already
}

void slots::add_again(seat s) {
  threads_[s].state = thread_state::awake;
  note_come();
}

void slots::note_come() {
  if (coming_ > 0) --coming_;
}

slots::duty slots::take_duty(seat s) {
  std::erase(called_, s);
  return std::exchange(threads_[s].next, {});
}

int slots::leave(seat s) {
  const thread_state state = std::exchange(threads_[s].state, thread_state::awake);
  std::erase(state == thread_state::asleep ? asleep_ : idle_, s);
  return state == thread_state::asleep ? 1 : 0;
}

bool slots::has_too_many_threads() const {
  return spares_ > spares_max_ && line_.empty() && slotless_.empty() && free_ == 0 && restless_ == 0;
}

std::optional<slots::seat> slots::surplus() const {
  if (!has_too_many_threads()) return {};
  const auto one = std::ranges::find_if(idle_, [&](seat s) { return threads_[s].spare; });
  return one == idle_.end() ? std::nullopt : std::optional(*one);
}

bool slots::dismiss(seat s) {
  if (!has_too_many_threads() || !threads_[s].spare || threads_[s].state != thread_state::idle) return false;
  (void)leave(s);
  --spares_;
  return true;
}

void slots::ended(int held) {
  free_ += held;
  distribute();
}

void slots::give(int n) {
  free_ += n;
  distribute();
}

bool slots::take(ticket body, int n) {
  if (line_.empty()) {
    reclaim(n);
    if (free_ >= n) {
      free_ -= n;
      distribute();  // a sleeper that lost its slot may have something else to do
      return true;
    }
  }
  line_.push_back({n, 0, nullptr, body});
  distribute();
  return false;
}

void slots::take_missing(ticket body, int n) {
  std::erase_if(line_, [&](const line_entry& c) { return !c.task && c.body == body; });
  reclaim(n);
  free_ -= n;
  restless_ += n;
  distribute();
}

void slots::relieve() {
  if (closed_ || !line_.empty() || free_ + restless_ <= 0) return;
  if (!idle_.empty()) {
    --free_;
    rouse(take_idle(), {nullptr, 1, true});
  } else if (asleep_.empty() && coming_ == 0) {
    ++coming_;
    ++spares_;
    ++effects_.spares;
    relief_due_ = true;
  }
}

bool slots::may_stand_aside() {
  if (closed_ || !line_.empty() || free_ < 0 || !called_.empty()) return false;
  if (!asleep_.empty()) {
    call(asleep_.back());
    return false;
  }
  if (!idle_.empty()) return true;
  if (coming_ == 0 && spares_ < spares_max_) {
    ++coming_;
    ++spares_;
    ++effects_.spares;
  }
  return false;
}

bool slots::stand_aside(ticket body) {
  if (!may_stand_aside()) return true;
  line_.push_back({1, 0, nullptr, body});
  rouse(take_idle(), {nullptr, 1, true});
  return false;
}

// ---- tasks ----------------------------------------------------------------------------------------------------------

void slots::add_slotless(task_record& t) {
  slotless_.push_back(&t);
  distribute();
}

void slots::add_wide(task_record& t, int n, int priority) {
  auto at = line_.end();
  while (at != line_.begin() && std::prev(at)->task && std::prev(at)->priority < priority) --at;
  line_.insert(at, {n, priority, &t, 0});
  distribute();
}

std::size_t slots::take_unstarted(task_record** room, std::size_t n,
                                  const std::function<bool(const task_record&)>& wanted) {
  std::size_t got = 0;
  const auto take = [&](task_record* t) {
    if (!t || got == n || !wanted(*t)) return false;
    room[got++] = t;
    return true;
  };
  std::erase_if(slotless_, take);
  std::erase_if(line_, [&](const line_entry& c) { return take(c.task); });
  if (got != 0) distribute();
  return got;
}

// ---- passing the line -----------------------------------------------------------------------------------------------

slots::request slots::first() const {
  const line_entry& c = line_.front();
  return {c.slots, c.priority, c.task ? static_cast<const void*>(c.task) : reinterpret_cast<const void*>(c.body),
          c.task != nullptr};
}

bool slots::pass(seat s) {
  if (line_.empty() || free_ == 0 || threads_[s].state != thread_state::idle) return false;
  std::erase(idle_, s);
  --free_;
  rouse(s, {nullptr, 1});
  return true;
}

// ---- lending and calling --------------------------------------------------------------------------------------------

void slots::call(seat s) {
  std::erase(asleep_, s);
  rouse(s, {nullptr, 1});
}

void slots::call_next(std::size_t n) { calls_ = std::min(calls_ + n, static_cast<std::size_t>(lent_)); }

bool slots::lend(seat not_his) {
  std::vector<seat>& from = asleep_.empty() ? called_ : asleep_;
  if (from.empty() || !line_.empty() || free_ < 0)
    return false;  // a thread whose slot has gathered must look whether a task may pass
  const auto one = from.begin() + (from.front() == not_his && from.size() > 1 ? 1 : 0);
  threads_[*one].state = thread_state::idle;
  threads_[*one].next = {};
  idle_.push_back(*one);
  ++lent_;
  if (&from == &called_) call_next(1);
  from.erase(one);
  if (!slotless_.empty() || free_ != 0) distribute();  // the sleeper may have something else to do
  return true;
}

void slots::give_back() {
  --lent_;
  if (free_ == 0 && calls_ == 0 && line_.empty() && slotless_.empty() && !idle_.empty()) {  // nothing waits for it
    promote();
    return;
  }
  ++free_;
  distribute();
  while (calls_ > static_cast<std::size_t>(lent_) && !asleep_.empty()) {
    --calls_;
    call(asleep_.back());
  }
  calls_ = std::min(calls_, static_cast<std::size_t>(lent_));
}

void slots::no_spare() {
  --coming_;
  --spares_;
  relief_due_ = false;
  distribute(true);
}

// ---- private functions ----------------------------------------------------------------------------------------------

void slots::rouse(seat s, duty d) {
  threads_[s].state = thread_state::awake;
  threads_[s].next = d;
  if (!d.task) called_.push_back(s);
  effects_.roused.push_back(s);
}

slots::seat slots::take_idle() {
  const seat s = idle_.back();
  idle_.pop_back();
  return s;
}

// Gives an idle thread a slot: it is asleep from now on.
void slots::promote() {
  const seat s = take_idle();
  threads_[s].state = thread_state::asleep;
  asleep_.push_back(s);
  effects_.promoted.push_back(s);
}

// Takes slots of sleepers, which are idle from then on, until so many are free.
void slots::reclaim(int needed) {
  while (free_ < needed && !asleep_.empty()) {
    const seat s = asleep_.back();
    asleep_.pop_back();
    threads_[s].state = thread_state::idle;
    idle_.push_back(s);
    ++free_;
  }
}

void slots::serve_line() {
  while (!line_.empty()) {
    const line_entry first = line_.front();
    reclaim(first.slots);
    if (first.task && idle_.empty()) reclaim(free_ + 1);  // a task needs a thread, too
    if (free_ < first.slots || (first.task && idle_.empty())) return;
    free_ -= first.slots;
    line_.erase(line_.begin());
    if (first.task)
      rouse(take_idle(), {first.task, first.slots});
    else
      effects_.granted.push_back(first.body);
  }
}

void slots::serve_slotless(bool no_more_spares) {
  std::size_t given = 0;
  while (given < slotless_.size()) {
    if (idle_.empty() && no_more_spares && coming_ == 0) reclaim(free_ + 1);  // no other thread comes
    if (idle_.empty()) break;
    rouse(take_idle(), {slotless_[given++], 0});
  }
  slotless_.erase(slotless_.begin(), slotless_.begin() + static_cast<std::ptrdiff_t>(given));
}

// Distributes free slots and idle threads; called after anything that frees a slot, makes a thread idle, or adds work.
void slots::distribute(bool refused) {
  refused = refused || closed_;
  const bool no_more_spares = refused || spares_ >= spares_max_;
  if (!slotless_.empty()) serve_slotless(no_more_spares);
  if (!line_.empty()) serve_line();
  if (!slotless_.empty()) serve_slotless(no_more_spares);  // the line may have made threads idle
  if (line_.empty()) {
    for (; free_ > 0 && !idle_.empty(); --free_) promote();
  }
  if (refused) return;
  // Spares serve slotless tasks, the first in line, or a task that may pass it.
  const bool line_lacks_thread = !line_.empty() && free_ > 0 && idle_.empty();
  const int due = static_cast<int>(slotless_.size()) + (line_lacks_thread ? 1 : 0) + (line_.empty() ? free_ : 0);
  const bool nobody = free_ >= total_ && idle_.empty() && coming_ == 0;
  const int more = std::min(due - coming_, std::max(spares_max_ - spares_, nobody ? 1 : 0));
  if (more <= 0) return;
  coming_ += more;
  spares_ += more;
  effects_.spares += more;
}

}  // namespace troupe::logic
