#!/usr/bin/env python3
"""The Debian packages: what they hold and ask for, and the program run from where they are unpacked."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CULPRIT = pathlib.Path(os.environ["CULPRIT"]).resolve()
SKIPPED = 77
HELD = {
    "culprit": {"usr/bin/culprit", "usr/share/man/man1/culprit.1", "usr/share/bash-completion/completions/culprit",
                "usr/share/zsh/site-functions/_culprit", "usr/share/fish/vendor_completions.d/culprit.fish", "usr/share/doc/culprit/copyright",
                "usr/share/doc/culprit/CHANGELOG.md", "usr/share/doc/culprit/guide.md", "usr/share/doc/culprit/profile.md",
                "usr/share/doc/culprit/json.md"},
    "culprit-dev": {"usr/include/culprit/profile.h", "usr/lib/libculprit_profile.a", "usr/lib/cmake/culprit/culpritConfig.cmake",
                    "usr/lib/cmake/culprit/culpritConfigVersion.cmake", "usr/lib/cmake/culprit/culpritTargets.cmake",
                    "usr/share/doc/culprit-dev/copyright"},
    "culprit-mpi": {"usr/lib/culprit/libculprit_mpi.so", "usr/share/doc/culprit-mpi/copyright"},
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_contents(package, root):
    name = run("dpkg-deb", "-f", package, "Package").strip()
    run("dpkg-deb", "-x", package, root / name)
    held = {str(p.relative_to(root / name)) for p in (root / name).rglob("*") if not p.is_dir()}
    extra = {f for f in held - HELD[name] if not f.startswith("usr/lib/cmake/culprit/culpritTargets-")}
    assert not HELD[name] - held and not extra, f"{name} lacks {HELD[name] - held}, has {extra} too much"
    needs = run("dpkg-deb", "-f", package, "Depends")
    assert ("mpi" in needs) == (name == "culprit-mpi"), f"{name} depends on {needs}"
    if name == "culprit":
        assert "libc6" in needs and "libfmt" in needs and "libsqlite3" in needs, needs
    for file in (root / name).rglob("*"):
        assert not file.stat().st_mode & 0o022, f"{file} may be written by others"
    return name


def check_program(root):
    """From the unpacked tree, away from the build folder."""
    program = root / "culprit/usr/bin/culprit"
    assert run(program, "--version").startswith("culprit 0.")
    run(program, "forge", "glm5", "--steps", "2", "-o", root / "glm5.json")
    assert "whole-pool-cast costs" in run(program, root / "glm5.json")
    assert (root / "culprit/usr/share/man/man1/culprit.1").read_text() == run(program, "--man")
    for shell, file in (("bash", "bash-completion/completions/culprit"), ("zsh", "zsh/site-functions/_culprit"),
                        ("fish", "fish/vendor_completions.d/culprit.fish")):
        assert (root / "culprit/usr/share" / file).read_text() == run(program, "--completions", shell), shell


def main():
    cpack = shutil.which("cpack")
    config = CULPRIT.parent / "CPackConfig.cmake"
    if not cpack or not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps") or not config.exists():
        print("skipped: needs cpack and the tools of Debian (dpkg-dev)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="culprit-package-") as name:
        here = pathlib.Path(name)
        # Not a matter of how well it is packed.
        run(cpack, "--config", config, "-G", "DEB", "-B", here / "out", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        packages = sorted((here / "out").glob("*.deb"))
        names = {check_contents(package, here) for package in packages}
        assert {"culprit", "culprit-dev"} <= names <= set(HELD), names
        check_program(here)
    print(f"packages: {', '.join(sorted(names))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
