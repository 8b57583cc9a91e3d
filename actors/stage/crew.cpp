// What this file is for: runners: which strand is next, when one more is wanted, when the stream has ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/stage/crew.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/this_task.hpp>

#include "actors/actor.hpp"

namespace troupe::detail::stage {

namespace ts = troupe::stream;
using streams::ran;
using streams::strand;

namespace {

// A runner ends after this time, so that the worker's other tasks get their turn, and goes on behind them.
constexpr std::int64_t runner_ns = 1'000'000;
// A strand makes room for others after this time.
constexpr std::int64_t strand_ns = 200'000;
// Runners beyond one for each worker, at most.
constexpr int extra_max = 256;
// How often the watch looks.
constexpr std::chrono::milliseconds watch_least{1}, watch_most{8};

// The stream whose strand this thread runs.
thread_local const crew* runs_here = nullptr;

}  // namespace

crew::crew(std::shared_ptr<streams::plan> p, ts::start_options o, int runners_max, surroundings around)
    : plan_(std::move(p)), options_(std::move(o)), runners_max_(std::max(1, runners_max)), around_(std::move(around)) {
  line_.reserve(plan_->strands.size());
  at_work_.reserve(plan_->strands.size());
  spans_.open(around_.trace, around_.trace_lane, options_.name, *plan_);
}

crew::~crew() = default;

void crew::begin() {
  for (const auto& s : plan_->strands) s->home = this;
  {
    std::lock_guard hold(lock_);
    for (const auto& s : plan_->strands) {
      s->at.store(strand::phase::ready);
      stand_in_line(*s);
    }
    ++runners_;
    spawned_ns_ = streams::now_ns();
  }
  add_runner(runner_is::added);
  if (options_.stop.stop_possible()) stop_.emplace(options_.stop, cancel_it{this});
}

// ---- the line -------------------------------------------------------------------------------------------------------

// The line is sorted: strands farthest from the sources stand last, where the next one is taken.
void crew::stand_in_line(strand& s) {
  const auto place = std::lower_bound(line_.begin(), line_.end(), &s,
                                      [](const strand* a, const strand* b) { return a->depth < b->depth; });
  line_.insert(place, &s);
}

// One runner at least, and one more where it pays.
bool crew::wants_runner() {
  if (is_over() || pauses_ != 0 || line_.empty() || runners_ >= runners_max_) return false;
  if (runners_ == 0) return true;
  if (spawned_ns_ != 0) return false;  // one is on its way
  double soonest = std::numeric_limits<double>::max(), waiting = 0;
  // A strand that has worked longer than its items usually take, or was never timed, may take as long again.
  const std::int64_t now = streams::now_ns();
  for (const run& r : at_work_) {
    const double each = r.of->item_ns();
    const auto so_far = static_cast<double>(now - r.since_ns);
    if (each != 0) soonest = std::min(soonest, so_far > strand_ns + each ? so_far : each);
  }
  if (at_work_.empty()) soonest = 0;
  for (const strand* s : line_) waiting += s->item_ns() == 0 ? logic::hands::unknown_ns : s->waiting_ns();
  return hands_.wants_more(soonest, waiting);
}

void crew::ready(strand& s) noexcept {
  using phase = strand::phase;
  phase now = s.at.load(std::memory_order_relaxed);
  for (;;) {
    if (now == phase::ready || now == phase::runs_again || now == phase::ended) {
      // The change of the phase orders this thread before the one that runs the strand next, which sees what was done.
      if (s.at.compare_exchange_weak(now, now, std::memory_order_acq_rel)) return;
    } else if (s.at.compare_exchange_weak(now, now == phase::idle ? phase::ready : phase::runs_again,
                                          std::memory_order_acq_rel)) {
      break;
    }
  }
  if (now != phase::idle) return;
  bool more_hands = false;
  {
    std::lock_guard hold(lock_);
    stand_in_line(s);
    if (!wants_runner()) {
      if (!needs_watch() || std::exchange(is_watched_, true)) return;
    } else {
      ++runners_;
      spawned_ns_ = streams::now_ns();
      more_hands = true;
    }
  }
  if (more_hands)
    add_runner(runner_is::added);
  else
    watch(watch_least);
}

// ---- the watch ------------------------------------------------------------------------------------------------------

// A function may take longer than its calls before, while a strand waits in line and workers have nothing to do.
// Nothing happens then that would be a reason to look, so a timer does while that may be: seldom where all is well.
bool crew::needs_watch() const {
  return !is_over() && pauses_ == 0 && !line_.empty() && runners_ < runners_max_ + extra_max && !at_work_.empty();
}

void crew::watch(std::chrono::nanoseconds after) noexcept {
  try {
    call(streams::now() + after, [of = weak_from_this(), by = holders_, after] {
      const holders::pass here(by);
      if (const std::shared_ptr<crew> me = of.lock()) me->look(after);
    });
  } catch (...) {
    fail(std::current_exception());
  }
}

void crew::look(std::chrono::nanoseconds after) noexcept {
  bool more_hands = false;
  {
    std::lock_guard hold(lock_);
    if (!needs_watch()) {
      is_watched_ = false;
      return;
    }
    const std::int64_t now = streams::now_ns();
    // A runner is added where all runners are at work, each for long.
    more_hands =
        spawned_ns_ == 0 && runners_ == static_cast<int>(at_work_.size()) &&
        std::all_of(at_work_.begin(), at_work_.end(), [&](const run& r) { return now - r.since_ns > 2 * strand_ns; });
    if (more_hands) {
      // Beyond the number of workers it waits for one that a function has given away (yield_core).
      is_extra_ = runners_ >= runners_max_;
      ++runners_;
      spawned_ns_ = now;
    }
  }
  if (more_hands) add_runner(runner_is::added);
  watch(more_hands ? watch_least : std::min<std::chrono::nanoseconds>(2 * after, watch_most));
}

// Spawns a runner that has been counted.
void crew::add_runner(runner_is which) noexcept {
  try {
    around_.spawn(shared_from_this(), which);
  } catch (...) {
    lost(std::current_exception());
  }
}

void crew::lost(const std::exception_ptr& why) noexcept {
  {
    std::lock_guard hold(lock_);
    --runners_;
    spawned_ns_ = 0;
  }
  end(ts::state::failed, why);
}

void crew::work(runner_is which) {
  const crew* const outer = std::exchange(runs_here, this);
  bool again = false;
  std::int64_t now = streams::now_ns();
  const std::int64_t over = now + runner_ns;
  std::unique_lock hold(lock_);
  if (which == runner_is::added) {
    if (!std::exchange(is_extra_, false)) hands_.note_start(static_cast<double>(now - spawned_ns_));
    spawned_ns_ = 0;
  }
  while (!is_over() && pauses_ == 0 && !line_.empty()) {
    if (now >= over) {
      // One that was added for a function that had given its worker away is not needed any more where others stand by.
      again = runners_ <= runners_max_ || runners_ == static_cast<int>(at_work_.size()) + 1;
      break;
    }
    strand& s = *line_.back();
    line_.pop_back();
    s.at.exchange(strand::phase::runs, std::memory_order_acq_rel);
    at_work_.push_back({&s, now});
    ++running_;
    const bool more_hands = wants_runner();
    if (more_hands) {
      ++runners_;
      spawned_ns_ = now;
    }
    const bool begin_watch = needs_watch() && !std::exchange(is_watched_, true);
    hold.unlock();
    if (more_hands) add_runner(runner_is::added);
    if (begin_watch) watch(watch_least);
    ran r = ran::waits;
    const std::uint64_t begun = around_.trace ? ticks() : 0;
    try {
      r = s.run(now + strand_ns);
    } catch (const std::bad_alloc&) {
      no_memory();
    } catch (...) {
      fail(std::current_exception());
    }
    now = streams::now_ns();
    const std::uint64_t ended = around_.trace ? ticks() : 0;
    hold.lock();
    if (around_.trace) spans_.add(s, begun, ended);
    std::erase_if(at_work_, [&](const run& x) { return x.of == &s; });
    --running_;
    settle(s, r);
  }
  if (!again) --runners_;
  if (is_done()) spans_.flush();
  if (running_ == 0 && (pauses_ != 0 || is_over())) changed_.notify_all();
  hold.unlock();
  runs_here = outer;
  if (again) add_runner(runner_is::resumed);
}

void crew::settle(strand& s, ran r) {
  using phase = strand::phase;
  ++runs_;
  if (askers_ != 0) changed_.notify_all();
  if (r == ran::ended) {
    s.at.store(phase::ended);
    forget_descriptor(s);
    if (++ended_ == plan_->strands.size() && !is_over()) {
      state_ = ts::state::ended;
      note_end();
    }
    return;
  }
  phase now = phase::runs;
  if (r == ran::waits && s.at.compare_exchange_strong(now, phase::idle, std::memory_order_acq_rel)) return;
  s.at.exchange(phase::ready, std::memory_order_acq_rel);
  stand_in_line(s);
}

// ---- times and descriptors ------------------------------------------------------------------------------------------

net::waits& crew::waits_of_process() {
  std::lock_guard hold(timers_lock_);
  if (!waits_) waits_ = net::waits::shared();
  return *waits_;
}

void crew::call(clock::time_point t, std::function<void()> f) {
  if (around_.at)
    around_.at(t, std::move(f));
  else
    waits_of_process().at(t, std::move(f));
}

void crew::ready_at(strand& s, clock::time_point t) {
  const std::int64_t wanted = std::max<std::int64_t>(1, t.time_since_epoch().count());
  std::int64_t set = s.alarm_ns.load(std::memory_order_acquire);
  do
    if (set != 0 && set <= wanted) return;
  while (!s.alarm_ns.compare_exchange_weak(set, wanted, std::memory_order_acq_rel));
  call(t, [of = weak_from_this(), by = holders_, at = &s, wanted] {
    const holders::pass here(by);
    const std::shared_ptr<crew> me = of.lock();
    if (!me) return;
    std::int64_t mine = wanted;
    if (at->alarm_ns.compare_exchange_strong(mine, 0, std::memory_order_acq_rel)) me->ready(*at);
  });
}

void crew::ready_when(strand& s, int descriptor, bool writable) {
  auto w = waits_of_process().when(descriptor, writable, ready_call(s));
  std::lock_guard hold(timers_lock_);
  watches_[&s] = std::move(w);
}

std::function<void()> crew::ready_call(strand& s) {
  return [of = weak_from_this(), by = holders_, at = &s] {
    const holders::pass here(by);
    const std::shared_ptr<crew> me = of.lock();
    if (!me) return;
    at->wish_granted.store(true, std::memory_order_release);
    me->ready(*at);
  };
}

void crew::call_on_worker(std::function<void()> f) { around_.after({}, std::move(f)); }

void crew::ready_after(strand& s, std::span<const future<void>> tasks) {
  // Keeps the stream, whose items the tasks use; lets go of it before the pass, so that who waits finds it gone.
  around_.after(tasks,
                [by = std::make_shared<holders::pass>(holders_), me = shared_from_this(), at = &s] { me->ready(*at); });
}

void crew::forget_descriptor(const strand& s) {
  std::lock_guard hold(timers_lock_);
  watches_.erase(&s);
}

// ---- ends -----------------------------------------------------------------------------------------------------------

// Under the lock: nothing runs any more that has not begun, and nobody gets in.
void crew::note_end() {
  interrupted_.store(true);
  if (running_ == 0) spans_.flush();
  ended_at_ = streams::now();
  changed_.notify_all();
  // Copies of descriptors would keep connections open that their owners close.
  std::lock_guard hold(timers_lock_);
  watches_.clear();
}

void crew::end(ts::state how, std::exception_ptr why) noexcept {
  if (!birth_.is_here()) return;  // in a child, locks may be held by threads that it does not have
  {
    std::lock_guard hold(lock_);
    if (is_over()) return;
    state_ = how;
    error_ = std::move(why);
    note_end();
  }
  over_.request_stop();
  for (const auto& n : plan_->nodes) {
    n->shut();
    n->stop_tasks();
  }
}

void crew::stop() noexcept {
  try {
    end(ts::state::failed, std::make_exception_ptr(error(errc::runtime_stopped,
                                                         "stream '" + options_.name + "': the runtime was shut down")));
  } catch (...) {
    end(ts::state::failed, std::current_exception());
  }
}

void crew::no_memory() noexcept {
  try {
    fail(std::make_exception_ptr(
        error(errc::out_of_memory, "stream '" + options_.name + "': there is no memory for its items")));
  } catch (...) {
    fail(std::current_exception());
  }
}

void crew::fail(std::exception_ptr why) noexcept { end(ts::state::failed, std::move(why)); }

void crew::fail(const char* stage, std::uint64_t item, int attempts, std::exception_ptr why) noexcept {
  try {
    std::string text = "stream '" + options_.name + "': stage '" + stage + "' failed on item " + std::to_string(item);
    if (attempts > 1) text += " in " + std::to_string(attempts) + " attempts";
    text += ": " + text_of(why);
    fail(std::make_exception_ptr(ts::stage_failed(text, stage, item, attempts, why)));
  } catch (...) {
    fail(std::current_exception());
  }
}

bool crew::bury(const ts::letter& l) noexcept {
  if (!options_.on_dead_letter) return true;
  try {
    options_.on_dead_letter(l);
    return true;
  } catch (...) {
    fail(l.stage.c_str(), l.number, l.attempts, std::current_exception());  // of the handler
    return false;
  }
}

void crew::drain() noexcept {
  draining_.store(true, std::memory_order_release);
  {
    std::lock_guard hold(lock_);
    if (is_over()) return;
    state_ = ts::state::drains;
  }
  for (const auto& n : plan_->nodes) n->shut();
  for (const auto& s : plan_->strands) ready(*s);
}

bool crew::wait_until(clock::time_point deadline) {
  check_wait("");
  std::optional<this_task::core_yielded> away;
  if (this_task::inside()) away.emplace();
  std::unique_lock hold(lock_);
  const auto done = [this] { return is_done(); };
  if (deadline != clock::time_point::max()) return changed_.wait_until(hold, deadline, done);
  changed_.wait(hold, done);
  return true;
}

std::uint64_t crew::begin_barrier() {
  std::lock_guard hold(barriers_lock_);
  for (const auto& n : plan_->nodes) n->begin_barrier(barriers_ + 1);
  return ++barriers_;
}

// Where a sink has ended, nothing that was before the barrier is left before it.
bool crew::has_passed(std::uint64_t barrier) const {
  return std::all_of(plan_->nodes.begin(), plan_->nodes.end(), [&](const auto& n) {
    return n->barrier_passed() >= barrier || std::all_of(n->strands.begin(), n->strands.end(), [](const strand* s) {
             return s->at.load() == strand::phase::ended;
           });
  });
}

void crew::barrier_came() noexcept {
  std::lock_guard hold(lock_);
  if (askers_ != 0) changed_.notify_all();
}

bool crew::barrier(clock::time_point deadline) {
  check_wait("");
  const std::uint64_t number = begin_barrier();
  std::optional<this_task::core_yielded> away;
  if (this_task::inside()) away.emplace();
  std::unique_lock hold(lock_);
  ++askers_;
  const auto passed = [&] { return is_over() || has_passed(number); };
  if (deadline != clock::time_point::max())
    changed_.wait_until(hold, deadline, passed);
  else
    changed_.wait(hold, passed);
  --askers_;
  return has_passed(number);
}

void crew::wait_left(clock::time_point deadline) {
  std::optional<this_task::core_yielded> away;
  if (this_task::inside()) away.emplace();
  holders_->wait(deadline);
}

void crew::rethrow() {
  std::exception_ptr why;
  ts::state how;
  {
    std::lock_guard hold(lock_);
    why = error_;
    how = state_;
  }
  if (why) std::rethrow_exception(why);
  if (how == ts::state::cancelled) throw error(errc::cancelled, "stream '" + options_.name + "' was cancelled");
}

// ---- inputs ---------------------------------------------------------------------------------------------------------

bool crew::runs_on_this_thread() const noexcept { return runs_here == this; }

void crew::check_process() const {
  if (!birth_.is_here())
    throw error(errc::runtime_stopped,
                "stream '" + options_.name + "' belongs to the process that forked this one: start one here");
}

void crew::check_wait(const std::string& input) const {
  check_process();
  if (!runs_on_this_thread()) return;
  throw error(errc::would_deadlock, input.empty()
                                        ? "a stage of stream '" + options_.name + "' waits for that stream"
                                        : "a stage of stream '" + options_.name +
                                              "' waits for room in its own input '" + input + "'; use try_push");
}

void crew::overrun(const std::string& input) noexcept {
  try {
    fail(std::make_exception_ptr(error(errc::overrun, "stream '" + options_.name + "': there is no room in input '" +
                                                          input + "', and its edge is to fail then")));
  } catch (...) {
    fail(std::current_exception());
  }
}

streams::node& crew::input(const std::string& name, const std::type_info& item) {
  for (const auto& n : plan_->nodes) {
    if (n->name() != name || !n->item_type()) continue;
    if (*n->item_type() == item) return *n;
    throw error(errc::bad_argument,
                "input '" + name + "' of stream '" + options_.name + "' takes items of another type");
  }
  throw error(errc::bad_argument, "stream '" + options_.name + "' has no input '" + name + "'");
}

}  // namespace troupe::detail::stage
