// What this file is for: a node's actor as placement and the transport see it; nodes that come and go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/actor.hpp"

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

namespace {
// Costs of a link that has carried nothing yet: those of a local network. They are learned from what it carries.
constexpr logic::edge_cost first_guess{50'000.0f, 1.0f};
// Round trip from which a node is far away: a step takes a message less, and processors are busy for 0.1 to 0.2 ms
// more (measured with three nodes on two cores).
constexpr std::chrono::microseconds far_from{500};
// Bytes that may not have been acknowledged yet on an idle link: members tell each other things unasked.
constexpr std::size_t idle_bytes = 8u << 10;
}  // namespace

// ---- the executor ---------------------------------------------------------------------------------------------------

void node_actor::run_tasks(std::span<task_record* const> tasks, attention) { queue_.add(tasks); }

std::size_t node_actor::take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
  return queue_.take_back(room, wanted);
}

executor_report node_actor::report() const {
  executor_report r = report_of_facts();
  {
    std::lock_guard hold(lock_);
    r.slots = is_there() ? occupant_.slots() : 0;
    r.memory_bytes = occupant_.memory_bytes();
  }
  counts_.add_to(r);
  return r;
}

bool node_actor::is_idle() {
  {
    std::lock_guard hold(lock_);
    if (!occupant_.has_session() || jobs_.under_way() != 0 || queued() != 0 ||
        occupant_.session()->unsent() > idle_bytes)
      return false;
  }
  return meter_.is_idle();
}

void node_actor::add_gone(executor_report& r) const {
  std::lock_guard hold(lock_);
  counts_.add_gone_to(r, is_there());
}

// ---- coming and going -----------------------------------------------------------------------------------------------

void node_actor::join(std::shared_ptr<net::session> s, const wire::node_descriptor& c) {
  int slots = 0;
  {
    std::lock_guard hold(lock_);
    facts_.label->set(s->peer().name);
    occupant_.join(std::move(s), static_cast<int>(c.threads), c.memory_bytes);
    slots = occupant_.slots();
    counts_.join();
    departure_.forget();
    meter_.clear();
    pushes_.allow(c.lends);
  }
  occupant_.show();
  is_far_.store(false, std::memory_order_relaxed);
  placement_.admit_node(*this, slots, first_guess, first_guess, c.lends, c.resources);
}

void node_actor::know_others(std::chrono::nanoseconds busy) { placement_.know_others(*this, busy); }

void node_actor::know_round_trip(std::chrono::nanoseconds t) {
  const bool is = t >= far_from;
  if (is_far_.exchange(is, std::memory_order_relaxed) != is) placement_.note_far(*this, is);
}

std::uint32_t node_actor::learned_transfers() {
  return placement_.learned_link(host_space, facts_.space).transfers +
         placement_.learned_link(facts_.space, host_space).transfers;
}

void node_actor::correct_link(std::uint64_t bytes, std::chrono::nanoseconds there, std::chrono::nanoseconds back,
                              std::chrono::nanoseconds round_trip) {
  placement_.correct_link(facts_.space, bytes, there, back, round_trip);
}

void node_actor::meet(std::span<const std::shared_ptr<node>> all) {
  for (const auto& n : all) all_.push_back(static_cast<node_actor*>(n.get()));
}

void node_actor::suspect(bool is) { placement_.pause(*this, is || departure_.refuses()); }

// A node that has gone is a device that fails for good: what was done is accounted for, what is lost is marked, the
// rest is placed again.
void node_actor::lose(std::exception_ptr why) {
  report_batch before;
  report_batch::failure gone{{}, why, true};
  {
    std::lock_guard hold(lock_);
    occupant_.leave();
    departure_.end();
    pushes_.drop_all();
    lends_.refuse_waiting();
    known_.each_dirty([&](array_core* a, std::uint32_t tile, bool) { gone.lost.emplace_back(a, tile); });
    before = report_.take();
    // Tiles that the node has spoiled or overwritten are lost with the rest.
    gone.lost.insert(gone.lost.end(), before.lost.begin(), before.lost.end());
    before.lost.clear();
    before.overwritten_inputs.clear();
    // The attempts of calls that are under way are counted below.
    jobs_.each([&](const job& j) {
      if (!is_internal(j.task->kind)) before.need_extra.push_back(j.task);
    });
  }
  placement_.report(*this, std::move(before));
  tell_saved();  // what has come is here
  std::vector<tile_of> copies;
  {
    std::lock_guard hold(lock_);
    copies = copies_.drop();
  }
  for (node_actor* n : all_)
    if (n != this) n->lender_gone(*this);
  report_batch failure;
  failure.failed = std::move(gone);
  placement_.report(*this, std::move(failure));

  std::unique_lock hold(lock_);
  known_.clear();
  jobs_.each([&](job& j) { lose_job(j, why); });
  turn_away(why);
  facts_.label->set("");
  outgoing out = take_outgoing();
  hold.unlock();
  tell(std::move(out));
  release_saved(copies);
}

