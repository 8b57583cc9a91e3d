#!/usr/bin/env bash
# Every shipped kernel on Oclgrind's simulated OpenCL device, which reports data races and reads of what nobody wrote.
#
#   oclgrind.sh PROGRAM    PROGRAM is troupe-device-tests; exit code 77: this cannot run here, and why
#
# Optimisation is off, because Oclgrind's check of initialisation does not know LLVM's `freeze`, which it brings. Its
# reports must be none for the kernels, and some for the two mistakes in oclgrind_test.cpp.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
program=$1
if ! command -v oclgrind > /dev/null; then
  echo "oclgrind: skipped, it is not installed (on Debian: oclgrind)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run LOG ARGUMENT...: the program under Oclgrind, its reports in LOG.
run() {
  local log=$1
  shift
  oclgrind --data-races --uninitialized --build-options -cl-opt-disable --log "$log" "$program" --gtest_color=no "$@"
}

kernels='*conformance.*agree*/opencl_x1:*conformance.potrf_leaves*/opencl_x1:*conformance.histogram_counts*/opencl_x1'
code=0
run "$scratch/reports" "--gtest_filter=$kernels" > "$scratch/said" 2>&1 || code=$?
cat "$scratch/said"
if grep -q '^\[  SKIPPED \]' "$scratch/said"; then
  echo "oclgrind: skipped, the tests of OpenCL were"
  exit 77
fi
if ((code != 0)); then
  echo "oclgrind: the tests failed with exit code $code"
  cat "$scratch/reports" 2> /dev/null || true
  exit 1
fi
if ! grep -q '^\[  PASSED  \] [1-9]' "$scratch/said"; then
  echo "oclgrind: no test ran"
  exit 1
fi
if [[ -s $scratch/reports ]]; then
  echo "oclgrind: it reports"
  cat "$scratch/reports"
  exit 1
fi

for mistake in 'race' 'uninitialized'; do
  run "$scratch/$mistake" --gtest_also_run_disabled_tests "--gtest_filter=planted.DISABLED_$mistake" \
    > "$scratch/said" 2>&1 || true
  if ! grep -qi "$mistake" "$scratch/$mistake" 2> /dev/null; then
    echo "oclgrind: it did not report the planted mistake: $mistake"
    cat "$scratch/said"
    exit 1
  fi
done
echo "oclgrind: no reports on the kernels, and one on each planted mistake"
