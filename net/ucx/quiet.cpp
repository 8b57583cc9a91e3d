// What this file is for: undoing what UCX does to a process when it is loaded.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// UCX is configured by the environment alone, which it reads while it is loaded, and the environment is the program's:
// by then it has set handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGHUP. They are taken back here, some
// milliseconds later.
#include "net/ucx/quiet.hpp"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include <dlfcn.h>

#include <ucm/api/ucm.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

namespace troupe::net::ucx {

namespace {

thread_local std::string complaint;

ucs_log_func_rc_t listen(const char*, unsigned, const char*, ucs_log_level_t level, const ucs_log_component_config_t*,
                         const char* message, va_list values) {
  if (level > UCS_LOG_LEVEL_ERROR) return UCS_LOG_FUNC_RC_STOP;
  char text[512];
  std::vsnprintf(text, sizeof text, message, values);
  complaint = text;
  return UCS_LOG_FUNC_RC_STOP;
}

const void* library_of(const void* code) {
  Dl_info where{};
  return code && ::dladdr(code, &where) ? where.dli_fbase : nullptr;
}

}  // namespace

void keep_to_itself() {
  ucs_log_push_handler(listen);
  const void* const ucs = library_of(reinterpret_cast<const void*>(&ucs_debug_disable_signal));
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0) continue;
    const void* const handler = (now.sa_flags & SA_SIGINFO) ? reinterpret_cast<const void*>(now.sa_sigaction)
                                                            : reinterpret_cast<const void*>(now.sa_handler);
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || library_of(handler) != ucs) continue;
    ucs_debug_disable_signal(signal);
  }
  // UCX has read in the environment again what first.cpp had said.
  ucm_global_config_t memory = ucm_global_opts;
  memory.enable_events = 0;
  memory.enable_malloc_hooks = memory.enable_malloc_reloc = 0;
  ucm_set_global_opts(&memory);
}

std::string last_complaint() { return std::exchange(complaint, {}); }

}  // namespace troupe::net::ucx
