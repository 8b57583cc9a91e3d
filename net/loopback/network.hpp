// What this file is for: a network in one process and virtual time, with faults, that does the same for the same seed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Transports are attached to a network as processes. Everything is told on the thread that calls `run_for` or
// `run_until`: the control and bulk threads of all are that thread. Others may send meanwhile, as the seam allows, but
// then nothing is the same twice. Time stands still except while the network runs, and jumps from event to event.
//
// Whatever is sent on a session arrives in order on each of its two connections; between connections the order is
// random, as delays are. A cut path holds back what is sent, as a network that drops packets does: it arrives when the
// path is mended, if the session is still there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "net/transport.hpp"

namespace troupe::net::loopback {

/// A path from one process to another.
struct link {
  std::chrono::nanoseconds delay_least{50'000}, delay_most{200'000};
  std::uint64_t bytes_per_s = 0;  ///< of each connection; 0: no limit
  double loss = 0;                ///< of what is sent, this part comes 200 ms later
};

class network {
 public:
  using time_point = transport::time_point;
  using duration = time_point::duration;

  explicit network(std::uint64_t seed);
  network(const network&) = delete;
  network& operator=(const network&) = delete;
  ~network();

  /// The transport of one more process; the network must outlive it. A process that is killed and comes back is
  /// another.
  std::unique_ptr<transport> attach(transport_options);

  time_point now() const;
  void run_for(duration);
  /// Looks after each event; false: it has not become true in time.
  bool run_until(const std::function<bool()>&, duration limit);
  /// Calls `f` at that time, as nobody's event.
  void at(time_point, std::function<void()> f);

  // ---- faults -------------------------------------------------------------------------------------------------------
  void set_links(const link&);  ///< all that were not set apart
  void set_link(const node_id& from, const node_id& to, const link&);
  void cut(const node_id& from, const node_id& to);  ///< one way
  void mend(const node_id& from, const node_id& to);
  void mend_all();
  /// The session that the two have carries nothing any more, either way, as one whose packets were lost for so long
  /// that they will not be tried again soon. A new one does.
  void stall(const node_id&, const node_id&);
  /// The session of the two breaks, as by a reset of its connection; what is under way is lost from some point on.
  void reset(const node_id&, const node_id&);
  /// Has this part of the dials break off.
  void break_dials(double part);
  /// The process stands still: what comes for it waits.
  void pause(const node_id&);
  void resume(const node_id&);
  /// The process is gone at once, and its sockets with it. Its transport tells nothing any more.
  void kill(const node_id&);

  // ---- to look at ---------------------------------------------------------------------------------------------------
  bool is_cut(const node_id& from, const node_id& to) const;
  /// True if both nodes have the session.
  bool are_connected(const node_id&, const node_id&) const;
  std::uint64_t bytes_sent(const node_id&) const;
  std::uint64_t frames_sent(const node_id&) const;
  std::uint64_t events() const;

  struct state;

 private:
  std::unique_ptr<state> state_;
};

}  // namespace troupe::net::loopback
