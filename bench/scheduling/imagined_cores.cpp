// Graphs in steps on cores that are only imagined: events in imagined time, and the real calls that they stand for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "imagined_cores.hpp"

#include "bench/contender.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "actors/core_group/core_group.hpp"
#include "actors/execution/run_context.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/successors.hpp"
#include "runtime/engine.hpp"

namespace bench {

namespace {

namespace detail = troupe::detail;
using detail::task_record;

// A call that took longer for each of its tasks was interrupted: it counts for so much.
constexpr double call_ns_max = 20'000;
// Tasks in flight at which the thread that submits waits, and goes on.
constexpr std::size_t in_flight_max = 16'384, in_flight_again = 12'288;

/// Imagined time, which goes on with real time while the product is called.
class imagined_clock {
 public:
  std::uint64_t now() const { return static_cast<std::uint64_t>(now_ns_ + (in_call_ ? ns_since(begun_) : 0)); }
  void set(double ns) { now_ns_ = ns; }
  /// Returns how long `f` takes here, which is for so many tasks.
  template <class F>
  double time(std::size_t tasks, F&& f) {
    begun_ = detail::ticks();
    in_call_ = true;
    f();
    in_call_ = false;
    return std::min(ns_since(begun_), call_ns_max * static_cast<double>(tasks));
  }

 private:
  double ns_since(std::uint64_t begin) const { return static_cast<double>(detail::ticks() - begin) * tick_ns_; }

  const double tick_ns_ = detail::ns_per_tick();
  double now_ns_ = 0;
  std::uint64_t begun_ = 0;
  bool in_call_ = false;
};

/// A core group without threads, whose tasks are run one at a time by whoever says so.
class imagined_cores final : public detail::core_group {
 public:
  imagined_cores(detail::core_group_options o, detail::placement& p, detail::wait_table& b, detail::runtime_state& rt)
      : facts_(std::move(o.facts)), placement_(p), board_(b), context_(*rt.host, rt, buffers_, "cores", stopping_) {}

  /// Tasks that have become ready since this was asked last.
  std::vector<task_record*> take_ready() { return std::exchange(ready_, {}); }

  /// Runs the task's body, and releases what it has been waited for by.
  void run(task_record& t, float body_ns) {
    if (!detail::claim(t)) throw wrong_answer("a task was cancelled");
    context_.bind(t);
    t.ops->run(t, context_);
    context_.commit();
    // As a thread of a real group times them.
    if (t.predicted_ns < 1 || body_ns >= 20'000 || ++timed_ % 8 == 0) t.measured_ns = body_ns;
    if (!t.body_gone) t.ops->drop_body(t);
    t.body_gone = true;
    detail::fulfil(t, board_);
    if (!detail::is_shared(t) || !placement_.releases_early(t)) return;
    placement_.note_ended(t);
    const auto take = [this](task_record& next) {
      if (placement_.keeps_predicted(next)) return ready_.push_back(&next);
      task_record* const one = &next;
      placement_.report_ready({&one, 1});
    };
    detail::release_early(t, [&](task_record& next) {
      if (next.kind != detail::task_kind::gate) return take(next);
      detail::release_early(next, take);
      if (!placement_.pass_gate(next)) report(next);
    });
  }
  void report(task_record& t) {
    task_record* const one = &t;
    placement_.report_done({&one, 1}, this);
  }
  bool take_turn() { return placement_.take_turn(nullptr); }

  const detail::executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const> tasks, attention) override {
    ready_.insert(ready_.end(), tasks.begin(), tasks.end());
  }
  int sleepers() const override { return 0; }
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return ready_.size(); }
  std::size_t unstarted() const override { return ready_.size(); }
  float queued_ns() const override { return 0; }
  std::size_t take_back(std::span<task_record*>, const std::function<bool(const task_record&)>&) override { return 0; }
  troupe::executor_report report() const override {
    troupe::executor_report r;
    r.name = facts_.name;
    r.slots = facts_.slots;
    return r;
  }
  void start() override {}
  void request_stop() override { stopping_ = true; }
  bool wait_ended(std::chrono::steady_clock::time_point) override { return true; }
  std::vector<task_record*> running() const override { return {}; }
  int threads() const override { return facts_.slots; }
  bool help_with(task_record&, const std::function<void()>&) override { return false; }
  bool wait_inside(detail::worker&, task_record&, detail::wait_table&, std::chrono::steady_clock::time_point) override {
    return false;
  }
  void give_slot(detail::worker&) override {}
  void take_slot(detail::worker&) override {}
  std::exception_ptr run_graph(detail::worker&, task_record&) override { return nullptr; }

