// Links from the device to the host, by ids alone: times are used only to check an External id,
// since kernels may start before their launch in the file (clock skew).
#include <algorithm>
#include <map>

#include "run/chapters.h"
#include "run/drivers.h"
#include "run/id_table.h"

namespace culprit::run {
namespace {

using store::CallRow;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// cudaLaunchKernelExC, cuLaunchKernelEx, hipExtModuleLaunchKernel, cudaGraphLaunch,
// hipMemcpyWithStream, urEnqueueKernelLaunch, zeCommandListAppendMemoryCopy, Node@launch, ...: the
// vendors' names differ in prefix and suffix only.
Api api_of_name(std::string_view name) {
  if (contains(name, "StreamBeginCapture")) return Api::kBeginCapture;
  if (contains(name, "StreamEndCapture")) return Api::kEndCapture;
  if (contains(name, "GraphInstantiate")) return Api::kInstantiate;
  if (contains(name, "GraphLaunch") || contains(name, "ModelExecute")) return Api::kGraphLaunch;
  if (name == "Node@launch") return Api::kKernelLaunch;
  if (contains(name, "Launch") && (contains(name, "Kernel") || contains(name, "LaunchGrid")))
    return Api::kKernelLaunch;
  for (const std::string_view part : {"emcpy", "emset", "MemoryCopy", "MemBufferCopy", "Fill"})
    if (contains(name, part)) return Api::kCopyOrSet;
  return Api::kOther;
}

bool starts_work(Api api) {
  return api == Api::kKernelLaunch || api == Api::kGraphLaunch || api == Api::kCopyOrSet;
}

std::vector<Api> read_apis(const store::Trace& trace) {
  std::vector<Api> api(trace.strings.size(), Api::kOther);
  std::vector<std::uint8_t> seen(trace.strings.size(), 0);
  for (const store::StringId name : trace.calls.name) {
    if (seen[name.index] != 0) continue;
    seen[name.index] = 1;
    api[name.index] = api_of_name(trace.strings[name]);
  }
  return api;
}

Buckets calls_by_thread(const store::Trace& trace) {
  const auto& calls = trace.calls;
  Buckets buckets = bucket_rows(calls.size(), trace.threads.size(),
                                [&](std::size_t row) { return calls.thread[row].index; });
  const auto before = [&](auto a, auto b) { return calls.begin[a] < calls.begin[b]; };
  for (std::size_t thread = 0; thread < buckets.count(); ++thread) {
    const auto first = buckets.rows.begin() + buckets.start[thread];
    const auto last = buckets.rows.begin() + buckets.start[thread + 1];
    if (!std::is_sorted(first, last, before)) std::stable_sort(first, last, before);
  }
  return buckets;
}

// Two calls with one correlation: a runtime call around its own driver call is one launch, seen
// twice; any other pair comes from two processes.
bool one_inside_the_other(const store::CallTable& calls, std::uint32_t a, std::uint32_t b) {
  const auto holds = [&](std::uint32_t outer, std::uint32_t inner) {
    return calls.begin[outer] <= calls.begin[inner] &&
           end_of(calls.begin[inner], calls.dur[inner]) <=
               end_of(calls.begin[outer], calls.dur[outer]);
  };
  return calls.thread[a] == calls.thread[b] && calls.name[a] != calls.name[b] &&
         (holds(a, b) || holds(b, a));
}

IdTable index_correlations(const store::Trace& trace, Links& links) {
  const auto& calls = trace.calls;
  IdTable index(calls.size());
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.correlation[row] == store::kNoId) continue;
    const ProcessId process = links.processes.of(calls.thread[row]);
    std::uint32_t* known = index.insert(process, calls.correlation[row], row);
    if (*known == row) continue;
    if (!starts_work(links.api_of(trace, CallRow{*known})))
      *known = row;
    else if (!starts_work(links.api_of(trace, CallRow{row})))
      continue;
    else if (one_inside_the_other(calls, *known, row))
      links.twins.emplace_back(*known, row);
    else
      links.clashes.emplace_back(*known, row);
  }
  return index;
}

