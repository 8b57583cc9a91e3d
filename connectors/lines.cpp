// What this file is for: lines cut out of blocks of bytes, from files, descriptors and files that grow.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "connectors/lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "connectors/detail/descriptor.hpp"
#include "connectors/detail/framing.hpp"

namespace troupe::connectors {

namespace {

[[noreturn]] void refuse(const std::string& what, int why) {
  throw error(why == ENOSPC || why == EDQUOT ? errc::disk_full : errc::io_failed, what + ": " + std::strerror(why));
}

void check(const line_options& o) {
  if (o.line_max < 1) throw error(errc::bad_argument, "line_options::line_max is 0");
}

line line_of(detail::piece&& p) { return {std::move(p.text), p.offset, p.is_whole}; }

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

stream::source<line> lines_of_file(detail::descriptor file, std::string path, line_options o) {
  detail::line_cutter cut(o.line_max, o.from);
  std::vector<char> block(block_bytes);
  while (const std::size_t n = read_some(file.get(), block, path)) {
    cut.add(block.data(), n);
    while (auto l = cut.next()) co_yield line_of(std::move(*l));
  }
  if (auto l = cut.rest()) co_yield line_of(std::move(*l));
}

stream::source<line> lines_of_descriptor(int from, line_options o) {
  detail::line_cutter cut(o.line_max, 0);
  std::vector<char> block(block_bytes);
  for (;;) {
    co_await stream::readable(from);
    const ssize_t n = ::read(from, block.data(), block.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (n < 0) refuse("descriptor " + std::to_string(from), errno);
    if (n == 0) break;
    cut.add(block.data(), static_cast<std::size_t>(n));
    while (auto l = cut.next()) co_yield line_of(std::move(*l));
  }
  if (auto l = cut.rest()) co_yield line_of(std::move(*l));
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
    const detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
    detail::line_cutter cut(o.lines.line_max, from);
    std::uint64_t read = from;
    if (::lseek(file.get(), static_cast<::off_t>(from), SEEK_SET) < 0) refuse(path, errno);
    for (bool is_old = false;;) {
      if (const std::size_t n = read_some(file.get(), block, path)) {
        read += n;
        cut.add(block.data(), n);
        while (auto l = cut.next()) co_yield line_of(std::move(*l));
        continue;
      }
      if (is_old) break;  // what was written before it lost its name has been read
      now = look(file.get());
      const std::optional<file_state> named = look(path);
      if (now && now->size < read) break;  // it has become shorter
      is_old = now && named && (named->number != now->number || named->device != now->device);
      if (!is_old) co_await stream::sleep(o.interval);
    }
    if (auto l = cut.rest()) co_yield line_of(std::move(*l));
    from = 0;
    from_end = false;
  }
}

}  // namespace

stream::source<line> file_lines(const std::string& path, const line_options& o) {
  check(o);
  detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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

namespace {

// Takes back the last bytes that were written; not of a pipe or a device, where there is nothing to be cut off.
void take_back(int file, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const ::off_t end = ::lseek(file, -static_cast<::off_t>(bytes), SEEK_CUR);
  // Where it cannot be made shorter, the next line is written over them.
  if (end >= 0) [[maybe_unused]]
    const int cut = ::ftruncate(file, end);
}

}  // namespace

struct file_writer::state {
  std::string path;
  detail::descriptor file;
  std::string buffer;
};

file_writer::file_writer(const std::string& path) : state_(std::make_shared<state>()) {
  state_->path = path;
  state_->file = detail::descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (state_->file.get() < 0) refuse(path, errno);
}

void file_writer::operator()(const std::string& text) {
  std::string& b = state_->buffer;
  b.assign(text).push_back('\n');
  for (std::size_t at = 0; at < b.size();) {
    const ssize_t n = ::write(state_->file.get(), b.data() + at, b.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int why = errno;
      take_back(state_->file.get(), at);  // else what is written next would stand behind a part of this line
      refuse(state_->path, why);
    }
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace troupe::connectors
