// What this file is for: bodies of the public classes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/runtime.hpp>

#include <cstdio>
#include <new>
#include <tuple>

#include <troupe/this_task.hpp>

#include "actors/placement/placement.hpp"
#include "runtime/engine.hpp"
#include "runtime/old_names.hpp"

namespace troupe {

namespace {
// Interval at which a thread that waits for all tasks and holds a view checks whether a task waits for that view.
constexpr std::chrono::milliseconds views_looked_at_after{50};
}  // namespace

runtime::runtime(options o) try : engine_(std::make_shared<detail::engine>(o)) {
  engine_->start();
} catch (const std::bad_alloc&) {
  throw error(errc::out_of_memory, "the runtime cannot start: no memory is left");
}
runtime::runtime(runtime&&) noexcept = default;

namespace {
// Shuts a runtime down. In a child by fork the parent's runtime has no threads, and its locks may be held for ever: it
// is left as it is.
void give_up(std::shared_ptr<detail::engine>& e) noexcept {
  if (!e) return;
  if (e->state().birth.is_here())
    e->shutdown(detail::deadline_after(e->settings().shutdown_timeout));
  else if (auto* kept = new (std::nothrow) std::shared_ptr<detail::engine>(e))
    static_cast<void>(kept);  // its last handle is never given back
}
}  // namespace

runtime& runtime::operator=(runtime&& o) noexcept {
  if (this != &o) {
    give_up(engine_);
    engine_ = std::move(o.engine_);
  }
  return *this;
}
runtime::~runtime() { give_up(engine_); }

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse_moved_from() {
  throw error(errc::bad_argument, "the runtime was moved from");
}
}  // namespace

detail::engine& runtime::the_engine() const {
  if (!engine_) [[unlikely]]
    refuse_moved_from();
  engine_->check_process();
  return *engine_;
}

pinned_memory runtime::pin_bytes(std::byte* p, std::size_t bytes) const { return {the_engine().state(), p, bytes}; }

pinned_memory::pinned_memory(detail::runtime_state& state, std::byte* p, std::size_t bytes) {
  if (state.tiles) std::tie(number_, gains_) = state.tiles->pin_outside(p, bytes);
  state.retain();
  state_ = &state;
}

pinned_memory::~pinned_memory() {
  if (!state_ || !state_->birth.is_here()) return;  // in a child by fork the devices are the parent's
  if (number_ != 0 && state_->tiles) state_->tiles->unpin_outside(number_);
  state_->release();
}

void runtime::wait_all() {
  const bool all = wait_all_until(std::chrono::steady_clock::time_point::max());
  const detail::placement& p = the_engine().placement_actor();
  if (p.closed() && !p.why_ended().empty()) throw error(errc::runtime_stopped, p.why_ended());
  if (!all) throw error(errc::runtime_stopped, "the runtime was shut down and has left bodies behind that still run");
}

bool runtime::wait_all_until(std::chrono::steady_clock::time_point deadline) {
  if (detail::current_task())
    throw error(errc::would_deadlock, "wait_all() inside a task would wait for that task: wait for futures instead");
  { const detail::engine::device_watch told(the_engine()); }  // this thread sleeps: no device may be left to it
  detail::placement& placement_actor = the_engine().placement_actor();
  constexpr auto forever = std::chrono::steady_clock::time_point::max();
  if (deadline == forever && placement_actor.decides_here())
    throw error(
        errc::would_deadlock,
        "wait_all() in a destructor that is called in the middle of a scheduling pass would wait for that pass");
  const detail::open_views::held views = the_engine().views().of_this_thread();
  if (views.empty() || deadline != forever) return placement_actor.wait_quiet(deadline);
  // Checks repeatedly: tasks that can only go on after one of these views may come later, too.
  do
    if (placement_actor.is_behind(views.tasks(), nullptr))
      throw error(errc::would_deadlock, "tasks can only go on after a host view that this thread holds (one of " +
                                            views.names() + "): close it before wait_all()");
  while (!placement_actor.wait_quiet(std::chrono::steady_clock::now() + views_looked_at_after));
  return true;
}

