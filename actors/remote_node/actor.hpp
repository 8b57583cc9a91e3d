// What this file is for: the state of a node's actor: its parts, and what is left between them. Its functions:
// actor.cpp (shared steps), peer_pulls.cpp (bytes between two other nodes), data.cpp (tiles that come home), saving.cpp
// (what is saved of a node that leaves, or goes on), encoding.cpp (a call as it is said), tasks.cpp (tasks sent and
// ended), exchange.cpp (bytes that travel, and what is told), remote_node.cpp (the executor, joining and leaving,
// frames).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/report_batch.hpp"
#include "actors/remote_node/copies_home.hpp"
#include "actors/remote_node/departure.hpp"
#include "actors/remote_node/gathering.hpp"
#include "actors/remote_node/job.hpp"
#include "actors/remote_node/job_table.hpp"
#include "actors/remote_node/lends.hpp"
#include "actors/remote_node/link_meter.hpp"
#include "actors/remote_node/occupant.hpp"
#include "actors/remote_node/pushes.hpp"
#include "actors/remote_node/remote_copies.hpp"
#include "actors/remote_node/remote_node.hpp"
#include "actors/remote_node/send_queue.hpp"
#include "actors/remote_node/task_counts.hpp"
#include "actors/remote_node/task_frame.hpp"

namespace troupe::detail {

/// A call does not fit the limits of what nodes say to each other. Other executors may take it.
class too_much final : public error {
 public:
  explicit too_much(const std::string& what) : error(errc::no_executor, what + ": widen the scope") {}
};

class node_actor final : public node, private task_listener {
 public:
  node_actor(executor_facts f, placement& p, wait_table& b, runtime_state& rt,
             std::function<void(std::function<void()>)> soon, failure_sink give_up)
      : facts_(std::move(f)),
        placement_(p),
        board_(b),
        rt_(rt),
        give_up_(std::move(give_up)),
        meter_(rt.clock),
        gathering_(std::move(soon)) {}

