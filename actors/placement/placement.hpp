// What this file is for: the actor that owns the graph: orders tasks, chooses executors, retires finished tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   client --submitted--> [inbox] <--done-- executor
//                            |  a thread that needs a decision takes the turn if it is free
//                            v
//                        placement --run_tasks--> executor
//
// Placement has no thread. Its state has one owner at a time: the thread that holds the turn. `take_turn` never blocks.
#pragma once

#include <atomic>
#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/report.hpp>

#include "actors/actor.hpp"
#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/placement/absent_tasks.hpp"
#include "actors/placement/alarm.hpp"
#include "actors/placement/chains.hpp"
#include "actors/placement/ending.hpp"
#include "actors/placement/executor_list.hpp"
#include "actors/placement/farewells.hpp"
#include "actors/placement/gangs.hpp"
#include "actors/placement/graph_trace.hpp"
#include "actors/placement/host_memory.hpp"
#include "actors/placement/in_flight.hpp"
#include "actors/placement/incoming_notes.hpp"
#include "actors/placement/lineage_log.hpp"
#include "actors/placement/mail_queue.hpp"
#include "actors/placement/notifications.hpp"
#include "actors/placement/reexecutions.hpp"
#include "actors/placement/remarks.hpp"
#include "actors/placement/side_orders.hpp"
#include "actors/placement/side_policy.hpp"
#include "actors/placement/spent_records.hpp"
#include "actors/placement/task_fates.hpp"
#include "actors/placement/transfers.hpp"
#include "actors/placement/turn_work.hpp"
#include "actors/placement/turnless_ends.hpp"
#include "actors/placement/turns.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/load_report.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/wait_table.hpp"

namespace troupe::detail {

struct report_batch;

class placement final : public actor, private logic::dependencies::callbacks, private host_memory::owner {
 public:
  placement(const options&, runtime_state&, wait_table&);
  ~placement() { reexecutions_.wait(); }

  // ---- before the first task ----------------------------------------------------------------------------------------
  void add(executor&);
  void trace_to(trace_sink*, int lane);
  /// Sets the costs of copies from host memory to a space (`in`) and back (`out`), as measured before.
  void know_link(memory_space, logic::edge_cost in, logic::edge_cost out);
  /// Makes copies between two devices' spaces direct.
  void connect(memory_space a, memory_space b) { transfers_.connect(a, b); }
  /// Sends all copies of a device through host memory from now on.
  void disconnect(memory_space s) { assignment_.disconnect(s); }
  /// Sets the costs of direct copies into `a` from `b` and into `b` from `a`, if they were measured before.
  void know_peers(memory_space a, memory_space b, logic::edge_cost into_a, logic::edge_cost into_b) {
    transfers_.know_peers(a, b, into_a, into_b);
  }
  /// Adds run times that an earlier runtime measured.
  void know_time(const logic::remembered_time& t) { assignment_.know_time(t); }
  /// Sets the disk to which tiles are spilled when the budget has no room for them.
  void spill_to(spill_disk& d) { host_memory_->spill_to(d); }
  /// Sets the function by which placement has `look_again` called after a delay.
  void use_alarm(std::function<void(std::chrono::milliseconds)> set) { alarm_.use(std::move(set)); }
  /// Sets the function that runs long work (re-execution after a loss), instead of a thread for each. All such work
  /// must have ended before placement is destroyed.
  void use_for_long_work(std::function<void(std::function<void()>)> run) { reexecutions_.use(std::move(run)); }

  /// Sets the test whether tasks wait for something that the calling thread holds: such a thread is not held back at
  /// the in-flight bound.
  void use_hold_up(std::function<bool()> holds) { in_flight_.use_exemption(std::move(holds)); }

