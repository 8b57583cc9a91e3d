// What this file is for: task records from the caller's side: taking, filling, submitting, waiting.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <coroutine>
#include <memory>

#include <cstdio>
#include <limits>
#include <new>
#include <thread>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/graph_run.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/resumption.hpp"
#include "devices/host/topology.hpp"
#include "net/adaptive_spin.hpp"
#include "runtime/deadlines.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {
// Effect of a stop token on a task that has not started.
struct cancel {
  task_record* task;
  engine* the_engine;
  void operator()() const noexcept {
    if (!claim(*task)) return;  // it runs: the body sees the token
    task->error = stopped_error(*task, "");
    fulfil(*task, the_engine->board());
    the_engine->placement_actor().note_cancelled();
  }
};

/// Effect of a deadline on a task: that of a stop token, beside the caller's own token. Lives as long as the task.
struct deadline_watch {
  struct pass_on {
    std::stop_source to;
    void operator()() noexcept { to.request_stop(); }
  };
  std::shared_ptr<deadlines> in;
  deadlines::entry when{};
  std::stop_callback<pass_on> theirs;
  std::stop_callback<cancel> own;

  deadline_watch(engine& the_engine, task_record& t, const task_options& o, const std::stop_source& source)
      : in(the_engine.timers()), theirs(o.stop, pass_on{source}), own(source.get_token(), cancel{&t, &the_engine}) {}
  deadline_watch(const deadline_watch&) = delete;
  deadline_watch& operator=(const deadline_watch&) = delete;
  ~deadline_watch() { in->drop(when); }
};

// Time that a node has to report a task that should have ended.
constexpr std::chrono::milliseconds overdue_max{1000};
// Deadlines beyond this, of centuries, are never looked at.
constexpr double longest_ticks = 4e18;

void set_deadline(engine& the_engine, task_record& t, task_extra& e, const task_options& o) {
  const std::stop_source source;
  e.overdue = std::make_shared<observed<std::uint64_t>>(0);
  const runtime_clock& clock = the_engine.state().clock;
  const double ticks = std::chrono::duration<double, std::nano>(o.deadline).count() / clock.ns_per_tick();
  if (ticks < longest_ticks) e.due = clock.ticks() + static_cast<std::uint64_t>(ticks);
  auto watch = std::make_shared<deadline_watch>(the_engine, t, o, source);
  watch->when = watch->in->add(
      o.deadline, [source, since = e.overdue, of = std::weak_ptr(the_engine.shared_from_this())]() mutable {
        const auto still = of.lock();
        if (!still) return;
        *since = std::max<std::uint64_t>(1, still->state().clock.ticks());
        source.request_stop();
        if (still->others())
          still->timers()->add(overdue_max, [of] {
            if (const auto later = of.lock()) later->others()->give_up_overdue(overdue_max);
          });
      });
  e.options.stop = source.get_token();
  e.stop_watch = std::move(watch);
}
}  // namespace

namespace {
// Made beforehand: there may be no memory left for the error, either.
const std::exception_ptr no_memory = std::make_exception_ptr(
    error(errc::out_of_memory, "no memory is left for the record of a task, or for what it takes along"));
}  // namespace

void throw_no_memory() { std::rethrow_exception(no_memory); }

task_record* new_task(engine& the_engine) try {
  task_record* t = take_record(the_engine.state());
  t->references.store(2, std::memory_order_relaxed);
  return t;
} catch (const std::bad_alloc&) {
  throw_no_memory();
}

void check_chunks(double count, std::size_t bytes) {
  const double needed = count * static_cast<double>(sizeof(task_record) + sizeof(task_record*) + bytes);
  const auto there = static_cast<double>(devices::memory_bytes());
  if (count < std::numeric_limits<std::int32_t>::max() && needed <= there) return;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "for_each: %.0f chunks, whose records are made before the first one begins, take %.1f GiB of the %.1f GiB of "
      "this machine: choose larger chunks",
      count, needed / (1u << 30), there / (1u << 30));
  throw error(errc::out_of_memory, text);
}