 private:
  const detail::executor_facts facts_;
  detail::placement& placement_;
  detail::wait_table& board_;
  std::atomic<bool> stopping_{false};
  detail::scratch buffers_;
  detail::run_context context_;
  std::vector<task_record*> ready_;
  std::uint64_t timed_ = 0;
};

class imagined_run : public troupe::array_maker<imagined_run>, public troupe::submitter<imagined_run> {
 public:
  imagined_run(step_problem& p, const imagined_machine& m) : problem_(p), machine_(m) {
    troupe::options o;
    o.threads = m.cores;
    o.cost_cache = "none";
    o.decisions_kept = 0;
    o.tasks_in_flight_max = 2 * in_flight_max;
    detail::runtime_environment around;
    around.clock = detail::runtime_clock([this] { return clock_.now(); });
    around.make_cores = [this](detail::core_group_options c, detail::placement& placement, detail::wait_table& board,
                               detail::runtime_state& rt) {
      cores_ = std::make_shared<imagined_cores>(std::move(c), placement, board, rt);
      return cores_;
    };
    around.call_later = [](std::chrono::milliseconds, const std::function<void()>&) {};
    around.long_work = [](const std::function<void()>& f) { f(); };
    around.wait = [](const std::function<bool()>& f) { return f(); };
    engine_ = std::make_shared<detail::engine>(o, std::move(around));
    engine_->start();
    for (std::size_t i = 0; i < p.outputs(); ++i) outputs_.push_back(filled<std::uint64_t>({1}, troupe::tiles(1), 0));
    idle_ = m.cores;
  }
  imagined_run(const imagined_run&) = delete;
  ~imagined_run() {
    outputs_.clear();
    engine_->shutdown({});
  }
  troupe::detail::target submission_target() const { return {engine_.get(), nullptr}; }

  imagined_pace pace() {
    passes_before_ = engine_->report().scheduling_passes;
    at(0, event::submits);
    while (!events_.empty()) {
      const event e = events_.top();
      events_.pop();
      now_ = e.when;
      clock_.set(now_);
      switch (e.what) {
        case event::submits:
          submit();
          break;
        case event::takes_turn:
          take_turn();
          break;
        case event::is_ready:
          begin_or_queue(*e.task);
          break;
        case event::ends:
          end(*e.task);
          break;
        case event::is_free:
          next();
          break;
      }
    }
    return summary();
  }

 private:
  struct event {
    enum kind { submits, takes_turn, is_ready, ends, is_free };

    double when;
    std::uint64_t number;  // events of the same time come in the order in which they were made
    kind what;
    task_record* task;

    bool operator<(const event& other) const { return std::pair(other.when, other.number) < std::pair(when, number); }
  };
  void at(double when, event::kind what, task_record* t = nullptr) { events_.push({when, ++made_, what, t}); }
  template <class F>
  double call(F&& f, std::size_t tasks = 1) {
    return clock_.time(tasks, std::forward<F>(f));
  }

  // ---- the thread that submits --------------------------------------------------------------------------------------
  // The call itself is made when the turn comes to it, so that no core finds the mail before: that takes no turns.
  void submit() {
    if (submitted_ - ended_ >= in_flight_max) {
      is_held_back_ = true;
      return;
    }
    ++submitted_;
    ++unordered_;
    const double done = now_ + usual_submission_ns_;
    if (!std::exchange(turn_comes_, true)) at(std::max(done, turn_free_), event::takes_turn);
    if (submitted_ < problem_.tasks()) at(done, event::submits);
  }
  void spawn_next() {
    step_problem* const p = &problem_;
    const std::size_t task = spawned_++;
    const auto [graph, step, point] = p->point_of(task);
    inputs_.clear();
    for (const std::uint32_t other : p->inputs(step, point))
      inputs_.push_back(outputs_[p->output_of(graph, step - 1, other)]);
    const auto& out = outputs_[p->output_of(graph, step, point)];
    if (inputs_.empty())
      spawn([p, task] { p->run(task); }, troupe::write(out));
    else
      spawn([p, task] { p->run(task); }, troupe::read_all(inputs_), troupe::write(out));
  }

