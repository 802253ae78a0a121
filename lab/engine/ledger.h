// Ledger: a Recorder that adds up what each kind of kernel did over a number of steps: calls, bytes,
// time. Kinds are told apart by kernel and format; up to kMostKinds of them, those beyond are one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lab/engine/launch.h"

namespace culprit::lab {

class Ledger : public Recorder {
 public:
  struct Entry {
    Launch last;  // of its launches: a shape to show
    std::int64_t calls = 0, read = 0, written = 0;
    Nanos time = 0;
  };

  void launched(const Launch& launch, Nanos start, Nanos end) override;
  void clear() { count_ = 0; }
  std::span<const Entry> entries() const { return {entries_.data(), count_}; }  // first come first
  Entry sum() const;

 private:
  static constexpr std::size_t kMostKinds = 96;
  std::array<Entry, kMostKinds> entries_;
  std::size_t count_ = 0;
};

}  // namespace culprit::lab
