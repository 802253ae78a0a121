"""A case: one planted fault and its fix, each a decode loop that can run eagerly or as a CUDA graph.

A Program is one such loop: `pre` (host work), `body` (device work, capturable), `post` (read the
token). A Variant builds a Program; a Case lists variants, "before" (the fault) first.
Invariant: all variants of a case start from the same seed and compute the same result.
"""

import contextlib
import zlib
from dataclasses import dataclass
from typing import Callable, Optional

import torch

# The ids of suspects that `culprit --json` may name and that a case here may plant.
SUSPECTS = frozenset({
    "whole-pool-cast", "whole-pool-copy", "weight-dequant", "layout-copy", "host-launch",
    "graph-missing", "host-sync", "blocking-copy", "small-kernels", "low-occupancy", "single-block",
    "repeated-read", "oversized-grid", "host-work", "prefill-interference", "step-stall"})
MODES = ("eager", "graph")


@dataclass(frozen=True)
class Variant:
    name: str  # "before", "after", "after-..."; file names begin with it
    what: str
    build: Callable  # build(ctx) -> Program
    modes: tuple = MODES
    why_not: str = ""  # why a mode is left out


@dataclass(frozen=True)
class Case:
    name: str
    suspects: tuple  # ids that name the planted cause; the first is the exact one
    planted: str
    fix: str
    variants: tuple
    needs: tuple = ()  # features without which the case is skipped
    tolerance: Optional[float] = 0.02  # relative L2 of results, BEFORE to AFTER; None: reported only
    cause: Optional[str] = None  # of a step-stall
    stacks: bool = True  # eager traces carry Python frames
    mean_counts: bool = False  # the fault hits single steps: compare means, not medians

    def seed(self):
        return zlib.crc32(self.name.encode())


REGISTRY = []


def register(case):
    """Appends a case; the order of registration is the order of value."""
    assert set(case.suspects) <= SUSPECTS, case.name
    assert case.variants[0].name == "before" and len(case.variants) > 1, case.name
    assert case.name not in [c.name for c in REGISTRY], case.name
    REGISTRY.append(case)


@dataclass(frozen=True)
class Context:
    """What a Program is built from."""
    features: object
    full: bool  # true tensor sizes, or tiny ones of the same shape family

    def pick(self, full, tiny):
        return full if self.full else tiny


class Program:
    """One decode loop. Step numbers count from 0 in the timed or captured part; warm-up is below 0."""

    logits = None  # [batch, vocab], written by body or post

    def result(self):
        """What BEFORE and AFTER must agree on after the first step."""
        return self.logits

    def __init__(self, ctx):
        self.ctx = ctx
        self.features = ctx.features
        self.device = ctx.features.device
        self.inventory = {}
        self.read_event = torch.cuda.Event() if self.features.cuda else None

    def begin_run(self):
        """Called before the warm-up of each measured run."""

    def mark(self, step):
        return f"ProfilerStep#{max(step, 0)}"

    def pre(self, step):
        """Host work before the device work of a step."""

    def body(self):
        """Device work of a step; no host read, so that it can be captured."""
        raise NotImplementedError

    def post(self, step):
        """What follows the body: at least the read of the sampled token."""

    def between(self, step):
        """Work between this step and the next, under marks of its own."""

    def close(self):
        """Undoes what reaches beyond this object."""

    def run_step(self, step, body):
        with torch.profiler.record_function(self.mark(step)):
            self.pre(step)
            body()
            self.post(step)
        self.between(step)

    def keep(self, name, tensor):
        """Enters a tensor into the manifest; equal names (one per layer) are counted."""
        shape, dtype = list(tensor.shape), str(tensor.dtype).replace("torch.", "")
        row = self.inventory.setdefault(name, {"name": name, "shape": shape, "dtype": dtype, "count": 0,
                                               "bytes_each": tensor.numel() * tensor.element_size()})
        assert row["shape"] == shape and row["dtype"] == dtype, name
        row["count"] += 1
        return tensor

    def weight(self, name, *shape):
        """A bf16 weight [..., K] of deviation K^-1/2, so that activations keep their size."""
        w = torch.empty(shape, dtype=torch.bfloat16, device=self.device)
        return self.keep(name, w.normal_(0.0, shape[-1] ** -0.5))

    def ones(self, name, *shape):
        return self.keep(name, torch.ones(shape, dtype=torch.bfloat16, device=self.device))

    def host_buffer(self, *shape, dtype=torch.int64):
        return torch.zeros(shape, dtype=dtype, pin_memory=self.features.cuda)

    def read_tokens(self, tokens, host_tokens):
        """The one host read of a step, as engines do it: pinned, then a wait on that copy alone."""
        host_tokens.copy_(tokens, non_blocking=True)
        if self.read_event is not None:
            self.read_event.record()
            self.read_event.synchronize()
        return host_tokens.tolist()

    @contextlib.contextmanager
    def side_stream(self, stream):
        """Runs the block on `stream`, after what the current stream holds now (CPU: in place)."""
        if stream is None:
            yield
            return
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            yield
