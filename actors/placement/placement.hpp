// What this file is for: the actor that owns the graph: orders tasks, chooses executors, retires what is done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   client --submitted--> [inbox] <--done-- executor
//                            |  whoever needs a decision and finds the turn free takes it
//                            v
//                        placement --run_tasks--> executor
//
// Placement has no thread. Its state has one owner at a time: the holder of the turn. Taking the turn never blocks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/report.hpp>

#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/data/host_budget.hpp"
#include "actors/logic/lineage/lineage.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/spill_disk.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/inbox.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/trace.hpp"
#include "actors/protocol/transfer_reports.hpp"
#include "actors/protocol/wait_board.hpp"

namespace troupe::detail {

class placement final : private logic::dependencies::surroundings {
 public:
  placement(const options&, house_link&, wait_board&);
  ~placement();

  // ---- before the first task ----------------------------------------------------------------------------------------
  void add(executor&);
  void trace_to(trace_sink*, int lane);
  /// What was measured before: copies between the host and a space, run times of an earlier runtime.
  void know_link(memory_space, logic::edge_cost in, logic::edge_cost out);
  /// Copies between two devices' spaces are direct; how long they take, if that was measured before.
  void connect(memory_space, memory_space);
  void disconnect(memory_space s) { assignment_.disconnect(s); }
  void know_peers(memory_space a, memory_space b, logic::edge_cost into_a, logic::edge_cost into_b);
  void know_time(const logic::remembered_time& t) { assignment_.know_time(t); }
  /// Where tiles go for which the budget has no room.
  void spill_to(spill_disk& d) { disk_ = &d; }
  /// How placement has `look_again` called after a time.
  void use_alarm(std::function<void(std::chrono::milliseconds)> set) { set_alarm_ = std::move(set); }
  /// Who carries out what takes long, instead of a thread for each; all of it has ended before this does.
  void use_aside(std::function<void(std::function<void()>)> run) { aside_run_ = std::move(run); }

