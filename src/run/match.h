// match: one kind of replay held against one script. Internal to mapping.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "run/align.h"
#include "run/run.h"

namespace culprit::run {

// Kernel names of several traces as numbers that can be compared.
class SymbolTable {
 public:
  static constexpr std::uint32_t kUnnamed = 0, kSet = 1, kCopy = 2;
  // Sets and copies are alike under any name: ROCm runs them as kernels.
  std::uint32_t of(std::string_view kernel, store::DeviceKind kind);

 private:
  std::unordered_map<std::string, std::uint32_t> names_;
};

// Replays with the same kernels in the same order, made in steps of the same size.
struct ReplayKind {
  Symbols symbols;                   // stream after stream
  std::vector<std::size_t> streams;  // where each stream's symbols end
  std::optional<std::int64_t> batch, tokens;
  std::vector<std::vector<std::uint32_t>> members;  // activities by place
};
// All replays of a run by kind, in order of first appearance. Nodes with a number of their graph are
// in the order of capture whatever stream they ran on: one stream then.
std::vector<ReplayKind> replay_kinds(const Run& run, SymbolTable& symbols);

struct Match {
  std::vector<std::uint32_t> launch;  // by place: index into the script's launches, or kUnpaired
  std::int64_t paired = 0;
  std::string verified_by;  // "names", "order"
  std::string why_not;      // why places are left out
};
Match match(const Run& run, const ReplayKind& replays, const Run& lender, const Script& script,
            SymbolTable& symbols);

}  // namespace culprit::run
