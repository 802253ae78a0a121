// The kind of steps whose mark tells none (ProfilerStep#, or no mark): from what ran in them.
#include <algorithm>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::StringId;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool tells_training(std::string_view name) {
  return name.starts_with("autograd::engine::evaluate_function") ||
         name.starts_with("Optimizer.step#") || name == "## backward ##";
}

template <class Names>
bool any_tells_training(const store::Trace& trace, const Names& names) {
  std::vector<std::uint8_t> seen(trace.strings.size(), 0);
  for (const StringId name : names) {
    if (seen[name.index] != 0) continue;
    seen[name.index] = 1;
    if (tells_training(trace.strings[name])) return true;
  }
  return false;
}

struct Votes {
  bool decode = false, prefill = false;
  StepKind kind() const {
    if (decode == prefill) return StepKind::kUnknown;
    return decode ? StepKind::kDecode : StepKind::kPrefill;
  }
};

// SGLang's attention backends run under functions named by phase.
Votes phase_of_frame(std::string_view name) {
  return {name.ends_with(": forward_decode"),
          name.ends_with(": forward_extend") || name.ends_with(": forward_prefill")};
}

// The step of the first launch inside a frame, by its activity. -1: none.
StepIndex step_of_frame(const Run& run, const Links& links, std::uint32_t frame,
                        const std::vector<StepIndex>& step_of_call) {
  const store::Trace& trace = *run.trace;
  const std::uint32_t t = trace.frames.thread[frame].index;
  const Nanos begin = trace.frames.begin[frame];
  const Nanos end = end_of(begin, trace.frames.dur[frame]);
  const auto last = links.calls.rows.begin() + links.calls.start[t + 1];
  auto at = std::lower_bound(
      links.calls.rows.begin() + links.calls.start[t], last, begin,
      [&](std::uint32_t call, Nanos time) { return trace.calls.begin[call] < time; });
  for (; at != last && trace.calls.begin[*at] < end; ++at)
    if (step_of_call[*at] >= 0) return step_of_call[*at];
  return -1;
}

void vote_by_frames(const Run& run, const Links& links, std::vector<Votes>& votes) {
  const store::Trace& trace = *run.trace;
  std::vector<std::int8_t> told(trace.strings.size(), -1);  // by name: 1 tells a phase
  std::vector<std::uint32_t> telling;
  for (std::uint32_t frame = 0; frame < trace.frames.size(); ++frame) {
    const StringId name = trace.frames.name[frame];
    std::int8_t& known = told[name.index];
    if (known < 0) {
      const Votes phase = phase_of_frame(trace.strings[name]);
      known = phase.decode || phase.prefill ? 1 : 0;
    }
    if (known == 1) telling.push_back(frame);
  }
  if (telling.empty()) return;
  std::vector<StepIndex> step_of_call(trace.calls.size(), -1);
  for (const Activity& a : run.activities)
    if (a.call.valid()) step_of_call[a.call.index] = a.step;
  for (const auto frame : telling) {
    const StepIndex step = step_of_frame(run, links, frame, step_of_call);
    if (step < 0) continue;
    const Votes phase = phase_of_frame(trace.strings[trace.frames.name[frame]]);
    Votes& vote = votes[static_cast<std::size_t>(step)];
    vote.decode |= phase.decode;
    vote.prefill |= phase.prefill;
  }
}

// A norm kernel runs a block per token, or per few of them: with so few blocks a step computes a
// handful of tokens, and prompts are hardly ever that short.
constexpr std::int32_t kDecodeBlocks = 16;

// Only "decode" is trusted in a kernel name: FlashInfer runs its prefill kernels for decode too.
void vote_by_kernels(const Run& run, std::vector<Votes>& votes) {
  std::vector<std::uint8_t> tells(run.groups.size(), 0);
  for (std::size_t g = 0; g < run.groups.size(); ++g) {
    const std::string_view name = run.trace->strings[run.groups[g].name];
    tells[g] =
        run.groups[g].kind == known::Owner::kAttention &&
        (contains(name, "decode") || contains(name, "Decode") || contains(name, "paged_attention"));
    const store::Dim3& grid = run.groups[g].grid;
    if (run.groups[g].kind == known::Owner::kNorm && grid[0] > 0 && grid[0] <= kDecodeBlocks &&
        grid[1] <= 1 && grid[2] <= 1)
      tells[g] = 1;
  }
  for (const Activity& a : run.activities)
    if (a.step >= 0 && tells[a.group.index] != 0)
      votes[static_cast<std::size_t>(a.step)].decode = true;
}

}  // namespace

void infer_kinds(Run& run, const Links& links) {
  const bool open = std::any_of(run.steps.begin(), run.steps.end(),
                                [](const Step& s) { return s.kind == StepKind::kUnknown; });
  if (!open) return;
  const store::Trace& trace = *run.trace;
  const bool training =
      any_tells_training(trace, trace.ops.name) || any_tells_training(trace, trace.marks.name);
  const bool whole = run.how == StepsHow::kWholeTrace;  // may hold steps of every kind
  std::vector<Votes> by_frames(run.steps.size()), by_kernels(run.steps.size());
  if (!training && !whole) {
    vote_by_frames(run, links, by_frames);
    vote_by_kernels(run, by_kernels);
  }
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    Step& step = run.steps[s];
    if (step.kind != StepKind::kUnknown) continue;
    if (training)
      step.kind = StepKind::kTraining;
    else if (by_frames[s].decode || by_frames[s].prefill)
      step.kind = by_frames[s].kind();
    else if (by_kernels[s].decode || run.how == StepsHow::kGraphReplay)
      step.kind = StepKind::kDecode;  // engines replay whole-step graphs for decode alone
  }
}

}  // namespace culprit::run
