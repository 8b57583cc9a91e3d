// What this file is for: starting programs with their output in anonymous files, so that no pipe can fill up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace troupe_test {
namespace {

class captured_stream {
 public:
  captured_stream() : descriptor_(::memfd_create("output", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
  }
  ~captured_stream() { ::close(descriptor_); }
  captured_stream(const captured_stream&) = delete;
  captured_stream& operator=(const captured_stream&) = delete;

  int descriptor() const { return descriptor_; }
  std::string text() const { return bytes_of("/proc/self/fd/" + std::to_string(descriptor_)); }

 private:
  int descriptor_;
};

finished_program run(std::vector<std::string> words, const std::string& input = "/dev/null") {
  const captured_stream out, err;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), 0, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int fault = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) throw std::runtime_error("cannot start " + words[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("lost " + words[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.text(), err.text()};
}

std::vector<std::string> command(std::vector<std::string> words, const std::string& name,
                                 const std::vector<std::string>& arguments) {
  words.push_back(std::string(TROUPE_BIN_DIR) + "/" + name);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

bool has_program(const std::string& name) {
  return std::filesystem::exists(std::filesystem::path(TROUPE_BIN_DIR) / name);
}

finished_program run_program(const std::string& name, const std::vector<std::string>& arguments,
                             const std::string& input) {
  return run(command({}, name, arguments), input);
}

finished_program run_program_on_small_disk(int blocks, const std::string& name,
                                           const std::vector<std::string>& arguments) {
  // Ignored, the signal of a file that grows too large becomes an error of write(), as on a full disk.
  const std::string script = "trap '' XFSZ; ulimit -f " + std::to_string(blocks) + "; exec \"$@\"";
  return run(command({"/bin/sh", "-c", script, "sh"}, name, arguments));
}

scratch_folder::scratch_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a folder for the test");
  path_ = name;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string scratch_folder::put(const std::string& name, const std::string& bytes) const {
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::set<std::string> scratch_folder::names() const {
  std::set<std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
    result.insert(std::filesystem::relative(entry.path(), path_).string());
  return result;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace troupe_test
