// What this file is for: troupe-mixed: random programs with everything the library offers, against a serial oracle.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/version.hpp>

#include "plan.hpp"
#include "trial.hpp"

namespace {

using namespace mixed;

constexpr const char* usage = R"(usage: troupe-mixed [option]...
Draws programs from seeds, runs each against the library and against a serial oracle, and compares everything.
  --seed N           the first seed (1)
  --seeds N          so many seeds at most (1, unless --seconds is given)
  --seconds N        new seeds for so long
  --processes N      so many processes beside each other, each with seeds of its own
  --threads N        of the runtime, instead of what the seed draws
  --core-groups N    likewise
  --clients N        threads that call, likewise
  --operations N     of each client, at most
  --without A,B,...  kinds of load to leave out (--list shows them)
  --patience N       seconds without any progress that count as a hang (60)
  --repeat N         each seed so many times
  --plant FAULT      an error on purpose: wrong_value, lost_update, swapped_order, hang, lost_future, greed, leak, crash
  --describe         prints the plan instead of running it
  --quiet            prints errors and a last line only
  --list             prints the kinds of load
  --help, --version  this text, and the library's version
Ends with 0 if nothing was wrong, 1 if something was, 2 for wrong arguments; a hang ends in abort().
)";

struct command {
  draw_options draw{};
  trial_options trial{};
  long seeds = 0, seconds = 0, processes = 1, repeat = 1;
  std::uint64_t stride = 1;
  bool describe = false, quiet = false;
  std::string common_arguments{};
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "troupe-mixed: %s\n%s", why.c_str(), usage);
  std::exit(2);
}

command read(int argc, char** argv) {
  const std::map<std::string_view, planted> faults = {
      {"wrong_value", planted::wrong_value}, {"lost_update", planted::lost_update},
      {"swapped_order", planted::swapped_order}, {"hang", planted::hang},
      {"lost_future", planted::lost_future}, {"greed", planted::greed},
      {"leak", planted::leak}, {"crash", planted::crash}};
  command c;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    if (word == "--version") {
      std::printf("troupe-mixed %s\n", troupe::version());
      std::exit(0);
    }
    if (word == "--list") {
      for (const load_kind& k : kinds_of_load()) std::printf("%-16s %s\n", k.name, k.what);
      std::exit(0);
    }
    if (word == "--describe") {
      c.describe = true;
      continue;
    }
    if (word == "--quiet") {
      c.quiet = true;
      continue;
    }
    if (i + 1 == argc) refuse("'" + std::string(word) + "' is unknown or lacks its value");
    const std::string value = argv[++i];
    const auto number = [&] {
      char* end = nullptr;
      const long long n = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != 0 || n < 0) refuse("'" + value + "' is no number");
      return n;
    };
    bool repeats = true;  // belongs to the command that replays a seed
    if (word == "--seed") {
      c.draw.seed = static_cast<std::uint64_t>(number());
      repeats = false;
    } else if (word == "--seeds") {
      c.seeds = number();
      repeats = false;
    } else if (word == "--seconds") {
      c.seconds = number();
      repeats = false;
    } else if (word == "--processes") {
      c.processes = number();
      repeats = false;
    } else if (word == "--threads") {
      c.draw.threads = static_cast<int>(number());
    } else if (word == "--core-groups") {
      c.draw.core_groups = static_cast<int>(number());
    } else if (word == "--clients") {
      c.draw.clients = static_cast<int>(number());
    } else if (word == "--operations") {
      c.draw.operations = static_cast<int>(number());
    } else if (word == "--patience") {
      c.trial.patience = std::chrono::seconds(number());
      repeats = false;
    } else if (word == "--repeat") {
      c.repeat = number();
      repeats = false;
    } else if (word == "--without") {
      for (std::size_t from = 0; from < value.size();) {
        const std::size_t end = std::min(value.find(',', from), value.size());
        const std::string name = value.substr(from, end - from);
        bool known = false;
        for (const load_kind& k : kinds_of_load()) known = known || name == k.name;
        if (!known) refuse("there is no kind of load '" + name + "'");
        c.draw.without.insert(name);
        from = end + 1;
      }
    } else if (word == "--plant") {
      const auto found = faults.find(value);
      if (found == faults.end()) refuse("there is no fault '" + value + "'");
      c.trial.fault = found->second;
    } else {
      refuse("'" + std::string(word) + "' is unknown");
    }
    if (repeats) c.common_arguments += " " + std::string(word) + " " + value;
  }
  if (c.seeds == 0 && c.seconds == 0) c.seeds = 1;
  return c;
}

