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

struct Links {
  std::vector<Api> api;                    // by StringId; kOther for names that are no call's
  Buckets calls;                           // by thread, in order of begin
  std::vector<std::uint8_t> has_activity;  // by call: an activity of some device belongs to it
  std::vector<std::uint8_t> lost;          // by call: it launched a kernel that is not in the file
  std::vector<std::pair<std::uint32_t, std::uint32_t>> twins;  // calls that are one launch, seen at
                                                               // two levels of the API
  std::vector<std::uint32_t> colliding;  // calls whose correlation is another launch's as well
  std::vector<StepIndex> step_of_call;   // by call: the step whose host mark it lies under, or -1;
                                         // empty without host marks
  std::vector<std::int64_t> launched;    // by step: activities launched under its mark; empty
                                         // without host marks
  Api api_of(const store::Trace& trace, store::CallRow call) const {
    return api[trace.calls.name[call.index].index];
  }
};

// Is the call of the rank that the run is about? Always, but in merged files.
inline bool of_rank(const Run& run, store::CallRow call) {
  return run.trace->threads[run.trace->calls.thread[call.index].index].rank == run.rank;
}

// devices.cc: the device the run is about, its properties and its row in the table of GPUs.
Status choose_device(const Options& options, Run& run);

// activities.cc: activities of the device in time order, their groups and kinds.
void collect_activities(Run& run);

// links.cc: activity -> call by correlation.
Status link_calls(Run& run, Links& links);
// Activities and calls whose operator the nesting on a thread does not tell -> operator by
// External id. After nest_ops.
void link_ops(Run& run);

// nest.cc: parents of operators (frames) and the innermost one around each call.
void nest_ops(Run& run, const Links& links);
void nest_frames(Run& run, const Links& links);

// overlaps.cc: limits ends that same-stream order makes impossible.
void limit_ends(Run& run);

// completeness.cc: is anything missing that forbids a verdict or weakens one.
Status check_completeness(Run& run, const Links& links);
void note_completeness(Run& run, const Links& links);  // after the steps are known
// Launches without a kernel, by step: by host mark, else by the launches around it on its thread
// (host times are never held against device times).
std::vector<std::int64_t> missing_by_step(const Run& run, const Links& links);

// script.cc: captures of graphs in the trace: when, begun by which thread.
struct CaptureWindow {
  std::uint32_t thread = 0;
  Nanos begin = 0, end = 0;  // the smallest or largest Nanos where the recording misses that end
};
std::vector<CaptureWindow> find_captures(const store::Trace& trace, const Links& links);
// Fill run.scripts, from the captures and from the eager steps.
void read_captures(Run& run, const Links& links);
void read_eager(Run& run);

// steps.cc and steps_unmarked.cc: fill run.steps (begin, end, kind, batch, mark), in time order.
bool find_marked_steps(Run& run, Links& links);
void note_marks_seen(Run& run);
bool find_unmarked_steps(Run& run);
bool find_unrecorded_steps(Run& run);  // steps_unrecorded.cc
void take_whole_trace(Run& run);
// phase.cc: kind of steps whose mark tells none, from operators, Python frames and kernel names.
void infer_kinds(Run& run, const Links& links);

// steps_used.cc: first, last and the step of each activity; which steps count.
Status choose_steps(const Options& options, Run& run, const Links& links);

// layers.cc
void count_layers(const Options& options, Run& run);
// layer_order.cc: what each layer costs, where the order of kernels tells layers apart.
void index_layers(Run& run);

// words.cc: a note of ours: no byte and no event, for it is about the run.
void add_note(Run& run, std::string code, store::Severity severity, std::int64_t count,
              std::string message, std::string where = {});
// "1 kernel", "1,024 kernels"; "12.5 us"; a name cut to 60 bytes at most.
std::string counted(std::int64_t n, std::string_view one, std::string_view many);
std::string duration_text(Nanos ns);
std::string short_text(std::string_view name);

}  // namespace culprit::run
