#include "ingest/rows.h"

#include <algorithm>
#include <type_traits>

#include "ingest/number.h"
#include "ingest/text.h"

namespace culprit::ingest {
namespace {

using store::DeviceKind;
using store::MarkKind;
using store::StringId;
using store::ThreadId;

using Kind = RowBuilder::Kind;

struct Category {
  std::string_view name;
  Kind kind;
};
constexpr Category kCategories[] = {
    {"python_function", Kind::kFrame},
    {"cpu_op", Kind::kOp},
    {"cuda_runtime", Kind::kCall},
    {"kernel", Kind::kKernel},
    {"cuda_driver", Kind::kCall},
    {"gpu_memcpy", Kind::kMemcpy},
    {"gpu_memset", Kind::kMemset},
    {"user_annotation", Kind::kHostMark},
    {"gpu_user_annotation", Kind::kDeviceMark},
    {"cuda_sync", Kind::kSync},
    {"Operator", Kind::kOp},
    {"Runtime", Kind::kCall},
    {"Kernel", Kind::kKernel},
    {"Memcpy", Kind::kMemcpy},
    {"Memset", Kind::kMemset},
    {"hip_runtime", Kind::kCall},
    {"xpu_runtime", Kind::kCall},
    {"xpu_driver", Kind::kCall},
    {"mtia_runtime", Kind::kCall},
    {"glow_runtime", Kind::kCall},
    {"privateuse1_runtime", Kind::kCall},
    {"privateuse1_driver", Kind::kCall},
    {"hpu_op", Kind::kOp},
    {"xpu_sync", Kind::kSync},
};

Kind kind_of(std::string_view category) {
  for (const Category& c : kCategories) {
    if (c.name == category) return c.kind;
  }
  return Kind::kOther;
}

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// "[1, 2, 3]" to a Dim3; what is missing or no number is 0. Grids fit 31 bits.
store::Dim3 parse_dim3(std::string_view text) {
  store::Dim3 dims{};
  std::size_t at = 0;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      if (dims[at] < 100'000'000)
        dims[at] = dims[at] * 10 + (c - '0');
      else
        dims[at] = 0x7fffffff;
    } else if (c == ',' && ++at == dims.size()) {
      break;
    }
  }
  return dims;
}

// "stream 7" (2021) and "7" give 7; anything else -1.
std::int32_t trailing_number(std::string_view text) {
  if (begins(text, "stream ")) text.remove_prefix(7);
  const auto v = parse_integer(text);
  return v && *v >= 0 && *v < 0x7fffffff ? static_cast<std::int32_t>(*v) : -1;
}

// JSON text without the white space between its tokens.
void compact(std::string_view json, std::string& out) {
  out.clear();
  bool quoted = false;
  for (const char c : json) {
    if (c == '"') quoted = !quoted;
    if (quoted || !is_space(c)) out.push_back(c);
  }
}

}  // namespace

void Batch::clear() {
  std::apply(
      [](auto&... table) {
        ((std::apply([](auto&... column) { (column.clear(), ...); }, table.columns())), ...);
      },
      tables.tables());
  tables.collectives.clear();
  new_strings.clear();
  new_threads.clear();
  events = memory = flows = counters = metadata = others = autograd = 0;
  hip = false;
  faults = {};
}

void Batch::fault(Fault kind, std::int64_t byte) {
  FaultCount& f = faults[static_cast<std::size_t>(kind)];
  if (f.count++ == 0) f.byte = byte, f.event = events;
}

void RowBuilder::add_bad(std::int64_t byte, Batch& batch) {
  batch.fault(Fault::kBadEvent, byte);
  ++batch.events;
}

void RowBuilder::add(const RawEvent& event, std::int64_t byte, Batch& batch) {
  if (event.duplicate_key) batch.fault(Fault::kDuplicateKey, byte);
  if (event.bad_word) batch.fault(Fault::kBadNumber, byte);
  if (event.repaired) batch.fault(Fault::kBadString, byte);
  const std::string_view phase =
      event.has(Field::kPhase) ? event[Field::kPhase] : std::string_view{};
  switch (phase.size() == 1 ? phase[0] : '\0') {
    case 'X':
      add_complete(event, byte, batch);
      break;
    case 's':
    case 't':
    case 'f':
      ++batch.flows;
      break;
    case 'M':
      ++batch.metadata;
      break;
    case 'C':
      ++batch.counters;
      break;
    case 'i':
    case 'I':
      event.has(Field::kName) && event[Field::kName] == "[memory]" ? ++batch.memory
                                                                   : ++batch.others;
      break;
    case '\0':
      batch.fault(Fault::kBadEvent, byte);
      break;
    default:
      ++batch.others;
      break;
  }
  ++batch.events;
}

