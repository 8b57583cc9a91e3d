// What this file is for: the state of a guest house. Its parts: tasks.cpp (what comes and runs), data.cpp
// (bytes in and out), pulls.cpp (bytes from and to other guest houses), pushes.cpp (bytes that come unasked).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/logic/data/array_core.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/node_service/node_service.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

/// The kernel of the host accesses of doors.
extern const kernel_info access_kernel;
/// Bytes from which messages gathered for the owner are sent: thousands of errors would be more than a frame holds.
inline constexpr std::size_t gathered_bytes = 48u << 10;

class guest_actor final : public guest_house, private task_listener {
 public:
  guest_actor(engine& house, placement& p, wait_board& b, house_link& link, std::shared_ptr<net::session> s,
              find_line lines)
      : house_(house), placement_(p), board_(b), link_(link), session_(std::move(s)), lines_(std::move(lines)) {}

  void frame(std::span<const std::byte>) override;
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(std::span<const std::byte> head, bool whole) override;
  void pull(const wire::pull_request&, const std::shared_ptr<net::session>& line) override;
  void cannot_pull(const wire::pull_refusal&, const node_id& by) override;
  net::pieces pulled_arriving(const wire::pulled_head&, std::uint64_t bytes, const node_id& from) override;
  void pulled_arrived(const wire::pulled_head&, const node_id& from, bool whole) override;
  void lost(const node_id&) override;
  void close_door() override;
  node_id owner() const override { return name_of(session_->peer().id); }
  bool is_released() const override;
  void leave() override;
  bool is_empty() const override;
  const task_listener* listener() const override { return this; }

 private:
  /// A task that runs here.
  struct guest {
    std::uint64_t id = 0;
    task_record* task = nullptr;
    std::stop_source stop;
    std::vector<std::pair<int, wire::access_card>> returns;  // what goes back, by the number of the access
    std::vector<array_core*> arrays;                         // of those; a reference each
    bool recalled = false;  // it goes back, and has not begun
    std::size_t on_their_way = 0;
    std::unique_ptr<wire::task_end> untold;  // how it ended, told when what it asked for has come
  };
  /// Another guest house that pulls, and its number.
  struct asker {
    std::shared_ptr<net::session> line;
    std::uint64_t number = 0, lent = 0;
    logic::box4 where;
  };
  /// Bytes of an array on their way in or out: a host access of this runtime.
  struct door {
    enum class use { in, home, back, lend } what = use::in;
    std::uint64_t number = 0;  // ours of what comes in, the owner's of what goes and of what is lent
    int access = 0;
    guest* of = nullptr;  // back
    task_record* task = nullptr;
    std::size_t element = 1;
    std::uint64_t array = 0;
    wire::gap what_box;         // if it names somebody, that one is asked
    std::exception_ptr never;   // in: it will not come
    std::optional<asker> whom;  // lend: who has pulled
    bool open = false, sending = false;
    bool placed = false, writing = false;  // in: its bytes have been given room; they are being written there
    bool copies = false;                   // home: others may go on at once
    raw_view view;
    scratch buffers;
    std::unique_ptr<run_context> context;
  };

  /// Bytes of an array that come unasked: into their place if they may, else they are kept until then.
  struct push {
    door* to = nullptr;  // null: the task that they go with has not been told yet, or its access has ended
    std::uint64_t size = 0;
    loose_bytes kept;
    bool writing = false, whole = false;  // of what is kept
    bool refused = false;                 // there was no room for them: they are asked for
  };

  // ---- task_listener: with placement's turn, so it is only noted
  void granted(task_record& t) override { note(t, true); }
  void retired(task_record& t) override { note(t, false); }
  void after_turn() override;
  void began(task_record& t) override { tell_of_body(t, wire::kind::begun); }
  void tried(task_record& t) override { tell_of_body(t, wire::kind::tried); }
  void tell_of_body(task_record&, wire::kind);
  void note(task_record&, bool was_granted);

  // ---- tasks.cpp
  void take_in(const wire::array_card&);
  void take_in(const wire::gaps&);
  void start(const wire::task_card&);
  guest& new_guest(std::uint64_t id);
  void forget(guest&);
  static void check(const array_core&, const wire::access_card&);
  void fill_in(guest&, const wire::task_card&, const offered_kernel&);
  void ended(guest&);
  void refuse_task(guest&, wire::task_end);
  void tell_end(const wire::task_end&);
  void send(net::writer&);
  void cancel(std::uint64_t id);
  void recall(std::uint64_t id);
  void drop(std::unordered_map<std::uint64_t, array_core*>::iterator);
  void work_off(std::unique_lock<std::mutex>&);

