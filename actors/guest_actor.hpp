// What this file is for: the state of a guest house. Its parts: guest_tasks.cpp (what comes and runs), guest_data.cpp
// (bytes in and out), guest_pulls.cpp (bytes from and to other guest houses).
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

#include "actors/guest_house.hpp"
#include "actors/logic/array_core.hpp"
#include "actors/node_names.hpp"
#include "actors/offers.hpp"
#include "actors/run_context.hpp"

namespace troupe::detail {

/// Of the host accesses that doors are.
extern const kernel_info access_kernel;
/// What is gathered for the owner is sent when it has grown so large: thousands of errors would be more than a frame holds.
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
    std::size_t on_their_way = 0;
    bool is_told = false;  // its end
    wire::task_end end;
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

  // ---- task_listener: with placement's turn, so it is only noted
  void granted(task_record& t) override { note(t, true); }
  void retired(task_record& t) override { note(t, false); }
  void after_turn() override;
  void began(task_record&) override;
  void note(task_record&, bool was_granted);

  // ---- guest_tasks.cpp
  void take_in(const wire::tasks&);
  void take_in(const wire::gaps&);
  void start(const wire::task_card&);
  void fill_in(guest&, const wire::task_card&, const offered_kernel&);
  void ended(guest&);
  void refuse_task(std::unique_ptr<guest>, wire::task_end);
  void tell_end(const wire::task_end&);
  void send(net::writer&);
  void cancel(std::uint64_t id);
  void drop(std::unordered_map<std::uint64_t, array_core*>::iterator);
  void work_off(std::unique_lock<std::mutex>&);

  // ---- guest_data.cpp
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

  // ---- guest_pulls.cpp
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

  std::mutex notes_lock_;
  std::vector<std::pair<task_record*, bool>> notes_;  // tasks and whether they were granted; else they have retired

  mutable std::mutex lock_;  // all that follows; never held while placement is asked something that takes its turn
  bool left_ = false, closed_ = false, released_ = false;
  std::unordered_map<std::uint64_t, array_core*> arrays_;  // by the owner's id
  std::unordered_map<std::uint64_t, std::unique_ptr<guest>> guests_;
  std::unordered_map<task_record*, guest*> by_task_;
  std::unordered_map<task_record*, std::unique_ptr<door>> doors_;
  std::unordered_map<std::uint64_t, door*> coming_;  // by number
  std::uint64_t last_number_ = 0, newest_ = 0;
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
