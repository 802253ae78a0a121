#include <algorithm>

#include "lab/kernels/check_parts.h"
#include "lab/kernels/drawn.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

// A lane adds up at most cols / 32 products, each addition off by 2^-24 of the sum so far at most and
// as often up as down, then come a few scales: 16 x 2^-24 for the columns tried. BF16 and E4M3 on
// AVX-512 go through VDPBF16PS, which adds its two products one after the other and takes subnormals
// for zero: the same bound holds. Q4_K takes one sum from another, both larger than what the
// magnitudes of its values show.
constexpr double kTolerance = 1e-6, kQ4Tolerance = 2e-6;

// The sum of the magnitudes of a product's terms: what its rounding is measured against.
float magnitude(const Matrix& m, const std::vector<float>& row, const Batch& x, std::int64_t t) {
  double total = 0;
  for (std::int64_t i = 0; i < m.cols; ++i)
    total += std::fabs(static_cast<double>(row.data()[i]) * x.number(t, i));
  return static_cast<float>(total);
}

constexpr std::int64_t kTokens = 6, kSpare = 7;

struct Prepared {
  Placed bytes;
  Batch batch;
};
Prepared prepare_tokens(const Kernels& table, const Matrix& m, const std::vector<float>& x) {
  const Activations kind = activations_for(m);
  const std::int64_t size = prepared_bytes(kind, m.cols);
  Prepared r{Placed(kTokens * size, 0), {kind, kTokens, m.cols}};
  r.batch.input_scale = m.input_scale;
  r.batch.data = r.bytes.data();
  for (std::int64_t t = 0; t < kTokens; ++t)
    table.prepare(kind, x.data() + t * m.cols, m.cols, m.input_scale, r.bytes.data() + t * size);
  return r;
}

struct LinearWorst {
  Worst product, prepared, batch, dots;
};

// Rows [1, rows) of all tokens, which come in an order of their own; nothing else may be written.
void check_products(const Kernels& fast, const DrawnMatrix& w, const Batch& in_order, Worst& worst,
                    Worst& batch_worst) {
  const Matrix& m = w.matrix;
  const std::int32_t order[kTokens] = {3, 0, 5, 1, 4, 2};
  Batch x = in_order;
  x.rows = order;
  const std::int64_t stride = m.rows + 1, first = m.rows > 1 ? 1 : 0;
  std::vector<float> got(static_cast<std::size_t>(kTokens * stride), kSpare), want = got, one = got;
  fast.linear(m, x, first, m.rows, got.data(), stride);
  kernels(Isa::kReference).linear(m, x, first, m.rows, want.data(), stride);
  std::vector<float> row(static_cast<std::size_t>(m.cols));
  for (std::int64_t r = 0; r < stride; ++r) {
    if (r < m.rows) dequantize_row(m, r, row.data());
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const auto i = static_cast<std::size_t>(t * stride + r);
      worst.see(got[i], want[i], r < m.rows ? magnitude(m, row, x, t) : 0.0F);
    }
  }
  for (std::int64_t t = 0; t < kTokens; ++t) {  // by itself, row by row: the same bits
    Batch single = in_order;
    single.tokens = 1;
    single.data = x.token(t);
    for (std::int64_t r = first; r < m.rows; ++r)
      fast.linear(m, single, r, r + 1, one.data() + t * stride, stride);
  }
  for (std::size_t i = 0; i < got.size(); ++i) batch_worst.see_same(same_bits(got[i], one[i]));
}

void check_dots(const Kernels& fast, const Matrix& m, const Batch& x, Worst& worst) {
  std::vector<std::int32_t> got(static_cast<std::size_t>(m.cols / kNvfp4Block)), want = got;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    fast.nvfp4_block_dots(m, r, x, r % kTokens, got.data());
    kernels(Isa::kReference).nvfp4_block_dots(m, r, x, r % kTokens, want.data());
    for (std::size_t i = 0; i < got.size(); ++i) worst.see_same(got[i] == want[i]);
  }
}

void check_shape(const Kernels& fast, const DrawnKind& kind, std::int64_t rows, std::int64_t cols,
                 std::int64_t offset, Draw& draw, LinearWorst& worst) {
  const DrawnMatrix w = draw_matrix(kind, rows, cols, offset, draw);
  std::vector<float> x = draw.numbers(kTokens * cols);
  std::fill_n(x.begin(), std::min<std::int64_t>(cols, 40), 0.0F);  // blocks of zeros
  Prepared mine = prepare_tokens(fast, w.matrix, x);
  Prepared reference = prepare_tokens(kernels(Isa::kReference), w.matrix, x);
  const std::int64_t bytes = kTokens * prepared_bytes(mine.batch.kind, cols);
  for (std::int64_t i = 0; i < bytes; ++i)
    worst.prepared.see_same(mine.bytes.data()[i] == reference.bytes.data()[i]);
  check_products(fast, w, reference.batch, worst.product, worst.batch);
  if (mine.batch.kind == Activations::kNvfp4)
    check_dots(fast, w.matrix, reference.batch, worst.dots);
}

