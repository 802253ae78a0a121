// Completeness before conclusions: what the file lacks is found and said before any figure is
// made, and a file that cannot carry a verdict is refused.
#include <fmt/format.h>

#include <array>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::CallRow;
using store::Severity;

struct Launches {
  std::int64_t all = 0;      // calls that launch one kernel
  std::int64_t without = 0;  // of them without an activity, for whatever reason
  std::int64_t lost = 0;     // of them those whose kernel ran and was not recorded
  bool capturing = false;    // signs that a graph was being recorded: such launches run nothing
};

Launches count_launches(const Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  Launches found;
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call) {
    const Api api = links.api_of(trace, CallRow{call});
    if (api == Api::kBeginCapture || api == Api::kEndCapture || api == Api::kInstantiate)
      found.capturing = true;
    if (api != Api::kKernelLaunch || !of_run(run, CallRow{call})) continue;
    ++found.all;
    found.without += links.has_activity[call] == 0 ? 1 : 0;
    found.lost += links.lost[call];
  }
  for (const store::StringId name : trace.marks.name) {
    if (found.capturing) break;
    const auto mark = read_mark(trace.strings[name]);
    found.capturing = mark && mark->level == MarkLevel::kCapture;
  }
  return found;
}

std::string missing_text(std::int64_t missing, const Launches& found) {
  return fmt::format("{} of {} without a kernel", missing,
                     counted(found.all, "launch", "launches"));
}

std::string share_text(std::int64_t part, std::int64_t all) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

// "steps 0-2, 5": the steps in which launches lack their kernel.
std::string missing_where(const std::vector<std::int64_t>& missing) {
  std::string where;
  StepIndex from = -1, to = -1;
  for (std::size_t s = 0; s <= missing.size(); ++s) {
    if (s < missing.size() && missing[s] > 0) {
      if (from < 0) from = static_cast<StepIndex>(s);
      to = static_cast<StepIndex>(s);
    } else if (from >= 0) {
      where += where.empty() ? "steps " : ", ";
      where += from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
      from = -1;
      if (where.size() > 60) return where + ", ...";
    }
  }
  return where;
}

// Were all kernels without a launch in front of the first launched activity of their stream? Then
// they were launched before the recording began, which is no loss.
bool launched_before_recording(const Run& run) {
  const auto& table = run.trace->device;
  std::vector<std::uint8_t> launched(run.trace->threads.size(), 0);  // by stream
  std::int64_t linked = 0;
  for (const Activity& a : run.activities) {
    const std::uint32_t stream = table.thread[a.row.index].index;
    if (a.call.valid()) {
      launched[stream] = 1;
      ++linked;
    } else if (launched[stream] != 0 && table.kind[a.row.index] == store::DeviceKind::kKernel) {
      return false;
    }
  }
  return linked > 0;
}

// Kernels of which several launches could be the own one are no such case.
std::int64_t unlaunched(const Run& run, const Links& links) {
  std::int64_t unclear = 0;
  for (const Activity& a : run.activities)
    if (!links.unclear.empty() && links.unclear[a.row.index] != 0 &&
        run.trace->device.kind[a.row.index] == store::DeviceKind::kKernel)
      ++unclear;
  return run.kernels_without_launch - unclear;
}

void note_unlaunched(Run& run, std::int64_t count) {
  std::int64_t kernels = 0;
  for (const Group& g : run.groups)
    kernels += g.device_kind == store::DeviceKind::kKernel ? g.activities : 0;
  const bool before = launched_before_recording(run);
  add_note(run, "launches-missing", before ? Severity::kInfo : Severity::kDataLoss, count,
           fmt::format("{} of {} without a launch in the file, {}: operator and source unknown",
                       count, counted(kernels, "kernel", "kernels"),
                       before ? "launched before the recording began" : "lost or not recorded"));
}

