// What this file is for: the program troupe-convolve, from the command line to the exit code.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include <troupe/error.hpp>
#include <troupe/version.hpp>

#include "arguments.hpp"
#include "convolve.hpp"
#include "image.hpp"
#include "kernel_file.hpp"
#include "memory.hpp"
#include "output_file.hpp"
#include "reference.hpp"
#include "report.hpp"

namespace {

using namespace convolution;

constexpr int exit_done = 0;
constexpr int exit_failed = 1;
constexpr int exit_wrong_input = 2;

// Three standard deviations to each side: what lies beyond would weigh less than 1 %.
constexpr std::size_t default_side = 31;
constexpr double default_sigma = 5;

// Prints one line, whatever the names of files hold.
int complain(std::string text, int code) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  std::fprintf(stderr, "troupe-convolve: %s\n", text.c_str());
  return code;
}

void print_summary(const arguments& asked, const weights& filter, const outcome& done) {
  const image& picture = done.picture;
  std::printf("%s: %zux%zu %s, %zux%zu kernel, %llu tile%s in %.3f s\n\n%s", asked.output.c_str(), picture.width,
              picture.height, picture.channels == 4 ? "RGBA" : "RGB", filter.width, filter.height,
              static_cast<unsigned long long>(done.tiles), done.tiles == 1 ? "" : "s", done.seconds,
              table(done.shares).c_str());
  if (asked.trace) std::printf("\ntrace: %s\n", asked.trace->c_str());
}

// Signals are blocked before the first thread is made, so that none of them takes one.
int work(const arguments& asked) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  work_for_others({asked.tile, asked.groups, asked.threads, asked.trace.value_or(""), asked.devices}, [&] {
    int signal = 0;
    sigwait(&ends, &signal);
  });
  return exit_done;
}

int run(const arguments& asked) {
  if (asked.work) return work(asked);
  // Whatever can be wrong is found before the work, the cheap things first.
  weights filter = asked.kernel ? read_kernel(*asked.kernel, asked.raw) : gaussian(default_side, default_sigma);
  if (asked.trace) require_writable(*asked.trace);
  output_file file(asked.output);
  image picture = read_image(asked.input, memory_available_bytes());

  outcome done;
  std::optional<verdict> verified;
  {
    progress bar(!asked.quiet);
    done = convolve(picture, filter,
                    {asked.tile, asked.groups, asked.threads, asked.trace.value_or(""), asked.devices, asked.nodes},
                    [&](std::uint64_t tiles, std::uint64_t total) { bar.show(tiles, total); });
    if (asked.verify) bar.say("comparing with a serial computation");
    if (asked.verify) verified = compare_with_reference(picture, filter, done.picture);
  }
  if (verified && !verified->passed()) return complain(sentence(*verified), exit_failed);

  write_png(file.stream(), done.picture, asked.output);
  file.commit();
  if (asked.quiet) return exit_done;
  print_summary(asked, filter, done);
  if (verified) std::printf("\n%s\n", sentence(*verified).c_str());
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const arguments asked = parse_arguments(argc, argv);
    if (asked.version)
      std::printf("troupe-convolve %s\n", troupe::version());
    else if (asked.help)
      std::fputs(usage().c_str(), stdout);
    else
      return run(asked);
    return exit_done;
  } catch (const input_error& e) {
    return complain(e.what(), exit_wrong_input);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory for this picture", exit_wrong_input);
  } catch (const troupe::error& e) {
    const bool wrong_input = e.code() == troupe::errc::out_of_memory || e.code() == troupe::errc::bad_argument ||
                             e.code() == troupe::errc::no_executor || e.code() == troupe::errc::unreachable;
    return complain(e.what(), wrong_input ? exit_wrong_input : exit_failed);
  } catch (const std::exception& e) {
    return complain(e.what(), exit_failed);
  }
}
