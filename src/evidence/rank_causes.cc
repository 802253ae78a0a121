#include "evidence/rank_causes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/median.h"
#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using Records = std::span<const RankRecord* const>;

// A kernel as the other ranks have it: medians, counting those that lack it.
struct Usual {
  std::vector<double> calls, blocks;
  std::vector<Nanos> ns;
};

// What the rank's kernels need more than the others', by the reason.
struct Excess {
  Nanos more_work = 0, slower = 0, slower_experts = 0;
  Nanos ns = 0, usual_ns = 0;  // of the kernels with the same work
  double work = 0, usual_work = 0;
};

Excess excess_of(Records records, std::size_t rank) {
  constexpr double kMore = 1.03;  // of calls or blocks: less is a rounding of tiles
  std::map<std::string_view, Usual> usual;
  std::size_t others = 0;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (r == rank || records[r]->kernels.empty()) continue;
    ++others;
    for (const RankKernel& kernel : records[r]->kernels) {
      Usual& its = usual[kernel.name];
      its.calls.push_back(kernel.calls);
      its.blocks.push_back(kernel.blocks);
      its.ns.push_back(kernel.ns);
    }
  }
  Excess excess;
  for (const RankKernel& kernel : records[rank]->kernels) {
    if (known::is_comm(kernel.owner)) continue;
    Usual& its = usual[kernel.name];
    const auto median = [&](auto values) {
      values.resize(others, {});
      return upper_median(std::move(values));
    };
    const Nanos ns = median(its.ns);
    const double calls = median(its.calls), blocks = median(its.blocks);
    if (kernel.calls > kMore * calls || kernel.blocks > kMore * blocks) {
      excess.more_work += kernel.ns - ns;
      excess.work += kernel.blocks;
      excess.usual_work += blocks;
      continue;
    }
    excess.ns += kernel.ns;
    excess.usual_ns += ns;
    (kernel.owner == known::Owner::kMoeGemm ? excess.slower_experts : excess.slower) +=
        kernel.ns - ns;
  }
  return excess;
}

LateCause device_cause(const Excess& excess) {
  const Nanos same_work = excess.slower + excess.slower_experts;
  if (excess.more_work > same_work) return LateCause::kMoreWork;
  if (excess.slower_experts > 2 * excess.slower) return LateCause::kExpertImbalance;
  return same_work > 0 ? LateCause::kSlowKernels : LateCause::kUnknown;
}

LateCause named(std::string_view cause, LateCause otherwise) {
  if (cause == "gc") return LateCause::kGc;
  if (cause == "compile") return LateCause::kCompile;
  if (cause == "allocator") return LateCause::kAllocator;
  return otherwise;
}

// A pause of the host: what its frames say about it, if anything.
LateCause pause_cause(const RankRecord& record, RankSkew& skew) {
  const bool works = skew.excess.of(Doing::kHostWork) >= skew.excess.of(Doing::kStall);
  const std::string_view told = cause_of_frame(record.host_work);
  if (!told.empty() || works) skew.sign = record.host_work;
  if (!told.empty()) return named(told, LateCause::kHostWork);
  return named(record.stall, works ? LateCause::kHostWork : LateCause::kStall);
}

LateCause cause_of(Records records, std::size_t rank, RankSkew& skew) {
  const auto more = [&](Doing doing) { return std::max<Nanos>(0, skew.excess.of(doing)); };
  const Nanos work = more(Doing::kWork), launch = more(Doing::kHostLaunch),
              sync = more(Doing::kHostSync), other = more(Doing::kOther),
              pause = more(Doing::kHostWork) + more(Doing::kStall);
  const Nanos most = std::max({work, launch, sync, pause, other});
  if (most == 0) return LateCause::kUnknown;
  const Excess excess = excess_of(records, rank);
  if (excess.usual_ns > 0)
    skew.kernel_ratio = static_cast<double>(excess.ns) / static_cast<double>(excess.usual_ns);
  if (excess.usual_work > 0) skew.work_ratio = excess.work / excess.usual_work;
  if (most == work) return device_cause(excess);
  if (most == pause) return pause_cause(*records[rank], skew);
  if (most == launch) return LateCause::kHostLaunch;
  if (most == sync) return LateCause::kHostSync;
  // Steps that do not count have no owners for their idle time; an outlier's cause is known.
  return named(records[rank]->stall, LateCause::kUnknown);
}

}  // namespace

void find_causes(Records records, Skew& skew) {
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (skew.ranks[r].last > 0) skew.ranks[r].cause = cause_of(records, r, skew.ranks[r]);
  }
}

}  // namespace culprit::evidence
