"""Faults of the KV pool: the whole pool cast, the whole cache copied, the cache laid out anew.

Each costs time in proportion to the pool or the context reserved, not to the tokens in use.
"""

from dataclasses import replace

import torch

import decode
from decode import DenseDecoder, MlaDecoder
from program import Case, Variant, register


class CastWholePool(MlaDecoder):
    def active_keys(self, layer):
        key_buffer = self.get_key_buffer(layer).to(torch.bfloat16)  # the planted cast: every row
        return key_buffer[self.active]


class Bf16Pool(MlaDecoder):
    """The control: a 16-bit pool needs no cast, at twice the bytes per token."""

    def make_pool(self):
        bits = self.features.random_fp8_bits((self.size.pool_rows, 1, self.row))
        return self.keep("kv_pool", bits.view(self.features.fp8).to(torch.bfloat16))

    def set_kv_buffer(self, layer, latent):
        # Through FP8, so that the numbers equal those of the other variants.
        self.pool[layer][self.slot] = latent.to(self.features.fp8).to(torch.bfloat16)

    def active_keys(self, layer):
        return self.pool[layer][self.active]


def register_pool_cast(size):
    def builder(program):
        return lambda ctx: program(ctx, ctx.pick(size, decode.TINY_MLA))

    register(Case(
        name=f"pool-cast-{size.pool_rows}",
        suspects=("whole-pool-cast",),
        planted=f"every layer casts its whole FP8 KV pool [{size.pool_rows},1,576] to BF16, then reads "
                f"{size.active} rows of it",
        fix="gather the active rows, then cast them; or keep the pool in BF16",
        tolerance=0.001,  # the same numbers reach the same kernels
        variants=(
            Variant("before", "cast the whole pool, gather", builder(CastWholePool)),
            Variant("after", "gather the active rows, cast them", builder(MlaDecoder)),
            Variant("after-bf16", "BF16 pool, gather", builder(Bf16Pool)))))


class ConcatCache(DenseDecoder):
    def update_cache(self, layer, k, v):
        keys, values = self.cache[layer]
        # The planted copy. The result is not kept, so that each step does the same work.
        return torch.cat([keys[:, :, :-1], k], 2), torch.cat([values[:, :, :-1], v], 2)


def concat_size(ctx):
    return ctx.pick(replace(decode.QWEN3_8B, context=8192), decode.TINY_DENSE)


class CacheByPosition(DenseDecoder):
    """The cache is stored [batch, context, kv_heads, head_dim], as tokens arrive."""

    def make_cache(self):
        s, caches = self.size, []
        for kind in ("k", "v"):
            # Drawn in the other variant's layout: the same numbers in both.
            drawn = torch.empty((s.batch, s.kv_heads, s.context, s.head_dim), dtype=torch.bfloat16,
                                device=self.device).normal_()
            caches.append(self.keep(f"{kind}_cache", drawn.transpose(1, 2).contiguous()))
        return tuple(caches)

    def update_cache(self, layer, k, v):
        keys, values = self.cache[layer]
        keys.index_copy_(1, self.position, k.transpose(1, 2))
        values.index_copy_(1, self.position, v.transpose(1, 2))
        # The planted layout copy, of the whole cache of the layer.
        return keys.transpose(1, 2).contiguous(), values.transpose(1, 2).contiguous()


def layout_size(ctx):
    return ctx.pick(replace(decode.QWEN3_8B, context=4096), decode.TINY_DENSE)


def register_pool_concat():
    register(Case(
        name="pool-concat",
        suspects=("whole-pool-copy",),
        planted="every layer appends the new token by concatenation: keys and values of 8 x 8192 tokens "
                "are copied whole",
        fix="write the new token into a preallocated cache",
        variants=(
            Variant("before", "torch.cat of the cache and the new token",
                    lambda ctx: ConcatCache(ctx, concat_size(ctx))),
            Variant("after", "index_copy_ into the cache",
                    lambda ctx: DenseDecoder(ctx, concat_size(ctx))))))


def register_layout_copy():
    register(Case(
        name="layout-copy",
        suspects=("layout-copy",),
        planted="the cache is stored by position and made contiguous by head, whole, in every layer",
        fix="store the cache in the layout that attention reads",
        variants=(
            Variant("before", "transpose(1, 2).contiguous() of keys and values",
                    lambda ctx: CacheByPosition(ctx, layout_size(ctx))),
            Variant("after", "cache stored by head",
                    lambda ctx: DenseDecoder(ctx, layout_size(ctx))))))
