// What this file is for: reading what a program tells of its streams at a Unix socket.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/streams.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace troupe::tools {

namespace {

class connection {
 public:
  // Throws where nobody answers.
  explicit connection(const std::string& path) : d_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    if (path.size() >= sizeof at.sun_path) throw std::runtime_error("'" + path + "': a path of more than 107 bytes");
    std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
    if (d_ >= 0 && ::connect(d_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return;
    const std::string why = std::strerror(errno);
    if (d_ >= 0) ::close(d_);
    throw std::runtime_error("'" + path + "': " + why + "; a program shows its streams where it has a report_socket");
  }
  ~connection() { ::close(d_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  std::string all() const {
    std::string text;
    std::array<char, 4096> block;
    for (;;) {
      const ssize_t n = ::recv(d_, block.data(), block.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  int d_;
};

}  // namespace

int show_streams(const std::string& path, std::chrono::milliseconds every) {
  for (bool again = false;; again = true) {
    std::string text;
    try {
      text = connection(path).all();
    } catch (const std::runtime_error&) {
      if (again) return 0;  // it has ended
      throw;
    }
    std::printf("%s", text.c_str());
    if (every.count() == 0) return 0;
    if (std::fflush(stdout) != 0) return 0;
    std::this_thread::sleep_for(every);
  }
}

}  // namespace troupe::tools
