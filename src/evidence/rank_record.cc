#include "evidence/rank_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "evidence/timeline.h"

namespace culprit::evidence {
namespace {

Doing doing_of(known::Owner owner) {
  switch (owner) {
    case known::Owner::kIdleHostLaunch:
      return Doing::kHostLaunch;
    case known::Owner::kIdleHostSync:
      return Doing::kHostSync;
    case known::Owner::kIdleHostWork:
      return Doing::kHostWork;
    case known::Owner::kIdleStall:
      return Doing::kStall;
    default:
      return Doing::kOther;
  }
}

// All-to-alls and gathers of uneven parts send another amount from every rank.
bool uneven(std::string_view name) {
  return name.find("all_to_all") != std::string_view::npos ||
         name.find("alltoall") != std::string_view::npos || name.ends_with("v");
}

CallKind kind_of(const run::Run& run, const run::Activity& activity) {
  const store::Trace& trace = *run.trace;
  const run::Group& group = run.groups[activity.group.index];
  const std::uint32_t recorded = trace.device.collective[activity.row.index];
  if (recorded == 0) {
    return {{}, fmt::format("{} grid {}", trace.strings.or_empty(group.name), group.grid[0]), 0};
  }
  const store::Collective& its = trace.collectives[recorded - 1];
  const std::string_view name = trace.strings.or_empty(its.name);
  const std::string_view ranks = trace.strings.or_empty(its.ranks);
  const bool all_told = !ranks.empty() && ranks.find("...") == std::string_view::npos;
  return {std::string(all_told ? ranks : trace.strings.or_empty(its.group)),
          uneven(name) ? std::string(name)
                       : fmt::format("{} of {} {}", name, its.in_elements,
                                     trace.strings.or_empty(its.dtype)),
          std::max<std::int64_t>(0, its.group_size)};
}

// In 2043; and longer than any recording by far: sums over a rank's calls stay in range.
constexpr Nanos kLatest = Nanos{1} << 61;
constexpr Nanos kLongest = Nanos{1} << 42;  // 73 minutes

// Adds the time that each span of a sorted list shares with [from, to); `at` never goes back.
template <class Spans, class Add>
void overlaps(const Spans& spans, std::size_t& at, Nanos from, Nanos to, Add add) {
  while (at < spans.size() && spans[at].end <= from) ++at;
  for (std::size_t i = at; i < spans.size() && spans[i].begin < to; ++i) {
    const Nanos shared = std::min(spans[i].end, to) - std::max(spans[i].begin, from);
    if (shared > 0) add(spans[i], shared);
  }
}

class Recorder {
 public:
  explicit Recorder(const Evidence& evidence)
      : evidence_(evidence),
        run_(*evidence.run),
        segments_(timeline(run_.activities)),
        base_(run_.trace->info.base) {}

  // Since the epoch that the trace states; what no clock shows is limited.
  Nanos absolute(Nanos t) const {
    Nanos sum = 0;
    if (__builtin_add_overflow(t, base_, &sum)) sum = t > 0 ? kLatest : 0;
    return std::clamp<Nanos>(sum, 0, kLatest);
  }

  void record(RankRecord& record) {
    Nanos last_end = run_.device_span.begin;
    for (std::size_t i = 0; i < run_.activities.size(); ++i) {
      const run::Activity& activity = run_.activities[i];
      if (!known::is_comm(activity.kind)) continue;
      RankCall call;
      call.begin = absolute(activity.begin);
      call.end = absolute(activity.end);
      call.step = activity.step;
      call.kind = kind_index(activity, record);
      call.sequence = sequence_of(activity);
      if (activity.begin > last_end) call.since = stretch(last_end, activity.begin);
      last_end = std::max(last_end, activity.end);
      record.calls.push_back(call);
    }
  }

  // Time of the used steps that belongs to communication.
  store::SpanSet exposed(const store::SpanSet& used) const {
    store::SpanSet comm;
    for (const Segment& segment : segments_) {
      if (segment.idle() || !known::is_comm(run_.activities[segment.owner.index].kind)) continue;
      comm.push_back({segment.begin, segment.end});
    }
    return shifted(store::intersect(store::union_of(std::move(comm)), used));
  }

