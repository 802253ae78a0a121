"""Small decode runs with one planted fault: `python3 -m planted NAME key=value...` writes run.json (and config.json).

Every function is a fault with the figures it is planted with, in µs, counts and bytes; healthy=1 is the same run
without it. Shares nothing with src or forge.
"""
import json
import sys

from kineto import Trace, joined

GEMM = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"
ATTENTION = "void flash::flash_fwd_splitkv_kernel<cutlass::bfloat16_t>(Params)"
NORM = "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(Params)"
FULL = (132, 1, 1)


def cast_kernel(lambdas):
    """A copy functor of the types that its lambdas tell, under LoadWithCast."""
    return (f"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambdas}, "
            "std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
            "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>>(int, Args)")


TO_BF16 = cast_kernel("{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}")
TO_FLOAT = cast_kernel("{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}")


def elementwise(functor):
    return f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, 3ul>>(int, Args)"


def copy_kernel(lambdas, kernel="elementwise_kernel<128, 4, "):
    body = ("direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::"
            "{lambda(c10::BFloat16)#1}")
    return (f"void at::native::{kernel}at::native::{lambdas}<at::native::{body}>(at::TensorIteratorBase&, at::native::{body} const&)"
            f"::{{lambda(int)#1}}>(int, at::native::{lambdas}<>)")


class Decode(Trace):
    """Steps whose launches run ahead of the device: the host needs a third of the time."""

    def __init__(self, gpu=None):
        super().__init__(base=10_000_000)  # µs of the epoch would leave a double no room for fractions
        self.at, self.lead = 0.0, 2000
        if gpu:
            self.gpu(*gpu)

    def step(self, kernels, mark):
        """kernels: (name, µs) or (name, µs, keywords of Trace.kernel)."""
        begin = self.at
        for name, dur, *more in kernels:
            self.kernel(name, dur, ts=round(self.at, 3), launch_at=self.host_time(self.at),
                        **({"grid": FULL} | (more[0] if more else {})))
            self.at = round(self.at + dur, 3)
        self.mark(mark, self.host_time(begin) - 3, self.host_time(self.at) - self.host_time(begin) + 1)

    def host_time(self, at):
        return round(at / 3) - self.lead

    def queue(self, count, busy):
        """`count` GEMMs launched 8 µs apart that keep the device busy; returns when the host is free, `at` is their end."""
        for k in range(count):
            self.kernel(GEMM, busy / count, ts=round(self.at + 10 + k * busy / count, 3), launch_at=round(self.at + k * 8, 3),
                        launch_dur=5, grid=FULL)
        free = self.at + count * 8
        self.at += busy + 12
        return free

    def eager_step(self, kernels, mark, every):
        """Launches come every `every` µs, and each kernel starts 8 µs behind its launch."""
        begin = self.at
        for name, dur in kernels:
            self.kernel(name, dur, ts=round(self.at + 8, 3), launch_at=round(self.at, 3), launch_dur=5, grid=FULL)
            self.at = round(self.at + max(every, dur), 3)
        self.mark(mark, begin - 1, round(self.at - begin - 2, 3))


def graph_missing(small=24, large=30, steps=20, replay=4000, eager=16000, launches=900, busy=4200, healthy=0):
    """Batches above the largest captured one run eagerly."""
    run = Decode()
    names = [GEMM, NORM, ATTENTION]
    replayed = [(names[k % 3], replay * 0.995 / 120) for k in range(120)]
    for batch in [small] * steps + [large] * steps:
        if batch == small or healthy:
            run.mark(f"step[DECODE bs={batch}]", run.at, replay - 10)
            run.replay([(n, round(d, 3)) for n, d in replayed], run.at + 5, round(run.at + 20, 3))
            run.at += replay
        else:
            each = busy / launches
            run.eager_step([(names[k % 3], round(each, 3)) for k in range(launches)], f"step[DECODE bs={batch}]", eager / launches)
    return run