  // ---- actor --------------------------------------------------------------------------------------------------------
  actor_kind kind() const override { return actor_kind::placement; }
  std::string label() const override { return "placement"; }
  /// Ends all tasks that have not begun with runtime_stopped, for that reason; no more are taken, and no thread waits
  /// for those that are in flight. `running` returns the tasks whose bodies run; it is called with the turn held.
  void end_all(const std::string& why, const std::function<std::vector<task_record*>()>& running);

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Posts a task to be ordered, and blocks at the in-flight bound. `inside`: the caller is a task, which is never held
  /// back at the bound.
  void submit(task_record*, bool inside);
  /// The same for several tasks, between which none of another thread comes.
  void submit_together(std::span<task_record* const>, bool inside);
  /// Blocks at the in-flight bound as `submit` does, for a caller that must not block there.
  void block_at_bound() {
    if (in_flight_.may_be_at_bound()) wait_at_bound();
  }
  /// Waits until fewer tasks are in flight than allowed; false if the deadline passes before.
  bool wait_for_room(std::chrono::steady_clock::time_point);
  /// True if the calling thread decides now, as in the destructor of what a task has returned: it must not wait.
  bool decides_here() const { return turns_.are_held_here(); }
  /// Throws runtime_stopped after close().
  void check_open() const {
    if (closed()) [[unlikely]]
      refuse_closed();
  }
  /// True if some tasks can never run here for want of memory; then `check_size` throws error(out_of_memory) with the
  /// sizes.
  bool limits_size() const { return executors_.limits_memory(); }
  void check_size(const task_record&) const;
  /// True if threads that have run tasks may release early successors (protocol/successors.hpp): host memory has no
  /// budget, and the runtime does not end.
  bool releases_early() const { return releases_early_.load(std::memory_order_relaxed); }
  /// True if they may release those of this task. Beside devices only if it is early itself: where its data is now is
  /// noted when it retires, and what comes after it may be for a device.
  bool releases_early(const task_record& t) const {
    return releases_early() && (!beside_devices_ || (t.marks & mark_early) != 0);
  }
  /// Notes where a task has run and how long it has taken, whose early successors the calling thread is about to
  /// release: what it refers to may be gone when it retires.
  void note_ended(const task_record& t) {
    if (t.marks & mark_early) turnless_.note_time(t);
    if (t.marks & mark_chunk) note_chunk(t);
  }
  /// Hands early tasks that a thread has released to the core groups that they are for. Without the turn.
  void run_released(std::span<task_record* const>);
  /// Has ready tasks placed that a thread has released, and that it cannot hand on itself.
  void report_ready(std::span<task_record* const>);
  /// Retires a gate whose early successors a thread has released, before it reports the last task that the gate waited
  /// for. False if others are left: then the gate is to be reported as done.
  bool pass_gate(task_record&);
  /// Predicts an early task anew that the calling thread has just released, if what was predicted before it was ready
  /// holds no more; false: a turn has to.
  bool keeps_predicted(task_record& t) const {
    return number_of(t.sequence) > outdated_.load(std::memory_order_acquire) || predict_anew(t);
  }
  /// Has executors report the ends that their threads have kept to themselves: for threads that wait until tasks have
  /// retired. A body may hold up such a thread, and wait itself for what that one does then.
  void collect_ends();
  /// Reports tasks whose bodies have returned. Those about which nothing is left to decide retire at once. For others,
  /// and for mail, takes the turn if it is free, else leaves mail.
  void report_done(std::span<task_record* const>, executor* self);
  /// Accounts for all that an executor has to tell, in the order that it needs; see report_batch.
  void report(executor&, report_batch&&);
  /// Returns tasks that an executor was given and could not run; their phase is waiting again (not claimed).
  void report_returned(std::span<task_record* const>);
  /// Names tiles that tasks about to be returned still need and that the executor has overwritten.
  void report_overwritten_inputs(const executor&, std::span<const overwritten_input>);
  /// Allocates task_record::extra under the turn: executors fill it in while placement may read it for successors.
  void make_extras(std::span<task_record* const>);
  /// Excludes the reporting executor for tasks that it is about to return. If no other executor can take one, it fails
  /// with the given error, if there is one.
  void note_refusals(std::span<const std::pair<task_record*, std::exception_ptr>>);
  /// Adds a text to `runtime_report::remarks`, unless it is there already or there are many (64).
  void remark(std::string text);
  /// Reports that an executor's memory is gone, with the only copies of these tiles (array, tile); nothing is copied
  /// directly from or to it any more. `for_good`: the executor gets no more tasks.
  void report_failure(const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                      std::exception_ptr why, bool for_good);
  /// Admits the node that has joined in the place of an executor, which was added without one: the executor may be
  /// given tasks. `in`, `out`: costs of copies to it and from it; `lends`: other nodes may copy from it; `has`:
  /// quantities of its own.
  void admit_node(executor&, int slots, logic::edge_cost in, logic::edge_cost out, bool lends,
                  const std::vector<resource>& has = {});
  /// Waits for the threads that repeat calls after a loss, whether they succeed or not.
  void wait_reexecuted() {
    with_turn([] {});  // a turn may be about to start one
    reexecutions_.wait();
  }
  /// Has the tiles whose only current copy is on that node copied to host memory. Returns how many are on their way. No
  /// task under way on the node may write them.
  std::size_t fetch_home(const executor&, std::span<const std::pair<array_core*, std::uint32_t>>);
  /// Takes versions of tiles that the node has sent to this one while it goes on. `times`: how often a node had joined
  /// in that place when they were asked for. The tasks that wrote them must have been accounted for.
  void report_saved(const executor&, std::uint64_t times, std::span<saved_tile>);
  /// Notes that these tiles, which a node was asked to save, have not come.
  void report_not_saved(std::span<const std::pair<array_core*, std::uint32_t>>);
  /// Pauses a node, which is then given no new tasks, or (`false`) ends that.
  void pause(const executor&, bool);
  /// Pauses a node that is leaving. Its parts of graphs that it has not begun fail, at once if they could begin now:
  /// what it has begun may wait for what other parts send, and these for them.
  void note_leaving(const executor&);
  /// Notes for how long the tasks of other nodes will keep a node busy, as it has told.
  void know_others(const executor&, std::chrono::nanoseconds);
  /// Returns the load of this node. `owners`: the listeners of the tasks of other nodes, one for each node.
  load_report load(std::span<const task_listener* const> owners);
  /// Reports that an executor has destroyed the only copies of these tiles, and goes on.
  void report_lost(const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                   std::exception_ptr why);
  /// Notes that a copy took `ns`, from its turn on the link until it had arrived.
  void report_transfer(memory_space from, memory_space to, std::uint64_t bytes, float ns) {
    notes_.add_transfer(from, to, bytes, ns);
  }
  /// Notes whether messages to a node and back take long.
  void note_far(const executor&, bool);
  /// Lowers the costs of a link that was believed to be much dearer than a measurement shows: on the idle link, `bytes`
  /// took `there` to the node and `back` from it, and an empty message `round_trip`; see cost_model::correct.
  void correct_link(memory_space node, std::uint64_t bytes, std::chrono::nanoseconds there,
                    std::chrono::nanoseconds back, std::chrono::nanoseconds round_trip);
  /// Frees an array whose last handle is gone, as soon as no task uses it.
  void drop(array_core*);
  /// Posts `t`, a farewell, as the last handle of borrowed memory goes: `t` comes after all tasks that use the array,
  /// and ends when the array is freed, so that its memory is the caller's again; at once after `end_farewells`.
  void bid_farewell(task_record& t);
  /// Has reductions into memory of the caller's combined whose results nobody has read: the runtime is about to end.
  void combine_outside();
  /// Ends all farewells: the runtime ends, and waits for no array any more.
  void end_farewells();
  /// Takes a turn in which whatever waits for a point in time is looked at; the alarm calls it.
  void look_again();
  /// Notes that a stop request has claimed a task, which may wait for a node. Any thread, whatever locks it holds.
  void note_cancelled();
  /// Takes a turn if there is something to decide and the turn is free; true if something was done. `self`: the caller
  /// is about to look for work at that executor.
  bool take_turn(executor* self);
  /// Takes a turn like `take_turn`, for a waiting thread outside all bodies.
  bool take_turn_waiting();
  bool has_mail() const { return mail_.maybe() || assignment_.kept() != 0; }
  /// Notes that bodies have begun to wait, or go on (see executor::waiting); the next turn looks at it. Any thread.
  void waits_changed() { notes_.note_waits(); }
  /// True if there is mail and no thread that is awake seems to be coming for it.
  bool has_stale_mail(std::uint64_t now) const { return has_mail() && is_stale(now); }
  /// True if another executor has been given more than it gets done, so that a turn taken for `idle` may relieve it.
  bool is_work_elsewhere(const executor* idle) const;
  /// True if another core group has tasks that `idle` may get once the threads of that one do not come for them.
  bool have_others_work(const executor* idle) const;
  /// True if no thread holds the turn, and none has taken it for a while.
  bool is_stale(std::uint64_t now) const { return turns_.is_stale(now); }
  /// True if this thread was the last one to take a turn.
  bool took_last_turn() const { return turns_.this_thread_was_last(); }
  /// Counts the threads of executors that are running or deciding.
  void became_active() { turns_.became_active(); }
  void became_idle() { turns_.became_idle(); }
  int active() const { return turns_.active(); }
  bool has_mail_for_sleeper() const { return mail_.count() != 0; }

