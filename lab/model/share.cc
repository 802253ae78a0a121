#include "lab/model/share.h"

#include <fmt/format.h>

namespace culprit::lab {
namespace {

Error indivisible(std::string what) {
  return {Error::Code::kUsage, std::move(what), "", "choose another number of ranks"};
}

Error cannot_cut(const Slot& slot, const Shard& shard, std::string_view why) {
  return indivisible(
      fmt::format("tensor \"{}\" cannot be cut for {} ranks: {}", slot.name, shard.of, why));
}

// Which of `of` equal parts of `extent`, made of `units` that must stay whole.
struct Stretch {
  std::int64_t first = 0, count = 0;
};
Result<Stretch> stretch_of(const Slot& slot, std::int64_t extent, const Shard& shard) {
  const std::int64_t units = slot.units > 0 ? slot.units : extent, unit = extent / units;
  // Ranks that outnumber the KV heads share them.
  if (slot.division == Division::kKvRows && units < shard.of && shard.of % units == 0)
    return Stretch{shard.rank * units / shard.of * unit, unit};
  if (units % shard.of != 0)
    return cannot_cut(slot, shard,
                      fmt::format("its {} {} do not divide", units,
                                  slot.units > 0                     ? "heads"
                                  : slot.division == Division::kCols ? "columns"
                                                                     : "rows"));
  const std::int64_t count = units / shard.of * unit;
  return Stretch{shard.rank * count, count};
}

}  // namespace

Result<Share> share_of(const ModelConfig& config, const Slot& slot, const Matrix& like,
                       const Shard& shard) {
  if (shard.of < 1 || shard.rank < 0 || shard.rank >= shard.of)
    return indivisible(fmt::format("there is no rank {} of {}", shard.rank, shard.of));
  if (shard.expert_groups < 1 || shard.of % shard.expert_groups != 0)
    return indivisible(fmt::format("{} ranks do not make {} equal groups with experts of their own",
                                   shard.of, shard.expert_groups));
  Shard among = shard;
  if (slot.expert >= 0 && shard.expert_groups > 1) {
    const std::int64_t experts = config.router.experts;
    if (experts % shard.expert_groups != 0)
      return indivisible(fmt::format("{} experts do not divide over {} groups of ranks", experts,
                                     shard.expert_groups));
    among.of = shard.of / shard.expert_groups;
    among.rank = shard.rank % among.of;
    if (slot.expert / (experts / shard.expert_groups) != shard.rank / among.of) return Share{};
  }
  Share share = whole_of(slot);
  if (among.of == 1 || slot.division == Division::kNone) return share;
  const bool across = slot.division == Division::kCols;
  TRY(const Stretch stretch, stretch_of(slot, across ? slot.cols : slot.rows, among));
  (across ? share.col : share.row) = stretch.first;
  (across ? share.cols : share.rows) = stretch.count;
  const bool scaled = like.format == Format::kE4m3 && like.scale_block > 0;
  const std::int64_t block = scaled ? like.scale_block : across ? block_values(like.format) : 1;
  if (stretch.count % block != 0)
    return cannot_cut(slot, among,
                      fmt::format("{} {} are not whole {} blocks of {}", stretch.count,
                                  across ? "columns" : "rows", format_name(like.format), block));
  return share;
}

}  // namespace culprit::lab
