// What this file is for: files without names, and the system's errors about them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/host/spill_directory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::devices {

namespace {

std::string reason(int code) { return std::system_category().message(code); }

/// Has the calling thread's writes beyond a limit of file sizes (`ulimit -f`) fail with EFBIG, instead of ending the
/// process by SIGXFSZ.
class no_size_signal {
 public:
  no_size_signal() {
    sigemptyset(&size_);
    sigaddset(&size_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  ~no_size_signal() {
    const timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&size_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_size_signal(const no_size_signal&) = delete;
  no_size_signal& operator=(const no_size_signal&) = delete;

 private:
  sigset_t size_, before_;
  bool was_pending_ = false;
};

class directory_file final : public spill_file {
 public:
  directory_file(int fd, std::string directory) : fd_(fd), directory_(std::move(directory)) {}
  ~directory_file() override { ::close(fd_); }
  directory_file(const directory_file&) = delete;
  directory_file& operator=(const directory_file&) = delete;

  void write(std::uint64_t offset, const std::byte* from, std::size_t bytes) override {
    const no_size_signal ignored;
    for (std::size_t done = 0; done != bytes;) {
      const ssize_t n = ::pwrite(fd_, from + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) complain("write", bytes, n == 0 ? ENOSPC : errno);
      done += static_cast<std::size_t>(n);
    }
  }
  void read(std::uint64_t offset, std::byte* to, std::size_t bytes) override {
    for (std::size_t done = 0; done != bytes;) {
      const ssize_t n = ::pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) complain("read", bytes, n == 0 ? EIO : errno);
      done += static_cast<std::size_t>(n);
    }
  }
  void discard(std::uint64_t offset, std::size_t bytes) noexcept override {
    // Where the file system has no holes, the room is used again for other tiles and given back at the end.
    ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }

 private:
  [[noreturn]] void complain(const char* what, std::size_t bytes, int code) const {
    const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
    throw error(full ? errc::disk_full : errc::io_failed,
                "could not " + std::string(what) + " " + std::to_string(bytes) + " bytes in the spill directory '" +
                    directory_ + "': " + reason(code));
  }

  const int fd_;
  const std::string directory_;
};

}  // namespace

std::unique_ptr<spill_file> make_spill_file(const std::string& directory) {
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // Not every file system has files without names: it has one for a moment.
    std::string name = directory + "/troupe-spill-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
  }
  if (fd < 0)
    throw error(errc::io_failed,
                "options::spill_directory: no file can be made in '" + directory + "': " + reason(errno));
  return std::make_unique<directory_file>(fd, directory);
}

}  // namespace troupe::devices
