// Asio by itself: one connection, plain or TLS 1.3 with the cipher that nodes use, blocking calls, nothing between.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A request is 64 bytes, an answer too: what follows the request, and how much of it. What is moved goes from the
// memory where it is into the memory where it is to be, which has been used before; a call moves up to 256 KiB.
#include "../nodes/contender.hpp"
#include "../nodes/worker.hpp"
#include "../workloads.hpp"

#include <troupe/credentials.hpp>

#include <utility>  // Asio of this version needs it first

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/version.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <variant>

namespace bench {

namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using clock = std::chrono::steady_clock;

constexpr std::size_t call_max = 256u << 10;

struct message {
  enum class kind : std::uint64_t { ping, bytes } what = kind::ping;
  std::uint64_t size = 0;  ///< of what follows
  std::uint64_t sum = 0;   ///< in an answer: of one number in each MiB
  std::uint64_t rest[5]{};
};
static_assert(sizeof(message) == 64);

asio::ssl::context context_of(const std::string& node, const std::string& folder) {
  asio::ssl::context c(asio::ssl::context::tlsv13);
  c.use_certificate_chain_file(folder + "/" + node + ".pem");
  c.use_private_key_file(folder + "/" + node + ".key", asio::ssl::context::pem);
  c.load_verify_file(folder + "/ca.pem");
  c.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  if (SSL_CTX_set_ciphersuites(c.native_handle(), "TLS_AES_128_GCM_SHA256") != 1)
    throw std::runtime_error("OpenSSL does not know the cipher");
  return c;
}

/// A connection of either kind.
class line {
 public:
  explicit line(tcp::socket plain) : stream_(std::move(plain)) { no_delay(); }
  line(tcp::socket socket, asio::ssl::context& context, bool accepts)
      : stream_(std::in_place_type<asio::ssl::stream<tcp::socket>>, std::move(socket), context) {
    no_delay();
    std::get<1>(stream_).handshake(accepts ? asio::ssl::stream_base::server : asio::ssl::stream_base::client);
  }

  void write(const void* from, std::size_t bytes) {
    std::visit(
        [&](auto& to) {
          all(from, bytes, [&](const char* p, std::size_t n) { return to.write_some(asio::buffer(p, n)); });
        },
        stream_);
  }
  void read(void* to, std::size_t bytes) {
    std::visit(
        [&](auto& from) { all(to, bytes, [&](char* p, std::size_t n) { return from.read_some(asio::buffer(p, n)); }); },
        stream_);
  }

 private:
  void no_delay() {
    std::visit([](auto& s) { s.lowest_layer().set_option(tcp::no_delay(true)); }, stream_);
  }
  template <class P, class F>
  static void all(P* bytes, std::size_t count, F&& some) {
    using byte = std::conditional_t<std::is_const_v<P>, const char, char>;
    auto* const p = static_cast<byte*>(bytes);
    for (std::size_t at = 0; at < count;) at += some(p + at, std::min(count - at, call_max));
  }

  std::variant<tcp::socket, asio::ssl::stream<tcp::socket>> stream_;
};

std::uint64_t sum_of(const std::vector<std::uint64_t>& numbers) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < numbers.size(); i += sampled_every) sum += numbers[i];
  return sum;
}

double since(clock::time_point begin) { return std::chrono::duration<double, std::nano>(clock::now() - begin).count(); }

class asio_contender final : public node_contender {
 public:
  std::string name() const override { return "asio"; }
  std::string description() const override {
    return "Boost.Asio " + std::to_string(BOOST_ASIO_VERSION / 100000) + "." +
           std::to_string(BOOST_ASIO_VERSION / 100 % 1000) + " alone, blocking, one thread each; TLS by " +
           OpenSSL_version(OPENSSL_VERSION);
  }
  void stop() override {
    line_.reset();
    peer_.reset();
    data_.clear();
    data_.shrink_to_fit();
  }

