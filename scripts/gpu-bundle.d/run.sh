#!/usr/bin/env bash
# Runs what this bundle holds on a GPU host and says what it saw. Needs bash, coreutils, grep, sed and gzip; no network.
#
#   run.sh [--out DIR] [--quick] [STEP...]
#     --out DIR   results.json, logs/ and compiled kernels go there (default: ./troupe-gpu-results)
#     --quick     smaller benchmarks
#     STEP        only these; `run.sh --list` names them
#
# A step ends as ok, failed or absent. Absent: there is nothing to run it on or with, and the table says why. Exit code 1
# if a step failed, 2 for a wrong call.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin="$here/bin"
steps='devices host conformance_cuda conformance_hip conformance_opencl conformance_sim api_cuda api_sim
  runtime_sim convolve_cpu convolve_cuda cublas_gemm benchmarks out_of_core'

out="$PWD/troupe-gpu-results"
quick=()
only=()
usage() {
  printf 'usage: run.sh [--out DIR] [--quick] [STEP...]\nsteps: %s\n' "$(echo $steps)" >&2
  exit 2
}
while (($# > 0)); do
  case $1 in
    --out) (($# > 1)) || usage; out=$2; shift ;;
    --quick) quick=(--quick) ;;
    --list) printf '%s\n' $steps; exit 0 ;;
    *) [[ " $(echo $steps) " == *" $1 "* ]] || usage; only+=("$1") ;;
  esac
  shift
done
mkdir -p "$out/logs" || exit 2
out=$(cd "$out" && pwd)
# Nothing is left on the host outside of this folder, and nothing that was compiled there before is used.
export XDG_CACHE_HOME="$out/cache"

# ---- tools ----------------------------------------------------------------------------------------------------------

json_text() { # "..." of any text
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\t'/ }
  text=${text//$'\n'/ }
  printf '"%s"' "${text//[[:cntrl:]]/}"
}
milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
about() { sed -n "s/^$1=//p" "$here/about"; }
older() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -1) == "$1" ]]; } # is $1 older than $2?

