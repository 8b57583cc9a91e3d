// Table, JSON and machine line of report.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace bench {

namespace {

/// Seconds of all cores spent on anything, time stolen by the hypervisor included.
double machine_busy_seconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0, steal = 0;
  stat >> cpu >> user >> nice >> system >> idle >> waiting >> irq >> soft_irq >> steal;
  return (user + nice + system + irq + soft_irq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Processor time of this process and of its children that have ended.
double own_seconds() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    getrusage(who, &use);
    for (const auto& part : {use.ru_utime, use.ru_stime})
      total += static_cast<double>(part.tv_sec) + static_cast<double>(part.tv_usec) * 1e-6;
  }
  return total;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

std::string commit_of(const std::string& directory) {
  std::string quoted = "'";
  for (const char c : directory) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const auto command = "git -C " + quoted + "' rev-parse HEAD 2>/dev/null";
  auto* const git = popen(command.c_str(), "r");
  if (git == nullptr) return {};
  std::array<char, 128> text{};
  const auto length = std::fread(text.data(), 1, text.size() - 1, git);
  const bool good = pclose(git) == 0;
  std::string commit(text.data(), length);
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return good ? commit : std::string();
}

/// About four digits, without trailing noise.
std::string number(double value) {
  std::array<char, 32> text{};
  const double size = std::abs(value);
  const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string factor(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value >= 10 ? "%.1fx" : "%.2fx", value);
  return text.data();
}

std::string brief(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string target_text(const row& spec) {
  std::string text;
  if (spec.bound) text = (spec.direction == better::lower ? "<= " : ">= ") + brief(*spec.bound);
  for (const auto& [peer, times] : spec.ratios) {
    if (!text.empty()) text += ", ";
    if (spec.direction == better::lower && times < 1)
      text += "<= " + brief(1 / times) + "x " + peer;
    else
      text += ">= " + brief(times) + "x " + peer;
  }
  for (const auto& [peer, amount] : spec.margins) {
    if (!text.empty()) text += ", ";
    text += "<= " + peer + " + " + brief(amount);
  }
  return text;
}

std::string met_text(const row_result& result) {
  if (!result.spec.bound && result.spec.ratios.empty() && result.spec.margins.empty()) return "";
  if (!result.met) return "n/a";
  return *result.met ? "yes" : "NO";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string json_summary(const summary* found) {
  if (found == nullptr) return "null";
  return "{\"median\": " + json_number(found->median) + ", \"min\": " + json_number(found->min) +
         ", \"max\": " + json_number(found->max) + "}";
}

/// Troupe first, then the others by name.
std::vector<std::string> contenders_of(const row_result& result) {
  std::vector<std::string> names;
  if (result.of("troupe") != nullptr) names.emplace_back("troupe");
  for (const auto& [name, found] : result.by_contender)
    if (name != "troupe") names.push_back(name);
  return names;
}

std::optional<double> advantage_over_best(const row_result& result) {
  std::optional<double> least;
  for (const auto& [name, found] : result.by_contender) {
    if (name == "troupe") continue;
    const auto advantage = result.advantage_over(name);
    if (advantage && (!least || *advantage < *least)) least = advantage;
  }
  return least;
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&mask));
}

disturbance::disturbance() : all_busy_(machine_busy_seconds()), ours_(own_seconds()), wall_(wall_seconds()) {}

double disturbance::percent() const {
  const double others = (machine_busy_seconds() - all_busy_) - (own_seconds() - ours_);
  const double available = (wall_seconds() - wall_) * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(0.0, 100 * others / available);
}

machine machine::here() {
  machine found;
  found.cpu = cpu_model();
  found.cores = usable_cores();
  utsname names{};
  if (uname(&names) == 0) found.kernel = std::string(names.sysname) + " " + names.release;
  const auto now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  found.date = date.data();
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  found.commit = commit_of(program.parent_path().string());
  if (found.commit.empty()) found.commit = commit_of(".");
  if (found.commit.empty()) found.commit = "unknown";
  return found;
}

std::string machine::line() const {
  return cpu + ", " + std::to_string(cores) + " cores, " + kernel + ", " + date + ", commit " + commit;
}

void print_table(std::ostream& out, const std::vector<row_result>& results) {
  std::size_t widest = 28;
  for (const auto& result : results) widest = std::max(widest, result.spec.name.size());
  const auto line = [&out, width = static_cast<int>(widest)](const std::array<std::string, 9>& cells) {
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(), "%-*s %-16s %-10s %11s %11s %11s %9s  %-26s %s", width, cells[0].c_str(),
                  cells[1].c_str(), cells[2].c_str(), cells[3].c_str(), cells[4].c_str(), cells[5].c_str(),
                  cells[6].c_str(), cells[7].c_str(), cells[8].c_str());
    std::string trimmed = text.data();
    while (!trimmed.empty() && trimmed.back() == ' ') trimmed.pop_back();
    out << trimmed << '\n';
  };
  line({"benchmark", "unit", "contender", "median", "min", "max", "ratio", "target", "met"});
  for (const auto& result : results) {
    std::array<std::string, 9> cells{result.spec.name, result.spec.unit};
    cells[7] = target_text(result.spec);
    cells[8] = met_text(result);
    const auto names = contenders_of(result);
    if (names.empty()) {
      cells[2].assign(1, '-');  // = "-" trips a false -Wrestrict of GCC 12
      line(cells);
    }
    for (const auto& name : names) {
      const auto* const found = result.of(name);
      // Counts and remainders are near zero: a ratio of them says nothing.
      const bool comparable = result.spec.unit != "per task" && result.spec.unit != "MiB";
      const auto ratio = !comparable        ? std::nullopt
                         : name == "troupe" ? advantage_over_best(result)
                                            : result.advantage_over(name);
      cells[2] = name;
      cells[3] = number(found->median);
      cells[4] = number(found->min);
      cells[5] = number(found->max);
      cells[6] = ratio ? factor(*ratio) : "";
      line(cells);
      cells = {};
    }
  }
  out << "ratio: how many times better troupe is than this peer; in troupe's own line, than the best peer\n";
}

void write_json(std::ostream& out, const machine& where, double others_percent,
                const std::vector<row_result>& results) {
  out << "{\n\"machine\": " << quoted(where.cpu + ", " + std::to_string(where.cores) + " cores, " + where.kernel)
      << ",\n\"date\": " << quoted(where.date) << ",\n\"commit\": " << quoted(where.commit)
      << ",\n\"others_cpu_percent\": " << json_number(others_percent) << ",\n\"rows\": [";
  const char* separator = "\n";
  for (const auto& result : results) {
    out << separator << "{\"name\": " << quoted(result.spec.name) << ", \"unit\": " << quoted(result.spec.unit)
        << ", \"troupe\": " << json_summary(result.of("troupe")) << ", \"peers\": {";
    const char* comma = "";
    for (const auto& [name, found] : result.by_contender) {
      if (name == "troupe") continue;
      out << comma << quoted(name) << ": " << json_summary(&found);
      comma = ", ";
    }
    const auto target = target_text(result.spec);
    out << "}, \"target\": " << (target.empty() ? "null" : quoted(target))
        << ", \"met\": " << (result.met ? (*result.met ? "true" : "false") : "null") << "}";
    separator = ",\n";
  }
  out << "\n]\n}\n";
}

}  // namespace bench
