#include "lab/kernels/isa.h"

#include <array>
#include <string>

#include "base/near.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace culprit::lab {
namespace {

constexpr std::array<std::string_view, 5> kNames{"reference", "portable", "avx2", "avx512", "neon"};

#if defined(__x86_64__)
bool has_f16c() {  // not a name that every compiler's __builtin_cpu_supports knows
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("avx512vbmi");
}

bool is_intel() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_INTEL_ebx &&
         c == signature_INTEL_ecx && d == signature_INTEL_edx;
}
#endif

// Measured on Zen 4 and Emerald Rapids; what it gains stands in lab/kernels/simd/linear.h.
AskAhead measured_ahead() {
#if defined(__x86_64__)
  if (is_intel()) return {.fast = 4096, .slow = 4096};
#endif
  return {};
}

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::kReference, Isa::kPortable};
#if defined(__x86_64__)
  if (has_avx2()) isas.push_back(Isa::kAvx2);
  if (has_avx512()) isas.push_back(Isa::kAvx512);
#elif defined(__aarch64__)
  isas.push_back(Isa::kNeon);
#endif
  return isas;
}

Isa best_isa() { return available_isas().back(); }

AskAhead ask_ahead_bytes() {
  static const AskAhead ahead = measured_ahead();
  return ahead;
}

Result<Isa> isa_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Isa isa : available_isas()) {
    if (isa_name(isa) == name) return isa;
    names.emplace_back(isa_name(isa));
  }
  std::string has;
  for (const std::string& one : names) has += (has.empty() ? "" : ", ") + one;
  return Error{Error::Code::kUsage,
               "this machine has no instruction set \"" + std::string(name) + "\"", "",
               did_you_mean(name, names, "it has " + has)};
}

}  // namespace culprit::lab