// The node has gone while it had the job's task, which is placed again where that is harmless and ends otherwise.
void node_actor::lose_job(job& j, const std::exception_ptr& why) {
  task_record& t = *j.task;
  if (j.data) j.data->context.roll_back();
  take_back_lends(j);
  const bool again = !is_internal(t.kind) && may_run_again(t, j.begun);
  if (!is_internal(t.kind)) count_lost(j, !again);
  give_job(j);
  ++failure_epoch_;
  if (is_internal(t.kind)) return end_internal(t, t.kind == task_kind::forget ? nullptr : lost_with(t, why));
  if (again) return come_back(t);
  const bool once = t.kernel->repeat == purity::once;
  const std::string at = peer_name();
  if (!once && is_overdue(t)) return end_task(t, stopped_error(t, at), 0);
  const errc code = once ? errc::unknown_outcome : errc::node_lost;
  const error ended(code,
                    at +
                        (once               ? " went while it had a task that must run once only: "
                         : is_graph_part(t) ? " went while it ran its part of a graph: "
                                            : " went, as others did that ran this task, which is not tried again: ") +
                        text_of(why));
  const int attempts = once ? 1 : t.extra->attempt.load(std::memory_order_relaxed) - 1;
  end_task(t, task_error(t, at, attempts, std::make_exception_ptr(ended), code), 0);
}

// ---- from the transport ---------------------------------------------------------------------------------------------

void node_actor::frame(std::span<const std::byte> bytes) {
  check_fault();
  net::reader from(bytes);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  if (!occupant_.has_session()) return;
  switch (what) {
    case wire::kind::done:
      for (wire::task_end& e : wire::take_done(from)) {
        job* const j = jobs_.find_told(e.id);
        if (!j || j->end) throw error(errc::protocol_error, "a task ended twice");
        count_bodies(*j, e);
        take_written(*j, e);
        finish(*j, e);
      }
      break;
    case wire::kind::fetch_in:
      serve_fetches(from);
      break;
    case wire::kind::begun:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (job* j = jobs_.find_told(id)) j->begun = true;
      break;
    case wire::kind::tried:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (job* j = jobs_.find_told(id)) count_tried(*j);
      break;
    case wire::kind::unfilled:
      note_unfilled(from);
      break;
    case wire::kind::leaving:
      if (!departure_.begin()) break;
      hold.unlock();
      placement_.note_leaving(*this);
      hold.lock();
      break;
    case wire::kind::not_sent:
      take_not_sent(from);
      break;
    default:
      throw error(errc::protocol_error, "a message of an unknown kind");
  }
  outgoing out = send_and_take();
  hold.unlock();
  tell(std::move(out));
}

// Transfers that the node cannot make, each with its error.
void node_actor::take_not_sent(net::reader& from) {
  while (from.left() != 0) {
    const std::uint64_t number = from.varint();
    const errc code = wire::take_code(from);
    const error why(code, from.text(wire::text_max));
    if (const copies_home::copy* const c = copies_.find(number)) {
      if (c->writing) throw error(errc::protocol_error, "what is coming is refused");
      if (job* const j = copy_arrived(number, false)) finish_awaited(*j);
      continue;
    }
    job* const j = jobs_.find_told(number);  // it may have ended because of another part of it
    if (!j) continue;
    if (j->carried_by != 0 || !j->carries.empty())
      throw error(errc::protocol_error, "a partial that cannot be sent and is in a sum");
    if (is_internal(j->task->kind))
      come_home(*j, std::make_exception_ptr(why));
    else
      finish(*j, {.id = number,
                  .how = wire::outcome::failed,
                  .attempts = j->end ? j->end->attempts : 1,
                  .code = code,
                  .text = why.what()});
  }
}

std::shared_ptr<node> make_node(executor_facts f, placement& p, wait_table& b, runtime_state& rt,
                                std::function<void(std::function<void()>)> soon, failure_sink give_up) {
  f.label = std::make_shared<node_label>();
  return std::make_shared<node_actor>(std::move(f), p, b, rt, std::move(soon), std::move(give_up));
}

}  // namespace troupe::detail
