// What this file is for: a node's actor as placement and the transport see it; nodes that come and go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/actor.hpp"

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/behind.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

namespace {
// A link that has carried nothing yet: what a local network does. Learned from what it carries.
constexpr logic::edge_cost first_guess{50'000.0f, 1.0f};
// On an idle link so much may not have been acknowledged yet: what members tell each other unasked.
constexpr std::size_t idle_bytes = 8u << 10;
}  // namespace

// ---- the executor ---------------------------------------------------------------------------------------------------

void node_actor::run_tasks(std::span<task_record* const> tasks, attention) {
  std::lock_guard hold(queue_lock_);
  for (task_record* t : tasks) (is_internal(t->kind) ? errands_ : queue_).push_back(t);
  queued_count_.store(queue_.size() + errands_.size(), std::memory_order_relaxed);
}

std::size_t node_actor::take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(queue_lock_);
  std::size_t n = 0;
  for (auto t = queue_.end(); t != queue_.begin() && n < room.size();) {
    if (!wanted(**--t)) continue;
    room[n++] = *t;
    t = queue_.erase(t);
  }
  queued_count_.store(queue_.size() + errands_.size(), std::memory_order_relaxed);
  return n;
}

void node_actor::after_turn() {
  std::unique_lock hold(lock_);
  if (!may_gather()) send_some();
  tell(hold);
  if (saving_.load(std::memory_order_acquire) != 0) go_on_saving();
}

// What has ended, outside of the lock.
void node_actor::tell(std::unique_lock<std::mutex>& hold) {
  std::vector<task_record*> done;
  done.reserve(done_.size());  // as many will come again
  done.swap(done_);
  const std::vector<task_record*> returned = std::exchange(returned_, {});
  const auto orders = std::exchange(orders_, {}), refused = std::exchange(refused_lends_, {});
  const auto unlends = std::exchange(unlends_, {});
  const auto spoilt = std::exchange(spoilt_, {});
  auto pushes = std::exchange(pushes_, {});
  const auto overtaken = std::exchange(overtaken_, {});
  const auto turned_away = std::exchange(refused_, {});
  hold.unlock();
  start_pushes(std::move(pushes));
  settle_lends(orders, refused, unlends);
  if (!done.empty()) placement_.report_done(done, this);
  if (!spoilt.empty())
    placement_.report_lost(*this, spoilt,
                           std::make_exception_ptr(error(errc::out_of_memory, "it was short of memory")));
  if (!overtaken.empty()) placement_.report_overtaken(*this, overtaken);
  placement_.note_refusals(turned_away);
  if (!returned.empty()) placement_.report_returned(returned);
  tell_saved();
  idle_.notify_all();
  if (leaving_.load(std::memory_order_relaxed)) save_all();
}

executor_report node_actor::report() const {
  executor_report r;
  {
    std::lock_guard hold(lock_);
    r.slots = is_there() ? slots_ : 0;
    r.memory_bytes = memory_bytes_;
  }
  r.name = peer_name();
  r.kind = facts_.kind;
  r.queued = unstarted();
  counts_.add_to(r);
  return r;
}

void node_actor::counters::add_to(executor_report& r) const {
  r.tasks += tasks.load(std::memory_order_relaxed);
  r.failed += failed.load(std::memory_order_relaxed);
  r.chained += behind.load(std::memory_order_relaxed);
  r.busy += std::chrono::nanoseconds(busy_ns.load(std::memory_order_relaxed));
  r.bytes_out += bytes_in.load(std::memory_order_relaxed);
  r.bytes_moved += bytes_in.load(std::memory_order_relaxed) + bytes_out.load(std::memory_order_relaxed);
}

bool node_actor::is_idle() {
  {
    std::lock_guard hold(lock_);
    if (!session_ || under_way_ != 0 || queued() != 0 || session_->unsent() > idle_bytes) return false;
  }
  std::lock_guard hold(share_lock_);
  return out_share_.is_idle() && home_share_.is_idle();
}

