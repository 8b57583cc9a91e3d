#!/usr/bin/env bash
# Who includes whom: reads every #include in the repository and complains about each edge the layering forbids.
#
#   includes.sh ROOT        checks the tree at ROOT; exit code 1 and one line per forbidden include
#   includes.sh --self-test plants one violation of each rule in a scratch tree and expects a complaint about it
#
# The build already hides the rooms from each other (cmake/rooms.cmake). This covers what it cannot: system headers,
# which every compiler sees, and paths that climb out with "..".
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

# The C++20 standard library.
standard='algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
  climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef
  cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list
  fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
  memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
  semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
  syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
  variant vector version'

# Threads, waiting and input or output have no place where decisions are made. (A lock that guards data is let through.)
impure='barrier condition_variable cstdio ctime filesystem fstream future iostream latch semaphore syncstream thread'

check() {
  local root=$1
  cd "$root"
  local rooms=()
  local room
  for room in include actors devices net runtime algorithms connectors tools examples bench tests; do
    if [[ -d $room ]]; then rooms+=("$room"); fi
  done
  if ((${#rooms[@]} == 0)); then
    echo "includes: $root holds none of the rooms; is it the root of the repository?"
    return 1
  fi
  # tests/house holds programs of its own: small outside users of the library.
  { grep -rHnE --include='*.hpp' --include='*.cpp' --include='*.h' --include='*.cu' --exclude-dir=house \
      '^[[:space:]]*#[[:space:]]*(include|import)' "${rooms[@]}" || true; } |
    awk -v standard="$standard" -v impure="$impure" '
      BEGIN {
        split(standard, names); for (i in names) is_standard[names[i]] = 1
        split(impure, names); for (i in names) is_impure[names[i]] = 1
      }
      function starts(text, prefix) { return substr(text, 1, length(prefix)) == prefix }
      function seam(path) { return path ~ /^(devices|net)\/[^\/]+$/ }
      # The part of the house a file belongs to.
      function room_of(file) {
        if (file ~ /^(tests\/)?actors\/(logic|protocol)\//) return "logic"
        if (file ~ /^tests\/(api|docs|system|stress)\//) return "user"
        if (starts(file, "tests/fuzz/")) return "fuzz"
        if (starts(file, "tests/")) file = substr(file, 7)
        if (file ~ /^(algorithms|connectors|tools|examples|bench)\//) return "user"
        sub(/\/.*/, "", file)
        return file
      }
      # The path seen from the repository root, when it is written from the folder of the file.
      function resolved(file, path,   parts, n, i, out, m) {
        sub(/[^\/]*$/, "", file)
        n = split(file path, parts, "/")
        m = 0
        for (i = 1; i <= n; i++) {
          if (parts[i] == "..") m--; else if (parts[i] != "." && parts[i] != "") out[++m] = parts[i]
          if (m < 0) return ""
        }
        path = ""
        for (i = 1; i <= m; i++) path = path (i > 1 ? "/" : "") out[i]
        return path
      }
      # Why the file may not include that path of this repository; empty when it may.
      function wrong_path(file, room, path) {
        if (path ~ /(^|\/)\.\.?\//) {
          top = file; sub(/\/.*/, "", top)
          if (room == "user" && starts(resolved(file, path), top "/")) return ""
          return "climbs through folders; write it from the repository root"
        }
        if (starts(path, "troupe/")) return "is a public header; write it as <" path ">"
        # The benchmark of nodes starts processes and networks as the tests do.
        if (starts(file, "bench/") && starts(path, "tests/support/")) return ""
        if (starts(path, "tests/")) return starts(file, "tests/") ? "" : "is a test"
        if (starts(file, "tests/") && path !~ /\//) return ""  # a helper header beside the test
        if (room == "include") return "is not a public header"
        if (room == "logic") {
          return path ~ /^actors\/(logic|protocol)\// ? "" : "is beyond what decisions may know (public headers, logic, protocol)"
        }
        # Actors of several nodes meet over the network that is made for that.
        if (starts(file, "tests/actors/") && path == "net/loopback/network.hpp") return ""
        # Kernels as text are data to the tests of devices.
        if (starts(file, "tests/devices/") && path ~ /^(algorithms\/[a-z_]+_text|examples\/convolve\/correlate)\.hpp$/) return ""
        if (room == "devices" || room == "net") {
          return starts(path, room "/") ? "" : "is beyond what " room " may know (public headers and itself)"
        }
        if (room == "actors") {
          return starts(path, "actors/") || seam(path) ? "" : "is beyond what actors may know (actors, and the headers directly in devices/ and net/)"
        }
        if (room == "runtime") {
          return path ~ /^(actors|devices|net|runtime)\// ? "" : "is beyond what the runtime may know"
        }
        # Decoders live in net/, in actors/ for what actors say to each other, and in connectors/detail/ for streams.
        if (room == "fuzz")
          return path ~ /^(actors|net|connectors\/detail)\// ? "" : "is nothing that decodes (net, actors, connectors)"
        if (room == "user") {
          if (path !~ /\//) return ""                     # a neighbour in the same folder
          if (file == "bench/raw.cpp" && starts(path, "devices/")) return ""  # drives accelerators by hand, to compare
          # Imagines nodes for the real decisions, over the network that is made for that.
          if (file == "bench/nodes/imagined.cpp" &&
              (starts(path, "actors/") || seam(path) || path == "net/loopback/network.hpp")) return ""
          # Imagines cores for them, around a whole runtime.
          if (file == "bench/scheduling/imagined_cores.cpp" && path ~ /^(actors|runtime)\//) return ""
          top = file; sub(/^tests\//, "", top); sub(/\/.*/, "", top)
          if ((top == "examples" || top == "bench") && path ~ /^(algorithms|connectors)\//) return ""  # they ship on top of the public API
          return starts(path, top "/") ? "" : "is not public: only <troupe/...> is"
        }
        # Stands in for the memory of the host, for tests and for the benchmark of placement.
        if (file == "tests/support/plain_device.hpp" && path == "devices/device.hpp") return ""
        return path ~ /\// ? "is not for shared test code: only <troupe/...> and \"tests/...\" are" : ""
      }
      # The same for what stands in angle brackets.
      function wrong_system(file, room, name) {
        if (starts(name, "troupe/")) {
          return room == "user" && starts(name, "troupe/detail/") ? "is a detail of the library, not its public API" : ""
        }
        if (room == "include" || (room == "logic" && !starts(file, "tests/"))) {
          if (!(name in is_standard)) return "is neither the standard library nor a public header"
          if (starts(file, "actors/logic/") && name in is_impure) return "has no place in a decision (no thread, no waiting, no I/O)"
          return ""
        }
        if (starts(name, "caf/") && room != "actors" && room != "runtime") return "is CAF, which stays in actors/ and runtime/"
        if (name ~ /^hwloc[.\/]/ && room != "devices") return "is hwloc, which stays in devices/"
        if (file == "bench/peers/asio.cpp" && starts(name, "boost/asio/")) return ""  # the peer of nodes
        if (name ~ /^uc[pstm]\// && !starts(file, "net/ucx/")) return "is UCX, which stays in net/ucx/"
        if (file == "examples/http_server.hpp" && starts(name, "boost/")) return ""  # what embeds the library
        if (starts(name, "boost/") && room != "net") return "is Boost, which stays in net/"
        return ""
      }
      {
        match($0, /:[0-9]+:/)
        file = substr($0, 1, RSTART - 1)
        line = substr($0, RSTART + 1, RLENGTH - 2)
        text = substr($0, RSTART + RLENGTH)
        room = room_of(file)
        if (match(text, /<[^>]+>/)) {
          what = substr(text, RSTART, RLENGTH)
          why = wrong_system(file, room, substr(what, 2, length(what) - 2))
        } else if (match(text, /"[^"]+"/)) {
          what = substr(text, RSTART, RLENGTH)
          why = wrong_path(file, room, substr(what, 2, length(what) - 2))
        } else {
          what = text
          why = "is not a plain include"
        }
        count++
        if (why != "") { print file ":" line ": " what " " why; bad++ }
      }
      END {
        if (bad) { print "includes: " bad " of " count " includes are forbidden"; exit 1 }
        print "includes: " count + 0 " includes, each one allowed"
      }'
}

self_test() {
  scratch=$(mktemp -d) # not local: the trap runs when this function is gone
  trap 'rm -rf "$scratch"' EXIT
  local failed=0

  # file, include that must be refused
  local violations=(
    'include/troupe/a.hpp|<caf/all.hpp>'
    'include/troupe/a.hpp|<unistd.h>'
    'include/troupe/detail/a.hpp|"actors/logic/box.hpp"'
    'include/troupe/a.hpp|"troupe/box.hpp"'
    'include/troupe/a.hpp|"box.hpp"'
    'actors/logic/a.cpp|<caf/all.hpp>'
    'actors/logic/a.cpp|<thread>'
    'actors/logic/a.cpp|"actors/placement/placement.hpp"'
    'actors/protocol/a.hpp|"devices/device.hpp"'
    'actors/logic/a.cpp|"../../runtime/house.hpp"'
    'actors/a.cpp|"devices/host/core.hpp"'
    'actors/a.cpp|"net/loopback/network.hpp"'
    'tests/actors/a_test.cpp|"net/loopback/process.hpp"'
    'tests/actors/logic/b_test.cpp|"net/loopback/network.hpp"'
    'actors/a.cpp|"runtime/house.hpp"'
    'actors/a.cpp|<hwloc.h>'
    'devices/host/a.cpp|"actors/logic/box.hpp"'
    'devices/a.hpp|"net/transport.hpp"'
    'devices/a.hpp|<caf/all.hpp>'
    'net/a.cpp|"devices/device.hpp"'
    'net/a.cpp|"actors/logic/box.hpp"'
    'runtime/a.cpp|"algorithms/cholesky.hpp"'
    'runtime/a.cpp|SOME_MACRO'
    'algorithms/a.cpp|"actors/logic/box.hpp"'
    'algorithms/a.cpp|<troupe/detail/task.hpp>'
    'tools/a.cpp|"runtime/house.hpp"'
    'examples/convolve/a.cpp|"devices/device.hpp"'
    'examples/a.cpp|<caf/all.hpp>'
    'examples/a.cpp|<boost/asio.hpp>'
    'examples/http_service.cpp|<boost/asio.hpp>'
    'examples/convolve/a.cpp|"../../actors/placement.hpp"'
    'bench/peers/a.cpp|"../../include/../devices/device.hpp"'
    'bench/a.cpp|"actors/placement/placement.hpp"'
    'bench/a.cpp|"devices/accelerator.hpp"'
    'bench/raw.cpp|"actors/placement/placement.hpp"'
    'bench/nodes/hosts.cpp|"actors/placement/placement.hpp"'
    'bench/nodes/imagined.cpp|"net/loopback/process.hpp"'
    'bench/scheduling/imagined_cores.cpp|"net/loopback/network.hpp"'
    'bench/scheduling/rows.cpp|"runtime/engine.hpp"'
    'bench/nodes/a.cpp|"tests/actors/placement/stage.hpp"'
    'bench/nodes/a.cpp|<boost/asio/ssl.hpp>'
    'net/tcp/a.cpp|<ucp/api/ucp.h>'
    'tools/a.cpp|"tests/support/processes.hpp"'
    'tests/actors/logic/a_test.cpp|"actors/placement/placement.hpp"'
    'tests/api/a_test.cpp|"runtime/house.hpp"'
    'tests/fuzz/a.cpp|"runtime/house.hpp"'
    'tests/stress/a_test.cpp|<troupe/detail/task.hpp>'
    'tests/support/a.hpp|"devices/device.hpp"'
  )
  local allowed=(
    'include/troupe/a.hpp|<vector>'
    'include/troupe/a.hpp|<troupe/box.hpp>'
    'actors/logic/a.cpp|"actors/protocol/task.hpp"'
    'actors/a.cpp|"devices/device.hpp"'
    'actors/a.cpp|<caf/all.hpp>'
    'devices/host/a.cpp|<hwloc.h>'
    'devices/host/a.cpp|"devices/device.hpp"'
    'net/a.cpp|<sys/socket.h>'
    'runtime/a.cpp|"devices/host/core.hpp"'
    'algorithms/a.cpp|<cblas.h>'
    'algorithms/a.cpp|"algorithms/cholesky.hpp"'
    'examples/convolve/a.cpp|"image.hpp"'
    'examples/convolve/a.cpp|<png.h>'
    'examples/http_server.hpp|<boost/beast.hpp>'
    'bench/peers/tbb.cpp|"bench/row.hpp"'
    'bench/peers/tbb.cpp|"../row.hpp"'
    'bench/raw.cpp|"devices/accelerator.hpp"'
    'bench/nodes/imagined.cpp|"actors/placement/placement.hpp"'
    'bench/nodes/imagined.cpp|"net/loopback/network.hpp"'
    'bench/scheduling/imagined_cores.cpp|"runtime/engine.hpp"'
    'bench/nodes/a.cpp|"tests/support/processes.hpp"'
    'bench/peers/asio.cpp|<boost/asio/ssl.hpp>'
    'net/ucx/a.cpp|<ucp/api/ucp.h>'
    'tests/actors/logic/a_test.cpp|"actors/logic/box.hpp"'
    'tests/actors/a_test.cpp|"tests/support/clock.hpp"'
    'tests/actors/a_test.cpp|"net/loopback/network.hpp"'
    'tests/api/a_test.cpp|<gtest/gtest.h>'
    'tests/fuzz/a.cpp|"net/discovery/datagram.hpp"'
    'tests/fuzz/a.cpp|"tests/fuzz/fuzz.hpp"'
    'tests/algorithms/a_test.cpp|"algorithms/cholesky.hpp"'
    'tests/support/plain_device.hpp|"devices/device.hpp"'
  )

  local entry file include said
  plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/$(dirname "$1")"
    printf '#pragma once\n#include %s\n' "$2" > "$scratch/tree/$1"
  }
  for entry in "${violations[@]}"; do
    file=${entry%%|*} include=${entry#*|}
    plant "$file" "$include"
    if said=$(check "$scratch/tree" 2>&1); then
      echo "self-test: #include $include in $file went through"
      failed=1
    elif [[ $said != *"$file:2: "*"$include"* ]]; then
      echo "self-test: the complaint about #include $include in $file does not name it: $said"
      failed=1
    fi
  done
  for entry in "${allowed[@]}"; do
    file=${entry%%|*} include=${entry#*|}
    plant "$file" "$include"
    if ! said=$(check "$scratch/tree" 2>&1); then
      echo "self-test: #include $include in $file was refused: $said"
      failed=1
    fi
  done
  if ((failed == 0)); then
    echo "self-test: ${#violations[@]} violations found, ${#allowed[@]} includes let through"
  fi
  return "$failed"
}

case ${1:-} in
  --self-test) self_test ;;
  "" | -*) echo "usage: includes.sh ROOT | --self-test"; exit 2 ;;
  *) check "$1" ;;
esac
