// What this file is for: how tasks that are queued without a turn find threads that look, doze or sleep, in every order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The model beside slots_model_test.cpp: threads of one group that each have a slot. They keep one of the tasks that
// they make ready and queue the others, look for a while before they sleep, and owe wake-ups that are sent afterwards
// (core_group/wakes.cpp, core_group.cpp, parking.cpp). A client queues tasks of its own as a side turn does. A step is
// what happens under one lock or by one atomic access; between steps any thread may go on, and a nap may end at any
// moment. What must hold: from each state that can be reached, a state can be reached in which all tasks have ended.
// Bodies may wait for each other's ends without telling anybody, so that a task which lies in the queue while a thread
// sleeps is found. Mistakes that are easily made are planted once, to see that the model finds them. Two looks of the
// code are not among these, since without them work is found after a nap: the one at the queue as a thread stops
// looking, and the watch that is kept where enough threads seem to look.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/state_graph.hpp"

namespace {

using small = signed char;
constexpr int tasks_max = 5, threads_max = 4;

struct program_task {
  bool is_big = false;  // worth a wake-up
  int after = -1;       // made ready by the end of that one; -1: the client's
  int until = -1;       // its body runs until that one has ended
};

enum class mistake {
  none,
  sleeps_without_a_look,   // also over work that was queued just before
  sleeps_before_it_lists,  // it looks at the queue, and is among the sleepers only afterwards
  leaves_without_a_word,   // a thread that goes on with a task leaves what is queued to nobody
  wakes_for_big_work,      // and for small work of a thread that runs no tasks nobody
};

struct setting {
  std::string name;
  int threads = 2;
  std::vector<program_task> tasks;
  mistake planted = mistake::none;
};

enum class at : small {
  loop,
  took,
  body,
  queues,
  calls,
  counts,
  watch,
  watch_lock,
  owed,
  wakes,
  woke,
  look,
  looking,
  stops,
  stopped,
  idle,
  park,
  asleep,
  asleep_beside,
  asleep_alone,
  lists,
  deep,
  nap,
  behind,
  woken,
  gone,
};

struct thread {
  at pc = at::loop, back = at::loop;
  small task = -1, kept = -1;
  small handed = 0;                             // tasks that it queues, or threads that it wakes
  std::array<small, 3> ready{-1, -1, -1};       // that it is about to queue
  small counted = 0, listed = 0, notified = 0;  // among those that look, that sleep; somebody has woken it
};

struct state {
  std::array<thread, threads_max> threads;
  std::array<small, tasks_max> queue{-1, -1, -1, -1, -1};
  small queued = 0;
  std::array<small, tasks_max> ended{};
  small next = 0;  // the client's next task
  small lookers = 0, awake = 0, owed = 0, near = 0, lock = -1, napper = -1, watch = 0;
};

class model {
 public:
  explicit model(const setting& s) : set_(s), client_(s.threads) {}

  state first() const {
    state s;
    s.awake = static_cast<small>(set_.threads);
    for (int i = client_ + 1; i < threads_max; ++i) s.threads[static_cast<std::size_t>(i)].pc = at::gone;
    return s;
  }
  bool is_over(const state& s) const {
    return std::all_of(s.ended.begin(), s.ended.begin() + static_cast<std::ptrdiff_t>(set_.tasks.size()),
                       [](small e) { return e != 0; });
  }
  static bool is_broken(const state&) { return false; }
  /// Calls `f(state)` for each state to which a step of some thread leads.
  template <class F>
  void each_step(const state& s, F&& f) const {
    for (int i = 0; i <= client_; ++i) steps_of(s, i, f);
  }

 private:
  static std::size_t u(int i) { return static_cast<std::size_t>(i); }
  const program_task& program(int t) const { return set_.tasks[u(t)]; }
  bool has(mistake m) const { return set_.planted == m; }
  int worth(const state& s) const {
    int n = 0;
    for (int i = 0; i < s.queued; ++i) n += program(s.queue[u(i)]).is_big ? 1 : 0;
    return n;
  }
  int sleepers(const state& s) const {
    return static_cast<int>(
        std::count_if(s.threads.begin(), s.threads.end(), [](const thread& t) { return t.listed; }));
  }
  // Somebody of the sleepers is told that there may be something to watch over: any of them.
  template <class F>
  void notify_one_sleeper(const state& s, F&& f) const {
    if (sleepers(s) == 0) return f(s);
    for (int i = 0; i < client_; ++i) {
      if (!s.threads[u(i)].listed) continue;
      state n = s;
      n.threads[u(i)].notified = 1;
      f(n);
    }
  }
  // Keeps the watch: a napper does already, or a sleeper is asked to; then the thread goes on at `back`.
  static void keep_watch(thread& self, at back) {
    self.pc = at::watch;
    self.back = back;
  }