std::vector<executor_report> runtime::executors(const scope& where) const {
  std::vector<executor_report> all = the_engine().placement_actor().report().executors;
  const logic::executor_set wanted = logic::resolve(where, the_engine().placement_actor().facts());
  std::erase_if(
      all, [&, id = 0](const executor_report&) mutable { return !wanted.contains(static_cast<std::size_t>(id++)); });
  std::erase_if(all, [](const executor_report& e) { return e.kind == device_kind::node && e.slots == 0; });
  for (executor_report& e : all) detail::fill_old_names(e);
  return all;
}

std::vector<node_report> runtime::nodes() const {
  const detail::node_set* const n = the_engine().others();
  return n ? n->report() : std::vector<node_report>();
}
std::vector<link_report> runtime::links() const {
  const detail::node_set* const n = the_engine().others();
  return n ? n->links() : std::vector<link_report>();
}
std::vector<connection_failure> runtime::connection_failures() const {
  const detail::node_set* const n = the_engine().others();
  return n ? n->connection_failures() : std::vector<connection_failure>();
}
cluster_report runtime::query_cluster(std::chrono::milliseconds limit) const {
  detail::node_set* const n = the_engine().others();
  return n ? n->query_cluster(detail::deadline_after(limit)) : cluster_report();
}
bool runtime::wait_for_nodes(std::size_t count, std::chrono::milliseconds limit) const {
  const detail::node_set* const n = the_engine().others();
  return n ? n->wait_for(count, detail::deadline_after(limit)) : count == 0;
}
std::vector<std::string> runtime::addresses() const {
  const detail::node_set* const n = the_engine().others();
  return n ? n->addresses() : std::vector<std::string>();
}

runtime_report runtime::report() const {
  runtime_report r = the_engine().report();
  detail::fill_old_names(r);
  return r;
}
explanation runtime::explain_task(detail::task_record* t) const {
  if (!t) throw error(errc::bad_argument, "explain() of a future that names no task");
  return the_engine().placement_actor().explain(*t);
}
shutdown_report runtime::shutdown(std::chrono::steady_clock::time_point deadline) {
  return the_engine().shutdown(deadline);
}

std::string explanation::text() const {
  char line[256];
  if (chunks != 0) {
    std::string s = "task '" + task + "' of " + std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks");
    std::uint64_t ended = 0;
    for (const chunk_place& at : chunks_at) {
      s += (ended == 0 ? ": " : ", ") + std::to_string(at.chunks) + " on " + at.executor;
      ended += at.chunks;
    }
    if (ended < chunks) s += (ended == 0 ? ": " : ", ") + std::to_string(chunks - ended) + " that have not run";
    return s + "\n";
  }
  std::snprintf(line, sizeof line, "task '%s' on %s, measured %.1f us\n", task.c_str(),
                executor.empty() ? "(not placed)" : executor.c_str(), static_cast<double>(measured.count()) / 1e3);
  std::string s = line;
  std::snprintf(line, sizeof line, "  %-12s %12s %12s %12s %14s %12s\n", "candidate", "queue us", "transfer us",
                "run us", "bytes missing", "from peers");
  s += line;
  for (const candidate& c : candidates) {
    if (!c.left_out.empty()) {
      s += "  " + c.executor + " " + c.left_out + "\n";
      continue;
    }
    std::snprintf(line, sizeof line, "%s %-12s %12.1f %12.1f %12.1f %14llu %12llu\n", c.chosen ? "*" : " ",
                  c.executor.c_str(), static_cast<double>(c.queue.count()) / 1e3,
                  static_cast<double>(c.transfer.count()) / 1e3, static_cast<double>(c.run.count()) / 1e3,
                  static_cast<unsigned long long>(c.bytes_missing),
                  static_cast<unsigned long long>(c.bytes_from_peers));
    s += line;
  }
  return s;
}

namespace this_task {

bool inside() noexcept { return detail::current_task() != nullptr; }
bool stop_requested() noexcept {
  const task_context* c = detail::current_context();
  return c && c->stop_requested();
}
const char* executor() noexcept {
  const task_context* c = detail::current_context();
  return c ? c->executor() : "";
}

core_yielded::core_yielded() : left_(detail::leave_slot()) {}
core_yielded::~core_yielded() {
  if (left_) detail::take_slot();
}

}  // namespace this_task

}  // namespace troupe
