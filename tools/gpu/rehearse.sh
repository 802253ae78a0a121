#!/usr/bin/env bash
# Rehearses the recording on a CPU: control flow, manifests, timing, packing, deadlines, failing cases.
# Figures taken here mean nothing. Without PyTorch only the parts that need none are tested.
set -euo pipefail
cd "$(dirname "$0")"

run() { echo "== $*"; "$@"; }
expect_code() {  # expect_code CODE COMMAND...
  local wanted=$1 code=0
  shift
  run "$@" || code=$?
  if [[ $code -ne $wanted ]]; then
    echo "exit code $code, expected $wanted: $*" >&2
    exit 1
  fi
}

export PYTHONDONTWRITEBYTECODE=1
run python3 test_shorten.py
run python3 test_judge.py

python=""
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import torch' 2>/dev/null; then python=$candidate; break; fi
done
if [[ -z $python ]]; then
  echo "skipped: no PyTorch (Debian: python3-torch); the recording itself was not rehearsed"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record() { "$python" record_cases.py --device cpu --warmup 4 --steps 6 "$@"; }

# The guide lists every case.
"$python" record_cases.py --list | while read -r name rest; do
  grep -q "^| $name |" ../../docs/gpu-evidence.md || { echo "docs/gpu-evidence.md lacks $name" >&2; exit 1; }
done

# Every case; three more fail early, one of them by killing the process: the rest must be recorded,
# and a budget too small for whole traces must shorten them, never drop a figure.
expect_code 1 record --rehearsal failing --out "$work/all" --budget-mib 0.8
run python3 check_recording.py "$work/all" --rehearsal
run python3 check_rehearsal.py "$work/all" failing

# A deadline in the middle of a case, and one that only a killed process meets; both mostly sleep.
cut_short() {
  expect_code 1 record --rehearsal "$1" --out "$work/$1" --deadline 18 --pack-seconds 6
  run python3 check_recording.py "$work/$1" --rehearsal
  run python3 check_rehearsal.py "$work/$1" "$1"
}
cut_short endless > "$work/endless.log" 2>&1 & endless=$!
cut_short hanging > "$work/hanging.log" 2>&1 & hanging=$!
wait "$endless" || { cat "$work/endless.log"; exit 1; }
wait "$hanging" || { cat "$work/hanging.log"; exit 1; }

# A recording that was tampered with, or that is a rehearsal, must not pass for evidence.
expect_code 1 python3 check_recording.py "$work/all" > /dev/null
echo "rehearsal passed"