  std::vector<double> round_trips(const link& by, std::size_t count) override {
    line& over = connected(by);
    std::vector<double> taken(count);
    for (auto& nanoseconds : taken) {
      message one;
      const auto begin = clock::now();
      over.write(&one, sizeof one);
      over.read(&one, sizeof one);
      nanoseconds = since(begin);
    }
    return taken;
  }

  std::vector<double> moves(const link& by, std::size_t bytes, int count) override {
    if (by.fabric) return {};
    line& over = connected(by);
    if (data_.size() * sizeof data_[0] != bytes) {
      data_.resize(bytes / sizeof data_[0]);
      std::uint64_t next = 1;
      for (auto& number : data_) number = next = next * 6364136223846793005u + 1442695040888963407u;
      move(over);
    }
    std::vector<double> taken;
    for (int i = 0; i < count; ++i) taken.push_back(move(over));
    return taken;
  }

 private:
  double move(line& over) {
    for (std::size_t i = 0; i < data_.size(); i += sampled_every) ++data_[i];
    message one{.what = message::kind::bytes, .size = data_.size() * sizeof data_[0]};
    const auto begin = clock::now();
    over.write(&one, sizeof one);
    over.write(data_.data(), one.size);
    over.read(&one, sizeof one);
    const auto spent = since(begin);
    if (one.sum != sum_of(data_)) throw wrong_answer("what has been moved is not what was there");
    return spent;
  }

  line& connected(const link& by) {
    if (line_ && by_ == by) return *line_;
    stop();
    by_ = by;
    if (by.secure && !issued_) {
      troupe::make_cluster_authority(folder(), "bench");
      for (const char* node : {"this", "other"}) troupe::issue_certificate(folder(), node);
      issued_ = true;
    }
    peer_.emplace(std::vector<std::string>{"/proc/self/exe", "asio-peer", address_of(by.over, 1),
                                           by.secure ? "tls" : "plain", by.secure ? folder() : "-"},
                  on_other_host(by.over));
    const auto port = static_cast<std::uint16_t>(std::stoi(peer_->line_after("listening ")));
    tcp::socket socket(io_);
    on_this_host(by.over, [&] { socket.connect({asio::ip::make_address(address_of(by.over, 1)), port}); });
    if (by.secure)
      line_ = std::make_unique<line>(std::move(socket), context(), false);
    else
      line_ = std::make_unique<line>(std::move(socket));
    return *line_;
  }
  std::string folder() const { return (folder_.path() / "authority").string(); }
  asio::ssl::context& context() {
    if (!context_) context_.emplace(context_of("this", folder()));
    return *context_;
  }

  own_folder folder_;
  bool issued_ = false;
  asio::io_context io_;
  std::optional<asio::ssl::context> context_;
  link by_;
  std::optional<test::child> peer_;
  std::unique_ptr<line> line_;
  std::vector<std::uint64_t> data_;
};

void answer(line& over) {
  std::vector<std::uint64_t> memory;
  for (message one;;) {
    over.read(&one, sizeof one);
    if (one.what == message::kind::bytes) {
      memory.resize(one.size / sizeof memory[0]);
      over.read(memory.data(), one.size);
      one.sum = sum_of(memory);
    }
    over.write(&one, sizeof one);
  }
}

}  // namespace

std::unique_ptr<contender> make_asio() { return std::make_unique<asio_contender>(); }

int answer_asio(const std::vector<std::string>& words) {
  asio::io_context io;
  tcp::acceptor door(io, {asio::ip::make_address(words.at(1)), 0});
  std::printf("listening %u\n", door.local_endpoint().port());
  std::fflush(stdout);
  auto socket = door.accept();
  try {
    if (words.at(2) == "tls") {
      auto context = context_of("other", words.at(3));
      line over(std::move(socket), context, true);
      answer(over);
    } else {
      line over(std::move(socket));
      answer(over);
    }
  } catch (const boost::system::system_error&) {  // it has been closed
  }
  return 0;
}

}  // namespace bench
