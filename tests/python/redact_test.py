#!/usr/bin/env python3
"""--redact: names planted wherever a trace and its surroundings hold them are in no form of the answer, and no figure moves.

The same trace without the flag leaks them, which shows that the search can find them.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/lib"))
from kineto import Trace  # noqa: E402
from planted import TO_BF16  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
USER, HOST, MODEL, PROJECT = "carolyn", "gpu-node-17", "SecretModel-7B", "acme-rag"
SECRETS = (USER, HOST, MODEL, "secretmodel", PROJECT, "private_serving", "vault", "GLM-5", "zai-org")
HOME = f"/home/{USER}/{PROJECT}"
SITE = f"{HOME}/venv/lib/python3.11/site-packages"
TABLES = ("steps", "budget", "kernels", "layers", "ops", "sources", "gaps", "comm", "memory")


def plant(folder, rank=None, slower=1):
    """A decode with a pool cast under frames of a private server, public libraries and a model's own file."""
    t = Trace(rank=rank)
    if rank is not None:
        t.header["distributedInfo"]["world_size"] = 2
    t.gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, memory=102_000_000_000, major=12)
    for step in range(6):
        base = 30_000 * step
        t.mark("step[DECODE bs=1]", base - 60, 29_000)
        t.mark(f"request of {USER} on {HOST}: {MODEL} from /vault/weights/{MODEL}/config.json, GLM-5 tokenizer", base - 59, 28_000)
        t.frame(f"{HOME}/private_serving.py(12): main", base - 58, 28_900)
        t.frame(f"{SITE}/sglang/srt/models/secretmodel_v2.py(88): forward", base - 57, 28_800, CallFrom=f"{HOME}/private_serving.py:19")
        t.frame("nn.Module: SecretModelForCausalLM_0", base - 56, 28_700)
        for layer in range(8):
            at = base + 3_000 * layer
            t.frame(f"{SITE}/sglang/srt/layers/attention/flashinfer_mla_backend.py(595): forward_decode", at - 30, 25,
                    CallFrom="sglang/srt/models/secretmodel_v2.py:201")
            t.frame("<built-in method to of Tensor object at 0x7f01>", at - 25, 10, CallFrom="flashinfer_mla_backend.py:639")
            t.kernel(TO_BF16, 800 * slower, ts=at, grid=(557_496, 1, 1), op="aten::copy_", dims=[[495_552, 1, 576], [495_552, 1, 576], []],
                     types=["c10::BFloat16", "c10::Float8_e4m3fn", "Scalar"])
            t.frame(f"/tmp/torchinductor_{USER}/ab/cab.py(9): call", at + 860, 25)
            t.kernel("gemm_kernel", 500, ts=at + 900, launch_at=at + 870, op=f"{HOME}/ops.py::fused")
    name = f"{HOST}_4242.1750000000000.pt.trace.json" if rank is None else f"{MODEL}-{HOST}-rank{rank}.json"
    t.write(folder / name)
    return folder / name