names=() results=() seconds=() details=()
report() { # STEP RESULT MILLISECONDS DETAIL
  names+=("$1") results+=("$2") details+=("$4")
  seconds+=("$(printf '%d.%03d' $(($3 / 1000)) $(($3 % 1000)))")
  printf '%-20s %-7s %9s s  %s\n' "$1" "$2" "${seconds[-1]}" "$4"
}
chosen() { ((${#only[@]} == 0)) || [[ " ${only[*]} " == *" $1 "* ]]; }
absent() { if chosen "$1"; then report "$1" absent 0 "$2"; fi; } # STEP REASON

# What a log says in one line.
gist_of_tests() {
  local passed skipped failed line
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)
  failed=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)
  line="${passed:-0} passed"
  [[ -n $skipped ]] && line+=", $skipped skipped"
  [[ -n $failed ]] && line+=", $failed failed: $(sed -n 's/^\[  FAILED  \] \([^ ,]*[^0-9 ,][^ ,]*\).*/\1/p' "$1" | sort -u | head -3 | tr '\n' ' ')"
  echo "$line"
}
last_line() { grep -v '^[[:space:]]*$' "$1" | tail -1 | cut -c1-160 || true; }

# step NAME LIMIT_S GIST COMMAND...: runs it; GIST says what its log means, and with its exit code that it is wrong.
step() {
  local name=$1 limit=$2 gist=$3 log="$out/logs/$1.log" code begin took detail wrong=0
  shift 3
  chosen "$name" || return 0
  begin=$(milliseconds)
  timeout --kill-after=10 "$limit" "$@" > "$log" 2>&1 < /dev/null
  code=$?
  took=$(($(milliseconds) - begin))
  detail=$("$gist" "$log") || wrong=1
  if ((code == 124 || code == 137)); then
    report "$name" failed "$took" "stopped after $limit s; $detail"
  elif ((code != 0)); then
    report "$name" failed "$took" "exit code $code; $detail"
  elif ((wrong)); then
    report "$name" failed "$took" "$detail"
  elif [[ $gist == gist_of_tests && $detail == "0 passed"* ]]; then
    report "$name" absent "$took" "$detail: $(grep -m1 -A1 'Skipped' "$log" | tail -1 | cut -c1-160)"
  else
    report "$name" ok "$took" "$detail"
  fi
}

# tests STEP LIMIT_S PROGRAM FILTER: those that match, if any do.
tests() {
  chosen "$1" || return 0
  local list
  if ! list=$(timeout 60 "$bin/$3" --gtest_list_tests "--gtest_filter=$4" 2>&1); then
    report "$1" failed 0 "$3 does not start: ${list:0:120}"
  elif ! grep -q '^  ' <<< "$list"; then
    absent "$1" "$3 has no tests called $4"
  else
    step "$1" "$2" gist_of_tests "$bin/$3" "--gtest_filter=$4" --gtest_color=no
  fi
}

# ---- the host -------------------------------------------------------------------------------------------------------

driver="" gpu="" memory="" capability=""
if command -v nvidia-smi > /dev/null; then
  ask() { timeout 30 nvidia-smi "--query-gpu=$1" --format=csv,noheader 2> /dev/null | head -1; }
  driver=$(ask driver_version) gpu=$(ask name) memory=$(ask memory.free) capability=$(ask compute_cap)
elif [[ -r /proc/driver/nvidia/version ]]; then
  driver=$(grep -oE '[0-9]{3}\.[0-9.]+' /proc/driver/nvidia/version | head -1)
fi
if [[ ! $driver =~ ^[0-9]+\. ]]; then driver="" gpu="" memory="" capability=""; fi # it answered in words
glibc=$(getconf GNU_LIBC_VERSION 2> /dev/null | grep -oE '[0-9]+\.[0-9]+' || true)

# NVRTC of the host first; what came with the bundle if there is none.
find_nvrtc() {
  local file folder
  file=$( (ldconfig -p || /sbin/ldconfig -p) 2> /dev/null | sed -n 's/.*libnvrtc\.so\.1[23] .*=> //p' | head -1)
  if [[ -n $file ]]; then echo "$file"; return; fi
  for folder in /usr/local/cuda/lib64 /usr/local/cuda-1*/lib64 /usr/local/cuda-1*/targets/*/lib /opt/cuda/lib64 \
    /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/{cu13,cuda_nvrtc}/lib; do
    for file in "$folder"/libnvrtc.so.13 "$folder"/libnvrtc.so.12; do
      if [[ -r $file ]]; then echo "$file"; return; fi
    done
  done
}
nvrtc=$(find_nvrtc)
if [[ -z $nvrtc && -d $here/nvrtc ]]; then
  mkdir -p "$out/nvrtc"
  for file in "$here"/nvrtc/*.gz; do gzip -dc "$file" > "$out/nvrtc/$(basename "$file" .gz)"; done
  nvrtc=$(compgen -G "$out/nvrtc/libnvrtc.so.*" | head -1)
fi
# cuBLAS is never in the bundle: that of the host's CUDA.
find_cublas() {
  local file folder
  file=$( (ldconfig -p || /sbin/ldconfig -p) 2> /dev/null | sed -n "s/.*libcublas\.so\.$1 .*=> //p" | head -1)
  if [[ -n $file ]]; then echo "$file"; return; fi
  for folder in "${nvrtc%/*}" /usr/local/cuda/lib64 /usr/local/cuda-"$1"*/lib64 /usr/local/cuda-"$1"*/targets/*/lib /opt/cuda/lib64 \
    /usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/{cu13,cublas}/lib; do
    if [[ -r $folder/libcublas.so.$1 ]]; then echo "$folder/libcublas.so.$1"; return; fi
  done
}
cuda_major=$(about cuda)
cublas=$(find_cublas "${cuda_major%%.*}")
if [[ -n $cublas ]]; then export LD_LIBRARY_PATH="${cublas%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
if [[ -n $nvrtc ]]; then export LD_LIBRARY_PATH="${nvrtc%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi

driver_line="none: neither nvidia-smi nor /proc/driver/nvidia/version answers"
if [[ -n $driver ]]; then
  driver_line=$driver
  if [[ $(about cuda) == 13.* ]] && ((${driver%%.*} < 580)); then driver_line+="; CUDA $(about cuda) needs 580 or newer"; fi
fi
memory_line="no GPU"
if [[ -n $memory ]]; then memory_line="$memory free; $gpu, compute capability $capability"; fi
printf 'bundle:       commit %s, CUDA %s\n' "$(about commit)" "$(about cuda)"
printf 'driver:       %s\n' "$driver_line"
printf 'glibc:        %s, needed %s\n' "${glibc:-unknown}" "$(about glibc)"
printf 'GPU memory:   %s\n' "$memory_line"
printf 'NVRTC:        %s\n' "${nvrtc:-none (make the bundle with --with-nvrtc)}"
printf 'cuBLAS:       %s\n' "${cublas:-none (libcublas.so.${cuda_major%%.*} comes with the host\'s CUDA)}"
if [[ -n $capability && ${capability//./} != "$(about arch)" ]]; then
  printf 'note:         the bundle was checked for compute capability %s only\n' "$(about arch)"
fi
if [[ -n $glibc ]] && older "$glibc" "$(about glibc)"; then
  printf 'run.sh: the programs do not start with glibc %s; build the bundle on an older system\n' "$glibc" >&2
  exit 1
fi
compiler=""
for name in c++ g++ clang++; do compiler=${compiler:-$(command -v "$name" || true)}; done
printf '\n'

# ---- the steps ------------------------------------------------------------------------------------------------------

# Always run: the others ask it. The table of devices: name, MiB, units, model.
table="$out/logs/devices.log"
begin=$(milliseconds)
timeout --kill-after=10 60 "$bin/troupe" devices > "$table" 2>&1 < /dev/null
code=$?
took=$(($(milliseconds) - begin))
count_of() { grep -c "^$1:[0-9]" "$table"; }
why_none() { sed -n "s/^$1  *none  *//p" "$table" | head -1; }
found=""
for kind in cuda hip opencl sim; do found+="$kind $(count_of "$kind"), "; done
if ((code != 0)); then
  report devices failed "$took" "exit code $code; $(last_line "$table")"
elif [[ -n $gpu && $(count_of cuda) == 0 ]]; then
  report devices failed "$took" "nvidia-smi lists $gpu, troupe does not: $(why_none cuda)"
elif [[ $(count_of cuda) != 0 && -z $nvrtc ]]; then
  report devices failed "$took" "${found%, }; kernels cannot be compiled: no libnvrtc"
else
  report devices ok "$took" "${found%, }"
fi
device_lines() { sed -n 's/^\(\(cuda\|hip\|opencl\):.*\)/\1/p' "$table"; }

# What needs no device: absence is reported, kernels compile for every target that has a compiler here.
# The HIP plugin for NVIDIA's GPUs brings NVIDIA's compiler.
no_amd=""
if [[ $(about hip) == nvidia ]]; then no_amd="-rtc.every_kernel_compiles_for_amd:shipped_kernels.compile_for_amd"; fi
tests host 120 troupe-device-tests "gpu_vendors.*:rtc.*:shipped_kernels.*:copy_plan.*:host_device.*$no_amd"

reason=""
usable() { # KIND: true, or `reason` says why not
  reason=$(why_none "$1")
  reason=${reason:-no such device}
  if [[ $(count_of "$1") == 0 ]]; then return 1; fi
  if [[ -z $nvrtc ]] && [[ $1 == cuda || ($1 == hip && $(about hip) == nvidia) ]]; then reason="no libnvrtc"; return 1; fi
}
for kind in cuda hip; do
  if usable $kind; then
    tests conformance_$kind 180 troupe-device-tests "*/$kind"
  else
    absent conformance_$kind "$reason"
  fi
done
if usable opencl; then
  tests conformance_opencl 120 troupe-device-tests '*/opencl_x1:opencl.*'
else
  absent conformance_opencl "$reason"
fi
if [[ -n $compiler ]]; then
  tests conformance_sim 180 troupe-device-tests '*/sim_*:gpu_sim.*:sim_*:gpu_staging.*:gpu_pinning.*:staged_copies.*'
else
  absent conformance_sim "the software GPU needs a C++ compiler on the PATH"
fi

if usable cuda; then tests api_cuda 180 troupe-api-tests '*cuda*'; else absent api_cuda "$reason"; fi
if [[ -n $compiler ]]; then
  tests api_sim 120 troupe-api-tests 'gpu.*:*gpu_programs*-*cuda*'
else
  absent api_sim "the software GPU needs a C++ compiler on the PATH"
fi

if [[ -n $compiler ]]; then
  tests runtime_sim 180 troupe-runtime-tests '*gpu_*:cost*-*opencl*'
else
  absent runtime_sim "the software GPU needs a C++ compiler on the PATH"
fi

gist_of_picture() { grep -iE 'verified|wrong' "$1" | tail -1 | sed 's/ samples.*/ samples equal the serial reference/'; }
gist_of_cuda_picture() {
  local tiles
  tiles=$(sed -n 's/^\(cuda:[0-9]*\)  *\([1-9][0-9]*\) .*/\2 tiles on \1, /p' "$1" | tr -d '\n')
  echo "${tiles:-no tile ran on a GPU; }$(gist_of_picture "$1")"
  [[ -n $tiles ]]
}
step convolve_cpu 60 gist_of_picture "$bin/troupe-convolve" "$here/picture.jpg" "$out/convolve_cpu.png" --verify
if usable cuda; then
  step convolve_cuda 60 gist_of_cuda_picture env TROUPE_EAGER_DEVICES=1 "$bin/troupe-convolve" "$here/picture.jpg" \
    "$out/convolve_cuda.png" --devices cuda --tile 128 --verify
else
  absent convolve_cuda "$reason"
fi

gist_of_gemm() {
  local where
  where=$(sed -n 's/^\(cuda:[0-9]*\)  *\([1-9][0-9]*\) .*/, \2 tasks on \1/p' "$1" | head -1)
  echo "$(grep -m1 'GFLOP/s' "$1" || last_line "$1")${where:-; no task ran on a GPU}"
  [[ -n $where ]]
}
if [[ ! -x $bin/troupe-cublas_gemm ]]; then
  absent cublas_gemm "the bundle was made where the toolkit has no cuBLAS"
elif [[ -z $cublas ]]; then
  absent cublas_gemm "no libcublas.so.${cuda_major%%.*} on this host"
elif usable cuda; then
  step cublas_gemm 60 gist_of_gemm env TROUPE_EAGER_DEVICES=1 "$bin/troupe-cublas_gemm" 4096 1024 --devices cuda
else
  absent cublas_gemm "$reason"
fi

# What says why something is missing in a table comes last.
gist_of_bench() {
  local missing
  missing=$(grep -c '^ABSENT .* on cuda' "$1")
  echo "$(grep -cE ' yes$' "$1") targets met, $(grep -cE ' NO$' "$1") missed$( ((missing == 0)) || echo "; $(grep -m1 '^ABSENT .* on cuda' "$1")")"
}
if usable cuda; then
  rows=$(timeout 60 "$bin/troupe-bench" --list --device cuda:0 2> /dev/null | sed -n 's/^ *\(\(gpu_\|convolve\)[^ :/]*\)[^ :]*.*/\1/p' | sort -u | grep -vx gpu_out_of_core)
  if [[ -z $rows ]]; then
    absent benchmarks "troupe-bench has no row that begins with gpu_ or convolve"
  else
    step benchmarks 300 gist_of_bench "$bin/troupe-bench" $rows --device cuda:0 "${quick[@]}" --json "$out/benchmarks.json"
  fi
  # Its matrices take 32 GiB of host memory, four times the quota.
  step out_of_core 400 gist_of_bench "$bin/troupe-bench" gpu_out_of_core --device cuda:0 "${quick[@]}" --json "$out/out_of_core.json"
else
  absent benchmarks "$reason"
  absent out_of_core "$reason"
fi

# ---- the results ----------------------------------------------------------------------------------------------------

{
  printf '{\n  "bundle": {"commit": %s, "cuda": %s, "glibc": %s},\n' "$(json_text "$(about commit)")" \
    "$(json_text "$(about cuda)")" "$(json_text "$(about glibc)")"
  printf '  "host": {"driver": %s, "gpu": %s, "compute_capability": %s, "memory_free": %s, "glibc": %s, "nvrtc": %s, "kernel": %s},\n' \
    "$(json_text "$driver")" "$(json_text "$gpu")" "$(json_text "$capability")" "$(json_text "$memory")" \
    "$(json_text "$glibc")" "$(json_text "$nvrtc")" "$(json_text "$(uname -sr)")"
  printf '  "devices": ['
  comma=""
  while IFS= read -r line; do
    printf '%s\n    %s' "$comma" "$(json_text "$line")"
    comma=","
  done < <(device_lines)
  printf '],\n  "steps": ['
  comma=""
  for i in "${!names[@]}"; do
    printf '%s\n    {"step": %s, "result": %s, "seconds": %s, "detail": %s}' "$comma" "$(json_text "${names[i]}")" \
      "$(json_text "${results[i]}")" "${seconds[i]}" "$(json_text "${details[i]}")"
    comma=","
  done
  printf '\n  ]\n}\n'
} > "$out/results.json"

printf '\n%-20s %-7s %9s\n' step result seconds
code=0
for i in "${!names[@]}"; do
  why=""
  if [[ ${results[i]} != ok ]]; then why="  ${details[i]}"; fi
  printf '%-20s %-7s %9s%s\n' "${names[i]}" "${results[i]}" "${seconds[i]}" "$why"
  if [[ ${results[i]} == failed ]]; then code=1; fi
done
printf '%s/results.json\n' "$out"
exit $code
