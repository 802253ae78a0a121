#!/usr/bin/env python3
"""Checks what a rehearsal with failing cases must have left: check_rehearsal.py DIR WAY."""

import json
import os
import sys

FAULTS = {"rehearsal-raises": "raised on purpose in step 1", "rehearsal-memory": "memory",
          "rehearsal-dies": "ended with code"}


def errors(manifest):
    runs = [r for v in manifest["variants"].values() for r in v["runs"].values()]
    return " ".join([manifest["reason"] or "", *(r.get("error", "") for r in runs)])


def check_failing(manifests):
    for name, text in FAULTS.items():
        assert manifests[name]["status"] == "failed", name
        assert text in errors(manifests[name]), (name, errors(manifests[name]))
    assert "tpot" in manifests["rehearsal-raises"]["variants"]["after"]["runs"]["graph"], "AFTER must go on"
    assert manifests["oversized-grid"]["status"] == "skipped"
    others = [m for n, m in manifests.items() if n not in FAULTS and n != "oversized-grid"]
    assert len(others) >= 16 and all(m["status"] == "recorded" for m in others)
    runs = [r for m in others for v in m["variants"].values() for r in v["runs"].values()]
    assert all(r["tpot"]["steps"] >= 6 and r["profiled"]["steps"] == 6 for r in runs)
    shortened = [r for r in runs if "full_trace_steps" in r]
    assert shortened and all(4 <= r["trace_steps"] < 6 == r["full_trace_steps"] for r in shortened if r["trace"])
    tpot = manifests["gc-stall"]["variants"]["before"]["runs"]["eager"]["tpot"]
    assert tpot["step_ns"][2] > 5 * tpot["median_ns"], "the stall sits in step 2"


def check_cut(manifests, name, status, reason):
    assert list(manifests) == [name], "no case begins after the deadline"
    assert manifests[name]["status"] == status and reason in errors(manifests[name]), errors(manifests[name])


def main(folder, way):
    with open(os.path.join(folder, "manifests.json")) as source:
        manifests = json.load(source)
    files = os.listdir(folder)
    assert {"manifests.json", "evidence.tar", "log.txt"} <= set(files) and len(files) <= 8, files
    if way == "failing":
        assert "full-1.tar" in files, "shortened traces come back whole as well"
        check_failing(manifests)
    elif way == "endless":
        check_cut(manifests, "rehearsal-endless", "partial", "deadline")
    else:
        check_cut(manifests, "rehearsal-hangs", "failed", "ended with code -9")
    print(f"{way}: as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
