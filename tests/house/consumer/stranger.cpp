// Uses the installed library as a newcomer would, to prove that headers and libraries arrive whole.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include <troupe/troupe.hpp>

int main() {
  troupe::runtime rt;
  auto sum = rt.spawn([] { return 1 + 2; });
  const int value = sum.get();
  std::printf("1 + 2 = %d\n", value);
  return value == 3 ? 0 : 1;
}
