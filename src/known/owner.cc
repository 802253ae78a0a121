#include "known/owner.h"

#include <array>
#include <cstddef>

namespace culprit::known {
namespace {

constexpr std::array<std::string_view, kOwnerCount> kNames = {
    "attention",      "gemm",
    "moe-gemm",       "quantize",
    "cast",           "copy",
    "norm",           "rope",
    "activation",     "router",
    "kv-store",       "embedding",
    "sampling",       "comm",
    "comm-wait",      "memcpy",
    "memset",         "elementwise",
    "reduce",         "other-kernel",
    "graph",          "idle-host-launch",
    "idle-host-sync", "idle-host-work",
    "idle-stall",     "unexplained",
};

}  // namespace

std::string_view owner_name(Owner owner) {
  const auto index = static_cast<std::size_t>(owner);
  return index < kNames.size() ? kNames[index] : kNames.back();
}

}  // namespace culprit::known
