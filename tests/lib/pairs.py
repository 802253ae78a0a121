"""Two recordings of one decode with one difference between them: `python3 -m pairs NAME key=value...` writes before.json
and after.json (or the folders before/ and after/ for several ranks).

Every function is a way in which a step gets slower, with its figures in us; healthy=1 records the same run twice. Steps
differ among themselves by `noise` permille, drawn anew on each side, so that no two recordings are equal.
"""
import pathlib
import random
import sys

from kineto import Trace
from planted import ATTENTION, FULL, GEMM, NORM, Decode, copy_kernel, elementwise, TO_BF16, TO_FLOAT

ACTIVATION = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>(c10::BFloat16*, c10::BFloat16 const*, int)"
ROUTER = "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Args)"
CUSTOM = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(Params)"


def record(layers, layer, steps=12, batch=16, noise=3, seed=1, factor=1.0, gap=0, head=(), gpu=None):
    """A run of `steps` steps: `head`, then `layer` [(name, us) or (name, us, keywords)] `layers` times, then `gap` us of nothing."""
    run, draw = Decode(gpu), random.Random(seed)
    for _ in range(steps):
        scale = factor * (1 + draw.uniform(-noise, noise) / 1000)
        begin = run.at
        for name, dur, *more in [*head, *layer * layers]:
            dur = round(dur * scale, 3)
            run.kernel(name, dur, ts=round(run.at, 3), launch_at=run.host_time(run.at), **({"grid": FULL} | (more[0] if more else {})))
            run.at = round(run.at + dur, 3)
        run.at = round(run.at + gap, 3)
        run.mark(f"step[DECODE bs={batch}]", run.host_time(begin) - 0.4, run.host_time(run.at) - run.host_time(begin))
    return run


def write(before, after):
    before.write("before.json")
    after.write("after.json")


USUAL = [(NORM, 3, {"grid": (16, 1, 1)}), (GEMM, 20), (ATTENTION, 30, {"grid": (16, 8, 1)}), (GEMM.replace("64x8", "128x8"), 18),
         (NORM, 3, {"grid": (16, 1, 1)}), (GEMM, 25), (ACTIVATION, 4, {"grid": (16, 1, 1)}), (GEMM.replace("64x8", "64x16"), 24)]


