#!/usr/bin/env python3
"""The completions in their shells, and the manual page under mandoc's lint.

bash and zsh run on a terminal of their own, where words are typed and TAB is pressed; fish tells its candidates. Each must know every
command of `culprit help`, and flags, values and files behind them.
"""
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

CULPRIT = os.environ["CULPRIT"]
SETTINGS = {**os.environ, "TERM": "dumb", "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null"}
SHELLS = ("bash", "zsh", "fish")

# What is typed, and what it becomes at the first TAB; None: nothing fits, so it stays.
TYPED = [
    ("culprit kern", "culprit kernels "),
    ("culprit kernels --time-u", "culprit kernels --time-unit "),
    ("culprit --server-i", "culprit --server-info "),
    ("culprit budget --color al", "culprit budget --color always "),
    ("culprit t.json --time-unit m", "culprit t.json --time-unit ms "),
    ("culprit explain t.json --suspect whole-pool-ca", "culprit explain t.json --suspect whole-pool-cast "),
    ("culprit trac", "culprit traced.json "),
    ("culprit gaps trac", "culprit gaps traced.json "),
    ("culprit --html trac", "culprit --html traced.json "),
    ("culprit compare traced.json trac", "culprit compare traced.json traced.json "),
    ("culprit list gp", "culprit list gpus "),
    ("culprit help expl", "culprit help explain "),
    ("culprit lab ben", "culprit lab bench "),
    ("culprit lab bench --preset tiny-gl", "culprit lab bench --preset tiny-glm-5 "),
    ("culprit lab bench --launch gr", "culprit lab bench --launch graph "),
    ("culprit lab run --model trac", "culprit lab run --model traced.json "),
    ("culprit lab make-model --form", "culprit lab make-model --format "),
    ("culprit forge host-b", "culprit forge host-bound "),
    ("culprit forge glm5 --marks sg", "culprit forge glm5 --marks sglang "),
    ("culprit floor --remo", None),  # a flag of another command
    ("culprit lab bench --form", None),
]


class Terminal:
    """A shell on a terminal of its own. Behind each line ^T prints what stands on it."""

    def __init__(self, command, setup, folder):
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, SETTINGS)
        self.send(setup + "\necho rea''dy\n")
        self.until("ready\r")

    def send(self, text):
        os.write(self.fd, text.encode())

    def until(self, mark, seconds=20):
        seen, end = "", time.monotonic() + seconds
        while mark not in seen:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {mark!r} in {seconds} s; the shell says {seen[-2000:]!r}")
            seen += os.read(self.fd, 65536).decode("utf-8", "replace")
        return seen

    def complete(self, typed):
        """The line after TAB."""
        self.send(typed + "\t\x14")
        line = re.search(r"<<(.*?)>>", self.until(">>"), re.S)[1]
        self.send("\x15\n")
        return line.replace("\r", "").replace("\n", "")

    def close(self):
        os.close(self.fd)
        os.waitpid(self.child, 0)


def bash(script, folder):
    setup = f"PS1=; bind 'set enable-bracketed-paste off'; source {script}; bind -x '\"\\C-t\": echo \"<<$READLINE_LINE>>\"'"
    return Terminal(["bash", "--norc", "--noprofile", "-i"], setup, folder)


def zsh(script, folder):
    setup = (f"PS1= PROMPT_EOL_MARK=; unsetopt zle_bracketed_paste prompt_cr; fpath=({script.parent} $fpath); autoload -Uz compinit; compinit -u -D; "
             "show() { zle -I; print -r -- \"<<$BUFFER>>\" }; zle -N show; bindkey '^T' show; bindkey '^U' kill-whole-line; LISTMAX=10000")
    return Terminal(["zsh", "-f", "-i"], setup, folder)


def fish_candidates(script, folder, typed):
    command = f"source {script}; complete --do-complete {typed!r}"
    out = subprocess.run(["fish", "--no-config", "-c", command], cwd=folder, env={**SETTINGS, "HOME": str(folder)}, capture_output=True, text=True,
                         check=True, timeout=60).stdout
    return [line.split("\t")[0] for line in out.splitlines()]