def run(*arguments, code=0):
    done = subprocess.run([CULPRIT, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout


def leaks(text):
    return [secret for secret in SECRETS if re.search(re.escape(secret), text, re.I)]


def figures(value):
    """A document without its texts: what of it is measured."""
    if isinstance(value, dict):
        return {key: figures(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [figures(inner) for inner in value]
    return None if isinstance(value, str) else value


def forms(folder, trace, config):
    """(what, arguments) of every way to an answer about the trace; files are written into `folder`."""
    model = ("--model", config, "--tp", "8")
    yield "text", (trace, "--all", *model)
    yield "short text", (trace, "--width", "120")
    yield "json", (trace, "--json", *model)
    yield "markdown", (trace, "--markdown", "--all", *model)
    yield "files", (trace, "--json", folder / "out.json", "--markdown", folder / "out.md", "--html", folder / "out.html", *model)
    for table in TABLES:
        yield table, (table, trace, "--all")
        yield f"{table} json", (table, trace, "--json")
        yield f"{table} markdown", (table, trace, "--markdown", "--all")
    for line in run("sql", ".tables").splitlines():
        name = line.split()[0]
        yield f"sql {name}", ("sql", trace, f"SELECT * FROM {name}", "--json", *model)
    yield "explain", ("explain", trace, "--suspect", "whole-pool-cast", *model)
    yield "explain json", ("explain", trace, "--suspect", "whole-pool-cast", "--json", *model)
    yield "whatif", ("whatif", trace, "--remove", "whole-pool-cast")
    yield "floor", ("floor", trace, "--batch", "1", *model)
    yield "floor json", ("floor", trace, "--batch", "1", "--json", *model)
    yield "floor alone", ("floor", "--gpu", "B200 SXM", *model)
    yield "named model", ("floor", "--gpu", "B200 SXM", "--model", "zai-org/GLM-5", "--tp", "8")


def written(folder):
    """The texts of the files in a folder, which is empty then."""
    text = ""
    for file in folder.iterdir():
        text += file.read_text()
        file.unlink()
    return text


def check_forms(folder, trace, config):
    out = folder / "out"
    out.mkdir()
    leaked = set()
    for what, arguments in forms(out, trace, config):
        text = run(*arguments, "--redact")
        assert text, f"{what}: no answer"
        text += written(out)
        assert not leaks(text), f"{what}: {leaks(text)} in\n{text[:3000]}"
        leaked |= set(leaks(run(*arguments) + written(out)))
    assert leaked >= {USER, HOST, MODEL, PROJECT, "private_serving", "GLM-5"}, f"without the flag only {leaked} are found: the search is blind"


def check_figures(trace, config):
    """The answer is the same in all that is no text, and still names the line in the public library."""
    arguments = (trace, "--json", "--model", config, "--tp", "8")
    plain, redacted = json.loads(run(*arguments)), json.loads(run(*arguments, "--redact"))
    assert figures(plain) == figures(redacted)
    assert [s["id"] for s in plain["suspects"]] == [s["id"] for s in redacted["suspects"]] != []
    [where] = next(s["where"] for s in redacted["suspects"] if s["id"] == "whole-pool-cast")
    assert where["file"].endswith("sglang/srt/layers/attention/flashinfer_mla_backend.py") and where["line"] == 639, where
    assert redacted["inputs"][0]["path"] == "trace1.json" and redacted["model"]["name"] == "model"
    again = run(*arguments, "--redact", "--threads", "1")
    assert again == run(*arguments, "--redact", "--threads", "7"), "the answer depends on the number of threads"


def check_several(folder):
    """Ranks, a comparison, and input without a verdict."""
    ranks = folder / "ranks"
    ranks.mkdir()
    for rank in range(2):
        plant(ranks, rank, slower=1 + rank / 4)
    for arguments in ((ranks, "--all"), (ranks, "--json"), (ranks, "--markdown")):
        text = run(*arguments, "--redact")
        assert text and not leaks(text), (arguments, leaks(text), text[:2000])
    before, after = sorted(ranks.iterdir())
    for form in ("--all", "--json", "--markdown"):
        text = run("compare", before, before, form, "--redact")
        assert text and not leaks(text), (form, leaks(text), text[:2000])
    broken = folder / f"{USER}-{MODEL}.json"
    broken.write_text(after.read_text()[:20_000])
    text = run(broken, "--json", "--redact", code=2 if b"kernel" not in broken.read_bytes() else 0)
    assert not leaks(text), (leaks(text), text[:2000])
    empty = folder / f"{USER}.json"
    empty.write_text('{"traceEvents": []}')
    text = run(empty, "--json", "--redact", code=2)
    assert text and not leaks(text), text
    for place in (folder / "missing" / f"{USER}.json",):
        assert not leaks(run(place, "--json", "--redact", code=2))


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-redact-") as name:
        folder = pathlib.Path(name) / "vault" / PROJECT
        folder.mkdir(parents=True)
        config = folder / MODEL / "config.json"
        config.parent.mkdir()
        table = json.loads(run("forge", "glm5", "--steps", "1", "-o", folder / "glm5.json", "--emit-config", folder / "glm5") or "{}")
        assert table == {}
        settings = json.loads((folder / "glm5/config.json").read_text())
        settings["_name_or_path"] = f"acme/{MODEL}"
        config.write_text(json.dumps(settings))
        (folder / "glm5.json").unlink()
        trace = plant(folder)
        check_forms(folder, trace, config)
        check_figures(trace, config)
        check_several(folder)
    print("redacted: nothing leaks, no figure moves")


if __name__ == "__main__":
    sys.exit(main())