def pool(slots=8000, larger=80000, heads=8, dim=128, layers=24, copies=3, each=4, rest=2000, steps=6, kind="copy", healthy=0):
    """The KV pool is larger, the load is not: slice, update and concatenate copy it whole, or a cast reads it whole."""
    def one(rows, us, seed):
        name = copy_kernel("gpu_kernel_impl_nocast") if kind == "copy" else TO_BF16
        types = ["c10::BFloat16"] * 2 if kind == "copy" else ["c10::BFloat16", "c10::Float8_e4m3fn"]
        more = {"op": "aten::copy_", "dims": [[rows, heads, dim], [rows, heads, dim], []], "types": [*types, "Scalar"],
                "grid": (-(-rows * heads * dim // 512), 1, 1)}
        share = rest // layers
        layer = [(name, us, more)] * copies + [(ATTENTION, round(share * 0.4, 3)), (GEMM, round(share * 0.6, 3))]
        return record(layers, layer, head=[(GEMM.replace("64x8", "256x8"), rest - share * layers)] if rest % layers else [], steps=steps, noise=0 if not healthy else 3, seed=seed)
    after = (slots, each) if healthy else (larger, each * larger / slots)
    write(one(slots, each, 1), one(*after, 2))


def replaced(layers=32, role="attention", slower=1.6, rename=1, healthy=0):
    """A library update brings another kernel. Healthy: the same kernel under a new name, as fast."""
    place, other = {"attention": (2, "void flashinfer::BatchDecodeWithPagedKVCacheKernel<true, 2u, 8u>(Params)"),
                    "gemm": (5, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_cublas"),
                    "comm": (8, NCCL)}[role]
    usual = [*USUAL, (CUSTOM, 6, {"grid": (8, 1, 1)})]
    layer = list(usual)
    name, us, *more = layer[place]
    layer[place] = (other if rename else name, us if healthy else us * slower, *more)
    write(record(layers, usual), record(layers, layer, seed=2))


def oversized(layers=32, place=6, rows=16, limit=4096, each=16, healthy=0):
    """A kernel of one block a row follows a limit that was raised, not the batch."""
    layer = list(USUAL)
    name, us, _ = layer[place]
    layer[place] = (name, us, {"grid": (rows, 1, 1)}) if healthy else (name, each, {"grid": (limit, 1, 1)})
    write(record(layers, USUAL), record(layers, layer, seed=2))


def clock(layers=32, permille=120, healthy=0):
    """Every kernel takes longer by one factor."""
    write(record(layers, USUAL), record(layers, USUAL, seed=2, factor=1 if healthy else 1 + permille / 1000))


def fusion(layers=32, pieces=3, each=3, place=4, healthy=0):
    """A fused norm falls apart into small kernels."""
    functors = ["CUDAFunctor_add<c10::BFloat16>", "rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}",
                "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>"]
    small = [(elementwise(functors[k % 3]) + f"#{k // 3}" * (k >= 3), each, {"grid": (64, 1, 1)}) for k in range(pieces)]
    fused = ("triton_red_fused_add_mul_rsqrt_0", 3, {"grid": (16, 1, 1)})
    layer = list(USUAL)
    layer[place] = fused
    apart = layer if healthy else [*layer[:place], *small, *layer[place + 1:]]
    write(record(layers, layer), record(layers, apart, seed=2))


def graph(kernels=120, replay=4000, eager=16000, steps=12, batch=24, healthy=0):
    """The step was one graph replay and is launched kernel by kernel."""
    names = [GEMM, NORM, ATTENTION]

    def replayed(seed):
        run, draw = Decode(), random.Random(seed)
        for _ in range(steps):
            scale = 1 + draw.uniform(-2, 2) / 1000
            run.mark(f"step[DECODE bs={batch}]", run.at, replay - 10)
            run.replay([(names[k % 3], round(replay * 0.99 / kernels * scale, 3)) for k in range(kernels)], run.at + 5, round(run.at + 20, 3))
            run.at += replay
        return run

    def launched(seed):
        run, draw = Decode(), random.Random(seed)
        for _ in range(steps):
            each = eager / kernels * (1 + draw.uniform(-2, 2) / 1000)
            run.eager_step([(names[k % 3], round(replay * 0.99 / kernels, 3)) for k in range(kernels)], f"step[DECODE bs={batch}]", each)
        return run
    write(replayed(1), replayed(2) if healthy else launched(2))


def host(kernels=300, every=12, slower=20, each=8, steps=12, healthy=0):
    """Launches come later: the host got slower."""
    def one(us, seed):
        run, draw = Decode(), random.Random(seed)
        for _ in range(steps):
            late = us * (1 + draw.uniform(-5, 5) / 1000)
            run.eager_step([((GEMM, NORM, ATTENTION)[k % 3], each) for k in range(kernels)], "step[DECODE bs=4]", late)
        return run
    write(one(every, 1), one(every if healthy else slower, 2))


def communication(layers=32, each=12, slower=30, healthy=0):
    """All-reduces take longer, and nothing hides them."""
    def one(us, seed):
        return record(layers, [*USUAL, (NCCL, us, {"grid": (4, 1, 1)})], seed=seed)
    write(one(each, 1), one(each if healthy else slower, 2))


def suspect(layers=32, casts=2, each=6, width=7168, batch=64, healthy=0):
    """Activations change type around every GEMM in the recording after only."""
    more = {"op": "aten::copy_", "dims": [[batch, width], [batch, width], []], "types": ["float", "c10::BFloat16", "Scalar"],
            "grid": (-(-batch * width // 512), 1, 1)}
    cast = (TO_FLOAT, each, more)
    layer = [*USUAL[:5], *[cast] * casts, *USUAL[5:]]
    write(record(layers, USUAL, batch=batch), record(layers, USUAL if healthy else layer, batch=batch, seed=2))


def batches(before=16, after=32, layers=16):
    """The load is not the same."""
    heavier = [(name, us * 1.3, *more) for name, us, *more in USUAL]
    write(record(layers, USUAL, batch=before), record(layers, heavier, batch=after, seed=2))


def one_step(layers=16, longer=10):
    """A single step on each side: no noise can be judged."""
    write(record(layers, USUAL, steps=1), record(layers, [USUAL[0], (GEMM, 20 + longer), *USUAL[2:]], steps=1, seed=2))


def stalls(steps=300, step=10000, every=150, hole=200000, kernels=20, ranks=2, late=0, healthy=0):
    """Every 150th step one rank stands still, and the others spin in their all-reduce meanwhile. Healthy: no holes."""
    for side in ("before", "after"):
        pathlib.Path(side).mkdir(exist_ok=True)
        for rank in range(ranks):
            run = Trace(base=10_000_000, rank=rank)
            draw, at = random.Random(1000 * rank + (side == "after")), 0.0
            for i in range(steps):
                begin, stands = at, side == "after" and not healthy and i % every == every // 2
                for k in range(kernels):
                    last = k == kernels - 1
                    dur = round(step / kernels * (1 + draw.uniform(-2, 2) / 1000), 3)
                    if stands and k == kernels // 2 and rank == late:
                        at = round(at + hole, 3)
                    if stands and last and rank != late:
                        dur = round(dur + hole, 3)
                    run.kernel(NCCL if last else (GEMM, ATTENTION)[k % 2], dur, ts=at, launch_at=round(at - 12, 3), grid=FULL)
                    at = round(at + dur, 3)
                run.mark("step[DECODE bs=8]", round(begin - 14, 3), round(at - begin - 1, 3))
            run.write(f"{side}/rank{rank}.json")


if __name__ == "__main__":
    name, *figures = sys.argv[1:]
    pairs = (figure.split("=", 1) for figure in figures)
    globals()[name](**{key: int(value) if value.lstrip("-").isdigit() else float(value) if value.replace(".", "", 1).isdigit() else value
                       for key, value in pairs})
