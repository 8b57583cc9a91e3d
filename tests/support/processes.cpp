// What this file is for: fork, pipes, pidfds and /proc.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

extern char** environ;

namespace test {

namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned close_range_cloexec = 4;  // CLOSE_RANGE_CLOEXEC, which old headers do not know

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

int milliseconds_until(clock::time_point t) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(t - clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

bool readable(int descriptor, clock::time_point until) {
  for (;;) {
    pollfd p{descriptor, POLLIN, 0};
    const int n = ::poll(&p, 1, milliseconds_until(until));
    if (n > 0) return true;
    if (n == 0 && clock::now() >= until) return false;
    if (n < 0 && errno != EINTR) fail("poll");
  }
}

struct two_ends {
  two_ends() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) fail("pipe");
    reading = both[0];
    writing = both[1];
  }
  ~two_ends() {
    if (reading >= 0) ::close(reading);
    if (writing >= 0) ::close(writing);
  }
  two_ends(const two_ends&) = delete;
  two_ends& operator=(const two_ends&) = delete;
  int reading, writing;
};

std::vector<std::string> environment_with(const std::vector<std::string>& own) {
  std::vector<std::string> all;
  const auto name_of = [](const std::string& s) { return s.substr(0, s.find('=') + 1); };
  for (char** e = environ; *e; ++e)
    if (std::none_of(own.begin(), own.end(), [&](const auto& o) { return name_of(o) == name_of(*e); }))
      all.emplace_back(*e);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

// Between fork and exec: system calls only. Says what failed by a pipe that closes when the program has begun.
struct beginning {
  char** words;
  char** environment;
  int input, output, errors, report;
  pid_t parent;
  const child_options* with;
  const char* disk_size;
  const char *user_map, *group_map;

  [[noreturn]] void run() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    bool good =
        ::dup2(input, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(errors, STDERR_FILENO) >= 0;
    if (with->net_namespace >= 0) good = good && ::setns(with->net_namespace, CLONE_NEWNET) == 0;
    const auto limit_to = [&](auto what, std::size_t most) {
      const rlimit limit{most, most};
      good = good && (most == 0 || ::setrlimit(what, &limit) == 0);
    };
    limit_to(RLIMIT_NOFILE, with->descriptors_max);
    limit_to(RLIMIT_AS, with->address_space_max);
    if (!with->small_disk.empty())  // which nobody else sees, and which is gone with the process
      good = good && has_own_mounts() && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             ::mount("tmpfs", with->small_disk.c_str(), "tmpfs", 0, disk_size) == 0;
    // None of this process's but the three, wherever they come from.
    good = good && ::syscall(SYS_close_range, 3u, ~0u, close_range_cloexec) == 0;
    if (good) ::execvpe(words[0], words, environment);
    const int fault = errno;
    [[maybe_unused]] const ssize_t said = ::write(report, &fault, sizeof fault);
    ::_exit(127);
  }
  // Whoever may not make a namespace of mounts may do so in one of users, where that is allowed to anybody.
  bool has_own_mounts() const {
    if (::unshare(CLONE_NEWNS) == 0) return true;
    return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", user_map) && put("/proc/self/gid_map", group_map);
  }
  static bool put(const char* file, const char* text) {
    const int to = ::open(file, O_WRONLY | O_CLOEXEC);
    return to >= 0 && ::write(to, text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
  }
};

std::string whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string ending::text() const {
  if (code) return "exit code " + std::to_string(*code);
  return signal ? "signal " + std::to_string(*signal) : "not ended";
}

process_facts facts_of(pid_t id) {
  const std::string folder = "/proc/" + std::to_string(id);
  process_facts f;
  std::error_code gone;
  std::filesystem::directory_iterator at(folder + "/fd", gone);
  if (!gone)
    for (; at != std::filesystem::directory_iterator() && !gone; at.increment(gone)) ++f.descriptors;
  // The name, in brackets, may hold anything.
  const std::string stat = whole(folder + "/stat");
  const auto after = stat.rfind(')');
  if (after == stat.npos) throw std::runtime_error("there is no process " + std::to_string(id));
  std::vector<std::string> fields;
  for (std::size_t from = after + 2; from < stat.size();) {
    const auto to = std::min(stat.find(' ', from), stat.size());
    fields.push_back(stat.substr(from, to - from));
    from = to + 1;
  }
  f.state = fields.at(0).at(0);
  f.threads = std::stoul(fields.at(17));
  f.resident_bytes = std::stoul(fields.at(21)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return f;
}

child::child(std::vector<std::string> words, const child_options& with) : name_(words.at(0)) {
  two_ends input, output, report;
  errors_ = ::memfd_create("stderr", MFD_CLOEXEC);
  if (errors_ < 0) fail("memfd_create");
  auto environment = environment_with(with.environment);
  const auto word_pointers = pointers_to(words), environment_pointers = pointers_to(environment);
  const std::string disk_size = "size=" + std::to_string(with.small_disk_bytes);
  const auto stays = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  const std::string user_map = stays(::geteuid()), group_map = stays(::getegid());
  const beginning b{const_cast<char**>(word_pointers.data()),
                    const_cast<char**>(environment_pointers.data()),
                    input.reading,
                    output.writing,
                    errors_,
                    report.writing,
                    ::getpid(),
                    &with,
                    disk_size.c_str(),
                    user_map.c_str(),
                    group_map.c_str()};
  id_ = ::fork();
  if (id_ == 0) b.run();
  if (id_ < 0) {
    const int fault = errno;
    ::close(errors_);
    errno = fault;
    fail("fork");
  }
  handle_ = static_cast<int>(::syscall(SYS_pidfd_open, id_, 0));
  ::close(std::exchange(report.writing, -1));
  int fault = 0;
  ssize_t said;
  while ((said = ::read(report.reading, &fault, sizeof fault)) < 0 && errno == EINTR) {
  }
  input_ = std::exchange(input.writing, -1);
  output_ = std::exchange(output.reading, -1);
  if (said > 0 || handle_ < 0) {
    if (said <= 0) fault = errno;
    take_away();
    errno = fault;
    fail("cannot start " + name_);
  }
}

child::child(child&& from) noexcept { *this = std::move(from); }

child& child::operator=(child&& from) noexcept {
  if (this == &from) return *this;
  take_away();
  name_ = std::move(from.name_);
  id_ = std::exchange(from.id_, -1);
  input_ = std::exchange(from.input_, -1);
  output_ = std::exchange(from.output_, -1);
  errors_ = std::exchange(from.errors_, -1);
  handle_ = std::exchange(from.handle_, -1);
  out_ = std::move(from.out_);
  read_ = from.read_;
  ending_ = from.ending_;
  return *this;
}

child::~child() { take_away(); }

void child::take_away() noexcept {
  if (id_ > 0 && !ending_) {
    ::kill(id_, SIGKILL);  // reaches a stopped one, too
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (int* d : {&input_, &output_, &errors_, &handle_})
    if (*d >= 0) ::close(std::exchange(*d, -1));
  id_ = -1;
}

void child::give_up(const std::string& on) const {
  throw too_late(name_ + ": " + on + (ending_ ? " (" + ending_->text() + ")" : "") + "; stdout so far:\n" + out_ +
                 "\nstderr so far:\n" + err());
}

bool child::read_some(clock::time_point until) {
  if (output_ < 0) return false;
  if (!readable(output_, until)) give_up("waited in vain for a line");
  char some[4096];
  ssize_t n;
  while ((n = ::read(output_, some, sizeof some)) < 0 && errno == EINTR) {
  }
  if (n > 0) {
    out_.append(some, static_cast<std::size_t>(n));
    return true;
  }
  ::close(std::exchange(output_, -1));
  return false;
}

std::optional<std::string> child::line(std::chrono::milliseconds p) {
  const auto until = clock::now() + p;
  for (;;) {
    const auto end = out_.find('\n', read_);
    if (end != out_.npos) {
      std::string l = out_.substr(read_, end - read_);
      read_ = end + 1;
      return l;
    }
    if (read_some(until)) continue;
    if (read_ == out_.size()) return std::nullopt;
    std::string rest = out_.substr(read_);  // a last line without an end
    read_ = out_.size();
    return rest;
  }
}

std::string child::line_where(const std::function<bool(const std::string&)>& right, std::chrono::milliseconds p) {
  const auto until = clock::now() + p;
  for (;;) {
    auto l =
        line(std::chrono::ceil<std::chrono::milliseconds>(std::max(until - clock::now(), clock::duration::zero())));
    if (!l) give_up("ended without the line that was waited for");
    if (right(*l)) return *l;
  }
}

std::string child::line_after(const std::string& beginning, std::chrono::milliseconds p) {
  return line_where([&](const std::string& l) { return l.starts_with(beginning); }, p).substr(beginning.size());
}

void child::tell(const std::string& text) {
  const std::string all = text + "\n";
  // A child that is gone is told nothing, and this process lives on.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const bool done = ::write(input_, all.data(), all.size()) == static_cast<ssize_t>(all.size());
  const int fault = errno;
  std::signal(SIGPIPE, before);
  errno = fault;
  if (!done) fail("cannot tell " + name_ + " anything");
}

void child::end_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

void child::signal(int s) {
  const bool changes = !ending_ && ((s == SIGSTOP && facts().state != 'T') || (s == SIGCONT && facts().state == 'T'));
  if (ending_ || ::kill(id_, s) != 0)
    throw std::runtime_error(name_ + " has ended, signal " + std::to_string(s) + " reaches nobody");
  if (!changes) return;
  siginfo_t about{};
  if (::waitid(P_PID, static_cast<id_t>(id_), &about, (s == SIGSTOP ? WSTOPPED : WCONTINUED) | WEXITED | WNOWAIT) != 0)
    fail("waitid");
  // Takes the news away, so that it is news the next time; an end stays to be waited for.
  if (about.si_code == CLD_STOPPED || about.si_code == CLD_CONTINUED)
    ::waitid(P_PID, static_cast<id_t>(id_), &about, (s == SIGSTOP ? WSTOPPED : WCONTINUED) | WNOHANG);
}

ending child::wait(std::chrono::milliseconds p) {
  if (ending_) return *ending_;
  const auto until = clock::now() + p;
  // Reads meanwhile: a full pipe would hold it up. A child of its own may hold the pipe open after its end.
  while (output_ >= 0) {
    pollfd both[] = {{output_, POLLIN, 0}, {handle_, POLLIN, 0}};
    const int n = ::poll(both, 2, milliseconds_until(until));
    if (n < 0 && errno != EINTR) fail("poll");
    if (n == 0 && clock::now() >= until) give_up("did not end");
    if (n > 0 && both[0].revents != 0)
      read_some(until);
    else if (n > 0)
      break;
  }
  if (!readable(handle_, until)) give_up("did not end");
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0)
    if (errno != EINTR) fail("waitpid");
  ending_ = WIFEXITED(status) ? ended_with(WEXITSTATUS(status)) : killed_by(WTERMSIG(status));
  return *ending_;
}

bool child::is_running() { return !ending_ && !readable(handle_, clock::now()); }

std::string child::err() const { return whole("/proc/self/fd/" + std::to_string(errors_)); }

finished run(std::vector<std::string> words, const child_options& with, std::chrono::milliseconds p) {
  child c(std::move(words), with);
  c.end_input();
  const ending how = c.wait(p);
  return {how, c.out(), c.err()};
}

}  // namespace test
