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
void nest(int threads, const Links& links, Run& run) {
  constexpr std::size_t kWorthAThread =
      50'000;  // rows; below, starting one costs more than it saves
  const std::size_t shorter = std::min(run.trace->frames.size(), run.trace->ops.size());
  if (threads != 1 && shorter >= kWorthAThread) {
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

void find_steps(Run& run, const Links& links, StepLaunches& launches) {
  if (take_sliced_steps(run)) return;
  if (find_marked_steps(run, links, launches)) return;
  note_marks_seen(run);
  if (find_unmarked_steps(run)) return;
  take_whole_trace(run);
  add_note(run, "no-steps", store::Severity::kWarning, 1,
           "no step mark, no equal graph replays and no repetition of the kernel sequence: "
           "the figures are about the whole trace");
}

// `run` holds what runs share; the device's own part is added.
Result<Run> finish(Run run, const Links& links, const std::vector<Device>& devices,
                   const Options& options) {
  TRY([[maybe_unused]] const Ok chosen, choose_device(options, devices, run));
  collect_activities(run, links);
  link_activities(run, links);
  TRY([[maybe_unused]] const Ok complete, check_completeness(run, links));
  limit_ends(run);
  link_ops(run, links);
  StepLaunches launches;
  find_steps(run, links, launches);
  TRY([[maybe_unused]] const Ok used, choose_steps(options, run, links, launches));
  count_layers(options, run);
  index_layers(run);
  note_completeness(run, links, launches);
  note_other_devices(devices, run);
  read_captures(run, links);
  return run;
}

}  // namespace

struct Builder::Shared {
  Links links;
  std::vector<Device> devices;
  Run run;  // the trace and the nesting of its host rows
  std::optional<Error> inseparable;
};

Builder::Builder(const store::Trace& trace, int threads) : shared_(std::make_unique<Shared>()) {
  shared_->run.trace = &trace;
  if (const Status linked = link_rows(trace, shared_->links); !linked.ok()) {
    shared_->inseparable = linked.error();
    return;
  }
  shared_->devices = find_devices(trace, shared_->links);
  nest(threads, shared_->links, shared_->run);
}

Builder::~Builder() = default;

const std::vector<Device>& Builder::devices() const { return shared_->devices; }

Result<Run> Builder::build(const Options& options) const& {
  if (shared_->inseparable) return *shared_->inseparable;
  return finish(shared_->run, shared_->links, shared_->devices, options);
}

Result<Run> Builder::build(const Options& options) && {
  if (shared_->inseparable) return *shared_->inseparable;
  return finish(std::move(shared_->run), shared_->links, shared_->devices, options);
}

Result<Run> build(const store::Trace& trace, const Options& options) {
  return Builder(trace, options.threads).build(options);
}

Result<std::shared_ptr<const Run>> build_lender(const store::Trace& trace, int threads) {
  auto run = std::make_shared<Run>();
  Links links;
  run->trace = &trace;
  TRY([[maybe_unused]] const Ok linked, link_rows(trace, links));
  TRY([[maybe_unused]] const Ok chosen, choose_device({}, find_devices(trace, links), *run));
  collect_activities(*run, links);
  link_activities(*run, links);
  if (!run->activities.empty()) limit_ends(*run);
  nest(threads, links, *run);
  link_ops(*run, links);
  read_captures(*run, links);
  if (run->activities.empty()) return std::shared_ptr<const Run>(std::move(run));
  StepLaunches launches;
  find_steps(*run, links, launches);
  TRY([[maybe_unused]] const Ok used, choose_steps({}, *run, links, launches));
  read_eager(*run);
  return std::shared_ptr<const Run>(std::move(run));
}

bool is_capture_trace(const store::Trace& trace) {
  Run run;
  Links links;
  run.trace = &trace;
  if (!link_rows(trace, links).ok()) return false;
  if (!choose_device({}, find_devices(trace, links), run).ok()) return false;
  collect_activities(run, links);
  link_activities(run, links);
  const Status complete = check_completeness(run, links);
  return !complete.ok() && complete.error().note_code == "capture-trace";
}

std::int64_t Group::blocks() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t blocks = 1;
  for (const std::int32_t extent : grid) {
    if (extent <= 0) return 0;
    blocks = blocks > kMost / extent ? kMost : blocks * extent;
  }
  return blocks;
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
