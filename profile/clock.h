// The clock of all spans, in ticks of its own: the processor's time stamp counter where the kernel
// trusts it (x86; 9 ns a reading here), else clock_gettime (23 ns). Ticks become nanoseconds when the
// trace is written, by two readings of both clocks: one when the session began, one then.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace culprit::profile::detail {

using Ticks = std::uint64_t;
using Nanos = std::int64_t;

extern bool counts_cycles;  // set once, by choose_clock
void choose_clock();
Nanos monotonic_now();

inline Ticks now() {
#if defined(__x86_64__)
  if (counts_cycles) [[likely]]
    return __rdtsc();
#endif
  return static_cast<Ticks>(monotonic_now());
}

// Both clocks at one time, as nearly as can be.
struct Reading {
  Ticks ticks = 0;
  Nanos monotonic = 0;
};
Reading read_clocks();

// Ticks to nanoseconds of the epoch. Each reading is off by tens of nanoseconds: the two should be
// 5 ms apart or more.
class Calibration {
 public:
  Calibration(const Reading& first, const Reading& last);
  Nanos epoch_ns(Ticks ticks) const;

 private:
  Reading first_, last_;
  Nanos epoch_minus_monotonic_;
};

}  // namespace culprit::profile::detail
