#include "lab/files/make_model.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "lab/files/write.h"
#include "lab/model/architecture.h"
#include "lab/model/slots.h"
#include "lab/number/bf16.h"
#include "lab/number/fp4.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

// What the tensors of one checkpoint share while they are written.
struct Maker {
  RandomModel model;
  Naming naming = Naming::kHf;
  Encoder encoder;
};
using SharedMaker = std::shared_ptr<Maker>;

std::string_view gguf_word(Format format) {
  switch (format) {
    case Format::kF16:
      return "F16";
    case Format::kBf16:
      return "BF16";
    case Format::kQ8_0:
      return "Q8_0";
    case Format::kQ4_K:
      return "Q4_K";
    case Format::kQ6_K:
      return "Q6_K";
    case Format::kGgmlMxfp4:
      return "MXFP4";
    case Format::kGgmlNvfp4:
      return "NVFP4";
    default:
      return "F32";
  }
}

std::string_view safetensors_word(Format format) {
  return format == Format::kF32     ? "F32"
         : format == Format::kE4m3  ? "F8_E4M3"
         : format == Format::kNvfp4 ? "U8"
                                    : "BF16";
}

enum class Part : std::uint8_t { kData, kScales };

// Some rows at a time, of a matrix's data or of its block scales.
Status write_part(const SharedMaker& maker, const Slot& slot, Format format, Part part,
                  OutputFile& file) {
  const LevelMatrix levels = levels_of(maker->model, slot, whole_of(slot));
  const EncodedSize row = encoded_size(format, 1, levels.cols);
  const std::int64_t rows = std::max<std::int64_t>(
      kPieceBytes / std::max<std::int64_t>(row.data, 1) / kFp8Block * kFp8Block, kFp8Block);
  std::vector<std::byte> data, scales;
  for (std::int64_t first = 0; first < levels.rows; first += rows) {
    const std::int64_t count = std::min(rows, levels.rows - first);
    const EncodedSize size = encoded_size(format, count, levels.cols);
    data.resize(static_cast<std::size_t>(size.data));
    scales.resize(static_cast<std::size_t>(size.scales));
    maker->encoder.encode(levels, format, first, count, data.data(), scales.data());
    TRY([[maybe_unused]] const Ok written,
        file.write(std::span<const std::byte>(part == Part::kData ? data : scales)));
  }
  return Ok{};
}

PlannedTensor floats(std::string name, std::string dtype, std::vector<std::int64_t> shape,
                     std::vector<float> values) {
  const bool bf16 = dtype == "BF16";
  const std::int64_t bytes = std::ssize(values) * (bf16 ? 2 : 4);
  return {std::move(name), std::move(dtype), std::move(shape), bytes,
          [bf16, values = std::move(values)](OutputFile& file) {
            if (!bf16) return file.write(std::as_bytes(std::span(values)));
            std::vector<Bf16> rounded;
            rounded.reserve(values.size());
            for (const float value : values) rounded.push_back(to_bf16(value));
            return file.write(std::as_bytes(std::span(rounded)));
          }};
}

float whole_scale(const SharedMaker& maker, const Slot& slot, Format format) {
  return Encoder::scale_of(levels_of(maker->model, slot, whole_of(slot)), format);
}

// Its matrix as ModelOpt and DeepSeek name and shape its parts.
void plan_safetensors(const SharedMaker& maker, const Slot& slot,
                      std::vector<PlannedTensor>& tensors) {
  const Format format = format_of(maker->model.scheme, slot, Naming::kHf);
  if (slot.vector != nullptr) {
    // Norms are BF16 and routers' biases F32 in the checkpoints that this is modelled on.
    const bool bf16 = maker->model.scheme != Scheme::kF32 && slot.role != Role::kBias;
    tensors.push_back(
        floats(slot.name, bf16 ? "BF16" : "F32", {slot.rows}, vector_of(maker->model, slot)));
    return;
  }
  const EncodedSize size = encoded_size(format, slot.rows, slot.cols);
  const auto part = [&](std::string name, std::string_view dtype, std::vector<std::int64_t> shape,
                        std::int64_t bytes, Part which) {
    tensors.push_back(
        {std::move(name), std::string(dtype), std::move(shape), bytes,
         [=](OutputFile& file) { return write_part(maker, slot, format, which, file); }});
  };
  const bool nvfp4 = format == Format::kNvfp4;
  part(slot.name, safetensors_word(format), {slot.rows, nvfp4 ? slot.cols / 2 : slot.cols},
       size.data, Part::kData);
  if (format == Format::kE4m3) {
    const auto blocks = [](std::int64_t n) { return (n + kFp8Block - 1) / kFp8Block; };
    part(slot.name + "_scale_inv", "F32", {blocks(slot.rows), blocks(slot.cols)}, size.scales,
         Part::kScales);
  }
  if (!nvfp4) return;
  part(slot.name + "_scale", "F8_E4M3", {slot.rows, slot.cols / kNvfp4Block}, size.scales,
       Part::kScales);
  tensors.push_back(floats(slot.name + "_scale_2", "F32", {}, {whole_scale(maker, slot, format)}));
  tensors.push_back(floats(slot.name.substr(0, slot.name.rfind('.')) + ".input_scale", "F32", {},
                           {input_scale_of(slot)}));
}

