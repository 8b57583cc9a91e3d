// Rows about nodes and the measurements behind them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"

#include "../cholesky.hpp"
#include "../taskbench/metg.hpp"
#include "../workloads.hpp"
#include "compute.hpp"
#include "contender.hpp"
#include "halos.hpp"
#include "imagined.hpp"
#include "worker.hpp"

#include <algorithm>
#include <string>

namespace bench {

namespace {

constexpr auto lower = better::lower;
constexpr auto higher = better::higher;

double percentile(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
}

/// `measure(contender, settings)` for contenders that know what nodes are.
template <class F>
auto with_nodes(F measure) {
  return [measure](contender& who, const settings& how) -> figures {
    auto* const nodes = dynamic_cast<node_contender*>(&who);
    return nodes == nullptr ? figures{} : measure(*nodes, how);
  };
}

figures p50_and_p99(std::vector<double> nanoseconds) {
  if (nanoseconds.empty()) return {};
  return {percentile(nanoseconds, 0.5) / 1e3, percentile(nanoseconds, 0.99) / 1e3};
}

group round_trip(const link& by) {
  const auto name = "net_round_trip/" + by.text();
  const std::vector<ratio_target> against(by.secure ? 1 : 0, {"asio", 1 / 2.5});
  return {name,
          "an empty task on another node, submitted and waited for",
          {{name + "/p50", "us", lower, 60, against}, {name + "/p99", "us", lower}},
          {},
          stage::shared,
          with_nodes([by](node_contender& who, const settings& how) {
            return p50_and_p99(who.round_trips(by, how.quick ? 1000 : 5000));
          }),
          {}};
}

group tasks(const link& by) {
  const auto name = "net_tasks/" + by.text();
  return {name,
          "empty tasks on another node, in flight from one submitter",
          {{name, "tasks/s", higher, 300'000}, {name + "/update", "tasks/s", higher, 300'000}},
          {},
          stage::shared,
          with_nodes([by](node_contender& who, const settings& how) {
            const std::size_t n = how.quick ? 50'000 : 200'000;
            figures found;
            for (const bool with_data : {false, true}) {
              const auto spent = who.tasks(by, n, with_data);
              if (!spent) return figures{};
              found.emplace_back(static_cast<double>(n) * 1e9 / *spent);
            }
            return found;
          }),
          {}};
}

group migration(const link& by, const settings& how) {
  const auto name = "net_migration/" + by.text();
  const std::vector<std::size_t> sizes{1, 64, how.quick ? 256u : 1024u};  // MiB
  group all{name, "a tile to another node, from memory to memory", {}, {}, stage::shared, {}, {}};
  for (const auto mib : sizes)
    all.rows.push_back({name + "/" + std::to_string(mib) + "MiB", "GiB/s", higher, {}, {{"asio", 0.95}}});
  all.measure = with_nodes([by, sizes](node_contender& who, const settings&) {
    figures found;
    for (const auto mib : sizes) {
      const int count = mib == 1 ? 50 : mib == 64 ? 3 : 1;
      const auto taken = who.moves(by, mib << 20, count);
      found.push_back(taken.empty() ? std::nullopt
                                    : std::optional(static_cast<double>(mib) / 1024 * 1e9 / percentile(taken, 0.5)));
    }
    return found;
  });
  return all;
}

group fabric_migration() {
  return {"net_fabric",
          "a tile of 256 MiB to another node of this machine, from memory to memory",
          {{"net_fabric/256MiB", "GiB/s", higher, {}, {{"ucx_perftest", 0.8}}}},
          {},
          stage::shared,
          with_nodes([](node_contender& who, const settings&) {
            const auto taken = who.moves({.fabric = true}, 256u << 20, 5);
            return taken.empty() ? figures{} : figures{0.25 * 1e9 / percentile(taken, 0.5)};
          }),
          {}};
}

/// In a process of its own, in which copies are counted.
group copies(const link& by) {
  const auto name = "net_copies/" + by.text();
  return {name,
          "bytes copied in user space per byte that migrates",
          {{name + "/sender", "x", lower, 1.01}, {name + "/receiver", "x", lower, 1.01}},
          {},
          stage::unstarted,
          with_nodes([by, name](node_contender& who, const settings& how) -> figures {
            if (who.name() != "troupe") return {};
            if (bytes_copied()) {
              const auto found = who.copies(by, 64u << 20);
              return {found->here, found->there};
            }
#if defined(TROUPE_BENCH_COPIES)
            std::vector<std::string> words{"/proc/self/exe", "--turn", name, who.name()};
            if (how.quick) words.emplace_back("--quick");
            test::child_options counted;
            counted.environment.emplace_back("LD_PRELOAD=" TROUPE_BENCH_COPIES);
            const auto done = test::run(words, counted);
            if (done.how != test::ended_with(0)) throw std::runtime_error("its process said: " + done.out + done.err);
            return figures_in(done.out);
#else
            throw missing("a library that counts copies: it is made for x86-64 only");
#endif
          }),
          {},
          1};
}

group control_latency(const link& by, const settings& how) {
  const auto name = "net_control_latency/" + by.text();
  const std::size_t mib = how.quick ? 256 : 1024;
  return {name,
          "round trips while " + std::to_string(mib) + " MiB migrate",
          {{name + "/p50", "us", lower}, {name + "/p99", "us", lower, 2000}},
          {},
          stage::shared,
          with_nodes([by, mib](node_contender& who, const settings&) {
            return p50_and_p99(who.round_trips_beside(by, mib << 20));
          }),
          {}};
}

template <class Work>
group on_two_cores(const std::string& what, const std::string& about, const link& by, Work work) {
  const auto name = what + "/" + by.text();
  return {name,
          about + ": two nodes of one core each",
          {{name, "ms", lower, {}, {{"one_node", 0.9}}},
           {name + "/here", "ms", lower},
           {name + "/cpu", "ms", lower, {}, {{"one_node", 0.9}}},
           {name + "/share", "%", higher, least_share},
           {name + "/moved", "MiB", lower}},
          purpose::linear_algebra,
          stage::shared,
          with_nodes([by, work](node_contender& who, const settings& how) -> figures {
            const std::optional<two_times> taken = work(who, by, how);
            if (!taken) return {};
            figures found{taken->done / 1e6, taken->here / 1e6, taken->cpu / 1e6, taken->there, taken->bytes_moved};
            if (found[4]) *found[4] /= 1 << 20;
            return found;
          }),
          {}};
}

/// Stencils in one dimension have a task for each core in a step. The others have two, so that neighbours of neighbours
/// need tasks of other nodes.
group steps(const link& by, const crowd& all) {
  const auto name = "net_steps/" + by.text() + all.text();
  const std::size_t processors = all.nodes * all.cores;
  std::vector<step_shape> shapes;
  for (const step_pattern p : step_patterns)
    shapes.push_back({.pattern = p, .width = p == step_pattern::stencil_1d ? processors : 2 * processors});
  group found{name,
              "METG(50 %) of graphs in steps on " + std::to_string(all.nodes) + " nodes of " +
                  std::to_string(all.cores) + (all.cores == 1 ? " core each" : " cores each"),
              {},
              {},
              stage::shared,
              {},
              {}};
  for (const bool recorded : {false, true})
    for (const auto& each : shapes)
      found.rows.push_back({name + "/" + std::string(name_of(each.pattern)) + (recorded ? "/recorded" : ""),
                            "us",
                            lower,
                            {},
                            {{"mpi", by.secure ? 1 / 2.0 : 1 / 1.5}}});
  found.measure = with_nodes([by, all, shapes, processors](node_contender& who, const settings& how) {
    const auto threads = static_cast<unsigned>(processors);
    figures metg;
    for (const bool recorded : {false, true})
      for (step_shape shape : shapes)
        metg.push_back(metg50([&](double body_us) -> std::optional<double> {
          const double before = iteration_ns(threads);
          shape.iterations = static_cast<std::uint64_t>(std::max(1.0, body_us * 1000 / before));
          shape.steps = static_cast<std::size_t>((how.quick ? 40'000 : 200'000) / (body_us + 100));
          const auto spent = who.steps(by, all, shape, recorded);
          if (!spent) return {};
          return step_problem(shape).ideal_ns(threads, (before + iteration_ns(threads)) / 2) / *spent;
        }));
    return metg;
  });
  return found;
}

/// Stencils whose tiles stay where they are.
group halos() {
  group all{
      "net_halo", "bytes that move in a step of a 2-D stencil, for each byte of its halo", {}, {}, stage::unstarted, {}, {},
      1};
  for (const char* where : {"nodes/2", "nodes/4", "nodes/2/recorded", "nodes/4/recorded", "devices/2"})
    all.rows.push_back({"net_halo/" + std::string(where), "x", lower, 1.1});
  all.measure = [](contender& who, const settings& how) -> figures {
    if (who.name() != "troupe") return {};
    const troupe::index_t side = how.quick ? 1024 : 4096;
    figures found;
    for (const bool recorded : {false, true})
      for (const int nodes : {2, 4}) found.emplace_back(halo_bytes_of_nodes(nodes, side, recorded));
    found.emplace_back(halo_bytes_of_devices(side));
    return found;
  };
  return all;
}

group factorisation(const link& by) {
  return on_two_cores("net_cholesky", "tiled Cholesky, tiles of 512 x 512", by,
                      [](node_contender& who, const link& over, const settings& how) {
                        static cholesky_problem problem;
                        const std::size_t n = how.quick ? 4096 : 8192;
                        if (problem.n != n) problem = make_cholesky_problem(n);
                        return who.cholesky(over, problem, how.quick ? 256 : 512);
                      });
}

group convolution(const link& by) {
  return on_two_cores("net_convolution", "a 31 x 31 filter on an image, tiles of 96 x 96", by,
                      [](node_contender& who, const link& over, const settings& how) {
                        static filter_work work(how.quick ? 960 : 1920);
                        return who.filter(over, work);
                      });
}

group placement() {
  group all{"net_placement", "placing a task among imagined nodes", {}, {}, stage::unstarted, {}, {}};
  const std::vector<int> counts{1, 8, 64, 256, imagined_nodes_max()};
  for (const int n : counts) all.rows.push_back({"net_placement/" + std::to_string(n), "ns/task", lower});
  all.rows.push_back({"net_placement/growth", "x", lower, 2});
  all.measure = [counts](contender& who, const settings& how) -> figures {
    if (who.name() != "troupe") return {};
    figures found;
    for (const int n : counts) found.emplace_back(ns_to_place_among(n, how.quick ? 50'000 : 200'000));
    found.emplace_back(*found[counts.size() - 1] / *found[0]);
    return found;
  };
  return all;
}

// The first number of nodes fits a mesh, the others do not.
group gossip(const settings& how) {
  std::vector<int> counts{64, 200};
  if (!how.quick) counts.push_back(1000);
  group all{"net_gossip",
            "heartbeats and gossip of imagined nodes, the one that sends most",
            {},
            {},
            stage::unstarted,
            {},
            {},
            1};
  for (const int n : counts) {
    const std::string name = n == 64 ? "net_gossip" : "net_gossip/" + std::to_string(n);
    all.rows.push_back({name + "/quiet", "kB/s", lower, 50});
    all.rows.push_back({name + "/changing", "kB/s", lower, 50});
  }
  all.measure = [counts](contender& who, const settings&) -> figures {
    if (who.name() != "troupe") return {};
    figures found;
    for (const int n : counts) {
      const auto most = traffic_of_imagined(n);
      found.emplace_back(most.quiet / 1e3);
      found.emplace_back(most.changing / 1e3);
    }
    return found;
  };
  return all;
}

}  // namespace

std::vector<group> node_groups(const settings& how) {
  const link plain{route::loopback, false}, tls{route::loopback, true}, veth{route::veth, true};
  std::vector<link> links{plain, tls};
  if (const auto why = why_no_veth(); why.empty())
    links.push_back(veth);
  else
    note_absent("net over veth: " + why);
  std::vector<group> groups;
  for (const auto& by : links) groups.push_back(round_trip(by));
  for (const auto& by : links) groups.push_back(tasks(by));
  for (const auto& by : links) groups.push_back(migration(by, how));
  groups.push_back(fabric_migration());
  for (const auto& by : {plain, tls}) groups.push_back(copies(by));
  for (const auto& by : links) groups.push_back(control_latency(by, how));
  for (const crowd& all : {crowd{}, crowd{.nodes = 3}, crowd{.nodes = 4}, crowd{.cores = 2}}) {
    if (cores().size() < all.nodes * all.cores && all != crowd{}) continue;
    for (const auto& by : {plain, tls}) groups.push_back(steps(by, all));
  }
  groups.push_back(halos());
  std::erase(links, plain);
  links.push_back({.fabric = true});
  for (const auto& by : links) groups.push_back(factorisation(by));
  for (const auto& by : links) groups.push_back(convolution(by));
  groups.push_back(placement());
  groups.push_back(gossip(how));
  for (auto& each : groups) {
    each.of = family::net;
    each.warms_up = !how.quick;
  }
  return groups;
}

std::vector<std::unique_ptr<contender>> node_contenders() {
  std::vector<std::unique_ptr<contender>> all;
  all.push_back(make_troupe_nodes());
#if defined(TROUPE_BENCH_HAVE_ASIO)
  all.push_back(make_asio());
#endif
  all.push_back(make_one_node());
  all.push_back(make_ucx_perftest());
#if defined(TROUPE_BENCH_MPI)
  all.push_back(make_mpi());
#endif
  return all;
}

}  // namespace bench
