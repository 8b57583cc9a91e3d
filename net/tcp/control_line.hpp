// What this file is for: the control connection of a session: frames out from any thread, frames in on the loop's.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/tcp/frame_buffer.hpp"
#include "net/tcp/loop.hpp"
#include "net/tcp/stream.hpp"

namespace troupe::net::tcp {

class control_line {
 public:
  struct bounds {
    std::size_t out_max;     ///< of a frame that is sent
    std::size_t in_max;      ///< of one that arrives
    std::size_t unsent_max;  ///< of all that wait
  };
  using frame_told = std::function<void(std::span<const std::byte>)>;
  using failure = std::function<void(std::exception_ptr)>;

  control_line(loop&, std::unique_ptr<stream>, bounds, std::string peer);
  ~control_line();

  /// Sets the holder of this line and what is told, before anybody else knows the line. `failed` may be called by any
  /// thread, several times.
  void owned_by(std::weak_ptr<void> owner, frame_told, failure failed);
  /// On the loop: begins to read.
  void begin();
  /// On the loop: tells what has arrived by now.
  void hear_out() { take_in(); }
  /// Any thread.
  bool send(std::span<const std::byte> frame);
  std::size_t unsent() const;
  /// Any thread: nothing is sent or told any more.
  void mute();
  /// On the loop: the connection is closed.
  void close();

 private:
  /// How a thread that reads behaves while another one has the line: it waits, or gives up until the next look.
  enum class lock_policy { wait, try_once };
  void take_in(lock_policy = lock_policy::wait);
  void read_some(lock_policy);
  /// Writes until nothing waits or the socket is full; false if it broke. With the lock held.
  bool flush();
  void write_failed(outcome);
  void wait_to_read();
  void wait_to_write();
  std::exception_ptr broken(outcome);
  std::exception_ptr broken_at(const std::string& what) const;

  loop& loop_;
  const bounds bounds_;
  const std::string peer_;
  frame_told frame_;
  failure failed_;
  std::weak_ptr<void> owner_;
  std::unique_ptr<watch> watch_;  ///< the loop's thread only
  frame_buffer in_;               ///< likewise
  bool reading_wants_write_ = false;

  mutable std::mutex lock_;
  std::unique_ptr<stream> io_;
  bool muted_ = false;
  bool write_failed_ = false;
  bool waiting_ = false;  ///< for room in the socket; the loop goes on then
  std::vector<std::byte> out_;
  std::size_t out_at_ = 0;  ///< how much of it has been written
};

}  // namespace troupe::net::tcp
