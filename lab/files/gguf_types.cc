#include <algorithm>
#include <array>

#include "lab/files/gguf.h"
#include "lab/number/blocks.h"

namespace culprit::lab {
namespace {

// All that llama.cpp writes today, so that a file's layout can be checked even where the lab has no
// code for a tensor.
constexpr std::array<GgmlType, 20> kTypes{{{0, "F32", 1, 4},
                                           {1, "F16", 1, 2},
                                           {2, "Q4_0", 32, 18},
                                           {3, "Q4_1", 32, 20},
                                           {6, "Q5_0", 32, 22},
                                           {7, "Q5_1", 32, 24},
                                           {8, "Q8_0", BlockQ8_0::kValues, sizeof(BlockQ8_0)},
                                           {10, "Q2_K", 256, 84},
                                           {11, "Q3_K", 256, 110},
                                           {12, "Q4_K", BlockQ4_K::kValues, sizeof(BlockQ4_K)},
                                           {13, "Q5_K", 256, 176},
                                           {14, "Q6_K", BlockQ6_K::kValues, sizeof(BlockQ6_K)},
                                           {24, "I8", 1, 1},
                                           {25, "I16", 1, 2},
                                           {26, "I32", 1, 4},
                                           {27, "I64", 1, 8},
                                           {28, "F64", 1, 8},
                                           {30, "BF16", 1, 2},
                                           {39, "MXFP4", BlockMxfp4::kValues, sizeof(BlockMxfp4)},
                                           {40, "NVFP4", BlockNvfp4::kValues, sizeof(BlockNvfp4)}}};

template <class Predicate>
const GgmlType* find(const Predicate& predicate) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), predicate);
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace

const GgmlType* ggml_type(std::uint32_t id) {
  return find([&](const GgmlType& each) { return each.id == id; });
}
const GgmlType* ggml_type_named(std::string_view name) {
  return find([&](const GgmlType& each) { return each.name == name; });
}

}  // namespace culprit::lab
