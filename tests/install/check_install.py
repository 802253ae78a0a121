#!/usr/bin/env python3
"""Installs culprit::profile, moves it, builds the example and the program of docs/profile.md against it as a stranger would, and
reads what they record.

Usage: check_install.py --build BUILD --source SOURCE --cmake CMAKE --compiler CXX --culprit CULPRIT
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PIECES = ("culprit/profile.h", "libculprit_profile.a", "culpritConfig.cmake", "culpritConfigVersion.cmake", "culpritTargets.cmake")
CODE = re.compile(r"^```cpp\n(.*?)^```$", re.M | re.S)
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build_and_run(name, project, program, prefix, options, here):
    folder = here / name
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(project)
    (folder / "decode_loop.cc").write_text(program)
    run(options.cmake, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
        f"-DCMAKE_CXX_FLAGS={STRICT}", "-DCMAKE_BUILD_TYPE=Release")
    run(options.cmake, "--build", folder / "build")
    run(folder / "build/decode_loop", cwd=folder,
        env={**os.environ, "CULPRIT_PROFILE_DECODE": "1", "CULPRIT_PROFILE_WARMUP": "2", "CULPRIT_PROFILE_STEPS": "5"})
    run(sys.executable, options.source / "tools/validate_trace.py", folder / "decode.trace.json.gz")
    answer = json.loads(run(options.culprit, "--json", folder / "decode.trace.json.gz"))
    if answer["steps"]["count"] != 5 or answer["steps"]["kind"] != "decode":
        sys.exit(f"{name}: culprit found other steps: {answer['steps']}")


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

        project = (options.source / "examples/decode_loop/CMakeLists.txt").read_text()
        programs = {"example": (options.source / "examples/decode_loop/decode_loop.cc").read_text(),
                    "document": CODE.search((options.source / "docs/profile.md").read_text())[1]}
        for name, program in programs.items():
            build_and_run(name, project, program, prefix, options, here)
    print(f"installed: {len(installed)} files; the example and the program of docs/profile.md were built, run and read")


if __name__ == "__main__":
    main()
