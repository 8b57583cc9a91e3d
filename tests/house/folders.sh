#!/usr/bin/env bash
# Which folder of actors/ may include which: an order, so that no two folders know each other.
#
#   folders.sh ROOT        checks the tree at ROOT; exit code 1 and one line per violation
#   folders.sh --self-test plants violations in a scratch tree and expects a complaint about each
#
# tests/house/includes.sh keeps the rooms apart; this keeps order inside one of them.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

# folder: the folders that it may include beside itself, each of which stands above it. A new folder needs a line. Files
# directly in actors/, if there are any, are the folder `.`.
may_include='
protocol:
.: protocol
logic/data: protocol
logic/scheduling: protocol logic/data
logic/lineage: protocol
logic/membership: protocol
memory: . protocol logic/data
wire: protocol logic/data memory
execution: . protocol logic/data logic/scheduling logic/lineage memory wire
control: . protocol
placement: . protocol logic/data logic/scheduling logic/lineage memory wire execution
core_group: . protocol logic/scheduling execution control placement
gpu: . protocol logic/data logic/scheduling memory execution placement
remote_node: . protocol logic/data logic/scheduling memory wire execution placement
node_service: . protocol logic/data memory wire execution placement
cluster: . protocol logic/membership wire
logic/stream:
stage: . protocol logic/stream
'

# Headers of other folders that include all of placement though they use no more than a reference to it. This list may
# only become shorter.
whole_placement=''