void RowBuilder::add_complete(const RawEvent& event, std::int64_t byte, Batch& batch) {
  Kind kind = event.has(Field::kCategory) ? kind_of(event[Field::kCategory]) : Kind::kOther;
  if (kind == Kind::kOther) {
    ++batch.others;
    const std::string_view pid = event.has(Field::kPid) ? event[Field::kPid] : std::string_view{};
    if (pid == "CPU functions" || pid == "CUDA functions" || pid == "CPU Functions" ||
        pid == "CUDA Functions") {
      ++batch.autograd;
    }
    return;
  }
  if (!event.has(Field::kTs) || !event.has(Field::kDur) || !event.has(Field::kName)) {
    return batch.fault(event.bad_word ? Fault::kBadNumber : Fault::kBadEvent, byte);
  }
  const auto begin = parse_micros(event[Field::kTs]);
  auto dur = parse_micros(event[Field::kDur]);
  if (!begin || !dur) return batch.fault(Fault::kBadNumber, byte);
  if (*dur < 0) {
    batch.fault(Fault::kNegativeDuration, byte);
    dur = 0;
  }
  if (kind == Kind::kOp && begins(event[Field::kName], "ProfilerStep#"))
    kind = Kind::kHostMark;  // as written in 2021
  add_row(event, kind, {*begin, *dur}, byte, batch);
}

void RowBuilder::add_row(const RawEvent& event, Kind kind, Times times, std::int64_t byte,
                         Batch& batch) {
  store::Tables& t = batch.tables;
  const auto name = [&] { return text(event, Field::kName, batch, byte); };
  const auto common = [&](auto& table, StringId id) {
    table.begin.push_back(times.begin);
    table.dur.push_back(times.dur);
    table.name.push_back(id);
    table.thread.push_back(thread(event));
  };
  switch (kind) {
    case Kind::kFrame:
      common(t.frames, frame_name(event, batch, byte));
      t.frames.call_from.push_back(text(event, Field::kCallFrom, batch, byte));
      break;
    case Kind::kOp:
      common(t.ops, name());
      t.ops.external.push_back(id(event, Field::kExternal, batch, byte));
      t.ops.dims.push_back(text(event, Field::kDims, batch, byte));
      t.ops.types.push_back(text(event, Field::kTypes, batch, byte));
      break;
    case Kind::kCall:
      batch.hip |= begins(event[Field::kName], "hip");
      common(t.calls, name());
      t.calls.correlation.push_back(id(event, Field::kCorrelation, batch, byte));
      t.calls.external.push_back(id(event, Field::kExternal, batch, byte));
      t.calls.kernel.push_back(text(event, Field::kKernel, batch, byte));
      break;
    case Kind::kKernel:
    case Kind::kMemcpy:
    case Kind::kMemset:
      common(t.device, name());
      add_device_columns(event, kind, byte, batch);
      break;
    case Kind::kHostMark:
    case Kind::kDeviceMark:
      common(t.marks, name());
      t.marks.kind.push_back(kind == Kind::kHostMark ? MarkKind::kHost : MarkKind::kDevice);
      break;
    case Kind::kSync:
      common(t.syncs, name());
      break;
    case Kind::kOther:
      break;
  }
}

void RowBuilder::add_device_columns(const RawEvent& event, Kind kind, std::int64_t byte,
                                    Batch& batch) {
  const auto number = [&](Field field, Field fallback) {
    if (event.has(field)) return trailing_number(event[field]);
    return event.has(fallback) ? trailing_number(event[fallback]) : -1;
  };
  const auto dim3 = [&](Field field) {
    return event.has(field) ? parse_dim3(event[field]) : store::Dim3{};
  };
  store::DeviceTable& t = batch.tables.device;
  t.device.push_back(number(Field::kDevice, Field::kPid));
  t.stream.push_back(number(Field::kStream, Field::kTid));
  t.correlation.push_back(id(event, Field::kCorrelation, batch, byte));
  t.external.push_back(id(event, Field::kExternal, batch, byte));
  t.graph_node.push_back(id(event, Field::kGraphNode, batch, byte));
  t.grid.push_back(dim3(Field::kGrid));
  t.block.push_back(dim3(Field::kBlock));
  t.bytes.push_back(id(event, Field::kBytes, batch, byte));
  t.kind.push_back(kind == Kind::kKernel   ? DeviceKind::kKernel
                   : kind == Kind::kMemcpy ? DeviceKind::kMemcpy
                                           : DeviceKind::kMemset);
  t.collective.push_back(event.has(Field::kCollective) ? add_collective(event, byte, batch) : 0);
}

