// What this file is for: the calls of the system and of OpenSSL that move bytes, and what their answers mean.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <system_error>
#include <utility>

#include "net/tcp/openssl_text.hpp"
#include "net/tcp/tls_guard.hpp"

namespace troupe::net::tcp {

namespace {

constexpr std::size_t record_max = 16u << 10;
/// A buffer of that size is taken for each connection.
constexpr long stranger_record_max = 2048;
/// Bytes that a member's stream may take from the socket at once.
constexpr std::size_t read_ahead = 128u << 10;
/// After a record of at least that size some are taken one by one: OpenSSL moves all that it has read ahead each time
/// it comes to the next, to have it in line. That was four copies of every byte. Small ones stand between the large.
constexpr std::size_t large_record = 4u << 10;
constexpr int one_by_one_after = 16;
/// With what TLS adds.
constexpr std::size_t record_on_wire_max = record_cursor::header + record_max + 256;

// OpenSSL's own BIO of a socket would write without MSG_NOSIGNAL: a peer that is gone would end the process.
int bio_write(BIO* bio, const char* from, int n) {
  BIO_clear_retry_flags(bio);
  const auto sent = static_cast<stream*>(BIO_get_data(bio))->send(from, static_cast<std::size_t>(n));
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* to, int n) {
  BIO_clear_retry_flags(bio);
  const auto got = static_cast<stream*>(BIO_get_data(bio))->receive(to, static_cast<std::size_t>(n));
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    return m;
  }();
  return method;
}

}  // namespace

stream::stream(int socket, ssl_st* tls, std::uint64_t renew_after)
    : socket_(socket), tls_(tls), renew_after_(renew_after) {
  if (tls_ == nullptr) return;
  guard_ = std::make_unique<tls_guard>();
  SSL_set_max_send_fragment(tls_, stranger_record_max);
  BIO* bio = BIO_new(bio_method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_, bio, bio);
}

stream::~stream() {
  if (tls_ != nullptr) SSL_free(tls_);
  ::close(socket_);
}

void stream::count_in(std::shared_ptr<meter> m) {
  m->sent += meter_->sent;
  m->received += meter_->received;
  meter_ = std::move(m);
}

void stream::trust() {
  guard_.reset();
  if (tls_ == nullptr) return;
  SSL_set_max_send_fragment(tls_, record_max);
  SSL_set_split_send_fragment(tls_, record_max);
  SSL_set_read_ahead(tls_, 1);
  SSL_set_default_read_buffer_len(tls_, read_ahead);
  SSL_free_buffers(tls_);  // those in use are too small; refuses if something is in them, which costs speed only
}

moved stream::handshake() {
  if (tls_ == nullptr) return {outcome::moved, 0};
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_);
  return result == 1 ? moved{outcome::moved, 0} : from_tls(result);
}

moved stream::read(void* to, std::size_t bytes) {
  if (tls_ == nullptr) return from_system(receive(to, bytes), outcome::wants_read);
  ERR_clear_error();
  std::size_t n = 0;
  const int result = SSL_read_ex(tls_, to, bytes, &n);
  return result == 1 ? moved{outcome::moved, n} : from_tls(result);
}

moved stream::write(const void* from, std::size_t bytes) {
  if (tls_ == nullptr) return from_system(send(from, bytes), outcome::wants_write);
  ERR_clear_error();
  if (records_ >= renew_after_ && SSL_key_update(tls_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) records_ = 0;
  ERR_clear_error();
  std::size_t n = 0;
  // A record at a time, so that what could not be written is offered again with at least its length.
  const int result = SSL_write_ex(tls_, from, std::min(bytes, record_max), &n);
  if (result != 1) return from_tls(result);
  ++records_;
  return {outcome::moved, n};
}

moved stream::read(std::span<const iovec> to) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(to.data());
  m.msg_iovlen = to.size();
  ssize_t n;
  do {
    n = ::recvmsg(socket_, &m, 0);
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    meter_->received += static_cast<std::uint64_t>(n);
    meter_->heard_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  }
  return from_system(n, outcome::wants_read);
}

moved stream::write(std::span<const iovec> from) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(from.data());
  m.msg_iovlen = from.size();
  ssize_t n;
  do {
    n = ::sendmsg(socket_, &m, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n > 0) meter_->sent += static_cast<std::uint64_t>(n);
  return from_system(n, outcome::wants_write);
}

void stream::finish() {
  if (tls_ != nullptr) {
    ERR_clear_error();
    if (SSL_is_init_finished(tls_)) SSL_shutdown(tls_);
    ERR_clear_error();
    SSL_free(std::exchange(tls_, nullptr));
  }
  ::shutdown(socket_, SHUT_WR);
}

