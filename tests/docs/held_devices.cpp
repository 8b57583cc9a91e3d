// What this file is for: the body of docs/gpu.md that drives the devices it holds, here two that every machine has.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstdio>

#include <troupe/troupe.hpp>

static std::atomic<int> trained = 0;
static void train_on(int device) { trained += 1 + device; }

int main() {
  troupe::runtime rt({.devices = {{"sim"}}});
  const auto done = rt.spawn(troupe::task_options{.resources = {{"cpu", 0}, {"gpu", 2}}}, [](troupe::task_context& c) {
    for (const troupe::held_device& d : c.devices()) train_on(d.index);  // d.name is "cuda:1", d.index is 1
  });
  done.get();
  std::printf("%d\n", trained.load());
}
