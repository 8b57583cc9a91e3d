#!/usr/bin/env bash
# Installs the built library, builds troupe-mixed against what was installed, with one compiler, and runs the same random
# programs with 1, 2, 4 and 16 threads. Without a build folder it first builds the library as asked, static or shared.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
if (($# != 6)); then
  echo "usage: installed_load.sh CMAKE GENERATOR SOURCE_DIR BUILD_DIR static|shared COMPILER"
  echo "  BUILD_DIR: of a library of that kind; where it does not exist, the library is built there"
  exit 2
fi
cmake=$1 generator=$2 source=$3 build=$4 kind=$5 compiler=$6
if ! command -v "$compiler" > /dev/null; then
  echo "skipped: there is no $compiler here"
  exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DESTDIR LD_LIBRARY_PATH

if [[ $kind == shared ]]; then
  echo "== build the shared library"
  "$cmake" -G "$generator" -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DTROUPE_BUILD_ALGORITHMS=OFF -DTROUPE_BUILD_EXAMPLES=OFF -DTROUPE_BUILD_TOOLS=OFF -DTROUPE_BUILD_BENCH=OFF \
    -DTROUPE_BUILD_TESTS=OFF > "$scratch/configure.log"
  "$cmake" --build "$build" --parallel 2 > "$scratch/build.log" || { tail -40 "$scratch/build.log"; exit 1; }
fi
echo "== install, and build with $compiler"
"$cmake" --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log"
"$cmake" -G "$generator" -S "$source/tests/house/mixed_consumer" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Release \
  -DMIXED_SOURCES="$source/tests/stress/mixed" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  > "$scratch/configure.log"
"$cmake" --build "$scratch/build" --parallel 2 > "$scratch/build.log" || { tail -40 "$scratch/build.log"; exit 1; }
if [[ $kind == shared ]] && ! ldd "$scratch/build/mixed" | grep -q "$scratch/prefix/.*libtroupe\.so"; then
  echo "the program does not find the installed libtroupe.so"
  exit 1
fi

for threads in 1 2 4 16; do
  echo "== run it with $threads threads"
  # shellcheck disable=SC2086  # words for the program, for who looks for something
  "$scratch/build/mixed" --seed 2000000 --seeds 15 --threads "$threads" --quiet ${MIXED_ARGUMENTS:-}
done
