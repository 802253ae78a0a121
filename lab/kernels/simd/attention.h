// Attention over rows of a KV pool, and a DSA indexer's scores. Rows come in tiles of kTile: FP8 rows
// are decoded into a tile of BF16 on the stack, BF16 rows are used where they lie, and what
// follows is the same for both, so that every way of reading the pool gives the same bits. Within a
// tile, four heads share each load of a row; the softmax is corrected once per tile.
#pragma once

#include "lab/kernels/simd/rows.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kTile = 16, kHeads = 4, kRows = 2;
constexpr std::int64_t kTileNumbers = 16'384;  // a row holds at most these
constexpr std::int64_t kHeadsAtOnce = 128;     // more heads go over the rows again

struct Tile {
  std::int64_t count = 0;
  const Bf16* rows[kTile];
  float scales[kTile];
};

inline const std::byte* row_at(const KvRows& rows, std::int64_t i) {
  return rows.data + (rows.index != nullptr ? rows.index[i] : i) * rows.stride;
}

// Rows [begin, begin + count) ready to be multiplied; `decoded` has room for a tile.
inline void fill_tile(const KvRows& rows, std::int64_t width, std::int64_t begin,
                      std::int64_t count, Bf16* decoded, Tile& tile) {
  tile.count = count;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::byte* const row = row_at(rows, begin + r);
    tile.scales[r] = rows.scale_at < 0 ? 1 : load_as<float>(row + rows.scale_at);
    if (rows.format == KvFormat::kBf16) {
      tile.rows[r] = reinterpret_cast<const Bf16*>(row);
    } else {
      cast_row(reinterpret_cast<const std::uint8_t*>(row), width, decoded + r * width);
      tile.rows[r] = decoded + r * width;
    }
  }
}

// The next tile's rows lie anywhere: ask for them while this one is worked on.
inline void ask_for_rows(const KvRows& rows, std::int64_t width, std::int64_t begin,
                         std::int64_t end) {
  const std::int64_t bytes = rows.format == KvFormat::kBf16 ? 2 * width : width;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(row_at(rows, i) + b, 0, 3);
}

// Four heads times two rows; out[r][h].
inline void products(const float* const (&q)[kHeads], const Bf16* const (&rows)[kRows],
                     std::int64_t width, float (&out)[kRows][kHeads]) {
  F acc[kRows][kHeads];
  CULPRIT_UNROLL
  for (std::int64_t h = 0; h < kHeads; ++h) acc[0][h] = acc[1][h] = zero();
  const std::int64_t whole = whole_vectors(width), left = width - whole;
  for (std::int64_t i = 0; i < whole; i += W) {
    const F k0 = load(rows[0] + i), k1 = load(rows[1] + i);
    CULPRIT_UNROLL
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const F x = load(q[h] + i);
      acc[0][h] = fma(x, k0, acc[0][h]);
      acc[1][h] = fma(x, k1, acc[1][h]);
    }
  }
  if (left > 0) {
    const F k0 = load_some(rows[0] + whole, left), k1 = load_some(rows[1] + whole, left);
    CULPRIT_UNROLL
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const F x = load_some(q[h] + whole, left);
      acc[0][h] = fma(x, k0, acc[0][h]);
      acc[1][h] = fma(x, k1, acc[1][h]);
    }
  }
  CULPRIT_UNROLL
  for (std::int64_t r = 0; r < kRows; ++r) sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], out[r]);
}

// scores[h][r] = scale x q_h . row_r for `heads` heads from q on. Groups that are not full work on
// their last head or row again.
inline void scores_of(const float* q, std::int64_t heads, std::int64_t width, float scale,
                      const Tile& tile, float (*scores)[kTile]) {
  for (std::int64_t h = 0; h < heads; h += kHeads) {
    const float* group[kHeads];
    for (std::int64_t i = 0; i < kHeads; ++i) group[i] = q + least(h + i, heads - 1) * width;
    for (std::int64_t r = 0; r < tile.count; r += kRows) {
      const Bf16* const rows[kRows] = {tile.rows[r], tile.rows[least(r + 1, tile.count - 1)]};
      float out[kRows][kHeads];
      products(group, rows, width, out);
      for (std::int64_t j = r; j < least(r + kRows, tile.count); ++j)
        for (std::int64_t i = h; i < least(h + kHeads, heads); ++i)
          scores[i][j] = out[j - r][i - h] * (scale * tile.scales[j]);
    }
  }
}