def graph_launch(pieces=49, piece=120, launch=260, steps=8, healthy=0):
    """A step cut into graphs whose launches take longer than the graphs run."""
    run = Decode()
    for _ in range(steps):
        begin = run.at
        for _ in range(pieces):
            kernels = [(GEMM, piece * 0.6), (NORM, piece * 0.1), (ATTENTION, piece * 0.3)]
            dur = 20 if healthy else launch
            run.replay([(n, round(d, 3)) for n, d in kernels], run.at, round(run.at + dur * 0.9, 3), launch_dur=dur - 2)
            run.at = round(run.at + max(dur, piece + 0.5), 3)
        run.mark("step[DECODE bs=8]", begin - 1, round(run.at - begin - 2, 3))
    return run


def hidden_wait(launched=800, busy=9400, step=10000, steps=20):
    """The host sits in a copy of its tokens while the device works on what was queued before."""
    run = Decode()
    n = 100
    for i in range(steps):
        at = i * step
        for k in range(n):
            run.kernel(GEMM, busy / n, ts=at + 200 + k * busy / n, launch_at=at + k * launched / n, launch_dur=5, grid=FULL, op="aten::mm")
        number = run.call("cudaMemcpyAsync", at + launched, busy + 205 - launched)["args"]["correlation"]
        run.on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + busy + 201, 2, 7, number, bytes=64)
        run.frame("<built-in method cpu of Tensor object at 0x7f>", at + launched - 1, busy + 207 - launched)
        run.mark("step[DECODE bs=16]", at - 2, step - 300)
    return run


def sync_in_plan(cycle=13000, idle=900, syncs=3, steps=20, healthy=0):
    """plan() of an attention backend copies indices to the host between two graph replays, and waits."""
    run = Decode()
    each = idle / syncs
    for i in range(steps):
        at, busy = i * cycle, cycle - (10 if healthy else idle) - 6
        kernels = [(GEMM, 0.7 * busy / 100), (ATTENTION, 0.3 * busy / 100)] * 100
        run.replay([(n, round(d, 3)) for n, d in kernels], at - 20, at)
        run.frame("sglang/srt/layers/attention/flashinfer_backend.py(1100): plan", at + 100, cycle - 130)
        host = at + 110
        for j in range(syncs):
            wait = at + busy + (2 if healthy else each) * j
            number = run.call("cudaMemcpyAsync", host, 6)["args"]["correlation"]
            run.on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", round(wait + 0.3, 3), 1, 7, number, bytes=256)
            if not healthy:
                run.call("cudaStreamSynchronize", host + 8, round(wait + 5 - host - 8, 3))
            host = host + 20 if healthy else wait + each - 10
        run.mark("step[DECODE bs=8]", at - 30, cycle - 10)
    return run


def host_work(work=3000, busy=6000, steps=12, healthy=0):
    """The launching thread samples on the CPU between two steps; the device waits."""
    run = Decode()
    n = 60
    for _ in range(steps):
        begin = run.at
        free = run.queue(n, busy)
        if healthy:
            run.frame("engine/sampler.py(88): sample_on_host", free, min(work, busy - n * 8 - 50))
        else:
            run.call("cudaStreamSynchronize", free, round(run.at - 200 - free, 3))
            run.frame("engine/sampler.py(88): sample_on_host", run.at - 195, work + 195)
            run.at += work
        run.mark("step[DECODE bs=4]", begin - 1, round(run.at - begin - 2, 3))
    return run


def blocking_copy(size=38_000_000, copy=1800, busy=7000, behind=400, steps=12, healthy=0):
    """Logits go to pageable memory before sampling. Healthy: tokens alone, to pinned memory."""
    run = Decode()
    n = 70
    for _ in range(steps):
        begin = run.at
        free = run.queue(n, busy)
        if healthy:
            number = run.call("cudaMemcpyAsync", free, 6)["args"]["correlation"]
            run.on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", run.at, 2, 7, number, bytes=64)
            run.at += 4
        else:
            number = run.call("cudaMemcpyAsync", free, run.at + copy + 5 - free)["args"]["correlation"]
            run.on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", run.at, copy, 7, number, bytes=size)
            run.at += copy + behind
        run.mark("step[DECODE bs=64]", begin - 1, round(run.at - begin - 2, 3))
    return run


