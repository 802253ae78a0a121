#include "lab/kernels/check.h"

#include <algorithm>

#include "lab/kernels/check_parts.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kLengths[] = {2, 4, 8, 14, 16, 18, 32, 34, 62, 64, 66, 126, 130, 576, 1030};

// In units of 2^-24: a sum of n numbers in chains of n / W, then a handful of roundings.
constexpr double kNormTolerance = 1e-6;
constexpr double kExpTolerance = 6e-7;    // exp is within 2 ulp; a division and two products follow
constexpr double kTwoRoundings = 1.3e-7;  // 2 x 2^-24, and what those make of each other

void check_norms(const Kernels& fast, Draw& draw, Checks& checks) {
  const Kernels& slow = kernels(Isa::kReference);
  Worst rms{"rms_norm", "f32", kNormTolerance}, layer{"layer_norm", "f32", kNormTolerance};
  for (const std::int64_t n : kLengths) {
    const auto x = draw.numbers(n), gain = draw.numbers(n), bias = draw.numbers(n);
    std::vector<float> got(x.size()), want(x.size());
    fast.rms_norm(x.data(), gain.data(), 1e-5F, n, got.data());
    slow.rms_norm(x.data(), gain.data(), 1e-5F, n, want.data());
    for (std::size_t i = 0; i < x.size(); ++i) rms.see(got[i], want[i], std::fabs(want[i]));
    got = x;  // in place
    fast.layer_norm(got.data(), gain.data(), bias.data(), 1e-5F, n, got.data());
    slow.layer_norm(x.data(), gain.data(), bias.data(), 1e-5F, n, want.data());
    // The mean is taken away, so what counts is the size of the terms, not of the result.
    for (std::size_t i = 0; i < x.size(); ++i)
      layer.see(got[i], want[i],
                std::fabs(bias[i]) + std::fabs(gain[i]) * (1 + std::fabs(want[i] - bias[i])));
  }
  checks.push_back(rms);
  checks.push_back(layer);
}

void check_rope(const Kernels& fast, bool half_split, Draw& draw, Checks& checks) {
  Worst worst{"rope", half_split ? "half-split" : "interleaved", kTwoRoundings};
  for (const std::int64_t n : kLengths) {
    const auto x = draw.numbers(n);
    std::vector<float> cos(x.size() / 2), sin(cos), got(x), want(x);
    for (std::size_t i = 0; i < cos.size(); ++i) {
      const float angle = 3 * draw.number();
      cos[i] = std::cos(angle);
      sin[i] = std::sin(angle);
    }
    fast.rope(got.data(), cos.data(), sin.data(), n, half_split);
    kernels(Isa::kReference).rope(want.data(), cos.data(), sin.data(), n, half_split);
    const std::size_t half = cos.size();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t pair = half_split ? i % half : i / 2;
      const float a = half_split ? x[pair] : x[2 * pair];
      const float b = half_split ? x[half + pair] : x[2 * pair + 1];
      worst.see(got[i], want[i], std::fabs(a) + std::fabs(b));
    }
  }
  checks.push_back(worst);
}

void check_elementwise(const Kernels& fast, Draw& draw, Checks& checks) {
  const Kernels& slow = kernels(Isa::kReference);
  Worst silu{"silu_mul", "f32", kExpTolerance}, soft{"softmax", "f32", kExpTolerance};
  Worst scaled{"add_scaled", "f32", kTwoRoundings};
  for (const std::int64_t n : kLengths) {
    auto x = draw.numbers(n);
    const auto up = draw.numbers(n);
    for (float& value : x) value *= 10;
    if (n > 64) {  // where e^-x is beyond a float, and where it is nothing
      x[3] = -86;
      x[4] = 100;
      x[60] = 0;
    }
    std::vector<float> got(x.size()), want(x.size());
    fast.silu_mul(x.data(), up.data(), n, got.data());
    slow.silu_mul(x.data(), up.data(), n, want.data());
    for (std::size_t i = 0; i < x.size(); ++i) silu.see(got[i], want[i], std::fabs(want[i]));
    fast.softmax(x.data(), n, got.data());
    slow.softmax(x.data(), n, want.data());
    // The difference to the largest is rounded, and e^x is off by as much as x.
    const float top = *std::max_element(x.begin(), x.end());
    for (std::size_t i = 0; i < x.size(); ++i)
      soft.see(got[i], want[i], std::fabs(want[i]) * (1 + (top - x[i])));
    got = want = up;
    fast.add_scaled(x.data(), 0.3F, n, got.data());
    slow.add_scaled(x.data(), 0.3F, n, want.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      scaled.see(got[i], want[i], std::fabs(x[i]) + std::fabs(up[i]));
  }
  for (const Worst* each : {&silu, &soft, &scaled}) checks.push_back(*each);
}

// ---- casts: bit for bit, except that any NaN is as good as another --------------------------------
bool same_number(Bf16 a, Bf16 b) { return same_bits(from_bf16(a), from_bf16(b)); }

// Ties, neighbours of ties, subnormals, infinities, NaN, and drawn patterns.
std::vector<float> hard_floats(Draw& draw) {
  std::vector<float> x;
  for (std::uint32_t bits :
       {0U,          0x80000000U, 1U,          0x7fffU,     0x8000U,     0x8001U,
        0x18000U,    0x007fffffU, 0x00800000U, 0x3f808000U, 0x3f818000U, 0x3f817fffU,
        0x7f7fffffU, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0x7f800001U, 0xffffffffU,
        0x43e00000U, 0x43e80000U, 0x43e80001U, 0x3a800000U, 0x3a800001U})
    x.push_back(std::bit_cast<float>(bits));
  while (x.size() < 1003)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(draw.bits())));
  return x;
}

