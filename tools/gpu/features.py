"""What this PyTorch on this device can do: the one place that names a call newer than 1.13.

Invariant: every other file asks `Features` and never probes torch itself, so the same control flow
runs on a CPU with PyTorch 1.13 and on a GPU with a current one. What is missing has a stand-in,
and a recording says which stand-ins it used: figures taken with one are a rehearsal, no evidence.
"""

import functools
import importlib.util
import subprocess
import time

import torch
import torch.nn.functional as F


def _has_triton(device):
    return device == "cuda" and importlib.util.find_spec("triton") is not None


def _has_fp8_matmul(device):
    return (device == "cuda" and hasattr(torch, "_scaled_mm")
            and torch.cuda.get_device_capability() >= (8, 9))


# name: (first PyTorch that has it, probe(device), what stands in; None: cases that need it are skipped)
TABLE = {
    "float8": ("2.1", lambda d: hasattr(torch, "float8_e4m3fn"), "uint8 stands for FP8"),
    "fp8_matmul": ("2.1", _has_fp8_matmul, "a matmul over weights cast once, at build"),
    "compile": ("2.0", lambda d: hasattr(torch, "compile"), "the function itself, not compiled"),
    "cuda_graph": ("1.10", lambda d: d == "cuda", "the step's body is called instead of replayed"),
    "kineto": ("1.8", lambda d: torch.autograd.kineto_available(), "the legacy profiler: CPU ops only"),
    "sdpa": ("2.0", lambda d: hasattr(F, "scaled_dot_product_attention"), "matmul, softmax, matmul"),
    "rms_norm": ("2.4", lambda d: hasattr(F, "rms_norm"), "RMS norm by elementwise calls"),
    "triton": ("2.0", _has_triton, None),
}


def rms_norm_by_parts(x, weight, eps=1e-6):
    """RMS norm over the last dimension as engines write it by hand: seven small kernels."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


class Features:
    def __init__(self, device):
        self.device = device
        self.available = {name: bool(probe(device)) for name, (_, probe, _) in TABLE.items()}
        self.cuda = device == "cuda"
        self.one = torch.ones((), dtype=torch.float32, device=device)
        self.fp8 = torch.float8_e4m3fn if self.has("float8") else torch.uint8

    def has(self, name):
        return self.available[name]

    def stand_ins(self):
        return {n: text for n, (_, _, text) in TABLE.items() if text and not self.has(n)}

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def free_memory(self):
        if self.cuda:
            torch.cuda.empty_cache()

    def random_fp8_bits(self, shape):
        """uint8 tensor whose bits, read as E4M3, lie in [-1, 1): no NaN, no infinity."""
        bits = torch.randint(0, 2 * 0x38, shape, dtype=torch.uint8, device=self.device)
        return bits.add_((bits >= 0x38).to(torch.uint8).mul_(0x80 - 0x38))  # 0x38.. become 0x80..

    def rms_norm(self, x, weight):
        if self.has("rms_norm"):
            return F.rms_norm(x, weight.shape, weight, 1e-6)
        return rms_norm_by_parts(x, weight)

    def attention(self, q, k, v):
        """q [B,H,Q,D], k and v [B,H,S,D] -> [B,H,Q,D]; no mask."""
        if self.has("sdpa"):
            return F.scaled_dot_product_attention(q, k, v)
        scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.matmul(torch.softmax(scores.float(), -1).to(v.dtype), v)

    def fp8_matmul(self, x, weight_fp8, scale):
        """x [M,K] bf16, weight_fp8 [N,K], scale: one float32 -> [M,N] bf16; activation scale 1."""
        return torch._scaled_mm(x.to(self.fp8), weight_fp8.t(), scale_a=self.one, scale_b=scale,
                                out_dtype=torch.bfloat16)

    def compile(self, function):
        if self.has("compile"):
            return torch.compile(function, dynamic=False)
        return function

    def forget_compiled(self):
        if self.has("compile"):
            import torch._dynamo as dynamo
            dynamo.reset()

    def capture(self, body):
        """Records `body` into a CUDA graph; returns the call that replays it."""
        if not self.has("cuda_graph"):
            return body
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # lazy allocations and handles must exist before the capture
            for _ in range(3):
                body()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body()
        return graph.replay

    def time_launches(self, launch, count):
        """Mean ns of one of `count` launches back to back (device time, launch rate as the floor)."""
        self.synchronize()
        if not self.cuda:
            begin = time.perf_counter_ns()
            for k in range(count):
                launch(k)
            return (time.perf_counter_ns() - begin) / count
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for k in range(count):
            launch(k)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6 / count

    @functools.lru_cache(maxsize=None)
    def describe(self):
        """Device and versions as plain values."""
        about = {"torch": torch.__version__, "cuda": torch.version.cuda, "triton": None, "driver": None,
                 "device": "CPU", "memory_bytes": None, "sms": None, "capability": None}
        if self.has("triton"):
            import triton
            about["triton"] = triton.__version__
        if self.cuda:
            p = torch.cuda.get_device_properties(0)
            about.update(device=p.name, memory_bytes=p.total_memory, sms=p.multi_processor_count,
                         capability=f"{p.major}.{p.minor}", driver=driver_version())
        return about


def driver_version():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=10).stdout.split("\n")[0] or None
    except (OSError, subprocess.TimeoutExpired):
        return None