// Where every label has one host process, as a rule: the id alone tells the call.
void find_calls(const store::Trace& trace, const IdTable& index, Links& links) {
  const auto& device = trace.device;
  for (std::size_t row = 0; row < device.size(); ++row) {
    const auto hosts = links.processes.hosts(device.thread[row]);
    if (device.correlation[row] == store::kNoId || hosts.empty()) continue;
    const std::uint32_t call = index.find(hosts.front(), device.correlation[row]);
    if (call == IdTable::kNone) continue;
    links.call_of[row] = CallRow{call};
    links.has_activity[call] = 1;
  }
}

// The kernels of one launch: how many, and whether on one device or several.
struct Kernels {
  std::uint32_t first = 0xffffffffU;  // row
  bool again = false;                 // another one on the same device
  bool elsewhere = false;             // another one on another device
};

std::vector<Kernels> kernels_by_call(const store::Trace& trace, const Links& links) {
  const auto& device = trace.device;
  std::vector<Kernels> kernels(trace.calls.size());
  for (std::uint32_t row = 0; row < device.size(); ++row) {
    const CallRow call = links.call_of[row];
    if (!call.valid() || device.kind[row] != store::DeviceKind::kKernel) continue;
    Kernels& found = kernels[call.index];
    if (found.first == 0xffffffffU)
      found.first = row;
    else if (device.device[row] == device.device[found.first])
      found.again = true;
    else
      found.elsewhere = true;
  }
  return kernels;
}

// Launches whose id another launch of the process has as well, and launches of one kernel that have
// several. Their kernels cannot be told apart: they are linked to none. On devices of their own they
// are still apart; on one device nothing separates the processes that such a file was merged from.
Status check_collisions(const store::Trace& trace, Links& links) {
  const std::vector<Kernels> kernels = kernels_by_call(trace, links);
  std::vector<std::uint8_t> clashes(trace.calls.size(), 0);
  for (const auto& [known, other] : links.clashes) {
    clashes[known] = 1;
    links.has_activity[other] = links.has_activity[known];
  }
  std::int64_t starting = 0, colliding = 0, mixed = 0;
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call) {
    const Api api = links.api_of(trace, CallRow{call});
    starting += starts_work(api) ? 1 : 0;
    const Kernels& its = kernels[call];
    if (api == Api::kKernelLaunch && (its.again || its.elsewhere)) clashes[call] = 1;
    if (clashes[call] == 0) continue;
    ++colliding;
    mixed += its.again && (api == Api::kKernelLaunch || !its.elsewhere) ? 1 : 0;
  }
  if (mixed > 1 && mixed * 100 > starting)
    return Error{Error::Code::kUnusable,
                 counted(colliding, "correlation id belongs", "correlation ids belong") +
                     " to several launches: ranks or processes were merged without a label that "
                     "separates them",
                 trace.info.path, "give the trace of each rank instead of the merged file",
                 "ranks-inseparable"};
  if (colliding == 0) return Ok{};
  links.unclear.resize(trace.device.size(), 0);
  for (std::size_t row = 0; row < trace.device.size(); ++row) {
    if (!links.call_of[row].valid() || clashes[links.call_of[row].index] == 0) continue;
    links.call_of[row] = CallRow{};
    links.unclear[row] = 1;
  }
  return Ok{};
}

// Without the launch in the file, kernels that share a correlation id still tell a graph replay.
void find_graphs_without_launch(Run& run) {
  const auto& table = run.trace->device;
  std::vector<std::pair<std::int64_t, std::uint32_t>> unlinked;  // correlation, activity
  for (std::uint32_t i = 0; i < run.activities.size(); ++i) {
    const Activity& a = run.activities[i];
    if (!a.call.valid() && table.correlation[a.row.index] > 0 &&
        table.kind[a.row.index] == store::DeviceKind::kKernel)
      unlinked.emplace_back(table.correlation[a.row.index], i);
  }
  std::sort(unlinked.begin(), unlinked.end());
  for (std::size_t k = 1; k < unlinked.size(); ++k)
    if (unlinked[k].first == unlinked[k - 1].first)
      run.activities[unlinked[k].second].in_graph =
          run.activities[unlinked[k - 1].second].in_graph = true;
}