  /// How placement finds out that tasks wait for what the calling thread holds: then it is not held back itself.
  void use_hold_up(std::function<bool()> holds) { holds_up_ = std::move(holds); }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// `inside`: the caller is a task, which is never held back at the in-flight bound.
  void submit(task_record*, bool inside);
  /// Waits until fewer tasks are in flight than may be; false if that is not so in time.
  bool wait_for_room(std::chrono::steady_clock::time_point);
  /// Throws runtime_stopped after close().
  void check_open() const {
    if (closed()) [[unlikely]] refuse_closed();
  }
  /// Some tasks can never run here, for want of memory: then `check_size` throws error(out_of_memory) with the sizes.
  bool limits_size() const { return gated_; }
  void check_size(const task_record&) const;
  /// Bodies that have returned. Takes the turn if it is free, else leaves mail.
  void report_done(std::span<task_record* const>, executor* self);
  /// Tasks that an executor was given and could not run: claimed by nobody again.
  void report_returned(std::span<task_record* const>);
  /// Of tasks that are about to be returned.
  void report_overtaken(const executor&, std::span<const overtaken_tile>);
  /// Executors write into task_record::extra of tasks that they have, and who follows them may be looked at here meanwhile:
  /// so it is made here.
  void make_extras(std::span<task_record* const>);
  /// They come back and are not to go there again; if nobody else takes them they end with that error, if there is one.
  void note_refusals(std::span<const std::pair<task_record*, std::exception_ptr>>);
  /// For `runtime_report::remarks`; what has been said is not said again, and nothing once there are many.
  void remark(std::string text);
  /// An executor's memory is gone, with the only copies of these tiles (array, tile); nothing is copied directly from or
  /// to it any more. `for_good`: it gets no more tasks.
  void report_failure(const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                      std::exception_ptr why, bool for_good);
  /// A node is there, and may be given tasks; it was added without one. Costs of copies to and from it, and whether other
  /// nodes may copy from it; quantities that it has of its own.
  void admit_node(executor&, int slots, logic::edge_cost in, logic::edge_cost out, bool lends,
                  const std::vector<resource>& has = {});
  /// What is being made again after a loss has been, or cannot be.
  void wait_remade();
  /// Brings home what only that node has of these, which nothing under way there writes. Gives how many are on their way.
  std::size_t fetch_home(const executor&, std::span<const std::pair<array_core*, std::uint32_t>>);
  /// Versions of tiles that the node has sent home while it goes on; `times`: how often a node had joined in that place
  /// when they were asked for. Who has written them has been accounted for.
  void report_saved(const executor&, std::uint64_t times, std::span<saved_tile>);
  /// Those have not come.
  void report_not_saved(std::span<const std::pair<array_core*, std::uint32_t>>);
  /// A node is given nothing new for now, or again.
  void hold_back(const executor&, bool);
  /// A node has told how long the work of others will keep it busy.
  void know_others(const executor&, std::chrono::nanoseconds);
  /// What there is to do here.
  struct load_report {
    int slots = 0, busy = 0;
    std::uint64_t queued = 0;                      // tasks that are ready and have not begun
    std::vector<std::chrono::nanoseconds> others;  // for each: until what is not theirs is done, as predicted
  };
  /// `owners`: who listens to the tasks of other nodes.
  load_report load(std::span<const task_listener* const> owners);
  /// The executor goes on, and has spoilt the only copies of these.
  void report_lost(const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                   std::exception_ptr why);
  /// A copy took so long, from its turn on the link until it had arrived.
  void report_transfer(memory_space from, memory_space to, std::uint64_t bytes, float ns) {
    transfers_.add(from, to, bytes, ns);
  }
  /// So many bytes on an idle link have taken that, to the node and back, and a round trip; see cost_model::correct.
  void correct_link(memory_space node, std::uint64_t bytes, std::chrono::nanoseconds there, std::chrono::nanoseconds back,
                    std::chrono::nanoseconds round_trip);
  void drop(array_core*);
  /// The last handle of borrowed memory is going: `t`, a farewell, comes after all tasks that use the array, and ends when
  /// that is gone, so that its memory is the caller's again; at once after `end_farewells`.
  void bid_farewell(task_record& t);
  /// The runtime ends, and waits for no array any more.
  void end_farewells();
  /// Something that waits for time to pass may be due.
  void look_again();
  /// Any thread, whatever it holds: a task has been claimed by who has asked it to stop.
  void note_cancelled();
  /// Decides what there is to decide, if there is any and the turn is free. `self`: the caller is about to look for
  /// work at that executor. True if something was done.
  bool take_turn(executor* self);
  /// The same for a thread outside all bodies that waits.
  bool take_turn_waiting();
  bool has_mail() const { return inbox_.maybe() || assignment_.kept() != 0; }
  /// Any thread: bodies have begun to wait, or go on; see executor::waiting. Who takes the next turn looks.
  void waits_changed() { waits_changed_.store(true, std::memory_order_seq_cst); }
  /// There is mail, and nobody who is awake seems to be coming for it.
  bool has_stale_mail(std::uint64_t now) const { return has_mail() && is_stale(now); }
  /// Another executor has been given more than it gets done: worth a look for `idle`, which may relieve it.
  bool is_work_elsewhere(const executor* idle) const;
  /// Nobody has taken a turn for a while, or is in one.
  bool is_stale(std::uint64_t now) const {
    return now - last_turn_.load(std::memory_order_relaxed) > stale_ticks_ && !turn_.load(std::memory_order_relaxed);
  }
  /// Nobody else has taken a turn since this thread did.
  bool took_last_turn() const { return last_taker_.load(std::memory_order_relaxed) == this_thread_mark(); }
  /// Threads of executors that are running or deciding.
  void became_active() { active_.fetch_add(1, std::memory_order_seq_cst); }
  void became_idle() { active_.fetch_sub(1, std::memory_order_seq_cst); }
  int active() const { return active_.load(std::memory_order_seq_cst); }
  bool has_mail_for_sleeper() const { return inbox_.count() != 0; }

