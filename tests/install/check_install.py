#!/usr/bin/env python3
"""Installs culprit::profile, moves it, builds the example against it as a stranger would, and reads what that records.

Usage: check_install.py --build BUILD --source SOURCE --cmake CMAKE --compiler CXX --culprit CULPRIT
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PIECES = ("culprit/profile.h", "libculprit_profile.a", "culpritConfig.cmake", "culpritConfigVersion.cmake", "culpritTargets.cmake")
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "source", "cmake", "compiler", "culprit"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="culprit-install-") as folder:
        here = pathlib.Path(folder)
        run(options.cmake, "--install", options.build, "--prefix", here / "first", "--component", "profile")
        prefix = (here / "first").rename(here / "moved")
        installed = [str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file()]
        missing = [piece for piece in PIECES if not any(name.endswith(piece) for name in installed)]
        if missing:
            sys.exit(f"not installed: {missing}; there are {installed}")

        example = here / "example"
        example.mkdir()
        for name in ("CMakeLists.txt", "decode_loop.cc"):
            (example / name).write_text((options.source / "examples/decode_loop" / name).read_text())
        run(options.cmake, "-S", example, "-B", here / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
            f"-DCMAKE_CXX_FLAGS={STRICT}", "-DCMAKE_BUILD_TYPE=Release")
        run(options.cmake, "--build", here / "build")
        run(here / "build/decode_loop", "--steps", "8", cwd=here,
            env={**os.environ, "CULPRIT_PROFILE_DECODE": "1", "CULPRIT_PROFILE_WARMUP": "2", "CULPRIT_PROFILE_STEPS": "5"})
        run(sys.executable, options.source / "tools/validate_trace.py", here / "decode.trace.json.gz")
        answer = json.loads(run(options.culprit, "--json", here / "decode.trace.json.gz"))
        if answer["steps"]["count"] != 5 or answer["steps"]["kind"] != "decode":
            sys.exit(f"culprit found other steps: {answer['steps']}")
    print(f"installed: {len(installed)} files; the example was built, run and read")


if __name__ == "__main__":
    main()
