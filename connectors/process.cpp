// What this file is for: a child process, its pipes, and its end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "connectors/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include <troupe/error.hpp>

extern char** environ;

namespace troupe::connectors {

namespace {

constexpr std::size_t said_max = 4096;

[[noreturn]] void refuse(const std::string& what, int why) {
  throw error(errc::io_failed, what + ": " + std::strerror(why));
}

// A program that runs, with the ends of its pipes. Kills it if it has not ended.
class child {
 public:
  explicit child(const std::vector<std::string>& command) : name_(command.front()) {
    std::array<int, 2> out{-1, -1}, err{-1, -1};
    // Of what it says the end of the pipe that it writes does not block: a program that says much must not wait for
    // somebody to listen.
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
      const int why = errno;
      for (const int d : {out[0], out[1]})
        if (d >= 0) ::close(d);
      refuse(name_, why);
    }
    ::fcntl(err[0], F_SETFL, O_NONBLOCK);
    ::fcntl(err[1], F_SETFL, O_NONBLOCK);
    ::fcntl(out[0], F_SETFL, O_NONBLOCK);
    out_ = out[0];
    err_ = err[0];
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    std::vector<char*> arguments;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    // A group of its own: what the program has started ends with it.
    ::posix_spawnattr_t how;
    ::posix_spawnattr_init(&how);
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&how, 0);
    const int failed = ::posix_spawnp(&pid_, name_.c_str(), &actions, &how, arguments.data(), environ);
    ::posix_spawnattr_destroy(&how);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    ::close(err[1]);
    if (failed != 0) {
      pid_ = -1;
      close();
      refuse(name_, failed);
    }
  }
  child(child&& o) noexcept
      : name_(std::move(o.name_)),
        said_(std::move(o.said_)),
        pid_(std::exchange(o.pid_, -1)),
        out_(std::exchange(o.out_, -1)),
        err_(std::exchange(o.err_, -1)) {}
  child& operator=(child&&) = delete;
  ~child() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
    }
    close();
  }

  int out() const { return out_; }
  /// Keeps the end of what it has said.
  void listen() {
    std::array<char, 1024> some;
    for (ssize_t n; (n = ::read(err_, some.data(), some.size())) > 0;) {
      said_.append(some.data(), static_cast<std::size_t>(n));
      if (said_.size() > said_max) said_.erase(0, said_.size() - said_max);
    }
  }
  /// True once it has ended. Does not wait.
  bool has_ended() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0;
  }
  /// Throws if it has not gone well; once it has ended.
  void check_end(std::size_t left_over) {
    const int status = status_;
    listen();
    std::string how;
    if (WIFSIGNALED(status)) how = "ended by signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) how = "ended with code " + std::to_string(WEXITSTATUS(status));
    if (how.empty() && left_over != 0)
      how = "ended in the middle of a block, after " + std::to_string(left_over) + " bytes of it";
    if (how.empty()) return;
    while (!said_.empty() && said_.back() == '\n') said_.pop_back();
    std::replace(said_.begin(), said_.end(), '\0', '?');
    throw error(errc::io_failed, name_ + " " + how + (said_.empty() ? "" : "; it said: " + said_));
  }

 private:
  void close() {
    for (const int d : {out_, err_})
      if (d >= 0) ::close(d);
  }
  std::string name_, said_;
  ::pid_t pid_ = -1;
  int status_ = 0;
  int out_ = -1, err_ = -1;
};

stream::source<block> blocks_of(child c, std::size_t bytes) {
  stream::recycler<std::vector<unsigned char>> memory;
  for (;;) {
    block b = memory.take();
    b->resize(bytes);
    std::size_t have = 0;
    while (have < bytes) {
      const ssize_t n = ::read(c.out(), b->data() + have, bytes - have);
      if (n > 0) {
        have += static_cast<std::size_t>(n);
        continue;
      }
      c.listen();
      if (n == 0) {
        // It may close its output and go on.
        while (!c.has_ended()) co_await stream::sleep(std::chrono::milliseconds(2));
        c.check_end(have);
        co_return;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) refuse("the output of a program", errno);
      co_await stream::readable(c.out());
    }
    co_yield std::move(b);
  }
}

}  // namespace

stream::source<block> process_blocks(const std::vector<std::string>& command, std::size_t bytes) {
  if (command.empty() || command.front().empty()) throw error(errc::bad_argument, "process_blocks() without a program");
  if (bytes == 0) throw error(errc::bad_argument, "process_blocks() with blocks of 0 bytes");
  return blocks_of(child(command), bytes);
}

}  // namespace troupe::connectors
