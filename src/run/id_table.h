// IdTable: (process, id) -> a row number. Correlation and External ids repeat from process to
// process of a merged file, so the process is part of the key. Open addressing, at most half full:
// one probe as a rule.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "run/processes.h"

namespace culprit::run {

class IdTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  explicit IdTable(std::size_t capacity) : slots_(std::bit_ceil(2 * capacity + 2)) {}

  // The value of the key; kNone where `find` has none. insert() keeps an older value and adds
  // nothing then. At most `capacity` keys may be inserted.
  std::uint32_t find(ProcessId process, std::int64_t id) const {
    return slots_[slot_of(process, id)].value;
  }
  std::uint32_t* insert(ProcessId process, std::int64_t id, std::uint32_t value) {
    Slot& slot = slots_[slot_of(process, id)];
    if (slot.value == kNone) slot = {id, process.index, value};
    return &slot.value;
  }

 private:
  struct Slot {
    std::int64_t id = 0;
    std::uint32_t process = 0;
    std::uint32_t value = kNone;
  };
  std::size_t slot_of(ProcessId process, std::int64_t id) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15U;
    hash ^= static_cast<std::uint64_t>(process.index) * 0xff51afd7ed558ccdU;
    std::size_t at = static_cast<std::size_t>(hash >> 32) & mask;
    while (slots_[at].value != kNone &&
           (slots_[at].id != id || slots_[at].process != process.index))
      at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

}  // namespace culprit::run