  bool is_quiet() const {
    return finished_.load(std::memory_order_acquire) == submitted_.load(std::memory_order_acquire) &&
           farewells_left_.load(std::memory_order_seq_cst) == 0;
  }
  /// Waits until nothing is in flight, and no borrowed memory without a handle.
  bool wait_quiet(std::chrono::steady_clock::time_point);
  bool would_deadlock(task_record& inside, task_record& awaited);
  /// Nobody waits for this host access any more: its place in the order stays, and what it was to change is as before.
  void abandon_access(task_record&);
  /// True if the awaited task comes after one of these, which are host accesses whose views are open; null: any task does.
  bool is_behind(std::span<task_record* const> open, const task_record* awaited);
  explanation explain(task_record&);
  runtime_report report();
  std::vector<logic::remembered_time> measured_times();
  /// What copies from one space to another are believed to cost; with the turn taken for a moment.
  logic::cost_model::learned_edge learned_link(memory_space from, memory_space to);
  const std::vector<executor_facts>& facts() const { return assignment_.facts(); }
  logic::executor_set all() const { return assignment_.all(); }
  logic::executor_set able_to_run(const kernel_info& k) const { return assignment_.able_to_run(k); }
  void check_resources(const std::vector<resource>& r) const { admission_.check(r); }

  /// No task may be submitted any more. What has not started fails with runtime_stopped; gives their number.
  std::uint64_t abandon_queued();
  /// Their bodies run and are left behind: they and all that comes after them are done, with runtime_stopped. Only with the
  /// turn held and after `abandon_queued`.
  void leave_behind(std::span<task_record* const>);
  /// Coroutines whose tasks will not resume them; the caller is to do so.
  std::vector<std::coroutine_handle<>> take_unresumed();
  /// Nobody waits any more for what is in flight.
  void give_up_waiting();
  void close() { closed_.store(true); }
  /// Gives back what is done, so that records in use are those that futures hold.
  void settle_accounts();
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// Gives idle memory back; called when nothing has happened for a while.
  /// False if there is more to give, which is in use.
  bool tidy();
  void flush_trace();
  /// Runs `f` while no task can retire.
  void with_turn(const std::function<void()>& f);

  std::uint64_t finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  // dependencies::surroundings
  task_record* make_settle(array_core&, reduction&) override;
  void fail(task_record&, std::exception_ptr, bool own) override;

  static const void* this_thread_mark() {
    thread_local const char mark = 0;
    return &mark;
  }

