#!/usr/bin/env bash
# clang-tidy over the sources of the tool. Usage: tools/tidy.sh BUILD_FOLDER [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tools/tidy.sh BUILD_FOLDER [FILE...]}
shift
files=("$@")
[[ ${#files[@]} -gt 0 ]] || mapfile -t files < <(git ls-files -- 'src/*.cc' 'forge/*.cc' 'app/*.cc')
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p "$build" --quiet 2> >(grep -v 'warnings generated\|^Suppressed\|^Use -header-filter' >&2 || true)
echo "lint: ${#files[@]} files"