void check_casts_from_float(const Kernels& fast, Draw& draw, Checks& checks) {
  Worst bf16{"to_bf16", "bf16", 0}, e4m3{"to_e4m3", "e4m3", 0};
  const std::vector<float> x = hard_floats(draw);
  for (const std::size_t n : {x.size(), std::size_t{1}, std::size_t{17}}) {
    std::vector<Bf16> wide(n);
    std::vector<std::uint8_t> narrow(n);
    fast.to_bf16(x.data(), static_cast<std::int64_t>(n), wide.data());
    fast.to_e4m3(x.data(), static_cast<std::int64_t>(n), narrow.data());
    for (std::size_t i = 0; i < n; ++i) {
      bf16.see_same(same_number(wide[i], to_bf16(x[i])));
      e4m3.see_same(narrow[i] == to_e4m3(x[i]));
    }
  }
  checks.push_back(bf16);
  checks.push_back(e4m3);
}

void check_casts_to_float(const Kernels& fast, Checks& checks) {
  Worst bf16{"from_bf16", "bf16", 0}, e4m3{"from_e4m3", "e4m3", 0};
  std::vector<Bf16> wide;
  std::vector<std::uint8_t> narrow;
  for (std::uint32_t code = 0; code < 0x10000; ++code)
    wide.push_back({static_cast<std::uint16_t>(code)});
  for (std::uint32_t i = 0; i < 1003; ++i) narrow.push_back(static_cast<std::uint8_t>(i));
  std::vector<float> got(wide.size());
  fast.from_bf16(wide.data(), static_cast<std::int64_t>(wide.size()), got.data());
  for (std::size_t i = 0; i < wide.size(); ++i)
    bf16.see_same(same_bits(got[i], from_bf16(wide[i])));
  fast.from_e4m3(narrow.data(), static_cast<std::int64_t>(narrow.size()), got.data());
  for (std::size_t i = 0; i < narrow.size(); ++i)
    e4m3.see_same(same_bits(got[i], from_e4m3(narrow[i])));
  checks.push_back(bf16);
  checks.push_back(e4m3);
}

// Any length to any address of a BF16 number; nothing is written beside it.
void check_cast_pool(const Kernels& fast, Draw& draw, Checks& checks) {
  Worst worst{"cast_pool", "e4m3 to bf16", 0};
  for (const std::int64_t n : {0, 1, 31, 63, 64, 65, 130, 256, 1000, 4099}) {
    const std::int64_t offset = 2 * draw.below(32);
    Placed codes(n, draw.below(64)), out(2 * (n + 2), offset);
    for (std::int64_t i = 0; i < n; ++i)
      codes.data()[i] = static_cast<std::byte>(n < 256 ? draw.bits() : static_cast<unsigned>(i));
    auto* const first = reinterpret_cast<const std::uint8_t*>(codes.data());
    auto* const numbers = reinterpret_cast<Bf16*>(out.data());
    numbers[0] = numbers[n + 1] = Bf16{0x1234};
    fast.cast_pool(first, n, numbers + 1);
    for (std::int64_t i = 0; i < n; ++i)
      worst.see_same(same_number(numbers[i + 1], to_bf16(from_e4m3(first[i]))));
    worst.see_same(numbers[0].bits == 0x1234 && numbers[n + 1].bits == 0x1234);
  }
  checks.push_back(worst);
}

}  // namespace

void check_rows(const Kernels& fast, Checks& checks) {
  Draw draw(11);
  check_norms(fast, draw, checks);
  check_rope(fast, false, draw, checks);
  check_rope(fast, true, draw, checks);
  check_elementwise(fast, draw, checks);
  check_casts_from_float(fast, draw, checks);
  check_casts_to_float(fast, checks);
  check_cast_pool(fast, draw, checks);
}

std::vector<KernelCheck> check_kernels(Isa isa) {
  Checks checks;
  const Kernels& fast = kernels(isa);
  check_linear(fast, checks);
  check_rows(fast, checks);
  check_attention(fast, checks);
  return checks;
}

}  // namespace culprit::lab
