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

namespace {

// How it ended: 0, or what the command said; 1: it failed; 2: the command line makes no sense.
constexpr int failed = 1, not_understood = 2;

int fail(std::string why, int code) {
  std::replace(why.begin(), why.end(), '\n', ' ');
  std::fprintf(stderr, "troupe: %s\n", why.c_str());
  return code;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"troupe: looks at this machine, and makes what the nodes of a cluster need", "troupe"};
  app.require_subcommand(0, 1);  // 0: a word that is no command is then complained about by name
  int code = 0;

  bool json = false, no_measure = false;
  auto* devices = app.add_subcommand("devices",
                                     "Lists the cores and accelerators of this machine, how fast copies to them are, "
                                     "and why there are none of a kind");
  devices->add_flag("--json", json, "for programs");
  devices->add_flag("--no-measure", no_measure, "only links that are known from before");
  devices->callback([&] { code = troupe::tools::show_devices(json, !no_measure); });

  std::string file, folder, cluster, node;
  int authority_days = 3650, days = 365;
  auto* keygen = app.add_subcommand("keygen", "Makes the secret of a cluster, which all its nodes share");
  keygen->add_option("FILE", file, "the file to make")->required();
  keygen->callback([&] { troupe::tools::make_secret_file(file); });

  auto* ca = app.add_subcommand("ca", "Makes an authority that issues certificates to the nodes of a cluster");
  ca->add_option("DIR", folder, "the folder for its files")->required();
  ca->add_option("--cluster", cluster, "the cluster's name")->required();
  ca->add_option("--days", authority_days, "its validity in days")->capture_default_str();
  ca->callback([&] { troupe::tools::make_authority(folder, cluster, authority_days); });

  auto* issue = app.add_subcommand("issue", "Issues a certificate to a node");
  issue->add_option("DIR", folder, "the authority's folder")->required();
  issue->add_option("--name", node, "the node's name")->required();
  issue->add_option("--days", days, "its validity in days")->capture_default_str();
  issue->callback([&] { troupe::tools::issue(folder, node, days); });

  troupe::tools::node_command work;
  troupe::options& how = work.how;
  int drain_seconds = 30, look_ms = 3000;
  double memory_gib = 0;
  std::vector<std::string> quantities;
  std::string drain_on = "SIGTERM";
  const auto add_membership = [&](CLI::App* to) {
    to->add_option("--cluster", how.cluster.cluster_name,
                   "the cluster's name; without it TROUPE_CLUSTER, and the other variables for what is not said here");
    to->add_option("--node-name,--name", how.cluster.node_name,
                   "what others call this node (default: host and process number)");
    to->add_option("--join", how.cluster.join, "address of another node, HOST:PORT; may be repeated");
    to->add_option("--join-file", how.cluster.join_file, "a file with one such address a line");
    to->add_option("--join-dns", how.cluster.join_dns, "a name with several addresses, NAME:PORT");
    to->add_flag("--multicast", how.cluster.multicast, "find nodes of the local network");
    to->add_option("--secret-file", how.cluster.secret_file, "the cluster's secret, as `troupe keygen` makes it");
    to->add_option("--certificate,--cert", how.cluster.certificate,
                   "this node's certificate, as `troupe issue` makes it");
    to->add_option("--key", how.cluster.key, "its key");
    to->add_option("--authority,--ca", how.cluster.authority, "the authority's certificate");
    to->add_flag("--insecure-loopback", how.cluster.insecure_loopback, "neither proof nor encryption; loopback only");
    to->add_flag("--trusted-fabric", how.cluster.trusted_fabric,
                 "long bodies through UCX, in clear (docs/security.md)");
  };
  const auto add_surroundings = [&] {
    how.cluster = troupe::with_environment(std::move(how.cluster));
    if (how.cluster.cluster_name.empty()) throw CLI::RequiredError("--cluster, or the variable TROUPE_CLUSTER,");
  };
  auto* work_command = app.add_subcommand("node", "Runs a worker node until SIGTERM");
  add_membership(work_command);
  work_command->add_option("--listen", how.cluster.listen, "address to listen on, HOST:PORT; port 0: any");
  work_command->add_option("--plugin", work.plugins, "a library whose kernels it offers; may be repeated");
  work_command->add_option("--threads", how.threads, "threads that run tasks (default: the cores it may use)");
  work_command
      ->add_option("--resource", quantities, "a quantity that tasks may hold here, NAME=AMOUNT; may be repeated")
      ->check([](const std::string& text) {
        return troupe::tools::quantity_in(text) ? ""
                                                : "a quantity is NAME=AMOUNT, as licence=2, and not '" + text + "'";
      });
  work_command->add_option("--memory-gib,--memory", memory_gib, "GiB of host memory for arrays (default: no limit)");
  work_command->add_option("--spill-directory,--spill", how.spill_directory, "directory for spilled tiles");
  work_command->add_option("--drain", drain_seconds, "seconds to finish and hand over what it has, once asked to end")
      ->capture_default_str();
  work_command->add_option("--drain-on", drain_on, "the signal that asks it to end (SIGINT always does)")
      ->check(CLI::IsMember({"SIGTERM"}))
      ->capture_default_str();
  work_command->callback([&] {
    add_surroundings();
    for (const std::string& q : quantities) how.resources.push_back(*troupe::tools::quantity_in(q));
    how.memory_bytes = static_cast<std::uint64_t>(memory_gib * (1 << 30));
    work.drain = std::chrono::seconds(drain_seconds);
    code = troupe::tools::run_node(std::move(work));
  });

  auto* nodes = app.add_subcommand(
      "nodes", "Lists the nodes of a cluster, what they have to do, and the links between them with what they carry");
  add_membership(nodes);
  nodes->add_flag("--json", json, "for programs");
  nodes->add_option("--timeout,--look", look_ms, "milliseconds to wait for another one to answer")
      ->capture_default_str();
  nodes->callback([&] {
    const std::string name = how.cluster.node_name;
    add_surroundings();
    how.cluster.node_name = name;  // what the variables say of these is for the program that works
    how.cluster.listen.clear();
    code = troupe::tools::show_nodes(how, std::chrono::milliseconds(look_ms), json);
  });

  const std::string version = std::string("troupe ") + troupe::version();
  app.set_version_flag("--version", version);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", version);
  try {
    app.parse(count, words);
    if (app.get_subcommands().empty()) return fail("which command? troupe --help lists them", not_understood);
    if (std::fflush(stdout) != 0 && code == 0) return fail("the output cannot be written", failed);
    return code;
  } catch (const CLI::Success& e) {  // --help and --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(std::string(e.what()) + "; troupe --help says more", not_understood);
  } catch (const std::exception& e) {
    return fail(e.what(), failed);
  }
}
