#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "lab/files/bind.h"

namespace culprit::lab {
namespace {

constexpr std::array<std::pair<std::string_view, Format>, 8> kFormats{
    {{"F32", Format::kF32},
     {"F16", Format::kF16},
     {"BF16", Format::kBf16},
     {"Q8_0", Format::kQ8_0},
     {"Q4_K", Format::kQ4_K},
     {"Q6_K", Format::kQ6_K},
     {"MXFP4", Format::kGgmlMxfp4},
     {"NVFP4", Format::kGgmlNvfp4}}};

class Binder {
 public:
  Binder(const Container& container, const ModelConfig& config)
      : container_(container), config_(config) {}

  Status bind(Slot& slot, Weights& weights) const {
    if (const Stored* const unsplit = legacy_kv_b(slot)) return bind_kv_b(slot, *unsplit, weights);
    const Stored* const tensor = container_.find(slot.name);
    if (tensor == nullptr) return missing(slot.name);
    if (const auto bias = bias_of(slot)) return *bias;
    if (slot.vector != nullptr) {
      TRY(*slot.vector, floats(slot.name, *tensor, slot.rows));
      return Ok{};
    }
    if (!fits(slot, *tensor))
      return misfit(slot.name, *tensor,
                    fmt::format("is [{}], where the config asks for {} rows of {}",
                                fmt::join(tensor->shape, ", "), slot.rows, slot.cols));
    return bind_matrix(slot, *tensor, *slot.matrix);
  }

 private:
  // A stack holds all experts of a layer; k_b and v_b are split by heads.
  bool fits(const Slot& slot, const Stored& tensor) const {
    if (slot.expert >= 0) return has_shape(tensor, {config_.router.experts, slot.rows, slot.cols});
    if (slot.role == Role::kKeyB || slot.role == Role::kValueB)
      return has_shape(tensor, {config_.heads, slot.rows / config_.heads, slot.cols});
    return has_shape(tensor, {slot.rows, slot.cols});
  }

  Status bind_matrix(const Slot& slot, const Stored& tensor, Matrix& matrix) const {
    const auto* const known = std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& each) {
      return each.first == tensor.dtype;
    });
    if (known == kFormats.end())
      return Error{Error::Code::kUnsupported,
                   fmt::format("tensor \"{}\" is {}", slot.name, tensor.dtype), tensor.where,
                   "the lab reads F32, F16, BF16, Q8_0, Q4_K, Q6_K, MXFP4 and NVFP4"};
    matrix.rows = slot.rows;
    matrix.cols = slot.cols;
    matrix.format = known->second;
    matrix.data = tensor.data;
    if (block_values(matrix.format) == 1) {
      TRY([[maybe_unused]] const Ok aligned,
          plain_matrix(slot.name, tensor, matrix.format, matrix));
    }
    if (slot.expert > 0) matrix.data += slot.expert * slot.rows * matrix.row_bytes();
    return bind_scale(slot, matrix);
  }

  // The scale of a whole tensor lies beside it; of a stack there is one per expert.
  Status bind_scale(const Slot& slot, Matrix& matrix) const {
    constexpr std::string_view kWeight = "weight";
    const std::string name = slot.name.substr(0, slot.name.size() - kWeight.size()) + "scale";
    const Stored* const tensor = container_.find(name);
    if (tensor == nullptr) return Ok{};
    const bool stack = slot.expert >= 0;
    TRY(matrix.scale,
        scale_at(name, *tensor, stack ? slot.expert : 0, stack ? config_.router.experts : 1));
    return Ok{};
  }

  // Files from before kv_b was split hold it whole.
  const Stored* legacy_kv_b(const Slot& slot) const {
    if (slot.role != Role::kKeyB && slot.role != Role::kValueB) return nullptr;
    return container_.find(kv_b_name(slot));
  }
  static std::string kv_b_name(const Slot& slot) {
    return slot.name.substr(0, slot.name.rfind("attn_")) + "attn_kv_b.weight";
  }
  Status bind_kv_b(const Slot& slot, const Stored& tensor, Weights& weights) const {
    Slot whole = slot;
    whole.name = kv_b_name(slot);
    whole.role = Role::kKvB;
    whole.rows = config_.heads * (config_.nope_dim + config_.v_dim);
    whole.cols = config_.kv_lora_rank;
    if (!fits(whole, tensor))
      return misfit(whole.name, tensor,
                    fmt::format("is [{}], where the config asks for [{}, {}]",
                                fmt::join(tensor.shape, ", "), whole.rows, whole.cols));
    return bind_matrix(whole, tensor, weights.layers.back().mla.kv_b);
  }

  std::optional<Error> bias_of(const Slot& slot) const {
    if (!slot.turned) return std::nullopt;
    const std::string name = slot.name.substr(0, slot.name.rfind('.')) + ".bias";
    const Stored* const bias = container_.find(name);
    if (bias == nullptr) return std::nullopt;
    return Error{Error::Code::kUnsupported, fmt::format("there is a tensor \"{}\"", name),
                 bias->where, "the lab's linear layers have no bias"};
  }

  const Container& container_;
  const ModelConfig& config_;
};

}  // namespace

Result<Weights> bind_gguf(const Container& container, const ModelConfig& config) {
  const Binder binder(container, config);
  return bind_slots(config, Naming::kGguf,
                    [&](Slot& slot, Weights& weights) { return binder.bind(slot, weights); });
}

}  // namespace culprit::lab
