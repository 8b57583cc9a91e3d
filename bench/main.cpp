// troupe-bench: the same work on troupe and on its peers, side by side in one run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "bench/faults/benchmarks.hpp"
#include "bench/faults/table.hpp"
#include "bench/nodes/benchmarks.hpp"
#include "bench/nodes/worker.hpp"
#include "bench/taskbench/elsewhere.hpp"
#include "benchmarks.hpp"
#include "device_benchmarks.hpp"
#include "report.hpp"
#include "tests/support/doomed_owner.hpp"
#include "tests/support/strangers.hpp"

#include <troupe/version.hpp>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>

namespace {

using namespace bench;

struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct request {
  settings how;
  std::vector<std::string> names;
  std::vector<std::string> only;  // contenders; empty: all
  std::string json_path;
  std::string turn_group, turn_contender;  // a child process of stage::child
  bool list = false;
  bool help = false;
  bool version = false;
};

constexpr std::string_view usage =
    "usage: troupe-bench [name...] [--json FILE] [--repetitions N] [--threads N] [--quick] [--list]\n"
    "                    [--only CONTENDER]... [--device NAME]... [--quota MIB]\n"
    "  name              a benchmark as --list shows it, or net or faults for all about nodes; none: all but those\n"
    "  --json FILE       also write the rows to FILE\n"
    "  --repetitions N   interleaved repetitions, at least 9 (default 9; --quick: at least 1, default 3)\n"
    "  --threads N       threads per contender (default: the cores this process may use)\n"
    "  --only CONTENDER  troupe, starpu, tbb, openmp, handoff, raw, cuda, dpotrf; of net troupe, asio, one_node,\n"
    "                    ucx_perftest; may be repeated (default: all)\n"
    "  --device NAME     accelerators of the rows about them; may be repeated (default: the first of each kind)\n"
    "  --quota MIB       of device memory in gpu_out_of_core, whose matrices take four times as much (default: 8192 "
    "on\n"
    "                    CUDA, 3 elsewhere; --quick: an eighth)\n"
    "  --quick           smaller sizes, to see that everything runs\n"
    "  --list            the benchmarks, and their rows\n"
    "  --help, --version this text, and the library's version\n";

int positive_number(const std::string& option, const std::string& text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > 100'000)
    throw usage_error(option + " wants a number from 1 to 100000, not '" + text + "'");
  return value;
}

request parse(const std::vector<std::string>& arguments) {
  request wanted;
  int repetitions = 0;
  wanted.how.threads = usable_cores();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw usage_error(argument + " wants a value");
      return arguments[++i];
    };
    if (argument == "--json") {
      wanted.json_path = value();
    } else if (argument == "--repetitions") {
      repetitions = positive_number(argument, value());
    } else if (argument == "--threads") {
      wanted.how.threads = static_cast<unsigned>(positive_number(argument, value()));
    } else if (argument == "--device") {
      wanted.how.devices.push_back(value());
    } else if (argument == "--quota") {
      wanted.how.quota_bytes = static_cast<std::uint64_t>(positive_number(argument, value())) << 20;
    } else if (argument == "--quick") {
      wanted.how.quick = true;
    } else if (argument == "--only") {
      wanted.only.push_back(value());
    } else if (argument == "--list") {
      wanted.list = true;
    } else if (argument == "--help" || argument == "-h") {
      wanted.help = true;
    } else if (argument == "--version") {
      wanted.version = true;
    } else if (argument == "--turn") {
      wanted.turn_group = value();
      wanted.turn_contender = value();
    } else if (argument.starts_with("-")) {
      throw usage_error("unknown option '" + argument + "'; see --help");
    } else {
      wanted.names.push_back(argument);
    }
  }
  if (repetitions == 0) repetitions = wanted.how.quick ? 3 : 9;
  if (repetitions < 9 && !wanted.how.quick) throw usage_error("--repetitions must be at least 9 without --quick");
  wanted.how.repetitions = repetitions;
  return wanted;
}

using contenders = std::vector<std::unique_ptr<contender>>;

contenders make_contenders() {
  contenders all;
  const auto add = [&all](std::unique_ptr<contender> one) {
    if (one) all.push_back(std::move(one));
  };
  add(make_troupe());
#if defined(TROUPE_BENCH_HAVE_STARPU)
  add(make_starpu());
#endif
#if defined(TROUPE_BENCH_HAVE_TBB)
  add(make_tbb());
#endif
#if defined(TROUPE_BENCH_HAVE_OPENMP)
  add(make_openmp());
#endif
  add(make_libomp());
  add(make_local_mpi());
  add(make_handoff());
  add(make_raw());
#if defined(TROUPE_BENCH_HAVE_CUDA)
  add(make_cuda());
#endif
  add(make_dpotrf());
  return all;
}

contenders contenders_for(family of) {
  return of == family::tasks ? make_contenders() : of == family::net ? node_contenders() : fault_contenders();
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void keep_only(std::map<family, contenders>& all, const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (std::none_of(all.begin(), all.end(), [&](const auto& one) {
          return std::any_of(one.second.begin(), one.second.end(),
                             [&](const auto& who) { return who->name() == name; });
        }))
      throw usage_error("this build has no contender '" + name + "' for that");
  for (auto& [of, some] : all)
    if (!names.empty()) std::erase_if(some, [&](const auto& one) { return !is_among(names, one->name()); });
}

/// Groups about nodes are made only if they are asked for: that needs to know what networks there can be.
std::vector<group> groups_for(const settings& how, const std::vector<std::string>& names, bool every = false) {
  auto groups = all_groups(how);
  const auto concerns = [&](const std::string& beginning) {
    return every ||
           std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(beginning); });
  };
  if (concerns("net"))
    for (auto& each : node_groups(how)) groups.push_back(std::move(each));
  if (concerns("fault"))
    for (auto& each : fault_groups(how)) groups.push_back(std::move(each));
  return groups;
}