// Columns in granules: below, at and above what any vector holds, and odd ones.
constexpr std::int64_t kColumns[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 129, 257, 509};

void check_kind(const Kernels& fast, const DrawnKind& kind, Checks& checks) {
  Draw draw(7);
  const std::string name(kind.name);
  LinearWorst worst{{"linear", name, kind.format == Format::kQ4_K ? kQ4Tolerance : kTolerance},
                    {"prepare", name, 0},  // the same codes, scales and sums, bit for bit
                    {"linear, one by one", name, 0},
                    {"nvfp4 block dots", name, 0}};  // whole numbers
  for (const std::int64_t count : kColumns) {
    const std::int64_t cols = count * kind.granule;
    if (cols > 2100) continue;
    const std::int64_t rows = kind.blocks && count % 16 == 1 ? 130 : 1 + draw.below(5);
    check_shape(fast, kind, rows, cols, draw.below(64), draw, worst);
  }
  for (const Worst* each : {&worst.product, &worst.batch, &worst.prepared}) checks.push_back(*each);
  if (kind.format == Format::kNvfp4 && !kind.wide) checks.push_back(worst.dots);
}

// All codes, NaN among them, each beside zeros.
void check_all_codes(const Kernels& fast, Checks& checks) {
  Worst worst{"linear", "e4m3, all codes", 0};
  constexpr std::int64_t kCols = 70;
  Placed weights(256 * kCols, 3), prepared(prepared_bytes(Activations::kBf16, kCols), 0);
  std::fill_n(weights.data(), 256 * kCols, std::byte{0});
  for (std::int64_t code = 0; code < 256; ++code)
    weights.data()[code * kCols + code % kCols] = static_cast<std::byte>(code);
  const std::vector<float> ones(kCols, 1);
  fast.prepare(Activations::kBf16, ones.data(), kCols, 0, prepared.data());
  const Matrix m{Format::kE4m3, 256, kCols, weights.data()};
  Batch x{Activations::kBf16, 1, kCols, prepared.data()};
  float y[256];
  fast.linear(m, x, 0, 256, y, 256);
  for (int code = 0; code < 256; ++code)
    worst.see(y[code], from_e4m3(static_cast<std::uint8_t>(code)), 0);
  checks.push_back(worst);
}

// Where rounding to E2M1 and E4M3 turns: ties and their neighbours, block scales from what is nothing
// through subnormals to beyond the largest, special values. With an input scale of 1 the step of a
// block whose largest is 6 is 1.
void check_turning_points(const Kernels& fast, Checks& checks) {
  Worst worst{"prepare", "nvfp4, turning points", 0};
  constexpr std::int64_t kBlocks = 97, kCols = 16 * kBlocks;
  Draw draw(23);
  std::vector<float> x = draw.numbers(kCols);
  const float ties[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5};
  for (std::size_t b = 0; b < kBlocks; ++b) {
    float* const block = x.data() + 16 * b;
    for (std::size_t i = 0; i < 16; ++i)
      block[i] *= std::ldexp(1.0F, static_cast<int>(b % 32) - 16);
    if (b % 4 != 0) continue;
    block[0] = 6;
    for (std::size_t i = 0; i < 7; ++i) {
      const float sign = draw.bits() % 2 == 0 ? 1.0F : -1.0F;
      block[2 * i + 1] = sign * ties[i];
      block[2 * i + 2] = sign * std::nextafter(ties[i], b % 8 == 0 ? 0.0F : 9.0F);
    }
    if (b == 32) block[15] = std::numeric_limits<float>::infinity();
    if (b == 64) block[15] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::int64_t bytes = prepared_bytes(Activations::kNvfp4, kCols);
  Placed got(bytes, 0), want(bytes, 0);
  fast.prepare(Activations::kNvfp4, x.data(), kCols, 1, got.data());
  kernels(Isa::kReference).prepare(Activations::kNvfp4, x.data(), kCols, 1, want.data());
  for (std::int64_t i = 0; i < bytes; ++i) worst.see_same(got.data()[i] == want.data()[i]);
  checks.push_back(worst);
}

}  // namespace

void check_linear(const Kernels& fast, Checks& checks) {
  for (const DrawnKind& kind : drawn_kinds()) check_kind(fast, kind, checks);
  check_all_codes(fast, checks);
  check_turning_points(fast, checks);
}

}  // namespace culprit::lab
