"""Faults of the host: it launches too slowly, waits in the middle of a step, or works before it launches."""

from dataclasses import replace

import torch

import decode
from decode import DenseDecoder
from program import Case, Variant, register


def small_model(ctx):
    return ctx.pick(decode.QWEN3_06B, replace(decode.TINY_DENSE, batch=1))


def large_model(ctx):
    return ctx.pick(decode.QWEN3_8B, decode.TINY_DENSE)


def register_host_launch():
    register(Case(
        name="host-launch",
        suspects=("graph-missing", "host-launch"),
        planted="a 0.6B model at batch 1, launched kernel by kernel: the device waits for the host",
        fix="replay the step as a CUDA graph",
        variants=(
            Variant("before", "eager", lambda ctx: DenseDecoder(ctx, small_model(ctx)),
                    modes=("eager",), why_not="the fault is that there is no graph"),
            Variant("after", "CUDA graph", lambda ctx: DenseDecoder(ctx, small_model(ctx)),
                    modes=("graph",), why_not="the fix is the graph"))))


class ScaledKeys(DenseDecoder):
    """Keys are clamped to a running bound taken from their own largest value."""

    def bound(self, k):
        return k.abs().max() * 0.5

    def update_cache(self, layer, k, v):
        bound = self.bound(k)
        return super().update_cache(layer, torch.minimum(torch.maximum(k, -bound), bound), v)


class ItemPerLayer(ScaledKeys):
    def bound(self, k):
        value = k.abs().max().item()  # the planted host sync
        return torch.full((), value * 0.5, dtype=k.dtype, device=k.device)


def register_item_per_layer():
    register(Case(
        name="item-per-layer",
        suspects=("host-sync",),
        planted="every layer reads one number on the host with .item()",
        fix="keep the number on the device",
        variants=(
            Variant("before", ".item() in every layer", lambda ctx: ItemPerLayer(ctx, large_model(ctx)),
                    modes=("eager",), why_not="a host read cannot be captured into a graph"),
            Variant("after", "the bound stays a tensor", lambda ctx: ScaledKeys(ctx, large_model(ctx))))))


class MaskedSampler(DenseDecoder):
    """Tokens that a grammar forbids, one byte per token and sequence, come from the host each step.

    Healthy: pinned memory, sent on a side stream while the layers run.
    """

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        mask = torch.rand((size.batch, size.vocab)) < 0.5
        self.host_mask = mask.pin_memory() if self.features.cuda else mask
        self.mask = self.keep("grammar_mask", torch.zeros_like(mask, device=self.device))
        self.copy_stream = torch.cuda.Stream() if self.features.cuda else None

    def pre(self, step):
        with self.side_stream(self.copy_stream):
            self.mask.copy_(self.host_mask, non_blocking=True)

    def body(self):
        self.forward()

    def post(self, step):
        if self.copy_stream is not None:
            torch.cuda.current_stream().wait_stream(self.copy_stream)
        self.finish()

    def finish(self):
        self.tokens.copy_(self.logits.masked_fill(self.mask, float("-inf")).argmax(-1))
        self.read_tokens(self.tokens, self.host_tokens)


class PageableMask(MaskedSampler):
    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.host_mask = self.host_mask.clone()  # clone() gives pageable memory

    def pre(self, step):
        pass

    def post(self, step):
        self.mask.copy_(self.host_mask)  # the planted blocking copy, between forward and sampling
        self.finish()


def register_blocking_copy():
    def size(ctx):
        return ctx.pick(replace(decode.QWEN3_8B, batch=64, layers=8), decode.TINY_DENSE)

    register(Case(
        name="blocking-copy",
        suspects=("blocking-copy", "host-sync"),
        planted="a [64,151936] mask is copied from pageable host memory between forward and sampling",
        fix="pinned memory, copied on a side stream while the layers run",
        variants=(
            Variant("before", "pageable, blocking, before sampling",
                    lambda ctx: PageableMask(ctx, size(ctx))),
            Variant("after", "pinned, on a side stream", lambda ctx: MaskedSampler(ctx, size(ctx))))))


class Bookkeeping(DenseDecoder):
    """A scheduler's Python work per step; healthy: done while the device runs."""

    rounds = 25

    def schedule_requests(self):
        requests = {i: (i * 7919) % 211 for i in range(400)}
        for _ in range(self.rounds):
            order = sorted(requests, key=requests.get)
            requests = {i: (requests[i] + k) % 211 for k, i in enumerate(order)}
        return requests

    def post(self, step):
        self.schedule_requests()
        super().post(step)


class BookkeepingFirst(Bookkeeping):
    def pre(self, step):
        self.schedule_requests()  # planted: the device idles meanwhile

    def post(self, step):
        DenseDecoder.post(self, step)


def register_host_work():
    register(Case(
        name="host-work",
        suspects=("host-work",),
        planted="Python scheduling runs before the launches of each step, while the device idles",
        fix="schedule while the device runs",
        variants=(
            Variant("before", "scheduling, then launches",
                    lambda ctx: BookkeepingFirst(ctx, large_model(ctx))),
            Variant("after", "launches, then scheduling", lambda ctx: Bookkeeping(ctx, large_model(ctx))))))