  bool is_quiet() const { return in_flight_.none() && farewells_.none(); }
  /// Waits until no task is in flight and no borrowed memory without a handle is in use; false if the deadline passes.
  bool wait_quiet(std::chrono::steady_clock::time_point);
  /// True if the task `inside` must not wait for `awaited`, which comes after it or needs resources that it holds.
  /// Fails `awaited` if the two do not fit into the host memory budget together, or (`forever`: the body waits without
  /// a limit) if all memory is held by bodies that wait for such tasks.
  bool would_deadlock(task_record& inside, task_record& awaited, bool forever = true);
  /// Gives up a host access for which nothing waits any more: its place in the order stays, and what it was to change
  /// is as before.
  void abandon_access(task_record&);
  /// True if the awaited task, or any task if null, comes after one of `open`: host accesses whose views are open.
  bool is_behind(std::span<task_record* const> open, const task_record* awaited);
  explanation explain(task_record&);
  runtime_report report();
  std::vector<logic::remembered_time> measured_times();
  /// Returns what copies from one space to another are believed to cost. Takes the turn for a moment.
  logic::cost_model::learned_edge learned_link(memory_space from, memory_space to);
  const std::vector<executor_facts>& facts() const { return assignment_.facts(); }
  logic::executor_set all() const { return assignment_.all(); }
  logic::executor_set able_to_run(const kernel_info& k) const { return assignment_.able_to_run(k); }
  void check_resources(const std::vector<resource>& r) const { admission_.check(r); }