std::uint32_t RowBuilder::add_collective(const RawEvent& event, std::int64_t byte, Batch& batch) {
  store::Collective c;
  c.name = text(event, Field::kCollective, batch, byte);
  c.dtype = text(event, Field::kCollectiveDtype, batch, byte);
  c.group = text(event, Field::kGroup, batch, byte);
  c.ranks = text(event, Field::kGroupRanks, batch, byte);
  c.in_elements = id(event, Field::kInElements, batch, byte);
  c.out_elements = id(event, Field::kOutElements, batch, byte);
  c.group_size = id(event, Field::kGroupSize, batch, byte);
  batch.tables.collectives.push_back(c);
  return static_cast<std::uint32_t>(batch.tables.collectives.size());
}

std::int64_t RowBuilder::id(const RawEvent& event, Field field, Batch& batch, std::int64_t byte) {
  if (!event.has(field)) return store::kNoId;
  const auto value = parse_integer(event[field]);
  if (!value) batch.fault(Fault::kBadNumber, byte);
  return value.value_or(store::kNoId);
}

StringId RowBuilder::text(const RawEvent& event, Field field, Batch& batch, std::int64_t byte) {
  if (!event.has(field)) return StringId(0);
  const std::string_view raw = event[field];
  if (!raw.empty() && raw[0] == '[' && raw.find('\n') != std::string_view::npos) {
    compact(raw, scratch_);  // a list that the writer spread over lines
    return intern(scratch_, batch, byte);
  }
  if (!event.is_escaped(field)) return intern(raw, batch, byte);
  if (!unescape(event[field], scratch_)) batch.fault(Fault::kBadString, byte);
  return intern(scratch_, batch, byte);
}

// Object addresses ("<built-in method to of Tensor object at 0x7f..>") would make each name unique
// and tell nothing: the profiler caches them per method, not per object.
StringId RowBuilder::frame_name(const RawEvent& event, Batch& batch, std::int64_t byte) {
  const std::string_view name = event[Field::kName];
  if (name.empty() || name[0] != '<' || event.is_escaped(Field::kName))
    return text(event, Field::kName, batch, byte);
  const std::size_t at = name.find(" at 0x");
  if (at == std::string_view::npos) return intern(name, batch, byte);
  std::size_t end = at + 6;
  while (end < name.size() && is_hex(name[end])) ++end;
  scratch_.assign(name.substr(0, at));
  scratch_.append(name.substr(end));
  return intern(scratch_, batch, byte);
}

StringId RowBuilder::intern(std::string_view raw, Batch& batch, std::int64_t byte) {
  const StringId id = strings_.intern(raw);
  if (strings_.size() > checked_) {
    checked_ = strings_.size();
    if (!is_clean(strings_[id])) {
      const StringId clean = strings_.intern(cleaned(raw));
      clean_.resize(strings_.size());
      clean_[id.index] = clean;
      checked_ = strings_.size();
    }
  }
  if (id.index >= clean_.size() || !clean_[id.index].valid()) return id;
  batch.fault(Fault::kBadString, byte);
  return clean_[id.index];
}

