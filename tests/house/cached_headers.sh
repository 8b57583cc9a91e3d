#!/usr/bin/env bash
# A precompiled header that comes from the compiler cache must be of the headers as they are, comments included. GCC
# tells by a header's whole text whether the precompiled one has it already; one made from another text has it compiled
# twice in spite of `#pragma once`.
#
#   cached_headers.sh LAUNCHER... COMPILER   as the build calls them; a launcher that caches nothing passes
#
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export CCACHE_DIR="$tree/cache"
cd "$tree"

# Compiles the precompiled header and a file that has never been compiled before.
compile() {
  printf '#include "user.hpp"\nint of_%s(user u) { return u.first.value; }\n' "$1" > use.cpp
  rm -f all.hpp.gch
  "${@:2}" -I. -fpch-preprocess -x c++-header -include "$tree/all.hpp" -o all.hpp.gch -c all.cpp
  "${@:2}" -I. -fpch-preprocess -Winvalid-pch -Werror -include "$tree/all.hpp" -o use.o -c use.cpp
}

# header WORDS... writes a header with that comment; the cache trusts only what is older than the compilation.
header() {
  printf '#pragma once\n// %s\nstruct first { int value; };\n' "$*" > first.hpp
  touch -d '1 hour ago' ./*.hpp
}

printf '#pragma once\n#include "first.hpp"\nstruct user { struct first first; };\n' > user.hpp
printf '#include "first.hpp"\n' > all.hpp
: > all.cpp
header "One number."
compile one "$@"
header "One number, whatever it is for."
if ! compile two "$@"; then
  echo "cached_headers: the precompiled header of an older text came from the cache"
  exit 1
fi
echo "cached_headers: a changed comment made a new precompiled header"
