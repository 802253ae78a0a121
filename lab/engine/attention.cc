#include "lab/engine/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/near.h"
#include "lab/engine/operators.h"

namespace culprit::lab {
namespace {

constexpr std::array<std::string_view, 3> kReadings{"pool-cast", "gather-cast", "fused"};

constexpr std::int64_t kMostParts = 16;        // of a token's positions
constexpr std::int64_t kFewestPositions = 64;  // in a part: below, merging costs more than it gains
constexpr std::int64_t kPositionStep = 16;
constexpr std::int64_t kGatherPositions = 128;
constexpr std::int64_t kCopyBytes = 512 << 10;    // of a piece of the pool's copy
constexpr std::int64_t kCastNumbers = 256 << 10;  // of a piece of the pool's cast

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

std::string_view reading_name(Reading reading) {
  return kReadings[static_cast<std::size_t>(reading)];
}

Result<Reading> reading_named(std::string_view name) {
  const auto at = std::find(kReadings.begin(), kReadings.end(), name);
  if (at != kReadings.end()) return static_cast<Reading>(at - kReadings.begin());
  const std::vector<std::string> known(kReadings.begin(), kReadings.end());
  return Error{.code = Error::Code::kUsage,
               .what = fmt::format("unknown reading strategy \"{}\"", name),
               .where = {},
               .hint = did_you_mean(name, known, "pool-cast, gather-cast or fused"),
               .note_code = {}};
}

Attention::Attention(const Kernels& kernels, Launcher& launch, const Pool& pool,
                     const HeadLayout& layout, Reading reading, const AttentionLimits& limits)
    : kernels_(kernels),
      launch_(launch),
      pool_(pool),
      layout_(layout),
      reading_(reading),
      limits_(limits),
      parallel_(std::min(std::int64_t{4} * launch.threads(), limits.tokens)) {}

void Attention::carve(Carver& carver) {
  const PoolShape& shape = pool_.shape();
  if (casts())
    copy_ = carver.take<Bf16>(shape.width *
                              (reading_ == Reading::kPoolCast ? shape.rows() : limits_.gathered));
  if (copies() != Copies::kNone)
    same_copy_ = carver.take<std::byte>(
        shape.row_bytes() * (copies() == Copies::kPool ? shape.rows() : limits_.gathered));
  gathered_first_ = carver.take<std::int64_t>(limits_.tokens);
  parts_ = carver.take<std::int64_t>(limits_.tokens);
  const std::int64_t heads = limits_.tokens * layout_.heads;
  out_ = carver.take<float>(heads * layout_.value_width);
  max_ = carver.take<float>(heads);
  sum_ = carver.take<float>(heads);
  extra_ =
      carver.take<float>(parallel_ * (kMostParts - 1) * layout_.heads * (layout_.value_width + 2));
  cut_.carve(carver, limits_.tokens * layout_.groups);
}

// By the number of positions alone.
Attention::Split Attention::split(std::int64_t count) {
  const std::int64_t length =
      std::max(kFewestPositions, round_up((count + kMostParts - 1) / kMostParts, kPositionStep));
  return {length, (count + length - 1) / length};
}

void Attention::operator()(int layer, std::span<const Reach> reaches, const float* q) {
  if (casts() && reading_ == Reading::kPoolCast) cast_pool(layer);
  if (casts() && reading_ == Reading::kGatherCast) gather(layer, reaches);
  if (copies() == Copies::kPool) copy_pool(layer);
  if (copies() == Copies::kRows) copy_rows(layer, reaches);
  attend(layer, reaches, q);
}

Attention::Copies Attention::copies() const {
  const Faults& faults = launch_.faults();
  if (casts()) return Copies::kNone;
  return faults.pool_copy ? Copies::kPool : faults.layout_copy ? Copies::kRows : Copies::kNone;
}

// As an update out of place does, though nothing but the new rows is different.
void Attention::copy_pool(int layer) {
  const PoolShape& shape = pool_.shape();
  const std::int64_t bytes = shape.rows() * shape.row_bytes();
  const bool half = shape.format == KvFormat::kBf16;
  const Launch launch{.kernel = "pool-copy",
                      .symbol = half ? profile::Name("elementwise_copy_kernel<bf16, bf16>")
                                     : profile::Name("elementwise_copy_kernel<e4m3, e4m3>"),
                      .format = pool_.format_name(),
                      .layer = layer,
                      .read = bytes,
                      .written = bytes,
                      .tokens = shape.rows(),
                      .rows = shape.width,
                      .cols = shape.width};
  const auto tensor = dtype_of(shape.format)(shape.rows(), 1, shape.width);
  const Op outer(launch_, "aten::clone", tensor), op(launch_, "aten::copy_", tensor, tensor);
  const std::byte* from = pool_.rows(layer).data;
  launch_(launch, (bytes + kCopyBytes - 1) / kCopyBytes, [=, this](std::int64_t piece, int) {
    const std::int64_t first = piece * kCopyBytes;
    std::memcpy(same_copy_ + first, from + first,
                static_cast<std::size_t>(std::min(kCopyBytes, bytes - first)));
  });
}

void Attention::copy_rows(int layer, std::span<const Reach> reaches) {
  const std::int64_t bytes = pool_.shape().row_bytes();
  const bool half = pool_.shape().format == KvFormat::kBf16;
  const Launch launch{.kernel = "layout-copy",
                      .symbol = half ? profile::Name("elementwise_copy_kernel<bf16, bf16>")
                                     : profile::Name("elementwise_copy_kernel<e4m3, e4m3>"),
                      .format = pool_.format_name(),
                      .layer = layer,
                      .rows = pool_.shape().width,
                      .cols = pool_.shape().width};
  const Op outer(launch_, "aten::contiguous"), op(launch_, "aten::copy_");
  const auto prepare = [=, this](Launch& its) {
    its.tokens = place_gathered(reaches);
    its.read = its.written = its.tokens * bytes;
    return cut_.pieces();
  };
  launch_(launch, prepare, [=, this](std::int64_t piece, int) {
    const Cut::Part part = cut_[piece];
    const KvRows rows = pool_.rows(layer, reaches[static_cast<std::size_t>(part.item)].index);
    std::byte* to = same_copy_ + (gathered_first_[part.item] + part.begin) * bytes;
    for (std::int64_t i = part.begin; i < part.end; ++i, to += bytes)
      std::memcpy(to, rows.data + rows.index[i] * rows.stride, static_cast<std::size_t>(bytes));
  });
}

void Attention::cast_pool(int layer) {
  const PoolShape& shape = pool_.shape();
  const std::int64_t numbers = shape.rows() * shape.width;
  const auto* from = reinterpret_cast<const std::uint8_t*>(pool_.rows(layer).data);
  const Launch launch{.kernel = "pool-cast",
                      .symbol = "elementwise_copy_kernel<e4m3, bf16>",
                      .format = "e4m3",
                      .layer = layer,
                      .read = numbers,
                      .written = 2 * numbers,
                      .tokens = shape.rows(),
                      .rows = shape.width,
                      .cols = shape.width};
  const Op op(launch_, "aten::copy_", profile::kBf16(shape.rows(), 1, shape.width),
              profile::kE4m3(shape.rows(), 1, shape.width));
  launch_(launch, (numbers + kCastNumbers - 1) / kCastNumbers, [=, this](std::int64_t piece, int) {
    const std::int64_t first = piece * kCastNumbers;
    kernels_.cast_pool(from + first, std::min(kCastNumbers, numbers - first), copy_ + first);
  });
}

// Where each token's rows will stand in the copy; how many there are in all.
std::int64_t Attention::place_gathered(std::span<const Reach> reaches) {
  std::int64_t total = 0;
  cut_.clear();
  for (std::size_t t = 0; t < reaches.size();) {
    // Tokens of one request stand together and share the longest of their prefixes.
    std::size_t end = t;
    std::int64_t count = 0;
    for (; end < reaches.size() && reaches[end].index == reaches[t].index; ++end)
      count = std::max(count, reaches[end].count);
    for (std::size_t i = t; i < end; ++i) {
      gathered_first_[i] = total;
      cut_.add(i == t ? count : 0, kGatherPositions);
    }
    total += count;
    t = end;
  }
  return total;
}

void Attention::gather(int layer, std::span<const Reach> reaches) {
  const std::int64_t width = pool_.shape().width;
  const Launch launch{.kernel = "gather-cast",
                      .symbol = "gather_kernel<e4m3, bf16>",
                      .format = "e4m3",
                      .layer = layer,
                      .rows = width,
                      .cols = width};
  const Op op(launch_, "gather_kv_cache", profile::kE4m3(pool_.shape().rows(), 1, width),
              profile::kInt32(reaches.size()));
  const auto prepare = [=, this](Launch& its) {
    its.tokens = place_gathered(reaches);
    its.read = its.tokens * width;
    its.written = 2 * its.read;
    return cut_.pieces();
  };
  launch_(launch, prepare, [=, this](std::int64_t piece, int) {
    const Cut::Part part = cut_[piece];
    const Reach& reach = reaches[static_cast<std::size_t>(part.item)];
    kernels_.gather_cast(pool_.rows(layer, reach.index), width, part.begin, part.end,
                         copy_ + (gathered_first_[part.item] + part.begin) * width);
  });
}

KvRows Attention::rows_of(int layer, const Reach& reach, std::int64_t token) const {
  if (copies() != Copies::kNone) return copied_rows(reach, token);
  if (!casts()) return pool_.rows(layer, reach.index);
  const std::int64_t stride = pool_.shape().width * static_cast<std::int64_t>(sizeof(Bf16));
  const auto* copy = reinterpret_cast<const std::byte*>(copy_);
  if (reading_ == Reading::kPoolCast)
    return {.format = KvFormat::kBf16, .data = copy, .stride = stride, .index = reach.index};
  return {.format = KvFormat::kBf16,
          .data = copy + gathered_first_[token] * stride,
          .stride = stride,
          .index = nullptr};
}

KvRows Attention::copied_rows(const Reach& reach, std::int64_t token) const {
  const PoolShape& shape = pool_.shape();
  const bool pool = copies() == Copies::kPool;
  return {.format = shape.format,
          .data = same_copy_ + (pool ? 0 : gathered_first_[token] * shape.row_bytes()),
          .stride = shape.row_bytes(),
          .index = pool ? reach.index : nullptr};
}

Partial Attention::extra(std::int64_t slot, std::int64_t head) const {
  float* first = extra_ + slot * layout_.heads * (layout_.value_width + 2);
  return {first + head, first + layout_.heads + head,
          first + 2 * layout_.heads + head * layout_.value_width};
}

Partial Attention::partial(std::int64_t token, std::int64_t part, std::int64_t head) const {
  if (part > 0) return extra(token * (kMostParts - 1) + part - 1, head);
  const std::int64_t at = token * layout_.heads + head;
  return {max_ + at, sum_ + at, out_ + at * layout_.value_width};
}

std::int64_t Attention::number_bytes() const {
  return pool_.shape().format == KvFormat::kBf16 || casts() ? 2 : 1;
}

// Cuts the reaches into parts; with the bytes that reading them takes.
std::int64_t Attention::place_parts(std::span<const Reach> reaches, Launch& launch) {
  const auto tokens = static_cast<std::int64_t>(reaches.size());
  side_by_side_ = tokens <= parallel_;
  cut_.clear();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t count = reaches[static_cast<std::size_t>(t)].count;
    const Split parts = split(count);
    launch.read += count * pool_.shape().width * number_bytes();
    parts_[t] = parts.parts;
    for (std::int64_t group = 0; group < layout_.groups; ++group)
      cut_.add(count, side_by_side_ ? parts.length : count);
  }
  return cut_.pieces();
}

void Attention::attend(int layer, std::span<const Reach> reaches, const float* q) {
  const auto tokens = static_cast<std::int64_t>(reaches.size());
  const bool half = number_bytes() == 2;
  Launch launch{.kernel = "attention",
                .symbol = half ? profile::Name("decode_attention_kernel<bf16>")
                               : profile::Name("decode_attention_kernel<e4m3>"),
                .format = half ? "bf16" : "e4m3",
                .layer = layer,
                .tokens = tokens,
                .rows = layout_.heads * layout_.value_width,
                .cols = layout_.heads * layout_.width};
  launch.written = launch.tokens * launch.rows * 4;
  launch.read = launch.tokens * launch.cols * 4;
  const profile::Dtype keys = half ? profile::kBf16 : profile::kE4m3;
  const Op op(launch_, "decode_attention", profile::kFloat(tokens, layout_.heads, layout_.width),
              keys(pool_.shape().rows(), 1, pool_.shape().width));
  const auto prepare = [=, this](Launch& its) { return place_parts(reaches, its); };
  launch_(launch, prepare, [=, this](std::int64_t piece, int thread) {
    const Cut::Part part = cut_[piece];
    const std::int64_t token = part.item / layout_.groups;
    const Reach& reach = reaches[static_cast<std::size_t>(token)];
    attend_part(q, rows_of(layer, reach, token), split(reach.count).length, part, thread);
  });
}

// Positions of one token and one group of its heads. Side by side, each part has its own place; else
// a thread adds one part after the other.
void Attention::attend_part(const float* q, const KvRows& rows, std::int64_t length,
                            const Cut::Part& part, int thread) const {
  const std::int64_t token = part.item / layout_.groups, group = part.item % layout_.groups;
  const std::int64_t heads = layout_.heads / layout_.groups, head = group * heads;
  const Query query{.q = q + (token * layout_.heads + head) * layout_.width,
                    .heads = heads,
                    .width = layout_.width,
                    .value_width = layout_.value_width,
                    .scale = layout_.scale};
  KvRows keys = rows, values = rows;
  keys.data += group * layout_.key_step * number_bytes();
  values.data += (layout_.value_at + group * layout_.value_step) * number_bytes();
  for (std::int64_t begin = part.begin; begin < part.end; begin += length) {
    const std::int64_t end = std::min(begin + length, part.end);
    if (side_by_side_ || begin == 0) {
      kernels_.attend(query, keys, values, begin, end, partial(token, begin / length, head));
    } else {
      const Partial more = extra(thread * (kMostParts - 1), head);
      kernels_.attend(query, keys, values, begin, end, more);
      kernels_.merge(partial(token, 0, head), more, heads, layout_.value_width);
    }
  }
}

void Attention::settle(std::int64_t token, std::int64_t begin, std::int64_t end) const {
  const Partial whole = partial(token, 0, begin);
  for (std::int64_t part = 1; side_by_side_ && part < parts_[token]; ++part)
    kernels_.merge(whole, partial(token, part, begin), end - begin, layout_.value_width);
  kernels_.finish(whole, end - begin, layout_.value_width);
}

}  // namespace culprit::lab