ThreadId RowBuilder::thread(const RawEvent& event) {
  const std::string_view pid = event.has(Field::kPid) ? event[Field::kPid] : std::string_view{};
  const std::string_view tid = event.has(Field::kTid) ? event[Field::kTid] : std::string_view{};
  std::size_t h = pid.size() * 7 + tid.size();
  if (!pid.empty())
    h += std::size_t{5} * static_cast<unsigned char>(pid.back()) +
         static_cast<unsigned char>(pid[0]);
  if (!tid.empty()) h += std::size_t{3} * static_cast<unsigned char>(tid.back());
  CachedThread& cached = cache_[h % cache_.size()];
  if (cached.id.valid() && cached.pid == pid && cached.tid == tid) return cached.id;

  const std::size_t label = begins(pid, "[") ? pid.find(']') : std::string_view::npos;
  const std::string_view rank =
      label == std::string_view::npos ? std::string_view{} : pid.substr(0, label + 1);
  const auto plain = [&](std::string_view raw) {
    return strings_.intern(is_clean(raw) ? std::string(raw) : cleaned(raw));
  };
  const store::Thread key{plain(pid), plain(tid), plain(rank)};
  checked_ = strings_.size();
  auto found = std::find(threads_.begin(), threads_.end(), key);
  if (found == threads_.end()) found = threads_.insert(found, key);
  cached = {std::string(pid), std::string(tid),
            ThreadId(static_cast<std::size_t>(found - threads_.begin()))};
  return cached.id;
}

void RowBuilder::publish(Batch& batch) {
  for (; published_strings_ < strings_.size(); ++published_strings_) {
    batch.new_strings.push_back(strings_[StringId(published_strings_)]);
  }
  batch.new_threads.assign(threads_.begin() + static_cast<std::ptrdiff_t>(published_threads_),
                           threads_.end());
  published_threads_ = threads_.size();
}

void append_names(const Batch& batch, RowBuilder& builder, store::Trace& trace) {
  for (const std::string_view text : batch.new_strings) {
    builder.string_to_trace.push_back(trace.strings.intern(text));
  }
  const auto string = [&](StringId local) { return builder.string_to_trace[local.index]; };
  for (const store::Thread& local : batch.new_threads) {
    const store::Thread thread{string(local.pid), string(local.tid), string(local.rank)};
    auto found = std::find(trace.threads.begin(), trace.threads.end(), thread);
    if (found == trace.threads.end()) found = trace.threads.insert(found, thread);
    builder.thread_to_trace.push_back(
        ThreadId(static_cast<std::size_t>(found - trace.threads.begin())));
  }
}

void append(Batch& batch, RowBuilder& builder, store::Trace& trace,
            std::array<FaultCount, kFaultCount>& faults) {
  const auto string = [&](StringId local) { return builder.string_to_trace[local.index]; };
  const auto column = [&](auto& to, const auto& from) {
    using Value = typename std::decay_t<decltype(to)>::value_type;
    const std::size_t old = to.size();
    to.insert(to.end(), from.begin(), from.end());
    if constexpr (std::is_same_v<Value, StringId>) {
      for (std::size_t i = old; i < to.size(); ++i) to[i] = string(to[i]);
    } else if constexpr (std::is_same_v<Value, ThreadId>) {
      for (std::size_t i = old; i < to.size(); ++i) to[i] = builder.thread_to_trace[to[i].index];
    }
  };
  const std::size_t devices_before = trace.device.size();
  const auto collectives_before = static_cast<std::uint32_t>(trace.collectives.size());
  const auto append_table = [&](auto& to, auto& from) {
    auto to_columns = to.columns();
    auto from_columns = from.columns();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (column(std::get<I>(to_columns), std::get<I>(from_columns)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(to_columns)>>{});
  };
  store::Tables& tables = batch.tables;
  append_table(trace.device, tables.device);
  append_table(trace.calls, tables.calls);
  append_table(trace.ops, tables.ops);
  append_table(trace.frames, tables.frames);
  append_table(trace.marks, tables.marks);
  append_table(trace.syncs, tables.syncs);
  for (std::size_t i = devices_before; i < trace.device.size() && collectives_before > 0; ++i) {
    if (trace.device.collective[i] != 0) trace.device.collective[i] += collectives_before;
  }
  for (store::Collective c : batch.tables.collectives) {
    c.name = string(c.name), c.dtype = string(c.dtype), c.group = string(c.group),
    c.ranks = string(c.ranks);
    trace.collectives.push_back(c);
  }
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    if (batch.faults[i].count == 0) continue;
    if (faults[i].count == 0)
      faults[i] = {0, batch.faults[i].byte, batch.faults[i].event + trace.info.events};
    faults[i].count += batch.faults[i].count;
  }
  store::TraceInfo& info = trace.info;
  info.events += batch.events;
  info.memory_events += batch.memory;
  info.flow_events += batch.flows;
  info.counter_events += batch.counters;
  info.metadata_events += batch.metadata;
  info.other_events += batch.others;
  info.rocm |= batch.hip;
  info.autograd_events += batch.autograd;
}

}  // namespace culprit::ingest
