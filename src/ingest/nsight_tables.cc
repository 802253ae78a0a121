// The tables of an Nsight Systems export, one function each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "ingest/nsight_rows.h"
#include "ingest/nsight_text.h"

namespace culprit::ingest {
namespace {

using store::DeviceKind;
using store::StringId;

template <class Table>
void reserve(Table& table, std::size_t more) {
  std::apply([&](auto&... column) { (column.reserve(column.size() + more), ...); },
             table.columns());
}

// ENUM_NSYS_EVENT_CLASS: such a row repeats a call of another row, to lend it a backtrace.
constexpr std::int64_t kBacktraceClass = 67;

// Backtraces that stand in rows of their own go to the call with the same thread and correlation.
struct LentChain {
  store::ThreadId thread;
  std::int64_t correlation = 0, chain = 0;
};

std::uint64_t call_key(store::ThreadId thread, std::int64_t correlation) {
  return (std::uint64_t{thread.index} << 32) | static_cast<std::uint64_t>(correlation);
}

void lend_chains(const std::vector<LentChain>& lent, Import& in) {
  if (lent.empty()) return;
  std::unordered_map<std::uint64_t, std::int64_t> chain_of;
  for (const LentChain& each : lent)
    chain_of.emplace(call_key(each.thread, each.correlation), each.chain);
  const store::CallTable& calls = in.trace.calls;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    if (in.chains[row] >= 0 || calls.correlation[row] == store::kNoId) continue;
    const auto at = chain_of.find(call_key(calls.thread[row], calls.correlation[row]));
    if (at != chain_of.end()) in.chains[row] = at->second;
  }
}

// What all tables of device activities have.
enum DeviceColumn : std::size_t { kStart, kEnd, kDevice, kStream, kCorrelation, kPid, kOwn };

template <std::size_t N>
constexpr auto device_columns(const std::string_view (&own)[N]) {
  std::array<std::string_view, kOwn + N> columns{"start",    "end",           "deviceId",
                                                 "streamId", "correlationId", "globalPid"};
  for (std::size_t i = 0; i < N; ++i) columns[kOwn + i] = own[i];
  return columns;
}

void add_activity(Rows& rows, const Rows::Times& times, DeviceKind kind, StringId name,
                  Import& in) {
  store::DeviceTable& t = in.trace.device;
  const std::int32_t device = rows.small(kDevice, -1), stream = rows.small(kStream, -1);
  t.begin.push_back(times.begin);
  t.dur.push_back(times.dur);
  t.name.push_back(name);
  t.thread.push_back(in.places.stream(rows.integer(kPid), device, stream));
  t.device.push_back(device);
  t.stream.push_back(stream);
  t.correlation.push_back(rows.correlation(kCorrelation));
  t.external.push_back(store::kNoId);
  t.graph_node.push_back(store::kNoId);
  t.grid.push_back({});
  t.block.push_back({});
  t.bytes.push_back(-1);
  t.kind.push_back(kind);
  t.collective.push_back(0);
}

}  // namespace

void read_calls(Import& in) {
  enum : std::size_t { kBegin, kStop, kThread, kId, kName, kChain, kClass };
  constexpr std::string_view kColumns[] = {"start",  "end",         "globalTid", "correlationId",
                                           "nameId", "callchainId", "eventClass"};
  store::CallTable& t = in.trace.calls;
  const std::size_t expected = in.expected_rows(kCallTable);
  reserve(t, expected);
  in.chains.reserve(expected);
  std::vector<LentChain> lent;
  Rows rows(in, kCallTable, kColumns, kChain);
  while (rows.next()) {
    const auto times = rows.times(kBegin, kStop);
    if (!times) continue;
    const store::ThreadId thread = in.places.host(rows.integer(kThread));
    const std::int64_t correlation = rows.correlation(kId);
    const std::int64_t chain = rows.integer(kChain).value_or(-1);
    if (rows.integer(kClass) == kBacktraceClass) {
      if (correlation != store::kNoId && chain >= 0) lent.push_back({thread, correlation, chain});
      continue;
    }
    StringId name = rows.name(kName);
    if (!name.valid()) {
      rows.fault(RowFault::kBadString);
      name = in.trace.strings.intern("unnamed call");
    }
    t.begin.push_back(times->begin);
    t.dur.push_back(times->dur);
    t.name.push_back(in.trace.strings.intern(api_name(in.trace.strings[name])));
    t.thread.push_back(thread);
    t.correlation.push_back(correlation);
    t.external.push_back(store::kNoId);
    t.kernel.push_back(StringId(0));
    in.chains.push_back(chain);
  }
  lend_chains(lent, in);
}

