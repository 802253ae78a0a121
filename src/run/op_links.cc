// From calls and activities to operators by External id, where time does not tell.
#include "run/chapters.h"
#include "run/id_table.h"

namespace culprit::run {
namespace {

using store::OpRow;

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
IdTable index_operators(const Run& run, const Links& links, const Pending& pending) {
  constexpr std::uint32_t kAsked = IdTable::kNone - 1;
  const store::Trace& trace = *run.trace;
  IdTable index(pending.calls.size() + pending.activities.size());
  for (const auto call : pending.calls)
    index.insert(links.processes.of(trace.calls.thread[call]), trace.calls.external[call], kAsked);
  for (const auto i : pending.activities)
    index.insert(links.host_of(trace, run.activities[i].row),
                 trace.device.external[run.activities[i].row.index], kAsked);
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    const ProcessId process = links.processes.of(trace.ops.thread[op]);
    if (index.find(process, trace.ops.external[op]) != kAsked) continue;
    *index.insert(process, trace.ops.external[op], op) = op;
  }
  return index;
}

OpRow op_of(const IdTable& index, const store::Trace& trace, ProcessId process,
            std::int64_t external) {
  const std::uint32_t op = index.find(process, external);
  return op < trace.ops.size() ? OpRow{op} : OpRow{};
}

}  // namespace

void link_ops(Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  const Pending pending = find_pending(run);
  if (!pending.calls.empty() || !pending.activities.empty()) {
    const IdTable index = index_operators(run, links, pending);
    for (const auto call : pending.calls) {
      const ProcessId process = links.processes.of(trace.calls.thread[call]);
      const OpRow op = op_of(index, trace, process, trace.calls.external[call]);
      const bool same_thread = op.valid() && plausible(trace, op, call);
      if (same_thread || (op.valid() && !run.call_op[call].valid())) run.call_op[call] = op;
    }
    for (const auto i : pending.activities) {
      Activity& a = run.activities[i];
      const OpRow op =
          op_of(index, trace, links.host_of(trace, a.row), trace.device.external[a.row.index]);
      if (op.valid() && trace.ops.begin[op.index] <= a.begin) a.op = op;
    }
  }
  for (Activity& a : run.activities)
    if (a.call.valid() && !a.in_graph) a.op = run.call_op[a.call.index];
}

}  // namespace culprit::run
