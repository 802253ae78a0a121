"""Faults of kernels: too many small ones, one block where many fit, a grid for work that is not there."""

from dataclasses import replace

import torch

import decode
from decode import DenseDecoder
from features import rms_norm_by_parts
from program import Case, Variant, register


def activate_by_parts(gate_up):
    gate, up = gate_up.chunk(2, -1)
    wide = gate.float()
    return (wide * (1.0 / (1.0 + torch.exp(-wide)))).to(up.dtype) * up


class SmallKernels(DenseDecoder):
    def norm(self, x, weight):
        return rms_norm_by_parts(x, weight)

    def activate(self, gate_up):
        return activate_by_parts(gate_up)


class FusedKernels(DenseDecoder):
    """The same formulas, each compiled into one kernel."""

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.features.forget_compiled()
        self.compiled_norm = self.features.compile(rms_norm_by_parts)
        self.compiled_activate = self.features.compile(activate_by_parts)

    def norm(self, x, weight):
        return self.compiled_norm(x, weight)

    def activate(self, gate_up):
        return self.compiled_activate(gate_up)


def register_small_kernels():
    def size(ctx):
        return ctx.pick(decode.QWEN3_06B, replace(decode.TINY_DENSE, batch=1))

    register(Case(
        name="small-kernels",
        suspects=("small-kernels", "host-launch", "graph-missing"),
        planted="norm and activation written as chains of elementwise kernels, 20 more per layer",
        fix="fuse each chain into one kernel (torch.compile)",
        tolerance=0.05,  # a fused chain rounds to BF16 less often
        variants=(
            Variant("before", "elementwise chains", lambda ctx: SmallKernels(ctx, size(ctx))),
            Variant("after", "one kernel per chain", lambda ctx: FusedKernels(ctx, size(ctx))))))


class RowSampler(DenseDecoder):
    """Samples the argmax of probabilities that are normalised row by row."""

    def result(self):
        return self.probabilities

    def sample(self, logits):
        self.probabilities = torch.softmax(logits.float(), -1)
        return self.probabilities.argmax(-1)


class OneBlockSampler(RowSampler):
    """The same probabilities by one softmax over all rows as one: one row is one block."""

    def sample(self, logits):
        joint = torch.softmax(logits.float().view(1, -1), -1).view(logits.shape)  # planted
        self.probabilities = joint / joint.sum(-1, keepdim=True)
        return self.probabilities.argmax(-1)


def register_single_block():
    def size(ctx):
        return ctx.pick(replace(decode.QWEN3_8B, batch=32, layers=8), decode.TINY_DENSE)

    register(Case(
        name="single-block",
        suspects=("single-block", "low-occupancy"),
        planted="the sampler normalises 32 x 151936 logits in one thread block",
        fix="one block per sequence",
        variants=(
            Variant("before", "one softmax over all rows as one",
                    lambda ctx: OneBlockSampler(ctx, size(ctx))),
            Variant("after", "softmax by row", lambda ctx: RowSampler(ctx, size(ctx))))))


class CompactedCache(DenseDecoder):
    """Each layer gathers the keys of its active slots with a Triton kernel, one program per slot.

    `grid_slots` is how many programs are launched; those beyond `used` return at once.
    """

    active = 256

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        from triton_kernels import gather_slots
        self.gather_slots = gather_slots
        self.slots = self.keep("slot_pool", torch.randn((self.max_slots(), size.head_dim),
                                                        device=self.device).to(torch.bfloat16))
        self.index = torch.randperm(self.max_slots(), device=self.device)
        self.used = torch.full((1,), self.active, dtype=torch.int32, device=self.device)
        self.gathered = torch.zeros((self.active, size.head_dim), dtype=torch.bfloat16, device=self.device)

    def max_slots(self):
        return self.ctx.pick(495552, 4096)

    def grid_slots(self):
        return self.active

    def update_cache(self, layer, k, v):
        self.gather_slots(self.slots, self.index, self.used, self.gathered, self.grid_slots())
        return super().update_cache(layer, k + self.gathered.mean(), v)


class OversizedGrid(CompactedCache):
    def grid_slots(self):
        return self.max_slots()  # planted: a program for every slot that could be active


def register_oversized_grid():
    def size(ctx):
        return ctx.pick(decode.QWEN3_8B, decode.TINY_DENSE)

    register(Case(
        name="oversized-grid",
        suspects=("oversized-grid",),
        planted="a gather of 256 slots is launched with a program for each of 495552 slots, in every layer",
        fix="launch a program per active slot",
        needs=("triton",),
        variants=(
            Variant("before", "grid of the whole pool", lambda ctx: OversizedGrid(ctx, size(ctx))),
            Variant("after", "grid of the active slots", lambda ctx: CompactedCache(ctx, size(ctx))))))