// ---- the weighted sum of rows ----------------------------------------------------------------------
// Adds the tile's rows, columns [at, at + 2 W) or fewer, to four heads' sums.
template <bool kWhole>
inline void add_columns(const Tile& tile, const float* const (&weights)[kHeads], std::int64_t at,
                        std::int64_t count, float* const (&out)[kHeads]) {
  F acc[kHeads][2];
  const std::int64_t first = kWhole ? W : least(W, count), second = kWhole ? W : count - first;
  CULPRIT_UNROLL
  for (std::int64_t h = 0; h < kHeads; ++h) {
    acc[h][0] = kWhole ? load(out[h] + at) : load_some(out[h] + at, first);
    acc[h][1] = kWhole ? load(out[h] + at + W) : load_some(out[h] + at + first, second);
  }
  for (std::int64_t r = 0; r < tile.count; ++r) {
    const Bf16* const row = tile.rows[r] + at;
    const F a = kWhole ? load(row) : load_some(row, first);
    const F b = kWhole ? load(row + W) : load_some(row + first, second);
    CULPRIT_UNROLL
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const F weight = set1(weights[h][r]);
      acc[h][0] = fma(weight, a, acc[h][0]);
      acc[h][1] = fma(weight, b, acc[h][1]);
    }
  }
  CULPRIT_UNROLL
  for (std::int64_t h = 0; h < kHeads; ++h) {
    store_some(out[h] + at, acc[h][0], first);
    store_some(out[h] + at + first, acc[h][1], second);
  }
}

inline void add_values(const Tile& tile, const float (*weights)[kTile], std::int64_t heads,
                       std::int64_t width, float* out) {
  for (std::int64_t h = 0; h < heads; h += kHeads) {
    const float* group[kHeads];
    float* to[kHeads];
    for (std::int64_t i = 0; i < kHeads; ++i) {
      const std::int64_t head = least(h + i, heads - 1);
      group[i] = weights[head];
      to[i] = out + head * width;
    }
    std::int64_t at = 0;
    for (; at + 2 * W <= width; at += 2 * W) add_columns<true>(tile, group, at, 2 * W, to);
    if (at < width) add_columns<false>(tile, group, at, width - at, to);
  }
}

// Scores become weights e^(score - max); where the maximum rises, what was summed before shrinks.
inline void soften(Tile& tile, std::int64_t heads, std::int64_t width, float (*scores)[kTile],
                   Partial p) {
  for (std::int64_t h = 0; h < heads; ++h) {
    const float top = largest_of(scores[h], tile.count);
    if (top > p.max[h]) {
      const float shrink = std::exp(p.max[h] - top);  // 0 in the first tile
      scale_by(p.out + h * width, shrink, width);
      p.sum[h] *= shrink;
      p.max[h] = top;
    }
    p.sum[h] += exp_and_sum(scores[h], p.max[h], tile.count, scores[h]);
    for (std::int64_t r = 0; r < tile.count; ++r) scores[h][r] *= tile.scales[r];
  }
}

inline Query heads_from(const Query& query, std::int64_t first) {
  Query part = query;
  part.q += first * query.width;
  part.heads = least(kHeadsAtOnce, query.heads - first);
  return part;
}

inline void attend_heads(const Query& query, const KvRows& keys, const KvRows& values,
                         std::int64_t begin, std::int64_t end, Partial p) {
  alignas(64) Bf16 key_numbers[kTileNumbers], value_numbers[kTileNumbers];
  float scores[kHeadsAtOnce][kTile];
  for (std::int64_t h = 0; h < query.heads; ++h) {
    p.max[h] = -INFINITY;
    p.sum[h] = 0;
  }
  std::memset(p.out, 0, static_cast<std::size_t>(query.heads * query.value_width) * sizeof(float));
  const bool shared = keys.data == values.data && keys.index == values.index;  // MLA
  const std::int64_t widest = query.width > query.value_width ? query.width : query.value_width;
  const std::int64_t step = least(kTile, kTileNumbers / widest);
  for (std::int64_t i = begin; i < end; i += step) {
    const std::int64_t next = least(i + step, end);
    Tile tile, value_tile;
    fill_tile(keys, query.width, i, next - i, key_numbers, tile);
    if (!shared) fill_tile(values, query.value_width, i, next - i, value_numbers, value_tile);
    ask_for_rows(keys, query.width, next, least(next + step, end));
    if (!shared) ask_for_rows(values, query.value_width, next, least(next + step, end));
    scores_of(query.q, query.heads, query.width, query.scale, tile, scores);
    soften(shared ? tile : value_tile, query.heads, query.value_width, scores, p);
    add_values(shared ? tile : value_tile, scores, query.heads, query.value_width, p.out);
  }
}

