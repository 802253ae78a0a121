"""Faults that hit single steps, or what runs between them: prefill, collection, compilation, allocation."""

import gc
from dataclasses import replace

import torch

import decode
from decode import DenseDecoder
from program import Case, Variant, register

STALL_STEP = 2  # early, so that a shortened trace still holds it


def model(ctx):
    return ctx.pick(replace(decode.QWEN3_8B, layers=8), decode.TINY_DENSE)


class MarkedDecode(DenseDecoder):
    """Steps carry an engine's marks, which tell decode from prefill."""

    def mark(self, step):
        return f"step[DECODE bs={self.size.batch}]"


class PrefillBetween(MarkedDecode):
    """After every second decode step the layers run over one prefill chunk, on the same stream."""

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.chunk = ctx.pick(2048, 64)
        self.prompt = torch.randn((self.chunk, size.hidden), device=self.device).to(torch.bfloat16)

    def prefill(self):
        s, x = self.size, self.prompt
        for w in self.layers:
            qkv = self.linear(self.norm(x, w["norm1"]), w["qkv"])
            parts = qkv.split([s.heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim], -1)
            q, k, v = (t.view(self.chunk, -1, s.head_dim).transpose(0, 1).unsqueeze(0) for t in parts)
            k, v = (t.repeat_interleave(s.heads // s.kv_heads, 1) for t in (k, v))
            out = self.features.attention(q, k, v).transpose(1, 2).reshape(self.chunk, -1)
            x = x + self.linear(out, w["o"])
            x = x + self.linear(self.activate(self.linear(self.norm(x, w["norm2"]), w["gate_up"])), w["down"])
        return x

    def between(self, step):
        if step % 2 == 1:
            with torch.profiler.record_function(f"step[EXTEND bs=1 toks={self.chunk}]"):
                self.prefill()
                self.features.synchronize()


def register_prefill():
    register(Case(
        name="prefill-between",
        suspects=("prefill-interference",),
        planted="after every second decode step a prefill chunk of 2048 tokens runs",
        fix="prefill elsewhere, or in small chunks",
        mean_counts=True,
        variants=(
            Variant("before", "prefill between decode steps", lambda ctx: PrefillBetween(ctx, model(ctx))),
            Variant("after", "decode alone", lambda ctx: MarkedDecode(ctx, model(ctx))))))


class StallingDecoder(DenseDecoder):
    """Does `stall` once, in step STALL_STEP of each measured run."""

    def stall(self):
        raise NotImplementedError

    def pre(self, step):
        if step == STALL_STEP:
            self.stall()


class CollectGarbage(StallingDecoder):
    """A heap of many cyclic objects, as a server holds, and a full collection over it."""

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.heap = []
        for _ in range(ctx.pick(1_000_000, 50_000)):
            request = {"next": None}
            request["next"] = [request]
            self.heap.append(request)

    def stall(self):
        gc.collect()

    def close(self):
        gc.unfreeze()
        self.heap.clear()
        gc.collect()


class FrozenHeap(CollectGarbage):
    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        gc.collect()
        gc.freeze()


def register_gc_stall():
    register(Case(
        name="gc-stall",
        suspects=("step-stall",),
        cause="gc",
        planted=f"step {STALL_STEP} runs a full garbage collection over a million cyclic objects",
        fix="freeze the heap after start-up (gc.freeze)",
        mean_counts=True,
        variants=(
            Variant("before", "full collection", lambda ctx: CollectGarbage(ctx, model(ctx))),
            Variant("after", "the same call, heap frozen", lambda ctx: FrozenHeap(ctx, model(ctx))))))


def penalise(logits):
    return torch.log_softmax(logits.float() * 0.7, -1).clamp(min=-30.0)


class CompiledPenalty(DenseDecoder):
    """A compiled logits processor sees fewer rows from step STALL_STEP on; healthy: known in warm-up."""

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.features.forget_compiled()
        self.penalise = self.features.compile(penalise)
        self.rows = size.batch

    def begin_run(self):
        self.rows -= 1  # a row count that no run before has seen

    def warm(self, step):
        self.penalise(self.logits[: self.rows])

    def post(self, step):
        if step < 0:
            self.warm(step)
        rows = self.rows if step >= STALL_STEP else self.size.batch
        self.tokens[:rows] = self.penalise(self.logits[:rows]).argmax(-1)
        self.read_tokens(self.tokens, self.host_tokens)

    def body(self):
        self.forward()


class RecompiledPenalty(CompiledPenalty):
    def warm(self, step):
        pass  # planted: the smaller batch is first seen, and compiled, in a live step


def register_compile_stall():
    register(Case(
        name="compile-stall",
        suspects=("step-stall",),
        cause="compile",
        stacks=False,  # a compilation makes millions of Python calls
        planted=f"step {STALL_STEP} meets a batch size that the compiled sampler has not seen, and compiles",
        fix="compile every batch size in warm-up, or mark the dimension dynamic",
        mean_counts=True,
        variants=(
            Variant("before", "compiled in a live step", lambda ctx: RecompiledPenalty(ctx, model(ctx))),
            Variant("after", "compiled in warm-up", lambda ctx: CompiledPenalty(ctx, model(ctx))))))


class SteadyAllocator(StallingDecoder):
    """A temporary of several chunks in one step, taken from the allocator's cache."""

    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        self.chunk_bytes = ctx.pick(1 << 30, 1 << 16)
        self.take_chunks()

    def take_chunks(self):
        chunks = [torch.empty(self.chunk_bytes, dtype=torch.uint8, device=self.device) for _ in range(12)]
        return len(chunks)  # the chunks go back to the cache here

    def stall(self):
        self.take_chunks()


class FlushedAllocator(SteadyAllocator):
    def stall(self):
        self.features.free_memory()  # planted: the cache goes back to the driver ...
        self.take_chunks()  # ... and must be had from it again


def register_allocator_stall():
    register(Case(
        name="allocator-stall",
        suspects=("step-stall",),
        cause="allocator",
        planted=f"step {STALL_STEP} returns the allocator's cache to the driver and allocates 12 GiB anew",
        fix="keep the cache; reserve the memory at start",
        mean_counts=True,
        variants=(
            Variant("before", "empty_cache, then 12 GiB", lambda ctx: FlushedAllocator(ctx, model(ctx))),
            Variant("after", "12 GiB from the cache", lambda ctx: SteadyAllocator(ctx, model(ctx))))))
