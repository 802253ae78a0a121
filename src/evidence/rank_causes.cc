#include "evidence/rank_causes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/median.h"
#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using Records = std::span<const RankRecord* const>;

// A kernel as all ranks have it, in their order.
struct OfRank {
  std::size_t rank = 0;
  const RankKernel* kernel = nullptr;
};
using Usual = std::map<std::string_view, std::vector<OfRank>>;

Usual all_kernels(Records records) {
  Usual usual;
  for (std::size_t r = 0; r < records.size(); ++r)
    for (const RankKernel& kernel : records[r]->kernels) usual[kernel.name].push_back({r, &kernel});
  return usual;
}

// Median over the others, `others` in all, counting those that lack it.
template <class Value>
Value median_of_others(const std::vector<OfRank>& all, std::size_t rank, std::size_t others,
                       Value RankKernel::*member) {
  std::vector<Value> values;
  values.reserve(others);
  for (const OfRank& its : all)
    if (its.rank != rank) values.push_back(its.kernel->*member);
  values.resize(others, {});
  return upper_median(std::move(values));
}

// What the rank's kernels need more than the others', by the reason.
struct Excess {
  Nanos more_work = 0, slower = 0, slower_experts = 0;
  Nanos ns = 0, usual_ns = 0;  // of the kernels with the same work
  double work = 0, usual_work = 0;
};

Excess excess_of(Records records, std::size_t rank, const Usual& usual) {
  constexpr double kMore = 1.03;  // of calls or blocks: less is a rounding of tiles
  std::size_t others = 0;
  for (std::size_t r = 0; r < records.size(); ++r)
    if (r != rank && !records[r]->kernels.empty()) ++others;
  Excess excess;
  for (const RankKernel& kernel : records[rank]->kernels) {
    if (known::is_comm(kernel.owner)) continue;
    const std::vector<OfRank>& all = usual.find(kernel.name)->second;
    const Nanos ns = median_of_others(all, rank, others, &RankKernel::ns);
    const double calls = median_of_others(all, rank, others, &RankKernel::calls);
    const double blocks = median_of_others(all, rank, others, &RankKernel::blocks);
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

LateCause cause_of(Records records, std::size_t rank, const Usual& usual, RankSkew& skew) {
  const auto more = [&](Doing doing) { return std::max<Nanos>(0, skew.excess.of(doing)); };
  const Nanos work = more(Doing::kWork), launch = more(Doing::kHostLaunch),
              sync = more(Doing::kHostSync), other = more(Doing::kOther),
              pause = more(Doing::kHostWork) + more(Doing::kStall);
  const Nanos most = std::max({work, launch, sync, pause, other});
  if (most == 0) return LateCause::kUnknown;
  const Excess excess = excess_of(records, rank, usual);
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
  const Usual usual = all_kernels(records);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (skew.ranks[r].last > 0) skew.ranks[r].cause = cause_of(records, r, usual, skew.ranks[r]);
  }
}

}  // namespace culprit::evidence
