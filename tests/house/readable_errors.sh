#!/usr/bin/env bash
# Programs that use streams wrongly do not compile, and the compiler's text has a sentence that says why.
#   readable_errors.sh COMPILER INCLUDE_FOLDER
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 tried=0

# check SENTENCE BODY: the body of a function; an empty sentence: it compiles.
check() {
  tried=$((tried + 1))
  cat > "$work/wrong.cpp" << PROGRAM
#include <chrono>
#include <vector>
#include <string>
#include <troupe/stream.hpp>
namespace st = troupe::stream;
struct no_hash {
  int i;
  bool operator==(const no_hash&) const = default;
};
auto numbers(const char* name) { return st::from(name, std::vector<int>{1, 2}); }
void body() {
  $2
}
PROGRAM
  if "$compiler" -std=c++20 -fsyntax-only -I "$include" "$work/wrong.cpp" 2> "$work/said"; then
    [[ -z $1 ]] && return
    echo "it compiles: $2"
  elif [[ -n $1 ]] && grep -q "static assertion failed.*$1\|static_assert failed.*$1" "$work/said"; then
    return
  else
    echo "not said: ${1:-nothing}: $2"
    grep -m3 error "$work/said" || true
  fi
  failed=$((failed + 1))
}

check "" 'auto p = numbers("a") | st::map("m", [](int i) { return i; }) | st::sink("s", [](int) {});'
check 'stream::map: the function cannot be called' 'auto p = numbers("a") | st::map("m", [](std::string s) { return s; });'
check 'stream::map: the function returns nothing' 'auto p = numbers("a") | st::map("m", [](int) {});'
check 'stream::filter: the function' 'auto p = numbers("a") | st::filter("f", [](int) { return std::string(); });'
check 'stream::flat_map: the function returns no range' 'auto p = numbers("a") | st::flat_map("f", [](int i) { return i; });'
check 'stream: nothing comes out of a sink' 'auto p = numbers("a") | st::sink("s", [](int) {}) | st::map("m", [](int i) { return i; });'
check 'stream: a tee or a route has several flows' 'numbers("a") | st::tee<2>("t") | st::map("m", [](int i) { return i; });'
check 'stream::merge: the flows are of different items' \
  'auto f = st::merge("m", numbers("a"), numbers("b") | st::map("x", [](int i) { return double(i); }));'
check 'stream::from: the function must return a std::optional' 'auto f = st::from("f", [] { return 3; });'
check 'stream::join: put key_by behind each' 'st::join("j", numbers("a"), numbers("b"), 1);'
check 'stream::codec: a pointer, or a view' 'std::string s = st::encoded(std::string_view("x"));'
check 'need std::hash' \
  'auto p = st::join("j", numbers("a") | st::key_by([](int i) { return no_hash{i}; }), numbers("b") | st::key_by([](int i) { return no_hash{i}; }), st::within(std::chrono::seconds(1)), [](int, int) { return 1; });'
check 'stream: items must be movable without throwing' \
  'struct item { item() = default; item(const item&) {} }; auto f = st::from<item>("in");'

((failed == 0)) || exit 1
echo "$tried programs, each refused with a sentence of its own, or accepted"
