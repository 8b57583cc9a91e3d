// What this file is for: compiling a kernel with NVRTC or HIPRTC.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rtc/program_calls.hpp"

#include <utility>

#include <troupe/error.hpp>

#include "devices/kernels/kernels.hpp"
#include "devices/rtc/text.hpp"

namespace troupe::devices::rtc {

namespace {

class program_compiler final : public compiler {
 public:
  program_compiler(const program_calls& calls, program_dialect dialect) : calls_(calls), dialect_(std::move(dialect)) {
    int major = 0, minor = 0;
    calls_.version(&major, &minor);
    identity_ = dialect_.name + ' ' + std::to_string(major) + '.' + std::to_string(minor);
  }

  const std::string& identity() const override { return identity_; }
  std::string whole_text(const kernel_source& source) const override {
    return with_preludes(kernels::prelude_cuda_hip, source);
  }

  std::vector<std::byte> compile(const kernel_source& source, const std::string& target) override {
    const std::string text = whole_text(source), name(source.name);
    void* made = nullptr;
    check(calls_.create(&made, text.c_str(), name.empty() ? "kernel" : name.c_str(), 0, nullptr, nullptr), source,
          target);
    const auto destroy = [this](void* p) { calls_.destroy(&p); };
    const std::unique_ptr<void, decltype(destroy)> program(made, destroy);

    std::vector<std::string> options = dialect_.options;
    options.push_back(dialect_.target_option + target);
    std::vector<const char*> list;
    for (const auto& o : options) list.push_back(o.c_str());
    if (const int code = calls_.compile(made, static_cast<int>(list.size()), list.data())) {
      std::size_t size = 0;
      std::string log;
      if (calls_.log_size(made, &size) == 0) {
        log.resize(size);
        if (calls_.log(made, log.data()) != 0) log.clear();
        while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
      }
      throw error(errc::compile_failed,
                  does_not_compile(
                      source, target,
                      std::string(dialect_.name) + ' ' + std::to_string(code) + ' ' + calls_.error_string(code), log));
    }
    std::size_t size = 0;
    check(calls_.code_size(made, &size), source, target);
    std::vector<std::byte> binary(size);
    check(calls_.code(made, reinterpret_cast<char*>(binary.data())), source, target);
    return binary;
  }

 private:
  void check(int code, const kernel_source& source, const std::string& target) const {
    if (code)
      throw error(errc::compile_failed, described(source, target) + ": " + dialect_.name + ' ' + std::to_string(code) +
                                            ' ' + calls_.error_string(code));
  }

  program_calls calls_;
  program_dialect dialect_;
  std::string identity_;
};

}  // namespace

std::unique_ptr<compiler> make_program_compiler(const program_calls& calls, program_dialect dialect) {
  return std::make_unique<program_compiler>(calls, std::move(dialect));
}

}  // namespace troupe::devices::rtc
