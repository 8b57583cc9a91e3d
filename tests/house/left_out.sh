#!/usr/bin/env bash
# Each part of the build can be left out while the others stay: configures once without each.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cmake=$1 generator=$2 compiler=$3 root=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for part in ALGORITHMS EXAMPLES TOOLS BENCH TESTS; do
  if ! "$cmake" -S "$root" -B "$folder/$part" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
      "-DTROUPE_BUILD_$part=OFF" > "$folder/log" 2>&1; then
    echo "it does not configure with TROUPE_BUILD_$part=OFF:"
    cat "$folder/log"
    exit 1
  fi
done
