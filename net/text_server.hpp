// What this file is for: a text for whoever connects to a Unix socket, made anew each time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace troupe::net {

/// A thread that answers at a Unix socket: calls `text`, sends what it returns, and closes the connection. One answer at
/// a time; a reader that does not read is given up after a second. The destructor ends the thread and removes the path.
class text_server {
 public:
  /// Only the user's own processes may connect. A path that a process which is gone has left is taken over. Throws
  /// `error(bad_argument)` for a path of more than 107 bytes, `error(io_failed)` where there can be no socket. `text` is
  /// called on the thread, and must not throw.
  text_server(std::string path, std::function<std::string()> text);
  ~text_server();
  text_server(const text_server&) = delete;
  text_server& operator=(const text_server&) = delete;

 private:
  void answer_until_told();
  void answer(int connection) const;

  const std::string path_;
  const std::function<std::string()> text_;
  int listening_ = -1, told_ = -1;
  std::thread thread_;
};

}  // namespace troupe::net
