#include <algorithm>
#include <cstring>

#include "lab/kernels/check_parts.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

// Scores of about +-10 are off by a few 2^-24 of the magnitudes that they are summed from, and a
// weight by as much as its score: 64 x 2^-24 of the output's largest value holds them.
constexpr double kTolerance = 4e-6;

// A pool of drawn rows, at any address and stride, as FP8 and as its exact cast to BF16.
struct Pool {
  std::int64_t rows, width;
  bool scaled;
  std::int64_t stride, wide_stride;
  Placed narrow, wide;
  std::vector<std::int32_t> index;

  Pool(std::int64_t n, std::int64_t w, bool with_scale, Draw& draw)
      : rows(n),
        width(w),
        scaled(with_scale),
        stride(w + (with_scale ? 4 : 0) + draw.below(3)),
        wide_stride(2 * w + (with_scale ? 4 : 0) + draw.below(3)),
        narrow(rows * stride, draw.below(64)),
        wide(rows * wide_stride, draw.below(64)) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float scale = 0.5F + std::fabs(draw.number());
      for (std::int64_t c = 0; c < width; ++c) {
        const std::uint8_t code = to_e4m3(draw.number());
        const Bf16 number = to_bf16(from_e4m3(code));
        narrow.data()[r * stride + c] = std::byte{code};
        std::memcpy(wide.data() + r * wide_stride + 2 * c, &number, sizeof number);
      }
      if (!scaled) continue;
      std::memcpy(narrow.data() + r * stride + width, &scale, sizeof scale);
      std::memcpy(wide.data() + r * wide_stride + 2 * width, &scale, sizeof scale);
    }
    for (std::int64_t i = 0; i < 2 * rows; ++i)
      index.push_back(static_cast<std::int32_t>(draw.below(rows)));
  }
  KvRows as_e4m3(bool paged) {
    return {KvFormat::kE4m3, narrow.data(), stride, paged ? index.data() : nullptr,
            scaled ? width : -1};
  }
  KvRows as_bf16(bool paged) {
    return {KvFormat::kBf16, wide.data(), wide_stride, paged ? index.data() : nullptr,
            scaled ? 2 * width : -1};
  }
};

struct Result3 {  // of a Partial
  std::vector<float> max, sum, out;
  Result3(std::int64_t heads, std::int64_t width)
      : max(static_cast<std::size_t>(heads), 5),
        sum(max),
        out(static_cast<std::size_t>(heads * width), 5) {}
  Partial partial() { return {max.data(), sum.data(), out.data()}; }
};

struct Shape {
  std::int64_t heads, width, value_width, rows;
  bool shared, paged, scaled;
};
constexpr Shape kShapes[] = {
    {8, 576, 512, 40, true, true, false}, {1, 576, 512, 17, true, false, false},
    {130, 72, 64, 35, true, true, false}, {5, 128, 128, 33, false, true, false},
    {4, 64, 64, 1, false, false, false},  {3, 37, 21, 50, false, true, true},
    {7, 9, 5, 16, true, false, true},     {2, 4000, 3000, 9, false, true, false},
    {6, 80, 67, 0, true, false, false}};

struct AttentionWorst {
  Worst max, sum, out, same, split;
};

float largest(const std::vector<float>& x) {
  float top = 0;
  for (const float value : x) top = std::max(top, std::fabs(value));
  return top;
}

void compare(const Result3& got, const Result3& want, AttentionWorst& worst) {
  for (std::size_t h = 0; h < want.max.size(); ++h) {
    worst.max.see(got.max[h], want.max[h], 1 + std::fabs(want.max[h]));
    worst.sum.see(got.sum[h], want.sum[h], want.sum[h]);
  }
  const float top = largest(want.out);
  for (std::size_t i = 0; i < want.out.size(); ++i) worst.out.see(got.out[i], want.out[i], top);
}