  // With the turn.
  bool try_turn() { return !turn_.load(std::memory_order_relaxed) && !turn_.exchange(true, std::memory_order_seq_cst); }
  void hold_turn();
  void leave_turn() {
    if (told_nodes_.empty() && told_listeners_.empty() && to_save_.empty())
      turn_.store(false, std::memory_order_seq_cst);
    else
      leave_and_tell();
  }
  // nodes.cpp
  void leave_and_tell();
  void choose_sources(task_record&, memory_space where);
  memory_space source_of(const array_core&, std::uint32_t tile, tile_home&, memory_space where, bool whole);
  bool gives(memory_space, memory_space to) const;
  void told(executor&);
  void told(task_listener&);
  bool serve(executor* self, bool client = false);  // drains and decides; leaves the turn
  void handle(mail);
  void look_at_waits();
  // tasks.cpp
  void order(task_record&);
  void make_ready(task_record&);
  void admit(task_record&);
  void admit_waiting(std::uint64_t now);
  void admit_some(std::uint64_t now);
  memory_space space_of(const held_device&) const;
  bool set_aside_for_data();
  bool must_wait_for_data(task_record&);
  bool must_wait_for_room(task_record&);
  bool has_room_now(const task_record&);
  void place_again(task_record&);
  void place_without_setback(task_record&);
  // chains.cpp
  void hand_to_device(std::size_t executor);
  void count_ahead(task_record& first, task_record& next, bool data);
  bool follows_surely(task_record& first, const task_record& next, bool data);
  void count_not_ahead(task_record& first);
  void lead_no_more(task_record&);
  void send_held_back(std::size_t executor);
  int next_to_send(int from) const {
    return std::min(assignment_.next_outgoing(from), holding_back_.next(static_cast<std::size_t>(from)));
  }
  bool send_behind(task_record&);
  bool has_ended_early(task_record&);
  void note_setback(const task_record&);
  void assign(task_record&);
  void admit_again(task_record&);
  void lose_overtaken(const task_record&);
  void refuse(task_record&, std::exception_ptr);
  void number(task_record&);
  void hand_over(task_record&, memory_space);
  // lineage_saving.cpp
  void take_home(memory_space from, saved_tile&);
  void save_some();
  // lineage_log.cpp
  using value_key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
  static value_key key_of(const logic::value& v) { return {v.array, v.tile, v.version}; }
  void put_aside(array_core&, std::uint32_t tile, bool overwritten);
  void drop_unwanted();
  void note_overwriting(task_record&, memory_space where);
  void note_at_home(const task_record&, memory_space where);
  void note_not_run(task_record&);
  void note_read(const task_record&);
  bool is_node(const task_record& t) const {
    return (t.marks & mark_sent) && assignment_.facts()[t.executor].kind == device_kind::node;
  }
  void note_ran(task_record&, memory_space where);
  void forget_in_log(array_core&);
  std::shared_ptr<std::byte[]> copy_of(array_core&, std::uint32_t tile);
  std::vector<std::pair<array_core*, std::uint32_t>> make_again(
      const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost);
  struct overtaken {
    const executor* at;
    array_core* array;
    std::uint32_t tile;
  };
  // absent.cpp
  void look_up_scope(task_record& t) {
    if (t.extra && t.extra->resolved_at != 0) look_up_nodes(t);
  }
  void look_up_nodes(task_record&);
  bool wait_for_node(task_record&, const std::exception_ptr& why);
  void end_of_wait(task_record&, const std::exception_ptr& why);
  void try_absent();
  void look_at_absent(std::uint64_t now);
  void ring_at(std::uint64_t due, std::uint64_t now);
  std::exception_ptr nobody_left(const task_record&) const;
  std::exception_ptr no_quantity(const task_record&) const;
  std::string what_has_gone(const task_record&) const;
  // peer_transfers.cpp
  enum class borrowed { waits, has, refused };
  borrowed borrow(task_record&, array_core&, std::uint32_t tile, tile_home&);
  void lose(const executor&, std::span<const std::pair<array_core*, std::uint32_t>>, const std::exception_ptr& why);
  void rescue(array_core&, std::uint32_t tile, tile_home&, std::exception_ptr lost);
  void account_for_data(task_record&);
  bool bring_home(array_core&);
  void forget_copies(array_core&);
  void free(array_core&);
  void end_farewell(task_record&);
  // Host memory under a budget; see host_memory.cpp.
  struct room_request {
    task_record* task;
    std::uint64_t number;
    std::exception_ptr failed;  // a tile that was to make room for it could not leave
  };
  enum class answer { granted, waits, refused };
  bool make_room();
  answer answer_to(room_request&, std::uint64_t& promised);
  void evict(tile_place&, const room_request&);
  bool take_room(task_record&, std::span<const logic::host_budget::need>);
  void give_room_back(task_record&);
  void move(tile_place&, task_record*);
  void account_for_move(task_record&);
  void went_home(const access&);
  bool fail_for_room(task_record&, std::exception_ptr);
  void fail_beside(const task_record& inside, task_record& awaited);
  void relieve_others(executor& idle);
  void place_anew();
  bool may_go_elsewhere(const task_record&);
  void retire(task_record&);
  void note_chunk(const task_record&);
  void work_off();
  void abandon(task_record&);
  bool give_up(task_record&);
  void free_if_unused(array_core&);
  void publish();
  void tell_waiters(std::uint64_t finished);
  std::uint64_t in_flight() const;
  [[noreturn]] static void refuse_closed();
  // Where the bound is large, some tasks more or less do not matter.
  bool may_be_at_bound() const {
    return in_flight_max_ < 64 * look_every || submitted_.load(std::memory_order_relaxed) % look_every == 0;
  }
  void wait_at_bound();
  bool leaves_mail(std::uint64_t now);
  void give_records_back();

  house_link& link_;
  wait_board& board_;
  const house_clock clock_;
  // The in-flight bound and stale mail are looked at once in so many submissions; see options::tasks_in_flight_max.
  static constexpr std::uint64_t look_every = 16;
  const std::size_t in_flight_max_;
  const std::size_t drained_;  // so few are in flight when those who are held back go on
  const double replay_max_ns_;
  bool gated_;  // some executor has memory of its own, or there is a budget: tasks may have to wait for data

