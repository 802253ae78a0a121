#!/usr/bin/env bash
# clang-tidy over the sources. Usage: tools/tidy.sh [--deep | --since LIST] BUILD_FOLDER [FILE...]
# --since: only what changed since tools/affected.py wrote that list. --deep adds clang's static analyzer, which takes ten minutes
# of two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
checks=()
folders=(src ranks forge lab profile app)
files=()
if [[ ${1:-} == --since ]]; then
  mapfile -t files < <(python3 tools/affected.py "$2" "${folders[@]}")
  [[ ${#files[@]} -gt 0 ]] || { echo "lint: nothing changed since $2"; exit 0; }
  shift 2
fi
if [[ ${1:-} == --deep ]]; then
  checks=(--checks=clang-analyzer-*,-clang-analyzer-optin.performance.Padding)
  shift
fi
build=${1:?usage: tools/tidy.sh [--deep] BUILD_FOLDER [FILE...]}
shift
files+=("$@")
[[ ${#files[@]} -gt 0 ]] || mapfile -t files < <(git ls-files -- "${folders[@]/%//*.cc}")
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 4 clang-tidy-14 -p "$build" --quiet "${checks[@]}" --extra-arg=-Wno-unknown-warning-option \
    2> >(grep -v 'warnings generated\|^Suppressed\|^Use -header-filter' >&2 || true)
echo "lint: ${#files[@]} files"
