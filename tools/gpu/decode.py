"""The two decode steps that the cases plant faults into: an MLA rank and a dense GQA model.

Shapes are those of published configurations; what a step does not need in order to be
decode-shaped (rotary embedding, collectives, a growing context) is left out. Each part that a
case replaces is a method of its own; the methods here are the healthy ones.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from program import Program


@dataclass(frozen=True)
class MlaSize:
    """One tensor-parallel rank of an MLA model in absorbed decode, batch 1."""
    layers: int
    hidden: int
    heads: int  # on this rank
    q_lora: int
    nope: int  # no-position part of a query head
    v_dim: int
    active_inter: int  # rows that the routed experts of one token have on this rank, all together
    vocab: int  # on this rank
    pool_rows: int
    active: int  # pool rows that the one sequence uses
    latent: int = 512
    rope: int = 64


# zai-org/GLM-5 config.json over 8 ranks: 78 layers, 64 heads, 8 experts x 2048 / 8 per token.
GLM5_RANK = MlaSize(layers=78, hidden=6144, heads=8, q_lora=2048, nope=192, v_dim=256,
                    active_inter=2048, vocab=154880 // 8, pool_rows=495552, active=1440)
# deepseek-ai/DeepSeek-R1 config.json over 8 ranks: 61 layers, 128 heads, (8 + 1 shared) x 2048 / 8.
R1_RANK = MlaSize(layers=61, hidden=7168, heads=16, q_lora=1536, nope=128, v_dim=128,
                  active_inter=2304, vocab=129280 // 8, pool_rows=131136, active=1440)
TINY_MLA = MlaSize(layers=4, hidden=128, heads=2, q_lora=64, nope=32, v_dim=32, active_inter=64,
                   vocab=256, pool_rows=1024, active=32)


class MlaDecoder(Program):
    """Logits [1, vocab] of one MLA decode step over an FP8 pool, read by gather, then cast.

    Pool: per layer [pool_rows, 1, latent + rope], stored as uint8 because index_put has no FP8.
    """

    def __init__(self, ctx, size):
        super().__init__(ctx)
        self.size = s = size
        self.row = s.latent + s.rope
        self.embed = self.weight("embed_tokens", s.vocab, s.hidden)
        self.layers = [self.make_layer() for _ in range(s.layers)]
        self.norm = self.ones("final_norm", s.hidden)
        self.head = self.weight("lm_head", s.vocab, s.hidden)
        self.pool = [self.make_pool() for _ in range(s.layers)]
        order = torch.randperm(s.pool_rows, device=self.device)
        self.active = self.keep("page_table", order[: s.active].clone())
        self.slot = self.active[-1:].clone()
        self.tokens = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.host_tokens = self.host_buffer(1)

    def make_layer(self):
        s = self.size
        return {
            "norm1": self.ones("input_norm", s.hidden),
            "q_a": self.weight("q_a_proj", s.q_lora, s.hidden),
            "q_norm": self.ones("q_a_norm", s.q_lora),
            "q_b": self.weight("q_b_proj", s.heads * (s.nope + s.rope), s.q_lora),
            "kv_a": self.weight("kv_a_proj", self.row, s.hidden),
            "kv_norm": self.ones("kv_a_norm", self.row),
            "w_kc": self.weight("kv_b_proj.k", s.heads, s.nope, s.latent),
            "w_vc": self.weight("kv_b_proj.v", s.heads, s.latent, s.v_dim),
            "o": self.weight("o_proj", s.hidden, s.heads * s.v_dim),
            "norm2": self.ones("post_attention_norm", s.hidden),
            "w13": self.weight("experts.w13_active", 2 * s.active_inter, s.hidden),
            "w2": self.weight("experts.w2_active", s.hidden, s.active_inter)}

    def make_pool(self):
        return self.keep("kv_pool", self.features.random_fp8_bits((self.size.pool_rows, 1, self.row)))

    def get_key_buffer(self, layer):
        """The whole buffer of a layer, [pool_rows, 1, row] in FP8, without a copy."""
        return self.pool[layer].view(self.features.fp8)

    def set_kv_buffer(self, layer, latent):
        self.pool[layer][self.slot] = latent.to(self.features.fp8).view(torch.uint8)

    def active_keys(self, layer):
        """The rows in use, [active, 1, row] in bf16: gathered first, then cast."""
        return self.pool[layer][self.active].view(self.features.fp8).to(torch.bfloat16)

    def attend(self, layer, q):
        """q [heads, row] -> [heads, latent]."""
        keys = self.active_keys(layer).view(-1, self.row)
        scores = torch.mm(q, keys.t()) * (self.size.nope + self.size.rope) ** -0.5
        return torch.mm(torch.softmax(scores.float(), -1).to(q.dtype), keys[:, : self.size.latent])

    def forward_layer(self, layer, x):
        s, w, norm = self.size, self.layers[layer], self.features.rms_norm
        h = norm(x, w["norm1"])
        q = F.linear(norm(F.linear(h, w["q_a"]), w["q_norm"]), w["q_b"]).view(s.heads, -1)
        self.set_kv_buffer(layer, norm(F.linear(h, w["kv_a"]), w["kv_norm"]).view(1, 1, self.row))
        q_latent = torch.bmm(q[:, : s.nope].unsqueeze(1), w["w_kc"]).squeeze(1)
        out = self.attend(layer, torch.cat([q_latent, q[:, s.nope :]], -1))
        out = torch.bmm(out.unsqueeze(1), w["w_vc"]).view(1, -1)
        x = x + F.linear(out, w["o"])
        gate, up = F.linear(norm(x, w["norm2"]), w["w13"]).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, w["w2"])

    def body(self):
        x = F.embedding(self.tokens, self.embed)
        for layer in range(self.size.layers):
            x = self.forward_layer(layer, x)
        self.logits = F.linear(self.features.rms_norm(x, self.norm), self.head)
        self.tokens.copy_(self.logits.argmax(-1))

    def post(self, step):
        self.read_tokens(self.tokens, self.host_tokens)


@dataclass(frozen=True)
class DenseSize:
    """A whole dense model with grouped-query attention, or its first layers."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inter: int
    vocab: int
    batch: int
    context: int


