#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/text.h"
#include "lab/model/random_model.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kAlignment = 64;

// A matrix to be filled, and where in the block it goes.
struct Fill {
  Slot slot;
  Share share;
  std::int64_t data = 0, scales = 0;
};

std::vector<Slot> all_slots(Weights& weights) {
  weights.layers.resize(static_cast<std::size_t>(weights.config.layers));
  std::vector<Slot> slots = outer_slots(weights, Naming::kHf);
  for (std::int64_t layer = 0; layer < weights.config.layers; ++layer) {
    std::vector<Slot> more = layer_slots(weights, layer, Naming::kHf);
    std::move(more.begin(), more.end(), std::back_inserter(slots));
  }
  return slots;
}

// Lays the matrices out one behind the other; returns the bytes of all.
std::int64_t lay_out(std::vector<Fill>& fills) {
  std::int64_t end = 0;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t at = end;
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  for (Fill& fill : fills) {
    const EncodedSize size =
        encoded_size(fill.slot.matrix->format, fill.share.rows, fill.share.cols);
    fill.data = take(size.data);
    fill.scales = take(size.scales);
  }
  return end;
}

Error no_memory(std::int64_t bytes, std::string_view why) {
  return {Error::Code::kCannotRead,
          fmt::format("no {} of memory for the weights: {}", text::bytes(bytes), why), "memory",
          "choose fewer layers or experts, a smaller scale, or one rank's share"};
}

Result<std::unique_ptr<std::byte, FreeWeights>> reserve(std::int64_t bytes) {
  // A kernel that overcommits would give it, and end the process when it is filled.
  const std::int64_t installed = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (bytes > installed)
    return no_memory(bytes, fmt::format("the machine has {}", text::bytes(installed)));
  void* const block = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return no_memory(bytes, std::strerror(errno));
  madvise(block, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // helps where it is heeded
  return std::unique_ptr<std::byte, FreeWeights>(static_cast<std::byte*>(block), {bytes});
}

void fill(const RandomModel& model, const Fill& job, std::byte* block, Encoder& encoder) {
  const LevelMatrix levels = levels_of(model, job.slot, job.share);
  Matrix& matrix = *job.slot.matrix;
  encoder.encode(levels, matrix.format, 0, levels.rows, block + job.data, block + job.scales);
  matrix.rows = levels.rows;
  matrix.cols = levels.cols;
  matrix.data = block + job.data;
  matrix.scale = Encoder::scale_of(levels, matrix.format);
  if (matrix.format == Format::kNvfp4) matrix.input_scale = input_scale_of(job.slot);
  if (matrix.format == Format::kE4m3 || matrix.format == Format::kNvfp4)
    matrix.block_scales = block + job.scales;
}

// What there is to fill for a rank; vectors are filled right away.
Result<std::vector<Fill>> fills_of(const RandomModel& model, const Shard& shard, Weights& weights) {
  std::vector<Fill> fills;
  for (const Slot& slot : all_slots(weights)) {
    if (slot.vector != nullptr) {
      *slot.vector = vector_of(model, slot);
      continue;
    }
    Matrix& matrix = *slot.matrix;
    matrix.format = format_of(model.scheme, slot, Naming::kHf);
    if (matrix.format == Format::kE4m3) matrix.scale_block = kFp8Block;
    TRY(const Share share, share_of(model.config, slot, matrix, shard));
    if (share.empty())
      matrix = {};
    else
      fills.push_back({slot, share});
  }
  return fills;
}

}  // namespace

void FreeWeights::operator()(std::byte* block) const {
  munmap(block, static_cast<std::size_t>(bytes));
}

Result<RandomWeights> random_weights(const RandomModel& model, Shard shard, int threads) {
  TRY([[maybe_unused]] const Ok sound, check(model.config, "the model"));
  RandomWeights result;
  result.weights.config = model.config;
  TRY(std::vector<Fill> fills, fills_of(model, shard, result.weights));
  const std::int64_t bytes = lay_out(fills);
  TRY(result.block, reserve(bytes));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Encoder encoder;
    for (std::size_t i = next++; i < fills.size(); i = next++)
      fill(model, fills[i], result.block.get(), encoder);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (model.config.tied_embeddings) result.weights.lm_head = result.weights.embedding;
  return result;
}

}  // namespace culprit::lab
