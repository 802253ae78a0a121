#!/usr/bin/env python3
"""What --html writes: the answer of --json, a drawing that follows its schema and the trace, nothing that asks a network.

Skips where culprit was built without the page.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tools")]
import validate_json  # noqa: E402
from pages import HOSTILE, MOST_BYTES, carried, hostile_trace, page_of, ranks_trace, stalled_trace  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
SCHEMA = json.loads((ROOT / "docs/schema/drawing.schema.json").read_text())
SKIPPED = 77


def sums(differences):
    total, out = 0, []
    for d in differences:
        total += d
        out.append(total)
    return out


def check_policy(text):
    """The policy allows this script and this style, by their hashes, and nothing from anywhere."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; "), policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy, policy
    for tag in ("script", "style"):
        body = re.search(f"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy, f"the policy does not allow the page's own {tag}"
    own = text
    for data in carried(text):
        own = own.replace(data, "")
    assert not re.search(r"<(?:link|img|iframe|object|embed|base)\b|\bsrc=|\bimport\s*\(|innerHTML", own)


def check_columns(drawing):
    threads = drawing["threads"]
    for lane in [*drawing["streams"], *threads]:
        lengths = {len(column) for column in lane.values() if isinstance(column, list)}
        assert len(lengths) == 1, f"columns of {lane['name']} differ in length"
        begins = sums(lane["begin_ns"])
        assert begins == sorted(begins)
    calls = sum(len(lane["ns"]) for lane in threads)
    kinds = [kind for lane in threads for kind in lane["kind"]]
    for lane in drawing["streams"]:
        assert all(-len(drawing["names"]) <= k for k in lane["kernel"])
        assert all(l == -1 or (0 <= l < calls and kinds[l] == 3) for l in lane["launch"]), "a launch is no call"
    assert all(0 <= n < len(drawing["names"]) for lane in threads for n in lane["name_index"])


def check_page(trace, folder, *flags):
    page = folder / "page.html"
    page.unlink(missing_ok=True)
    answer, code = page_of(CULPRIT, trace, page, *flags)
    text = page.read_text()
    assert text.startswith('<!doctype html><html lang="en" data-culprit="1">')
    assert page.stat().st_size <= MOST_BYTES, f"{page.stat().st_size} bytes"
    check_policy(text)
    answer_text, drawing_text = carried(text)
    for raw in "<>&\u2028\u2029":
        assert raw not in answer_text + drawing_text, f"{raw!r} stands in the page's data"
    assert json.loads(answer_text) == answer, "the page's answer is not that of --json"
    drawing = json.loads(drawing_text)
    if drawing is not None:
        problems = validate_json.schema_problems(SCHEMA, drawing)
        assert not problems, problems[:3]
        check_columns(drawing)
        assert len(drawing["accused"]) == len(answer["suspects"])
    return answer, drawing, code


def check_glm5(folder):
    """The drawn step holds what the trace was forged with: one cast in each of 78 layers, under its launch."""
    trace = folder / "glm5.json"
    subprocess.run([CULPRIT, "forge", "glm5", "--steps", "6", "-o", trace], check=True, capture_output=True)
    answer, drawing, _ = check_page(trace, folder)
    assert drawing["step"]["ns"] == sorted(drawing["steps"]["ns"], key=lambda ns: abs(ns - answer["steps"]["median_ns"]))[0]
    [accused] = drawing["accused"]
    stream = next(lane for lane in drawing["streams"] if set(accused["kernels"]) & set(lane["kernel"]))
    casts = [(b, n, l) for b, n, k, l in zip(sums(stream["begin_ns"]), stream["ns"], stream["kernel"], stream["launch"], strict=True)
             if k in accused["kernels"] and 0 <= b < drawing["step"]["ns"]]
    assert len(casts) == 78, len(casts)
    mean = sum(n for _, n, _ in casts)
    assert abs(mean - answer["suspects"][0]["ns_per_step"]) < 0.01 * mean, "the drawn casts do not take what the suspect is blamed for"
    begins = sums(drawing["threads"][0]["begin_ns"])
    assert all(l >= 0 and begins[l] <= b for b, _, l in casts), "a cast without its launch, or before it"
    assert len(drawing["layers"]["ns"]) == 78 and drawing["layers"]["how"] == "one-kernel"
    gaps = sum(drawing["gaps"]["ns"])
    busy = answer["steps"]["busy_ns"]
    assert abs(gaps + busy - drawing["step"]["ns"]) < 0.01 * busy, "idle and busy time do not add up to the step"
    # The same page whatever the number of threads.
    first = (folder / "page.html").read_bytes()
    check_page(trace, folder, "--threads", "1")
    assert (folder / "page.html").read_bytes() == first


def check_hostile(folder):
    hostile_trace().write(folder / "hostile.json")
    answer, drawing, _ = check_page(folder / "hostile.json", folder)
    assert answer["steps"]["used"] >= 4
    assert any("alert(1)" in n for n in drawing["names"])
    assert "onerror" in HOSTILE and "onerror=alert(1)>" not in (folder / "page.html").read_text()


def check_limits(folder):
    """A step of far more events than are drawn, with names that would fill the page many times over."""
    events = []
    at = 0
    long = "x" * 3_000
    for i in range(90_000):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at, "dur": 0.5 + i * 7919 % 90_001 / 1000, "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 5000}{long if i % 50 == 0 else ''}", "pid": 9, "tid": 9, "ts": at - 0.5, "dur": 2})
        events.append({"ph": "X", "cat": "kernel", "name": f"kernel_{i % 700}{long}" if i < 1400 else f"kernel_{i % 700}", "pid": 0, "tid": 7, "ts": at + 5,
                       "dur": 3, "args": {"correlation": i + 1, "device": 0, "stream": 7, "grid": [i % 700 + 1, 1, 1], "block": [128, 1, 1]}})
        at += 4
    (folder / "large.json").write_text(json.dumps({"traceEvents": events}))
    page = folder / "page.html"
    page.unlink()
    page_of(CULPRIT, folder / "large.json", page)
    assert page.stat().st_size <= MOST_BYTES, f"{page.stat().st_size} bytes"
    drawing = json.loads(carried(page.read_text())[1])
    check_columns(drawing)
    drawn = sum(len(lane["ns"]) for lane in [*drawing["streams"], *drawing["threads"]])
    assert 50_000 <= drawn <= 60_000, drawn
    # Calls that are drawn are the longest, as sorting them says; a bucket of lengths is an eighth of a power of two wide.
    calls = sorted(n for lane in drawing["threads"] for n, kind in zip(lane["ns"], lane["kind"], strict=True) if kind == 3)
    longest = sorted(round(1000 * e["dur"]) for e in events if e["cat"] == "cuda_runtime")[-len(calls):]
    assert 10_000 < len(calls) < 90_000 and calls[0] >= 0.875 * longest[0] and calls[len(calls) // 3:] == longest[len(calls) // 3:]
    left_out = drawing["left_out"]
    total = sum(left_out[kind] for kind in ("activities", "calls", "ops", "marks", "frames"))
    assert drawn + total == 3 * 90_000, "what is left out is not all counted"


def check_refusals(folder):
    """A page is written for input without a verdict; a stranger's file is not overwritten, our own page is."""
    (folder / "empty.json").write_text('{"traceEvents": []}')
    answer, drawing, code = check_page(folder / "empty.json", folder)
    assert code == 2 and not answer["quality"]["usable"] and drawing is None
    stranger = folder / "notes.html"
    stranger.write_text("<!doctype html><p>mine")
    done = subprocess.run([CULPRIT, folder / "hostile.json", "--html", stranger], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "not overwritten" in done.stderr and done.stdout == ""
    assert stranger.read_text() == "<!doctype html><p>mine"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "empty.json").write_text("{}")
        done = subprocess.run([CULPRIT, folder / "empty.json", "--html", folder / "page.html"], capture_output=True, text=True, check=False)
        if "without the page" in done.stderr:
            print("skipped: this culprit was built without the page of --html")
            return SKIPPED
        check_glm5(folder)
        check_hostile(folder)
        ranks_trace().write(folder / "ranks.json")
        answer, _, _ = check_page(folder / "ranks.json", folder)
        assert len(answer["ranks"]) == 2
        stalled_trace().write(folder / "stalled.json")
        answer, drawing, _ = check_page(folder / "stalled.json", folder)
        assert drawing["steps"]["excluded"].count("outlier") == 1 == len(answer["steps"]["outliers"])
        check_limits(folder)
        check_refusals(folder)
    print("pages: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
