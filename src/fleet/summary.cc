#include "fleet/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/hash.h"
#include "run/mapping.h"
#include "verdict/verdict.h"

namespace culprit::fleet {
namespace {

// A text that only tells things apart stays one of its own when it is shortened.
void shorten(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  text = fmt::format("{}#{:016x}", text.substr(0, most), hash(text));
}

void bound_kernels(std::vector<evidence::RankKernel>& kernels) {
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  for (evidence::RankKernel& kernel : kernels) shorten(kernel.name, kLongestText);
  if (kernels.size() > kMostKernels) {
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const auto& a, const auto& b) { return a.ns > b.ns; });
    kernels.resize(kMostKernels);
  }
  std::stable_sort(kernels.begin(), kernels.end(), by_name);
}

void take_steps(const run::Run& run, Summary& summary) {
  summary.steps_in_all = std::ssize(run.steps);
  const std::size_t kept = std::min(run.steps.size(), kMostSteps);
  summary.steps.reserve(kept);
  for (std::size_t s = 0; s < kept; ++s) {
    const run::Step& step = run.steps[s];
    summary.steps.push_back({step.begin, step.length(), step.kind, step.batch, step.used});
  }
}

void take_suspects(evidence::Evidence& evidence, Summary& summary) {
  const verdict::Verdict verdict = verdict::judge(evidence);
  for (const verdict::Suspect& suspect : verdict.suspects) {
    if (summary.suspects.size() == kMostSuspects) break;
    summary.suspects.push_back({suspect.id, std::string(verdict::standing_name(suspect.standing)),
                                std::string(verdict::confidence_name(suspect.confidence)),
                                suspect.claim, suspect.ns_per_step, suspect.exposed_ns_per_step});
  }
}

void bound_calls(Summary& summary) {
  constexpr std::size_t kLongestWords = 256;
  evidence::RankRecord& record = summary.figures.record;
  for (evidence::CallKind& kind : record.kinds) {
    shorten(kind.group, kLongestWords);
    shorten(kind.what, kLongestWords);
  }
  summary.calls_in_all = std::ssize(record.calls);
  cut(summary, kMostCalls);
  summary.calls_kept = std::ssize(record.calls);
}

Summary head_of(const store::Trace& trace, const std::string& path) {
  Summary summary;
  summary.path = path;
  summary.format = trace.info.format;
  summary.bytes = trace.info.file_bytes;
  summary.events = trace.info.events;
  summary.notes = trace.notes;
  return summary;
}

}  // namespace

Summary summarize(const store::Trace& trace, const std::string& path,
                  std::optional<std::int64_t> named, const run::Options& options,
                  const evidence::Knowledge& known) {
  Summary summary = head_of(trace, path);
  if (run::is_capture_trace(trace)) {
    summary.kind = Kind::kCapture;
    return summary;
  }
  summary.kind = Kind::kRank;
  const run::Builder builder(trace, options.threads);
  summary.figures =
      evidence::measure_rank(trace, builder, options, known, [&](evidence::Evidence& evidence) {
        take_steps(*evidence.run, summary);
        take_suspects(evidence, summary);
        summary.run_notes = evidence.run->notes;
      });
  if (!summary.figures.rank) summary.figures.rank = named;
  bound_kernels(summary.figures.record.kernels);
  bound_calls(summary);
  return summary;
}

Summary summarize_fault(const std::string& path, std::int64_t bytes, const Error& fault) {
  Summary summary;
  summary.path = path;
  summary.bytes = bytes;
  summary.fault = fault;
  return summary;
}

void cut(Summary& summary, std::size_t most) {
  evidence::RankRecord& record = summary.figures.record;
  std::vector<evidence::RankCall>& calls = record.calls;
  if (calls.size() <= most) return;
  const auto used = std::find_if(summary.steps.begin(), summary.steps.end(),
                                 [](const StepRow& step) { return step.used; });
  // The step in which the first one falls that does not fit goes as a whole, if any other counts.
  std::int64_t steps = 0;
  for (std::size_t c = 0; c <= most; ++c) steps = std::max<std::int64_t>(steps, calls[c].step);
  steps = std::max<std::int64_t>(steps, used - summary.steps.begin() + 1);
  const auto behind =
      std::find_if(calls.begin(), calls.end(),
                   [steps](const evidence::RankCall& call) { return call.step >= steps; });
  const auto kept = std::min(static_cast<std::size_t>(behind - calls.begin()), most);
  record.exposed_comm =
      store::intersect(record.exposed_comm, store::SpanSet{{record.begin, calls[kept].begin}});
  calls.resize(kept);
  record.steps = used_steps(summary.steps, {0, steps});
}

std::int64_t used_steps(const std::vector<StepRow>& steps, StepRange range) {
  std::int64_t count = 0;
  for (std::int64_t s = range.first; s < std::min(range.end, std::ssize(steps)); ++s)
    count += steps[static_cast<std::size_t>(s)].used ? 1 : 0;
  return count;
}

}  // namespace culprit::fleet