void node_actor::add_gone(executor_report& r) const {
  std::lock_guard hold(lock_);
  gone_.add_to(r);
  if (!is_there()) counts_.add_to(r);
}

std::string node_actor::peer_name() const { return facts_.shown_name(); }

// ---- coming and going -----------------------------------------------------------------------------------------------

void node_actor::join(std::shared_ptr<net::session> s, const wire::card& c) {
  const int slots = std::max<int>(1, static_cast<int>(c.threads));
  {
    std::lock_guard hold(lock_);
    facts_.label->set(s->peer().name);
    session_ = std::move(s);
    slots_ = slots;
    ++joined_;
    gone_.each_with(counts_, [](auto& all, auto& last) { all.fetch_add(last.exchange(0)); });
    refuses_.store(false);
    {
      std::lock_guard sharing(share_lock_);
      out_share_ = home_share_ = {};
    }
    memory_bytes_ = c.memory_bytes;
    takes_pushes_ = c.lends;
    std::lock_guard naming(id_lock_);
    id_ = name_of(session_->peer().id);
  }
  there_.store(true, std::memory_order_release);
  placement_.admit_node(*this, slots, first_guess, first_guess, c.lends, c.resources);
}

void node_actor::meet(std::span<const std::shared_ptr<node>> all) {
  for (const auto& n : all) all_.push_back(static_cast<node_actor*>(n.get()));
}

void node_actor::suspect(bool is) { placement_.hold_back(*this, is || refuses_.load()); }

// As with a device that fails for good: what was done is accounted for, what is lost is marked, the rest is placed again.
void node_actor::lose(std::exception_ptr why) {
  std::vector<std::pair<array_core*, std::uint32_t>> copies;
  std::vector<std::pair<array_core*, std::uint32_t>> lost;
  std::deque<task_record*> queue, errands;
  std::vector<task_record*> under_way;  // whose attempts are counted below
  {
    std::unique_lock hold(lock_);
    there_.store(false, std::memory_order_release);
    leaving_.store(false, std::memory_order_relaxed);
    session_.reset();
    while (!pushes_.empty()) drop_pushes(pushes_.back().job);
    {
      std::lock_guard naming(id_lock_);
      id_.reset();
    }
    refused_lends_.insert(refused_lends_.end(), waiting_lends_.begin(), waiting_lends_.end());
    waiting_lends_.clear();
    for (const auto& [id, known] : arrays_)
      for (const auto& [tile, c] : known.tiles)
        if (c.dirty) lost.emplace_back(known.core, tile);
    const std::vector<task_record*> done = std::exchange(done_, {}), returned = std::exchange(returned_, {});
    lost.insert(lost.end(), spoilt_.begin(), spoilt_.end());
    spoilt_.clear();
    overtaken_.clear();
    const auto turned_away = std::exchange(refused_, {});
    for (const job& j : jobs_)
      if (j.task && !is_internal(j.task->kind)) under_way.push_back(j.task);
    hold.unlock();
    // What they wrote is among what is lost.
    if (!done.empty()) placement_.report_done(done, this);
    placement_.note_refusals(turned_away);
    if (!returned.empty()) placement_.report_returned(returned);
    placement_.make_extras(under_way);
    tell_saved();  // what has come is here
    hold.lock();
    copies = drop_copies();
  }
  for (node_actor* n : all_)
    if (n != this) n->lender_gone(*this);
  placement_.report_failure(*this, lost, why, true);

  std::unique_lock hold(lock_);
  arrays_.clear();
  for (job& j : jobs_) {
    if (!j.task) continue;
    task_record& t = *j.task;
    if (j.data) j.data->context.roll_back();
    take_back_lends(j);
    const bool again = !is_internal(t.kind) && may_run_again(t, j.begun);
    if (!is_internal(t.kind)) count_lost(j, !again);
    give_job(j);
    ++setbacks_;
    if (is_internal(t.kind)) {
      end_errand(t, t.kind == task_kind::forget ? nullptr : lost_with(t, why));
    } else if (again) {
      t.phase.fetch_and(~(phase_mask | behind_mask), std::memory_order_acq_rel);  // waiting again
      returned_.push_back(&t);
    } else {
      const bool once = t.kernel->repeat == purity::once;
      const std::string at = peer_name();
      if (!once && is_overdue(t)) {
        end_task(t, stopped_error(t, at), 0);
        continue;
      }
      const errc code = once ? errc::unknown_outcome : errc::node_lost;
      const error ended(code, at +
                                  (once ? " went while it had a task that must run once only: "
                                        : " went, as others did that ran this task, which is not tried again: ") +
                                  text_of(why));
      const int attempts = once ? 1 : t.extra->attempt.load(std::memory_order_relaxed) - 1;
      end_task(t, task_error(t, at, attempts, std::make_exception_ptr(ended), code), 0);
    }
  }
  {
    std::lock_guard queued(queue_lock_);
    queue.swap(queue_);
    errands.swap(errands_);
    errands.insert(errands.end(), put_off_.begin(), put_off_.end());
    put_off_.clear();
    queued_count_.store(0, std::memory_order_relaxed);
  }
  for (task_record* t : errands) {
    claim(*t);
    end_errand(*t, t->kind == task_kind::forget ? nullptr : lost_with(*t, why));
  }
  for (task_record* t : queue) {
    ++setbacks_;
    returned_.push_back(t);
  }
  facts_.label->set("");
  tell(hold);
  release_saved(copies);
}