  // ---- data.cpp
  static void check(const array_core&, const wire::gap&);
  void ask_for(array_core&, std::uint64_t array, const wire::gap&);
  static net::pieces give_room(door&, std::uint64_t bytes);
  void open_door(array_core&, access_mode, const logic::box4& where, std::unique_ptr<door>);
  void give(const wire::box_request&, bool copies);
  bool send_copy(door&, std::vector<std::byte>& head, const net::pieces& rows);
  void send_back(guest&);
  void opened(door&);
  void closed(door&);
  void close(door&);
  void sent(task_record*);
  void tell_cannot(const door&, const std::exception_ptr& why);

  // ---- pushes.cpp
  void expect_push(door&, const array_core&);
  bool await_push(door&);
  net::pieces push_arriving(std::uint64_t number, std::uint64_t bytes);
  void push_arrived(std::uint64_t number, bool whole);
  void make_room(push&);
  void put_in_place(door&, push&);
  void forget_push(const door&);
  void forget_pushes(const std::vector<wire::gap>&);
  void drop_kept(push&);

  // ---- pulls.cpp
  void keep_for_others(const wire::box_request&);
  void unlend(std::uint64_t number);
  void no_pull(std::uint64_t lent, const node_id& by);
  void ask_other(door&);
  void give_up(const node_id&, bool has_ended);
  door* pulling(std::uint64_t number, std::uint64_t lent, const node_id& from);
  void never_comes(door&, const std::exception_ptr& why);
  void fail(door&);
  void answer(door&);
  void turn_away(const asker&, const std::string& why);
  void lend_ended(door&);
  void drop_lends();
  void ask_others(std::vector<std::pair<node_id, net::writer>>);

  engine& house_;
  placement& placement_;
  wait_board& board_;
  house_link& link_;
  const std::shared_ptr<net::session> session_;
  const find_line lines_;
  const std::atomic<bool> never_stopping_{false};
  const scope here_ = scope::here();

  std::mutex notes_lock_;
  std::vector<std::pair<task_record*, bool>> notes_;  // tasks and whether they were granted; else they have retired

  mutable std::mutex lock_;  // all that follows; never held while placement is asked something that takes its turn
  bool left_ = false, closed_ = false, released_ = false;
  std::vector<std::pair<task_record*, bool>> noted_;       // notes that are being worked off
  std::unordered_map<std::uint64_t, array_core*> arrays_;  // by the owner's id
  using guests = std::unordered_map<std::uint64_t, std::unique_ptr<guest>>;
  using guests_by_task = std::unordered_map<task_record*, guest*>;
  guests guests_;
  guests_by_task by_task_;
  // Places of guests that have ended, kept for the next ones: thousands a second come and go.
  std::vector<guests::node_type> idle_guests_;
  std::vector<guests_by_task::node_type> idle_places_;
  std::unordered_map<task_record*, std::unique_ptr<door>> doors_;
  std::unordered_map<std::uint64_t, door*> coming_;  // by number
  std::unordered_map<std::uint64_t, push> pushes_;   // by the owner's number
  std::uint64_t pushed_bytes_ = 0;                   // that are kept
  std::uint64_t last_number_ = 0, newest_ = 0, newest_push_ = 0;
  std::unordered_set<std::uint64_t> cancelled_early_;
  std::vector<task_record*> asked_;  // doors through which comes what the next task needs
  std::vector<task_record*> to_submit_, to_close_, to_release_;
  std::vector<array_core*> to_drop_;
  struct parcel {
    std::vector<std::byte> head;
    net::const_pieces body;
    task_record* task;  // its door, which stays open until it has been sent; null: what is sent is a copy
    std::shared_ptr<net::session> over;
    std::shared_ptr<std::vector<std::byte>> copied{};
  };
  std::vector<parcel> to_send_;
  net::writer done_, wants_, unfilled_;
  // Between guest houses.
  std::unordered_map<std::uint64_t, door*> lends_;  // by the owner's number
  std::set<std::uint64_t> unlent_;
  std::unordered_map<std::uint64_t, asker> early_;  // for what has not been lent yet
  std::vector<std::pair<node_id, net::writer>> to_ask_;
  std::vector<std::pair<std::shared_ptr<net::session>, net::writer>> to_answer_;
};

}  // namespace troupe::detail
