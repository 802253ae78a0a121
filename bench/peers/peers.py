"""What the comparisons with llama.cpp share: where things are, and how each engine is run."""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Peers:
    """The two engines, and a folder for what they read and write."""

    def __init__(self, build, data):
        self.culprit = pathlib.Path(build) / "culprit"
        self.data = pathlib.Path(data) if data else HERE.parent.parent / "build" / "peers"
        self.data.mkdir(parents=True, exist_ok=True)
        if not (HERE / "node_modules" / "node-llama-cpp").is_dir():
            sys.exit("llama.cpp is not there: bench/peers/setup fetches it")
        if not self.culprit.is_file():
            sys.exit(f"{self.culprit} is not there: build it first")

    def lab(self, *words):
        return run([self.culprit, "lab", *words])

    def llama(self, *words):
        return run(["node", HERE / "llama.mjs", *words])

    def model(self, name, scheme, seed, *shape):
        """The GGUF of a random model; made where it is not there yet."""
        path = self.data / f"{name}-{scheme}-{seed}{''.join(shape)}.gguf"
        if not path.exists():
            self.lab("make-model", "--preset", name, "--scheme", scheme, "--seed", str(seed), *shape, "--format", "gguf", "-o", path)
        return path


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit")
    parser.add_argument("--data", default=None, help="where models go (default: build/peers)")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def llama_version():
    metadata = next(HERE.glob("node_modules/@node-llama-cpp/linux-x64/bins/*/_nlcBuildMetadata.json"))
    package = json.loads((HERE / "package.json").read_text())["dependencies"]["node-llama-cpp"]
    return f"llama.cpp {json.loads(metadata.read_text())['buildOptions']['llamaCpp']['release']} of node-llama-cpp {package}"


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
