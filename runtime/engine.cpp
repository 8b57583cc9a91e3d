// What this file is for: building and tearing down.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/placement/placement.hpp"
#include "actors/protocol/task_name.hpp"
#include "actors/stage/crew.hpp"
#include "devices/host/host_device.hpp"
#include "devices/host/spill_directory.hpp"
#include "devices/host/topology.hpp"
#include "devices/kernels/kernels.hpp"

namespace troupe::detail {

namespace {

// Least time that bodies have to notice, once their runtime is asked to stop.
constexpr auto stop_grace = std::chrono::milliseconds(100);
// Number of workers in one process above which the option is taken for a mistake.
constexpr int threads_max = 4096;
// Number of transfers below which the learned speed of a link is not kept for later runtimes.
constexpr std::uint32_t transfers_to_correct = 8;
// Limits beyond this are reduced to it: sums of several, in nanoseconds or ticks, still fit their types.
constexpr auto longest = std::chrono::hours(10 * 365 * 24);

options checked(options o) {
  if (o.threads < 0) throw error(errc::bad_argument, "options::threads is negative");
  if (o.threads > threads_max) throw error(errc::bad_argument, "options::threads is above 4096");
  if (o.core_groups < 1 || o.core_groups > logic::executors_max)
    throw error(errc::bad_argument, "options::core_groups must be between 1 and 1024");
  if (o.tasks_in_flight_max < 1) throw error(errc::bad_argument, "options::tasks_in_flight_max must be at least 1");
  if (o.spare_threads_max < 0) throw error(errc::bad_argument, "options::spare_threads_max is negative");
  if (o.spin.count() < 0) throw error(errc::bad_argument, "options::spin is negative");
  if (o.window.count() < 0) throw error(errc::bad_argument, "options::window is negative");
  if (o.card_wait.count() < 0) throw error(errc::bad_argument, "options::card_wait is negative");
  if (o.shutdown_timeout.count() < 0) throw error(errc::bad_argument, "options::shutdown_timeout is negative");
  const auto keep_in_reach = [](auto& limit) {
    limit = std::min<std::remove_reference_t<decltype(limit)>>(limit, longest);
  };
  keep_in_reach(o.spin);
  keep_in_reach(o.window);
  keep_in_reach(o.card_wait);
  keep_in_reach(o.shutdown_timeout);
  for (device_use& d : o.devices) keep_in_reach(d.deadline);
  if (o.threads == 0) o.threads = devices::usable_core_count();
  o.threads = std::max(o.threads, o.core_groups);
  o.cluster = with_environment(std::move(o.cluster));
  const char* const eager = std::getenv("TROUPE_EAGER_DEVICES");
  o.eager_devices |= eager && std::string_view(eager) == "1";
  keep_in_reach(o.cluster.spin);
  keep_in_reach(o.cluster.replay_max);
  keep_in_reach(o.cluster.link_check_after);
  return o;
}

std::unique_ptr<runtime_state, void (*)(runtime_state*)> make_state(const runtime_clock& clock) {
  std::unique_ptr<runtime_state, void (*)(runtime_state*)> state(new runtime_state,
                                                                 [](runtime_state* l) { l->release(); });
  state->host = devices::make_host_device();
  state->tiles = std::make_unique<tile_memory>(*state->host);
  state->clock = clock;
  return state;
}

}  // namespace

engine::engine(const options& o, runtime_environment s)
    : options_(checked(o)),
      around_(std::move(s)),
      state_(make_state(around_.clock)),
      placement_(std::make_unique<placement>(options_, *state_, board_)),
      timers_(std::make_shared<deadlines>(around_.clock)) {
  state_->kernels = kernels_;
  placement_->use_hold_up([this] { return is_waited_for(); });
}

// True if tasks in flight wait for the calling thread, which is held back: for a view that it holds; or, if nothing has
// ended for a while, for one that it has opened and keeps where no thread's stack is. Another thread may be about to
// close that one, so in this case there is a bound as well: twice as many, and from there on one task in each while.
bool engine::is_waited_for() const {
  const auto are_behind = [&](const open_views::held& views) {
    return !views.empty() && placement_->is_behind(views.tasks(), nullptr);
  };
  if (are_behind(views_.of_this_thread())) return true;
  constexpr std::chrono::milliseconds a_while{20};
  struct look {
    const engine* of = nullptr;
    std::uint64_t ended = 0;
    std::chrono::steady_clock::time_point since{};
  };
  thread_local look last;
  const std::uint64_t ended = placement_->finished();
  const auto now = std::chrono::steady_clock::now();
  if (last.of != this || last.ended != ended) last = {this, ended, now};
  if (now - last.since < a_while || placement_->active() != 0 || !are_behind(views_.kept_by_this_thread()))
    return false;
  if (placement_->unfinished() >= 2 * options_.tasks_in_flight_max) last.since = now;
  return true;
}

void engine::start() {
  try {
    build();
    return;
  } catch (const std::system_error& none) {
    shutdown(std::chrono::steady_clock::now());  // threads that have started hold the engine
    throw error(errc::no_resource,
                "the runtime cannot start: " + none.code().message() + "; it wants " +
                    std::to_string(options_.threads) +
                    " workers (options::threads) and some threads beside them: allow more threads or processes (ulimit "
                    "-u, the limits of the container) or ask for fewer");
  } catch (...) {
    shutdown(std::chrono::steady_clock::now());
    throw;
  }
}

void engine::build() {
  state_->shared_engine = weak_from_this();
  state_->the_engine.store(this, std::memory_order_release);
  around_.make_cores ? do_without_control() : start_control();
  add_groups();
  add_gpus();
  add_disk();
  if (!options_.cluster.cluster_name.empty())
    nodes_ = std::make_unique<node_set>(*this, options_.cluster, static_cast<memory_space>(gpus_.size() + 1));
  placement_->trace_to(sink(), 1);
  if (nodes_)
    for (auto& g : groups_) g->poll_with(nodes_->poller());
  for (auto& g : groups_) g->start();
  for (auto& g : gpus_) g->start();
  if (disk_) disk_->start();
  if (nodes_) nodes_->start();
}

void engine::start_control() {
  const std::weak_ptr<engine> self = weak_from_this();
  control_options o;
  o.trace = options_.trace;
  o.tidy = [self] {
    const auto the_engine = self.lock();
    if (the_engine) the_engine->state_->tiles->tidy();
    return !the_engine || the_engine->placement_->tidy();
  };
  o.ring = [self] {
    if (const auto the_engine = self.lock()) the_engine->ring();
  };
  o.end_runtime = [self](const std::string& actor, const std::exception_ptr& why) {
    if (const auto the_engine = self.lock()) the_engine->end_because(actor, why);
  };
  o.remark = [self](std::string text) {
    if (const auto the_engine = self.lock()) the_engine->placement_->remark(std::move(text));
  };
  control_ = make_control(std::move(o));
  supervise(std::shared_ptr<actor>(shared_from_this(), placement_.get()));
  const auto alarm = [this](std::chrono::milliseconds after) {
    if (control_) control_->call_later(after);
  };
  placement_->use_alarm(alarm);
  timers_->use_alarm(alarm);
}

void engine::ring() {
  placement_->look_again();
  timers_->look();
}

void engine::supervise(const std::shared_ptr<actor>& a) {
  if (control_) a->supervise(control_->watch(a));
}

// Ends all work, as an actor has failed without which there is none: every thread that waits is told why.
void engine::end_because(const std::string& actor, const std::exception_ptr& why) {
  placement_->end_all("the runtime has ended, because an actor of it failed (" + actor + ": " + text_of(why) + ")",
                      [this] {
                        std::vector<task_record*> all;
                        for (const auto& g : groups_) std::ranges::copy(g->running(), std::back_inserter(all));
                        for (const auto& g : gpus_) std::ranges::copy(g->running(), std::back_inserter(all));
                        return all;
                      });
  resume_abandoned();
}

void engine::do_without_control() {
  placement_->use_for_long_work(around_.long_work);
  const auto alarm = [this](std::chrono::milliseconds after) {
    around_.call_later(after, [self = weak_from_this()] {
      if (const auto the_engine = self.lock()) the_engine->ring();
    });
  };
  placement_->use_alarm(alarm);
  timers_->use_alarm(alarm);
}

void engine::add_groups() {
  const std::weak_ptr<engine> self = weak_from_this();
  std::vector<int> cores;
  if (options_.bind_threads) cores = devices::usable_cores();
  const int usable = devices::usable_core_count();
  const double quota = around_.core_quota ? around_.core_quota() : devices::core_quota();
  int given = 0;
  for (int g = 0; g < options_.core_groups; ++g) {
    core_group_options c;
    c.facts.id = static_cast<std::uint16_t>(g);
    c.facts.name = "cpu:" + std::to_string(g);
    c.facts.slots = options_.threads / options_.core_groups + (g < options_.threads % options_.core_groups ? 1 : 0);
    for (int i = 0; i < c.facts.slots && !cores.empty(); ++i)
      c.cores.push_back(cores[static_cast<std::size_t>(given + i) % cores.size()]);
    given += c.facts.slots;
    c.usable_cores = usable;
    c.core_quota = quota;
    c.spin = options_.spin;
    if (!options_.cluster.cluster_name.empty()) c.spin = std::max(options_.spin, options_.cluster.spin);
    c.spare_threads_max = options_.spare_threads_max;
    c.sink = sink();
    c.first_lane = 1000 * (g + 1);
    c.keep_alive = self;
    if (around_.make_cores) {
      groups_.push_back(around_.make_cores(std::move(c), *placement_, board_, *state_));
      placement_->add(*groups_.back());
      continue;
    }
    groups_.push_back(make_core_group(
        std::move(c), *placement_, board_, runs_, *state_->host, *state_,
        [](void* context) { static_cast<control*>(context)->went_idle(); }, control_.get()));
    supervise(groups_.back());
    placement_->add(*groups_.back());
  }
}

// A device opened here for the first time: its memory size decides which tasks it may be given, and direct links
// between devices are found while all of them are open here.
struct engine::opened_gpu {
  gpu_options options;
  std::shared_ptr<std::unique_ptr<devices::accelerator>> device;
};

void engine::add_gpus() {
  std::map<std::string, std::uint16_t> cards;
  auto found = find_accelerators(options_.devices, std::getenv("TROUPE_DEVICES"), options_.plugin_folders,
                                 options_.check_kernels, absent_devices_);
  for (const std::string& one : absent_devices_) placement_->remark(one);
  if (!found.empty() && options_.cost_cache != "none")
    costs_ = std::make_unique<known_costs>(options_.cost_cache, options_.threads);
  pin_tiles(found);
  std::vector<opened_gpu> all;
  for (auto& device : found) {
    const auto id = static_cast<std::uint16_t>(placement_->facts().size() + all.size());
    if (id >= logic::executors_max) throw error(errc::bad_argument, "more than 1,024 core groups and devices");
    gpu_options& g = all.emplace_back().options;
    g.facts.id = id;
    g.facts.name = device.name;
    g.facts.kind = device.kind;
    g.facts.index = device.index;
    g.facts.card = cards.try_emplace(device.card, static_cast<std::uint16_t>(cards.size())).first->second;
    g.facts.space = static_cast<memory_space>(all.size());
    g.facts.slots = device.compute_lanes;
    g.deadline = device.deadline;
    auto opened = all.back().device = std::make_shared<std::unique_ptr<devices::accelerator>>(device.open());
    g.facts.memory_bytes = (*opened)->facts().memory_bytes;
    g.facts.has_double = (*opened)->facts().has_double;
    g.facts.takes_cores = (*opened)->facts().takes_cores;
    measure(*opened, g.facts.space);
    g.open = [opened, again = std::move(device.open), state = state_.get()] {
      if (*opened) return std::move(*opened);
      auto fresh = again();
      state->tiles->pin_again();
      return fresh;
    };
    g.probes_link = costs_ != nullptr;
    g.spin = options_.spin;
    g.sink = sink();
    g.lane = 1000 * (id + 1);
    g.keep_alive = weak_from_this();
    g.gather = devices::kernels::gather;
    g.gathers = devices::kernels::gathers;
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = i + 1; k < all.size(); ++k) connect(all[i], all[k]);
  for (opened_gpu& one : all) {
    gpus_.push_back(make_gpu(std::move(one.options), *placement_, board_, *state_));
    supervise(gpus_.back());
    placement_->add(*gpus_.back());
  }
  if (costs_)
    for (const logic::remembered_time& t : costs_->times()) placement_->know_time(t);
}

// Pins tiles once for each kind: memory that is pinned for one device of a kind is pinned for all of them.
void engine::pin_tiles(const std::vector<found_accelerator>& found) {
  std::vector<std::unique_ptr<devices::page_pinning>> pinnings;
  std::set<device_kind> seen;
  for (const found_accelerator& device : found)
    if (seen.insert(device.kind).second)
      if (auto one = device.pinning()) pinnings.push_back(std::move(one));
  std::uint64_t most = std::min(options_.pinned_bytes_max, devices::memory_bytes() / 2);
  if (options_.memory_bytes != 0) most = std::min(most, options_.memory_bytes);
  state_->tiles->pin_for(std::move(pinnings), most);
}

// Measures a device's links before its actor has it. If that fails `device` is null afterwards: the actor opens it
// anew, and reports the error.
void engine::measure(std::unique_ptr<devices::accelerator>& device, memory_space space) {
  if (!costs_) return;
  try {
    if (const auto s = costs_->links_of(*device, true)) {
      placement_->know_link(space, {s->in.latency_ns, s->in.bytes_per_ns}, {s->out.latency_ns, s->out.bytes_per_ns});
      links_.emplace_back(space, costs_->key_of(*device));
    }
  } catch (const error&) {
    device.reset();
  }
}

// Connects two devices that have not failed to be measured; if connecting fails, both are reset as above.
void engine::connect(opened_gpu& a, opened_gpu& b) {
  if (!*a.device || !*b.device) return;
  devices::accelerator &first = **a.device, &second = **b.device;
  const devices::accelerator_facts of_first = first.facts(), of_second = second.facts();
  try {
    const bool there = first.connect(of_second), back = second.connect(of_first);
    if (!there || !back) return;
    if (costs_)
      if (const auto s = costs_->peers_of(first, second, true))
        placement_->know_peers(a.options.facts.space, b.options.facts.space, {s->in.latency_ns, s->in.bytes_per_ns},
                               {s->out.latency_ns, s->out.bytes_per_ns});
  } catch (const error&) {  // either may have failed
    for (opened_gpu* one : {&a, &b}) {
      one->device->reset();
      placement_->disconnect(one->options.facts.space);
    }
    return;
  }
  a.options.peers.push_back({b.options.facts.space, b.options.facts.name, of_second});
  b.options.peers.push_back({a.options.facts.space, a.options.facts.name, of_first});
  placement_->connect(a.options.facts.space, b.options.facts.space);
}

void engine::keep_costs() noexcept try {
  if (!costs_) return;
  costs_->keep(placement_->measured_times());
  for (const auto& [space, key] : links_) {
    const auto in = placement_->learned_link(host_space, space), out = placement_->learned_link(space, host_space);
    if (std::min(in.transfers, out.transfers) < transfers_to_correct) continue;
    costs_->correct(key, {{in.cost.latency_ns, in.cost.bytes_per_ns}, {out.cost.latency_ns, out.cost.bytes_per_ns}});
  }
} catch (...) {  // no memory: measured again next time
}

void engine::add_disk() {
  if (options_.memory_bytes == 0 || options_.spill_directory.empty()) return;
  disk_options d;
  d.file = devices::make_spill_file(options_.spill_directory);
  d.report_done = [this](task_record& t) {
    task_record* const one = &t;
    placement_->report_done({&one, 1}, nullptr);
  };
  d.sink = sink();
  d.lane = 2;
  d.keep_alive = weak_from_this();
  disk_ = make_disk(std::move(d), board_, *state_);
  supervise(disk_);
  placement_->spill_to(*disk_);
}

engine::~engine() {
  shutdown(std::chrono::steady_clock::now());
  placement_->settle_accounts();  // a body that was left behind may have ended since
  resume_abandoned();
  groups_.clear();
  gpus_.clear();
  state_->tiles->unpin_all();  // tiles with handles outlive the devices
  disk_.reset();
  control_.reset();
  // Records that futures still hold keep the link alive, one reference each.
  state_->references.fetch_add(static_cast<long>(state_->records.in_use()), std::memory_order_relaxed);
  state_->the_engine.store(nullptr, std::memory_order_release);
}

shutdown_report engine::shutdown(std::chrono::steady_clock::time_point deadline) {
  shutdown_report r = shut_down(deadline);
  resume_abandoned();
  return r;
}

void engine::refuse_child() {
  throw error(
      errc::runtime_stopped,
      "the runtime belongs to the process that this one was forked from, and none of its threads are here: make a "
      "runtime after the fork");
}

// Resumes coroutines that wait for abandoned tasks. No lock is held: a coroutine may do anything.
void engine::resume_abandoned() noexcept {
  for (const std::coroutine_handle<> waits : placement_->take_unresumed()) {
    try {
      waits.resume();
    } catch (...) {  // dropped, as for a task without a future
    }
  }
}

// Ends the tasks whose bodies have not returned: they are done for all threads that wait for them. Returns false if
// there are none: then only the threads are late, perhaps with an end that they have yet to report.
template <class Executor>
bool engine::leave_behind(Executor& e, shutdown_report& r) {
  bool any = false;
  placement_->with_turn([&] {
    const std::vector<task_record*> tasks = e.running();
    any = !tasks.empty();
    if (any) r.complete = false;
    for (const task_record* t : tasks)
      if (r.still_running.size() < 64) r.still_running.push_back(name_of(*t));
    placement_->leave_behind(tasks);
  });
  return any;
}

shutdown_report engine::shut_down(std::chrono::steady_clock::time_point deadline) {
  std::lock_guard hold(shutdown_lock_);
  if (down_) return last_report_;
  down_ = true;
  is_stopping_.store(true, std::memory_order_release);
  stop_streams();
  shutdown_report r;
  if (nodes_) nodes_->close_intake();
  bool quiet = placement_->wait_quiet(deadline);
  if (quiet) {
    placement_->combine_outside();
    quiet = placement_->wait_quiet(std::max(deadline, std::chrono::steady_clock::now() + stop_grace));
  }
  if (nodes_ && !nodes_->wait_released(deadline)) r.complete = false;
  if (nodes_ && !nodes_->bring_home(std::max(deadline, std::chrono::steady_clock::now() + stop_grace)))
    r.complete = false;
  placement_->close();
  if (!quiet || !placement_->is_quiet()) placement_->abandon_queued();
  if (nodes_) nodes_->stop();
  if (control_) control_->end_supervision();
  for (auto& g : groups_) g->request_stop();
  for (auto& g : gpus_) g->request_stop();
  const auto grace = std::max(deadline, std::chrono::steady_clock::now() + stop_grace);
  bool ends_are_late = false;
  for (auto& g : groups_)
    if (!g->wait_ended(grace)) ends_are_late = !leave_behind(*g, r) || ends_are_late;
  for (auto& g : gpus_)
    if (!g->wait_ended(grace)) ends_are_late = !leave_behind(*g, r) || ends_are_late;
  if (disk_) {
    disk_->request_stop();
    if (!disk_->wait_ended(grace)) r.complete = false;
  }
  placement_->wait_reexecuted();
  // The report of a task's end that is late abandons the tasks after it, and these have to be counted.
  if (ends_are_late) placement_->wait_quiet(std::chrono::steady_clock::now() + stop_grace);
  r.queued_abandoned = placement_->abandon_queued();  // with tasks that became ready while bodies were ending
  if (r.queued_abandoned != 0) r.complete = false;
  placement_->end_farewells();
  placement_->give_up_waiting();
  keep_costs();
  timers_->close();
  if (control_) {
    placement_->flush_trace();
    if (control_->sink()) control_->close_trace();
    control_->stop();
  }
  r.finished = placement_->finished();
  last_report_ = r;
  return r;
}

void engine::add_stream(const std::shared_ptr<stage::crew>& s) {
  std::lock_guard hold(streams_lock_);
  std::erase_if(streams_, [](const known_stream& x) { return x.of.expired(); });
  streams_.push_back({s->held_by(), s});
}

std::vector<engine::known_stream> engine::streams() {
  std::lock_guard hold(streams_lock_);
  return streams_;
}

void engine::stop_streams() {
  std::vector<known_stream> all;
  {
    std::lock_guard hold(streams_lock_);
    all.swap(streams_);
  }
  for (const known_stream& x : all) {
    const stage::holders::pass here(x.held_by);
    if (const std::shared_ptr<stage::crew> s = x.of.lock()) s->stop();
  }
}

int engine::slots() const {
  int n = 0;
  for (const auto& g : groups_) n += g->facts().slots;
  return n;
}
int engine::threads() const {
  int n = 0;
  for (const auto& g : groups_) n += g->threads();
  return n + static_cast<int>(gpus_.size()) + (disk_ ? 1 : 0);
}

load_report engine::load(std::span<const task_listener* const> owners) { return placement_->load(owners); }

runtime_report engine::report() {
  runtime_report r = placement_->report();
  r.threads = threads();
  std::erase_if(r.executors, [](const executor_report& e) { return e.kind == device_kind::node && e.slots == 0; });
  if (nodes_)
    if (executor_report gone = nodes_->gone(); gone.tasks != 0 || gone.bytes_moved != 0)
      r.executors.push_back(std::move(gone));
  r.bytes_pinned = state_->tiles->pinned_bytes();
  return r;
}

bool engine::help_with(task_record& t, const std::function<void()>& begin) {
  for (auto& g : groups_)
    if (g->help_with(t, begin)) return true;
  return false;
}

}  // namespace troupe::detail
