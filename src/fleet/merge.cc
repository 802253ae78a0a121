#include "fleet/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace culprit::fleet {
namespace {

using evidence::RankFigures;

// The reason in the words of the answer's notes.
std::string code_of(const Error& fault) {
  if (!fault.note_code.empty()) return fault.note_code;
  return fault.code == Error::Code::kUnsupported ? "unsupported" : "cannot-read";
}

// The ranks' collectives from their summaries: all of them, where one stretch holds all.
class ShelfStretches : public evidence::RankStretches {
 public:
  // What is given must outlive this; `figures` and `traces` are of the same ranks in one order.
  ShelfStretches(const Shelf& shelf, std::vector<const TraceFile*> traces,
                 const std::vector<RankFigures>& figures, std::int64_t steps,
                 const Progress& progress)
      : shelf_(shelf), traces_(std::move(traces)), steps_(steps), progress_(progress) {
    for (const RankFigures& rank : figures) ranks_.push_back(&rank.record);
  }

  std::span<const evidence::RankRecord* const> ranks() override { return ranks_; }
  void rewind() override { at_ = 0; }
  std::span<const evidence::RankRecord* const> next() override {
    given_.clear();
    held_.clear();
    if (at_ > last_ || !read_.ok()) return {};
    const StepRange range{at_, steps_ == kAllSteps ? kAllSteps : at_ + steps_};
    for (std::size_t r = 0; r < traces_.size(); ++r) {
      if (progress_) progress_(r, traces_.size());
      Result<Summary> summary = shelf_.load(*traces_[r], range);
      if (!summary.ok()) {
        read_ = summary.error();
        return {};
      }
      last_ = std::max(last_, range.end == kAllSteps ? 0 : std::ssize(summary->steps) - 1);
      held_.push_back(std::move(summary->figures.record));
      held_.back().kernels = {};  // ranks() has them
    }
    for (const evidence::RankRecord& record : held_) given_.push_back(&record);
    at_ = range.end;
    count_ = std::max(count_, steps_ == kAllSteps ? 1 : range.first / steps_ + 1);
    return given_;
  }

  const Status& status() const { return read_; }
  std::int64_t count() const { return count_; }

 private:
  const Shelf& shelf_;
  std::vector<const TraceFile*> traces_;
  std::int64_t steps_;
  const Progress& progress_;
  std::int64_t at_ = 0, last_ = 0, count_ = 0;
  std::vector<const evidence::RankRecord*> ranks_, given_;
  std::vector<evidence::RankRecord> held_;
  Status read_ = Ok{};
};

class Merger {
 public:
  Merger(const Shelf& shelf, const std::vector<TraceFile>& traces, const Progress& progress)
      : shelf_(shelf), traces_(traces), progress_(progress) {}

  Status read_heads() {
    const std::size_t kernels = kernels_each(traces_.size());
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      if (progress_) progress_(t, traces_.size());
      TRY(Summary summary, shelf_.load_head(traces_[t]));
      if (summary.kind == Kind::kBad)
        merged_.skipped.push_back({t, code_of(*summary.fault), summary.fault->what});
      else if (summary.kind == Kind::kCapture)
        merged_.captures.push_back(t);
      else
        add_rank(t, std::move(summary), kernels);
    }
    return Ok{};
  }

