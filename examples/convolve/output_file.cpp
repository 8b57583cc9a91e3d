// What this file is for: the temporary file beside the destination, and its removal on errors and interrupts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "output_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace convolution {
namespace {

// The name for the signal handler: a plain array, written before the handler is installed.
char interrupted_file[4096];

extern "C" void remove_and_die(int signal) {
  ::unlink(interrupted_file);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

constexpr int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP};

void handle_signals(void (*handler)(int)) {
  for (const int number : fatal_signals) {
    struct sigaction now = {};
    // A signal that the parent chose to ignore (nohup) stays ignored.
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    struct sigaction next = {};
    next.sa_handler = handler;
    ::sigaction(number, &next, nullptr);
  }
}

mode_t permissions_for(const std::string& destination) {
  struct stat existing = {};
  if (::stat(destination.c_str(), &existing) == 0) return existing.st_mode & 0777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

void require_writable(const std::string& path) {
  const bool existed = ::access(path.c_str(), F_OK) == 0;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor < 0) throw output_error("cannot write " + path + ": " + std::strerror(errno));
  ::close(descriptor);
  if (!existed) ::unlink(path.c_str());
}

output_file::output_file(const std::string& path) : asked_(path) {
  namespace fs = std::filesystem;
  const auto refuse = [&](const std::string& reason) { throw output_error("cannot write " + asked_ + ": " + reason); };
  std::error_code fault;
  destination_ = fs::weakly_canonical(fs::absolute(path), fault).string();
  if (fault) refuse(fault.message());
  const fs::file_status status = fs::status(destination_, fault);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("it exists and is not a regular file");
  if (fs::exists(status) && ::access(destination_.c_str(), W_OK) != 0) refuse(std::strerror(errno));

  const fs::path target(destination_);
  const std::string name = (target.parent_path() / ".troupe-convolve-XXXXXX").string();
  std::vector<char> buffer(name.begin(), name.end());
  buffer.push_back('\0');
  if (buffer.size() > sizeof interrupted_file) refuse("its name is too long");
  const mode_t mode = permissions_for(destination_);
  const int descriptor = ::mkstemp(buffer.data());
  if (descriptor < 0) refuse(std::strerror(errno));
  temporary_ = buffer.data();
  std::memcpy(interrupted_file, buffer.data(), buffer.size());
  handle_signals(remove_and_die);
  static_cast<void>(::fchmod(descriptor, mode));  // a file system without modes is no reason to fail
  stream_ = ::fdopen(descriptor, "wb");
}

output_file::~output_file() {
  if (stream_) std::fclose(stream_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  handle_signals(SIG_DFL);
}

void output_file::commit() {
  const auto refuse = [&] { throw output_error("cannot write " + asked_ + ": " + std::strerror(errno)); };
  const int closed = std::fclose(std::exchange(stream_, nullptr));
  if (closed != 0) refuse();
  if (::rename(temporary_.c_str(), destination_.c_str()) != 0) refuse();
  temporary_.clear();
  handle_signals(SIG_DFL);
}

}  // namespace convolution
