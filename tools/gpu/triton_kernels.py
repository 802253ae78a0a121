"""Triton kernels of the recordings; imported only where Triton is there."""

import triton
import triton.language as tl


@triton.jit
def gather_slots_kernel(slots, index, used, out, WIDTH: tl.constexpr):
    """out[p, :] = slots[index[p], :] for p < used[0]; programs beyond return at once."""
    p = tl.program_id(0)
    if p < tl.load(used):
        columns = tl.arange(0, WIDTH)
        row = tl.load(index + p)
        tl.store(out + p * WIDTH + columns, tl.load(slots + row * WIDTH + columns))


def gather_slots(slots, index, used, out, programs):
    """slots [P, W] with W a power of two, index [P] int64, used [1] int32, out [>= used, W]."""
    gather_slots_kernel[(programs,)](slots, index, used, out, WIDTH=slots.shape[1])


@triton.jit
def read_fp8_rows_kernel(pool, index, q, scores, ROW: tl.constexpr, PADDED: tl.constexpr,
                         HEADS: tl.constexpr):
    """scores[h, p] = q[h, :] . pool[index[p], :]: FP8 is widened in registers, nothing is written back."""
    p = tl.program_id(0)
    columns = tl.arange(0, PADDED)
    inside = columns < ROW
    row = tl.load(index + p)
    key = tl.load(pool + row * ROW + columns, mask=inside).to(tl.float32)
    key = tl.where(inside, key, 0.0)
    for h in tl.static_range(HEADS):
        query = tl.load(q + h * ROW + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(scores + h * tl.num_programs(0) + p, tl.sum(query * key))


def read_fp8_rows(pool, index, q, scores):
    """pool [P, row] FP8, index [A] int64, q [heads, row] bf16 -> scores [heads, A] float32."""
    row = pool.shape[1]
    read_fp8_rows_kernel[(index.shape[0],)](pool, index, q, scores, ROW=row,
                                           PADDED=triton.next_power_of_2(row), HEADS=q.shape[0])
