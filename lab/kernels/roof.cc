#include "lab/kernels/roof.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/median.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kPage = 4096, kChunk = 256;  // shares are of whole pages

// "32768K" of one cache of CPU 0; 0 where there is none.
std::int64_t sysfs_cache(int index) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  std::int64_t size = 0;
  char unit = ' ';
  file >> size >> unit;
  return size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

}  // namespace

Result<std::int64_t> last_level_cache() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) largest = std::max(largest, sysfs_cache(index));
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (largest == 0)
    largest = std::max({sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), 0L});
#endif
  if (largest > 0) return largest;
  return Error{Error::Code::kUnsupported, "the size of the last-level cache is not known",
               "/sys/devices/system/cpu/cpu0/cache", "say how many bytes to measure with"};
}

Roof::Roof(Team& team, const Kernels& table, Pages from, Pages to)
    : team_(&team),
      table_(&table),
      from_(std::move(from)),
      to_(std::move(to)),
      ways_{{Move::kRead, "plain", {}},
            {Move::kWrite, "plain", {}},
            {Move::kWrite, "past the caches", {}},
            {Move::kCopy, "plain", {}},
            {Move::kCopy, "past the caches", {}}} {}

Result<Roof> Roof::prepare(Team& team, Isa isa, std::int64_t bytes) {
  if (bytes == 0) {
    TRY(const std::int64_t cache, last_level_cache());
    bytes = kCaches * cache;
  }
  TRY(Pages from, Pages::reserve(bytes));
  TRY(Pages to, Pages::reserve(bytes));
  Roof roof(team, kernels(isa), std::move(from), std::move(to));
  for (const Pages* pages : {&roof.from_, &roof.to_})  // every page there before any is timed
    team.run(pages->bytes() / kPage, kChunk, [&](std::int64_t begin, std::int64_t end) {
      std::memset(pages->data() + begin * kPage, 1,
                  static_cast<std::size_t>((end - begin) * kPage));
    });
  return roof;
}

double Roof::seconds(Move move, bool plain) {
  const Kernels& k = *table_;
  return team_->run(from_.bytes() / kPage, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::byte *const from = from_.data() + begin * kPage, *const to = to_.data() + begin * kPage;
    const std::int64_t n = (end - begin) * kPage;
    if (move == Move::kRead)
      k.read_memory(from, n);
    else if (move == Move::kWrite && plain)
      std::memset(to, 1, static_cast<std::size_t>(n));
    else if (move == Move::kWrite)
      k.write_memory(to, n);
    else if (plain)
      std::memcpy(to, from, static_cast<std::size_t>(n));
    else
      k.copy_memory(from, n, to);
  });
}

void Roof::pass() {
  for (Way& way : ways_) {
    const double moved = static_cast<double>(from_.bytes()) * (way.move == Move::kCopy ? 2 : 1);
    way.rates.push_back(moved / seconds(way.move, way.name == "plain"));
  }
}

void Roof::forget() {
  for (Way& way : ways_) way.rates.clear();
}

double Roof::best(Move move) const {
  double best = 0;
  for (const Way& way : ways_)
    if (way.move == move) best = std::max(best, upper_median(way.rates));
  return best;
}

}  // namespace culprit::lab
