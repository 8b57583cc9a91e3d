// What this file is for: the first code of docs/cluster.md, compiled; it runs where a secret is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/troupe.hpp>

inline constexpr auto scale =
    troupe::kernel<troupe::inout<float, 1>, float>("lab.scale").on(troupe::cpu, [](troupe::view<float, 1> a, float by) {
      for (auto i = a.lo(0); i < a.hi(0); ++i) a(i) *= by;
    });
static const troupe::offer offered{scale};  // others may have it run here

int main(int count, char**) {
  if (count == 1) return 0;
  troupe::options o;
  o.cluster.cluster_name = "lab";
  o.cluster.secret_file = "/etc/troupe/secret";  // troupe keygen /etc/troupe/secret
  o.cluster.listen = {"0.0.0.0:4711"};
  o.cluster.join = {"node1:4711", "node2:4711"};
  troupe::runtime rt(o);  // a worker, and a place to spawn from
}
