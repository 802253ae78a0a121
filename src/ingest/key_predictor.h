// KeyPredictor: writers put the same keys in the same order into every event of a kind. Behind each key it remembers the text
// up to the next value (`,\n    "tid": `), so that most keys cost one comparison of a few 16-byte steps instead of a scan and
// a look-up. It changes no result: only text that is equal byte for byte is skipped. One per thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ingest/event.h"
#include "ingest/scan.h"

namespace culprit::ingest {

class KeyPredictor {
 public:
  static constexpr std::size_t kMaxText = 64;
  struct Guess {
    alignas(16) char text[kMaxText] = {};
    std::uint16_t head = 0;  // bit i set: byte i < 16 belongs to the text
    std::uint8_t size = 0;   // 0: none
    Field field = Field::kIgnored;
    bool is_args = false;
    std::uint8_t next_slot = 0;
    bool begins(const char* p) const {
      if ((differing16(p, text) & head) != 0 || size == 0) return false;
      if (size <= 16) return true;
      for (unsigned at = 16; at + 16 < size; at += 16) {
        if (differing16(p + at, text + at) != 0) return false;
      }
      return differing16(p + size - 16, text + size - 16) == 0;
    }
  };
  static constexpr std::uint8_t kEventStart = 0;  // the slot behind an event's opening brace
  static constexpr std::uint8_t kNoSlot = 255;  // of keys that came when all were taken: no guesses

  // The guess at `slot` that the text at p agrees with; null if none does. p as for parse_event.
  const Guess* match(std::uint8_t slot, const char* p) const {
    for (const Guess& guess : slots_[slot].guesses) {
      if (guess.begins(p)) return &guess;
    }
    return nullptr;
  }
  // Behind `slot` came `text`, up to the value of `key`; returns the slot of that key. `kind` tells levels and categories apart.
  std::uint8_t learn(std::uint8_t slot, std::string_view text, std::string_view key,
                     std::uint32_t kind, Field field, bool is_args);
  // The slot in front of the first key of args.
  std::uint8_t args_start(std::uint32_t kind) { return slot_of(Place::kArgsStart, kind); }

 private:
  struct Slot {
    std::array<Guess, 2> guesses;  // what came behind this key lately
    std::uint8_t oldest = 0;
    std::uint32_t key = 0;  // place, and hash of kind and key
  };
  // What stands behind a slot's key is read by its place alone; so no slot may serve two of them.
  enum class Place : std::uint8_t { kNone, kEvent, kArgsStart, kArgs };
  std::uint8_t slot_of(Place place, std::uint32_t hash);  // kNoSlot: all are taken

  std::array<Slot, kNoSlot + 1> slots_;  // the last one stays empty
  std::uint8_t used_ = 1;
  std::array<std::uint8_t, 64> recent_{};  // slot_of's own cache
};

}  // namespace culprit::ingest
