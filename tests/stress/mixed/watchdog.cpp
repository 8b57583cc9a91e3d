// What this file is for: notices that nothing moves, and tells all that is known before it ends the process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "watchdog.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace mixed {

namespace {

// The stacks of all threads, by gdb; without it a sentence.
void print_stacks() {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const std::string id = std::to_string(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(2, 1);
    ::execlp("gdb", "gdb", "-p", id.c_str(), "-batch", "-nx", "-ex", "set pagination off", "-ex",
             "thread apply all -s bt 24", static_cast<char*>(nullptr));
    ::dprintf(2, "(no stacks: gdb is missing)\n");
    ::_exit(0);
  }
  int status = 0;
  for (int i = 0; child > 0 && i < 600; ++i) {  // a minute at most
    if (::waitpid(child, &status, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

watchdog::watchdog(std::chrono::seconds patience, const std::atomic<std::uint64_t>& steps, std::string headline,
                   std::function<void()> describe, std::function<void()> ask)
    : patience_(patience),
      steps_(steps),
      headline_(std::move(headline)),
      describe_(std::move(describe)),
      ask_(std::move(ask)),
      thread_([this] { watch(); }) {}

watchdog::~watchdog() {
  {
    const std::lock_guard hold(lock_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void watchdog::watch() {
  std::uint64_t last = steps_.load();
  auto since = std::chrono::steady_clock::now();
  std::unique_lock hold(lock_);
  while (!changed_.wait_for(hold, std::chrono::milliseconds(100), [&] { return over_; })) {
    const std::uint64_t now = steps_.load();
    if (std::exchange(last, now) != now)
      since = std::chrono::steady_clock::now();
    else if (std::chrono::steady_clock::now() - since > patience_)
      bark();
  }
}

void watchdog::bark() {
  std::fprintf(stderr, "\nHANG: nothing has moved for %lld s\n%s\n", static_cast<long long>(patience_.count()),
               headline_.c_str());
  describe_();
  std::fflush(stderr);
  print_stacks();
  std::thread(ask_).detach();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::fflush(stderr);
  std::abort();
}

}  // namespace mixed
