#include "run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "run/chapters.h"
#include "run/mapping.h"

namespace culprit::run {
namespace {

// Frames and operators are the long tables, and independent of each other.
void nest(const Options& options, const Links& links, Run& run) {
  constexpr std::size_t kWorthAThread =
      50'000;  // rows; below, starting one costs more than it saves
  const std::size_t shorter = std::min(run.trace->frames.size(), run.trace->ops.size());
  if (options.threads != 1 && shorter >= kWorthAThread) {
    try {
      const std::jthread frames([&] { nest_frames(run, links); });
      nest_ops(run, links);
      return;
    } catch (const std::system_error&) {  // no thread to be had: one does it all
    }
  }
  nest_frames(run, links);
  nest_ops(run, links);
}

void find_steps(Run& run, Links& links) {
  if (find_marked_steps(run, links)) return;
  note_marks_seen(run);
  if (find_unmarked_steps(run)) return;
  take_whole_trace(run);
  add_note(run, "no-steps", store::Severity::kWarning, 1,
           "no step mark, no equal graph replays and no repetition of the kernel sequence: "
           "the figures are about the whole trace");
}

}  // namespace

Result<Run> build(const store::Trace& trace, const Options& options) {
  Run run;
  Links links;
  run.trace = &trace;
  TRY([[maybe_unused]] const Ok chosen, choose_device(options, run));
  collect_activities(run);
  TRY([[maybe_unused]] const Ok linked, link_calls(run, links));
  TRY([[maybe_unused]] const Ok complete, check_completeness(run, links));
  limit_ends(run);
  nest(options, links, run);
  link_ops(run);
  find_steps(run, links);
  TRY([[maybe_unused]] const Ok used, choose_steps(options, run, links));
  count_layers(options, run);
  index_layers(run);
  note_completeness(run, links);
  read_captures(run, links);
  return run;
}

Result<std::shared_ptr<const Run>> build_lender(const store::Trace& trace, int threads) {
  auto run = std::make_shared<Run>();
  Links links;
  Options options;
  options.threads = threads;
  run->trace = &trace;
  TRY([[maybe_unused]] const Ok chosen, choose_device(options, *run));
  collect_activities(*run);
  TRY([[maybe_unused]] const Ok linked, link_calls(*run, links));
  if (!run->activities.empty()) limit_ends(*run);
  nest(options, links, *run);
  link_ops(*run);
  read_captures(*run, links);
  if (run->activities.empty()) return std::shared_ptr<const Run>(std::move(run));
  find_steps(*run, links);
  TRY([[maybe_unused]] const Ok used, choose_steps(options, *run, links));
  read_eager(*run);
  return std::shared_ptr<const Run>(std::move(run));
}

bool is_capture_trace(const store::Trace& trace) {
  Run run;
  Links links;
  run.trace = &trace;
  if (!choose_device({}, run).ok()) return false;
  collect_activities(run);
  if (!link_calls(run, links).ok()) return false;
  const Status complete = check_completeness(run, links);
  return !complete.ok() && complete.error().note_code == "capture-trace";
}

std::string_view step_kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::kDecode:
      return "decode";
    case StepKind::kPrefill:
      return "prefill";
    case StepKind::kMixed:
      return "mixed";
    case StepKind::kDraft:
      return "draft";
    case StepKind::kVerify:
      return "verify";
    case StepKind::kTraining:
      return "training";
    case StepKind::kIdle:
      return "idle";
    case StepKind::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view steps_how_name(StepsHow how) {
  switch (how) {
    case StepsHow::kMarked:
      return "marked";
    case StepsHow::kGraphReplay:
      return "graph-replay";
    case StepsHow::kRepetition:
      return "repetition";
    case StepsHow::kWholeTrace:
      break;
  }
  return "whole-trace";
}

}  // namespace culprit::run