# Qwen/Qwen3-8B and Qwen/Qwen3-0.6B config.json; cases take fewer layers of the former.
QWEN3_8B = DenseSize(layers=16, hidden=4096, heads=32, kv_heads=8, head_dim=128, inter=12288,
                     vocab=151936, batch=8, context=1024)
QWEN3_06B = DenseSize(layers=28, hidden=1024, heads=16, kv_heads=8, head_dim=128, inter=3072,
                      vocab=151936, batch=1, context=512)
TINY_DENSE = DenseSize(layers=3, hidden=128, heads=4, kv_heads=2, head_dim=32, inter=256, vocab=512,
                       batch=8, context=64)


class DenseDecoder(Program):
    """Logits [batch, vocab] of one decode step; the cache is [batch, kv_heads, context, head_dim]."""

    def __init__(self, ctx, size):
        super().__init__(ctx)
        self.size = s = size
        self.embed = self.weight("embed_tokens", s.vocab, s.hidden)
        self.layers = [self.make_layer() for _ in range(s.layers)]
        self.norm_weight = self.ones("final_norm", s.hidden)
        self.head_weight = self.weight("lm_head", s.vocab, s.hidden)
        self.cache = [self.make_cache() for _ in range(s.layers)]
        self.position = torch.full((1,), s.context - 1, dtype=torch.int64, device=self.device)
        self.tokens = torch.arange(s.batch, dtype=torch.int64, device=self.device)
        self.host_tokens = self.host_buffer(s.batch)

    def make_layer(self):
        s = self.size
        return {
            "norm1": self.ones("input_norm", s.hidden),
            "qkv": self.make_linear("qkv_proj", (s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden),
            "o": self.make_linear("o_proj", s.hidden, s.heads * s.head_dim),
            "norm2": self.ones("post_attention_norm", s.hidden),
            "gate_up": self.make_linear("gate_up_proj", 2 * s.inter, s.hidden),
            "down": self.make_linear("down_proj", s.hidden, s.inter)}

    def make_linear(self, name, rows, columns):
        return self.weight(name, rows, columns)

    def make_cache(self):
        s = self.size
        shape = (s.batch, s.kv_heads, s.context, s.head_dim)
        return tuple(self.keep(f"{kind}_cache", torch.empty(shape, dtype=torch.bfloat16,
                                                            device=self.device).normal_())
                     for kind in ("k", "v"))

    def linear(self, x, w):
        return F.linear(x, w)

    def norm(self, x, weight):
        return self.features.rms_norm(x, weight)

    def activate(self, gate_up):
        gate, up = gate_up.chunk(2, -1)
        return F.silu(gate) * up

    def update_cache(self, layer, k, v):
        """k, v [batch, kv_heads, 1, head_dim] of the new token -> all keys and values."""
        keys, values = self.cache[layer]
        keys.index_copy_(2, self.position, k)
        values.index_copy_(2, self.position, v)
        return keys, values

    def forward_layer(self, layer, x):
        s, w = self.size, self.layers[layer]
        qkv = self.linear(self.norm(x, w["norm1"]), w["qkv"])
        q, k, v = qkv.split([s.heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim], -1)
        keys, values = self.update_cache(layer, k.view(-1, s.kv_heads, 1, s.head_dim),
                                         v.view(-1, s.kv_heads, 1, s.head_dim))
        # The query heads of one group share keys: they stand as the rows of one query.
        q = q.reshape(-1, s.kv_heads, s.heads // s.kv_heads, s.head_dim)
        x = x + self.linear(self.features.attention(q, keys, values).reshape(x.shape[0], -1), w["o"])
        return x + self.linear(self.activate(self.linear(self.norm(x, w["norm2"]), w["gate_up"])), w["down"])

    def head(self, x):
        return F.linear(x, self.head_weight)

    def sample(self, logits):
        return logits.argmax(-1)

    def forward(self):
        x = F.embedding(self.tokens, self.embed)
        for layer in range(self.size.layers):
            x = self.forward_layer(layer, x)
        self.logits = self.head(self.norm(x, self.norm_weight))

    def body(self):
        self.forward()
        self.tokens.copy_(self.sample(self.logits))

    def post(self, step):
        self.read_tokens(self.tokens, self.host_tokens)
