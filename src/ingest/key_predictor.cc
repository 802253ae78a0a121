#include "ingest/key_predictor.h"

#include <cstring>

namespace culprit::ingest {

std::uint8_t KeyPredictor::learn(std::uint8_t slot, std::string_view text, std::string_view key,
                                 std::uint32_t kind, Field field, bool is_args) {
  std::uint32_t hash = kind * 2654435761U + 1;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  const std::uint8_t next = slot_of(kind == 0 ? Place::kEvent : Place::kArgs, hash);
  if (text.size() <= kMaxText && slot != kNoSlot) {
    Slot& at = slots_[slot];
    Guess& guess = at.guesses[at.oldest];
    at.oldest ^= 1;
    std::memset(guess.text, 0, kMaxText);
    std::memcpy(guess.text, text.data(), text.size());
    guess.size = static_cast<std::uint8_t>(text.size());
    guess.head = static_cast<std::uint16_t>(text.size() < 16 ? (1U << text.size()) - 1 : 0xffffU);
    guess.field = field;
    guess.is_args = is_args;
    guess.next_slot = next;
  }
  return next;
}

std::uint8_t KeyPredictor::slot_of(Place place, std::uint32_t hash) {
  const std::uint32_t key = hash << 2 | static_cast<std::uint32_t>(place);
  std::uint8_t& recent = recent_[key % recent_.size()];
  if (slots_[recent].key == key) return recent;
  for (std::uint8_t i = 1; i < used_; ++i) {
    if (slots_[i].key == key) return recent = i;
  }
  if (used_ == kNoSlot) return kNoSlot;
  slots_[used_].key = key;
  return recent = used_++;
}

}  // namespace culprit::ingest
