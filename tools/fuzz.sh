#!/bin/bash
# Runs the fuzz targets one after another, each for MINUTES, with the sanitizers, and says which lines of its reader they reached.
# Usage: tools/fuzz.sh [MINUTES [TARGET...]]     targets: known pack nsight trace safetensors gguf; corpora and faults stay in build/corpus
# MINUTES 0: the lines that the corpus reaches, without fuzzing.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-5}
shift || true
[ $# -gt 0 ] || set -- known pack nsight trace safetensors gguf
declare -A reads=(
  [known]="src/known/kernel_*.cc src/known/launch_geometry.cc"
  [pack]="src/base/inflate.cc"
  [nsight]="src/ingest/nsight*.cc src/ingest/sqlite.cc"
  [trace]="src/ingest/document.cc src/ingest/event.cc src/ingest/ingest.cc src/ingest/joiner.cc src/ingest/key_predictor.cc
           src/ingest/number.cc src/ingest/rows.cc src/ingest/scan.h src/ingest/stretch.cc src/ingest/text.cc
           src/base/source.cc src/base/inflate.cc"
  [safetensors]="lab/files/mapped_file.cc lab/files/safetensors.cc lab/files/safetensors_header.cc
                 lab/files/layout.cc lab/files/bind.cc lab/files/bind_hf.cc lab/model/config.cc lab/model/config_json.cc
                 lab/model/json.cc"
  [gguf]="lab/files/gguf.cc lab/files/gguf_types.cc lab/files/gguf_config.cc lab/files/layout.cc lab/files/bind.cc
          lab/files/bind_gguf.cc lab/model/config.cc")
for preset in fuzz coverage; do
  cmake --preset "$preset" > /dev/null
  cmake --build --preset "$preset" --target "${@/%/_fuzz}" > /dev/null
done
faults=0
for target in "$@"; do
  corpus=build/corpus/$target
  mkdir -p "$corpus"
  options=(-rss_limit_mb=3000 -timeout=10 -print_final_stats=1 "-artifact_prefix=$corpus.")
  [ -f "tests/fuzz/$target.dict" ] && options+=("-dict=tests/fuzz/$target.dict")
  if [ "$minutes" -gt 0 ]; then
    nice -n 19 "build/fuzz/tests/fuzz/${target}_fuzz" "${options[@]}" "-max_total_time=$((minutes * 60))" \
      "$corpus" "tests/fuzz/seeds/$target" > "$corpus.log" 2>&1 || { faults=1; echo "$target: a fault, see $corpus.log"; }
    grep -E "number_of_executed_units|slowest_unit" "$corpus.log" || true
  fi
  LLVM_PROFILE_FILE=$corpus.profraw "build/coverage/tests/fuzz/${target}_fuzz" -runs=0 -rss_limit_mb=3000 "$corpus" \
    "tests/fuzz/seeds/$target" > /dev/null 2>&1 || { faults=1; echo "$target: its corpus holds a fault"; continue; }
  llvm-profdata-14 merge -sparse "$corpus.profraw" -o "$corpus.profdata"
  # shellcheck disable=SC2086  # a list of patterns
  names=" $(basename -a ${reads[$target]} | tr '\n' ' ')"
  llvm-cov-14 report "build/coverage/tests/fuzz/${target}_fuzz" "-instr-profile=$corpus.profdata" |
    awk -v target="$target" -v names="$names" '
      {file = $1; sub(/.*\//, "", file)}
      index(names, " " file " ") {
        printf "%-8s %-28s %5d lines, %s reached\n", target, $1, $8, $10
        lines += $8
        missed += $9
      }
      END {printf "%-8s %-28s %5d lines, %.1f%% reached\n", target, "all", lines, 100 * (lines - missed) / lines}'
done
exit $faults