// The line that a signal's handler prints: the command that repeats the seed.
char replay_line[512] = "";

void say_seed(int number) {
  const char* what = number == SIGABRT ? "\nCRASH (abort), replay: " : "\nCRASH, replay: ";
  (void)!::write(2, what, std::strlen(what));
  (void)!::write(2, replay_line, std::strlen(replay_line));
  (void)!::write(2, "\n", 1);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void watch_signals() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(number, say_seed);
}

void describe(const plan& p) {
  std::printf("%s\n", p.text().c_str());
  for (std::size_t c = 0; c < p.clients.size(); ++c) {
    const client_plan& client = p.clients[c];
    for (std::size_t i = 0; i < client.arrays.size(); ++i)
      std::printf("client %zu, array %zu: %s\n", c, i, text(client.arrays[i]).c_str());
    for (std::size_t g = 0; g < client.graphs.size(); ++g)
      for (const operation& op : client.graphs[g]) std::printf("client %zu, graph %zu: %s\n", c, g, text(op).c_str());
    for (std::size_t i = 0; i < client.operations.size(); ++i)
      std::printf("client %zu, operation %zu: %s\n", c, i, text(client.operations[i]).c_str());
  }
}

int run(command c, const char* program) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::seconds(c.seconds);
  std::size_t operations = 0;
  long done = 0;
  for (std::uint64_t seed = c.draw.seed; (c.seconds == 0 || clock::now() < end) && (c.seeds == 0 || done < c.seeds);
       seed += c.stride, ++done) {
    c.draw.seed = seed;
    c.trial.replay = std::string("replay: ") + program + " --seed " + std::to_string(seed) + c.common_arguments;
    std::snprintf(replay_line, sizeof replay_line, "%s", c.trial.replay.c_str());
    const plan p = draw(c.draw);
    if (c.describe) {
      describe(p);
      continue;
    }
    for (long i = 0; i < c.repeat; ++i) {
      const auto start = clock::now();
      std::vector<std::string> wrong;
      try {
        wrong = try_plan(p, c.trial);
      } catch (const std::exception& e) {
        wrong.push_back(std::string("an exception: ") + e.what());
      }
      operations += p.operation_count();
      if (!wrong.empty()) {
        std::printf("FAILED %s\n%s\n", p.text().c_str(), c.trial.replay.c_str());
        for (const std::string& w : wrong) std::printf("  %s\n", w.c_str());
        std::fflush(stdout);
        return 1;
      }
      if (!c.quiet) {
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
        std::printf("%s: %lld ms\n", p.text().c_str(), static_cast<long long>(took.count()));
        std::fflush(stdout);
      }
    }
  }
  if (!c.describe) std::printf("%ld seeds, %zu operations, nothing wrong\n", done, operations);
  return 0;
}

int run_beside_each_other(const command& c, const char* program) {
  std::vector<pid_t> children;
  for (long i = 0; i < c.processes; ++i) {
    const pid_t child = ::fork();
    if (child < 0) refuse("cannot start a process");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      command own = c;
      own.draw.seed += static_cast<std::uint64_t>(i);
      own.stride = static_cast<std::uint64_t>(c.processes);
      std::_Exit([&] {
        const int code = run(own, program);
        std::fflush(nullptr);
        return code;
      }());
    }
    children.push_back(child);
  }
  int worst = 0;
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = 1;
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  const command c = read(argc, argv);
  watch_signals();
  return c.processes > 1 ? run_beside_each_other(c, argv[0]) : run(c, argv[0]);
}
