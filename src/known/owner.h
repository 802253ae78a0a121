// Owner: who a nanosecond of a step belongs to. The kernel kinds and the idle kinds of the budget,
// one list, in the order in which reports break ties. Names are fixed by the JSON contract.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::known {

enum class Owner : std::uint8_t {
  kAttention,
  kGemm,
  kMoeGemm,
  kQuantize,
  kCast,
  kCopy,
  kNorm,
  kRope,
  kActivation,
  kRouter,
  kKvStore,
  kEmbedding,
  kSampling,
  kComm,
  kCommWait,
  kMemcpy,
  kMemset,
  kElementwise,
  kReduce,
  kOtherKernel,
  kGraph,           // inside a graph replay, no kernel recorded
  kIdleHostLaunch,  // the device waits for a launch call that comes late
  kIdleHostSync,    // ... because the host waited for the device just before
  kIdleHostWork,    // ... because the host computed something of its own
  kIdleStall,       // ... because nothing at all happened on the host (GC, compile, allocator)
  kUnexplained,
};
inline constexpr int kOwnerCount = static_cast<int>(Owner::kUnexplained) + 1;

std::string_view owner_name(Owner owner);  // "moe-gemm"
constexpr bool is_idle(Owner owner) { return owner >= Owner::kGraph; }
constexpr bool is_comm(Owner owner) { return owner == Owner::kComm || owner == Owner::kCommWait; }

}  // namespace culprit::known