  // Traces that are no ranks of the run of most others are left out.
  void leave_out_strangers() {
    constexpr std::size_t kTried = 3;  // one of the first traces is of the run
    std::vector<std::optional<std::string>> reasons;
    std::size_t strangers = ranks_.size() + 1;
    for (std::size_t first = 0; first < std::min(kTried, ranks_.size()) && strangers > 1; ++first) {
      auto found = reasons_against(first);
      const auto count = static_cast<std::size_t>(std::count_if(
          found.begin(), found.end(), [](const auto& why) { return why.has_value(); }));
      if (count < strangers) strangers = count, reasons = std::move(found);
    }
    std::vector<OfTrace> kept;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (reasons[r])
        merged_.skipped.push_back({ranks_[r].trace, "another-run", *reasons[r]});
      else
        kept.push_back(std::move(ranks_[r]));
    }
    ranks_ = std::move(kept);
    std::stable_sort(merged_.skipped.begin(), merged_.skipped.end(),
                     [](const Skipped& a, const Skipped& b) { return a.file < b.file; });
  }

  // How many steps a stretch has: as many as all ranks together may have in memory.
  std::int64_t steps_of_stretch(std::size_t most) const {
    double per_step = 0;
    std::int64_t all = 0;
    for (const OfTrace& rank : ranks_) {
      all += rank.summary.calls_kept;
      per_step += static_cast<double>(rank.summary.calls_kept) /
                  static_cast<double>(std::max<std::int64_t>(1, rank.summary.steps_in_all));
    }
    if (all <= static_cast<std::int64_t>(most)) return kAllSteps;
    return std::max<std::int64_t>(1,
                                  static_cast<std::int64_t>(static_cast<double>(most) / per_step));
  }

  Result<Merged> finish(std::size_t most) && {
    const std::int64_t steps = steps_of_stretch(most);
    std::vector<RankFigures> figures;
    for (OfTrace& rank : ranks_) {
      Summary& summary = rank.summary;
      merged_.calls += summary.calls_in_all;
      merged_.related += summary.calls_kept;
      summary.figures.file = merged_.used.size();
      store::TraceInfo info;
      info.path = summary.path;
      info.format = summary.format;
      info.file_bytes = summary.bytes;
      info.events = summary.events;
      merged_.used.push_back(
          {rank.trace, summary.figures.rank, std::move(info), std::move(summary.notes)});
      figures.push_back(std::move(summary.figures));
    }
    Status read = Ok{};
    merged_.ranks =
        evidence::compare_ranks(std::move(figures), [&](const std::vector<RankFigures>& sorted) {
          ShelfStretches stretches(shelf_, traces_of(sorted), sorted, steps, progress_);
          evidence::Skew skew = evidence::relate_ranks(stretches);
          merged_.stretches = stretches.count();
          read = stretches.status();
          return skew;
        });
    if (!read.ok()) return read.error();
    for (RankFigures& rank : merged_.ranks.all) rank.record.kernels = {};  // nobody needs them now
    return std::move(merged_);
  }

 private:
  struct OfTrace {
    std::size_t trace = 0;
    Summary summary;  // without its collectives
  };

  std::vector<const TraceFile*> traces_of(const std::vector<RankFigures>& figures) const {
    std::vector<const TraceFile*> traces;
    traces.reserve(figures.size());
    for (const RankFigures& rank : figures)
      traces.push_back(&traces_[merged_.used[rank.file].file]);
    return traces;
  }

  static std::size_t kernels_each(std::size_t traces) {
    return std::max<std::size_t>(16, kMostHeldKernels / traces);
  }

  void add_rank(std::size_t trace, Summary summary, std::size_t kernels) {
    hold(kernels, summary.figures.record.kernels);
    summary.suspects = {};
    summary.run_notes = {};
    ranks_.push_back({trace, std::move(summary)});
  }

  // Why each rank is not of the run that `first` is of; none where it is.
  std::vector<std::optional<std::string>> reasons_against(std::size_t first) const {
    std::vector<std::optional<std::string>> reasons(ranks_.size());
    std::map<std::int64_t, std::size_t> taken;  // rank, who has it
    const auto name = [&](std::size_t r) { return traces_[ranks_[r].trace].path; };
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankFigures& own = ranks_[r].summary.figures;
      if (r != first) {
        std::vector<RankFigures> pair{ranks_[first].summary.figures, own};
        for (RankFigures& each : pair) each.rank.reset();
        const Status same = evidence::check_same_run(pair, {name(first), name(r)});
        if (!same.ok()) {
          reasons[r] = same.error().what;
          continue;
        }
      }
      if (!own.rank) continue;
      const auto [at, free] = taken.try_emplace(*own.rank, r);
      if (!free)
        reasons[r] = fmt::format("it is rank {}, and so is {}", *own.rank, name(at->second));
    }
    return reasons;
  }

  // The `most` largest kernels, by name as before.
  static void hold(std::size_t most, std::vector<evidence::RankKernel>& kernels) {
    if (kernels.size() <= most) return;
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const auto& a, const auto& b) { return a.ns > b.ns; });
    kernels.resize(most);
    kernels.shrink_to_fit();
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  const Shelf& shelf_;
  const std::vector<TraceFile>& traces_;
  const Progress& progress_;
  std::vector<OfTrace> ranks_;
  Merged merged_;
};

}  // namespace

std::size_t most_held(const std::vector<TraceFile>& traces) {
  constexpr std::int64_t kLeast = 50'000, kMost = 400'000;  // some 10 MB, and 80 MB
  constexpr std::int64_t kBytesEach = 400;  // of a trace, whose reading takes more than that
  std::int64_t largest = 0;
  for (const TraceFile& trace : traces) largest = std::max(largest, trace.bytes);
  return static_cast<std::size_t>(std::clamp(largest / kBytesEach, kLeast, kMost));
}

Error no_rank(const std::vector<TraceFile>& traces, const Merged& merged) {
  const bool captures = merged.skipped.empty();
  const Skipped first = captures
                            ? Skipped{0, "capture-trace", "it is the recording of a graph capture"}
                            : merged.skipped.front();
  return {.code = Error::Code::kUnusable,
          .what = fmt::format("none of {} traces is that of a rank: {}", traces.size(), first.why),
          .where = traces[first.file].path,
          .hint = "`culprit TRACE` says more about one of them",
          .note_code = first.code};
}

Result<Merged> merge(const Shelf& shelf, const std::vector<TraceFile>& traces, std::size_t held,
                     const Progress& progress) {
  Merger merger(shelf, traces, progress);
  TRY([[maybe_unused]] const Ok read, merger.read_heads());
  merger.leave_out_strangers();
  return std::move(merger).finish(held);
}

}  // namespace culprit::fleet
