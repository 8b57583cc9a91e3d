#!/usr/bin/env bash
# Installs the built library into a scratch folder, then builds and runs programs that know only that folder.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
if (($# != 6)); then
  echo "usage: installed_package.sh CMAKE GENERATOR BUILD_DIR CONSUMER_DIR COMPILER SOURCE_DIR"
  exit 2
fi
cmake=$1 generator=$2 build=$3 consumer=$4 compiler=$5 source=$6

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DESTDIR

echo "== install into $scratch/prefix"
# The list of the last installation is the user's.
manifest=$build/install_manifest.txt
if [[ -e $manifest ]]; then cp "$manifest" "$scratch/kept"; fi
"$cmake" --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log"
mv "$manifest" "$scratch/manifest"
if [[ -e $scratch/kept ]]; then mv "$scratch/kept" "$manifest"; fi
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

if command -v pkg-config > /dev/null; then
  echo "== build one with pkg-config alone, from a prefix that has been moved, and run it"
  mv "$scratch/prefix" "$scratch/moved"
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/moved" -name troupe.pc)")
  read -ra flags <<< "$(pkg-config --cflags --libs troupe)"
  "$compiler" -std=c++20 "$consumer/stranger.cpp" "${flags[@]}" -o "$scratch/plain"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir troupe) "$scratch/plain"
  mv "$scratch/moved" "$scratch/prefix"
fi

echo "== uninstall"
"$cmake" -DMANIFEST="$scratch/manifest" -P "$source/cmake/uninstall.cmake" > "$scratch/uninstall.log"
if [[ -n $(find "$scratch/prefix" ! -type d) || -n $(find "$scratch/prefix" -name troupe) ]]; then
  echo "something is left:"
  find "$scratch/prefix"
  exit 1
fi