  // ---- executor
  const executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const>, attention) override;
  void after_turn() override;
  int sleepers() const override { return 0; }
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return queue_.size(); }
  std::size_t unstarted() const override { return queued(); }
  float queued_ns() const override { return 0; }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override;
  void recall(const std::function<bool(const task_record&)>& wanted) override;
  executor_report report() const override;
  void add_gone(executor_report&) const override;
  bool is_idle() override;
  void start() override {}
  void save(array_core&, std::uint32_t tile) override;
  void make_promise(const promise& p) override { queue_.add(p); }
  void expect(task_record& t, std::vector<promise>&& boxes) override { queue_.expect(t, std::move(boxes)); }
  std::uint64_t stay() const override { return occupant_.is_there() ? occupant_.times() : 0; }

  // ---- actor
  void withdraw(std::exception_ptr why) override { give_up_(std::move(why)); }

  // ---- node
  void meet(std::span<const std::shared_ptr<node>> all) override;
  void join(std::shared_ptr<net::session>, const wire::node_descriptor&) override;
  void lose(std::exception_ptr why) override;
  bool is_there() const override { return occupant_.is_there(); }
  void suspect(bool) override;
  void bring_home_lent() override;
  bool wait_idle(std::chrono::steady_clock::time_point) override;
  bool has_overdue(std::chrono::milliseconds) const override;
  void know_others(std::chrono::nanoseconds) override;
  void know_round_trip(std::chrono::nanoseconds) override;
  std::uint32_t learned_transfers() override;
  void correct_link(std::uint64_t bytes, std::chrono::nanoseconds there, std::chrono::nanoseconds back,
                    std::chrono::nanoseconds round_trip) override;
  std::string peer_name() const override;
  void frame(std::span<const std::byte>) override;
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(std::span<const std::byte> head, bool whole) override;

 private:
  using tile_of = report_batch::tile;
  /// Messages for other actors, which are told once the lock has been released.
  struct outgoing {
    report_batch report;
    std::vector<pushes::push> to_push;
    lends::news lent;
    outgoing(report_batch r, std::vector<pushes::push> p, lends::news l);
    ~outgoing();  // out of line: each function that tells would have a copy of it
    outgoing(const outgoing&) = delete;
    outgoing& operator=(const outgoing&) = delete;
  };

  // Functions are called with the lock, unless it says otherwise. Each file calls those of the files before it only.
  // ---- actor.cpp
  outgoing take_outgoing();
  void flush();
  job& take_job(task_record&);
  void give_job(job&);
  void end_internal(task_record&, std::exception_ptr);
  void come_back(task_record&);
  std::exception_ptr lost_with(const task_record&, const std::exception_ptr& why) const;

  // ---- peer_pulls.cpp
  node_actor& at(memory_space) const;
  bool find_lenders(const task_record&);
  void ask_to_lend(job&, wire::gap&, const array_core&);
  bool pull_promised(job&, wire::access_descriptor&, const array_core&, std::uint32_t tile, const logic::box4&);
  void give_up_promises(const task_record&);
  void give_up_unused();
  void give_up_unwanted();
  bool try_to_lend(const lend_order&);
  void try_waiting_lends();
  void keep_promises(const task_record* next);
  void keep_promises_of(std::uint64_t writer);
  void send_no_pull(std::uint64_t number, const node_id& by);
  void take_back_lends(job&);
  void note_unfilled(net::reader&);
  // Without the lock, also of the actors of other nodes.
  void lend(const lend_order&);
  void unlend(std::uint64_t number);
  void tell_no_pull(const lend_order&);
  void lender_gone(const node_actor&);
  void settle_lends(const lends::news&);

  // ---- data.cpp
  void ask_for_written(job&);
  bool start_internal(task_record&);
  void come_home(job&, std::exception_ptr);
  void one_less_coming(std::uint64_t array);
  void push_with(job&, wire::gap&, array_core&);
  bool ask_for_copy(array_core&, std::uint32_t tile, std::uint64_t for_job);
  job* copy_arrived(std::uint64_t number, bool whole);

  // ---- saving.cpp, without the lock
  void granted(task_record&) override;
  void retired(task_record&) override;
  void save_all();
  void tell_saved();
  void release_saved(std::span<const tile_of>);
  void end_saving(std::size_t n);
  void fetch(array_core&, std::uint32_t tile);
  void go_on_saving();

  // ---- encoding.cpp
  void put_options(job&, wire::task_descriptor&);
  void encode(job&);
  void know(array_core&);
  void need(job&, wire::access_descriptor&, array_core&, const logic::box4& touched);
  void need_known(job&, wire::access_descriptor&, array_core&, const logic::box4& touched);
  void add_returned(job&, wire::access_descriptor&, int access, int number);
  bool put_inside(wire::gap&, array_core&);
  void send_gaps(wire::task_descriptor&);
  void remember(task_record&, wire::task_descriptor&, std::span<const std::byte> sent);

  // ---- tasks.cpp
  bool send_some();
  send_queue::need urgency() const;
  void turn_away(const std::exception_ptr& why);
  void start_task(task_record&);
  std::exception_ptr finish(job&, const wire::task_end&);
  void take_written(job&, wire::task_end&);
  std::exception_ptr take_results(job&, const wire::task_end&);
  void finish_awaited(job&);
  void settle_sum(job&);
  void carry(job&, net::reader&);
  void carry_nothing(job&);
  void end_task(task_record&, std::exception_ptr, float measured_ns);
  void count_tried(job&);
  void count_bodies(const job&, const wire::task_end&);
  void count_lost(const job&, bool ends);
  void end_cancelled(task_record&);
  void give_back(task_record&);
  void refuse(task_record&, std::exception_ptr why);
  void add_partial(job&, const job::back&);
  static bool may_run_again(task_record&, bool begun);
  static bool is_overdue(const task_record& t) { return t.extra && t.extra->overdue && *t.extra->overdue != 0; }
  static bool lacks_room(const task_record&, const wire::task_end&);

  // ---- exchange.cpp
  void send_what_is_due();
  void send_gathered();
  outgoing send_and_take();
  void send_soon();
  void serve_fetches(net::reader&);
  // Without the lock.
  void tell(outgoing&&);
  void sent(std::uint64_t job);
  void start_pushes(std::vector<pushes::push>);
  void pushed(std::uint64_t with, std::uint64_t bytes);

  // ---- remote_node.cpp
  void take_not_sent(net::reader&);
  void lose_job(job&, const std::exception_ptr& why);

  const executor_facts facts_;
  placement& placement_;
  wait_table& board_;
  runtime_state& rt_;
  const failure_sink give_up_;
  std::vector<node_actor*> all_;             // set once, before any node joins
  std::atomic<std::uint64_t> last_lent_{0};  // of the first of `all_`: the last number of a lend in this runtime
  task_counts counts_;
  link_meter meter_;
  send_queue queue_;
  departure departure_;
  std::atomic<bool> is_far_{false};
  std::atomic<int> untold_{0};  // threads that have taken reports and have not told placement yet

  std::condition_variable idle_;
  mutable std::mutex lock_;  // guards all that follows; never held while placement is told something
  occupant occupant_;
  std::uint32_t failure_epoch_ = 0;
  gathering gathering_;
  job_table jobs_;
  remote_copies known_;
  task_frame frame_;
  pushes pushes_;
  lends lends_;
  copies_home copies_;
  report_batch report_;
};

}  // namespace troupe::detail
