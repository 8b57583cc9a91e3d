// What this file is for: the `troupe` program: reads the command line and picks the command.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <troupe/version.hpp>

#include "tools/credentials.hpp"
#include "tools/devices.hpp"
#include "tools/node.hpp"
#include "tools/nodes.hpp"
#include "tools/streams.hpp"

namespace {

// How it ended: 0, or what the command said; 1: it failed; 2: the command line makes no sense.
constexpr int failed = 1, not_understood = 2;

int fail(std::string why, int code) {
  std::replace(why.begin(), why.end(), '\n', ' ');
  std::fprintf(stderr, "troupe: %s\n", why.c_str());
  return code;
}

/// What the commands fill in from their words, and the exit code of the one that ran.
struct session {
  int code = 0;
  bool json = false, no_measure = false;
  std::string file, folder, cluster, node, drain_on = "SIGTERM";
  int authority_days = 3650, days = 365, drain_seconds = 30, look_ms = 3000, every_ms = 0;
  double memory_gib = 0;
  std::vector<std::string> quantities;
  troupe::tools::node_command work;
};

void add_devices(CLI::App& app, session& s) {
  auto* devices = app.add_subcommand("devices",
                                     "Lists the cores and accelerators of this machine, how fast copies to them are, "
                                     "and why there are none of a kind");
  devices->add_flag("--json", s.json, "for programs");
  devices->add_flag("--no-measure", s.no_measure, "only links that are known from before");
  devices->callback([&s] { s.code = troupe::tools::show_devices(s.json, !s.no_measure); });
}

void add_credentials(CLI::App& app, session& s) {
  auto* keygen = app.add_subcommand("keygen", "Makes the secret of a cluster, which all its nodes share");
  keygen->add_option("FILE", s.file, "the file to make")->required();
  keygen->callback([&s] { troupe::tools::make_secret_file(s.file); });

  auto* ca = app.add_subcommand("ca", "Makes an authority that issues certificates to the nodes of a cluster");
  ca->add_option("DIR", s.folder, "the folder for its files")->required();
  ca->add_option("--cluster", s.cluster, "the cluster's name")->required();
  ca->add_option("--days", s.authority_days, "its validity in days")->capture_default_str();
  ca->callback([&s] { troupe::tools::make_authority(s.folder, s.cluster, s.authority_days); });

  auto* issue = app.add_subcommand("issue", "Issues a certificate to a node");
  issue->add_option("DIR", s.folder, "the authority's folder")->required();
  issue->add_option("--name", s.node, "the node's name")->required();
  issue->add_option("--days", s.days, "its validity in days")->capture_default_str();
  issue->callback([&s] { troupe::tools::issue(s.folder, s.node, s.days); });
}

// Adds the options of a command that joins a cluster.
void add_membership(CLI::App& to, troupe::cluster_options& how) {
  to.add_option("--cluster", how.cluster_name,
                "the cluster's name; without it TROUPE_CLUSTER, and the other variables for what is not said here");
  to.add_option("--node-name,--name", how.node_name, "what others call this node (default: host and process number)");
  to.add_option("--join", how.join, "address of another node, HOST:PORT; may be repeated");
  to.add_option("--join-file", how.join_file, "a file with one such address a line");
  to.add_option("--join-dns", how.join_dns, "a name with several addresses, NAME:PORT");
  to.add_flag("--multicast", how.multicast, "find nodes of the local network");
  to.add_option("--secret-file", how.secret_file, "the cluster's secret, as `troupe keygen` makes it");
  to.add_option("--certificate,--cert", how.certificate, "this node's certificate, as `troupe issue` makes it");
  to.add_option("--key", how.key, "its key");
  to.add_option("--authority,--ca", how.authority, "the authority's certificate");
  to.add_flag("--insecure-loopback", how.insecure_loopback, "neither proof nor encryption; loopback only");
  to.add_flag("--trusted-fabric", how.trusted_fabric, "long bodies through UCX, in clear (docs/security.md)");
}

// Adds what the environment says of the cluster to what the words say.
void add_environment(troupe::cluster_options& how) {
  how = troupe::with_environment(std::move(how));
  if (how.cluster_name.empty()) throw CLI::RequiredError("--cluster, or the variable TROUPE_CLUSTER,");
}

void add_node(CLI::App& app, session& s) {
  troupe::options& how = s.work.how;
  auto* node = app.add_subcommand("node", "Runs a worker node until SIGTERM");
  add_membership(*node, how.cluster);
  node->add_option("--listen", how.cluster.listen, "address to listen on, HOST:PORT; port 0: any");
  node->add_option("--plugin", s.work.plugins, "a library whose kernels it offers; may be repeated");
  node->add_option("--threads", how.threads, "threads that run tasks (default: the cores it may use)");
  node->add_option("--resource", s.quantities, "a quantity that tasks may hold here, NAME=AMOUNT; may be repeated")
      ->check([](const std::string& text) {
        return troupe::tools::quantity_in(text) ? ""
                                                : "a quantity is NAME=AMOUNT, as licence=2, and not '" + text + "'";
      });
  node->add_option("--memory-gib,--memory", s.memory_gib, "GiB of host memory for arrays (default: no limit)");
  node->add_option("--spill-directory,--spill", how.spill_directory, "directory for spilled tiles");
  node->add_option("--drain", s.drain_seconds, "seconds to finish and hand over what it has, once asked to end")
      ->capture_default_str();
  node->add_option("--drain-on", s.drain_on, "the signal that asks it to end (SIGINT always does)")
      ->check(CLI::IsMember({"SIGTERM"}))
      ->capture_default_str();
  node->callback([&s, &how] {
    add_environment(how.cluster);
    for (const std::string& q : s.quantities) how.resources.push_back(*troupe::tools::quantity_in(q));
    how.memory_bytes = static_cast<std::uint64_t>(s.memory_gib * (1 << 30));
    s.work.drain = std::chrono::seconds(s.drain_seconds);
    s.code = troupe::tools::run_node(std::move(s.work));
  });
}

void add_nodes(CLI::App& app, session& s) {
  troupe::options& how = s.work.how;
  auto* nodes = app.add_subcommand(
      "nodes", "Lists the nodes of a cluster, what they have to do, and the links between them with what they carry");
  add_membership(*nodes, how.cluster);
  nodes->add_flag("--json", s.json, "for programs");
  nodes->add_option("--timeout,--look", s.look_ms, "milliseconds to wait for another one to answer")
      ->capture_default_str();
  nodes->callback([&s, &how] {
    const std::string name = how.cluster.node_name;
    add_environment(how.cluster);
    how.cluster.node_name = name;  // what the variables say of these is for the program that works
    how.cluster.listen.clear();
    s.code = troupe::tools::show_nodes(how, std::chrono::milliseconds(s.look_ms), s.json);
  });
}

void add_streams(CLI::App& app, session& s) {
  auto* streams = app.add_subcommand("streams", "Shows the streams of a program that has a report_socket");
  streams->add_option("PATH", s.file, "the path of its socket")->required();
  streams->add_option("--every", s.every_ms, "milliseconds after which they are shown again, until it ends; 0: once")
      ->capture_default_str()
      ->check(CLI::Range(0, 86'400'000));
  streams->callback([&s] { s.code = troupe::tools::show_streams(s.file, std::chrono::milliseconds(s.every_ms)); });
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"troupe: looks at this machine, and makes what the nodes of a cluster need", "troupe"};
  app.require_subcommand(0, 1);  // 0: a word that is no command is then complained about by name
  session s;
  add_devices(app, s);
  add_credentials(app, s);
  add_node(app, s);
  add_nodes(app, s);
  add_streams(app, s);

  const std::string version = std::string("troupe ") + troupe::version();
  app.set_version_flag("--version", version);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", version);
  try {
    app.parse(count, words);
    if (app.get_subcommands().empty()) return fail("which command? troupe --help lists them", not_understood);
    if (std::fflush(stdout) != 0 && s.code == 0) return fail("the output cannot be written", failed);
    return s.code;
  } catch (const CLI::Success& e) {  // --help and --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(std::string(e.what()) + "; troupe --help says more", not_understood);
  } catch (const std::exception& e) {
    return fail(e.what(), failed);
  }
}