def small_kernels(layers=32, row=12, each=2.5, gemm=60, steps=6, healthy=0):
    """Rows of elementwise kernels between two GEMMs. Healthy: one fused kernel instead."""
    run = Decode()
    functors = ["CUDAFunctor_add<c10::BFloat16>", "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>",
                "rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}"]
    rows = [(elementwise(functors[k % 3]), each, {"grid": (16, 1, 1)}) for k in range(row)]
    fused = [("triton_poi_fused_add_mul_rsqrt_0", each, {"grid": (16, 1, 1)})]
    for _ in range(steps):
        run.step([k for _ in range(layers) for k in [(GEMM, gemm), *(fused if healthy else rows), (ATTENTION, 30), (GEMM, gemm)]],
                 "step[DECODE bs=8]")
    return run


def linear(rows, out, inner, dur):
    return (GEMM, dur, {"op": "aten::mm", "dims": [[rows, inner], [inner, out]], "types": ["c10::BFloat16", "c10::BFloat16"]})


def repeated_read(times=8, vocabulary=151936, hidden=4096, head=290, layers=24, steps=6, shapes=1, healthy=0):
    """The output matrix is multiplied once per request. Healthy: once for all."""
    run = Decode(("NVIDIA H200", 132, 150_000_000_000))
    layer = [(GEMM.replace("64x8", "64x16"), 70), (ATTENTION, 40)]
    heads = [linear(times, vocabulary, hidden, head)] if healthy else [linear(1, vocabulary, hidden, head)] * times
    if not shapes:
        heads = [k[:2] for k in heads]
    for _ in range(steps):
        run.step(layer * layers + heads, f"step[DECODE bs={times}]")
    return run


def gemm_inefficient(rows=8, out=28672, inner=8192, dur=600, layers=40, steps=6, healthy=0):
    """A GEMM far below the memory's roof: 98 µs would do for 470 MB on an H200."""
    run = Decode(("NVIDIA H200", 132, 150_000_000_000))
    good = 2 * out * inner / 4.8e6 / 0.8  # µs at 80 % of 4.8 TB/s
    for _ in range(steps):
        run.step([k for _ in range(layers) for k in [linear(rows, out, inner, round(good if healthy else dur, 3)), (ATTENTION, 40)]],
                 f"step[DECODE bs={rows}]")
    return run


