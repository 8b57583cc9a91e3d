// What this file is for: the state of a node service: its parts, and the actor that applies what they answer.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   transfers.cpp     steps that the others share
//   pulls.cpp         bytes from and to node services on other nodes
//   data.cpp          bytes in and out
//   tasks.cpp         arrays and tasks that come, run and end
//   node_service.cpp  messages, and what is done once the lock is free
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/logic/data/array_core.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/node_service/call_checks.hpp"
#include "actors/node_service/deferred_calls.hpp"
#include "actors/node_service/loans.hpp"
#include "actors/node_service/node_service.hpp"
#include "actors/node_service/outgoing.hpp"
#include "actors/node_service/partial_groups.hpp"
#include "actors/node_service/push_store.hpp"
#include "actors/node_service/remote_tasks.hpp"
#include "actors/node_service/transfer_table.hpp"
#include "actors/node_service/unsent_requests.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

/// The kernel of the host accesses of transfers.
extern const kernel_info access_kernel;
class node_service_actor final : public node_service, private task_listener {
 public:
  node_service_actor(engine& the_engine, placement& p, wait_table& b, runtime_state& rt,
                     std::shared_ptr<net::session> s, find_line lines, find_part parts,
                     std::function<void()> close_sums_later, failure_sink give_up)
      : engine_(the_engine),
        placement_(p),
        board_(b),
        rt_(rt),
        session_(std::move(s)),
        lines_(std::move(lines)),
        find_part_(std::move(parts)),
        close_sums_later_(std::move(close_sums_later)),
        give_up_(std::move(give_up)),
        pushes_(rt),
        out_(session_) {}

  void frame(std::span<const std::byte>) override;
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(std::span<const std::byte> head, bool whole) override;
  void pull(const wire::pull_request&, const std::shared_ptr<net::session>& line) override;
  void cannot_pull(const wire::pull_refusal&, const node_id& by) override;
  net::pieces pulled_arriving(const wire::pulled_head&, std::uint64_t bytes, const node_id& from) override;
  void pulled_arrived(const wire::pulled_head&, const node_id& from, bool whole) override;
  void lost(const node_id&) override;
  void linked(const node_id&) override;
  void give_up_link(const node_id&) override;
  void close_sums() override;
  void close_intake() override;
  node_id owner() const override { return name_of(session_->peer().id); }
  bool is_released() const override;
  void leave() override;
  bool is_empty() const override;
  const task_listener* listener() const override { return this; }

  // ---- actor
  actor_kind kind() const override { return actor_kind::node_service; }
  std::string label() const override { return "service of " + session_->peer().name; }
  void withdraw(std::exception_ptr why) override { give_up_(std::move(why)); }

 private:
  // ---- task_listener: called with placement's turn, so it is only noted
  void granted(task_record& t) override { notes_.add(t, true); }
  void retired(task_record& t) override { notes_.add(t, false); }
  void after_turn() override;
  void began(task_record& t) override { tell_of_body(t, wire::kind::begun); }
  void tried(task_record& t) override { tell_of_body(t, wire::kind::tried); }
  void tell_of_body(task_record&, wire::kind);

  /// Messages and calls that have been gathered under the lock, and are sent and made without it.
  struct due {
    deferred_calls::batch calls;
    outgoing::batch out;
  };

  // Functions are called with the lock, unless it says otherwise. Each file calls functions of those before it only.
  // ---- transfers.cpp
  static void check(const array_core&, const wire::gap&);
  transfer& begin(array_core&, access_mode, const logic::box4& where, std::unique_ptr<transfer>);
  void close(transfer&);
  static net::pieces give_room(transfer&, std::uint64_t bytes);
  void tell_not_sent(std::uint64_t number, errc, const std::exception_ptr& why);
  void remove(remote_task&);
  void tell_end(const wire::task_end&);
  void drop(std::unordered_map<std::uint64_t, array_core*>::iterator);

  // ---- pulls.cpp
  void ask_other(const transfer&);
  transfer* pulling(std::uint64_t number, std::uint64_t lent, const node_id& from) const;
  void no_pull(std::uint64_t lent, const node_id& by);
  void never_comes(transfer&, const std::exception_ptr& why);
  void fail(transfer&);
  void keep_for_others(const wire::box_request&, std::uint64_t writer);
  void answer(transfer&);
  void turn_away(const borrower&, const std::string& why);
  void lend_ended(const transfer&);
  void does_not_lend(std::uint64_t number, const std::string& why);
  void unlend(std::uint64_t number);
  void end_loan(transfer&, const std::exception_ptr& why);
  void drop_lends();

  // ---- data.cpp
  void opened(transfer&);
  void closed(transfer&);
  void ask_for(array_core&, std::uint64_t array, const wire::gap&);
  void get_bytes(transfer&);
  void put_in_place(transfer&);
  void send_home(const wire::box_request&, bool is_snapshot);
  void send_back(remote_task&, std::span<const wire::written_box> sent);
  void send_bytes(transfer&);
  bool send_copy(transfer&, std::vector<std::byte>& head, const net::pieces& rows);
  void add_up(transfer&);
  void leave_sum(remote_task&);
  void send_sum(std::optional<partial_groups::sum>);
  void send_sums();
  void note_not_sent(const transfer&, const std::exception_ptr& why);

  // ---- tasks.cpp
  void take_in(const wire::array_descriptor&);
  void take_in(const wire::gaps&);
  void start(const wire::task_descriptor&);
  void add_access(remote_task&, task_record&, const wire::access_descriptor&);
  void make_task(remote_task&, const wire::task_descriptor&);
  void make_part(task_record&, std::span<const std::span<const std::byte>> values);
  void ended(remote_task&, bool runtime_ends);
  void refuse_task(remote_task&, wire::task_end);
  void recall(std::uint64_t id);

  // ---- node_service.cpp
  due take_due();
  // Without the lock.
  void carry_out(due);
  void sent(task_record*);
  void ask_others(std::vector<std::pair<node_id, net::writer>>);
  void give_up(const node_id&, bool has_ended);
  void take_notes();

  engine& engine_;
  placement& placement_;
  wait_table& board_;
  runtime_state& rt_;
  const std::shared_ptr<net::session> session_;
  const find_line lines_;
  const find_part find_part_;
  const std::function<void()> close_sums_later_;
  const failure_sink give_up_;
  const std::atomic<bool> never_stopping_{false};
  const scope here_ = scope::here();
  turn_notes notes_;
  unsent_requests unsent_;

  mutable std::mutex lock_;  // all that follows; never held while placement is asked something that takes its turn
  bool left_ = false, closed_ = false, released_ = false;
  std::unordered_map<std::uint64_t, array_core*> arrays_;  // by the owner's id
  remote_tasks tasks_;
  transfer_table transfers_;
  std::vector<task_record*> asked_;  // transfers of boxes that the next task needs
  push_store pushes_;
  partial_groups groups_;
  bool sums_are_due_ = false;  // close_sums will be called
  loans loans_;
  outgoing out_;
  deferred_calls later_;
};

}  // namespace troupe::detail
