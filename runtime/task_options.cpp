// What this file is for: what a task's options and its kernel ask for, and which executors that leaves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/placement/placement.hpp"
#include "actors/protocol/executor_changes.hpp"
#include "actors/protocol/task_name.hpp"
#include "runtime/engine.hpp"
#include "runtime/stop_watches.hpp"

namespace troupe::detail {

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
    throw error(errc::no_resource, "task '" + name_of(t) + "': cpu: " + std::to_string(slots) + " slots asked, " +
                                       std::to_string(most) +
                                       " is the maximum, the slots of the largest core group in its scope");
}

// Restricts a task that holds devices to core groups: its body drives them from a core.
void check_devices(engine& the_engine, const task_record& t, task_extra& e) {
  if (!logic::asks_for_devices(e.options.resources)) return;
  constexpr unsigned char cores = 1u << static_cast<int>(device_kind::cpu);
  e.executors &= logic::with_body(cores, the_engine.placement_actor().facts());
  if (e.executors.empty() || (t.kernel && !(t.kernel->kinds & cores)))
    throw error(errc::no_executor, "task '" + name_of(t) +
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
    throw error(why.code(), "task '" + name_of(t) + "': " + why.what());
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
                  "task '" + name_of(t) + "': no executor is in the scope" + logic::names_in(o.where) +
                      ": widen it; there are: " + logic::names_of(the_engine.placement_actor().all(), facts) +
                      (logic::names_absent_devices(o.where, facts) ? hint_of_devices(the_engine) : ""));
    if (t.kernel && (e.executors & the_engine.placement_actor().able_to_run(*t.kernel)).empty())
      check_kernel(the_engine, t);
  }
  check_devices(the_engine, t, e);
  check_slots(the_engine, t, e);
  if (o.deadline.count() > 0)
    set_deadline(the_engine, t, e, o);
  else if (o.stop.stop_possible())
    obey_stop_token(the_engine, t, e, o);
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

void check_kernel(engine& the_engine, const task_record& t) {
  if (t.kernel->shape_count != 0 && t.kernel->lists == 0) check_shapes(t, {});
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

}  // namespace troupe::detail
