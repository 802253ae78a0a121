"""The traces whose pages are tested, and what a page of --html carries: `from pages import ...`."""
import json
import re
import subprocess

from kineto import Trace, merged

MOST_BYTES = 3_000_000
# What somebody may have written into a trace: markup, the end of a script, a comment, an entity, a bell and an escape, what
# turns or hides text, line separators, half of a surrogate pair, quotes, and a template.
HOSTILE = ("<img src=x onerror=alert(1)></script><script>alert(2)</script><!-- &lt; \"'`${1+1} "
           "\u0007\u001b[2J\u202egpj\u202c\u2066\u200b\u2028\u2029\ufeff\U000e0041\ud800 end")
HIDDEN = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")


def hostile_trace():
    """A decode whose every name is hostile, with a culprit that is named in the headline's place."""
    t = Trace()
    t.gpu(f"NVIDIA {HOSTILE}", 132)
    for step in range(6):
        base = 10_000 * step
        t.mark(f"step[DECODE bs=1] {HOSTILE}", base - 60, 9_990)
        t.frame(f"/src/{HOSTILE}.py(7): run{HOSTILE}", base - 55, 9_900, tid=f"worker {HOSTILE}")
        t.frame(f"/src/{HOSTILE}.py(9): layer{HOSTILE}", base - 50, 9_900)
        for layer in range(8):
            t.kernel(f"attention{HOSTILE}", 200, ts=base + 1_000 * layer, op=f"aten::{HOSTILE}", dims=[[8, 8]], types=[HOSTILE])
            t.kernel(f"{HOSTILE}gemm", 500, ts=base + 1_000 * layer + 250, op="aten::mm")
    return t


def ranks_trace():
    """Two ranks in one file; one works longer."""
    ranks = {}
    for rank in range(2):
        t = Trace(rank=rank, host=900 + rank)
        for step in range(6):
            t.mark("step[DECODE bs=4]", 5_000 * step - 300, 250)
            t.replay([("gemm_kernel", 60 + 10 * rank), ("attention_decode_kernel", 20), ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 15)] * 16,
                     5_000 * step - 200, 5_000 * step)
        ranks[f"TP0{rank}"] = t
    return merged(ranks)


def stalled_trace():
    """Twenty steps, of which one stands still in a garbage collection."""
    t = Trace()
    at = 0
    for step in range(20):
        t.mark(f"step[DECODE bs=1] {step}", at - 60, 2_000)
        for layer in range(8):
            t.kernel("gemm_kernel", 150, ts=at + 200 * layer, launch_at=at + 200 * layer - 20)
        if step == 11:
            t.frame("gc.collect", at + 1_700, 30_000)
            at += 30_000
        at += 2_000
    return t


def page_of(culprit, trace, page, *flags):
    """Writes the page; the answer as --json prints it, and the exit code."""
    done = subprocess.run([culprit, trace, "--html", page, "--json", *flags], capture_output=True, text=True, timeout=120, check=False)
    return json.loads(done.stdout), done.returncode


def carried(page):
    """The two documents in a page's text."""
    found = dict(re.findall(r'<script type="application/json" id="(answer|drawing)">(.*?)</script>', page, re.S))
    return found["answer"], found["drawing"]
