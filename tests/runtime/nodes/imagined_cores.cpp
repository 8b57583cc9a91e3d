// What this file is for: a core group without threads: bodies run for real, and take imagined time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "imagined_cores.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/execution/written_copies.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace test {

namespace {

class imagined_cores final : public core_group {
 public:
  imagined_cores(core_group_options o, placement& p, wait_table& b, runtime_state& rt, imagined_time t)
      : facts_(std::move(o.facts)), placement_(p), board_(b), rt_(rt), time_(std::move(t)) {}

  const executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const> tasks, attention) override {
    for (task_record* t : tasks) {
      const auto before = std::find_if(queue_.begin(), queue_.end(),
                                       [&](const task_record* q) { return priority_of(*q) < priority_of(*t); });
      queue_.insert(before, t);
    }
    look_after({});
  }
  int sleepers() const override { return 1; }  // a thread that looks for work takes a turn at once
  void wake_one() override { look_after({}); }
  void keep_watch() override { look_after(std::chrono::microseconds(100)); }
  std::size_t queued() const override { return queue_.size(); }
  std::size_t unstarted() const override { return queue_.size(); }
  int slots_in_use() const override { return static_cast<int>(running_.size()); }
  float queued_ns() const override {
    float ns = 0;
    for (const task_record* t : queue_) ns += t->predicted_ns;
    return ns;
  }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override {
    std::size_t n = 0;
    for (auto t = queue_.end(); t != queue_.begin() && n < room.size();)
      if (wanted(**--t)) {
        room[n++] = *t;
        t = queue_.erase(t);
      }
    return n;
  }
  troupe::executor_report report() const override {
    troupe::executor_report r;
    r.name = facts_.name;
    r.slots = facts_.slots;
    r.tasks = tasks_;
    r.failed = failed_;
    return r;
  }
  void start() override {}

  void request_stop() override {
    stopping_.store(true);
    std::vector<task_record*> done;
    for (job& j : std::exchange(running_, {})) {
      j.context.roll_back();
      j.task->error = cancelled_error(*j.task, facts_.name);
      end(*j.task);
      done.push_back(j.task);
    }
    if (!done.empty()) placement_.report_done(done, this);
  }
  bool wait_ended(std::chrono::steady_clock::time_point) override { return true; }
  std::vector<task_record*> running() const override { return {}; }
  int threads() const override { return facts_.slots; }
  bool help_with(task_record&, const std::function<void()>&) override { return false; }
  bool wait_inside(worker&, task_record&, wait_table&, std::chrono::steady_clock::time_point) override { return false; }
  void give_slot(worker&) override {}
  void take_slot(worker&) override {}
  std::exception_ptr run_graph(worker&, task_record&) override { return nullptr; }

 private:
  struct job {
    job(runtime_state& rt, const char* name, const std::atomic<bool>& stopping)
        : context(*rt.host, rt, buffers, name, stopping) {}
    task_record* task = nullptr;
    scratch buffers;
    run_context context;
    bool has_run = false;
  };

  static int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }

  void look_after(std::chrono::nanoseconds d) {
    if (std::exchange(looks_, true)) return;
    time_.later(d, [this] {
      looks_ = false;
      look();
    });
  }
  // As a thread that has nothing to do: first what it was given, then what placement has.
  void look() {
    do
      while (!stopping_ && running_.size() < static_cast<std::size_t>(facts_.slots) && !queue_.empty()) begin_one();
    while (!stopping_ && running_.size() < static_cast<std::size_t>(facts_.slots) && placement_.take_turn(this));
  }
  void begin_one() {
    task_record* const t = queue_.front();
    queue_.pop_front();
    if (!claim(*t)) {
      await_fulfilled(*t);
      placement_.report_done({&t, 1}, this);
      return;
    }
    const auto j = running_.emplace(running_.end(), rt_, facts_.name.c_str(), stopping_);
    j->task = t;
    j->context.bind(*t);
    if (time_.is_early()) run_body(*j);
    const auto d = time_.duration();
    t->measured_ns = std::max(1.0f, static_cast<float>(d.count()));
    time_.later(d, [this, j] {
      if (!stopping_) finish(j);
    });
  }
  void finish(std::list<job>::iterator j) {
    task_record* const t = j->task;
    if (!j->has_run) run_body(*j);
    if (!t->error) {
      j->context.commit();
      if (t->extra) make_written_copies(*t->rt, *t);
    }
    running_.erase(j);
    end(*t);
    placement_.report_done({&t, 1}, this);
    look();
  }
  void run_body(job& j) {
    task_record& t = *j.task;
    j.has_run = true;
    const int tries = 1 + (t.extra ? std::max(0, t.extra->options.retries) : 0);
    const auto count = [&](int bodies, int threw) {
      tasks_ += static_cast<std::uint64_t>(bodies);
      failed_ += static_cast<std::uint64_t>(threw);
      if (t.extra && t.extra->listener) t.extra->bodies += bodies;
    };
    for (int attempt = 1;; ++attempt) try {
        if (t.extra && t.extra->options.stop.stop_requested()) {
          t.error = cancelled_error(t, facts_.name);
          count(attempt - 1, attempt - 1);
          return;
        }
        if (t.kind == task_kind::combine)
          combine_partials(t, *rt_.host, j.context);
        else
          t.ops->run(t, j.context);
        count(attempt, attempt - 1);
        return;
      } catch (...) {
        j.context.roll_back();
        if (attempt < tries) {
          j.context.next_attempt();
          if (t.extra->listener) t.extra->listener->tried(t);
          continue;
        }
        t.error = task_error(t, facts_.name, attempt, std::current_exception());
        count(attempt, attempt);
        return;
      }
  }
  void end(task_record& t) {
    if (t.kind == task_kind::call && !t.body_gone) {
      t.ops->drop_body(t);
      t.body_gone = true;
    }
    fulfil(t, board_);
  }

  const executor_facts facts_;
  placement& placement_;
  wait_table& board_;
  runtime_state& rt_;
  const imagined_time time_;
  std::atomic<bool> stopping_{false};
  std::deque<task_record*> queue_;
  std::list<job> running_;
  std::uint64_t tasks_ = 0, failed_ = 0;
  bool looks_ = false;
};

}  // namespace

std::shared_ptr<core_group> make_imagined_cores(core_group_options o, placement& p, wait_table& b, runtime_state& rt,
                                                imagined_time t) {
  return std::make_shared<imagined_cores>(std::move(o), p, b, rt, std::move(t));
}

bool is_quiet(placement& p) { return p.is_quiet(); }

}  // namespace test