void read_kernels(Import& in) {
  enum : std::size_t {
    kDemangled = kOwn,
    kGrid,
    kBlock = kGrid + 3,
    kShort = kBlock + 3,
    kMangled
  };
  constexpr auto kColumns = device_columns({"demangledName", "gridX", "gridY", "gridZ", "blockX",
                                            "blockY", "blockZ", "shortName", "mangledName"});
  store::DeviceTable& t = in.trace.device;
  reserve(t, in.expected_rows(kKernelTable));
  Rows rows(in, kKernelTable, kColumns, kShort);
  const auto dims = [&](std::size_t column) {
    return store::Dim3{rows.small(column, 0), rows.small(column + 1, 0), rows.small(column + 2, 0)};
  };
  while (rows.next()) {
    const auto times = rows.times(kStart, kEnd);
    if (!times) continue;
    StringId name = rows.name(kDemangled);
    if (!name.valid()) name = rows.name(kShort);
    if (!name.valid()) name = rows.name(kMangled);
    if (!name.valid()) {
      rows.fault(RowFault::kBadString);
      const auto id = rows.integer(kDemangled);
      name = in.trace.strings.intern(id ? fmt::format("kernel with name id {}", *id)
                                        : std::string("unnamed kernel"));
    }
    add_activity(rows, *times, DeviceKind::kKernel, name, in);
    t.grid.back() = dims(kGrid);
    t.block.back() = dims(kBlock);
  }
}

