"""All cases, most valuable first: a deadline cuts the list from its end."""

import decode
import cases_host
import cases_kernels
import cases_pool
import cases_stall
import cases_weights
from program import REGISTRY


def all_cases():
    if not REGISTRY:
        cases_pool.register_pool_cast(decode.GLM5_RANK)
        cases_pool.register_pool_cast(decode.R1_RANK)
        cases_weights.register_weight_dequant()
        cases_host.register_host_launch()
        cases_pool.register_pool_concat()
        cases_pool.register_layout_copy()
        cases_host.register_item_per_layer()
        cases_host.register_blocking_copy()
        cases_kernels.register_small_kernels()
        cases_kernels.register_single_block()
        cases_kernels.register_oversized_grid()
        cases_weights.register_repeated_head()
        cases_stall.register_prefill()
        cases_stall.register_gc_stall()
        cases_stall.register_compile_stall()
        cases_host.register_host_work()
        cases_stall.register_allocator_stall()
    return REGISTRY
