// What this file is for: opening, looking at and making files with keys.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/credentials/key_files.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <troupe/error.hpp>

namespace troupe::net {

namespace {

constexpr std::size_t bytes_max = 64u << 10;

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void cannot(const char* what, const std::string& path, int code) {
  throw error(errc::io_failed, std::string("cannot ") + what + " '" + path + "': " + reason(code));
}

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

}  // namespace

secret_text::~secret_text() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

secret_text read_key_file(const std::string& path, readers who) {
  // Without O_NONBLOCK the opening of a pipe would wait for a process that writes to it.
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) cannot("read", path, errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) cannot("read", path, errno);
  if (!S_ISREG(about.st_mode)) throw error(errc::bad_argument, "'" + path + "' is not a regular file");
  if (who == readers::owner_only && (about.st_mode & 077) != 0)
    throw error(errc::bad_argument, "'" + path + "' holds a secret and others than its owner have access to it (mode " +
                                        octal(about.st_mode) + "): chmod 600 it");
  if (static_cast<std::size_t>(about.st_size) > bytes_max)
    throw error(errc::bad_argument,
                "'" + path + "' is larger than any file with keys: " + std::to_string(about.st_size) + " bytes");
  secret_text text(static_cast<std::size_t>(about.st_size));
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::read(file.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot("read", path, errno);
    if (n == 0) throw error(errc::io_failed, "'" + path + "' became shorter while it was read: try again");
    at += static_cast<std::size_t>(n);
  }
  return text;
}

void write_key_file(const std::string& path, std::string_view text, readers who) {
  const mode_t mode = who == readers::owner_only ? 0600 : 0644;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0 && errno == EEXIST)
    throw error(errc::io_failed,
                "'" + path + "' is there already and stays as it is: move it away or take another name");
  const descriptor file(fd);
  if (fd < 0) cannot("make", path, errno);
  const auto fail = [&](int code) {
    ::unlink(path.c_str());
    cannot("write", path, code);
  };
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    at += static_cast<std::size_t>(n);
  }
  if (::fsync(fd) != 0 && errno != EINVAL) fail(errno);
}

}  // namespace troupe::net