  /// Fails all tasks that have not started with runtime_stopped, and returns their number. None may be submitted later.
  std::uint64_t abandon_queued();
  /// Ends tasks whose bodies are still running, and all that comes after them, with runtime_stopped. Only with the turn
  /// held and after `abandon_queued`.
  void leave_behind(std::span<task_record* const>);
  /// Returns the coroutines whose tasks will not resume them; the caller must resume them.
  std::vector<std::coroutine_handle<>> take_unresumed();
  /// Wakes all threads that wait for tasks in flight, and makes later waits return at once.
  void give_up_waiting() { in_flight_.give_up(); }
  void close() { in_flight_.close(); }
  /// Returns why the runtime has ended, if an actor has failed without which it cannot go on; else an empty text. Once
  /// `closed`.
  const std::string& why_ended() const { return ending_.reason(); }
  /// True once all tasks are ended: no body is to begin any more.
  const std::atomic<bool>& ended() const { return ending_.is_complete(); }
  /// Ends a task that the calling thread has claimed after that. Not with the turn.
  void refuse_claimed(task_record&);
  /// Gives the records of finished tasks back, so that those in use are those that futures hold.
  void settle_accounts();
  bool closed() const { return in_flight_.closed(); }
  /// Gives idle memory back; called when nothing has happened for a while. False if more is left, in use.
  bool tidy();
  void flush_trace();
  /// Runs `f` with the turn: no task retires but those of which nothing is left to decide, and no record becomes that
  /// of another task.
  void with_turn(const std::function<void()>& f);
  void refuse_questions_here() const;