  inbox inbox_;
  alignas(64) std::atomic<bool> turn_{false};
  std::atomic<std::uint64_t> last_turn_{0};  // ticks
  std::atomic<const void*> last_taker_{nullptr};
  const std::uint64_t stale_ticks_, look_ticks_;
  alignas(64) std::atomic<int> active_{0};
  alignas(64) std::atomic<std::uint64_t> submitted_{0};
  alignas(64) std::atomic<std::uint64_t> finished_{0};
  std::atomic<bool> closed_{false}, waits_changed_{false};
  std::atomic<int> quiet_waiters_{0}, bound_waiters_{0};
  std::atomic<std::size_t> farewells_left_{0};
  std::mutex farewells_lock_;
  std::vector<task_record*> farewells_;  // unfinished ones
  bool farewells_over_ = false;
  std::atomic<bool> given_up_{false};
  std::mutex quiet_lock_;
  std::condition_variable quiet_;
  transfer_reports transfers_;

  // Owned by the holder of the turn.
  logic::dependencies deps_;
  logic::assignment assignment_;
  logic::admission admission_;
  std::function<void(std::chrono::milliseconds)> set_alarm_;
  std::function<bool()> holds_up_;  // any thread calls it
  std::function<void(std::function<void()>)> aside_run_;  // null: threads
  std::uint64_t alarm_ = 0;                               // when it will ring, in ticks
  struct absent {
    task_record* task;
    std::uint64_t due;  // in ticks
    std::exception_ptr why;
  };
  std::vector<absent> absent_;                // tasks that wait for a node to come
  std::atomic<std::size_t> absent_count_{0};  // the same, for any thread
  bool absent_over_ = false;                  // one of them may be due, or stopped
  std::string last_gone_;                     // the name of the node that has gone last
  std::vector<executor*> executors_;
  std::vector<executor*> near_;  // of these, those that are no nodes
  logic::space_set lenders_;     // spaces of nodes from which others may copy
  bool has_devices_ = false;     // some executor has memory of its own
  std::vector<std::string> remarks_;
  std::vector<std::uint32_t> setbacks_;           // of each executor that is a device; see protocol/behind.hpp
  std::vector<std::vector<task_ref>> held_back_;  // what could follow on a device that has enough for now
  logic::executor_set holding_back_;              // those for which there is something
  std::vector<logic::dependencies::dependency> predecessors_;
  std::unordered_multimap<const task_record*, overtaken> overtaken_;  // what it needs, which is to be made again
  std::unordered_map<task_record*, std::exception_ptr> doomed_;       // by the failure of what they were sent behind
  const task_record* retiring_ = nullptr;  // its successors are being told: nobody may wait for it any more
  std::unique_ptr<logic::host_budget> budget_;
  spill_disk* disk_ = nullptr;
  std::deque<room_request> short_;  // ready tasks for which there is no room yet, oldest first
  std::uint64_t requests_ = 0, passes_ = 0, moves_ = 0;
  bool room_changed_ = false;
  std::unique_ptr<logic::lineage> log_;                         // of what other nodes have; null: there are none
  logic::lineage::call ran_;                                    // that the log is about to be told
  std::unordered_map<std::uint64_t, array_core*> logged_;       // arrays that it names
  std::map<value_key, std::shared_ptr<std::byte[]>> aside_;     // what it needs and host memory no longer has
  std::vector<std::pair<array_core*, std::uint32_t>> to_save_;  // with a handle each
  std::vector<std::uint64_t> joined_;                           // of each executor, how often a node has
  std::vector<std::thread> remakers_;
  std::atomic<std::uint64_t> bodies_remade_{0}, bodies_remade_threw_{0};  // by them; the latter are among the former
  std::vector<mail> work_;
  std::vector<executor*> told_nodes_;  // in this turn, as the next two
  logic::executor_set told_;
  std::vector<task_listener*> told_listeners_;
  std::vector<task_record*> settles_, ready_, retired_;
  std::uint64_t retired_count_ = 0, turns_ = 0, last_drain_ = 0, last_look_ = 0;
  bool was_stale_ = false, tracing_ = false, abandoning_ = false;
  std::uint64_t abandoned_ = 0, open_views_ = 0;
  std::vector<std::coroutine_handle<>> unresumed_;
  trace_lane lane_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges_;
  task_record* free_first_ = nullptr;  // records to give back, in one chain a turn
  task_record* free_last_ = nullptr;
  std::size_t free_count_ = 0;
};

}  // namespace troupe::detail
