#include "lab/engine/ledger.h"

#include <algorithm>

namespace culprit::lab {

void Ledger::launched(const Launch& launch, Nanos start, Nanos end) {
  const auto first = entries_.begin(), last = first + static_cast<std::ptrdiff_t>(count_);
  auto at = std::find_if(first, last, [&](const Entry& entry) {
    return entry.last.kernel == launch.kernel && entry.last.format == launch.format;
  });
  if (at == last && count_ < kMostKinds) {
    *at = {};
    ++count_;
  } else if (at == last) {
    --at;
  }
  at->last = launch;
  ++at->calls;
  at->read += launch.read;
  at->written += launch.written;
  at->time += end - start;
}

Ledger::Entry Ledger::sum() const {
  Entry sum;
  for (const Entry& entry : entries()) {
    sum.calls += entry.calls;
    sum.read += entry.read;
    sum.written += entry.written;
    sum.time += entry.time;
  }
  return sum;
}

}  // namespace culprit::lab