void read_copies(Import& in) {
  enum : std::size_t { kBytes = kOwn, kKind, kFrom, kTo, kFromDevice, kToDevice };
  constexpr auto kColumns =
      device_columns({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"});
  store::DeviceTable& t = in.trace.device;
  reserve(t, in.expected_rows(kCopyTable));
  Rows rows(in, kCopyTable, kColumns, kFromDevice);
  while (rows.next()) {
    const auto times = rows.times(kStart, kEnd);
    if (!times) continue;
    const auto from = rows.integer(kFromDevice), to = rows.integer(kToDevice);
    const std::string name =
        copy_name(rows.integer(kKind).value_or(-1), rows.integer(kFrom).value_or(-1),
                  rows.integer(kTo).value_or(-1), from && to && *from != *to);
    add_activity(rows, *times, DeviceKind::kMemcpy, in.trace.strings.intern(name), in);
    t.bytes.back() = std::max<std::int64_t>(rows.integer(kBytes).value_or(-1), -1);
  }
}

void read_sets(Import& in) {
  enum : std::size_t { kBytes = kOwn, kMemory };
  constexpr auto kColumns = device_columns({"bytes", "memKind"});
  store::DeviceTable& t = in.trace.device;
  reserve(t, in.expected_rows(kSetTable));
  Rows rows(in, kSetTable, kColumns, kMemory);
  while (rows.next()) {
    const auto times = rows.times(kStart, kEnd);
    if (!times) continue;
    const std::string name = set_name(rows.integer(kMemory).value_or(-1));
    add_activity(rows, *times, DeviceKind::kMemset, in.trace.strings.intern(name), in);
    t.bytes.back() = std::max<std::int64_t>(rows.integer(kBytes).value_or(-1), -1);
  }
}

// With --cuda-graph-trace=graph a replay is one row, and its kernels are in no table.
void read_graphs(Import& in) {
  enum : std::size_t { kGraph = kOwn };
  constexpr auto kColumns = device_columns({"graphId"});
  if (!in.database.has(kGraphTable)) return;
  store::DeviceTable& t = in.trace.device;
  const auto key = [&](std::size_t row) {
    return (std::uint64_t{in.places.process_of(t.thread[row])} << 32) |
           static_cast<std::uint64_t>(t.correlation[row]);
  };
  std::unordered_set<std::uint64_t> by_kernels;
  for (std::size_t row = 0; row < t.size(); ++row)
    if (t.correlation[row] != store::kNoId) by_kernels.insert(key(row));
  Rows rows(in, kGraphTable, kColumns, kGraph);
  while (rows.next()) {
    const auto times = rows.times(kStart, kEnd);
    if (!times) continue;
    const auto graph = rows.integer(kGraph);
    const std::string name =
        graph ? fmt::format("CUDA graph {}", *graph) : std::string("CUDA graph");
    add_activity(rows, *times, DeviceKind::kGraph, in.trace.strings.intern(name), in);
    if (t.correlation.back() == store::kNoId || by_kernels.count(key(t.size() - 1)) == 0) continue;
    std::apply([](auto&... column) { (column.pop_back(), ...); }, t.columns());
  }
}

void read_syncs(Import& in) {
  enum : std::size_t { kBegin, kStop, kOf, kLane, kProcess, kKind };
  constexpr std::string_view kColumns[] = {"start",    "end",       "deviceId",
                                           "streamId", "globalPid", "syncType"};
  constexpr std::int64_t kAllStreams = 0xffffffff;
  store::SyncTable& t = in.trace.syncs;
  reserve(t, in.expected_rows(kSyncTable));
  Rows rows(in, kSyncTable, kColumns, 0);
  while (rows.next()) {
    const auto times = rows.times(kBegin, kStop);
    if (!times) continue;
    const auto stream = rows.integer(kLane);
    t.begin.push_back(times->begin);
    t.dur.push_back(times->dur);
    t.name.push_back(in.trace.strings.intern(sync_name(rows.integer(kKind).value_or(0))));
    t.thread.push_back(in.places.stream(rows.integer(kProcess), rows.small(kOf, -1),
                                        stream && *stream != kAllStreams ? *stream : -1));
  }
}

void read_ranges(Import& in) {
  enum : std::size_t { kBegin, kStop, kThread, kText, kTextId, kType };
  constexpr std::string_view kColumns[] = {"start", "end",    "globalTid",
                                           "text",  "textId", "eventType"};
  constexpr std::int64_t kPushPop = 59, kStartEnd = 60;  // others: marks, domains, categories
  store::OpTable& ops = in.trace.ops;
  store::MarkTable& marks = in.trace.marks;
  std::vector<std::size_t> open_ops, open_marks;
  Rows rows(in, kRangeTable, kColumns, kText);
  while (rows.next()) {
    const auto type = rows.integer(kType);
    if (type && *type != kPushPop && *type != kStartEnd) {
      ++in.trace.info.other_events;
      continue;
    }
    const auto times = rows.times(kBegin, kStop, type.has_value());
    if (!times) continue;
    std::optional<std::string_view> text = rows.text(kText);
    const StringId named = text ? StringId{} : rows.name(kTextId);
    if (named.valid()) text = in.trace.strings[named];
    if (!text && !rows.absent(kTextId)) rows.fault(RowFault::kBadString);
    const RangeText range = read_range(text.value_or("unnamed range"));
    const StringId name = in.names.intern(range.name, kRangeTable, rows.rowid());
    const store::ThreadId thread = in.places.host(rows.integer(kThread));
    const auto common = [&](auto& table, std::vector<std::size_t>& open) {
      if (times->open) open.push_back(table.size());
      table.begin.push_back(times->begin);
      table.dur.push_back(times->dur);
      table.name.push_back(name);
      table.thread.push_back(thread);
    };
    if (range.is_operator) {
      common(ops, open_ops);
      ops.external.push_back(store::kNoId);
      ops.dims.push_back(in.names.intern(range.sizes, kRangeTable, rows.rowid()));
      ops.types.push_back(StringId(0));
    } else {
      common(marks, open_marks);
      marks.kind.push_back(store::MarkKind::kHost);
    }
  }
  const auto close = [&](auto& table, const std::vector<std::size_t>& open) {
    for (const std::size_t row : open)
      table.dur[row] = std::max<Nanos>(0, in.last_end - table.begin[row]);
  };
  close(ops, open_ops);
  close(marks, open_marks);
  const auto left_open = static_cast<std::int64_t>(open_ops.size() + open_marks.size());
  if (left_open > 0)
    in.trace.notes.add(
        {"open-range",
         store::Severity::kInfo,
         left_open,
         {},
         {},
         std::string(kRangeTable),
         "ranges that were still open when the recording ended count as ended there"});
}

}  // namespace culprit::ingest
