// The chapters of build() and what they share: each fills its part of the Run, from the trace and
// from what earlier chapters filled. run.cc calls them in order. Nothing here is for readers of a
// Run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/marks.h"
#include "run/order.h"
#include "run/processes.h"
#include "run/run.h"

namespace culprit::run {

// Times and durations up to 2^61 ns (73 years) are taken; sums stop at the largest Nanos instead of
// overflowing on hostile input.
inline constexpr Nanos kLongest = Nanos{1} << 61;
inline Nanos end_of(Nanos begin, Nanos dur) {
  return begin + std::clamp<Nanos>(dur, 0, kLongest);  // a begin is within +-2^62
}
inline Nanos capped_sum(Nanos a, Nanos b) {
  Nanos sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<Nanos>::max() : sum;
}

// What an API call is for, by its name.
enum class Api : std::uint8_t {
  kOther,
  kKernelLaunch,
  kGraphLaunch,
  kCopyOrSet,
  kBeginCapture,
  kEndCapture,
  kInstantiate
};

// What a trace tells about its calls and activities, whatever device a run is about.
struct Links {
  std::vector<Api> api;  // by StringId; kOther for names that are no call's
  Buckets calls;         // by thread, in order of begin
  Processes processes;
  std::vector<store::CallRow> call_of;  // by device row: its launch; invalid: not in the file, or
                                        // one of several that cannot be told apart
  std::vector<ProcessId> driver;        // by device row; empty where every label has one host
  std::vector<std::uint8_t> unclear;    // by device row: several launches may be its own
  std::vector<std::uint8_t> has_activity;  // by call: an activity of some device belongs to it
  std::vector<std::uint8_t> lost;          // by call: it launched a kernel that is not in the file
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Pairs twins;    // calls that are one launch, seen at two levels of the API
  Pairs clashes;  // launches of one process with one id
  Api api_of(const store::Trace& trace, store::CallRow call) const {
    return api[trace.calls.name[call.index].index];
  }
  // The process whose ids an activity has; invalid: unknown.
  ProcessId host_of(const store::Trace& trace, store::DeviceRow row) const {
    if (!driver.empty()) return driver[row.index];
    const auto hosts = processes.hosts(trace.device.thread[row.index]);
    return hosts.empty() ? ProcessId{} : hosts.front();
  }
};

// What is known about the launches of a run's steps.
struct StepLaunches {
  // By call: the step whose host mark it lies under, or -1. By step: activities launched under its
  // mark. Empty without host marks.
  std::vector<StepIndex> step_of_call;
  std::vector<std::int64_t> launched;
  // By step: kernels that ran and are not in the file, and how many of all are of graph replays.
  std::vector<std::int64_t> missing;
  std::int64_t missing_of_replays = 0;
};

// Is the call of the process that the run is about? Always, but in merged files.
inline bool of_run(const Run& run, store::CallRow call) {
  const store::Thread& thread = run.trace->threads[run.trace->calls.thread[call.index].index];
  return thread.rank == run.rank &&
         (run.trace->strings.or_empty(run.process).empty() || thread.pid == run.process);
}

// links.cc: device row -> call by correlation. Fails where processes cannot be told apart.
Status link_rows(const store::Trace& trace, Links& links);
// The same for the activities of a run, with what is to be said about it.
void link_activities(Run& run, const Links& links);

// devices.cc: the devices of the trace; the one the run is about, its properties and its row in the
// table of GPUs.
std::vector<Device> find_devices(const store::Trace& trace, const Links& links);
// The process a device row belongs to where its label has several; else the empty string.
store::StringId process_of(const store::Trace& trace, const Links& links, store::DeviceRow row);
Status choose_device(const Options& options, const std::vector<Device>& devices, Run& run);
void note_other_devices(const std::vector<Device>& devices, Run& run);

// activities.cc: activities of the device in time order, their groups and kinds.
void collect_activities(Run& run, const Links& links);

// op_links.cc: calls and activities whose operator the nesting on a thread does not tell -> operator
// by External id. After nest_ops.
void link_ops(Run& run, const Links& links);

// nest.cc: parents of operators (frames) and the innermost one around each call.
void nest_ops(Run& run, const Links& links);
void nest_frames(Run& run, const Links& links);

// overlaps.cc: limits ends that same-stream order makes impossible.
void limit_ends(Run& run);

// completeness.cc: is anything missing that forbids a verdict or weakens one.
Status check_completeness(Run& run, const Links& links);
// After the steps are known.
void note_completeness(Run& run, const Links& links, const StepLaunches& launches);
// Fills launches.missing: launches without a kernel, by step: by host mark, else by the launches
// around it on its thread (host times are never held against device times); and what replays lack.
void find_missing(const Run& run, const Links& links, StepLaunches& launches);

// script.cc: captures of graphs in the trace: when, begun by which thread.
struct CaptureWindow {
  std::uint32_t thread = 0;
  Nanos begin = 0, end = 0;  // the smallest or largest Nanos where the recording misses that end
};
std::vector<CaptureWindow> find_captures(const store::Trace& trace, const Links& links);
// Fill run.scripts, from the captures and from the eager steps.
void read_captures(Run& run, const Links& links);
void read_eager(Run& run);

// steps_sliced.cc: of a file that `culprit slice` wrote: the steps that it says are in it.
bool take_sliced_steps(Run& run);
// steps.cc and steps_unmarked.cc: fill run.steps (begin, end, kind, batch, mark), in time order.
bool find_marked_steps(Run& run, const Links& links, StepLaunches& launches);
void note_marks_seen(Run& run);
bool find_unmarked_steps(Run& run);
bool find_unrecorded_steps(Run& run);  // steps_unrecorded.cc
void take_whole_trace(Run& run);
// phase.cc: kind of steps whose mark tells none, from operators, Python frames and kernel names.
void infer_kinds(Run& run, const Links& links);

// replays.cc: kernels lost inside graph replays, by step. A replay runs every kernel of its graph: one
// that has a part of what its like have in the other steps, and is alone in that, lost the rest.
std::vector<std::int64_t> missing_in_replays(const Run& run);

// steps_used.cc: first, last and the step of each activity; which steps count.
Status choose_steps(const Options& options, Run& run, const Links& links, StepLaunches& launches);

// layers.cc
void count_layers(const Options& options, Run& run);
// layer_order.cc: what each layer costs, where the order of kernels tells layers apart.
void index_layers(Run& run);

// words.cc: a note of ours: no byte and no event, for it is about the run.
void add_note(Run& run, std::string code, store::Severity severity, std::int64_t count,
              std::string message, std::string where = {});
// "1 kernel", "1,024 kernels", "1,024"; "12.5 us"; a name cut to 60 bytes at most.
std::string counted(std::int64_t n);
std::string counted(std::int64_t n, std::string_view one, std::string_view many);
std::string duration_text(Nanos ns);
std::string micros_text(Nanos ns);  // "1750000000049900.5": a time as it stands in a trace
std::string short_text(std::string_view name);

}  // namespace culprit::run
