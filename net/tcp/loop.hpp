// What this file is for: a thread that waits for sockets and for times, and does what it is asked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Asio stays in the source: it is slow to compile. What waits here is dropped by `stop`, not run: an object that waits
// for something is held elsewhere as well.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/transport.hpp"

namespace troupe::net::tcp {

class loop {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `looks`: so long after something has happened its thread looks for more before it sleeps (adaptive_spin.hpp).
  explicit loop(std::string thread_name, std::chrono::nanoseconds looks = {});
  ~loop();
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  void start();
  /// Any thread. Runs in the order of the calls; false, and nothing runs, after `stop`.
  bool post(std::function<void()>);
  /// Any thread. Not before that time; in the order of the calls for the same time.
  void at(time_point, std::function<void()>);
  /// Joins the thread. Every `watch` has to be gone.
  void stop();
  /// Lets other threads do this one's part while it has nothing to do. Usable for longer than this object lives.
  std::shared_ptr<control_poller> poller();

 private:
  friend class watch;
  struct inside;
  std::shared_ptr<inside> inside_;
};

/// Says when a socket is ready. Made, used and destroyed on the loop's thread; the socket is somebody else's and is
/// closed after this is gone. At most one wait of each kind at a time.
class watch {
 public:
  /// How much comes over a connection: `often` where messages answer each other. While the loop is polled such a socket is
  /// looked at without being waited for: the call that is to come when it is readable may come when it is not.
  enum class traffic { seldom, often };
  watch(loop&, int socket, traffic = traffic::seldom);
  ~watch();
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  /// Once. It is ready also when there is an error to be seen.
  void readable(std::function<void()>);
  void writable(std::function<void()>);
  /// Notes, in the call that `readable` makes, that there was something.
  void found();
  /// True in a call for which nobody has waited: there may be nothing.
  bool is_look() const;

 private:
  struct inside;
  std::shared_ptr<inside> inside_;
};

}  // namespace troupe::net::tcp
