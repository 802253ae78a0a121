"""Cases that fail on purpose, for the rehearsal of what the recorder must survive."""

import os
import time

import torch

import decode
from decode import DenseDecoder
from program import Case, Variant


class RaisesInStep(DenseDecoder):
    def post(self, step):
        super().post(step)
        if step == 1:
            raise RuntimeError("raised on purpose in step 1")


class OutOfMemory(DenseDecoder):
    def __init__(self, ctx, size):
        super().__init__(ctx, size)
        torch.empty(1 << 60, dtype=torch.uint8, device=self.device)


class Dies(DenseDecoder):
    def post(self, step):
        if step == 1:
            os.abort()


class Endless(DenseDecoder):
    """Outlasts the deadline, though no step does: the recorder must stop between steps."""

    def post(self, step):
        time.sleep(0.5)
        super().post(step)


class Hangs(DenseDecoder):
    def post(self, step):
        time.sleep(3600)


def failing(name, fault):
    def variant(label, program):
        return Variant(label, label, lambda ctx: program(ctx, decode.TINY_DENSE))

    return Case(name=name, suspects=("host-work",), planted="fails on purpose", fix="none",
                variants=(variant("before", fault), variant("after", DenseDecoder)))


def insert_into(cases, way):
    """Quick failures stand second, so that real cases must follow them; what outlasts a deadline stands first."""
    if way == "failing":
        faults = [failing("rehearsal-raises", RaisesInStep), failing("rehearsal-memory", OutOfMemory),
                  failing("rehearsal-dies", Dies)]
        return cases[:1] + faults + cases[1:]
    return [failing("rehearsal-endless", Endless) if way == "endless" else failing("rehearsal-hangs", Hangs)] + cases