/// A name may be a family, a group, the beginning of its name up to a slash, or one of its rows; a row brings its whole
/// group, which is measured together.
std::vector<group> select(std::vector<group> groups, const std::vector<std::string>& names) {
  if (names.empty()) {
    std::erase_if(groups, [](const group& each) { return each.of != family::tasks; });
    return groups;
  }
  const auto names_group = [](const std::string& name, const group& candidate) {
    if (name == candidate.name || candidate.name.starts_with(name + "/")) return true;
    if ((name == "net" && candidate.of == family::net) || (name == "faults" && candidate.of == family::faults))
      return true;
    for (const auto& each : candidate.rows)
      if (each.name == name) return true;
    return false;
  };
  for (const auto& name : names) {
    bool known = false;
    for (const auto& each : groups) known = known || names_group(name, each);
    if (!known) throw usage_error("no benchmark is called '" + name + "'; see --list");
  }
  std::erase_if(groups, [&](const group& each) {
    for (const auto& name : names)
      if (names_group(name, each)) return false;
    return true;
  });
  return groups;
}

void list(const std::vector<group>& groups) {
  for (const auto& each : groups) {
    std::cout << each.name << ": " << each.about << '\n';
    for (const auto& row : each.rows)
      if (row.name != each.name) std::cout << "  " << row.name << " (" << row.unit << ")\n";
  }
}

int child_turn(const request& wanted) {
  const auto groups = select(groups_for(wanted.how, {wanted.turn_group}), {wanted.turn_group});
  for (const auto& each : contenders_for(groups.at(0).of))
    if (each->name() == wanted.turn_contender) return run_child_turn(groups.at(0), *each, wanted.how);
  throw usage_error("no contender is called '" + wanted.turn_contender + "'");
}

int run(request wanted) {
  if (!wanted.how.devices.empty())
    wanted.how.devices = only_present(wanted.how.devices);
  else if (concerns_devices(wanted.names))
    wanted.how.devices = first_devices();
  const auto groups = select(groups_for(wanted.how, wanted.names), wanted.names);
  std::ofstream json;
  if (!wanted.json_path.empty()) {
    json.open(wanted.json_path, std::ios::app);  // find out now, not after an hour; keeps an old file until the end
    if (!json) throw usage_error("cannot write '" + wanted.json_path + "'");
    json.close();
  }
  std::map<family, contenders> who;
  for (const auto& each : groups)
    if (!who.contains(each.of)) who.emplace(each.of, contenders_for(each.of));
  keep_only(who, wanted.only);
  const auto where = machine::here();
  std::cout << where.line() << '\n'
            << wanted.how.threads << " threads, " << wanted.how.repetitions << " repetitions"
            << (wanted.how.quick ? ", quick: sizes too small for conclusions" : "") << '\n';
  for (const auto& [of, some] : who)
    for (const auto& each : some) std::cout << "  " << each->name() << ": " << each->description() << '\n';
  std::cout << std::endl;

  const disturbance others;
  std::vector<row_result> results, of_faults;
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::cerr << "[" << i + 1 << "/" << groups.size() << "] " << groups[i].name << std::endl;
    auto one = run_group(groups[i], who.at(groups[i].of), wanted.how);
    auto& rows = groups[i].of == family::faults ? of_faults : results;
    rows.insert(rows.end(), one.rows.begin(), one.rows.end());
    problems.insert(problems.end(), one.problems.begin(), one.problems.end());
  }
  const double others_percent = others.percent();
  if (!results.empty()) print_table(std::cout, results);
  if (!of_faults.empty()) print_faults(std::cout, of_faults);
  results.insert(results.end(), of_faults.begin(), of_faults.end());
  std::cout << "other processes took " << static_cast<int>(others_percent + 0.5) << " % of the machine meanwhile\n";
  for (const auto& what : noted_absences()) std::cout << "ABSENT " << what << '\n';
  for (const auto& problem : problems) std::cout << "PROBLEM " << problem << '\n';
  if (!wanted.json_path.empty()) {
    json.open(wanted.json_path, std::ios::trunc);
    write_json(json, where, others_percent, results);
    json.close();
    if (!json) {
      std::cerr << "troupe-bench: writing '" << wanted.json_path << "' failed\n";
      return 1;
    }
  }
  return problems.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string mode = words.empty() ? "" : words[0];
    if (mode == "worker") return work_as_node(words);
    if (mode == "owner") return test::own_until_killed(words);
    if (mode == "flood") return test::flood(words);
#if defined(TROUPE_BENCH_HAVE_ASIO)
    if (mode == "asio-peer") return answer_asio(words);
#endif
    const auto wanted = parse(words);
    if (wanted.help) {
      std::cout << usage;
      return 0;
    }
    if (wanted.version) {
      std::cout << "troupe-bench " << troupe::version() << '\n';
      return 0;
    }
    if (wanted.list) {
      auto how = wanted.how;
      if (how.devices.empty()) how.devices = first_devices();
      const auto groups = groups_for(how, wanted.names, true);
      list(wanted.names.empty() ? groups : select(groups, wanted.names));
      return 0;
    }
    return wanted.turn_group.empty() ? run(wanted) : child_turn(wanted);
  } catch (const usage_error& e) {
    std::cerr << "troupe-bench: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "troupe-bench: " << e.what() << '\n';
    return 1;
  }
}
