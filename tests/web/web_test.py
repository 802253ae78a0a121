#!/usr/bin/env python3
"""Makes reports of forged, hostile and real traces and has report_test.mjs open them in Chromium.

Usage: web_test.py CULPRIT TRACES
Skips, and says why, without node, the packages of tests/web (npm ci), Chromium, or the page itself.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from pages import hostile_trace, page_of, ranks_trace, stalled_trace  # noqa: E402

SKIPPED = 77
REAL = ["serving/sglang-qwen3-8b-decode-mi300x.json.gz", "serving/vllm-eager-context-b200.json.gz", "nsys/h100-2gpu-ring-attention.sqlite"]


def missing():
    if not shutil.which("node"):
        return "node (the packages nodejs and npm; scripts/setup installs them)"
    if not (HERE / "node_modules/playwright-core").exists():
        return "its npm packages: npm ci in tests/web"
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        return "Chromium (the package chromium)"
    return None


def forge(culprit, trace, *recipe):
    subprocess.run([culprit, "forge", *recipe, "-o", trace], check=True, capture_output=True)


def make_reports(culprit, traces, folder):
    made = {}
    made["glm5"] = folder / "glm5.trace"
    forge(culprit, made["glm5"], "glm5", "--steps", "6")
    for name, trace in (("hostile", hostile_trace()), ("ranks", ranks_trace()), ("stalled", stalled_trace())):
        made[name] = folder / f"{name}\u0007\u001b[2J\u202e<b>.trace"  # readers of traces mend names; nobody mends those of files
        trace.write(made[name])
    made["empty"] = folder / "empty.trace"
    made["empty"].write_text('{"traceEvents": []}')
    for real in REAL:
        if (traces / real).exists():
            made[pathlib.Path(real).name.split(".")[0]] = traces / real
        else:
            print(f"without {real}: not in {traces}")
    for name, trace in made.items():
        answer, _ = page_of(culprit, trace, folder / f"{name}.html")
        (folder / f"{name}.json").write_text(json.dumps(answer))
    # One step of more than 50,000 events; its own folder, as only its speed is looked at.
    (folder / "large").mkdir()
    forge(culprit, folder / "large/large.trace", "glm5", "--steps", "2", "--events", "130000")
    page_of(culprit, folder / "large/large.trace", folder / "large/large.html")


def main():
    culprit, traces = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    lacks = missing()
    if lacks:
        print(f"skipped: needs {lacks}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        probe = subprocess.run([culprit, folder / "none", "--html", "/dev/null"], capture_output=True, text=True, check=False)
        if "without the page" in probe.stderr:
            print("skipped: this culprit was built without the page of --html")
            return SKIPPED
        make_reports(culprit, traces, folder)
        return subprocess.run(["node", HERE / "report_test.mjs", folder], timeout=280, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