// A layer's experts, of which each slot is one, become one tensor. `slots`: one, or all experts'.
void plan_gguf(const SharedMaker& maker, std::vector<Slot> slots,
               std::vector<PlannedTensor>& tensors) {
  const Slot& first = slots.front();
  const ModelConfig& config = maker->model.config;
  if (first.vector != nullptr) {
    tensors.push_back(floats(first.name, "F32", {first.rows}, vector_of(maker->model, first)));
    return;
  }
  const Format format = format_of(maker->model.scheme, first, Naming::kGguf);
  const std::int64_t bytes = encoded_size(format, first.rows, first.cols).data;
  std::vector<std::int64_t> shape{first.rows, first.cols};
  if (first.expert >= 0)
    shape.insert(shape.begin(), std::ssize(slots));
  else if (first.role == Role::kKeyB || first.role == Role::kValueB)
    shape = {config.heads, first.rows / config.heads, first.cols};
  std::vector<float> scales;
  if (format == Format::kGgmlNvfp4)
    for (const Slot& slot : slots) scales.push_back(whole_scale(maker, slot, format));
  const std::string name = first.name;
  tensors.push_back({name, std::string(gguf_word(format)), std::move(shape),
                     bytes * std::ssize(slots),
                     [maker, slots = std::move(slots), format](OutputFile& file) -> Status {
                       for (const Slot& slot : slots) {
                         TRY([[maybe_unused]] const Ok written,
                             write_part(maker, slot, format, Part::kData, file));
                       }
                       return Ok{};
                     }});
  if (scales.empty()) return;
  const std::string scale_name = name.substr(0, name.rfind('.')) + ".scale";
  const std::int64_t count = std::ssize(scales);
  tensors.push_back(floats(scale_name, "F32", {count}, std::move(scales)));
}

// GGUF: slots of one name are the experts of one tensor.
void plan_slots(const SharedMaker& maker, const std::vector<Slot>& slots,
                std::vector<PlannedTensor>& tensors) {
  if (maker->naming == Naming::kHf) {
    for (const Slot& slot : slots) plan_safetensors(maker, slot, tensors);
    return;
  }
  std::vector<std::vector<Slot>> groups;
  std::map<std::string_view, std::size_t> group_of;
  for (const Slot& slot : slots) {
    const auto [place, fresh] = group_of.emplace(slot.name, groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(slot);
  }
  for (std::vector<Slot>& group : groups) plan_gguf(maker, std::move(group), tensors);
}

std::vector<PlannedTensor> plan(const SharedMaker& maker) {
  std::vector<PlannedTensor> tensors;
  Weights places;  // only for their shapes
  places.config = maker->model.config;
  plan_slots(maker, outer_slots(places, maker->naming), tensors);
  for (std::int64_t layer = 0; layer < places.config.layers; ++layer) {
    places.layers.emplace_back();
    plan_slots(maker, layer_slots(places, layer, maker->naming), tensors);
    places.layers.back() = {};
  }
  return tensors;
}

Error cannot(std::string what, std::string hint) {
  return {Error::Code::kUsage, std::move(what), "", std::move(hint)};
}

Status check_container(const MakeModel& order) {
  const ModelConfig& config = order.model.config;
  const Scheme scheme = order.model.scheme;
  const Architecture* const architecture = architecture_named(config.architecture);
  if (architecture == nullptr)
    return cannot(fmt::format("there is no architecture \"{}\"", config.architecture),
                  "start from a preset or a config.json");
  const bool plain = scheme == Scheme::kF32 || scheme == Scheme::kBf16 || scheme == Scheme::kNvfp4;
  if (order.container == ContainerKind::kSafetensors) {
    if (plain || scheme == Scheme::kFp8) return Ok{};
    return cannot(fmt::format("safetensors do not hold {}", scheme_name(scheme)),
                  "they hold f32, bf16, fp8 and nvfp4; GGUF holds the others");
  }
  if (scheme == Scheme::kFp8)
    return cannot("GGUF does not hold fp8", "safetensors do; or choose q8_0");
  // What llama.cpp takes for granted, and its files do not state.
  if (config.family == Family::kGqa && config.router.experts > 0 && !config.router.normalized)
    return cannot("GGUF holds no Qwen3-MoE whose routing weights do not add up to 1",
                  "set \"norm_topk_prob\", or write safetensors");
  if (config.family == Family::kMla && config.yarn &&
      config.yarn->mscale != config.yarn->mscale_all_dim)
    return cannot("GGUF holds no \"mscale\" that differs from \"mscale_all_dim\"",
                  "make them equal, or write safetensors");
  return Ok{};
}

// The folder to write into; an error where a checkpoint is, unless it may be replaced.
Status prepare_place(const MakeModel& order) {
  const bool gguf = order.container == ContainerKind::kGguf;
  struct stat info {};
  const std::string there = gguf ? order.path : order.path + "/config.json";
  if (!order.overwrite && stat(there.c_str(), &info) == 0)
    return Error{Error::Code::kUsage, "there is a checkpoint already", there,
                 "choose another place, or say that it may be replaced"};
  if (gguf || mkdir(order.path.c_str(), 0777) == 0 || errno == EEXIST) return Ok{};
  return Error{Error::Code::kCannotRead,
               fmt::format("cannot make the folder: {}", std::strerror(errno)), order.path,
               "make the folders above it first"};
}

}  // namespace

Result<std::int64_t> make_model(const MakeModel& order) {
  TRY([[maybe_unused]] const Ok sound, check(order.model.config, "the model"));
  TRY([[maybe_unused]] const Ok holds, check_container(order));
  TRY([[maybe_unused]] const Ok place, prepare_place(order));
  const bool gguf = order.container == ContainerKind::kGguf;
  const auto maker = std::make_shared<Maker>();
  maker->model = order.model;
  maker->naming = gguf ? Naming::kGguf : Naming::kHf;
  std::vector<PlannedTensor> tensors = plan(maker);
  if (gguf) return write_gguf(order.path, order.model.config, tensors);
  return write_safetensors(order.path, std::move(tensors), config_files(order.model),
                           order.shard_bytes);
}

}  // namespace culprit::lab
