// What this file is for: the program of the system tests, which is also each of the processes that they start.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-system-tests                                     the tests
//   troupe-system-tests worker NAME SECRET LISTEN|- [JOIN]  works for others, see tests/support/nodes.hpp; with the memory
//                                                           and the spill folder of WORKER_MEMORY and WORKER_SPILL;
//                                                           "clock SECONDS" sets its clock, and says what it shows
//   troupe-system-tests flood PORT COUNT                    keeps so many connections to a port of this host that say
//                                                           nothing or half of a hello; one line for each round
//   troupe-system-tests owner NAME SECRET JOIN              gives others work that never ends, says so, and stays
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"
#include "tests/system/clock.hpp"

namespace {

const troupe::offer offered{test::link_on, test::weigh, test::mix_in, test::end_process};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string answer(const std::string& line) {
  if (!line.starts_with("clock ")) return "what?";
  test::set_clock(std::chrono::seconds(std::stol(line.substr(6))));
  return "clock " + std::to_string(std::time(nullptr));
}

int flood(char** words) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoul(words[2])));
  const unsigned char half[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3};
  std::vector<pollfd> all(std::stoul(words[3]), pollfd{-1, 0, 0});
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
    say("round " + std::to_string(round) + " made " + std::to_string(made) + " there " + std::to_string(there));
  }
}

int own(char** words) {
  troupe::options o = test::node_options(words[2], words[3]);
  o.cluster.join = {words[4]};
  o.cluster.listen = {"127.0.0.1:0"};
  troupe::runtime rt(std::move(o));
  if (!rt.wait_for_nodes(1, std::chrono::seconds(10))) return 1;
  const std::string worker = rt.nodes().front().name;
  const auto a = rt.filled<std::uint64_t>({1 << 20}, troupe::tiles(1 << 14), 1);
  for (std::uint64_t i = 0; i < 40; ++i)
    rt.for_each({.where = troupe::scope::at(worker)}, troupe::grid(1 << 20), test::link_on, troupe::update(a), i,
                std::uint64_t{5'000});
  say("spawned");
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  try {
    if (what == "worker" && count > 4) return test::serve({words + 1, words + count}, answer);
    if (what == "owner" && count > 4) return own(words);
    if (what == "flood" && count > 3) return flood(words);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