# check ROOT [TABLE [LIST]]
check() {
  cd "$1"
  if [[ ! -d actors ]]; then
    echo "folders: $1 has no actors/; is it the root of the repository?"
    return 1
  fi
  { find actors -name '*.hpp' -o -name '*.cpp' | sed 's/$/:0:/'
    grep -rHnE --include='*.hpp' --include='*.cpp' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' actors || true; } |
    awk -v table="${2-$may_include}" -v list="${3-$whole_placement}" '
      function complain(text) { print text; bad++ }
      # The folder below actors/ that a path lies in: "." for a file directly there, empty for what lies elsewhere.
      function folder_of(path) {
        if (path !~ /^actors\//) return ""
        if (path !~ /^actors\/.*\//) return "."
        sub(/^actors\//, "", path)
        sub(/\/[^\/]*$/, "", path)
        return path
      }
      BEGIN {
        here = " in tests/house/folders.sh"
        rows = split(table, row, "\n")
        for (i = 1; i <= rows; i++) {
          if (row[i] == "") continue
          split(row[i], half, ":")
          n = split(half[2], others, " ")
          for (j = 1; j <= n; j++) {
            if (!(others[j] in known)) complain("folders: the table lets " half[1] " include " others[j] ", which stands below it")
            allowed[half[1], others[j]] = 1
          }
          known[half[1]] = 1
        }
        split(list, entries, "\n")
        for (i in entries) if (entries[i] != "") excused[entries[i]] = 1
      }
      {
        match($0, /:[0-9]+:/)
        file = substr($0, 1, RSTART - 1)
        line = substr($0, RSTART + 1, RLENGTH - 2)
        text = substr($0, RSTART + RLENGTH)
        from = folder_of(file)
        if (line == 0) {
          if (from == "." && !(from in known)) complain(file ": lies in no folder of actors/")
          else if (!(from in known) && !strange[from]++) complain("actors/" from "/ has no line in tests/house/folders.sh")
          else used[from] = 1
          next
        }
        if (!match(text, /"[^"]+"/)) next
        path = substr(text, RSTART + 1, RLENGTH - 2)
        to = folder_of(path)
        if (from == "" || to == "" || to == from) next
        count++
        if (!((from, to) in allowed)) complain(file ":" line ": \"" path "\" is against the order: " from " may not include " to)
        else if (to != "." && path ~ /\/actor\.hpp$/) complain(file ":" line ": \"" path "\" is the inside of " to)
        short = file
        sub(/^actors\//, "", short)
        if (path == "actors/placement/placement.hpp" && file ~ /\.hpp$/) {
          if (short in excused) needed[short] = 1
          else complain(file ":" line ": a header needs no more of placement than `class placement;`")
        }
      }
      END {
        for (entry in excused)
          if (!(entry in needed)) complain("actors/" entry " does not include all of placement: take it off the list" here)
        for (folder in known)
          if (!(folder in used)) complain("actors/" folder "/ is not there: take its line out" here)
        if (bad) { print "folders: " bad " complaints"; exit 1 }
        print "folders: " count + 0 " includes between folders of actors/, each in order"
      }'
}

self_test() {
  scratch=$(mktemp -d) # not local: the trap runs when this function is gone
  trap 'rm -rf "$scratch"' EXIT
  local failed=0 table=$'below:\nmiddle: below\nplacement: below\nabove: below middle placement\n' list=$'above/old.hpp\n'

  # A tree that is in order: each folder has a file, and the one header on the list its include.
  make_tree() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/actors"/{below,middle,placement,above}
    touch "$scratch/tree/actors"/{below/a.hpp,middle/a.hpp,placement/placement.hpp}
    echo '#include "actors/placement/placement.hpp"' > "$scratch/tree/actors/above/old.hpp"
  }
  expect() {  # WHAT-IT-IS EXPECTED-TEXT; empty: no complaint
    local said
    if said=$(check "$scratch/tree" "$table" "$list" 2>&1); then
      if [[ -n $2 ]]; then echo "self-test: $1 went through"; failed=1; fi
    elif [[ -z $2 || $said != *"$2"* ]]; then
      echo "self-test: $1: $said"; failed=1
    fi
  }
  plant() { mkdir -p "$scratch/tree/$(dirname "$1")"; printf '#pragma once\n#include "%s"\n' "$2" > "$scratch/tree/$1"; }

  make_tree; expect "a tree in order" ""
  make_tree; plant actors/above/a.cpp actors/middle/a.hpp; expect "an include in order" ""
  make_tree; plant actors/middle/b.cpp actors/middle/a.hpp; expect "an include within a folder" ""
  make_tree; plant actors/above/a.cpp actors/placement/placement.hpp; expect "placement in a .cpp" ""
  make_tree; plant actors/below/b.cpp actors/middle/a.hpp; expect "an include against the order" "actors/below/b.cpp:2: "
  make_tree; plant actors/middle/b.cpp actors/placement/placement.hpp; expect "an include of a neighbour" "middle may not include placement"
  make_tree; plant actors/above/a.cpp actors/middle/actor.hpp; expect "the inside of an actor" "is the inside of middle"
  make_tree; plant actors/above/a.hpp actors/placement/placement.hpp; expect "placement in a header" "actors/above/a.hpp:2: "
  make_tree; : > "$scratch/tree/actors/above/old.hpp"; expect "an entry that is not needed" "take it off the list"
  make_tree; plant actors/a.cpp actors/below/a.hpp; expect "a file in no folder" "actors/a.cpp: lies in no folder"
  local with_dot=$'below:\n.: below\n'${table#*$'\n'} without_dot=$table
  make_tree; plant actors/actor.hpp actors/below/a.hpp; table=$with_dot; expect "a file in actors/ that has a line" ""
  plant actors/below/b.cpp actors/actor.hpp; expect "an include of it against the order" "below may not include ."
  table=$without_dot
  make_tree; plant actors/other/a.cpp actors/below/a.hpp; expect "a folder without a line" "actors/other/ has no line"
  make_tree; rm -r "$scratch/tree/actors/middle"; expect "a line without a folder" "actors/middle/ is not there"
  make_tree; table=${table/below:/below: middle}; expect "a circle in the table" "the table lets below include middle"

  if ((failed == 0)); then echo "self-test: 10 violations found, 5 trees let through"; fi
  return "$failed"
}

case ${1:-} in
  --self-test) self_test ;;
  "" | -*) echo "usage: folders.sh ROOT | --self-test"; exit 2 ;;
  *) check "$1" ;;
esac
