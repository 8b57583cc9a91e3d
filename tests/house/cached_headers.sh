#!/usr/bin/env bash
# A precompiled header that comes from the compiler cache must be of the headers as they are: comments, spaces, macros
# and what `#if 0` leaves out included. GCC tells by a header's whole text whether the precompiled one has it already;
# one made from another text has it compiled twice in spite of `#pragma once`, or has old macros.
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
compiler=("$@")
files=0

# compile VALUE: makes the precompiled header, and a file that has never been compiled before, in which `number` must be
# VALUE.
compile() {
  files=$((files + 1))
  printf '%s\nstatic_assert(number == %s);\nint of_%s(user u) { return u.first.value; }\n' "$includes" "$1" "$files" \
    > use.cpp
  rm -f all.hpp.gch
  "${compiler[@]}" -I. -fpch-preprocess -x c++-header -include "$tree/all.hpp" -MD -MF all.hpp.gch.d -o all.hpp.gch \
    -c all.cpp &&
    "${compiler[@]}" -I. -fpch-preprocess -Winvalid-pch -Werror -include "$tree/all.hpp" -MD -MF use.o.d -o use.o \
      -c use.cpp
}

# header TEXT...: writes a header of these lines; the cache trusts only what is older than the compilation.
header() {
  printf '#pragma once\nstruct first { int value; };\n' > first.hpp
  printf '%s\n' "$@" >> first.hpp
  touch -d '1 hour ago' ./*.hpp
}

# changed WHAT TEXT... -- VALUE: another text of the header, after which `number` is VALUE.
changed() {
  local what=$1
  shift
  local text=()
  while [[ $1 != -- ]]; do text+=("$1"); shift; done
  header "${text[@]}"
  compile "$2" && return
  echo "cached_headers: after a change of $what the precompiled header of an older text came from the cache"
  exit 1
}

printf '#pragma once\n#include "first.hpp"\nstruct user { struct first first; };\n' > user.hpp
printf '#include "user.hpp"\n' > all.hpp
: > all.cpp
for includes in '#include "first.hpp"' ''; do
  rm -rf "$CCACHE_DIR"
  changed nothing '// One number.' '#define number 1' -- 1
  changed "a comment" '// One number, whatever it is for.' '#define number 1' -- 1
  changed spaces '// One number, whatever it is for.' '#define  number  1   ' -- 1
  changed "what is left out" '// One number, whatever it is for.' '#if 0' 'int more;' '#endif' '#define number 1' -- 1
  changed "a macro" '// One number, whatever it is for.' '#if 0' 'int more;' '#endif' '#define number 2' -- 2
done
echo "cached_headers: each change of a header made a new precompiled one"
