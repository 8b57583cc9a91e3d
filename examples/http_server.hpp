// What this file is for: the HTTP of an example: a server on Boost.Beast that no client can hold up, fill or tire out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace examples {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using http_request = http::request<http::empty_body>;
using http_response = http::response<http::string_body>;

/// One thread reads requests and writes answers, for at most 256 clients; who is one too many is sent away. A request has
/// 8 KiB, no body, and ten seconds to come, as has its answer to leave; what is no such request is answered with 400.
class http_server {
 public:
  /// Clients may connect from here on. Throws std::exception for what is no address, and where the port is taken.
  http_server(const std::string& address, std::uint16_t port)
      : signals_(io_, SIGINT, SIGTERM), door_(io_, {asio::ip::make_address(address), port}) {}
  int port() const { return door_.local_endpoint().port(); }

  /// Until SIGINT or SIGTERM; then who is being answered gets his answer, if that takes no longer than two seconds.
  /// `answer` is called by up to four threads at once, and may take its time.
  void run(std::function<http_response(const http_request&)> answer) {
    answer_ = std::move(answer);
    asio::thread_pool waiting(4);
    signals_.async_wait([this](const auto&, int) { io_.stop(); });
    asio::co_spawn(io_, accept(waiting), asio::detached);
    io_.run();
    door_.close();
    io_.restart();
    io_.run_for(std::chrono::seconds(2));
  }

 private:
  template <class T>
  using awaitable = asio::awaitable<T>;
  static constexpr auto as_tuple = asio::as_tuple(asio::use_awaitable);

  awaitable<void> accept(asio::thread_pool& waiting) {
    const auto everybody = std::make_shared<int>();  // whoever is served has a reference
    while (door_.is_open()) {
      auto [fault, peer] = co_await door_.async_accept(as_tuple);
      if (fault)  // no descriptor is free, for instance
        co_await asio::steady_timer(io_, std::chrono::milliseconds(50)).async_wait(asio::use_awaitable);
      else if (everybody.use_count() <= 256)
        asio::co_spawn(io_, serve(boost::beast::tcp_stream(std::move(peer)), waiting, everybody), asio::detached);
    }
  }

  awaitable<void> serve(boost::beast::tcp_stream peer, asio::thread_pool& waiting, std::shared_ptr<const int>) {
    boost::beast::flat_buffer read(16384);
    for (bool more = true; more;) {
      http::request_parser<http::empty_body> asked;
      asked.header_limit(8192);
      asked.body_limit(0);
      peer.expires_after(std::chrono::seconds(10));
      const auto [fault, bytes] = co_await http::async_read(peer, read, asked, as_tuple);
      const bool is_http = !fault || fault.category() == make_error_code(http::error::bad_method).category();
      if (!is_http || fault == http::error::end_of_stream) co_return;  // has gone, or took too long
      http_response r(http::status::bad_request, 11, fault.message() + "\n");
      if (!fault) r = co_await asio::co_spawn(waiting, compute(asked.get()), asio::use_awaitable);
      r.keep_alive(more = !fault && asked.keep_alive());
      r.prepare_payload();
      peer.expires_after(std::chrono::seconds(10));
      co_await http::async_write(peer, r, asio::use_awaitable);
    }
  }
  awaitable<http_response> compute(const http_request& asked) const { co_return answer_(asked); }

  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::ip::tcp::acceptor door_;
  std::function<http_response(const http_request&)> answer_;
};

}  // namespace examples
