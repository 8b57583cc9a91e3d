// What this file is for: the thread that answers at a Unix socket.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/text_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net {

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof at.sun_path)
    throw error(errc::bad_argument, "'" + path + "': the path of a socket has 1 to 107 bytes");
  std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
  return at;
}

// A socket at whose path nobody answers any more is removed.
void clear(const sockaddr_un& at) {
  struct stat s {};
  if (::lstat(at.sun_path, &s) != 0 || !S_ISSOCK(s.st_mode)) return;
  const int d = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (d < 0) return;
  if (::connect(d, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && errno == ECONNREFUSED)
    ::unlink(at.sun_path);
  ::close(d);
}

}  // namespace

text_server::text_server(std::string path, std::function<std::string()> text)
    : path_(std::move(path)), text_(std::move(text)) {
  const sockaddr_un at = address_of(path_);
  clear(at);
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  told_ = ::eventfd(0, EFD_CLOEXEC);
  // The mode of a socket becomes that of its path.
  if (listening_ < 0 || told_ < 0 || ::fchmod(listening_, S_IRUSR | S_IWUSR) != 0 ||
      ::bind(listening_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    const int why = errno;
    if (listening_ >= 0) ::close(listening_);
    if (told_ >= 0) ::close(told_);
    throw error(errc::io_failed, "'" + path_ + "': " + std::strerror(why));
  }
  int why = 0;
  if (::listen(listening_, 16) != 0) {
    why = errno;
  } else {
    try {
      thread_ = std::thread([this] { answer_until_told(); });
      return;
    } catch (const std::system_error& none) {
      why = none.code().value();
    }
  }
  ::close(listening_);
  ::close(told_);
  ::unlink(path_.c_str());
  throw error(errc::io_failed, "'" + path_ + "': " + std::strerror(why));
}

text_server::~text_server() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(told_, &one, sizeof one));
  thread_.join();
  ::close(listening_);
  ::close(told_);
  ::unlink(path_.c_str());
}

void text_server::answer_until_told() {
  for (;;) {
    pollfd all[] = {{listening_, POLLIN, 0}, {told_, POLLIN, 0}};
    if (::poll(all, 2, -1) < 0 && errno != EINTR) return;
    if (all[1].revents != 0) return;
    const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      // Others may close a descriptor; whoever wants to connect is still there.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) ::poll(all + 1, 1, 100);
      continue;
    }
    answer(connection);
    ::close(connection);
  }
}

void text_server::answer(int connection) const {
  using clock = std::chrono::steady_clock;
  const std::string text = text_();
  const auto until = clock::now() + std::chrono::seconds(1);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(connection, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n >= 0) {
      at += static_cast<std::size_t>(n);
      continue;
    }
    if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    pollfd all[] = {{connection, POLLOUT, 0}, {told_, POLLIN, 0}};
    if (left.count() <= 0 || (::poll(all, 2, static_cast<int>(left.count())) > 0 && all[1].revents != 0)) return;
  }
}

}  // namespace troupe::net