  std::uint64_t finished() const { return in_flight_.finished(); }
  std::uint64_t unfinished() const { return in_flight_.count(); }
  /// Has threads that submit order their tasks themselves from now on wherever they may, for tests.
  void insist_on_sides();
  /// Returns the number of tasks that have been ordered so.
  std::uint64_t ordered_aside();

 private:
  // dependencies::callbacks
  task_record* make_combine(array_core&, reduction&) override;
  task_record* make_gate() noexcept override;
  void fail(task_record&, std::exception_ptr, bool own) override;

  // host_memory::owner
  void room_granted(task_record&) override;
  void room_refused(task_record&, const std::exception_ptr& why) override;
  void room_unwanted(task_record&) override;
  void fetch(array_core&, std::uint32_t tile, coherence_entry&) override;

  // Most of these are called with the turn held; those that take it, wait or look at the bound are not.
  // ---- ends.cpp
  void refuse(task_record&, std::exception_ptr);
  void fail_unstarted(task_record&, const std::exception_ptr& why);
  void abandon(task_record&);
  bool give_up(task_record&);
  // Ends a join that has failed, as nobody else claims one: stops and deadlines are those of its chunks.
  void end_failed_join(task_record&);
  void end_claimed(task_record&);
  void give_up_successors(std::vector<task_record*> of);
  // ---- submission.cpp
  void have_ordered(std::size_t waiting, bool inside);
  void wait_at_bound();
  std::size_t post(std::span<task_record* const>, bool inside);
  bool order_aside(task_record&);
  bool await_side_turn(task_record&, std::size_t side, bool& told, bool& waited);
  bool release_aside(task_record&, std::size_t side);
  bool end_failed_aside(task_record*);
  // ---- placement.cpp
  [[noreturn]] void refuse_closed() const;
  void look_up() override { look_again(); }
  bool end_failed_turn(bool taken);
  void report_to_turn(std::span<task_record* const> done, executor* self);
  bool serve(executor* self, bool client = false);  // drains the mail, decides, leaves the turn
  // Waits for the turn, and has it once all that was posted before has been handled.
  void take_settled_turn() {
    turns_.take();
    serve(nullptr);
    turns_.take();
  }
  void handle_mail();
  void handle(mail);
  bool hand_out(std::uint64_t begin, executor* self, bool client, bool stale);
  bool send_outgoing(executor* self, bool client, bool stale);
  int next_to_send(int from) const {
    return std::min(assignment_.next_outgoing(from), chains_.next_holding_back(from));
  }
  void leave_mail_to_others();
  void look_at_farewells();
  void look_at_waits();
  void know_unplaced();
  // ---- sides.cpp
  bool may_order_aside() const;
  void look_at_sides(std::size_t fetched, std::size_t lanes);
  void begin_sides();
  void settle_sides() {
    if (turns_.aside().are_wanted()) note_handled_mail();
  }
  void note_handled_mail();
  // ---- tasks.cpp
  static bool is_plain(const task_record&);
  bool predict_anew(task_record&) const;
  void foresee(task_record&);
  void note_outdated() {
    if (const std::uint64_t n = assignment_.outdated(); n != outdated_.load(std::memory_order_relaxed))
      outdated_.store(n, std::memory_order_release);
  }
  void order(task_record&);
  void let_parts_go();
  void make_ready(task_record&);
  void place_again(task_record&, bool setback);
  void admit(task_record&);
  void admit_again(task_record&);
  void admit_waiting(std::uint64_t now);
  void admit_some(std::uint64_t now);
  memory_space space_of(const held_device&) const;
  void assign(task_record&);
  void lose_overwritten_inputs(const task_record&);
  void keep_from_others(task_record&);
  bool let_cores_run(task_record&);
  static void forget_call(task_record&);
  void retire(task_record&);
  // Retires, in this turn, a task that has ended before it could start; waits for a thread that is about to say how.
  void retire_ended(task_record& t) {
    await_fulfilled(t);
    work_.to_retire(t);
  }
  static void note_chunk(const task_record&);
  void work_off();
  void try_absent();
  void look_at_absent(std::uint64_t now);
  // ---- data.cpp
  bool set_aside_for_data();
  bool give_room();
  /// Whether a task has its data where it is to run.
  struct data_verdict {
    bool waits = false;         // for a transfer, or for room
    std::exception_ptr lost{};  // why some of it exists nowhere
  };
  data_verdict judge_data(task_record&);
  bool must_wait_for_data(task_record&);
  void note_data_wait(task_extra&, bool waits) const;
  void account_for_data(task_record&);
  void account_for_transfer(task_record&);
  void free_if_unused(array_core&);
  bool waits_for_early(array_core&);
  void free_unfreed();
  void free(array_core&);
  void end_farewell(task_record&);
  // ---- queries.cpp
  bool reaches(task_record& from, const task_record* to);
  void give_records_back();
  // ---- losses.cpp
  bool is_node(const task_record& t) const {
    return (t.marks & mark_sent) && assignment_.facts()[t.executor].kind == device_kind::node;
  }
  void lose(const executor&, std::span<const std::pair<array_core*, std::uint32_t>>, const std::exception_ptr& why);
  std::vector<std::pair<array_core*, std::uint32_t>> reexecute_lost(
      const executor&, std::span<const std::pair<array_core*, std::uint32_t>> lost);
  void lose_written(const task_record&);
  void save_some();
  // ---- nodes.cpp
  void leave_turn() {
    notifications_.empty() ? turns_.leave() : leave_and_tell();
    turnless_.turn_left();
  }
  void leave_and_tell();
  // ---- absent.cpp
  void look_up_scope(task_record& t) {
    if (t.extra && t.extra->resolved_at != 0) look_up_nodes(t);
  }
  void look_up_nodes(task_record&);
  bool wait_for_node(task_record&, const std::exception_ptr& why);
  void end_of_wait(task_record&, const std::exception_ptr& why);
  std::exception_ptr nobody_left(const task_record&) const;
  std::exception_ptr part_left(const task_record&) const;
  std::exception_ptr no_quantity(const task_record&) const;
  // ---- balance.cpp
  void relieve_others(executor& idle);
  void place_anew();
  bool may_go_elsewhere(const task_record&);

