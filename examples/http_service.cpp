// What this file is for: a service on Boost.Beast whose requests become tasks, run here and on nodes of its cluster.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-http_service ADDRESS PORT      GET /primes?below=N, GET /nodes; ends on SIGTERM and SIGINT
//
// The service is a node if the environment says so (TROUPE_CLUSTER and its companions, docs/cluster.md); so are others
// like it.
#include <troupe/troupe.hpp>
#include "command_line.hpp"
#include "http_server.hpp"

namespace {

using namespace troupe;
using boost::beast::http::status;

constexpr long chunk = 1 << 14, below_max = 20'000'000;

constexpr auto count_primes =
    kernel<out<long, 1>, long>("http_service.count_primes").on(cpu, [](view<long, 1> found, long below) {
      const long c = found.lo(0);
      found(c) = 0;
      for (long n = std::max(2L, c * chunk), d; n < std::min((c + 1) * chunk, below); ++n) {
        for (d = 2; d * d <= n && n % d != 0; ++d) continue;
        found(c) += d * d > n ? 1 : 0;
      }
    });
const offer offered{count_primes};

// Nobody waits for it once `stop` says so: what has not begun then never does.
examples::http_response answer(runtime& rt, const examples::http_request& asked, std::stop_token stop) try {
  const std::string_view target(asked.target().data(), asked.target().size()), path = "/primes?below=";
  if (asked.method() != boost::beast::http::verb::get) return {status::method_not_allowed, 11};
  if (target == "/nodes") {
    std::string all = "this one\n";
    for (const auto& n : rt.nodes()) all += n.id + ", which ran " + std::to_string(n.tasks) + " tasks of this one\n";
    return {status::ok, 11, all};
  }
  if (!target.starts_with(path)) return {status::not_found, 11};
  long below = 0;
  const auto [end, fault] = std::from_chars(target.data() + path.size(), target.data() + target.size(), below);
  if (fault != std::errc() || end != target.data() + target.size() || below < 1 || below > below_max)
    return {status::bad_request, 11, "a number from 1 to " + std::to_string(below_max) + " is missing\n"};
  const auto found = rt.array<long>({(below + chunk - 1) / chunk}, tiles(1));
  rt.for_each({.stop = std::move(stop)}, grid(found.size(0)), count_primes, write(found), below);
  const auto all = found.read();  // waits for the tasks, wherever they run
  long sum = 0;
  for (troupe::index_t c = 0; c < found.size(0); ++c) sum += all(c);
  return {status::ok, 11, std::to_string(sum) + "\n"};
} catch (const error& e) {
  return {status::internal_server_error, 11, std::string(e.what()) + "\n"};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string usage = "usage: troupe-http_service ADDRESS PORT   port 0: any; TROUPE_CLUSTER makes it a node";
  if (examples::explains_itself(argc, argv, "troupe-http_service", usage)) return 0;
  if (argc != 3) throw std::invalid_argument(usage);
  const auto port = examples::read_command_line(argc - 1, argv + 1, {{0, 65535}}, usage).numbers.at(0);
  boost::system::error_code fault;
  boost::asio::ip::make_address(argv[1], fault);
  if (fault) throw std::invalid_argument("'" + std::string(argv[1]) + "' is no address; " + usage);
  examples::http_server server(argv[1], static_cast<std::uint16_t>(port));
  runtime rt;
  for (const std::string& a : rt.addresses()) std::printf("node %s\n", a.c_str());
  std::printf("listening %d\n", server.port());
  std::fflush(stdout);
  server.run([&](const auto& asked, std::stop_token stop) { return answer(rt, asked, std::move(stop)); });
} catch (...) {
  return examples::complain("troupe-http_service");
}
