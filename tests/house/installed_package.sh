#!/usr/bin/env bash
# Installs the built library into a scratch folder, then builds and runs programs that know only that folder.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
if (($# != 5)); then
  echo "usage: installed_package.sh CMAKE GENERATOR BUILD_DIR CONSUMER_DIR COMPILER"
  exit 2
fi
cmake=$1 generator=$2 build=$3 consumer=$4 compiler=$5

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DESTDIR

echo "== install into $scratch/prefix"
"$cmake" --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log"
if grep -rlE '#[[:space:]]*include[[:space:]]*<(caf|boost|hwloc)' "$scratch/prefix/include"; then
  echo "an installed header includes a private dependency"
  exit 1
fi

echo "== configure and build programs against it"
"$cmake" -G "$generator" -S "$consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$scratch/build" --verbose

echo "== run them"
"$scratch/build/stranger"
"$scratch/build/other_asio"
