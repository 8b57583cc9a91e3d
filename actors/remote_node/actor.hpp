// What this file is for: the state of a node's actor. Its parts: remote_node.cpp (as others see it), tasks.cpp (tasks sent
// and ended), encoding.cpp (what is said of a task), data.cpp (which bytes are there, what travels),
// pushes.cpp (what goes with its task), peer_pulls.cpp (what passes between two of them), copies_home.cpp (what is
// copied home while it goes on, or fetched before it goes).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include <troupe/error.hpp>

#include "actors/execution/run_context.hpp"
#include "actors/logic/data/array_core.hpp"
#include "actors/logic/scheduling/link_share.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/remote_node/remote_node.hpp"

namespace troupe::detail {

/// A call that does not go into what nodes say to each other. Other executors may take it.
class too_much final : public error {
 public:
  explicit too_much(const std::string& what) : error(errc::no_executor, what + ": widen the scope") {}
};

class node_actor final : public node, private task_listener {
 public:
  node_actor(executor_facts f, placement& p, wait_board& b, house_link& link,
             std::function<void(std::function<void()>)> soon)
      : facts_(std::move(f)), placement_(p), board_(b), link_(link), soon_(std::move(soon)) {}

  // ---- executor
  const executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<task_record* const>, attention) override;
  void after_turn() override;
  int sleepers() const override { return 0; }
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return queued_count_.load(std::memory_order_relaxed); }
  std::size_t unstarted() const override { return queued(); }
  float queued_ns() const override { return 0; }
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) override;
  void recall(const std::function<bool(const task_record&)>& wanted) override;
  executor_report report() const override;
  void add_gone(executor_report&) const override;
  bool is_idle() override;
  void start() override {}
  void save(array_core&, std::uint32_t tile) override;

  // ---- node
  void meet(std::span<const std::shared_ptr<node>> all) override;
  void join(std::shared_ptr<net::session>, const wire::card&) override;
  void lose(std::exception_ptr why) override;
  bool is_there() const override { return there_.load(std::memory_order_acquire); }
  void suspect(bool) override;
  void bring_home_lent() override;
  bool wait_idle(std::chrono::steady_clock::time_point) override;
  bool has_overdue(std::chrono::milliseconds) const override;
  std::string peer_name() const override;
  void frame(std::span<const std::byte>) override;
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(std::span<const std::byte> head, bool whole) override;

 private:
  /// A frame is sent when it has grown so large.
  static constexpr std::size_t frame_bytes = 48u << 10;
  /// A number of a job is its place, in the lowest bits, and how often one has been taken. This is nobody's place.
  static constexpr int place_bits = 20;
  static constexpr std::uint64_t no_job = (1u << place_bits) - 1;

  /// What is known of a tile there.
  struct copy {
    std::uint32_t version = 0;  // newer than the directory's while what writes it has not been accounted for
    // Writes that were sent there, by their numbers: the last of all, the first whose bytes may be there and not anywhere
    // else, and the last before all that is known was forgotten.
    std::uint64_t last_write = 0, first_write = 0, forgotten_write = 0;
    bool whole = false, dirty = false;
    bool in_error = false;       // as it was to be fetched: nobody may read it, and nobody asks again
    std::uint64_t last_job = 0;  // that touches it there
    std::vector<logic::box4> parts;
    std::vector<std::uint64_t> asks;  // jobs that were told to ask for boxes of it; some may have ended

    void forget() {
      const std::uint64_t last = last_write, touches = last_job;
      std::vector<std::uint64_t> still = std::move(asks);
      *this = {};
      last_write = forgotten_write = last;
      last_job = touches;
      asks = std::move(still);
    }
  };
  struct known_array {
    array_core* core = nullptr;
    std::shared_ptr<const wire::array_card> shape;
    std::unordered_map<std::uint32_t, copy> tiles;
    int coming_home = 0;
  };
  /// Memory of this node's that a task there writes.
  struct back {
    int access;
    raw_view to;
    std::size_t element;
    int number;                            // of the access, as it was sent
    bool writing = false;                  // somebody is
    view_bytes partial;                    // of a reduction, which others may be adding to meanwhile
    // Of an update: until all has come, what is here stays as it was, for the task may have to run again.
    bool is_update = false;
    std::unique_ptr<std::byte[]> staged;
    net::pieces pieces();
    void take_over();
  };
  /// What only few jobs have.
  struct returns {
    returns(house_link& link, const char* name, const std::atomic<bool>& stopping)
        : context(*link.host, link, buffers, name, stopping) {}
    scratch buffers;
    run_context context;
    std::vector<back> to;
    std::size_t awaited = 0;
  };
  /// A box of a tile that the node here keeps for another one, which has been told to pull it under that number.
  struct lend_order {
    node_actor* lender;
    node_id lender_id;
    std::uint64_t number, array;
    std::uint32_t tile, version;
    logic::box4 where;
    node_actor* borrower;
  };
  /// A task or an errand that is under way there.
  struct job {
    std::uint64_t id = 0;
    task_record* task = nullptr;
    double begin = 0;                  // of what comes home, in `home_share_`
    bool begun = false;                // its body, as far as that was asked for
    bool recalled = false;             // it was asked for
    int tried = 0;                     // bodies of it that have thrown there, as was told before its end
    std::vector<std::uint64_t> wrote;  // the numbers of its writes, in the order of its accesses
    std::uint64_t last_write = 0;      // of all when it was sent, its own included
    std::unique_ptr<returns> data;
    std::shared_ptr<void> stop_watch;
    struct loan {
      node_actor* lender;
      node_id id;
      std::uint64_t number;
    };
    std::vector<loan> lent;
    std::optional<wire::task_end> end;  // it has ended there; something of it is still on its way
    std::size_t copies = 0;             // of these, copies of tiles that it wrote there
    std::vector<saved_tile> brought;    // which have come
    std::size_t writing = 0;            // transfers that are being written to its memory, which stays as long
    std::size_t pushing = 0;            // transfers that are being read from what the task reads, which stays, too
    std::size_t sending = 0;            // and those that were asked for
    bool is_awaited() const { return writing != 0 || copies != 0 || (data && data->awaited != 0); }
    bool is_touched() const { return writing != 0 || pushing != 0 || sending != 0; }
  };
  /// Bytes that go with a task, before they are asked for.
  struct push {
    std::shared_ptr<net::session> to;
    std::uint64_t job = 0, bytes = 0;
    std::vector<std::byte> head;
    net::const_pieces body;
  };
  /// A copy of a tile that is on its way home while tasks there go on with it.
  struct copy_home {
    saved_tile what;
    std::uint64_t write = 0;    // the last one that it has seen
    std::uint64_t for_job = 0;  // that ends when it is here; 0: nobody's, then a handle of the array is held
    bool spoilt = false;        // that write has failed
    bool writing = false;       // it is coming
  };

  // ---- tasks.cpp
  void send_some();
  bool may_gather();
  void send_soon();
  void turn_away();
  void start_task(task_record&);
  void flush();
  void finish(job&, const wire::task_end&);
  void finish_awaited(job&);
  void end_task(task_record&, std::exception_ptr, float measured_ns);
  void count_tried(job&);
  void count_bodies(const job&, const wire::task_end&);
  void count_lost(const job&, bool ends);
  void end_cancelled(task_record&);
  void give_back(task_record&);
  void refuse(task_record&, std::exception_ptr why);
  job& take_job(task_record&);
  bool has_free_job() const { return !free_jobs_.empty() || jobs_.size() < no_job; }
  job* find_job(std::uint64_t id);
  /// The same of what the node there says; throws error(bad_frame) for a number that it was never told.
  job* find_told_job(std::uint64_t id);
  void give_job(job&);
  void tell(std::unique_lock<std::mutex>&);
  void add_partial(job&, const back&);
  void end_errand(task_record&, std::exception_ptr);
  std::exception_ptr lost_with(const task_record&, const std::exception_ptr& why) const;
  static bool may_run_again(task_record&, bool begun);
  static bool is_overdue(const task_record& t) { return t.extra && t.extra->overdue && *t.extra->overdue != 0; }
  static bool lacks_room(const task_record&, const wire::task_end&);

  // ---- copies_home.cpp
  void granted(task_record&) override;
  void retired(task_record&) override;
  void save_all();
  bool ask_for_copy(array_core&, std::uint32_t tile, std::uint64_t for_job);
  void copy_arrived(std::uint64_t number, bool whole);
  void spoil_copies(const array_core&, std::uint32_t tile, std::uint64_t write);
  std::vector<std::pair<array_core*, std::uint32_t>> drop_copies();
  void tell_saved();
  void release_saved(std::span<const std::pair<array_core*, std::uint32_t>>);
  void fetch(array_core&, std::uint32_t tile);
  void go_on_saving();

  // ---- peer_pulls.cpp
  node_actor* at(memory_space) const;
  std::optional<node_id> lender_id() const;
  bool find_lenders(const task_record&);
  void ask_to_lend(job&, wire::gap&, const array_core&);
  void lend(const lend_order&);
  bool try_to_lend(const lend_order&);
  void try_waiting_lends();
  void unlend(std::uint64_t number);
  void tell_no_pull(const lend_order&);
  void send_no_pull(std::uint64_t number, const node_id& by);
  void take_back_lends(job&);
  void lender_gone(const node_actor&);
  void note_unfilled(net::reader&);
  static void settle_lends(std::span<const lend_order> orders, std::span<const lend_order> refused,
                           std::span<const std::pair<node_actor*, std::uint64_t>> unlends);

  // ---- encoding.cpp
  void encode(job&);
  void send_gaps(wire::task_card&);
  void remember(task_record&, wire::task_card&, std::span<const std::byte> sent);

  // ---- pushes.cpp
  void push_with(job&, wire::gap&, array_core&);
  void drop_pushes(std::uint64_t with);
  void start_pushes(std::vector<push>);
  void pushed(std::uint64_t with, std::uint64_t bytes);

  // ---- data.cpp
  known_array& know(array_core&);
  void need(job&, wire::access_card&, known_array&, const logic::box4& touched);
  template <class F>
  void each_written(const task_record&, F&&);
  void note_written(job&);
  void ask_for_written(job&);
  static back* back_of(job&, std::uint64_t access);
  bool note_overtaken(const job&, task_record&);
  bool would_spoil(const job&);
  void note_not_written(const job&, const task_record&, bool touched, bool runs_again);
  void forget_read(const task_record&);
  bool start_errand(task_record&);
  void serve_wants(net::reader&);
  job* asker_of(copy&);
  void sent(std::uint64_t job);
  void come_home(job&, std::exception_ptr);
  void one_less_coming(std::uint64_t array);

  const executor_facts facts_;
  placement& placement_;
  wait_board& board_;
  house_link& link_;
  const std::function<void(std::function<void()>)> soon_;
  std::atomic<bool> there_{false};
  std::atomic<bool> leaving_{false};  // the node there: what only it has is to be fetched
  std::atomic<bool> refuses_{false};  // the node there: it takes no more tasks, from then until it has gone
  const std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> queued_count_{0};
  struct counters {
    std::atomic<std::uint64_t> tasks{0}, failed{0}, behind{0}, busy_ns{0}, bytes_in{0}, bytes_out{0};
    template <class F>
    void each_with(counters& o, F&& f) {
      f(tasks, o.tasks), f(failed, o.failed), f(behind, o.behind);
      f(busy_ns, o.busy_ns), f(bytes_in, o.bytes_in), f(bytes_out, o.bytes_out);
    }
    void add_to(executor_report&) const;
  };
  counters counts_, gone_;  // of who is there, or was the last; of those before

  // Handed over, under a lock of its own: placement has the turn.
  mutable std::mutex queue_lock_;
  std::deque<task_record*> queue_, errands_;

  std::condition_variable idle_;
  mutable std::mutex lock_;  // all that follows; never held while placement is told something
  std::shared_ptr<net::session> session_;
  int slots_ = 0;
  std::uint64_t memory_bytes_ = 0;
  std::uint32_t setbacks_ = 0;
  std::deque<job> jobs_;  // by place; those without a task are free
  std::vector<std::uint32_t> free_jobs_;
  std::size_t under_way_ = 0;
  bool gathers_ = false;  // what is queued goes soon
  std::uint64_t generation_ = 0, joined_ = 0;
  std::unordered_map<std::uint64_t, copy_home> copies_;  // by number
  std::vector<copy_home> saved_;                         // that have come, and placement has not been told of
  std::vector<std::pair<array_core*, std::uint32_t>> not_saved_;
  std::unordered_map<std::uint64_t, known_array> arrays_;
  std::vector<push> pushes_;  // of tasks that have been sent, or are about to be
  std::uint64_t last_push_ = 0, pushing_bytes_ = 0;
  bool takes_pushes_ = false;           // the node there: its memory is not counted
  net::writer new_arrays_, new_tasks_;  // of the frame that is being written
  wire::task_card card_;                // of the task that is being encoded
  std::size_t array_count_ = 0, task_count_ = 0;
  std::vector<task_record*> done_, returned_, put_off_;
  std::vector<std::pair<task_record*, std::exception_ptr>> refused_;  // of those returned: why not to come here again
  std::vector<std::pair<array_core*, std::uint32_t>>
      spoilt_;                             // that tasks among those returned have been the last to have
  std::vector<overtaken_tile> overtaken_;  // of those returned
  std::uint64_t writes_ = 0;

  // Between this node and others of them.
  std::vector<node_actor*> all_;
  mutable std::mutex id_lock_;
  std::optional<node_id> id_;  // of who is there
  std::atomic<std::uint64_t> last_lent_{0};
  struct lender {
    const array_core* array;
    std::uint32_t tile, version;
    node_actor* who;
    node_id id;
  };
  std::vector<lender> lenders_;            // of the task that is being encoded
  std::vector<lend_order> orders_;         // to be given to others, outside of the lock
  std::vector<lend_order> waiting_lends_;  // for what has not been sent there yet
  std::vector<lend_order> refused_lends_;
  std::vector<std::pair<node_actor*, std::uint64_t>> unlends_;

  // What moving bytes takes, each way. A lock of its own: the transport's bulk thread tells of ends.
  std::mutex share_lock_;
  logic::link_share out_share_, home_share_;
  double begin_share(logic::link_share&);
  float end_share(logic::link_share&, double begun);

  mutable std::mutex saving_lock_;
  std::vector<task_record*> to_close_, to_release_;
  std::map<task_record*, std::pair<std::uint64_t, std::uint32_t>> fetched_;  // the array and the tile
  std::atomic<std::size_t> saving_{0};
};

}  // namespace troupe::detail