void note_missing(Run& run, const Links& links, const StepLaunches& launches) {
  const Launches found = count_launches(run, links);
  const std::int64_t of_replays = launches.missing_of_replays;
  if (found.lost + of_replays > 0) {
    std::string what;
    if (found.lost > 0)
      what = missing_text(found.lost, found) + " in the file (" +
             share_text(found.lost, found.all) + ")";
    if (of_replays > 0)
      what += (what.empty() ? "" : ", and ") + counted(of_replays,
                                                       "kernel of a graph replay is missing",
                                                       "kernels of graph replays are missing");
    add_note(run, "kernels-missing", Severity::kDataLoss, found.lost + of_replays,
             what +
                 ": the profiler dropped device events; steps that lack some are left out of the "
                 "means, and no idle time is derived where one may have run",
             missing_where(launches.missing));
  }
  auto whole = static_cast<std::int64_t>(run.graphs_without_kernels.size());
  for (const Group& g : run.groups)
    whole += g.device_kind == store::DeviceKind::kGraph ? g.activities : 0;
  if (whole > 0)
    add_note(run, "graph-level-rows", Severity::kDataLoss, whole,
             counted(whole, "graph launch has", "graph launches have") +
                 " no kernels in the file: their time is graph time, not idle time");
  if (const std::int64_t count = unlaunched(run, links); count > 0) note_unlaunched(run, count);
}

void note_operators(Run& run) {
  const store::Trace& trace = *run.trace;
  std::int64_t eager = 0, without = 0, elsewhere = 0;
  Nanos eager_time = 0, time_without = 0;
  for (const Activity& a : run.activities) {
    if (!a.call.valid() || a.in_graph) continue;
    ++eager;
    eager_time = capped_sum(eager_time, a.end - a.begin);
    if (!a.op.valid()) {
      ++without;
      time_without = capped_sum(time_without, a.end - a.begin);
    } else if (trace.ops.thread[a.op.index] != trace.calls.thread[a.call.index]) {
      ++elsewhere;
    }
  }
  // Some launches outside of any operator are normal: Triton and engines launch directly.
  if (without > 0 && (trace.ops.size() == 0 || time_without > eager_time / 10))
    add_note(run, "ops-missing", Severity::kWarning, without,
             fmt::format("{} of {} belong to no recorded operator", without,
                         counted(eager, "eager activity", "eager activities")));
  if (elsewhere > 0)
    add_note(run, "ops-on-another-thread", Severity::kInfo, elsewhere,
             counted(elsewhere, "launch has", "launches have") +
                 " the operator on another thread: linked by External id");
}

// Rows whose text cannot be read; each different text is tried once.
template <class Parse>
std::int64_t unreadable(const store::Trace& trace, const std::vector<store::StringId>& texts,
                        Parse parse) {
  enum : std::uint8_t { kUntried, kReadable, kUnreadable };
  std::vector<std::uint8_t> state(trace.strings.size(), kUntried);
  std::int64_t rows = 0;
  for (const store::StringId id : texts) {
    const std::string_view text = trace.strings.or_empty(id);
    if (text.empty()) continue;
    std::uint8_t& known = state[id.index];
    if (known == kUntried) known = parse(text) ? kReadable : kUnreadable;
    rows += known == kUnreadable ? 1 : 0;
  }
  return rows;
}

void note_unreadable(Run& run) {
  const store::Trace& trace = *run.trace;
  const std::int64_t dims = unreadable(trace, trace.ops.dims, parse_dims);
  const std::int64_t types = unreadable(trace, trace.ops.types, parse_types);
  if (dims + types > 0)
    add_note(run, "bad-number", Severity::kWarning, dims + types,
             fmt::format(
                 "{} input shapes or types that are no lists of them; they count as not recorded",
                 counted(dims + types, "operator has", "operators have")));
}

void note_not_recorded(Run& run) {
  const store::Trace& trace = *run.trace;
  const auto& dims = trace.ops.dims;
  const bool shapes = std::any_of(dims.begin(), dims.end(), [&](store::StringId d) {
    return d.valid() && !trace.strings[d].empty();
  });
  if (!shapes)
    add_note(run, "no-shapes", Severity::kInfo, 1,
             "no tensor shapes in the file (" + trace.info.advice.shapes +
                 "): element counts come from launch geometry");
  if (trace.frames.size() == 0)
    add_note(run, "no-stacks", Severity::kInfo, 1,
             "no Python frames in the file (" + trace.info.advice.stacks +
                 "): source lines are unknown");
}

}  // namespace