void throw_bad_space(const task_options* o, const kernel_info* k, int d, index_t extent, index_t chunk) {
  const std::string name = o && !o->name.empty() ? o->name : k ? k->name : "";
  const std::string along = " along dimension " + std::to_string(d);
  throw error(errc::bad_argument,
              "for_each" + (name.empty() ? "" : " '" + name + "'") + ": " +
                  (extent < 0 ? "the extent " + std::to_string(extent) + along + " of the index space is negative"
                              : "the size " + std::to_string(chunk) + along +
                                    " of its chunks is negative: use 1 or more, or 0 for the whole extent"));
}

void throw_of_call(const error& e, const task_options* o, const kernel_info* k) {
  const std::string task = o && !o->name.empty() ? "task '" + o->name + "'" : "";
  const std::string kernel = k ? "kernel '" + std::string(k->name) + "'" : "";
  if (task.empty() && kernel.empty()) throw;
  throw error(e.code(), task + (task.empty() || kernel.empty() ? "" : ", ") + kernel + ": " + e.what());
}

void throw_of_array(const error& e, const array_core& a) {
  throw error(e.code(), "array '" + a.spec.name + "': " + e.what());
}

namespace {
[[noreturn]] void throw_lost(const char* kernel, argument_place at, const std::string& value, const char* type) {
  throw error(errc::bad_argument, "kernel '" + std::string(kernel) + "', argument " + std::to_string(at.number) +
                                      " of " + std::to_string(at.of) + ": " + value + " cannot be passed as " + type +
                                      " without loss: pass a value that it holds, or widen the parameter");
}
}  // namespace

void throw_lost(const char* kernel, argument_place at, long long value, const char* type) {
  throw_lost(kernel, at, std::to_string(value), type);
}
void throw_lost(const char* kernel, argument_place at, unsigned long long value, const char* type) {
  throw_lost(kernel, at, std::to_string(value), type);
}
void throw_lost(const char* kernel, argument_place at, double value, const char* type) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  throw_lost(kernel, at, std::string(text), type);
}

task_extra& extra_of(task_record& t) {
  if (!t.extra) t.extra = new task_extra;
  return *t.extra;
}

namespace {
void check_belongs(target to, const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (x.array) continue;  // checked when the access was filled in
    if (x.task->rt != t.rt)
      throw error(errc::bad_argument, "a future that the call waits for belongs to another runtime");
    if (is_recorded(x.task->kind) != (to.recorded != nullptr))
      throw error(errc::bad_argument, to.recorded ? "a recorded call can only wait for calls of the same recording"
                                                  : "the future stands for a recorded call: run the graph instead");
  }
}

void check_size(target to, const task_record& t) {
  if (to.the_engine->placement_actor().limits_size()) to.the_engine->placement_actor().check_size(t);
}

void put_on(recording& recorded, task_record* t) {
  // Keeps the arrays: the caller may drop its handles before the recording ends.
  for (int i = 0; i < t->access_count; ++i)
    if (array_core* a = t->accesses[i].array; a && recorded.arrays.insert(a).second) retain(a);
  t->kind = t->kind == task_kind::join ? task_kind::recorded_join : task_kind::recorded;
  recorded.tasks.push_back(t);
}
}  // namespace

void submit(target to, task_record* t) {
  try {
    check_belongs(to, *t);
    if (to.recorded) {
      put_on(*to.recorded, t);
      return;
    }
    to.the_engine->placement_actor().check_open();
    check_size(to, *t);
  } catch (...) {
    discard(t);
    throw;
  }
  to.the_engine->placement_actor().submit(t, !to.waits || current_task() != nullptr);
}

bool wait_for_room(target to, std::chrono::steady_clock::time_point deadline) {
  return to.recorded || current_task() || to.the_engine->placement_actor().wait_for_room(deadline);
}

