// Waiting that spins before it sleeps: for what comes within microseconds as a rule.
#pragma once

#include <chrono>

namespace culprit::lab {

// Longer than the serial work between two runs of a step, shorter than a scheduler's time slice.
inline constexpr auto kSpin = std::chrono::microseconds(50);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()`; false: it took too long.
template <class Ready>
bool spin_until(const Ready& ready) {
  constexpr int kTriesPerLook = 64;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kTriesPerLook; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() - start < kSpin);
  return false;
}

}  // namespace culprit::lab
