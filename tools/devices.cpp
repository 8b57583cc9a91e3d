// What this file is for: printing accelerators for people and for programs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/devices.hpp"

#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

namespace troupe::tools {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_known(const link_info& l) { return l.in_gb_per_s > 0; }

void print_json(const device_info& d) {
  std::printf(
      "{\"name\": %s, \"model\": %s, \"driver\": %s, \"memory_bytes\": %llu, \"compute_units\": %d, \"lanes\": %d",
      quoted(d.name).c_str(), quoted(d.model).c_str(), quoted(d.driver).c_str(),
      static_cast<unsigned long long>(d.memory_bytes), d.compute_units, d.lanes);
  if (is_known(d.link))
    std::printf(
        ", \"link\": {\"in_gb_per_s\": %.4g, \"out_gb_per_s\": %.4g, \"in_latency_us\": %.4g, \"out_latency_us\": "
        "%.4g}",
        d.link.in_gb_per_s, d.link.out_gb_per_s, d.link.in_latency_us, d.link.out_latency_us);
  if (!d.peers.empty()) {
    std::printf(", \"peers\": [");
    const char* comma = "";
    for (const peer_link& p : d.peers) {
      std::printf("%s{\"from\": %s", comma, quoted(p.from).c_str());
      if (p.gb_per_s > 0) std::printf(", \"gb_per_s\": %.4g, \"latency_us\": %.4g", p.gb_per_s, p.latency_us);
      std::printf("}");
      comma = ", ";
    }
    std::printf("]");
  }
  std::printf("}");
}

void print_json(const std::vector<device_listing>& all) {
  std::printf("[");
  const char* between = "";
  for (const device_listing& l : all) {
    std::printf("%s\n  {\"kind\": %s, \"remark\": %s, \"devices\": [", between, quoted(l.kind_name).c_str(),
                quoted(l.remark).c_str());
    between = ",";
    const char* comma = "";
    for (const device_info& d : l.devices) {
      std::printf("%s\n    ", comma);
      print_json(d);
      comma = ",";
    }
    std::printf("]}");
  }
  std::printf("\n]\n");
}

// Three digits that matter.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

void print_line(const std::string& name, const std::string& memory, const std::string& units, const std::string& lanes,
                const link_info& l, const std::string& rest) {
  const bool known = is_known(l);
  std::printf("%-10s %10s %6s %6s %8s %8s %11s  %s\n", name.c_str(), memory.c_str(), units.c_str(), lanes.c_str(),
              known ? number(l.in_gb_per_s).c_str() : "", known ? number(l.out_gb_per_s).c_str() : "",
              known ? (number(l.in_latency_us) + "/" + number(l.out_latency_us)).c_str() : "", rest.c_str());
}

void print_table(const std::vector<device_listing>& all) {
  std::printf("%-10s %10s %6s %6s %8s %8s %11s  %s\n", "device", "MiB", "units", "lanes", "GB/s in", "GB/s out",
              "us in/out", "model; driver");
  for (const device_listing& l : all) {
    for (const device_info& d : l.devices) {
      print_line(d.name, std::to_string(d.memory_bytes >> 20), std::to_string(d.compute_units), std::to_string(d.lanes),
                 d.link, d.driver.empty() ? d.model : d.model + "; " + d.driver);
      for (const peer_link& p : d.peers)
        print_line("", "", "", "", {},
                   "directly from " + p.from +
                       (p.gb_per_s > 0 ? ", " + number(p.gb_per_s) + " GB/s, " + number(p.latency_us) + " us" : ""));
    }
    if (l.devices.empty())
      print_line(l.kind_name, "none", "", "", {}, l.remark);
    else if (!l.remark.empty())
      print_line(l.kind_name, "", "", "", {}, l.remark);
  }
}

}  // namespace

int show_devices(bool json, bool measure) {
  auto all = list_devices({.measure = measure});
  all.insert(all.begin(), {device_kind::cpu, "cpu", "", {describe_host()}});
  json ? print_json(all) : print_table(all);
  return std::ferror(stdout) ? 1 : 0;
}

}  // namespace troupe::tools
