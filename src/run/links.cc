// Links from the device to the host, by ids alone: times are used only to check an External id,
// since kernels may start before their launch in the file (clock skew).
#include <algorithm>

#include "run/chapters.h"
#include "run/id_table.h"

namespace culprit::run {
namespace {

using store::CallRow;
using store::OpRow;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// cudaLaunchKernelExC, cuLaunchKernelEx, hipExtModuleLaunchKernel, cudaGraphLaunch,
// hipMemcpyWithStream, ...: the vendors' names differ in prefix and suffix only.
Api api_of_name(std::string_view name) {
  if (contains(name, "StreamBeginCapture")) return Api::kBeginCapture;
  if (contains(name, "StreamEndCapture")) return Api::kEndCapture;
  if (contains(name, "GraphInstantiate")) return Api::kInstantiate;
  if (contains(name, "GraphLaunch")) return Api::kGraphLaunch;
  if (contains(name, "Launch") && (contains(name, "Kernel") || contains(name, "LaunchGrid")))
    return Api::kKernelLaunch;
  if (contains(name, "emcpy") || contains(name, "emset")) return Api::kCopyOrSet;
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
    const store::StringId rank = trace.threads[calls.thread[row].index].rank;
    std::uint32_t* known = index.insert(rank, calls.correlation[row], row);
    if (*known == row) continue;
    if (!starts_work(links.api_of(trace, CallRow{*known})))
      *known = row;
    else if (!starts_work(links.api_of(trace, CallRow{row})))
      continue;
    else if (one_inside_the_other(calls, *known, row))
      links.twins.emplace_back(*known, row);
    else
      links.colliding.push_back(*known);
  }
  return index;
}

// Calls of the activities of every device, by row; a launch of one kernel that gets several is of a
// colliding id as well.
std::vector<CallRow> find_calls(const store::Trace& trace, const IdTable& index, Links& links) {
  const auto& device = trace.device;
  std::vector<CallRow> call_of(device.size());
  std::vector<std::uint8_t> kernels(trace.calls.size(), 0);  // by call: 0, 1, or 2 for more
  for (std::size_t row = 0; row < device.size(); ++row) {
    if (device.correlation[row] == store::kNoId) continue;
    const std::uint32_t call =
        index.find(trace.threads[device.thread[row].index].rank, device.correlation[row]);
    if (call == IdTable::kNone) continue;
    call_of[row] = CallRow{call};
    links.has_activity[call] = 1;
    if (device.kind[row] != store::DeviceKind::kKernel || kernels[call] == 2) continue;
    if (++kernels[call] == 2 && links.api_of(trace, CallRow{call}) == Api::kKernelLaunch)
      links.colliding.push_back(call);
  }
  for (const auto& [linked, twin] : links.twins)
    links.has_activity[twin] = links.has_activity[linked];
  auto& colliding = links.colliding;
  std::sort(colliding.begin(), colliding.end());
  colliding.erase(std::unique(colliding.begin(), colliding.end()), colliding.end());
  return call_of;
}

// Colliding ids cannot be told apart: when they are many, the file holds several processes that
// nothing separates, and any link in it may be wrong.
Status check_collisions(Run& run, Links& links) {
  const store::Trace& trace = *run.trace;
  if (links.colliding.empty()) return Ok{};
  std::int64_t starting = 0;
  for (const store::StringId name : trace.calls.name)
    starting += starts_work(links.api[name.index]) ? 1 : 0;
  const auto colliding = static_cast<std::int64_t>(links.colliding.size());
  if (colliding > 1 && colliding * 100 > starting)
    return Error{Error::Code::kUnusable,
                 counted(colliding, "correlation id belongs", "correlation ids belong") +
                     " to several launches: ranks or processes were merged without a label that "
                     "separates them",
                 trace.info.path, "give the trace of each rank instead of the merged file",
                 "ranks-inseparable"};
  add_note(run, "id-collision", store::Severity::kWarning, colliding,
           counted(colliding, "correlation id is", "correlation ids are") +
               " shared by several launches; their kernels are linked to none");
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

// Launches while the process captures a graph run nothing, whatever thread makes them. A few launches
// at the very end are those that the recording stopped in front of.
void find_lost(const store::Trace& trace, Links& links) {
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
  links.lost.assign(calls.size(), 0);
  std::int64_t launches = 0, lost = 0;
  Nanos last_linked = std::numeric_limits<Nanos>::min(), first_lost = kLongest;
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    if (links.api_of(trace, CallRow{call}) != Api::kKernelLaunch) continue;
    if (links.has_activity[call] != 0) {
      ++launches;
      last_linked = std::max(last_linked, calls.begin[call]);
    } else if (!captured(call)) {
      ++launches;
      links.lost[call] = 1;
      ++lost;
      first_lost = std::min(first_lost, calls.begin[call]);
    }
  }
  if (lost > 0 && lost * 100 <= launches && first_lost > last_linked)
    links.lost.assign(calls.size(), 0);
}

void note_skew(Run& run) {
  std::int64_t early = 0;
  Nanos most = 0;
  for (const Activity& a : run.activities) {
    if (!a.call.valid()) continue;
    const Nanos launched = run.trace->calls.begin[a.call.index];
    if (a.begin >= launched) continue;
    ++early;
    most = std::max(most, launched - a.begin);
  }
  if (early > 0)
    add_note(run, "clock-skew", store::Severity::kWarning, early,
             counted(early, "kernel starts", "kernels start") + " before their launch, by up to " +
                 duration_text(most) + ": clock skew; no launch latency is derived from them");
}

}  // namespace