// What a rank's launches without a kernel have to do with the ends of the recording.
struct Ends {
  std::int64_t launches = 0, lost = 0;
  std::int64_t early = 0;  // kernels that were launched before the recording began
  bool trailing = true;    // every lost launch came after the last one of its process that ran
};

using EndsByRank = std::map<store::StringId, Ends>;

// Launches while the process captures a graph run nothing, whatever thread makes them.
EndsByRank find_lost_calls(const store::Trace& trace, Links& links) {
  const auto& calls = trace.calls;
  const std::vector<CaptureWindow> captures = find_captures(trace, links);
  const auto captured = [&](std::uint32_t call) {
    const store::Thread& thread = trace.threads[calls.thread[call].index];
    return std::any_of(captures.begin(), captures.end(), [&](const CaptureWindow& window) {
      const store::Thread& begun_by = trace.threads[window.thread];
      return window.begin <= calls.begin[call] && calls.begin[call] < window.end &&
             begun_by.pid == thread.pid && begun_by.rank == thread.rank;
    });
  };
  EndsByRank ends;
  for (std::size_t t = 0; t < links.calls.count(); ++t) {
    if (links.calls.start[t] == links.calls.start[t + 1]) continue;
    Ends& end = ends[trace.threads[t].rank];
    for (std::uint32_t k = links.calls.start[t]; k < links.calls.start[t + 1]; ++k) {
      const std::uint32_t call = links.calls.rows[k];
      if (links.api_of(trace, CallRow{call}) != Api::kKernelLaunch) continue;
      if (links.has_activity[call] == 0 && captured(call)) continue;
      ++end.launches;
      if (links.has_activity[call] != 0) continue;
      links.lost[call] = 1;
      ++end.lost;
    }
  }
  return ends;
}

// Kernels in front of the first one of their stream whose launch is in the file.
void count_early(const store::Trace& trace, const std::vector<CallRow>& call_of, EndsByRank& ends) {
  const auto& device = trace.device;
  std::vector<Nanos> first(trace.threads.size(), kLongest);  // by stream
  for (std::size_t row = 0; row < call_of.size(); ++row) {
    Nanos& begin = first[device.thread[row].index];
    if (call_of[row].valid()) begin = std::min(begin, device.begin[row]);
  }
  for (std::size_t row = 0; row < call_of.size(); ++row) {
    const std::uint32_t stream = device.thread[row].index;
    if (!call_of[row].valid() && device.kind[row] == store::DeviceKind::kKernel &&
        first[stream] < kLongest && device.begin[row] < first[stream])
      ++ends[trace.threads[stream].rank].early;
  }
}

// Did launches that ran come after a lost one, in its process?
void check_trailing(const store::Trace& trace, const Links& links, EndsByRank& ends) {
  const auto& calls = trace.calls;
  using Process = std::pair<store::StringId, store::StringId>;  // rank label, pid
  std::map<Process, Nanos> last_run;                            // begin of the last launch that ran
  const auto process_of = [&](std::size_t thread) {
    return Process{trace.threads[thread].rank, trace.threads[thread].pid};
  };
  const auto each_thread = [&](auto&& visit) {
    for (std::size_t t = 0; t < links.calls.count(); ++t)
      for (std::uint32_t k = links.calls.start[t]; k < links.calls.start[t + 1]; ++k)
        visit(t, links.calls.rows[k]);
  };
  std::vector<Nanos> last(trace.threads.size(), -kLongest);  // the same by thread
  each_thread([&](std::size_t t, std::uint32_t call) {
    if (links.has_activity[call] != 0 && links.api_of(trace, CallRow{call}) == Api::kKernelLaunch)
      last[t] = std::max(last[t], calls.begin[call]);
  });
  for (std::size_t t = 0; t < last.size(); ++t) {
    const auto [at, is_new] = last_run.emplace(process_of(t), last[t]);
    if (!is_new) at->second = std::max(at->second, last[t]);
  }
  for (std::size_t t = 0; t < last.size(); ++t) last[t] = last_run[process_of(t)];
  each_thread([&](std::size_t t, std::uint32_t call) {
    if (links.lost[call] != 0 && (last[t] == -kLongest || calls.begin[call] <= last[t]))
      ends[trace.threads[t].rank].trailing = false;
  });
}