def pool_copy(slots=80000, heads=8, dim=128, layers=24, copies=3, each=40, rest=2000, steps=6, healthy=0):
    """Slice, update, concatenate: the cache of a layer is copied whole. Healthy: the same kernels on the batch's rows."""
    run = Decode()
    rows = 16 if healthy else slots
    name = copy_kernel("gpu_kernel_impl_nocast")
    dims = {"op": "aten::copy_", "dims": [[rows, heads, dim], [rows, heads, dim], []], "types": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
            "grid": (-(-rows * heads * dim // 512), 1, 1)}
    layer = [(name, 1.2 if healthy else each, dims)] * copies + [(ATTENTION, rest / layers * 0.4), (GEMM, rest / layers * 0.6)]
    for _ in range(steps):
        run.step([(n, round(d, 3), *more) for n, d, *more in layer * layers], "step[DECODE bs=16]")
    return run


def batch_cast(batch=64, width=7168, casts=4, each=6, layers=30, gemm=90, steps=6, shapes=1, healthy=0):
    """Activations change type and back around every GEMM."""
    run = Decode()
    more = {"grid": (-(-batch * width // 512), 1, 1)}
    if shapes:
        more |= {"op": "aten::copy_", "dims": [[batch, width], [batch, width], []], "types": ["float", "c10::BFloat16", "Scalar"]}
    layer = ([] if healthy else [(TO_FLOAT, each, more)] * casts) + [(GEMM, gemm), (ATTENTION, 40), (GEMM, gemm)]
    for _ in range(steps):
        run.step(layer * layers, f"step[DECODE bs={batch}]")
    return run


def weight_dequant(layers=32, projections=4, dequant=60, gemm=25, step=12000, batch=4, kernel="dequantize_4bit", healthy=0):
    """Weights of few bits are unpacked before every GEMM. Healthy: the GEMM reads them packed."""
    run = Decode()
    rest = round((step - layers * projections * (dequant + gemm)) / layers, 3)
    layer = []
    for n in [4096, 4096, 11008, 4096, 2048, 14336][:projections]:
        if not healthy:
            layer.append((f"void {kernel}_kernel<__nv_bfloat16, 512, 64, 8>(unsigned char*, float*, __nv_bfloat16*, int)", dequant,
                          {"grid": (n, 1, 1), "op": f"quantization::{kernel}", "dims": [[n * 2048, 1], [n * 64]], "types": ["unsigned char", "float"]}))
        layer.append(("void marlin::Marlin<__nv_bfloat16, 256, 1, 8, 8>(Params)" if healthy else GEMM, gemm))
    for _ in range(6):
        run.step((layer + [(ATTENTION, rest)]) * layers, f"step[DECODE bs={batch}]")
    return run


def pool_cast(layers=48, slots=65536, heads=8, dim=128, cast=150, attention=40, rest=6000, steps=6, healthy=0):
    """Keys and values of the whole FP8 cache are converted before each attention."""
    run = Decode()
    more = {"op": "aten::_to_copy", "dims": [[slots, heads, dim], [], [], [], [], [], []], "types": ["c10::Float8_e4m3fn"] + ["Scalar"] * 6,
            "grid": (-(-slots * heads * dim // 512), 1, 1)}
    layer = ([] if healthy else [(TO_BF16, cast, more)] * 2) + [(ATTENTION, attention), (GEMM, round(rest / layers, 3))]
    for _ in range(steps):
        run.step(layer * layers, "step[DECODE bs=16]")
    return run


def few_splits(layers=32, blocks=48, attention=400, step=18000, kv_heads=8, healthy=0):
    """Attention over a long context on a grid that fills only a part of an H200."""
    run = Decode(("NVIDIA H200", 132, 150_000_000_000))
    rest = round((step - layers * attention) / layers, 3)
    grid = (1, kv_heads, 132 if healthy else blocks // kv_heads)
    for _ in range(6):
        run.step([(ATTENTION, attention, {"grid": grid}), (GEMM, rest, {"grid": (264, 1, 1)})] * layers, "step[DECODE bs=1]")
    config("llama", layers, 4096, 32, kv_heads)
    return run


def prefill_between(decodes=40, decode=12000, prefills=4, prefill=420000, healthy=0):
    """Prefill chunks between the decode steps of running requests. Healthy: all in front of the first."""
    run = Decode()
    chunk = [(GEMM, round(prefill / 60, 3)), (ATTENTION, round(prefill / 60 / 4, 3))]
    whole = [(n, round(d * 0.8, 3)) for n, d in chunk] * 60
    token = [(GEMM, round(decode * 0.7 / 80, 3)), (ATTENTION, round(decode * 0.3 / 80, 3))] * 80
    every = decodes // (prefills + 1)
    if healthy:
        for _ in range(prefills):
            run.step(whole, "step[EXTEND bs=1 toks=8192]")
    for i in range(decodes):
        run.step(token, "step[DECODE bs=32]")
        if not healthy and i % every == every - 1 and i // every < prefills:
            run.step(whole, "step[EXTEND bs=1 toks=8192]")
    return run


def stall(steps=40, step=25000, at=17, stall=1_875_000, frame="torch/_dynamo/convert_frame.py(812): _compile", healthy=0):
    """One step in which the host compiles, collects garbage or maps memory, with the device idle."""
    run = Decode()
    n = 100
    for i in range(steps):
        begin = run.at
        for k in range(n):
            if i == at and k == n // 2 and not healthy:
                if frame:
                    run.frame(frame, run.at + 1, stall - 2000)
                run.at += stall
            run.kernel(GEMM, step / n, ts=run.at, launch_at=run.at - 12, grid=FULL)
            run.at += step / n
        run.mark("step[DECODE bs=16]", begin - 14, run.at - begin - 1)
    return run


def all_reduce(layers=64, ranks=4, each=24, size=10240, step=11000, steps=6, healthy=0):
    """Two small all-reduces a layer over NCCL, on boards without a link. Healthy: a custom one of 6 µs."""
    run = Decode()
    run.header["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": ranks}
    rest = round((step - 2 * layers * each) / layers / 2, 3)
    name = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(Params)" if healthy else "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Args)"
    for _ in range(steps):
        first = len(run.events)
        run.step([(GEMM, rest), (name, 6 if healthy else each, {"grid": (4, 1, 1)})] * (2 * layers), "step[DECODE bs=1]")
        for event in run.events[first:]:
            if event["cat"] == "kernel" and event["name"] == name and not healthy:
                event["args"] |= {"Collective name": "allreduce", "In msg nelems": size // 2, "Out msg nelems": size // 2,
                                  "dtype": "BFloat16", "Group size": ranks, "Process Group Name": "2"}
    return run


def layout_copy(layers=56, each=5, step=16000, steps=6, healthy=0):
    """transpose + flatten of a GEMM's result copies it in every layer."""
    run = Decode()
    rest = round((step - layers * each) / layers, 3)
    more = {"grid": (512, 1, 1), "op": "aten::copy_", "dims": [[16, 128, 128], [16, 128, 128], []], "types": ["c10::BFloat16", "c10::BFloat16", "Scalar"]}
    for _ in range(steps):
        run.step([k for _ in range(layers) for k in [(GEMM, rest), *([] if healthy else [(copy_kernel("gpu_kernel_impl_nocast"), each, more)])]],
                 "step[DECODE bs=16]")
    for number, event in enumerate([e for e in run.events if e["name"] == "aten::copy_"]):
        for depth, name in enumerate(["aten::clone", "aten::reshape", "aten::flatten"]):
            out = 0.2 * (depth + 1)
            run.event("cpu_op", name, round(event["ts"] - run.base - out, 3), round(event["dur"] + 2 * out, 3), **{"External id": 10**6 + 3 * number + depth})
        run.frame("sglang/srt/models/deepseek_v2.py(1409): forward_absorb", round(event["ts"] - run.base - 1.2, 3), round(event["dur"] + 2.4, 3))
    return run


def outside_process(kernels=60, each=100, slices=5, slice_each=400, steps=8, healthy=0):
    """Another process takes the GPU between this one's kernels, which are queued by then. Healthy: its GPU is another one."""
    mine, other = Decode(), Trace(host=5001, base=10_000_000)
    other.correlation = 1_000_000
    for _ in range(steps):
        begin = mine.at
        for k in range(kernels):
            if k % (kernels // slices) == 0:
                at = mine.at if not healthy else mine.at + each * 0.7
                other.kernel("other_process_kernel", slice_each, ts=at, launch_at=at - 30, grid=FULL)
                mine.at += 0 if healthy else slice_each
            mine.kernel(GEMM if k % 2 else ATTENTION, each, ts=mine.at, launch_at=round(begin / 3 + k * 4) - mine.lead, grid=FULL)
            mine.at += each
        mine.mark("step[DECODE bs=4]", round(begin / 3) - mine.lead - 3, kernels * 4 + 2)
    return joined([mine, other])


def oversized_grid(batch=8, blocks=8192, each=12, layers=32, gemm=60, steps=6, healthy=0):
    """The activation is launched for the most tokens possible. Healthy: for the batch."""
    run = Decode()
    name = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>(c10::BFloat16*, c10::BFloat16 const*, int)"
    act = (name, 2, {"grid": (batch, 1, 1)}) if healthy else (name, each, {"grid": (blocks, 1, 1)})
    for _ in range(steps):
        run.step([(GEMM, gemm), act, (GEMM, gemm), (NORM, 2, {"grid": (batch, 1, 1)}), (ATTENTION, 30)] * layers, f"step[DECODE bs={batch}]")
    return run


def config(family, layers, hidden, heads, kv_heads):
    json.dump({"architectures": ["LlamaForCausalLM"], "model_type": family, "hidden_size": hidden, "num_hidden_layers": layers,
               "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 128, "intermediate_size": 14336,
               "vocab_size": 128256, "torch_dtype": "bfloat16"}, open("config.json", "w"))


if __name__ == "__main__":
    name, *figures = sys.argv[1:]
    pairs = (figure.split("=", 1) for figure in figures)
    globals()[name](**{key: int(value) if value.lstrip("-").isdigit() else value for key, value in pairs}).write("run.json")
