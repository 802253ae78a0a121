#include "profile/clock.h"

#include <ctime>
#include <fstream>
#include <limits>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace culprit::profile::detail {

bool counts_cycles = false;

namespace {

__extension__ using Wide = __int128;

Nanos read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Nanos{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

#if defined(__x86_64__)
// The counter's rate does not follow the core's frequency.
bool is_invariant() {
  constexpr unsigned kPowerManagement = 0x80000007, kInvariant = 1U << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
}

// Linux takes the counter off this list where the cores' counters disagree.
bool kernel_trusts_counter() {
  std::ifstream list("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  for (std::string name; list >> name;)
    if (name == "tsc") return true;
  return false;
}
#endif

}  // namespace

Nanos monotonic_now() { return read(CLOCK_MONOTONIC); }

void choose_clock() {
#if defined(__x86_64__)
  counts_cycles = is_invariant() && kernel_trusts_counter();
#endif
}

// Of several tries the one that was interrupted least.
Reading read_clocks() {
  constexpr int kTries = 16;
  Reading best;
  Ticks least = ~Ticks{0};
  for (int i = 0; i < kTries; ++i) {
    const Ticks before = now();
    const Nanos monotonic = monotonic_now();
    const Ticks after = now();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, monotonic};
  }
  return best;
}

namespace {

// Ranks of one machine are laid side by side by it: of several tries the one interrupted least.
Nanos epoch_minus_monotonic() {
  constexpr int kTries = 16;
  Nanos best = 0, least = std::numeric_limits<Nanos>::max();
  for (int i = 0; i < kTries; ++i) {
    const Nanos before = monotonic_now(), epoch = read(CLOCK_REALTIME), after = monotonic_now();
    if (after - before >= least) continue;
    least = after - before;
    best = epoch - (before + least / 2);
  }
  return best;
}

}  // namespace

Calibration::Calibration(const Reading& first, const Reading& last)
    : first_(first), last_(last), epoch_minus_monotonic_(epoch_minus_monotonic()) {
  if (last_.ticks <= first_.ticks) last_ = {first_.ticks + 1, first_.monotonic + 1};
}

Nanos Calibration::epoch_ns(Ticks ticks) const {
  const Wide since = static_cast<Wide>(ticks) - static_cast<Wide>(first_.ticks);
  const Wide ns =
      since * (last_.monotonic - first_.monotonic) / static_cast<Wide>(last_.ticks - first_.ticks);
  return epoch_minus_monotonic_ + first_.monotonic + static_cast<Nanos>(ns);
}

}  // namespace culprit::profile::detail
