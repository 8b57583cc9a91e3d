// What this file is for: streams are started on a runtime; their reports as text.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>
#include <troupe/stream/report.hpp>

#include "actors/stage/crew.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail::streams {

namespace {

// Spawns into an engine.
class home : public submitter<home> {
 public:
  explicit home(engine& e) : engine_(&e) {}

 private:
  friend class submitter<home>;
  target submission_target() const { return {engine_, nullptr, false}; }
  engine* engine_;
};

// What a runner's task holds. It tells the crew if it goes without having run. It keeps the crew only while it runs: a
// stream must not wait for workers when it ends.
class runner {
 public:
  runner(const std::shared_ptr<stage::crew>& of, stage::crew::runner_is which)
      : by_(of->held_by()), of_(of), which_(which) {}
  runner(runner&&) noexcept = default;
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;
  ~runner() {
    if (!by_ || has_run_) return;
    const stage::holders::pass here(by_);
    if (const std::shared_ptr<stage::crew> c = of_.lock())
      c->lost(std::make_exception_ptr(error(errc::runtime_stopped, "the runtime was shut down")));
  }
  void operator()() {
    has_run_ = true;
    const stage::holders::pass here(by_);
    if (const std::shared_ptr<stage::crew> c = of_.lock()) c->work(which_);
  }

 private:
  std::shared_ptr<stage::holders> by_;
  std::weak_ptr<stage::crew> of_;
  stage::crew::runner_is which_;
  bool has_run_ = false;
};

// Has a task call a function once others have ended, however. It is done by then with what the function holds.
void call_after(engine& e, std::span<const future<void>> tasks, std::function<void()> f) {
  const target to{&e, nullptr, false};
  task_record* const r = make_record(to, nullptr, nullptr, std::move(f), static_cast<const box<1>*>(nullptr),
                                     static_cast<const extent<1>*>(nullptr));
  const future<void> held(r);
  try {
    if (tasks.size() > task_record::inline_accesses) size_accesses(*r, tasks.size());
  } catch (...) {
    discard(r);
    throw;
  }
  for (const future<void>& t : tasks) {
    retain(t.task());
    access& x = r->accesses[r->access_count++];
    x.array = nullptr;
    x.task = t.task();
    x.link = link_mode::order;
  }
  submit(to, r);
}

}  // namespace

engine& entrance::the_engine(const runtime& rt) { return rt.the_engine(); }

future<void> entrance::run(engine& e, const task_options& o, const graph& g) { return runtime::run_at(e, o, g); }

troupe::stream::layout entrance::check(runtime& rt, const plan& p) {
  return stage::describe(p, rt.the_engine().settings().memory_bytes);
}

std::shared_ptr<machine> entrance::start(runtime& rt, std::shared_ptr<plan> p, const troupe::stream::start_options& o) {
  engine& e = rt.the_engine();
  if (o.stalled_after.count() <= 0)
    throw error(errc::bad_argument, "stream '" + o.name + "': start_options::stalled_after is not positive");
  static_cast<void>(stage::describe(*p, e.settings().memory_bytes));
  p->started = true;
  p->state.limit = o.state_bytes != 0 ? o.state_bytes : e.settings().memory_bytes;
  stage::lay_out(*p);
  // Of each runner; complete before the first one.
  const auto how = std::make_shared<task_options>();
  how->name = "stream " + o.name;
  how->where = scope::here();
  const auto spawn = [weak = e.weak_from_this(), how](const std::shared_ptr<stage::crew>& c,
                                                      stage::crew::runner_is which) {
    const std::shared_ptr<engine> at = weak.lock();
    if (!at || at->is_stopping()) {
      c->lost(std::make_exception_ptr(error(errc::runtime_stopped, "the runtime was shut down")));
      return;
    }
    home(*at).spawn(*how, runner(c, which));
  };
  const auto after = [weak = e.weak_from_this()](std::span<const future<void>> tasks, std::function<void()> f) {
    const std::shared_ptr<engine> at = weak.lock();
    if (!at) throw error(errc::runtime_stopped, "the runtime was shut down");
    call_after(*at, tasks, std::move(f));
  };
  for (const auto& n : p->nodes) n->attach(e);
  static std::atomic<int> lanes{0};  // of the trace; those of workers and devices have smaller numbers
  const int first_lane = 10'000'000 + lanes.fetch_add(static_cast<int>(p->strands.size()));
  auto c = std::make_shared<stage::crew>(std::move(p), o, e.slots(),
                                         stage::crew::surroundings{spawn, after, {}, e.sink(), first_lane});
  how->stop = c->stop_token();
  e.add_stream(c);
  c->begin();
  return c;
}

}  // namespace troupe::detail::streams

