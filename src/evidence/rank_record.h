// RankRecord: what is kept of a rank once its trace is read: its communication kernels in time order,
// each with what the rank did since the one before it, and what its kernels cost. All that is said
// about ranks side by side follows from these, so that one trace at a time is in memory.
// Times are ns on the rank's own clock since the epoch its trace states; some 100 bytes a collective.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"
#include "store/spans.h"

namespace culprit::evidence {

// What a rank was doing instead of coming to a collective; a partition of that time.
enum class Doing : std::uint8_t {
  kWork,        // kernels, copies and sets that are no communication
  kHostLaunch,  // the device waited for a launch, ...
  kHostSync,    // ... because the host waited,
  kHostWork,    // ... because the host worked on something else,
  kStall,       // ... while nothing at all happened on the host
  kOther,       // idle for a reason that is not known
};
inline constexpr std::size_t kDoings = 6;

struct Stretch {
  std::array<Nanos, kDoings> ns{};
  std::int32_t kernels = 0;  // that began in it
  std::int64_t blocks = 0;   // of their grids
  Nanos of(Doing doing) const { return ns[static_cast<std::size_t>(doing)]; }
};

// One communication kernel.
struct RankCall {
  Nanos begin = 0, end = 0;
  std::int64_t sequence = -1;  // within its group; -1: not recorded
  std::uint32_t kind = 0;      // index into RankRecord::kinds
  run::StepIndex step = -1;
  Stretch since;  // the end of the communication before it, or the first activity; empty inside one
};

// Calls that may meet: the same words on every rank that takes part.
struct CallKind {
  std::string group;            // the ranks of the process group, or its name; empty: not recorded
  std::string what;             // operation and message, or kernel and grid
  std::int64_t group_size = 0;  // 0: not recorded
};

// All kernels of one name, per step.
struct RankKernel {
  std::string name;
  known::Owner owner = known::Owner::kOtherKernel;
  double calls = 0, blocks = 0;
  Nanos ns = 0;
};

struct RankRecord {
  std::optional<std::int64_t> world;  // ranks of the run, as the trace's header states
  std::vector<RankCall> calls;        // by begin; none of recordings longer than 73 minutes
  std::vector<CallKind> kinds;
  std::vector<RankKernel> kernels;  // by name
  store::SpanSet exposed_comm;      // of the used steps: time that belongs to communication
  std::int64_t steps = 0;           // used ones
  Nanos begin = 0, end = 0;         // first and last device activity
  Nanos host_ns = 0;                // StepStats::host_ns
  std::string host_work;  // what the host did in most of its own time; empty: not recorded
  std::string stall;      // cause of the worst outlier step: "gc", ...; empty: none
};

RankRecord record_rank(const Evidence& evidence);

}  // namespace culprit::evidence
