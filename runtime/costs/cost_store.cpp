// What this file is for: reading, adding under a lock, replacing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/costs/cost_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace troupe::detail {

namespace {

// Size limit of the file; larger than the largest table.
constexpr off_t file_bytes_max = 1 << 20;
// Time to wait for the lock. It is held for about a millisecond; a process that was stopped there must not delay others
// for long.
constexpr auto lock_patience = std::chrono::milliseconds(200);

class open_file {
 public:
  explicit open_file(int fd) : fd_(fd) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string contents(const std::filesystem::path& file) {
  const open_file in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!in.is_open() || ::fstat(in.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > file_bytes_max)
    return {};
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const auto n = ::read(in.get(), text.data() + have, text.size() - have);
    if (n <= 0) return {};
    have += static_cast<std::size_t>(n);
  }
  return text;
}

bool lock(int fd) {
  const auto give_up = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

cost_table cost_store::read(cost_time now) const {
  cost_table c;
  if (folder_.empty()) return c;
  if (const auto there = parse_costs(contents(file()))) c.merge(*there, now);
  return c;
}

bool cost_store::add(const cost_table& fresh, cost_time now) const noexcept try {
  if (folder_.empty()) return false;
  std::error_code failed;
  std::filesystem::create_directories(folder_.parent_path(), failed);
  ::mkdir(folder_.c_str(), 0700);
  const open_file guard(::open((folder_ / "costs.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!guard.is_open() || !lock(guard.get())) return false;
  cost_table all = read(now);
  all.merge(fresh, now);
  std::string aside = (folder_ / "new-XXXXXX").string();
  bool good;
  {
    const open_file out(::mkostemp(aside.data(), O_CLOEXEC));
    if (!out.is_open()) return false;
    good = write_all(out.get(), text_of(all));
  }
  good = good && std::rename(aside.c_str(), file().c_str()) == 0;
  if (!good) ::unlink(aside.c_str());
  return good;
} catch (...) {  // no memory for names
  return false;
}

}  // namespace troupe::detail
