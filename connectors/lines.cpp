// What this file is for: lines cut out of blocks of bytes, from files, descriptors and files that grow.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "connectors/lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::connectors {

namespace {

[[noreturn]] void refuse(const std::string& what, int why) {
  throw error(why == ENOSPC || why == EDQUOT ? errc::disk_full : errc::io_failed, what + ": " + std::strerror(why));
}

void check(const line_options& o) {
  if (o.line_max < 1) throw error(errc::bad_argument, "line_options::line_max is 0");
}

// An open file, closed with the object.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int d) : number_(d) {}
  descriptor(descriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(number_, o.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_ = -1;
};

// Cuts bytes into lines. Bytes are added at the end, lines taken from the front.
class cutter {
 public:
  cutter(std::size_t line_max, std::uint64_t offset) : line_max_(line_max), offset_(offset) {}

  void add(const char* data, std::size_t n) { bytes_.append(data, n); }
  /// Returns the next line, or the next piece of one that is too long; none if more bytes are needed.
  std::optional<line> next() {
    const std::size_t looked = std::max(looked_, begin_);
    const std::size_t end = bytes_.find('\n', looked);
    const std::size_t length = (end == std::string::npos ? bytes_.size() : end) - begin_;
    if (length > line_max_) {
      is_piece_ = true;
      return take(line_max_, 0, false);
    }
    if (end == std::string::npos) {
      looked_ = bytes_.size();
      tidy();
      return {};
    }
    return take(length, 1, !std::exchange(is_piece_, false));
  }
  /// What is left without a newline, at the end.
  std::optional<line> rest() {
    if (begin_ == bytes_.size()) return {};
    is_piece_ = false;
    return take(bytes_.size() - begin_, 0, false);
  }
  std::uint64_t offset() const { return offset_; }

 private:
  line take(std::size_t length, std::size_t newline, bool is_whole) {
    line l{bytes_.substr(begin_, length), offset_, is_whole};
    begin_ += length + newline;
    offset_ += length + newline;
    looked_ = begin_;
    return l;
  }
  // Moves what is left to the front; each byte is moved once for each block that comes.
  void tidy() {
    bytes_.erase(0, begin_);
    looked_ -= begin_;
    begin_ = 0;
  }
  const std::size_t line_max_;
  std::string bytes_;
  std::size_t begin_ = 0, looked_ = 0;
  std::uint64_t offset_;
  bool is_piece_ = false;
};

constexpr std::size_t block_bytes = 64u << 10;

// Reads once; 0: the end.
std::size_t read_some(int from, std::vector<char>& to, const std::string& what) {
  for (;;) {
    const ssize_t n = ::read(from, to.data(), to.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    refuse(what, errno);
  }
}

stream::source<line> lines_of_file(descriptor file, std::string path, line_options o) {
  cutter cut(o.line_max, o.from);
  std::vector<char> block(block_bytes);
  while (const std::size_t n = read_some(file.get(), block, path)) {
    cut.add(block.data(), n);
    while (auto l = cut.next()) co_yield std::move(*l);
  }
  if (auto l = cut.rest()) co_yield std::move(*l);
}

stream::source<line> lines_of_descriptor(int from, line_options o) {
  cutter cut(o.line_max, 0);
  std::vector<char> block(block_bytes);
  for (;;) {
    co_await stream::readable(from);
    const ssize_t n = ::read(from, block.data(), block.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (n < 0) refuse("descriptor " + std::to_string(from), errno);
    if (n == 0) break;
    cut.add(block.data(), static_cast<std::size_t>(n));
    while (auto l = cut.next()) co_yield std::move(*l);
  }
  if (auto l = cut.rest()) co_yield std::move(*l);
}

struct file_state {
  ::dev_t device;
  ::ino_t number;
  std::uint64_t size;
};
std::optional<file_state> look(int file) {
  struct stat s {};
  if (::fstat(file, &s) != 0) return {};
  return file_state{s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size)};
}
std::optional<file_state> look(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return {};
  return file_state{s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size)};
}

stream::source<line> follow(std::string path, tail_options o) {
  std::vector<char> block(block_bytes);
  std::uint64_t from = o.lines.from;
  bool from_end = o.from_end;
  for (;;) {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      if (errno != ENOENT && errno != EACCES) refuse(path, errno);
      co_await stream::sleep(o.interval);
      from = 0;
      from_end = false;
      continue;
    }
    std::optional<file_state> now = look(file.get());
    if (now && from_end) from = now->size;
    if (now && from > now->size) from = 0;
    cutter cut(o.lines.line_max, from);
    std::uint64_t read = from;
    if (::lseek(file.get(), static_cast<::off_t>(from), SEEK_SET) < 0) refuse(path, errno);
    for (bool is_old = false;;) {
      if (const std::size_t n = read_some(file.get(), block, path)) {
        read += n;
        cut.add(block.data(), n);
        while (auto l = cut.next()) co_yield std::move(*l);
        continue;
      }
      if (is_old) break;  // what was written before it lost its name has been read
      now = look(file.get());
      const std::optional<file_state> named = look(path);
      if (now && now->size < read) break;  // it has become shorter
      is_old = now && named && (named->number != now->number || named->device != now->device);
      if (!is_old) co_await stream::sleep(o.interval);
    }
    if (auto l = cut.rest()) co_yield std::move(*l);
    from = 0;
    from_end = false;
  }
}

}  // namespace

stream::source<line> file_lines(const std::string& path, const line_options& o) {
  check(o);
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) refuse(path, errno);
  struct stat s {};
  if (::fstat(file.get(), &s) == 0 && S_ISDIR(s.st_mode)) refuse(path, EISDIR);
  if (o.from != 0 && ::lseek(file.get(), static_cast<::off_t>(o.from), SEEK_SET) < 0) refuse(path, errno);
  return lines_of_file(std::move(file), path, o);
}

stream::source<line> descriptor_lines(int descriptor, const line_options& o) {
  check(o);
  if (::fcntl(descriptor, F_GETFD) < 0) refuse("descriptor " + std::to_string(descriptor), errno);
  return lines_of_descriptor(descriptor, o);
}

stream::source<line> tail_lines(const std::string& path, const tail_options& o) {
  check(o.lines);
  if (o.interval.count() < 1) throw error(errc::bad_argument, "tail_options::interval is less than a millisecond");
  return follow(path, o);
}

struct file_writer::state {
  std::string path;
  descriptor file;
  std::string buffer;
};

file_writer::file_writer(const std::string& path) : state_(std::make_shared<state>()) {
  state_->path = path;
  state_->file = descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (state_->file.get() < 0) refuse(path, errno);
}

void file_writer::operator()(const std::string& text) {
  std::string& b = state_->buffer;
  b.assign(text).push_back('\n');
  for (std::size_t at = 0; at < b.size();) {
    const ssize_t n = ::write(state_->file.get(), b.data() + at, b.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(state_->path, errno);
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace troupe::connectors
