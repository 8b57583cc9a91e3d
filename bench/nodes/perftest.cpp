// UCX's own benchmark between two processes of this machine, over the transports that the plugin uses.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "contender.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace bench {

namespace {

/// Free a moment ago.
std::string some_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  if (s < 0 || ::bind(s, reinterpret_cast<sockaddr*>(&a), size) != 0 ||
      ::getsockname(s, reinterpret_cast<sockaddr*>(&a), &size) != 0)
    throw std::runtime_error("no port for ucx_perftest");
  ::close(s);
  return std::to_string(ntohs(a.sin_port));
}

class ucx_perftest final : public node_contender {
 public:
  std::string name() const override { return "ucx_perftest"; }
  std::string description() const override {
    return "ucx_perftest, the faster of tag_bw and ucp_am_bw; two processes that never sleep";
  }
  void stop() override {}

  std::vector<double> moves(const link& by, std::size_t bytes, int count) override {
    if (!by.fabric) return {};
    double best = 0;
    for (const char* test : {"tag_bw", "ucp_am_bw"}) best = std::max(best, bytes_a_ns(test, bytes, count));
    return std::vector<double>(static_cast<std::size_t>(count), static_cast<double>(bytes) / best);
  }

 private:
  static double bytes_a_ns(const std::string& test, std::size_t bytes, int count) {
    const std::string port = some_port();
    const test::child_options quiet{.environment = {"UCX_TLS=sm", "UCX_LOG_LEVEL=error"}};
    std::optional<test::child> server;
    try {
      server.emplace(std::vector<std::string>{"ucx_perftest", "-p", port}, quiet);
    } catch (const std::exception& e) {
      throw missing(std::string("ucx_perftest (on Debian: ucx-utils): ") + e.what());
    }
    // The server says that it listens only when its output is full: a client that comes too early comes again.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const auto client = test::run({"ucx_perftest", "127.0.0.1", "-p", port, "-t", test, "-s", std::to_string(bytes),
                                     "-n", std::to_string(count), "-w", "2"},
                                    quiet, std::chrono::minutes(2));
      if (const auto found = client.out.find("Final:"); found != std::string::npos)
        return figure(client.out.substr(found));
      if (std::chrono::steady_clock::now() > until)
        throw std::runtime_error("ucx_perftest gives no figure: " + client.out + client.err);
    }
  }

  /// "Final: iterations median average overall MB/s..."; the sixth is megabytes of 2^20 bytes a second, overall.
  static double figure(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 7; ++i) words >> word;
    const double mib_a_second = std::stod(word);
    if (!(mib_a_second > 0)) throw std::runtime_error("ucx_perftest gives no figure: " + line);
    return mib_a_second * 1048576 / 1e9;
  }
};

}  // namespace

std::unique_ptr<contender> make_ucx_perftest() { return std::make_unique<ucx_perftest>(); }

}  // namespace bench
