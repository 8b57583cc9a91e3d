// What this file is for: the state of a guest house. Its parts: guest_tasks.cpp (what comes and runs), guest_data.cpp
// (bytes in and out).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <list>
#include <mutex>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/guest_house.hpp"
#include "actors/logic/array_core.hpp"
#include "actors/offers.hpp"
#include "actors/run_context.hpp"

namespace troupe::detail {

/// Of the host accesses that doors are.
extern const kernel_info access_kernel;

class guest_actor final : public guest_house, private task_listener {
 public:
  guest_actor(engine& house, placement& p, wait_board& b, house_link& link, std::shared_ptr<net::session> s)
      : house_(house), placement_(p), board_(b), link_(link), session_(std::move(s)) {}

  void frame(std::span<const std::byte>) override;
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(std::span<const std::byte> head, bool whole) override;
  void close_door() override;
  bool is_released() const override;
  void leave() override;
  bool is_empty() const override;

 private:
  /// A task that runs here.
  struct guest {
    std::uint64_t id = 0;
    task_record* task = nullptr;
    std::stop_source stop;
    std::vector<std::pair<int, wire::access_card>> returns;  // what goes back, by the number of the access
    std::vector<array_core*> arrays;                         // of those; a reference each
    std::size_t on_their_way = 0;
    wire::task_end end;
  };
  /// Bytes of an array on their way in or out: a host access of this runtime.
  struct door {
    enum class use { in, home, back } what = use::in;
    std::uint64_t number = 0;  // ours of what comes in, the owner's of what goes
    int access = 0;
    guest* of = nullptr;  // back
    task_record* task = nullptr;
    std::size_t element = 1;
    std::uint64_t array = 0;
    wire::gap what_box;
    bool open = false;
    raw_view view;
    scratch buffers;
    std::unique_ptr<run_context> context;
  };

  // ---- task_listener: with placement's turn, so it is only noted
  void granted(task_record& t) override { note(t, true); }
  void retired(task_record& t) override { note(t, false); }
  void after_turn() override;
  void note(task_record&, bool was_granted);

  // ---- guest_tasks.cpp
  void take_in(const wire::tasks&);
  void start(const wire::task_card&);
  void fill_in(guest&, const wire::task_card&, const offered_kernel&);
  void ended(guest&);
  void tell_end(const wire::task_end&);
  void cancel(std::uint64_t id);
  void drop(std::unordered_map<std::uint64_t, array_core*>::iterator);
  void work_off(std::unique_lock<std::mutex>&);

  // ---- guest_data.cpp
  void ask_for(array_core&, std::uint64_t array, const wire::gap&);
  void open_door(array_core&, access_mode, const logic::box4& where, std::unique_ptr<door>);
  void give(const wire::box_request&);
  void send_back(guest&);
  void opened(door&);
  void closed(door&);
  void close(door&);
  void sent(task_record*);
  void tell_cannot(const door&, const std::exception_ptr& why);

  engine& house_;
  placement& placement_;
  wait_board& board_;
  house_link& link_;
  const std::shared_ptr<net::session> session_;
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
  std::vector<task_record*> to_submit_, to_close_, to_release_;
  std::vector<array_core*> to_drop_;
  struct parcel {
    std::vector<std::byte> head;
    net::const_pieces body;
    task_record* task;  // its door, which stays open until it has been sent
  };
  std::vector<parcel> to_send_;
  net::writer done_, wants_;
};

}  // namespace troupe::detail
