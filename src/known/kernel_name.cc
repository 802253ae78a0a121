#include "known/kernel_name.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "known/kernel_aten.h"
#include "known/kernel_dtypes.h"
#include "known/kernel_rules.h"
#include "known/kernel_text.h"

namespace culprit::known {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool begins_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}

// Inductor's names say the shape of the loop and the operators fused into it; the operators decide.
// "triton_red_fused_add_mean_mul_pow_rsqrt_0" is an RMS norm, "triton_poi_fused__to_copy_1" a cast.
Owner kind_of_inductor(std::string_view name) {
  const auto has = [&](std::string_view part) { return contains(name, part); };
  constexpr std::string_view kOnlyCast = "triton_poi_fused__to_copy_";
  if (begins_with(name, "triton_tem_")) {
    const bool attention = has("attention");
    return attention ? Owner::kAttention : has("mm") ? Owner::kGemm : Owner::kOtherKernel;
  }
  if (begins_with(name, "triton_mm") || begins_with(name, "triton_bmm")) return Owner::kGemm;
  if (has("layer_norm") || has("rms_norm") || (has("rsqrt") && (has("mean") || has("var")))) {
    return Owner::kNorm;
  }
  if (has("silu") || has("gelu")) return Owner::kActivation;
  if (has("embedding")) return Owner::kEmbedding;
  if (name.substr(0, kOnlyCast.size()) == kOnlyCast &&
      name.find_first_not_of("0123456789", kOnlyCast.size()) == std::string_view::npos) {
    return Owner::kCast;
  }
  if (begins_with(name, "triton_red_") || begins_with(name, "triton_per_")) return Owner::kReduce;
  if (begins_with(name, "triton_poi_") || begins_with(name, "triton_for_")) {
    const bool moves = has("constant_pad_nd") || has("_clone") || has("_cat_");
    const bool computes = has("_add") || has("_mul") || has("_sub") || has("_div");
    return moves && !computes ? Owner::kCopy : Owner::kElementwise;
  }
  return Owner::kOtherKernel;  // "triton__0d1d2d": older builds name no operator
}

bool decode_inductor(const KernelText& text, KernelInfo& info) {
  if (!begins_with(text.base, "triton_")) return false;
  info.kind = kind_of_inductor(text.base);
  info.family = "triton";
  info.short_name = text.base;
  return true;
}

// DeepGEMM prints its enum GemmType: 0 is the dense one, the others group rows by expert.
bool is_grouped_deepgemm(const KernelText& text) {
  constexpr std::string_view kType = "GemmType)";
  const std::size_t at = text.args.find(kType);
  return at != std::string_view::npos && text.args.substr(at + kType.size(), 1) != "0";
}

// "e2m1" where dtype_name says "fp4": what the library's own users call it.
std::string_view operand_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp4:
      return "e2m1";
    case Dtype::kFp8E4m3:
      return "e4m3";
    case Dtype::kFp8E5m2:
      return "e5m2";
    default:
      return dtype_name(dtype);
  }
}

// First word of a mangled argument list that is no number: the kernel inside a wrapper.
std::string_view first_word(std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    if (!word.empty() && (word[0] < '0' || word[0] > '9')) return word;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return {};
}

std::string cutlass_name(const KernelText& text, const KernelInfo& info) {
  constexpr std::string_view kNamed = "cutlass";
  if (begins_with(text.args, kNamed) && !contains(text.args.substr(0, 16), "::")) {
    return std::string(text.args);  // cutlass::Kernel2<cutlass_80_tensorop_f16_...>
  }
  const bool gemm = info.kind == Owner::kGemm || info.kind == Owner::kMoeGemm;
  if (!gemm || text.args.empty()) return std::string(text.base);
  std::string name = info.kind == Owner::kMoeGemm ? "cutlass grouped gemm" : "cutlass gemm";
  if (info.dtype_in != Dtype::kUnknown) (name += ' ') += operand_name(info.dtype_in);
  return name;
}