namespace troupe::stream {

namespace {

double us(std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e3; }

template <class... A>
void add(std::string& to, const char* format, A... a) {
  char line[320];
  std::snprintf(line, sizeof line, format, a...);
  to += line;
}

const char* to_string(state s) {
  switch (s) {
    case state::runs:
      return "runs";
    case state::drains:
      return "drains";
    case state::ended:
      return "ended";
    case state::cancelled:
      return "cancelled";
    case state::failed:
      return "failed";
  }
  return "?";
}

using number = unsigned long long;

}  // namespace

std::string layout::text() const {
  std::string s;
  for (const part& p : parts) {
    s += "  ";
    for (std::size_t i = 0; i < p.stages.size(); ++i) s += (i == 0 ? "" : " > ") + p.stages[i];
    if (p.lanes != 1) s += " (" + std::to_string(p.lanes) + " at the same time)";
    s += '\n';
  }
  for (const edge& e : edges)
    s += "  edge before " + e.to + ": " + std::to_string(e.items_bound) + " items, " + std::to_string(e.bytes_bound) +
         " bytes\n";
  return s;
}

std::string report::text() const {
  std::string s;
  const double seconds = static_cast<double>(elapsed.count()) / 1e9;
  add(s, "stream '%s' %s, %.1f s%s\n", name.c_str(), to_string(state), seconds,
      is_exact ? "" : " (a stage was running: counts are not of one moment)");
  add(s, "  pushed %llu, delivered %llu, dropped %llu, dead %llu, in flight %llu", number{items.pushed},
      number{items.delivered}, number{items.dropped}, number{items.dead}, number{items.in_flight});
  add(s, "; made by stages %llu, taken by stages %llu\n", number{items.created}, number{items.absorbed});
  add(s, "  latency us: p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f\n", us(latency.quantile(0.5)),
      us(latency.quantile(0.99)), us(latency.quantile(0.999)), us(latency.max()));
  add(s, "  %-20s %-9s %12s %12s %10s %8s %8s %10s %10s\n", "stage", "kind", "in", "out", "per s", "dead", "retries",
      "p50 us", "p99 us");
  for (const stage_report& x : stages)
    add(s, "  %-20s %-9s %12llu %12llu %10.0f %8llu %8llu %10.2f %10.2f\n", x.name.c_str(), x.kind.c_str(),
        number{x.in}, number{x.out}, seconds > 0 ? static_cast<double>(x.out) / seconds : 0, number{x.dead},
        number{x.retries}, us(x.service.quantile(0.5)), us(x.service.quantile(0.99)));
  for (const stage_report& x : stages)
    if (x.transfer.max() > std::chrono::nanoseconds(0))
      add(s, "  %s: items have waited for copies, us: p50 %.2f, p99 %.2f, max %.2f\n", x.name.c_str(),
          us(x.transfer.quantile(0.5)), us(x.transfer.quantile(0.99)), us(x.transfer.max()));
  for (const stage_report& x : stages)
    if (x.ahead != 0)
      add(s, "  %s: %llu items were ahead of this machine's clock and have not moved the watermark\n", x.name.c_str(),
          number{x.ahead});
  for (const stage_report& x : stages)
    if (x.watermark_lag)
      add(s, "  %s has come to items of %.3f s ago\n", x.name.c_str(),
          std::chrono::duration<double>(*x.watermark_lag).count());
  for (const stage_report& x : stages)
    if (x.state_bytes != 0) add(s, "  %s keeps %llu bytes\n", x.name.c_str(), number{x.state_bytes});
  if (!edges.empty())
    add(s, "  %-20s %7s %7s %7s %12s %12s %10s %12s %10s\n", "edge before", "items", "most", "bound", "bytes", "most",
        "dropped", "blocked ms", "p99 us");
  for (const edge_report& x : edges)
    add(s, "  %-20s %7llu %7llu %7llu %12llu %12llu %10llu %12.1f %10.2f\n", x.to.c_str(), number{x.items},
        number{x.items_max}, number{x.items_bound}, number{x.bytes}, number{x.bytes_max}, number{x.dropped},
        us(x.blocked) / 1e3, us(x.queue.quantile(0.99)));
  for (const std::string& x : stalls) s += "  " + x + '\n';
  return s;
}

}  // namespace troupe::stream