def prefixes(commands):
    """(typed, whole) of each command: the shortest beginning that no other command has."""
    for command in commands:
        others = [c for c in commands if c != command]
        length = next(n for n in range(1, len(command) + 1) if n == len(command) or not any(o.startswith(command[:n]) for o in others))
        yield command[:length], command


def cases(commands, inner):
    yield from TYPED
    for typed, whole in prefixes(commands):
        yield f"culprit {typed}", f"culprit {whole} "
    for typed, whole in prefixes(inner):
        yield f"culprit lab {typed}", f"culprit lab {whole} "


def check_terminal(shell, start, script, folder, all_cases):
    terminal = start(script, folder)
    for typed, wanted in all_cases:
        got = terminal.complete(typed)
        if wanted is None:  # nothing, or as far as what fits agrees
            assert got.startswith(typed) and not got.endswith(" "), f"{shell}: {typed!r} became {got!r}"
        else:
            assert got.rstrip(" =") == wanted.rstrip(), f"{shell}: {typed!r} became {got!r}, not {wanted!r}"
    terminal.close()


def check_fish(script, folder, all_cases):
    for typed, wanted in all_cases:
        got = fish_candidates(script, folder, typed)
        if wanted is None:
            assert len(got) != 1, f"fish: {typed!r} has {got}"
        else:
            assert got == [wanted.split()[-1]], f"fish: {typed!r} has {got}, not {wanted.split()[-1]!r}"


def commands_of(*words):
    text = subprocess.run([CULPRIT, *words], capture_output=True, text=True, check=True).stdout
    part = text.split("commands\n", 1)[1].split("\nflags", 1)[0] if "commands\n" in text else text.split("\n\n", 2)[2].split("\n\n")[0]
    return re.findall(r"^  ([a-z][a-z-]+)\s", part, re.M)


def check_manual(folder):
    page = subprocess.run([CULPRIT, "--man"], capture_output=True, text=True, check=True).stdout
    (folder / "culprit.1").write_text(page)
    lint = subprocess.run(["mandoc", "-T", "lint", folder / "culprit.1"], capture_output=True, text=True, check=False)
    assert lint.returncode == 0 and not lint.stdout + lint.stderr, lint.stdout + lint.stderr
    read = subprocess.run(["mandoc", "-T", "ascii", "-O", "width=100", folder / "culprit.1"], capture_output=True, text=True, check=True).stdout
    read = re.sub(".\b", "", read)  # bold and underlined, as typewriters do it
    help_text = subprocess.run([CULPRIT, "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_text, re.M))
    lab = subprocess.run([CULPRIT, "lab", "bench", "--help"], capture_output=True, text=True, check=True).stdout
    flags |= set(re.findall(r"^  (--[a-z-]+)", lab, re.M))
    missing = [flag for flag in sorted(flags) if not re.search(rf"{flag}\b", read)]
    assert len(flags) > 40 and not missing, f"the manual page lacks {missing}"
    for command in commands_of("--help"):
        assert re.search(rf"^ +{command}\b", read, re.M), f"the manual page lacks the command {command}"


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-completions-") as name:
        folder = pathlib.Path(name)
        check_manual(folder)
        here = folder / "here"
        here.mkdir()
        (here / "traced.json").write_text("{}")
        scripts = {}
        for shell in SHELLS:
            (folder / shell).mkdir()
            scripts[shell] = folder / shell / ("_culprit" if shell == "zsh" else "culprit")
            scripts[shell].write_text(subprocess.run([CULPRIT, "--completions", shell], capture_output=True, text=True, check=True).stdout)
        commands, inner = commands_of("--help"), commands_of("lab", "--help")
        assert len(commands) > 12 and "bench" in inner, (commands, inner)
        all_cases = list(cases(commands, inner))
        check_terminal("bash", bash, scripts["bash"], here, all_cases)
        check_terminal("zsh", zsh, scripts["zsh"], here, all_cases)
        check_fish(scripts["fish"], here, all_cases)
        wrong = subprocess.run([CULPRIT, "--completions", "tcsh"], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "bash, zsh or fish" in wrong.stderr and not wrong.stdout
    print(f"completions: {len(all_cases)} lines in {len(SHELLS)} shells; the manual page is clean")


if __name__ == "__main__":
    sys.exit(main())