void submit_all(target to, std::span<task_record* const> chunks, task_record* join) {
  try {
    for (const task_record* t : chunks) check_belongs(to, *t);
    if (!to.recorded) to.the_engine->placement_actor().check_open();
    if (!to.recorded)
      for (const task_record* t : chunks) check_size(to, *t);
  } catch (...) {
    for (task_record* t : chunks) {
      discard(t);
      release(t);
    }
    discard(join);
    throw;
  }
  const bool inside = !to.waits || current_task() != nullptr;
  if (!to.recorded) {
    extra_of(*join).chunks = chunks.size();
    if (!chunks.empty()) join->extra->options.name = logic::name_of(*chunks.front());
  }
  for (task_record* t : chunks) {
    if (to.recorded)
      put_on(*to.recorded, t);
    else
      to.the_engine->placement_actor().submit(t, inside);
    release(t);  // no future refers to a single chunk
  }
  if (to.recorded)
    put_on(*to.recorded, join);
  else
    to.the_engine->placement_actor().submit(join, inside);
}

namespace {
// Recycles a record; not in a child by fork, where the pools may be locked for ever.
void put_back(task_record* t) noexcept {
  if (t->rt->birth.is_here()) recycle(t);
}
}  // namespace

void discard(task_record* t) noexcept {
  // The task was never submitted: the runtime's reference is dropped; the caller's, if a future took it, follows.
  if (!t->ops) t->body_gone = true;
  if (t->references.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(t);
}

void retain(task_record* t) noexcept { t->references.fetch_add(1, std::memory_order_relaxed); }
void release(task_record* t) noexcept {
  if (t->references.fetch_sub(1, std::memory_order_acq_rel) == 1) put_back(t);
}

region* new_region(engine& the_engine) {
  region* r = the_engine.state().regions.take();
  r->combiner = nullptr;
  r->partials = nullptr;
  return r;
}

namespace {
// Excludes core groups that have fewer slots than the task asks for.
void check_slots(engine& the_engine, const task_record& t, task_extra& e) {
  const int slots = logic::slots_of(e.options.resources);
  if (slots <= 1) return;
  int most = 0;
  for (const executor_facts& f : the_engine.placement_actor().facts()) {
    if (f.kind != device_kind::cpu || !e.executors.contains(f.id)) continue;
    most = std::max(most, f.slots);
    if (f.slots < slots) e.executors.erase(f.id);
  }
  const logic::executor_set able =
      t.kernel ? the_engine.placement_actor().able_to_run(*t.kernel) : the_engine.placement_actor().all();
  if ((e.executors & able & the_engine.placement_actor().all()).empty() && most < slots)
    throw error(errc::no_resource, "task '" + logic::name_of(t) + "': cpu: " + std::to_string(slots) +
                                       " slots asked, " + std::to_string(most) +
                                       " is the maximum, the slots of the largest core group in its scope");
}

// Restricts a task that holds devices to core groups: its body drives them from a core.
void check_devices(engine& the_engine, const task_record& t, task_extra& e) {
  if (!logic::asks_for_devices(e.options.resources)) return;
  constexpr unsigned char cores = 1u << static_cast<int>(device_kind::cpu);
  e.executors &= logic::with_body(cores, the_engine.placement_actor().facts());
  if (e.executors.empty() || (t.kernel && !(t.kernel->kinds & cores)))
    throw error(errc::no_executor, "task '" + logic::name_of(t) +
                                       "' holds devices (gpu) for a body on a core: it needs one, and a core group in "
                                       "its scope; kernels of the runtime take no gpu");
}

// Returns the executors in the scope. The last scope that this thread has asked for is remembered: calls of a loop have
// one and the same.
const logic::executor_set& executors_in(engine& the_engine, const scope& where) {
  struct answer {
    const engine* the_engine = nullptr;
    std::uint64_t changes = 0;
    scope where;  // keeps its root
    logic::executor_set found;
  };
  thread_local answer last;
  const std::uint64_t changes = executor_changes.load(std::memory_order_acquire);
  if (last.the_engine != &the_engine || last.changes != changes || last.where.root() != where.root())
    last = {&the_engine, changes, where, logic::resolve(where, the_engine.placement_actor().facts())};
  return last.found;
}
}  // namespace

namespace {
// Returns a hint for errors about devices that do not exist.
std::string hint_of_devices(const engine& the_engine) {
  std::string hint = "; accelerators are used where options::devices or TROUPE_DEVICES names them";
  for (const std::string& why : the_engine.absent_devices()) hint += "; " + why;
  return hint;
}

void check_resources(engine& the_engine, const task_record& t, const task_extra& e) {
  try {
    the_engine.placement_actor().check_resources(e.options.resources);
  } catch (const error& why) {
    throw error(why.code(), "task '" + logic::name_of(t) + "': " + why.what());
  }
}

void apply_now(engine& the_engine, task_record& t, const task_options& o) {
  task_extra& e = extra_of(t);
  e.options = o;
  if (o.retries < 0) throw error(errc::bad_argument, "task_options::retries is negative");
  if (o.retries > 0 && t.kernel && t.kernel->repeat == purity::once)
    throw error(errc::bad_argument,
                "kernel '" + std::string(t.kernel->name) + "' may run once only: it cannot be retried");
  if (t.kernel)
    for (std::size_t i = 0; i < t.kernel->resource_count; ++i) e.options.resources.push_back(t.kernel->resources[i]);
  if (!e.options.resources.empty()) check_resources(the_engine, t, e);
  const auto& facts = the_engine.placement_actor().facts();
  if (!o.where.is_any()) {
    e.resolved_at = executor_changes.load(std::memory_order_acquire);
    e.executors = executors_in(the_engine, o.where);
    if (e.executors.empty())
      throw error(errc::no_executor,
                  "task '" + logic::name_of(t) + "': no executor is in the scope: widen it; there are: " +
                      logic::names_of(the_engine.placement_actor().all(), facts) +
                      (logic::names_absent_devices(o.where, facts) ? hint_of_devices(the_engine) : ""));
    if (t.kernel && (e.executors & the_engine.placement_actor().able_to_run(*t.kernel)).empty())
      check_kernel(the_engine, t);
  }
  check_devices(the_engine, t, e);
  check_slots(the_engine, t, e);
  if (o.deadline.count() > 0)
    set_deadline(the_engine, t, e, o);
  else if (o.stop.stop_possible())
    e.stop_watch = std::make_shared<std::stop_callback<cancel>>(o.stop, cancel{&t, &the_engine});
}
}  // namespace

void apply(engine& the_engine, task_record& t, const task_options& o) {
  if (o.deadline.count() < 0 || o.executor_wait.count() < 0)
    throw error(errc::bad_argument, "task_options: deadline and executor_wait must not be negative");
  if (o.executor_wait.count() == 0 || !the_engine.others()) return apply_now(the_engine, t, o);
  const auto now = std::chrono::steady_clock::now(), last = std::chrono::steady_clock::time_point::max();
  const auto until = o.executor_wait < last - now ? now + o.executor_wait : last;
  for (;;) {
    const std::uint64_t came = the_engine.others()->came();
    try {
      apply_now(the_engine, t, o);
      return check_kernel(the_engine, t);
    } catch (const error& e) {
      if (e.code() != errc::no_executor && e.code() != errc::no_resource) throw;
      if (!the_engine.others()->wait_for_another(came, until)) throw;
    }
  }
}

namespace {
// Returns the box of an access that the body sees.
logic::box4 seen_of(const access& x) { return x.where ? logic::view_box(*x.where) : x.array->tile_box(x.tile); }

std::string text_of_shape(const access& x) {
  const logic::box4 b = seen_of(x);
  std::string text = "array '" + x.array->spec.name + "' ";
  for (int d = 0; d < x.array->spec.rank; ++d)
    text += (d ? " x [" : "[") + std::to_string(b.lo[d]) + "," + std::to_string(b.hi[d]) + ")";
  return text;
}

bool holds(const shape_rule& r, const access& a, const access& b) {
  const logic::box4 of_a = seen_of(a), of_b = seen_of(b);
  switch (r.is) {
    case shape_rule::what::same_shape:
      for (int d = 0; d < rank_max; ++d)
        if (of_a.size(d) != of_b.size(d)) return false;
      return true;
    case shape_rule::what::same_size:
      return of_a.size(r.a_dim) == of_b.size(r.b_dim);
    case shape_rule::what::covers: {  // in the body's coordinates: from the corner of the array or sub-array passed
      const auto origin = [](const access& x) {
        return x.where ? x.where->limit_lo : x.worker != 0 ? x.array->tile_box(x.tile).lo : logic::point4{};
      };
      const logic::point4 at_a = origin(a), at_b = origin(b);
      for (int d = 0; d < a.array->spec.rank && !of_b.empty(); ++d) {
        const index_t before = (of_b.lo[d] - at_b[d]) - (of_a.lo[d] - at_a[d]);
        const index_t behind = (of_a.hi[d] - at_a[d]) - (of_b.hi[d] - at_b[d]);
        if (before < r.size || behind < r.size) return false;
      }
      return true;
    }
    case shape_rule::what::not_empty:
      return !of_a.empty();
    case shape_rule::what::has_size:
      return of_a.size(r.a_dim) == r.size;
  }
  return false;
}

// Checks the kernel's rules about its arrays, which are the accesses without those to futures, in order.
void check_shapes(const task_record& t) {
  const auto nth = [&](std::size_t n) -> const access* {
    for (int i = 0; i < t.access_count; ++i)
      if (t.accesses[i].array && n-- == 0) return &t.accesses[i];
    return nullptr;
  };
  for (std::size_t i = 0; i < t.kernel->shape_count; ++i) {
    const shape_rule& r = t.kernel->shapes[i];
    const access *const a = nth(r.a), *const b = nth(r.b);
    if (a && b && holds(r, *a, *b)) continue;
    const bool two = a && b && a != b;
    throw error(errc::bad_argument, "kernel '" + std::string(t.kernel->name) + "' takes no such shapes: " +
                                        (a ? text_of_shape(*a) : "") + (two ? " with " + text_of_shape(*b) : "") +
                                        "; see what it requires (kernel::requiring), and pass boxes that fit");
  }
}
}  // namespace

void check_kernel(engine& the_engine, const task_record& t) {
  if (t.kernel->shape_count != 0) check_shapes(t);
  const auto& facts = the_engine.placement_actor().facts();
  const logic::executor_set able = the_engine.placement_actor().able_to_run(*t.kernel);
  const logic::executor_set allowed =
      t.extra ? t.extra->executors & the_engine.placement_actor().all() : the_engine.placement_actor().all();
  if (!(able & allowed).empty()) return;
  std::string left_out;
  for (const executor_facts& f : facts)
    if (f.label && allowed.contains(f.id) && !f.label->text().empty())
      left_out += "; node " + f.label->text() +
                  (!t.kernel->portable ? " runs kernels that are offered, whose values are bytes, and no lambdas"
                   : !the_engine.settings().cluster.give_work
                       ? " is given no work by this program (cluster_options::give_work)"
                       : " does not offer it: start it with the program or the plugin (--plugin) that does");
  for (const executor_facts& f : facts)
    if (const std::string_view why = logic::reason_against(*t.kernel, f); !why.empty())
      left_out += "; " + f.name + " " + std::string(why);
  // The kernel is for devices only, and none of these exists.
  constexpr unsigned char others = 1u << static_cast<int>(device_kind::cpu) | 1u << static_cast<int>(device_kind::node);
  if (able.empty() && left_out.empty() && (t.kernel->kinds & ~others) != 0) left_out = hint_of_devices(the_engine);
  throw error(errc::no_executor,
              "'" + std::string(t.kernel->name) + "' has a body for: " + logic::names_of(able, facts) + left_out +
                  "; the scope allows: " + logic::names_of(allowed, facts) + "; add a body or widen the scope");
}

const kernel_info* intern(engine& the_engine, const kernel_info& k) { return the_engine.kernels().intern(k); }

void add_join_edge(task_record& chunk, task_record& join) {
  chunk.successors[chunk.successor_count++] = reinterpret_cast<std::uintptr_t>(&join) | 1;
  chunk.marks |= mark_chunk;
  ++join.pending;
}

engine& engine_of(const task_record& t) {
  engine* the_engine = t.rt->the_engine.load(std::memory_order_acquire);
  if (!the_engine) throw error(errc::runtime_stopped, "the future's runtime is gone");
  the_engine->check_process();
  return *the_engine;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

bool is_done(const task_record& t) noexcept {
  return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_done;
}

void wait(task_record& t) { wait_until(t, std::chrono::steady_clock::time_point::max()); }

namespace {

// Factor by which a waiting thread polls longer while a device has work under way: it takes the place of the device's
// thread.
constexpr int device_patience = 4;

// Polls for the task's end as long as that is likely to be worth it. True if it is done.
bool look_for_end(engine& the_engine, task_record& t, std::chrono::steady_clock::time_point deadline) {
  const bool may_help =
      the_engine.settings().waiting_thread_helps && deadline == std::chrono::steady_clock::time_point::max();
  const auto begin = std::chrono::steady_clock::now();
  auto spin_until = std::min(deadline, begin + the_engine.settings().spin);
  thread_local net::adaptive_spin spin;
  bool for_nodes =
      the_engine.state().on_nodes.load(std::memory_order_relaxed) != 0 && deadline > begin &&
      spin.begin(begin, std::min<std::chrono::nanoseconds>(deadline - begin, the_engine.settings().cluster.spin));
  const auto device_until = std::min(deadline, begin + (1 + device_patience) * the_engine.settings().spin);
  engine::device_watch devices(the_engine);
  for (int looks = 0;; ++looks) {
    if (is_done(t)) return true;
    if (the_engine.placement_actor().take_turn_waiting() || devices.look()) continue;
    if (may_help && the_engine.help_with(t, [&] { devices.end(); })) return true;
    if (for_nodes) {
      for_nodes = spin.goes_on();
      continue;
    }
    if ((looks & 15) == 15 && std::chrono::steady_clock::now() >= spin_until) {
      if (!devices.busy() || spin_until == device_until) return false;
      spin_until = device_until;
    }
    if (devices.busy())
      std::this_thread::yield();  // a driver's thread that has just woken may be on this core
    else
      spin_lock::pause();
  }
}

// Throws if this thread holds a view that has to be closed before the task can run.
void check_views(engine& the_engine, const task_record& t, std::chrono::steady_clock::time_point deadline) {
  if (deadline != std::chrono::steady_clock::time_point::max()) return;
  const open_views::held views = the_engine.views().of_this_thread();
  if (views.empty() || !the_engine.placement_actor().is_behind(views.tasks(), &t) || is_done(t)) return;
  throw error(errc::would_deadlock,
              "'" + logic::name_of(t) + "' can only go on after a host view that this thread holds (of " +
                  views.names() + "): close the view before you wait, or move it to the thread that is to close it");
}

}  // namespace

bool wait_until(task_record& t, std::chrono::steady_clock::time_point deadline) {
  if (is_done(t)) return true;
  if (is_recorded(t.kind))
    throw error(errc::bad_argument, "the future stands for a recorded call, which is never ready: wait for the run");
  // Keeps the engine: the runtime may be destroyed meanwhile, and a body that runs here be left behind.
  const std::shared_ptr<engine> kept = t.rt->shared_engine.lock();
  if (!kept && is_done(t)) return true;
  if (!kept) throw error(errc::runtime_stopped, "the future's runtime is gone");
  kept->check_process();
  engine& the_engine = *kept;
  if (current_task()) {
    check_views(the_engine, t, deadline);
    return wait_inside(t, the_engine.board(), deadline);
  }
  if (the_engine.around().wait) return the_engine.around().wait([&] { return is_done(t); });
  if (look_for_end(the_engine, t, deadline)) return true;
  check_views(the_engine, t, deadline);
  return the_engine.board().wait(t, deadline);
}

void throw_error(const task_record& t) { throw_task_error(t); }

void resume_after(task_record& t, std::coroutine_handle<> h) {
  engine& the_engine = engine_of(t);
  const target to{&the_engine, nullptr};
  task_record* r = make_record(to, nullptr, nullptr, resumption{h}, static_cast<const box<1>*>(nullptr),
                               static_cast<const extent<1>*>(nullptr));
  const future<void> held(r);
  retain(&t);
  r->accesses[0].array = nullptr;
  r->accesses[0].task = &t;
  r->accesses[0].link = link_mode::order;  // also after a failure: await_resume throws it
  r->access_count = 1;
  submit(to, r);
}

}  // namespace troupe::detail