  store::SpanSet shifted(store::SpanSet spans) const {
    for (store::Span& span : spans) span = {absolute(span.begin), absolute(span.end)};
    return spans;
  }

 private:
  std::int64_t sequence_of(const run::Activity& activity) const {
    const std::uint32_t recorded = run_.trace->device.collective[activity.row.index];
    return recorded == 0 ? -1 : run_.trace->collectives[recorded - 1].sequence;
  }

  std::uint32_t kind_index(const run::Activity& activity, RankRecord& record) {
    CallKind kind = kind_of(run_, activity);
    const auto [at, added] =
        kinds_.try_emplace(fmt::format("{}|{}", kind.group, kind.what), record.kinds.size());
    if (added) record.kinds.push_back(std::move(kind));
    return static_cast<std::uint32_t>(at->second);
  }

  // The device between two communication kernels: what worked, and why the rest was idle.
  Stretch stretch(Nanos from, Nanos to) {
    Stretch result;
    Nanos idle = 0;
    overlaps(segments_, segment_, from, to, [&](const Segment& segment, Nanos shared) {
      if (segment.idle())
        idle += shared;
      else
        result.ns[static_cast<std::size_t>(Doing::kWork)] += shared;
    });
    overlaps(evidence_.gaps, gap_, from, to, [&](const Gap& gap, Nanos shared) {
      result.ns[static_cast<std::size_t>(doing_of(gap.owner))] += shared;
      idle -= shared;
    });
    result.ns[static_cast<std::size_t>(Doing::kOther)] += std::max<Nanos>(0, idle);
    while (activity_ < run_.activities.size() && run_.activities[activity_].begin < from)
      ++activity_;
    for (std::size_t i = activity_; i < run_.activities.size() && run_.activities[i].begin < to;
         ++i) {
      const run::Activity& activity = run_.activities[i];
      if (known::is_comm(activity.kind)) continue;
      ++result.kernels;
      result.blocks +=
          std::min<std::int64_t>(run_.groups[activity.group.index].blocks(), std::int64_t{1} << 40);
    }
    return result;
  }

  const Evidence& evidence_;
  const run::Run& run_;
  std::vector<Segment> segments_;
  Nanos base_;
  std::map<std::string, std::size_t> kinds_;
  std::size_t segment_ = 0, gap_ = 0, activity_ = 0;
};

std::vector<RankKernel> kernels_of(const Evidence& evidence) {
  std::map<std::string, RankKernel> by_name;
  for (const KernelFigures& figures : evidence.kernels) {
    const run::Group& group = evidence.run->groups[figures.group.index];
    if (group.device_kind != store::DeviceKind::kKernel) continue;
    const std::string name(evidence.run->trace->strings.or_empty(group.name));
    RankKernel& kernel = by_name[name];
    kernel.name = name;
    kernel.owner = group.kind;
    kernel.calls += figures.calls_per_step;
    kernel.blocks += figures.calls_per_step * static_cast<double>(group.blocks());
    kernel.ns += figures.ns_per_step;
  }
  std::vector<RankKernel> kernels;
  kernels.reserve(by_name.size());
  for (auto& [name, kernel] : by_name) kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace

RankRecord record_rank(const Evidence& evidence) {
  const run::Run& run = *evidence.run;
  RankRecord record;
  record.world = run.trace->info.world_size;
  Recorder recorder(evidence);
  if (run.device_span.length() >= 0 && run.device_span.length() <= kLongest)
    recorder.record(record);
  record.exposed_comm = recorder.exposed(used_time(run));
  record.steps = evidence.steps.used;
  record.begin = recorder.absolute(run.device_span.begin);
  record.end = recorder.absolute(run.device_span.end);
  record.kernels = kernels_of(evidence);
  record.host_ns = evidence.steps.host_ns;
  const std::vector<HostWork> work = find_host_work(evidence);
  if (!work.empty()) record.host_work = work.front().name;
  const auto worst =
      std::max_element(evidence.outliers.begin(), evidence.outliers.end(),
                       [](const Outlier& a, const Outlier& b) { return a.excess < b.excess; });
  if (worst != evidence.outliers.end()) record.stall = worst->cause;
  return record;
}

}  // namespace culprit::evidence
