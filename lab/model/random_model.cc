#include "lab/model/random_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/near.h"
#include "lab/model/architecture.h"
#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

constexpr std::array<std::pair<Scheme, std::string_view>, 8> kSchemes{{{Scheme::kF32, "f32"},
                                                                       {Scheme::kBf16, "bf16"},
                                                                       {Scheme::kFp8, "fp8"},
                                                                       {Scheme::kNvfp4, "nvfp4"},
                                                                       {Scheme::kMxfp4, "mxfp4"},
                                                                       {Scheme::kQ8_0, "q8_0"},
                                                                       {Scheme::kQ6_K, "q6_k"},
                                                                       {Scheme::kQ4_K, "q4_k"}}};

// ggml's large blocks where a row holds a multiple of them.
Format fitting(Format wanted, std::int64_t cols) {
  if (cols % block_values(wanted) == 0) return wanted;
  return cols % block_values(Format::kQ8_0) == 0 ? Format::kQ8_0 : Format::kBf16;
}

// The largest magnitude among a tensor's levels. Nearly always the first few thousand hold it.
Level largest_of(const LevelSource& source, std::int64_t elements) {
  std::array<Level, 4096> part{};
  Level largest = 0;
  for (std::int64_t first = 0; first < elements && largest < kLargestLevel;) {
    const auto count = std::min<std::int64_t>(elements - first, std::ssize(part));
    source.fill(first, std::span(part).first(static_cast<std::size_t>(count)));
    largest = std::max(largest,
                       largest_magnitude(std::span(part).first(static_cast<std::size_t>(count))));
    first += count;
  }
  return largest;
}

// Which row of kv_b a row of GGUF's v_b is, and where its k_b finds element (row, col).
struct Absorbed {
  std::int64_t rank, nope, v;  // kv_lora_rank and the two parts of a head
  std::int64_t value_row(std::int64_t row) const { return row / v * (nope + v) + nope + row % v; }
  std::int64_t key_element(std::int64_t row, std::int64_t col) const {
    return (row / rank * (nope + v) + col) * rank + row % rank;
  }
};

// llama.cpp's order of the rows of llama's q and k: pairs that turn together lie side by side.
std::int64_t interleaved_row(std::int64_t row, std::int64_t head_dim) {
  const std::int64_t head = row / head_dim, lane = row % head_dim;
  return head * head_dim + lane % 2 * (head_dim / 2) + lane / 2;
}

// Whether a GGUF of the model holds q and k in another order than safetensors do.
bool reorders(const ModelConfig& config) {
  const Architecture* const architecture = architecture_named(config.architecture);
  return architecture != nullptr && architecture->gguf_rope != architecture->rope;
}

double deviation_of(const ModelConfig& config, const Slot& slot) {
  const auto root = [](std::int64_t n) { return std::sqrt(static_cast<double>(n)); };
  if (slot.role == Role::kEmbedding)  // where it is the head too, it must be as small as one
    return config.tied_embeddings ? 3 / root(config.hidden) : 1;
  const bool absorbed = slot.role == Role::kKeyB || slot.role == Role::kValueB;
  return slot.gain / root(absorbed ? config.kv_lora_rank : slot.cols);
}

}  // namespace

std::string_view scheme_name(Scheme scheme) {
  return std::find_if(kSchemes.begin(), kSchemes.end(),
                      [&](const auto& each) { return each.first == scheme; })
      ->second;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  names.reserve(kSchemes.size());
  for (const auto& [scheme, name] : kSchemes) names.emplace_back(name);
  return names;
}

Result<Scheme> scheme_named(std::string_view name) {
  for (const auto& [scheme, each] : kSchemes)
    if (each == name) return scheme;
  const std::vector<std::string> names = scheme_names();
  return Error{Error::Code::kUsage, fmt::format("there is no weight scheme \"{}\"", name), "",
               did_you_mean(name, names, fmt::format("there are {}", fmt::join(names, ", ")))};
}