void find_missing(const Run& run, const Links& links, StepLaunches& launches) {
  const store::Trace& trace = *run.trace;
  std::vector<StepIndex> linked(trace.calls.size(), -1);
  for (const Activity& a : run.activities)
    if (a.call.valid()) linked[a.call.index] = a.step;
  std::vector<std::int64_t>& missing = launches.missing;
  missing = missing_in_replays(run);
  // At the ends of the recording a replay is cut off, which is no loss.
  for (std::size_t s = 1; s + 1 < missing.size(); ++s) launches.missing_of_replays += missing[s];
  const auto add = [&](StepIndex step) {
    if (step >= 0) ++missing[static_cast<std::size_t>(step)];
  };
  for (std::size_t t = 0; t < links.calls.count(); ++t) {
    StepIndex before = -1;        // step of the last launch on the thread that has its kernel
    std::vector<StepIndex> open;  // of missing launches since then: their `before`
    for (std::uint32_t k = links.calls.start[t]; k < links.calls.start[t + 1]; ++k) {
      const std::uint32_t call = links.calls.rows[k];
      if (linked[call] >= 0) {
        // Between two steps it cannot be told which one lacks the kernel: both may.
        for (const StepIndex step : open) {
          add(step);
          if (step != linked[call]) add(linked[call]);
        }
        open.clear();
        before = linked[call];
      } else if (links.lost[call] != 0) {
        if (launches.step_of_call.empty())
          open.push_back(before);
        else
          add(launches.step_of_call[call]);
      }
    }
    for (const StepIndex step : open) add(step);
  }
}

// "10,346 operators, 823 runtime calls and 1,313 events of category mtia_ccp_events, which are not
// read": what a file without device activity holds instead. Categories that only annotate are left
// out.
std::string found_instead(const store::Trace& trace) {
  constexpr std::array<std::string_view, 8> kAnnotate{"Trace",
                                                      "overhead",
                                                      "ac2g",
                                                      "fwdbwd",
                                                      "cuda_event",
                                                      "cpu_instant_event",
                                                      "external_correlation",
                                                      "hardware_counters"};
  std::vector<std::string> found;
  const auto add = [&](std::size_t n, std::string_view one, std::string_view many) {
    if (n > 0) found.push_back(counted(static_cast<std::int64_t>(n), one, many));
  };
  add(trace.ops.size(), "operator", "operators");
  add(trace.calls.size(), "runtime call", "runtime calls");
  for (const auto& [category, events] : trace.info.unread.counts) {
    const bool annotates =
        std::find(kAnnotate.begin(), kAnnotate.end(), category) != kAnnotate.end();
    if (!annotates && found.size() < 6)
      found.push_back(counted(events, "event", "events") + " of category " + short_text(category) +
                      ", which is not read");
  }
  return found.empty() ? std::string() : fmt::format("; it holds {}", fmt::join(found, ", "));
}

Status check_completeness(Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  const Launches found = count_launches(run, links);
  run.launches_without_activity = found.without;
  const auto unusable = [&](std::string what, std::string hint, std::string code) {
    return Error{Error::Code::kUnusable, std::move(what), trace.info.path, std::move(hint),
                 std::move(code)};
  };
  // Where replays ran more kernels than were captured, the capture was but a part of the run.
  const bool most = 2 * found.without > found.all &&
                    static_cast<std::int64_t>(run.activities.size()) < found.without;
  if (most && found.capturing)
    return unusable(
        "this is a trace of graph capture, not of a run: " + missing_text(found.without, found),
        "give the trace of the run itself; the capture trace can lend operators and "
        "sources to its graph kernels",
        "capture-trace");
  if (run.activities.empty())
    return unusable(
        "no device activity was recorded: " +
            (found.all > 0 ? missing_text(found.without, found)
                           : "no kernel, copy or set in the file" + found_instead(trace)),
        trace.info.advice.device, "no-device-activity");
  if (2 * found.lost > found.all)
    return unusable("most device activity is missing: " + missing_text(found.lost, found),
                    "record fewer steps, so that the profiler's buffers hold them",
                    "kernels-missing");
  return Ok{};
}

void note_completeness(Run& run, const Links& links, const StepLaunches& launches) {
  note_missing(run, links, launches);
  note_operators(run);
  note_unreadable(run);
  note_not_recorded(run);
}

}  // namespace culprit::run
