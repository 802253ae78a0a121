#!/usr/bin/env bash
# Fails when a source file is not as clang-format 14 would write it. Usage: tools/check_format.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files -- '*.h' '*.cc')
if [[ ${1:-} == --fix ]]; then
  clang-format-14 -i "${files[@]}"
else
  clang-format-14 --dry-run --Werror "${files[@]}"
  echo "format: ${#files[@]} files"
fi