Format format_of(Scheme scheme, const Slot& slot, Naming naming) {
  const Format plain = scheme == Scheme::kF32 ? Format::kF32 : Format::kBf16;
  if (slot.cols == 0) return Format::kF32;
  if (slot.role == Role::kRouter || slot.role == Role::kIndexWeight)
    return naming == Naming::kGguf ? Format::kF32 : plain;
  const bool gguf = naming == Naming::kGguf, mlp = slot.role == Role::kMlp;
  const bool head = slot.role == Role::kHead, outer = head || slot.role == Role::kEmbedding;
  switch (scheme) {
    case Scheme::kF32:
    case Scheme::kBf16:
      return plain;
    case Scheme::kFp8:
      return outer ? plain : Format::kE4m3;
    case Scheme::kNvfp4:
      return !mlp   ? plain
             : gguf ? fitting(Format::kGgmlNvfp4, slot.cols)
                    : fitting(Format::kNvfp4, slot.cols);
    case Scheme::kMxfp4:
      return mlp ? fitting(Format::kGgmlMxfp4, slot.cols) : plain;
    case Scheme::kQ8_0:
      return fitting(Format::kQ8_0, slot.cols);
    case Scheme::kQ6_K:
      return fitting(Format::kQ6_K, slot.cols);
    case Scheme::kQ4_K:
      return fitting(head ? Format::kQ6_K : Format::kQ4_K, slot.cols);
  }
  return plain;
}

LevelMatrix levels_of(const RandomModel& model, const Slot& slot, const Share& part) {
  const ModelConfig& config = model.config;
  const LevelSource source(model.seed, slot.canonical);
  LevelMatrix matrix{part.rows, part.cols, deviation_of(config, slot),
                     largest_of(source, slot.rows * slot.cols), nullptr};
  const std::int64_t row0 = part.row, col0 = part.col, cols = slot.cols;
  const Absorbed absorbed{config.kv_lora_rank, config.nope_dim, config.v_dim};
  if (slot.role == Role::kKeyB) {
    matrix.fill = [=](std::int64_t row, std::span<Level> levels) {
      for (std::size_t col = 0; col < levels.size(); ++col)
        levels[col] = source.at(absorbed.key_element(row, static_cast<std::int64_t>(col)));
    };
  } else if (slot.role == Role::kValueB) {
    matrix.fill = [=](std::int64_t row, std::span<Level> levels) {
      source.fill(absorbed.value_row(row) * cols, levels);
    };
  } else if (slot.turned && slot.name != slot.canonical && reorders(config)) {
    matrix.fill = [=, head_dim = config.head_dim](std::int64_t row, std::span<Level> levels) {
      source.fill(interleaved_row(row, head_dim) * cols, levels);
    };
  } else {
    matrix.fill = [=](std::int64_t row, std::span<Level> levels) {
      source.fill((row0 + row) * cols + col0, levels);
    };
  }
  return matrix;
}

std::vector<float> vector_of(const RandomModel& model, const Slot& slot) {
  constexpr double kSpread = 0.1, kBiasSpread = 0.05;
  const LevelSource source(model.seed, slot.canonical);
  const auto values = level_values(slot.role == Role::kBias ? kBiasSpread : kSpread);
  std::vector<Level> levels(static_cast<std::size_t>(slot.rows));
  source.fill(0, levels);
  std::vector<float> result;
  result.reserve(levels.size());
  for (const Level level : levels)
    result.push_back(from_bf16(to_bf16((slot.role == Role::kGain ? 1 : 0) + values[level])));
  return result;
}

float input_scale_of(const Slot& slot) {
  // What comes out of a norm stays below 6 nearly always; silu(gate) x up reaches further.
  const bool down = slot.canonical.ends_with("down_proj.weight");
  return (down ? 16.0F : 6.0F) / (6.0F * 448.0F);
}

}  // namespace culprit::lab