  // ---- the turn -----------------------------------------------------------------------------------------------------
  void take_turn() {
    turn_comes_ = false;
    ++turns_;
    for (std::size_t i = 0; i < unordered_; ++i) {
      const double took = call([this] { spawn_next(); });
      usual_submission_ns_ += (took - usual_submission_ns_) / 16;
      if (is_late(spawned_)) submit_ns_ += took;
    }
    double took = call([this] { cores_->take_turn(); }, unordered_);
    if (machine_.order_ns > 0) took = machine_.order_ns * static_cast<double>(unordered_);
    unordered_ = 0;
    if (is_late(spawned_)) in_turn_ns_ += took;
    turn_free_ = now_ + took;
    for (task_record* t : cores_->take_ready()) at(turn_free_, event::is_ready, t);
  }

  // ---- cores --------------------------------------------------------------------------------------------------------
  void begin_or_queue(task_record& t) {
    queue_.push_back(&t);
    if (idle_ == 0) return;
    --idle_;
    next();
  }
  void next() {
    if (queue_.empty()) {
      ++idle_;
      return;
    }
    at(now_ + machine_.body_ns, event::ends, queue_.front());
    queue_.pop_front();
  }
  void end(task_record& t) {
    if (++ended_ == problem_.tasks() / 2) half_ = now_;
    last_ = now_;
    const double ran = call([&] { cores_->run(t, static_cast<float>(machine_.body_ns)); });
    const auto ready = cores_->take_ready();
    for (task_record* next : ready) at(now_ + ran, event::is_ready, next);
    clock_.set(now_ + ran);
    const double reported = call([&] { cores_->report(t); });
    if (is_late(ended_)) beside_ns_ += ran + reported;
    const double done = now_ + ran + reported;
    for (task_record* next : cores_->take_ready()) at(done, event::is_ready, next);
    at(done, event::is_free);
    if (is_held_back_ && submitted_ - ended_ <= in_flight_again) {
      is_held_back_ = false;
      at(done, event::submits);
    }
  }

  // ---- figures ------------------------------------------------------------------------------------------------------
  bool is_late(std::size_t n) const { return n > problem_.tasks() / 2; }
  imagined_pace summary() {
    if (ended_ != problem_.tasks())
      throw wrong_answer(std::to_string(ended_) + " of " + std::to_string(problem_.tasks()) + " imagined tasks ended");
    const std::uint64_t passes = engine_->report().scheduling_passes - passes_before_;
    // Cores take turns of their own only for what the cost model is to learn.
    if (passes > turns_ + problem_.tasks() / 16)
      throw wrong_answer("cores have taken turns: " + std::to_string(passes) + " of which " + std::to_string(turns_) +
                         " are accounted for");
    const auto n = static_cast<double>(problem_.tasks() - problem_.tasks() / 2);
    const double time = last_ - half_;
    imagined_pace p;
    p.efficiency = machine_.body_ns * n / (time * machine_.cores);
    p.in_turn_ns = in_turn_ns_ / n;
    p.submit_ns = submit_ns_ / n;
    p.beside_ns = beside_ns_ / n;
    return p;
  }

  step_problem& problem_;
  const imagined_machine machine_;
  imagined_clock clock_;
  std::shared_ptr<imagined_cores> cores_;
  std::shared_ptr<detail::engine> engine_;
  std::vector<troupe::array<std::uint64_t, 1>> outputs_, inputs_;
  std::priority_queue<event> events_;
  std::uint64_t made_ = 0;
  double now_ = 0, turn_free_ = 0, half_ = 0, last_ = 0;
  double in_turn_ns_ = 0, submit_ns_ = 0, beside_ns_ = 0;
  double usual_submission_ns_ = 200;
  std::size_t submitted_ = 0, spawned_ = 0, unordered_ = 0, ended_ = 0, turns_ = 0;
  std::uint64_t passes_before_ = 0;
  bool turn_comes_ = false, is_held_back_ = false;
  std::deque<task_record*> queue_;  // ready
  int idle_ = 0;                    // cores
};

}  // namespace

imagined_pace run_on_imagined_cores(step_problem& p, const imagined_machine& m) {
  imagined_run run(p, m);
  const imagined_pace found = run.pace();
  p.check();
  return found;
}

}  // namespace bench
