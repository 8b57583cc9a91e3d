// What this file is for: all streams of a runtime, for whoever watches them: in the program, or from outside.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/runtime.hpp>
#include <troupe/stream/report.hpp>

namespace troupe::stream {

/// The reports of the streams of a runtime whose handles exist, in the order in which they were started. As `report`,
/// waits up to 10 ms for each. Any thread.
std::vector<report> reports(const runtime&);

/// Opens a Unix socket at which the program `troupe streams PATH` shows the streams of a runtime. Only processes of the
/// same user may connect; nothing can be changed through it. While it exists one thread more does. It may outlive the
/// runtime, and tells then that it has none.
class report_socket {
 public:
  /// A path that a process which is gone has left is taken over. Throws `error(bad_argument)` for a path of more than
  /// 107 bytes, `error(io_failed)` where there can be no socket.
  report_socket(const runtime&, std::string path);
  report_socket(report_socket&&) noexcept;
  report_socket& operator=(report_socket&&) noexcept;
  ~report_socket();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe::stream