void attend(const Query& query, const KvRows& keys, const KvRows& values, std::int64_t begin,
            std::int64_t end, Partial partial) {
  for (std::int64_t h = 0; h < query.heads; h += kHeadsAtOnce)
    attend_heads(heads_from(query, h), keys, values, begin, end,
                 {partial.max + h, partial.sum + h, partial.out + h * query.value_width});
}

void merge(Partial into, Partial other, std::int64_t heads, std::int64_t value_width) {
  for (std::int64_t h = 0; h < heads; ++h) {
    if (!(other.sum[h] > 0)) continue;  // it had no position
    const float top = into.max[h] > other.max[h] ? into.max[h] : other.max[h];
    const float mine = std::exp(into.max[h] - top), theirs = std::exp(other.max[h] - top);
    scale_by(into.out + h * value_width, mine, value_width);
    add_scaled(other.out + h * value_width, theirs, value_width, into.out + h * value_width);
    into.sum[h] = into.sum[h] * mine + other.sum[h] * theirs;
    into.max[h] = top;
  }
}

void finish(Partial partial, std::int64_t heads, std::int64_t value_width) {
  for (std::int64_t h = 0; h < heads; ++h)
    if (partial.sum[h] != 0)
      scale_by(partial.out + h * value_width, 1 / partial.sum[h], value_width);
}

void index_scores(const Query& query, const float* head_weight, const KvRows& keys,
                  std::int64_t begin, std::int64_t end, float* scores) {
  alignas(64) Bf16 numbers[kTileNumbers];
  float products_of[kHeadsAtOnce][kTile];
  const std::int64_t step = least(kTile, kTileNumbers / query.width);
  for (std::int64_t i = begin; i < end; i += step) {
    const std::int64_t count = least(step, end - i);
    float* const out = scores + (i - begin);
    for (std::int64_t r = 0; r < count; ++r) out[r] = 0;
    Tile tile;
    fill_tile(keys, query.width, i, count, numbers, tile);
    for (std::int64_t first = 0; first < query.heads; first += kHeadsAtOnce) {
      const Query some = heads_from(query, first);
      scores_of(some.q, some.heads, some.width, some.scale, tile, products_of);
      for (std::int64_t h = 0; h < some.heads; ++h)
        for (std::int64_t r = 0; r < count; ++r)
          if (products_of[h][r] > 0) out[r] += head_weight[first + h] * products_of[h][r];
    }
  }
}

// ---- the pool, and memory alone --------------------------------------------------------------------
void gather_cast(const KvRows& rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                 Bf16* out) {
  for (std::int64_t i = begin; i < end; ++i, out += width) {
    ask_for_rows(rows, width, i + 8, least(i + 9, end));
    const std::byte* const row = row_at(rows, i);
    if (rows.format == KvFormat::kBf16)
      std::memcpy(out, row, static_cast<std::size_t>(width) * sizeof(Bf16));
    else
      cast_row(reinterpret_cast<const std::uint8_t*>(row), width, out);
  }
}

void cast_pool(const std::uint8_t* e4m3, std::int64_t n, Bf16* out) {
  const auto address = reinterpret_cast<std::uintptr_t>(out);
  std::int64_t i = least(n, static_cast<std::int64_t>((64 - address % 64) % 64 / sizeof(Bf16)));
  cast_row(e4m3, i, out);
  for (; i + 64 <= n; i += 64) {
    stream_as_bf16(e4m3 + i, out + i);
  }
  cast_row(e4m3 + i, n - i, out + i);
  stream_end();
}

std::uint64_t read_memory(const std::byte* p, std::int64_t n) {
  Line a = load_line(p), b = a, c = a, d = a;
  for (std::int64_t i = 0; i < n; i += 256) {
    a = mix(a, load_line(p + i));
    b = mix(b, load_line(p + i + 64));
    c = mix(c, load_line(p + i + 128));
    d = mix(d, load_line(p + i + 192));
  }
  alignas(64) std::byte bytes_of[64];
  stream(bytes_of, mix(mix(a, b), mix(c, d)));
  stream_end();
  return load_as<std::uint64_t>(bytes_of) ^ load_as<std::uint64_t>(bytes_of + 32);
}

void write_memory(std::byte* p, std::int64_t n) {
  const Line line = load_line(p);
  for (std::int64_t i = 0; i < n; i += 64) stream(p + i, line);
  stream_end();
}

void copy_memory(const std::byte* from, std::int64_t n, std::byte* to) {
  for (std::int64_t i = 0; i < n; i += 64) {
    stream(to + i, load_line(from + i));
  }
  stream_end();
}

}  // namespace
}  // namespace culprit::lab