// "Cijk_Alik_Bljk_BBS_BH_..._MT256x32x64_..." -> "Cijk_Alik_Bljk_BBS MT256x32x64": layouts, types,
// macro tile.
std::string tensile_name(std::string_view base) {
  constexpr int kWordsKept = 4;
  std::size_t end = 0;
  for (int word = 0; word < kWordsKept && end != std::string_view::npos; ++word) {
    end = base.find('_', end + 1);
  }
  std::string name(base.substr(0, end));
  const std::size_t tile = base.find("_MT");
  if (tile == std::string_view::npos) return name;
  const std::size_t tile_end = std::min(base.find('_', tile + 1), base.size());
  (name += ' ') += base.substr(tile + 1, tile_end - tile - 1);
  return name;
}

std::string library_name(const KernelText& text, const KernelInfo& info) {
  if (info.family == "hipblaslt") return tensile_name(text.base);
  if (begins_with(text.head, "cutlass")) return cutlass_name(text, info);
  const bool wrapped = text.base == "ck_tile::kentry" || text.base == "detail::trampoline_kernel";
  if (text.base == "ck_tile::kentry") {
    const std::string_view inner = first_word(text.args);
    if (!inner.empty()) return "ck_tile " + std::string(inner);
  }
  if (wrapped && info.family == "rocprim") {
    const std::string_view what = contains(text.args, "scan")     ? " scan"
                                  : contains(text.args, "reduce") ? " reduce"
                                  : contains(text.args, "sort")   ? " sort"
                                                                  : "";
    return "rocprim" + std::string(what);
  }
  return std::string(text.base);
}

// At most 60 bytes, never inside a UTF-8 sequence.
std::string fitted(std::string name) {
  constexpr std::size_t kMost = 60;
  constexpr std::string_view kCut = "...";
  if (name.size() <= kMost) return name;
  std::size_t end = kMost - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  name.resize(end);
  return name += kCut;
}

// One block (in x) per row: gather and long softmax by their source, norms also by recorded dims.
bool has_row_per_block(std::string_view base) {
  constexpr std::array<std::string_view, 4> kBases = {
      "vectorized_gather_kernel", "vectorized_layer_norm_kernel", "rms_norm_kernel",
      "fused_add_rms_norm_kernel"};
  return std::find(kBases.begin(), kBases.end(), base) != kBases.end() ||
         begins_with(base, "cunn_SoftMaxForward");
}

bool is_gather_by_index(std::string_view base) {
  return base == "vectorized_gather_kernel" || begins_with(base, "indexSelect");
}

}  // namespace

KernelInfo decode_kernel(std::string_view name) {
  const KernelText text(name);
  KernelInfo info;
  if (!decode_aten(text, info) && !decode_inductor(text, info)) {
    info.kind = kind_of(text);
    info.family = family_of(text);
    if (info.family == "deepgemm" && is_grouped_deepgemm(text)) info.kind = Owner::kMoeGemm;
    decode_dtypes(text, info);
    info.is_gather = is_gather_by_index(text.base);
    if (has_row_per_block(text.base)) info.grid_rule = GridRule::kRowsPerBlock;
    info.short_name = library_name(text, info);
  }
  info.short_name = fitted(std::move(info.short_name));
  return info;
}

CopyInfo decode_copy(std::string_view name) {
  std::string letters;  // "Memcpy DtoH", "[CUDA memcpy Device-to-Host]", "CopyDeviceToHost" as one
  for (const char c : lower_case(name.substr(0, 256))) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  using Direction = CopyInfo::Direction;
  struct Spelling {
    std::string_view brief, full;
    Direction direction;
  };
  constexpr std::array<Spelling, 4> kSpellings = {{
      {"htod", "hosttodevice", Direction::kHtoD},
      {"dtoh", "devicetohost", Direction::kDtoH},
      {"dtod", "devicetodevice", Direction::kDtoD},
      {"ptop", "peertopeer", Direction::kPtoP},
  }};
  CopyInfo info;
  info.pageable = contains(letters, "pageable");
  for (const Spelling& spelling : kSpellings) {
    if (contains(letters, spelling.brief) || contains(letters, spelling.full)) {
      info.direction = spelling.direction;
      break;
    }
  }
  return info;
}

}  // namespace culprit::known