std::exception_ptr node_actor::lost_with(const task_record& t, const std::exception_ptr& why) const {
  const access& x = t.accesses[0];
  return std::make_exception_ptr(error(errc::data_lost, "array '" + x.array->spec.name + "', tile " +
                                                            std::to_string(x.tile) + ": its only copy went with " +
                                                            peer_name() + ": " + text_of(why)));
}

// ---- from the transport ---------------------------------------------------------------------------------------------

void node_actor::frame(std::span<const std::byte> bytes) {
  net::reader from(bytes);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  if (!session_) return;
  switch (what) {
    case wire::kind::done:
      for (const wire::task_end& e : wire::take_done(from)) {
        job* const j = find_told_job(e.id);
        if (!j || j->end) throw error(errc::bad_frame, "a task ended twice");
        count_bodies(*j, e);
        finish(*j, e);
      }
      break;
    case wire::kind::want:
      serve_wants(from);
      break;
    case wire::kind::begun:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (job* j = find_told_job(id)) j->begun = true;
      break;
    case wire::kind::tried:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (job* j = find_told_job(id)) count_tried(*j);
      break;
    case wire::kind::unfilled:
      note_unfilled(from);
      break;
    case wire::kind::leaving:
      if (leaving_.exchange(true)) break;
      refuses_.store(true);
      hold.unlock();
      placement_.hold_back(*this, true);
      hold.lock();
      break;
    case wire::kind::cannot:
      while (from.left() != 0) {
        const std::uint64_t number = from.varint();
        const errc code = wire::take_code(from);
        const error why(code, from.text(wire::text_max));
        if (const auto c = copies_.find(number); c != copies_.end()) {
          if (c->second.writing) throw error(errc::bad_frame, "what is coming is refused");
          copy_arrived(number, false);
          continue;
        }
        job* const j = find_told_job(number);  // it may have ended because of another part of it
        if (!j) continue;
        if (is_internal(j->task->kind))
          come_home(*j, std::make_exception_ptr(why));
        else
          finish(*j, {.id = number,
                      .how = wire::outcome::failed,
                      .attempts = j->end ? j->end->attempts : 1,
                      .code = code,
                      .text = why.what()});
      }
      break;
    default:
      throw error(errc::bad_frame, "a message of an unknown kind");
  }
  send_some();
  tell(hold);
}

std::shared_ptr<node> make_node(executor_facts f, placement& p, wait_board& b, house_link& link,
                                std::function<void(std::function<void()>)> soon) {
  f.label = std::make_shared<node_label>();
  return std::make_shared<node_actor>(std::move(f), p, b, link, std::move(soon));
}

}  // namespace troupe::detail
