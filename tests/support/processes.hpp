// What this file is for: programs that a test starts, listens to, signals, looks into, and always takes away again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline constexpr std::chrono::milliseconds usual_patience{20'000};

/// Thrown where what was waited for did not happen; says what the program had written until then.
struct too_late : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a program ended: with a code, or by a signal.
struct ending {
  std::optional<int> code{}, signal{};
  bool operator==(const ending&) const = default;
  std::string text() const;
};
inline ending ended_with(int code) { return {code, std::nullopt}; }
inline ending killed_by(int signal) { return {std::nullopt, signal}; }

/// The facts that /proc says of a living process.
struct process_facts {
  std::size_t descriptors = 0, threads = 0, resident_bytes = 0;
  char state = '?';  ///< R, S, T, Z, ... as in proc(5)
};
process_facts facts_of(pid_t);

struct child_options {
  std::vector<std::string> environment{};  ///< "NAME=value", in place of or beside this process's
  int net_namespace = -1;                  ///< a descriptor of the one to run in
  std::size_t descriptors_max = 0;         ///< RLIMIT_NOFILE; 0: as for this process
  std::size_t address_space_max = 0;       ///< RLIMIT_AS, in bytes; 0: as for this process
  /// A folder that is a disk of its own to it; empty: none. Needs CAP_SYS_ADMIN, or user namespaces for anybody.
  std::string small_disk{};
  std::size_t small_disk_bytes = 0;  ///< what that has room for
};

/// A running program. Its stdout is read in lines; its stderr is kept. It does not outlive the test: the destructor
/// kills it, and the system does if this process dies (if the thread that started it is gone, to be exact).
class child {
 public:
  /// `words[0]` is a path, or a name to be looked for as a shell does. Throws if it cannot be started.
  explicit child(std::vector<std::string> words, const child_options& = {});
  child(child&&) noexcept;
  child& operator=(child&&) noexcept;
  ~child();

  pid_t id() const { return id_; }

  /// The next line of stdout; nothing at its end. Throws `too_late`.
  std::optional<std::string> line(std::chrono::milliseconds = usual_patience);
  /// Skips to the line for which it is true. Throws `too_late`, also if stdout ends before.
  std::string line_where(const std::function<bool(const std::string&)>&, std::chrono::milliseconds = usual_patience);
  /// Skips to the line that begins so, and gives the rest of it.
  std::string line_after(const std::string& beginning, std::chrono::milliseconds = usual_patience);
  /// Lets it read a line.
  void tell(const std::string& line);
  /// Its input ends.
  void end_input();

  /// Sends a signal. SIGSTOP and SIGCONT have taken effect when it returns.
  void signal(int);
  /// Waits for its end; may be asked again. Throws `too_late`.
  ending wait(std::chrono::milliseconds = usual_patience);
  bool is_running();
  /// Whether it exists still, and what it uses.
  process_facts facts() const { return facts_of(id_); }

  /// All that it has written to stdout so far and was read by `line` or `wait`, and all of stderr.
  const std::string& out() const { return out_; }
  std::string err() const;

 private:
  bool read_some(std::chrono::steady_clock::time_point until);  ///< false: the end of stdout
  [[noreturn]] void give_up(const std::string& on) const;
  void take_away() noexcept;

  std::string name_;
  pid_t id_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1, handle_ = -1;
  std::string out_;
  std::size_t read_ = 0;  ///< of out_, by line()
  std::optional<ending> ending_;
};

/// Runs a program to its end.
struct finished {
  ending how;
  std::string out, err;
};
finished run(std::vector<std::string> words, const child_options& = {}, std::chrono::milliseconds = usual_patience);

}  // namespace test
