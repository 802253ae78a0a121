// The instruction sets that the kernels are written for, and which of them this machine has.
// kReference is the slow truth in double precision; it and kPortable run everywhere. kAvx512 means
// F, BW, VL, DQ, VNNI, BF16 and VBMI together (Zen 4, Sapphire Rapids and later); a machine that has
// only some of them runs kAvx2 (with FMA and F16C). kNeon is any AArch64.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::lab {

enum class Isa : std::uint8_t { kReference, kPortable, kAvx2, kAvx512, kNeon };

std::string_view isa_name(Isa isa);            // "reference", "portable", "avx2", "avx512", "neon"
Result<Isa> isa_named(std::string_view name);  // of those that this machine has
std::vector<Isa> available_isas();             // slowest first; kReference and kPortable are in
Isa best_isa();                                // the last of them

// How many bytes ahead kernels ask for the weights that they stream, those that decode as fast as the
// bus brings them and those that do not; 0: the core foresees it better. By the maker of the core.
struct AskAhead {
  std::int64_t fast = 0, slow = 512;
};
AskAhead ask_ahead_bytes();

}  // namespace culprit::lab
