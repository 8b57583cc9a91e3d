// What this file is for: a worker that is linked with the algorithms and names none of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/nodes.hpp"

int main(int count, char** words) { return test::serve({words + 1, words + count}); }
