// What this file is for: a service on Boost.Beast whose requests become tasks, run here and on the nodes of its cluster.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe-http_service ADDRESS PORT      GET /primes?below=N, GET /nodes; ends on SIGTERM and SIGINT
//
// It is a node if the environment says so (TROUPE_CLUSTER and its companions, docs/cluster.md); so are others like it.
#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>
#include "command_line.hpp"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable, asio::use_awaitable, http::status, std::to_string;
using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;
using namespace std::chrono_literals;

constexpr long chunk = 1 << 14, below_max = 20'000'000, connections_max = 256;

constexpr auto count_primes = troupe::kernel<troupe::out<long, 1>, long>("http_service.count_primes")
                                  .on(troupe::cpu, [](troupe::view<long, 1> found, long below) {
                                    const long c = found.lo(0), begin = std::max(2L, c * chunk),
                                               end = std::min((c + 1) * chunk, below);
                                    found(c) = 0;
                                    for (long n = begin, d; n < end; ++n) {
                                      for (d = 2; d * d <= n && n % d != 0; ++d) continue;
                                      found(c) += d * d > n ? 1 : 0;
                                    }
                                  });
const troupe::offer offered{count_primes};

long number_in(std::string_view text, long least, long most) {
  long n = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault == std::errc() && end == text.data() + text.size() && n >= least && n <= most) return n;
  throw std::invalid_argument("a number from " + to_string(least) + " to " + to_string(most) + " is missing");
}

struct service {
  troupe::runtime& rt;
  asio::ip::tcp::acceptor door;
  asio::thread_pool waiting{4};  // so many requests wait for their tasks at once
  long connections = 0;

  response answer(const request& asked) const try {
    const std::string_view target(asked.target().data(), asked.target().size()), path = "/primes?below=";
    if (asked.method() != http::verb::get) return {status::method_not_allowed, 11};
    if (target == "/nodes") {
      std::string all = "this one\n";
      for (const auto& n : rt.nodes()) all += n.id + ", which ran " + to_string(n.tasks) + " tasks of this one\n";
      return {status::ok, 11, all};
    }
    if (!target.starts_with(path)) return {status::not_found, 11};
    const long below = number_in(target.substr(path.size()), 1, below_max), chunks = (below + chunk - 1) / chunk;
    const auto found = rt.array<long>({chunks}, troupe::tiles(1));
    rt.for_each(troupe::grid(chunks), count_primes, troupe::write(found), below);
    const auto all = found.read();  // waits for the tasks, wherever they run
    long sum = 0;
    for (long c = 0; c < chunks; ++c) sum += all(c);
    return {status::ok, 11, to_string(sum) + "\n"};
  } catch (const std::invalid_argument& e) {
    return {status::bad_request, 11, std::string(e.what()) + "\n"};
  } catch (const troupe::error& e) {
    return {status::internal_server_error, 11, std::string(e.what()) + "\n"};
  }
  awaitable<response> compute(const request& asked) const { co_return answer(asked); }

  awaitable<void> serve(boost::beast::tcp_stream peer) {
    boost::beast::flat_buffer read(16384);
    for (bool more = true; more;) {
      http::request_parser<http::empty_body> asked;
      asked.header_limit(8192);
      asked.body_limit(0);
      boost::system::error_code fault;
      peer.expires_after(10s);
      co_await http::async_read(peer, read, asked, asio::redirect_error(use_awaitable, fault));
      const bool is_http = !fault || fault.category() == make_error_code(http::error::bad_method).category();
      if (!is_http || fault == http::error::end_of_stream) co_return;  // has gone, or took too long
      response r(status::bad_request, 11, fault.message() + "\n");
      if (!fault) r = co_await asio::co_spawn(waiting, compute(asked.get()), use_awaitable);
      r.keep_alive(more = !fault && asked.keep_alive());
      r.prepare_payload();
      peer.expires_after(10s);
      co_await http::async_write(peer, r, use_awaitable);
    }
  }
  awaitable<void> accept() {
    while (door.is_open()) {
      boost::system::error_code fault;
      auto peer = co_await door.async_accept(asio::redirect_error(use_awaitable, fault));
      if (fault)  // no descriptor is free, for instance
        co_await asio::steady_timer(door.get_executor(), 50ms).async_wait(use_awaitable);
      if (fault || connections == connections_max) continue;
      ++connections;
      asio::co_spawn(door.get_executor(), serve(boost::beast::tcp_stream(std::move(peer))),
                     [this](const std::exception_ptr&) { --connections; });
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("usage: troupe-http_service ADDRESS PORT");
  asio::io_context io(1);
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const auto&, int) { io.stop(); });
  const auto port = static_cast<std::uint16_t>(number_in(argv[2], 0, 65535));
  troupe::runtime rt;
  service s{rt, {io, {asio::ip::make_address(argv[1]), port}}};
  for (const std::string& a : rt.addresses()) std::printf("node %s\n", a.c_str());
  std::printf("listening %d\n", s.door.local_endpoint().port());
  std::fflush(stdout);
  asio::co_spawn(io, s.accept(), asio::detached);
  io.run();
  s.door.close();
  io.restart();
  io.run_for(2s);  // who is being answered gets his answer, if it does not take long
} catch (...) {
  return examples::complain("troupe-http_service");
}
