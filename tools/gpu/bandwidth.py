"""Achieved bandwidth of the operations that the pool cases are made of, by size.

Each row: bytes that the operation must move (every input read once, every output written once)
and the median over five rounds of the mean time of one launch. Inputs rotate over buffers larger than
any cache (512 MiB, or the whole pool for gathers); the smallest sizes are bound by launches. The outputs
of gathers are small and may stay in a cache.
"""

import statistics

import torch

ROW = 576
ROTATE_BYTES = 512 << 20


def row(features, what, launch, elements, moved, count):
    """`launch(k)` runs the operation once on the k-th buffer; `moved` is bytes per launch."""
    for k in range(3):
        launch(k)
    rounds = [features.time_launches(launch, count) for _ in range(5)]
    ns = statistics.median(rounds)
    return {"what": what, "elements": elements, "bytes": moved, "ns": round(ns),
            "rounds_ns": [round(r) for r in rounds], "gbps": round(moved / ns, 1)}


def casts_and_copies(features, rows, full):
    elements = rows * ROW
    number = max(2, -(-ROTATE_BYTES // elements)) if full else 2
    narrow = [features.random_fp8_bits((rows, ROW)).view(features.fp8) for _ in range(number)]
    wide = [torch.zeros((rows, ROW), dtype=torch.bfloat16, device=features.device) for _ in range(number)]
    count = max(20, number) if full else 2
    yield row(features, "cast fp8 to bf16", lambda k: wide[k % number].copy_(narrow[k % number]),
              elements, 3 * elements, count)
    yield row(features, "copy bf16", lambda k: wide[k % number].copy_(wide[k % number - 1]),
              elements, 4 * elements, count)


def gathers(features, pool, active, full):
    """`pool` [rows, ROW] FP8; the index sets are disjoint and together cover it."""
    order = torch.randperm(pool.shape[0], device=features.device)
    index = [order[i : i + active] for i in range(0, pool.shape[0] - active + 1, active)]
    number, bits, elements = len(index), pool.view(torch.uint8), active * ROW
    count = max(20, number) if full else 2
    yield row(features, "gather fp8 rows", lambda k: bits[index[k % number]], elements, 2 * elements, count)
    yield row(features, "gather fp8 rows, cast to bf16",
              lambda k: bits[index[k % number]].view(features.fp8).to(torch.bfloat16), elements,
              5 * elements, count)
    if features.has("triton"):
        from triton_kernels import read_fp8_rows
        heads = 8
        q = torch.randn((heads, ROW), device=features.device).to(torch.bfloat16)
        scores = torch.empty((heads, active), dtype=torch.float32, device=features.device)
        yield row(features, "fused read of fp8 rows (Triton)",
                  lambda k: read_fp8_rows(pool, index[k % number], q, scores), elements,
                  elements + 4 * heads * active, count)


def measure(features, full, deadline):
    """Rows of the table, largest sizes first; stops cleanly at the deadline."""
    rows = []
    pool_rows = (495552, 131136, 32768, 8192, 2048) if full else (2048, 512)
    active_rows = (131072, 32768, 8192, 1440) if full else (256,)
    try:
        for size in pool_rows:
            for line in casts_and_copies(features, size, full):
                rows.append(line)
                deadline.check()
            features.free_memory()
        pool = features.random_fp8_bits((pool_rows[0], ROW)).view(features.fp8)
        for active in active_rows:
            for line in gathers(features, pool, active, full):
                rows.append(line)
                deadline.check()
    except Exception as error:  # the rows that were measured stand, and say what ended the list
        rows.append({"what": "stopped", "reason": f"{type(error).__name__}: {error}"[:300]})
    return rows