  runtime_state& rt_;
  wait_table& board_;
  const runtime_clock clock_;
  // Here, beside what never changes: threads that run bodies read these for each of them.
  ending ending_;
  std::atomic<bool> releases_early_{false};  // written with the turn, as the next one
  bool beside_devices_ = false;              // as executors_.has_devices(), which lies beside what turns write
  std::atomic<std::uint64_t> outdated_{0};   // the last task whose prediction holds no more

  mail_queue mail_;
  turns turns_;
  in_flight in_flight_;
  farewells farewells_;
  incoming_notes notes_;

  // Owned by the holder of the turn, but for what others do with tasks that have ended (successors.hpp). In side turns
  // (side_turns.hpp) `aside_` is used, and assignment is asked for times.
  logic::executor_set leaving_;  // nodes that take nothing more; also after they have gone, until others join there
  logic::dependencies deps_;
  side_orders aside_;
  side_policy side_policy_;
  turnless_ends turnless_;
  logic::assignment assignment_;
  logic::admission admission_;
  alarm alarm_;
  std::chrono::milliseconds farewells_next_{};  // until farewells are looked at again
  std::uint64_t unplaced_in_ = 0;               // the turn in which the load of early tasks was looked up
  absent_tasks absent_;
  executor_list executors_;
  remarks remarks_;
  task_fates fates_;
  std::unique_ptr<host_memory> host_memory_;  // null: there is no budget
  transfers transfers_;
  gangs gangs_;
  chains chains_;
  std::unique_ptr<lineage_log> log_;  // of data on other nodes only; null: no nodes
  reexecutions reexecutions_;
  notifications notifications_;
  turn_work work_;
  std::vector<array_core*> unfreed_;  // there was no memory to find out when
  graph_trace trace_;
  spent_records spent_;
};

}  // namespace troupe::detail
