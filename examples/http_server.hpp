// What this file is for: the HTTP of an example: a server on Boost.Beast that no client can hold up, fill or tire out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace examples {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using http_request = http::request<http::empty_body>;
using http_response = http::response<http::string_body>;

/// An HTTP server whose one thread reads requests and writes answers, for at most 256 clients. If there are that many,
/// a new client from an address that has fewer clients than another address takes the place of the client of that other
/// one which has been silent longest (an IPv6 address is its first 64 bits); other new clients are refused. A request
/// has at most 8 KiB and no body, and ten seconds to arrive, as has its answer to leave; other requests are answered
/// with 400. A client that disconnects before it has its answer is not waited for.
class http_server {
 public:
  /// Clients may connect from here on. Throws std::exception for what is no address, and where the port is taken.
  http_server(const std::string& address, std::uint16_t port)
      : signals_(io_, SIGINT, SIGTERM), door_(io_, {asio::ip::make_address(address), port}) {}
  int port() const { return door_.local_endpoint().port(); }

  /// Serves until SIGINT or SIGTERM; requests that are being answered then still get their answer, if that takes no
  /// longer than two seconds. `answer` is called by up to four threads at once; its token says when no client waits any
  /// more.
  void run(std::function<http_response(const http_request&, std::stop_token)> answer) {
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

  static constexpr std::size_t clients_max = 256;
  struct client {
    explicit client(asio::ip::tcp::socket&& s) : peer(std::move(s)), from(origin(peer.socket())) {}
    boost::beast::tcp_stream peer;
    const std::string from;
    bool waits = true;  // for its next request to come, or its answer to leave
  };
  using position = std::list<client>::iterator;

  static std::string origin(const asio::ip::tcp::socket& s) {
    boost::system::error_code gone;
    const asio::ip::address a = s.remote_endpoint(gone).address();
    if (!a.is_v6() || a.to_v6().is_v4_mapped())
      return a.is_v6() ? make_address_v4(asio::ip::v4_mapped, a.to_v6()).to_string() : a.to_string();
    const auto bytes = a.to_v6().to_bytes();
    return std::string(bytes.begin(), bytes.begin() + 8);
  }

  awaitable<void> accept(asio::thread_pool& waiting) {
    while (door_.is_open()) {
      auto [fault, peer] = co_await door_.async_accept(as_tuple);
      if (fault) {  // no descriptor is free, for instance
        co_await asio::steady_timer(io_, std::chrono::milliseconds(50)).async_wait(asio::use_awaitable);
        continue;
      }
      clients_.emplace_back(std::move(peer));
      const position it = std::prev(clients_.end());
      if (clients_.size() > clients_max && !make_room(it->from))
        clients_.erase(it);
      else
        asio::co_spawn(io_, serve(it, waiting), [this, it](std::exception_ptr) { clients_.erase(it); });
    }
  }

  // For a newcomer from there. The clients are in order of arrival, and go to the end with each request.
  bool make_room(const std::string& from) {
    std::map<std::string, std::size_t> number;
    for (const client& c : clients_) ++number[c.from];
    const auto most = std::ranges::max_element(number, {}, [](const auto& n) { return n.second; });
    if (most->second <= number[from]) return false;
    const auto one_of = [&](bool waits) {
      return std::ranges::find_if(clients_, [&](const client& c) {
        return c.from == most->first && c.waits == waits && c.peer.socket().is_open();
      });
    };
    position out = one_of(true);
    if (out == clients_.end()) out = one_of(false);
    if (out == clients_.end()) return false;
    out->peer.close();
    return true;
  }

  awaitable<void> serve(position self, asio::thread_pool& waiting) {
    boost::beast::tcp_stream& peer = self->peer;
    boost::beast::flat_buffer read(16384);
    for (bool more = true; more;) {
      http::request_parser<http::empty_body> asked;
      const auto fault = co_await hear(peer, read, asked);
      const bool is_http = !fault || fault.category() == make_error_code(http::error::bad_method).category();
      if (!is_http || fault == http::error::end_of_stream) co_return;  // has gone, or took too long
      clients_.splice(clients_.end(), clients_, self);
      http_response r(http::status::bad_request, 11, fault.message() + "\n");
      const bool has_host = fault || asked.get().version() < 11 || asked.get().count(http::field::host) == 1;
      if (!has_host) {
        r.body() = "one field Host is needed\n";
      } else if (!fault) {
        self->waits = false;
        const auto watch = std::make_shared<watched>();
        asio::co_spawn(io_, await_leaving(peer, watch), asio::detached);
        r = co_await asio::co_spawn(waiting, compute(asked.get(), watch->nobody_waits.get_token()),
                                    asio::use_awaitable);
        watch->is_over = true;
        if (watch->nobody_waits.stop_requested()) co_return;
        self->waits = true;
      }
      r.keep_alive(more = !fault && has_host && asked.keep_alive());
      r.prepare_payload();
      peer.expires_after(std::chrono::seconds(10));
      co_await http::async_write(peer, r, asio::use_awaitable);
    }
  }

  // A request, as it comes: a field that goes on in the next line is for others another field, and is refused.
  awaitable<boost::system::error_code> hear(boost::beast::tcp_stream& peer, boost::beast::flat_buffer& read,
                                            http::request_parser<http::empty_body>& asked) {
    asked.header_limit(8192);
    asked.body_limit(0);
    asked.eager(true);
    peer.expires_after(std::chrono::seconds(10));
    std::string head;
    for (;;) {
      boost::system::error_code fault;
      while (!fault && read.size() != 0 && !asked.is_done()) {
        const std::size_t used = asked.put(read.data(), fault);
        head.append(static_cast<const char*>(read.data().data()), used);
        read.consume(used);
      }
      if (head.find("\n ") != head.npos || head.find("\n\t") != head.npos) co_return http::error::bad_field;
      if (fault && fault != http::error::need_more) co_return fault;
      if (asked.is_done()) co_return boost::system::error_code();
      if (read.size() == read.max_size()) co_return http::error::buffer_overflow;
      const auto [end, bytes] = co_await peer.async_read_some(
          read.prepare(std::min<std::size_t>(4096, read.max_size() - read.size())), as_tuple);
      if (end == asio::error::eof)
        co_return head.empty() && read.size() == 0 ? http::error::end_of_stream : http::error::partial_message;
      if (end) co_return end;
      read.commit(bytes);
    }
  }

  awaitable<http_response> compute(const http_request& asked, std::stop_token stop) const {
    if (stop.stop_requested()) co_return http_response();
    co_return answer_(asked, stop);
  }

  // Of a client whose answer is being computed; for the thread that reads and writes.
  struct watched {
    std::stop_source nobody_waits;
    bool is_over = false;
  };

  // Stops the computation once the other end has closed the connection, whatever it has sent before. It is looked for:
  // what can be read is for later.
  static awaitable<void> await_leaving(boost::beast::tcp_stream& peer, std::shared_ptr<watched> watch) {
    asio::steady_timer soon(co_await asio::this_coro::executor);
    for (tcp_info now{}; !watch->is_over;) {
      socklen_t size = sizeof now;
      const bool open = ::getsockopt(peer.socket().native_handle(), IPPROTO_TCP, TCP_INFO, &now, &size) == 0;
      if (!open || now.tcpi_state != TCP_ESTABLISHED) break;
      soon.expires_after(std::chrono::milliseconds(50));
      (void)co_await soon.async_wait(as_tuple);
    }
    if (!watch->is_over) watch->nobody_waits.request_stop();
  }

  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::ip::tcp::acceptor door_;
  std::function<http_response(const http_request&, std::stop_token)> answer_;
  std::list<client> clients_;
};

}  // namespace examples