  // The step by which a thread that sleeps has work, with the lock, which it leaves.
  template <class F>
  void wake_up(state n, int i, F&& f) const {
    thread& self = n.threads[u(i)];
    self.listed = self.notified = 0;
    self.pc = at::woken;
    n.lock = -1;
    if (n.watch) return notify_one_sleeper(n, f);
    f(n);
  }

  template <class F>
  void steps_of(const state& s, int i, F&& f) const {
    const thread& now = s.threads[u(i)];
    state n = s;
    thread& self = n.threads[u(i)];
    const auto go = [&](at pc) {
      self.pc = pc;
      f(n);
    };
    switch (now.pc) {
      case at::loop:
        if (i == client_) {
          while (n.next < static_cast<small>(set_.tasks.size()) && program(n.next).after >= 0) ++n.next;
          if (n.next == static_cast<small>(set_.tasks.size())) return go(at::gone);
          self.ready[0] = n.next++;
          self.handed = 1;
          return go(at::queues);
        }
        if (now.kept >= 0) {
          self.task = std::exchange(self.kept, small{-1});
          return go(at::body);
        }
        if (s.queued == 0) return go(now.counted ? at::looking : at::look);
        self.task = n.queue[0];
        std::rotate(n.queue.begin(), n.queue.begin() + 1, n.queue.end());
        n.queue.back() = -1;
        --n.queued;
        return go(at::took);
      case at::took:  // other threads still count it among those that look
        if (now.counted) --n.lookers;
        self.counted = 0;
        if (s.queued != 0)
          keep_watch(self, at::body);
        else
          self.pc = at::body;
        return f(n);
      case at::body: {
        if (program(now.task).until >= 0 && !s.ended[u(program(now.task).until)]) return;
        n.ended[u(now.task)] = 1;
        std::size_t count = 0;
        for (std::size_t t = 0; t < set_.tasks.size(); ++t) {
          if (set_.tasks[t].after != now.task) continue;
          if (self.kept < 0)
            self.kept = static_cast<small>(t);
          else
            self.ready[count++] = static_cast<small>(t);
        }
        self.task = -1;
        self.handed = static_cast<small>(count);
        return go(count != 0 ? at::queues : at::woke);
      }
      case at::queues:
        for (small& t : self.ready)
          if (t >= 0) n.queue[u(n.queued++)] = std::exchange(t, small{-1});
        return go(at::calls);
      case at::calls:
        return go(sleepers(s) != 0 ? at::counts : at::woke);
      case at::counts: {
        const int threads = std::min<int>(worth(s), now.handed);
        if (threads > s.lookers) {
          n.owed = static_cast<small>(n.owed + threads - s.lookers);
          return go(at::owed);
        }
        if (threads != 0) {
          keep_watch(self, at::owed);
          return f(n);
        }
        if (i == client_ || s.awake == 0) {
          n.near = has(mistake::wakes_for_big_work) ? 0 : 1;
        } else if (now.handed > 1) {
          keep_watch(self, at::owed);
          return f(n);
        }
        return go(at::owed);
      }
      case at::watch:
        return go(s.napper >= 0 || sleepers(s) == 0 ? now.back : at::watch_lock);
      case at::watch_lock:
        if (s.lock >= 0) return;
        self.pc = now.back;
        if (sleepers(s) != 0) n.watch = 1;
        return notify_one_sleeper(n, f);
      case at::owed:
        self.handed = static_cast<small>(n.owed + n.near);
        n.owed = n.near = 0;
        return go(self.handed != 0 ? at::wakes : at::woke);
      case at::wakes:
        if (s.lock >= 0) return;
        for (int k = 0; k < client_ && self.handed > 0; ++k)
          if (thread& t = n.threads[u(k)]; t.listed) {
            t.listed = 0;
            t.notified = 1;
            --self.handed;
          }
        self.handed = 0;
        return go(at::woke);
      case at::woke:
        self.handed = 0;
        if (i != client_ && s.queued != 0 && !has(mistake::leaves_without_a_word))
          keep_watch(self, at::loop);
        else
          self.pc = at::loop;
        return f(n);
      case at::look:
        ++n.lookers;
        self.counted = 1;
        return go(at::looking);
      case at::looking:
        if (s.queued != 0) go(at::loop);
        return go(at::stops);
      case at::stops:
        --n.lookers;
        self.counted = 0;
        return go(at::stopped);
      case at::stopped:
        return go(worth(s) != 0 ? at::loop : at::idle);
      case at::idle:
        --n.awake;
        return go(at::park);
      case at::park:
        if (s.lock >= 0) return;
        n.lock = static_cast<small>(i);
        self.notified = 0;
        if (!has(mistake::sleeps_before_it_lists)) self.listed = 1;
        return go(at::asleep);
      case at::asleep:
        return go(s.awake != 0 ? at::asleep_beside : at::asleep_alone);
      case at::asleep_beside:
        if (s.awake == 0 && s.queued != 0) return wake_up(n, i, f);
        self.listed = 1;
        n.lock = -1;
        if (s.napper >= 0) return go(at::behind);
        n.napper = static_cast<small>(i);
        n.watch = 0;
        return go(at::nap);
      case at::asleep_alone:
        if (s.queued != 0 && !has(mistake::sleeps_without_a_look)) return wake_up(n, i, f);
        if (!now.listed) return go(at::lists);
        [[fallthrough]];
      case at::lists:
        self.listed = 1;
        n.watch = 0;
        n.lock = -1;
        return go(at::deep);
      case at::deep:
      case at::behind: {
        if (s.lock >= 0 || !now.notified) return;
        self.notified = 0;
        if (!now.listed) return wake_up(n, i, f);
        const bool goes_on = now.pc == at::deep ? s.watch != 0 : s.napper < 0;
        if (!goes_on) return f(n);
        n.lock = static_cast<small>(i);
        return go(at::asleep);
      }
      case at::nap:
        if (s.lock >= 0) return;
        n.napper = -1;
        n.lock = static_cast<small>(i);
        if (now.listed && s.queued == 0) return go(at::asleep);
        n.watch = 1;  // a thread that asked for a watch meanwhile counted on this one
        self.listed = 0;
        return wake_up(n, i, f);
      case at::woken:
        ++n.awake;
        return go(at::loop);
      case at::gone:
        return;
    }
  }

