#!/usr/bin/env bash
# Installs the built library into a scratch folder, then builds and runs programs that know only that folder: they must
# find the plugins there, and so must the installed program, wherever the folder is moved to; a plugin of kernels that is
# built there works in it.
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

# A plugin that is installed is found, whatever devices there are: by a program outside, without a variable that helps.
unset LD_LIBRARY_PATH TROUPE_PLUGINS
expect_plugins() { # expect_plugins COMMAND...
  "$@" > "$scratch/said" || { echo "failed with $?: $*"; cat "$scratch/said"; exit 1; }
  for plugin in "${plugins[@]}"; do
    if grep -E "^ *$plugin\b.*no plugin" "$scratch/said"; then
      echo "the plugin of $plugin is installed and not found by: $*"
      exit 1
    fi
  done
}
libraries=$(dirname "$(find "$scratch/prefix" -name 'libtroupe.*' | head -n 1)")
plugins=()
for plugin in hip opencl; do
  if [[ -e $libraries/libtroupe_$plugin.so ]]; then plugins+=("$plugin"); fi
done
echo "== find the plugins (${plugins[*]-none}) from a program outside"
expect_plugins "$scratch/build/stranger" devices

tool=$scratch/prefix/bin/troupe
if [[ -x $tool ]]; then
  echo "== start the installed program, and find them by it"
  "$tool" --help > /dev/null
  version=$(sed -n 's/^Version: //p' "$(find "$scratch/prefix" -name troupe.pc)")
  if [[ $("$tool" --version) != "troupe $version" ]]; then
    echo "the installed program is not of version $version: $("$tool" --version)"
    exit 1
  fi
  expect_plugins "$tool" devices --no-measure

  echo "== let it work with a plugin of kernels that was built outside"
  coproc worker {
    exec "$tool" node --cluster lab --name worker --insecure-loopback --listen 127.0.0.1:0 \
      --plugin "$scratch/build/libkernels.so"
  }
  trap 'kill "$worker_PID" 2> /dev/null || true; rm -rf "$scratch"' EXIT
  address=
  while read -r -t 20 -u "${worker[0]}" what rest && [[ $what != ready ]]; do
    if [[ $what == listening ]]; then address=$rest; fi
  done
  timeout 60 "$scratch/build/stranger" node "$address"
  pid=$worker_PID
  kill "$pid"
  wait "$pid"
  trap 'rm -rf "$scratch"' EXIT
fi

if ((${#plugins[@]})); then
  echo "== find them in a folder that an option, or the environment, names"
  mkdir "$scratch/elsewhere"
  mv "$libraries"/libtroupe_{hip,opencl,ucx}*.so "$scratch/elsewhere/" 2> "$scratch/none" || true
  "$scratch/build/stranger" devices > "$scratch/said"
  for plugin in "${plugins[@]}"; do
    grep -q "^$plugin 0 no plugin" "$scratch/said" || { echo "$plugin is found where there is none:"; cat "$scratch/said"; exit 1; }
  done
  if [[ " ${plugins[*]} " == *" opencl "* ]] && ! grep -q "^remark options::devices.*opencl.*no plugin" "$scratch/said"; then
    echo "a runtime does not remark that a kind it was told of is missing"
    cat "$scratch/said"
    exit 1
  fi
  expect_plugins "$scratch/build/stranger" devices "$scratch/elsewhere"
  TROUPE_PLUGINS="/nowhere:$scratch/elsewhere" expect_plugins "$scratch/build/stranger" devices
  mv "$scratch/elsewhere"/*.so "$libraries/"
fi

echo "== move the prefix"
mv "$scratch/prefix" "$scratch/moved"
if [[ -x $scratch/moved/bin/troupe ]]; then expect_plugins "$scratch/moved/bin/troupe" devices --no-measure; fi
mv "$scratch/moved" "$scratch/prefix"

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
