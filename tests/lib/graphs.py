"""A small model as a graph, for test cases: its replays, its capture and an eager run of the same code.

A model is a list of Kernel, the kernels of one step in order. `layers(n)` makes one of n equal layers between an embedding
and a head. Shares nothing with src or forge.
"""
import dataclasses

from kineto import Trace


@dataclasses.dataclass
class Kernel:
    name: str
    us: float
    op: str = ""
    dims: list = None
    line: str = ""          # "model.py(40): attention"
    api: str = "LaunchKernel"
    grid: tuple = (64, 1, 1)
    stream: int = 7
    types: list = None


def layers(count, batch=8, hidden=4096):
    x = [[batch, hidden]]
    layer = [
        Kernel("rms_norm_kernel", 4, "aten::rms_norm", x, "model.py(20): norm"),
        Kernel("gemm_qkv_bf16", 30, "aten::mm", [[batch, hidden], [hidden, 6144]], "model.py(31): qkv"),
        Kernel("flash_fwd_splitkv_kernel", 25, "attention::decode", [[batch, 32, 128]], "attention.py(77): forward"),
        Kernel("gemm_o_bf16", 20, "aten::mm", [[batch, hidden], [hidden, hidden]], "model.py(44): output"),
        Kernel("act_and_mul_kernel", 3, "act::silu_and_mul", x, "model.py(52): mlp", "LaunchKernelExC"),
    ]
    first = [Kernel("vectorized_gather_kernel", 5, "aten::index_select", x, "model.py(9): embed")]
    last = [Kernel("gemm_head_bf16", 50, "aten::mm", [[batch, hidden], [hidden, 32000]], "model.py(60): head")]
    return first + layer * count + last


def run(model, steps, mark=None, vendor="cuda", gap=20, pieces=None, nodes=False, start=1000):
    """A trace of `steps` replays, one after the other. `pieces`: names of kernels that run eagerly between graphs."""
    t = Trace()
    t.gpu("NVIDIA H200" if vendor == "cuda" else "AMD Instinct MI300X", 132 if vendor == "cuda" else 304)
    now = start
    for step in range(steps):
        begin = now
        number = None
        ends = {}
        for node, k in enumerate(model):
            at = max(now, ends.get(k.stream, now))
            args = {"grid": list(k.grid), "block": [128, 1, 1]} if vendor == "cuda" else {}
            if nodes:
                args["graph node id"] = node
            if pieces and k.name in pieces:
                number = None
                t.kernel(k.name, k.us, at, k.stream, at - 15, op=k.op, dims=k.dims, types=k.types)
            else:
                if number is None:
                    number = t.call(f"{vendor}GraphLaunch", at - 15, 5)["args"]["correlation"]
                t.on_device("kernel", k.name, at, k.us, k.stream, number, **args)
            ends[k.stream] = at + k.us
            if k.stream == 7:
                now = at + k.us
        now = max(now, *ends.values())
        if mark:
            t.mark(mark, begin - 18, now - begin + 10)
        now += gap
    return t


def capture(model, mark=None, vendor="cuda", warm_ups=0, trace=None, begin=True, end=True, launcher=None, at=100_000):
    """The capture of the model's graph: operators, frames and launches, but no kernels. ROCm's launches name the kernel."""
    t = trace or Trace()
    if trace is None:
        t.gpu("NVIDIA H200" if vendor == "cuda" else "AMD Instinct MI300X", 132 if vendor == "cuda" else 304)
    now = at
    for _ in range(warm_ups):
        for k in model:
            now = host(t, k, now, vendor, launcher, eager=True)
        t.call(f"{vendor}DeviceSynchronize", now, 5)
        now += 10
    opened = now
    if begin:
        t.call(f"{vendor}StreamBeginCapture", now, 2)
    now += 10
    for k in model:
        now = host(t, k, now, vendor, launcher)
    if end:
        t.call(f"{vendor}StreamEndCapture", now, 2)
        t.call(f"{vendor}GraphInstantiate", now + 5, 50)
    if mark:
        t.mark(mark, opened - 2, now + 20 - opened)
    return t


def host(t, k, now, vendor, launcher=None, eager=False):
    """What the host records of one launch; with `eager` its kernel too. Returns when the next may begin."""
    names = {"kernel": k.name, "grid": list(k.grid), "block": [128, 1, 1]} if vendor == "hip" else {}
    if k.line:
        t.frame(k.line, now, 18, tid=launcher)
    if k.op:
        args = {"Input Dims": k.dims, "Input type": k.types or []} if k.dims else {}
        t.event("cpu_op", k.op, now + 2, 14, tid=launcher, **args)
    call = t.call(vendor + k.api, now + 5, 3, tid=launcher, **names)
    if eager:
        grid = {"grid": list(k.grid), "block": [128, 1, 1]}
        t.on_device("kernel", k.name, now + 10, k.us, k.stream, call["args"]["correlation"], **grid)
    return now + 20


def eager(model, steps, mark="ProfilerStep#{}", extra=(), at=1000):
    """The same code without graphs; `extra` kernels run behind each step's model."""
    t = Trace()
    t.gpu("NVIDIA H200", 132)
    now = at
    for step in range(steps):
        begin = now
        for k in list(model) + list(extra):
            now = max(host(t, k, now, "cuda", eager=True), t.ends.get(k.stream, 0) - 20)
        t.mark(mark.format(step), begin - 1, now - begin)
        now += 30
    return t
