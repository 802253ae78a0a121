"""Faults of weights: dequantised in every step, or read once per sequence instead of once."""

from dataclasses import replace

import torch
import torch.nn.functional as F

import decode
from decode import DenseDecoder
from program import Case, Variant, register


class Fp8Weights(DenseDecoder):
    """Linear weights in FP8 with one float32 scale per tensor; activations are cast to FP8."""

    def make_linear(self, name, rows, columns):
        w = torch.empty((rows, columns), dtype=torch.bfloat16, device=self.device).normal_()
        w = self.keep(name, w.clamp_(-4, 4).to(self.features.fp8))
        return w, torch.full((), columns ** -0.5, dtype=torch.float32, device=self.device)

    def linear(self, x, w):
        return self.features.fp8_matmul(x, *w)


class DequantiseEachStep(Fp8Weights):
    def linear(self, x, w):
        weight, scale = w
        return F.linear(x, weight.to(x.dtype) * scale.to(x.dtype))  # the planted dequantisation


class DequantisedOnce(Fp8Weights):
    """Stands for the FP8 matmul where there is none."""

    def make_linear(self, name, rows, columns):
        weight, scale = super().make_linear(name, rows, columns)
        return weight.to(torch.bfloat16) * scale.to(torch.bfloat16)

    def linear(self, x, w):
        return F.linear(x, w)


def dequant_size(ctx):  # 16 rows: the FP8 matmul wants multiples of 16
    return ctx.pick(replace(decode.QWEN3_8B, batch=16, layers=12), replace(decode.TINY_DENSE, batch=16))


def native_fp8(ctx):
    program = Fp8Weights if ctx.features.has("fp8_matmul") else DequantisedOnce
    return program(ctx, dequant_size(ctx))


def register_weight_dequant():
    register(Case(
        name="weight-dequant",
        suspects=("weight-dequant",),
        planted="every linear casts its FP8 weight to BF16 and scales it, in every step",
        fix="multiply in FP8 (scaled matmul), or dequantise once at load",
        tolerance=None,  # the fix also rounds activations to FP8
        variants=(
            Variant("before", "weight.to(bf16) * scale, then a BF16 matmul",
                    lambda ctx: DequantiseEachStep(ctx, dequant_size(ctx))),
            Variant("after", "FP8 matmul", native_fp8))))


class HeadPerSequence(DenseDecoder):
    def head(self, x):
        rows = [F.linear(x[i : i + 1], self.head_weight) for i in range(x.shape[0])]  # planted
        return torch.cat(rows, 0)


def register_repeated_head():
    def size(ctx):
        return ctx.pick(replace(decode.QWEN3_8B, layers=8), decode.TINY_DENSE)

    register(Case(
        name="repeated-lm-head",
        suspects=("repeated-read",),
        planted="the LM head [151936,4096] is read once per sequence, 8 times per step",
        fix="one matmul for the batch",
        variants=(
            Variant("before", "one LM-head matmul per sequence",
                    lambda ctx: HeadPerSequence(ctx, size(ctx))),
            Variant("after", "one LM-head matmul", lambda ctx: DenseDecoder(ctx, size(ctx))))))
