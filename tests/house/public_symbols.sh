#!/usr/bin/env bash
# Compares what the library shows to a linker with the list in cmake/public_symbols.map, and the list with the headers.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
if (($# != 3)); then
  echo "usage: public_symbols.sh NM LIBRARY SOURCE_DIR"
  exit 2
fi
nm=$1 library=$2 source=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C

case $library in
  *.a) kind=(--extern-only) ;;
  *) kind=(--dynamic) ;;
esac
# Absolute symbols are the names of versions, not the library's.
"$nm" "${kind[@]}" --defined-only --format=posix "$library" | awk '$2 != "A" && NF > 2 { print $1 }' | sort -u > "$scratch/shown"
sed -nE 's/^ *(_Z[A-Za-z0-9_]+);$/\1/p' "$source/cmake/public_symbols.map" | sort > "$scratch/listed"

failed=0
complain() {  # TITLE FILE
  if [[ -s $2 ]]; then
    echo "$1:"
    c++filt < "$2" | sed 's/^/  /'
    failed=1
  fi
}
comm -23 "$scratch/shown" "$scratch/listed" > "$scratch/leaks"
comm -13 "$scratch/shown" "$scratch/listed" > "$scratch/missing"
complain "shown, but not in cmake/public_symbols.map" "$scratch/leaks"
complain "in cmake/public_symbols.map, but not there" "$scratch/missing"

# Each listed function is declared in a public header, by the last name before its parameters.
: > "$scratch/strangers"
while read -r symbol; do
  name=$(c++filt "$symbol" | sed -E 's/^(typeinfo name for|typeinfo for|vtable for) //; s/\(.*//; s/\[abi:cxx11\]//; s/.*:://; s/^~//')
  grep -rqF -- "$name" "$source/include/troupe" || echo "$symbol" >> "$scratch/strangers"
done < "$scratch/listed"
complain "in cmake/public_symbols.map, but in no public header" "$scratch/strangers"

echo "$(wc -l < "$scratch/listed") symbols are listed, $(wc -l < "$scratch/shown") are shown"
exit $failed