void check_shape(const Kernels& fast, const Shape& shape, Draw& draw, AttentionWorst& worst) {
  const Kernels& slow = kernels(Isa::kReference);
  Pool keys(std::max<std::int64_t>(shape.rows, 1), shape.width, shape.scaled, draw);
  Pool values(std::max<std::int64_t>(shape.rows, 1), shape.value_width, shape.scaled, draw);
  const auto q = draw.numbers(shape.heads * shape.width);
  const Query query{q.data(), shape.heads, shape.width, shape.value_width,
                    2 / std::sqrt(static_cast<float>(shape.width))};
  const KvRows k = keys.as_e4m3(shape.paged), k_wide = keys.as_bf16(shape.paged);
  const KvRows v = shape.shared ? k : values.as_e4m3(shape.paged);
  const KvRows v_wide = shape.shared ? k_wide : values.as_bf16(shape.paged);
  const std::int64_t n = shape.rows, heads = shape.heads, width = shape.value_width;

  Result3 got(heads, width), want = got, wide = got;
  fast.attend(query, k, v, 0, n, got.partial());
  fast.attend(query, k_wide, v_wide, 0, n, wide.partial());
  slow.attend(query, k, v, 0, n, want.partial());
  for (std::size_t i = 0; i < got.out.size(); ++i)
    worst.same.see_same(same_bits(got.out[i], wide.out[i]));
  for (std::size_t h = 0; h < got.sum.size(); ++h)
    worst.same.see_same(same_bits(got.sum[h], wide.sum[h]) && same_bits(got.max[h], wide.max[h]));

  Result3 first(heads, width), second = first, none = first;  // in three parts, one of them empty
  fast.attend(query, k, v, 0, n / 3, first.partial());
  fast.attend(query, k, v, n / 3, n, second.partial());
  fast.attend(query, k, v, n, n, none.partial());
  fast.merge(none.partial(), first.partial(), heads, width);
  fast.merge(none.partial(), second.partial(), heads, width);
  fast.finish(none.partial(), heads, width);
  compare(got, want, worst);
  slow.finish(want.partial(), heads, width);
  const float top = largest(want.out);
  for (std::size_t i = 0; i < want.out.size(); ++i) worst.split.see(none.out[i], want.out[i], top);
}

void check_attend(const Kernels& fast, Checks& checks) {
  Draw draw(13);
  AttentionWorst worst{{"attend, max", "e4m3", kTolerance},
                       {"attend, sum", "e4m3", kTolerance},
                       {"attend, out", "e4m3", kTolerance},
                       {"attend, e4m3 as bf16", "bf16", 0},  // one path behind the decoding
                       {"attend, merged", "e4m3", kTolerance}};
  for (const Shape& shape : kShapes) check_shape(fast, shape, draw, worst);
  for (const Worst* each : {&worst.max, &worst.sum, &worst.out, &worst.same, &worst.split})
    checks.push_back(*each);
}

void check_index_scores(const Kernels& fast, Checks& checks) {
  Draw draw(17);
  Worst worst{"index_scores", "e4m3", kTolerance};
  for (const std::int64_t heads : {1, 4, 6, 32, 131}) {
    Pool keys(21, 128, heads % 2 == 0, draw);
    const auto q = draw.numbers(heads * 128), weight = draw.numbers(heads);
    const Query query{q.data(), heads, 128, 0, 0.3F};
    std::vector<float> got(20), want(20);
    fast.index_scores(query, weight.data(), keys.as_e4m3(true), 5, 25, got.data());
    kernels(Isa::kReference)
        .index_scores(query, weight.data(), keys.as_e4m3(true), 5, 25, want.data());
    for (std::size_t i = 0; i < want.size(); ++i) worst.see(got[i], want[i], largest(want));
  }
  checks.push_back(worst);
}

void check_gather(const Kernels& fast, Checks& checks) {
  Draw draw(19);
  Worst worst{"gather_cast", "e4m3, bf16", 0};
  for (const std::int64_t width : {1, 63, 64, 128, 576}) {
    Pool rows(12, width, false, draw);
    for (const KvRows& from : {rows.as_e4m3(true), rows.as_bf16(true)}) {
      std::vector<Bf16> got(static_cast<std::size_t>(9 * width)), want = got;
      fast.gather_cast(from, width, 3, 12, got.data());
      kernels(Isa::kReference).gather_cast(from, width, 3, 12, want.data());
      for (std::size_t i = 0; i < got.size(); ++i) worst.see_same(got[i] == want[i]);
    }
  }
  checks.push_back(worst);
}

}  // namespace

void check_attention(const Kernels& fast, Checks& checks) {
  check_attend(fast, checks);
  check_index_scores(fast, checks);
  check_gather(fast, checks);
}

}  // namespace culprit::lab
