// What this file is for: connections that are opened, filled with half of a hello, and opened again once closed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/strangers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace test {

int flood(const std::vector<std::string>& words) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoul(words.at(1))));
  const unsigned char half[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3};
  std::vector<pollfd> all(std::stoul(words.at(2)), pollfd{-1, 0, 0});
  for (int round = 0;; ++round) {
    int made = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].fd >= 0) continue;
      all[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      sockaddr_in from = to;
      from.sin_port = 0;
      from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<std::uint32_t>(i % 8));
      if (all[i].fd < 0 || bind(all[i].fd, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0) return 1;
      connect(all[i].fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
      ++made;
    }
    // Until its owner wants it to end, or a second has passed, so that it floods and does not take a core.
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, 500) > 0) return 0;
    for (std::size_t i = 0; i < all.size(); i += 2) send(all[i].fd, half, sizeof half, MSG_NOSIGNAL);
    if (poll(&input, 1, 500) > 0) return 0;
    std::size_t there = all.size();
    for (pollfd& p : all) {
      char c;
      if (recv(p.fd, &c, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN) {
        close(std::exchange(p.fd, -1));
        --there;
      }
    }
    std::printf("round %d made %d there %zu\n", round, made, there);
    std::fflush(stdout);
  }
}

}  // namespace test
