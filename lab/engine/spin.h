// Waiting that spins before it sleeps: for what comes within microseconds as a rule.
#pragma once

#include <chrono>

namespace culprit::lab {

// Longer than the serial work between two runs of a step, shorter than a scheduler's time slice.
inline constexpr auto kSpin = std::chrono::microseconds(50);
// On cores that nobody else is to use a device does not fall asleep while its host works: who wakes up
// does so slowly, and finds its caches cold.
inline constexpr auto kDeviceSpin = std::chrono::milliseconds(2);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()`; false: it took longer than `patience`.
template <class Ready>
bool spin_until(const Ready& ready, std::chrono::nanoseconds patience = kSpin) {
  constexpr int kTriesPerLook = 64;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kTriesPerLook; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() - start < patience);
  return false;
}

}  // namespace culprit::lab