Status link_calls(Run& run, Links& links) {
  const store::Trace& trace = *run.trace;
  links.api = read_apis(trace);
  links.calls = calls_by_thread(trace);
  links.has_activity.assign(trace.calls.size(), 0);
  const IdTable index = index_correlations(trace, links);
  const std::vector<CallRow> call_of = find_calls(trace, index, links);
  TRY([[maybe_unused]] const Ok checked, check_collisions(run, links));

  const auto collides = [&](CallRow call) {
    return std::binary_search(links.colliding.begin(), links.colliding.end(), call.index);
  };
  for (Activity& a : run.activities) {
    const CallRow call = call_of[a.row.index];
    if (call.valid() && !collides(call)) {
      a.call = call;
      a.in_graph = links.api_of(trace, call) == Api::kGraphLaunch;
    } else if (trace.device.kind[a.row.index] == store::DeviceKind::kKernel) {
      ++run.kernels_without_launch;
    }
  }
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call)
    if (links.has_activity[call] == 0 && of_rank(run, CallRow{call}) &&
        links.api_of(trace, CallRow{call}) == Api::kGraphLaunch)
      run.graphs_without_kernels.push_back(CallRow{call});
  find_graphs_without_launch(run);
  find_lost(trace, links);
  note_skew(run);
  return Ok{};
}

namespace {

// Old traces give calls External ids of another space than the operators' own, so an id alone
// proves nothing: the operator must be open around the call on its thread, within the microsecond
// that old traces round to.
bool plausible(const store::Trace& trace, OpRow op, std::uint32_t call) {
  constexpr Nanos kRounding = 1'000;
  const auto& ops = trace.ops;
  const Nanos at = trace.calls.begin[call];
  return ops.thread[op.index] == trace.calls.thread[call] &&
         ops.begin[op.index] - kRounding <= at &&
         at <= end_of(ops.begin[op.index], ops.dur[op.index]) + kRounding;
}

// What has an External id that its operator by time does not have.
struct Pending {
  std::vector<std::uint32_t> calls, activities;
};

Pending find_pending(const Run& run) {
  const store::Trace& trace = *run.trace;
  Pending pending;
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call) {
    const std::int64_t id = trace.calls.external[call];
    const OpRow op = run.call_op[call];
    if (id > 0 && !(op.valid() && trace.ops.external[op.index] == id))
      pending.calls.push_back(call);
  }
  for (std::uint32_t i = 0; i < run.activities.size(); ++i) {
    const Activity& a = run.activities[i];
    if (!a.call.valid() && !a.in_graph && trace.device.external[a.row.index] > 0)
      pending.activities.push_back(i);
  }
  return pending;
}

// External id -> operator, for the ids asked for only: operators are many, open questions few.
IdTable index_operators(const Run& run, const Pending& pending) {
  constexpr std::uint32_t kAsked = IdTable::kNone - 1;
  const store::Trace& trace = *run.trace;
  IdTable index(pending.calls.size() + pending.activities.size());
  for (const auto call : pending.calls)
    index.insert(trace.threads[trace.calls.thread[call].index].rank, trace.calls.external[call],
                 kAsked);
  for (const auto i : pending.activities)
    index.insert(run.rank, trace.device.external[run.activities[i].row.index], kAsked);
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    const store::StringId rank = trace.threads[trace.ops.thread[op].index].rank;
    if (index.find(rank, trace.ops.external[op]) != kAsked) continue;
    *index.insert(rank, trace.ops.external[op], op) = op;
  }
  return index;
}

OpRow op_of(const IdTable& index, const store::Trace& trace, store::StringId rank,
            std::int64_t external) {
  const std::uint32_t op = index.find(rank, external);
  return op < trace.ops.size() ? OpRow{op} : OpRow{};
}

}  // namespace

void link_ops(Run& run) {
  const store::Trace& trace = *run.trace;
  const Pending pending = find_pending(run);
  if (!pending.calls.empty() || !pending.activities.empty()) {
    const IdTable index = index_operators(run, pending);
    for (const auto call : pending.calls) {
      const store::StringId rank = trace.threads[trace.calls.thread[call].index].rank;
      const OpRow op = op_of(index, trace, rank, trace.calls.external[call]);
      const bool same_thread = op.valid() && plausible(trace, op, call);
      if (same_thread || (op.valid() && !run.call_op[call].valid())) run.call_op[call] = op;
    }
    for (const auto i : pending.activities) {
      Activity& a = run.activities[i];
      const OpRow op = op_of(index, trace, run.rank, trace.device.external[a.row.index]);
      if (op.valid() && trace.ops.begin[op.index] <= a.begin) a.op = op;
    }
  }
  for (Activity& a : run.activities)
    if (a.call.valid() && !a.in_graph) a.op = run.call_op[a.call.index];
}

}  // namespace culprit::run