  const setting& set_;
  const int client_;
};

test::state_findings explore(const setting& s) { return test::explore_states(model(s)); }

constexpr bool big = true, tiny = false;

std::vector<setting> programs() {
  return {
      {.name = "two of the client's that need each other", .threads = 2, .tasks = {{big, -1, 1}, {big}}},
      {.name = "two tiny ones that need each other", .threads = 2, .tasks = {{tiny, -1, 1}, {tiny}}},
      {.name = "a tiny one after a big one", .threads = 2, .tasks = {{big, -1, 1}, {tiny}}},
      {.name = "three that need each other", .threads = 3, .tasks = {{big, -1, 1}, {big, -1, 2}, {big}}},
      {.name = "one kept that needs the one queued", .threads = 2, .tasks = {{big}, {big, 0, 2}, {big, 0}}},
      {.name = "one kept that needs the tiny one queued", .threads = 2, .tasks = {{tiny}, {tiny, 0, 2}, {tiny, 0}}},
      {.name = "one kept that needs the last of two queued",
       .threads = 2,
       .tasks = {{big}, {big, 0, 3}, {tiny, 0}, {big, 0}}},
      {.name = "one kept that needs the client's", .threads = 2, .tasks = {{big}, {tiny, 0, 2}, {big}}},
      {.name = "a chain beside a pair", .threads = 2, .tasks = {{big}, {big, 0}, {big, -1, 3}, {big, 1}}},
  };
}

class queued_work : public testing::TestWithParam<setting> {};

TEST_P(queued_work, finds_threads_in_every_order) {
  const test::state_findings f = explore(GetParam());
  EXPECT_EQ(f.stuck, 0u) << "of " << f.states << " states";
  EXPECT_GT(f.states, 100u);
}

std::string name_of(const testing::TestParamInfo<setting>& i) {
  std::string text = i.param.name;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}
INSTANTIATE_TEST_SUITE_P(programs, queued_work, testing::ValuesIn(programs()), name_of);

// Returns in how many programs of two threads the model finds a mistake.
int programs_with(mistake m) {
  int found = 0;
  for (setting s : programs()) {
    if (s.threads > 2) continue;
    s.planted = m;
    found += explore(s).stuck != 0 ? 1 : 0;
  }
  return found;
}

TEST(queued_work_model, finds_threads_that_sleep_over_work) {
  EXPECT_NE(programs_with(mistake::sleeps_without_a_look), 0);
}
TEST(queued_work_model, finds_threads_that_sleep_before_others_can_see_it) {
  EXPECT_NE(programs_with(mistake::sleeps_before_it_lists), 0);
}
TEST(queued_work_model, finds_threads_that_leave_work_without_a_word) {
  EXPECT_NE(programs_with(mistake::leaves_without_a_word), 0);
}
TEST(queued_work_model, finds_small_work_for_which_nobody_is_woken) {
  EXPECT_NE(programs_with(mistake::wakes_for_big_work), 0);
}

}  // namespace