// Subtracts what TLS may have of a record that is not complete: that has been taken from the socket already.
void stream::await(std::size_t bytes) {
  constexpr std::size_t held = record_on_wire_max + record_cursor::header;
  if (tls_ != nullptr) bytes -= std::min(bytes, held);
  const int low = static_cast<int>(std::clamp<std::size_t>(bytes, 1, INT_MAX));
  if (std::exchange(awaited_, low) == low) return;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
}

moved stream::drain(std::span<std::byte> nowhere) {
  return from_system(::recv(socket_, nowhere.data(), nowhere.size(), 0), outcome::wants_read);
}

bool stream::holds_more() const { return tls_ != nullptr && SSL_has_pending(tls_) == 1; }

ssize_t stream::receive(void* to, std::size_t bytes) {
  socket_error_ = std::exchange(late_error_, 0);
  if (socket_error_ != 0) {
    errno = socket_error_;
    return -1;
  }
  if (std::exchange(short_read_, false)) {
    errno = EAGAIN;
    return -1;
  }
  const std::span room(static_cast<std::byte*>(to), bytes);
  const std::size_t saved = take_saved(room);
  if (saved == bytes) return static_cast<ssize_t>(saved);
  const ssize_t n = take(room.subspan(saved));
  if (n >= 0) return static_cast<ssize_t>(saved) + n;
  if (errno != EAGAIN && errno != EWOULDBLOCK) socket_error_ = errno;
  if (saved == 0) return n;
  // Once more, when it is asked again.
  late_error_ = std::exchange(socket_error_, 0);
  short_read_ = late_error_ == 0;
  return static_cast<ssize_t>(saved);
}

std::size_t stream::take_saved(std::span<std::byte> to) {
  if (saved_bytes_ == 0) return 0;
  const std::size_t n = std::min(saved_bytes_, to.size());
  std::copy_n(saved_.begin(), n, to.begin());
  std::copy(saved_.begin() + static_cast<std::ptrdiff_t>(n), saved_.end(), saved_.begin());
  saved_bytes_ -= n;
  records_taken_.pass(to.first(n));
  return n;
}

// Where records are large, at most to the end of one, and the header of the next, which says how long that is.
ssize_t stream::take(std::span<std::byte> to) {
  bool to_the_end = false;
  if (records_taken_.length() >= large_record)
    one_by_one_ = one_by_one_after;
  else if (one_by_one_ > 0)
    --one_by_one_;
  if (tls_ != nullptr && !guard_ && one_by_one_ > 0) {
    const std::size_t left = records_taken_.left() != 0 ? records_taken_.left() : record_on_wire_max;
    to_the_end = left == records_taken_.left() && left <= to.size();
    to = to.first(std::min(left, to.size()));
  }
  iovec pieces[] = {{to.data(), to.size()}, {saved_.data(), saved_.size()}};
  msghdr m{};
  m.msg_iov = pieces;
  m.msg_iovlen = std::size(pieces);
  ssize_t n;
  do {
    n = to_the_end ? ::recvmsg(socket_, &m, 0) : ::recv(socket_, to.data(), to.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return n;
  const auto got = static_cast<std::size_t>(n), here = std::min(got, to.size());
  saved_bytes_ = got - here;
  short_read_ = got < to.size() + (to_the_end ? saved_.size() : 0);
  meter_->received += got;
  meter_->heard_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  if (tls_ != nullptr) records_taken_.pass(to.first(here));
  if (guard_ && !guard_->pass(to.first(here))) {
    errno = EMSGSIZE;
    return -1;
  }
  return static_cast<ssize_t>(here);
}

ssize_t stream::send(const void* from, std::size_t bytes) {
  ssize_t n;
  do {
    n = ::send(socket_, from, bytes, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) socket_error_ = errno;
  if (n > 0) meter_->sent += static_cast<std::uint64_t>(n);
  return n;
}

moved stream::from_system(ssize_t n, outcome wait) {
  if (n > 0) return {outcome::moved, static_cast<std::size_t>(n)};
  if (n == 0) return {outcome::ended};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {wait};
  failure_ = std::generic_category().message(errno);
  return {outcome::failed};
}

moved stream::from_tls(int result) {
  const int what = SSL_get_error(tls_, result);
  if (what == SSL_ERROR_WANT_READ) return {outcome::wants_read};
  if (what == SSL_ERROR_WANT_WRITE) return {outcome::wants_write};
  if (what == SSL_ERROR_ZERO_RETURN) return {outcome::ended};
  if (what == SSL_ERROR_SYSCALL && ERR_peek_error() == 0) {
    if (socket_error_ == 0) return {outcome::ended};
    failure_ = std::generic_category().message(socket_error_);
  } else {
    failure_ = openssl_text(tls_);
  }
  return {outcome::failed};
}

}  // namespace troupe::net::tcp
