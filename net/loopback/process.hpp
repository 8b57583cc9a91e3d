// What this file is for: what a loopback network is made of: processes, their ends of sessions, and the wires between.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "net/loopback/network.hpp"

namespace troupe::net::loopback {

using time_point = network::time_point;
using task = std::function<void()>;

class end;

struct process {
  transport_options options;
  identity self;  // as peers see it
  transport_events* events = nullptr;
  bool lives = true, started = false, paused = false;
  std::deque<task> held{};  // while it is paused
  std::map<node_id, std::shared_ptr<end>> sessions{};
  struct dial {
    endpoint to;
    process* target = nullptr;
    bool sent = false;
    std::shared_ptr<session> instead{};
    time_point began{};
    bool waited = false;
  };
  std::map<std::uint64_t, dial> dials{};
  std::vector<std::shared_ptr<end>> ending{};  // that have to tell it so
  std::uint64_t bytes_sent = 0, frames_sent = 0;
};

/// A connection in one direction.
struct wire {
  struct item {
    std::size_t bytes;
    task arrive;
  };
  time_point free{}, last{};
  std::deque<item> held{};  // while the path is cut
  bool stalled = false;     // and for ever
  std::size_t held_bytes = 0;
};

struct network::state {
  explicit state(std::uint64_t seed) : random(seed) {}

  struct event {
    time_point at{};
    std::uint64_t turn = 0;
    process* to = nullptr;  // nobody's: null
    task f{};
  };
  static bool later(const event& a, const event& b) { return std::pair(a.at, a.turn) > std::pair(b.at, b.turn); }

  void post(time_point, process*, task);
  bool step(time_point until);
  void pass(time_point until);
  double chance() { return static_cast<double>(random() >> 11) * 0x1p-53; }
  const link& link_of(const process& from, const process& to) const;
  time_point::duration delay(const process& from, const process& to);
  bool is_cut(const process& from, const process& to) const { return cuts.contains({from.self.id, to.self.id}); }
  /// Answers when it has left.
  time_point carry(wire&, process& from, process& to, std::size_t bytes, task arrive);
  void keep(const std::shared_ptr<end>&);
  /// Sends on its way what was held back and need not be any more.
  void flush();

  void dial(process&, const endpoint&, std::shared_ptr<session> instead);
  void try_dial(process&, std::uint64_t id);
  void requested(process& at, process& by, std::uint64_t id);
  void answered(process& at, std::uint64_t id, const std::shared_ptr<end>&);
  void refuse(process&, std::uint64_t id, dial_error::reason, std::optional<node_id> peer, time_point when);
  bool admits(const process& at, const process& by) const;
  void stop(process&, std::exception_ptr why, bool killed);
  process* find(const node_id&) const;

  /// Calls what is not this network's own, which may wait for a thread that sends. `lock` is held before and
  /// afterwards.
  template <class F>
  auto tell(F f) {
    struct relock {
      std::recursive_mutex& lock;
      ~relock() { lock.lock(); }
    };
    lock.unlock();
    const relock then{lock};
    F mine = std::move(f);  // ends before that
    return mine();
  }

  /// Held by a thread that makes something happen: all is told by one thread at a time. Taken before `lock`.
  std::recursive_mutex running;
  /// Held by whatever uses any of this, but not while something is told: others may send meanwhile.
  std::recursive_mutex lock;
  time_point now{std::chrono::hours(1)};
  std::uint64_t turns = 0, done = 0, dials = 0;
  std::uint16_t ports = 40'000;
  std::mt19937_64 random;
  std::vector<event> queue{};  // a heap
  std::vector<std::unique_ptr<process>> processes{};
  std::map<node_id, process*> latest{};      // the one with the largest incarnation
  std::map<endpoint, process*> listeners{};  // also of those that are gone: a dial must know the way
  link links{};
  std::map<std::pair<node_id, node_id>, link> own_links{};
  std::set<std::pair<node_id, node_id>> cuts{};
  double broken_dials = 0;
  std::vector<std::weak_ptr<end>> ends{};
  std::size_t ends_kept = 0;
};

/// An end of a session.
class end final : public session, public std::enable_shared_from_this<end> {
 public:
  end(network::state& n, process& owner, process& other, std::optional<endpoint> dialled)
      : network_(n), owner_(owner), other_(other), peer_(other.self), dialled_(std::move(dialled)), heard_(n.now) {}

  const identity& peer() const override { return peer_; }
  bool dialled() const override { return dialled_.has_value(); }
  std::optional<endpoint> dialled_at() const override { return dialled_; }
  bool send(std::span<const std::byte>) override;
  std::size_t frame_max() const override;
  void send_bulk(std::span<const std::byte> head, const_pieces, std::function<void(bool)> done) override;
  std::size_t unsent() const override;
  time_point heard() const override { return read(heard_); }
  std::uint64_t bytes_sent() const override { return read(sent_); }
  std::uint64_t bytes_received() const override { return read(received_); }
  void close(std::exception_ptr why) override;

  void connect(const std::shared_ptr<end>& other) { far_ = other; }
  std::shared_ptr<end> far() const { return far_.lock(); }
  void open();
  bool is_open() const { return open_; }
  bool has_ended() const { return ended_; }
  bool has_heard_since(time_point t) const { return heard_ > t; }
  /// Ends the session here: what is under way is answered for, and the owner told. The other end learns of it over the
  /// wire, in order or, if `reset`, ahead of what is under way.
  void finish(std::exception_ptr why, bool reset);
  /// After that: what waits for an answer gets one, and then the owner is told.
  void tell_end();
  /// Drops what was to be sent, which never will be: the process was killed, and its memory goes.
  void let_go();
  void far_has_finished(bool reset);
  wire control{}, bulk{};
  void pump();
  process& owner() const { return owner_; }
  process& other() const { return other_; }

 private:
  struct leaving {
    std::uint64_t id;
    std::vector<std::byte> head;
    const_pieces body;
    std::size_t piece = 0, offset = 0;
    std::uint64_t left;
    std::function<void(bool)> done;
    bool first = true;
  };
  struct coming {
    std::vector<std::byte> head;
    pieces body;
    std::size_t piece = 0, offset = 0;
    bool wanted = false;
  };
  struct chunk {
    std::uint64_t id, total;
    bool first, last;
    std::vector<std::byte> head, bytes;
  };
  void received(const std::vector<std::byte>& frame);
  void received(const chunk&);
  void count(std::size_t bytes, bool sent);
  template <class T>
  T read(const T& x) const {
    const std::lock_guard hold(network_.lock);
    return x;
  }

  network::state& network_;
  process& owner_;
  process& other_;
  const identity peer_;
  const std::optional<endpoint> dialled_;
  std::weak_ptr<end> far_;
  time_point heard_;
  std::uint64_t sent_ = 0, received_ = 0, transfers_ = 0;
  bool open_ = false, ended_ = false, end_told_ = false, told_up_ = false, pumping_ = false;
  std::exception_ptr why_;
  std::deque<leaving> leaving_;
  std::map<std::uint64_t, coming> coming_;
};

}  // namespace troupe::net::loopback
