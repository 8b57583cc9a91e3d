// What this file is for: kernels of the software GPU, compiled by the host's C++ compiler into shared objects.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <troupe/error.hpp>

#include "devices/kernels/kernels.hpp"
#include "devices/rtc/compiler.hpp"
#include "devices/rtc/text.hpp"
#include "devices/sim/item.h"

extern char** environ;  // handed on to the compiler, not read

namespace troupe::devices::rtc {

namespace {

// prelude_sim.inc has this struct in its text.
static_assert(offsetof(troupe_sim_item, local_id) == 0 && offsetof(troupe_sim_item, group_id) == 12 &&
              offsetof(troupe_sim_item, local_size) == 24 && offsetof(troupe_sim_item, group_count) == 36 &&
              offsetof(troupe_sim_item, barrier) == 48 && offsetof(troupe_sim_item, local_memory) == 56 &&
              offsetof(troupe_sim_item, outside) == 64 && sizeof(troupe_sim_item) == 72);

// After the kernel: its descriptor, made from its own type. ENTRY and BARRIERS are replaced.
constexpr std::string_view descriptor = R"(
namespace {
struct gpu_argument { unsigned long bytes; bool pointer; unsigned long element; };
template <class T> struct gpu_elements { static constexpr unsigned long bytes = sizeof(T); };
template <> struct gpu_elements<void> { static constexpr unsigned long bytes = 0; };
template <> struct gpu_elements<const void> { static constexpr unsigned long bytes = 0; };
template <class T> struct gpu_is_pointer {
  static constexpr bool value = false;
  static constexpr unsigned long of = 0;
};
template <class T> struct gpu_is_pointer<T*> {
  static constexpr bool value = true;
  static constexpr unsigned long of = gpu_elements<T>::bytes;
};
template <unsigned long... I> struct gpu_numbers {};
template <unsigned long N, unsigned long... I> struct gpu_count : gpu_count<N - 1, N - 1, I...> {};
template <unsigned long... I> struct gpu_count<0, I...> { using type = gpu_numbers<I...>; };
template <class F> struct gpu_signature;
template <class... A> struct gpu_signature<void(A...)> {
  static constexpr unsigned long size = sizeof...(A);
  struct list { gpu_argument of[sizeof...(A) + 1]; };
  static constexpr list arguments() {
    return {{{sizeof(A), gpu_is_pointer<A>::value, gpu_is_pointer<A>::of}..., {0, false, 0}}};
  }
  template <unsigned long... I> static inline void call(void (*f)(A...), void** args, gpu_numbers<I...>) {
    f(*static_cast<A*>(args[I])...);
  }
  static inline void call(void (*f)(A...), void** args) { call(f, args, typename gpu_count<size>::type()); }
};
}
extern "C" void troupe_kernel_invoke(const troupe_sim_item* item, void** args) {
  gpu_item = item;
  gpu_signature<decltype(ENTRY)>::call(ENTRY, args);
}
extern "C" const gpu_signature<decltype(ENTRY)>::list troupe_kernel_arguments =
    gpu_signature<decltype(ENTRY)>::arguments();
extern "C" const unsigned long troupe_kernel_argument_count = gpu_signature<decltype(ENTRY)>::size;
extern "C" const bool troupe_kernel_barriers = BARRIERS;
)";

// The compiler's name for the file of the descriptor: nobody's kernel is called so.
constexpr std::string_view behind_text = "behind the text";

// The text is right, but not what is made for its entry: there is no such function.
bool fails_behind_text(const std::string& log) {
  bool any = false;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line(log.data() + at, end - at);
    at = end + 1;
    if (line.find("error:") == line.npos) continue;
    if (!line.starts_with(behind_text)) return false;
    any = true;
  }
  return any;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder that goes with its files.
class scratch_folder {
 public:
  explicit scratch_folder(const std::filesystem::path& where) : path_((where / "troupe-XXXXXX").string()) {
    if (!::mkdtemp(path_.data()))
      throw error(errc::io_failed, "no folder for the compiler in " + where.string() + ": " + std::strerror(errno));
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path file(const char* name) const { return std::filesystem::path(path_) / name; }

 private:
  std::string path_;
};

class host_compiler final : public compiler {
 public:
  host_compiler(std::filesystem::path program, std::filesystem::path scratch)
      : program_(std::move(program)), scratch_(std::move(scratch)) {
    // A compiler that was replaced has another size or date. Asking for its version would cost a process.
    std::error_code failed;
    const auto real = std::filesystem::canonical(program_, failed);
    identity_ = (failed ? program_ : real).string();
    identity_ += ' ' + std::to_string(std::filesystem::file_size(identity_, failed));
    identity_ += ' ' + std::to_string(std::filesystem::last_write_time(real, failed).time_since_epoch().count());
  }

  const std::string& identity() const override { return identity_; }

  std::string whole_text(const kernel_source& source) const override {
    std::string text = with_preludes(kernels::prelude_sim, source), after(descriptor);
    replace_all(after, "ENTRY", source.entry);
    replace_all(after, "BARRIERS", source.text.find("GPU_BARRIER") != std::string_view::npos ? "true" : "false");
    text += "#line 1 \"" + std::string(behind_text) + '"';
    text += after;
    return text;
  }

  std::vector<std::byte> compile(const kernel_source& source, const std::string& target) override {
    for (const char c : source.entry)
      if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        throw error(errc::compile_failed, described(source, target) + ": not the name of a function");
    const scratch_folder folder(scratch_);
    const auto text = folder.file("kernel.cpp"), object = folder.file("kernel.so"), log = folder.file("log");
    if (std::ofstream out(text); !(out << whole_text(source) << std::flush))
      throw error(errc::io_failed, "the text of a kernel could not be written to " + text.string());

    const std::string said = run({program_.string(), "-std=c++17", "-O2", "-w", "-fPIC", "-shared", "-x", "c++", "-o",
                                  object.string(), text.string()},
                                 log);
    const std::string made = contents(object);
    if (const std::string lines = contents(log); !said.empty() && fails_behind_text(lines))
      throw error(errc::compile_failed, no_function(source, target));
    if (!said.empty() || made.empty())
      throw error(errc::compile_failed, does_not_compile(source, target, program_.string() + said, contents(log)));
    const auto* bytes = reinterpret_cast<const std::byte*>(made.data());
    return {bytes, bytes + made.size()};
  }

 private:
  // Empty: it ended well. Otherwise what happened.
  static std::string run(const std::vector<std::string>& command, const std::filesystem::path& log) {
    std::vector<char*> arguments;
    for (const auto& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (failed) return std::string(": ") + std::strerror(failed);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
      // A program that ignores SIGCHLD leaves nothing to wait for; the child is gone then, and its output decides.
      if (errno != EINTR) return {};
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return WIFEXITED(status) ? ": exit code " + std::to_string(WEXITSTATUS(status))
                             : ": signal " + std::to_string(WTERMSIG(status));
  }

  std::filesystem::path program_, scratch_;
  std::string identity_;
};

}  // namespace

std::unique_ptr<compiler> open_host_compiler(const settings& s, std::string& why) {
  for (const char* name : {"c++", "g++", "clang++"})
    for (const auto& folder : s.programs)
      if (const auto program = folder / name; ::access(program.c_str(), X_OK) == 0)
        return std::make_unique<host_compiler>(program, s.scratch);
  why = "no C++ compiler (c++, g++ or clang++) is found in PATH";
  return nullptr;
}

}  // namespace troupe::devices::rtc