// The host runs ahead of the device, so the recording stops in front of the kernels of its last
// launches: a few, or as many as were waiting when it began. They are not lost.
void find_lost(const store::Trace& trace, Links& links) {
  links.lost.assign(trace.calls.size(), 0);
  EndsByRank ends = find_lost_calls(trace, links);
  const bool any =
      std::any_of(ends.begin(), ends.end(), [](const auto& end) { return end.second.lost > 0; });
  if (!any) return;
  check_trailing(trace, links, ends);
  count_early(trace, links.call_of, ends);
  for (std::size_t call = 0; call < trace.calls.size(); ++call) {
    if (links.lost[call] == 0) continue;
    const Ends& end = ends[trace.threads[trace.calls.thread[call].index].rank];
    const bool few = end.lost * 100 <= end.launches || end.lost <= end.early;
    if (end.trailing && few) links.lost[call] = 0;
  }
}

void note_skew(Run& run) {
  std::int64_t early = 0, kernels = 0;
  Nanos most = 0;
  for (const Activity& a : run.activities) {
    if (!a.call.valid()) continue;
    const Nanos launched = run.trace->calls.begin[a.call.index];
    if (a.begin >= launched) continue;
    ++early;
    kernels += run.groups[a.group.index].device_kind == store::DeviceKind::kKernel ? 1 : 0;
    most = std::max(most, launched - a.begin);
  }
  if (early == 0) return;
  const std::string which = kernels == early
                                ? counted(early, "kernel starts", "kernels start")
                                : counted(early, "activity starts", "activities start");
  add_note(run, "clock-skew", store::Severity::kWarning, early,
           which + " before their launch, by up to " + duration_text(most) +
               ": clock skew; no latency and no idle time is derived from these launches");
}

void note_collisions(Run& run, const Links& links) {
  if (links.unclear.empty()) return;
  std::int64_t unclear = 0;
  for (const Activity& a : run.activities) unclear += links.unclear[a.row.index];
  if (unclear > 0)
    add_note(run, "id-collision", store::Severity::kWarning, unclear,
             counted(unclear, "activity has", "activities have") +
                 " a correlation id that several launches share: linked to none of them");
}

}  // namespace

Status link_rows(const store::Trace& trace, Links& links) {
  links.api = read_apis(trace);
  links.calls = calls_by_thread(trace);
  links.processes = Processes(trace);
  links.has_activity.assign(trace.calls.size(), 0);
  links.call_of.assign(trace.device.size(), CallRow{});
  const IdTable index = index_correlations(trace, links);
  if (links.processes.shared())
    find_drivers(trace, index, links);
  else
    find_calls(trace, index, links);
  TRY([[maybe_unused]] const Ok separable, check_collisions(trace, links));
  for (const auto& [linked, twin] : links.twins)
    links.has_activity[twin] = links.has_activity[linked];
  find_lost(trace, links);
  return Ok{};
}

void link_activities(Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  for (Activity& a : run.activities) {
    a.call = links.call_of[a.row.index];
    if (a.call.valid())
      a.in_graph = links.api_of(trace, a.call) == Api::kGraphLaunch;
    else if (trace.device.kind[a.row.index] == store::DeviceKind::kKernel)
      ++run.kernels_without_launch;
    else if (trace.device.kind[a.row.index] == store::DeviceKind::kGraph)
      a.in_graph = trace.device.correlation[a.row.index] > 0;
  }
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call) {
    if (links.has_activity[call] != 0 || !of_run(run, CallRow{call})) continue;
    if (links.api_of(trace, CallRow{call}) == Api::kGraphLaunch)
      run.graphs_without_kernels.push_back(CallRow{call});
    else if (links.lost[call] != 0)
      run.launches_without_kernel.push_back(CallRow{call});
  }
  find_graphs_without_launch(run);
  note_collisions(run, links);
  note_skew(run);
}

}  // namespace culprit::run
