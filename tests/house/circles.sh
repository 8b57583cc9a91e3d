#!/usr/bin/env bash
# The files of one class call each other in one direction only.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
#
#   circles.sh ROOT        checks the tree at ROOT; exit code 1 and the calls of each circle
#   circles.sh --self-test plants a circle in a scratch tree and expects a complaint
#
# A class that is spread over several .cpp files is read from the lowest one up: a function calls those of its own file
# and of files before it. Looked at is the text: a definition begins in the first column (`T class::f(...) {`) and ends
# with the next brace there; a call is the name of a function of the class, not behind a dot, an arrow or a colon, that is
# defined in one other file only.
set -euo pipefail

# check ROOT LEAST: `LEAST` classes of several files must be found, or the check sees nothing.
check() {
  local edges found=0 classes=0 class files
  edges=$(mktemp)
  cd "$1"
  mapfile -t files < <(find actors devices net runtime -name '*.cpp' 2>/dev/null | sort)
  awk '
    function strip(s) { gsub(/"([^"\\]|\\.)*"/, "\"\"", s); sub(/\/\/.*/, "", s); return s }
    # Twice over all files: definitions first, then calls.
    FNR == 1 { class = "" }
    {
      line = strip($0)
      if (line ~ /^[A-Za-z_\[]/ && match(line, /[a-z_0-9]+::~?[a-z_0-9]+\(/) && line !~ /^(namespace|using)/ && line !~ /;$/) {
        name = substr(line, RSTART, RLENGTH - 1)
        class = name; sub(/::.*/, "", class)
        fn = name; sub(/.*::/, "", fn)
        rest = substr(line, RSTART + RLENGTH)
        if (pass == 1) {
          key = class SUBSEP fn
          if (!(key in file)) file[key] = FILENAME
          else if (file[key] != FILENAME) file[key] = "-"
        }
        line = rest
      }
      if (pass == 2 && class != "") {
        while (match(line, /[A-Za-z_0-9]+\(/)) {
          called = substr(line, RSTART, RLENGTH - 1)
          before = substr(line, 1, RSTART - 1)
          sub(/this->$/, "", before)
          key = class SUBSEP called
          if (before !~ /[.>:]$/ && (key in file) && file[key] != "-" && file[key] != FILENAME)
            print class, FILENAME, file[key], fn "->" called
          line = substr(line, RSTART + RLENGTH)
        }
      }
      if ($0 ~ /^}/ || $0 ~ /^[^ ].*\{.*\}$/) class = ""
    }
  ' pass=1 "${files[@]}" pass=2 "${files[@]}" >"$edges"
  for class in $(cut -d' ' -f1 "$edges" | sort -u); do
    classes=$((classes + 1))
    awk -v c="$class" '$1 == c { print $2, $3 }' "$edges" | sort -u | tsort >/dev/null 2>&1 && continue
    echo "class $class: its files call each other in a circle:"
    awk -v c="$class" '$1 == c { print "  " $2 " -> " $3 ": " $4 }' "$edges" | sort -u
    found=1
  done
  rm -f "$edges"
  ((found)) && return 1
  if ((classes < $2)); then
    echo "circles: $classes classes of several files were found, at least $2 are known: the check sees nothing"
    return 1
  fi
  echo "circles: $classes classes of several files, none of them in a circle"
}

if [[ $1 == --self-test ]]; then
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  mkdir "$tree/actors"
  printf 'void a::f() {\n  g();\n}\n' >"$tree/actors/one.cpp"
  printf 'void a::g() { x.f(); }\n' >"$tree/actors/two.cpp"
  (check "$tree" 1) || { echo "self-test: a class without a circle was found to have one"; exit 1; }
  printf 'int a::g(int n) {\n  return h(n);\n}\nint a::h(int n) { return n + (f(), 1); }\n' >"$tree/actors/two.cpp"
  if (check "$tree" 1) >/dev/null; then
    echo "self-test: a planted circle was not found"
    exit 1
  fi
  if (check "$tree" 2) >/dev/null; then
    echo "self-test: too few classes were not noticed"
    exit 1
  fi
  exit 0
fi
check "$1" 5
