#include "ingest/rows.h"

#include <algorithm>
#include <optional>
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

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// torch_npu gives the device's tasks and the calls of its runtime no category: the first have a task
// type, both a connection id.
Kind kind_without_category(const RawEvent& event) {
  if (!event.has(Field::kTaskType))
    return event.has(Field::kConnection) ? Kind::kCall : Kind::kOther;
  const std::string_view type = event[Field::kTaskType];
  for (const std::string_view waits : {"WAIT", "RECORD", "NOTIFY", "EVENT", "WRITE_VALUE"})
    if (holds(type, waits)) return Kind::kSync;
  return holds(type, "MEMCPY") || holds(type, "SDMA") ? Kind::kMemcpy : Kind::kKernel;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// "[1, 2, 3]" to a Dim3; what is missing is 0. None: something else than whole numbers is in it. Grids fit 31 bits.
std::optional<store::Dim3> parse_dim3(std::string_view text) {
  store::Dim3 dims{};
  std::size_t at = 0;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      if (!in_number && dims[at] != 0) return std::nullopt;  // two numbers without a comma
      in_number = true;
      dims[at] = dims[at] < 100'000'000 ? dims[at] * 10 + (c - '0') : 0x7fffffff;
      continue;
    }
    in_number = false;
    if (c == ',') {
      if (++at == dims.size()) break;
    } else if (c != '[' && c != ']' && c != '"' && !is_space(c)) {
      return std::nullopt;
    }
  }
  return dims;
}

// Of a field's text: was it written as a string?
bool is_quoted(std::string_view text) { return text.data()[-1] == '"'; }

// A bare word that begins like a number and is none: 28>9224.
bool is_no_number(std::string_view text) {
  return !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) &&
         !parse_integer(text);
}

// "stream 7" (2021) and "7" give 7; anything else -1.
std::int32_t trailing_number(std::string_view text) {
  if (begins(text, "stream ")) text.remove_prefix(7);
  const auto v = parse_integer(text);
  return v && *v >= 0 && *v < 0x7fffffff ? static_cast<std::int32_t>(*v) : -1;
}

// Does the event end before the year 2116, and begin no more than 36 years before the trace's zero? Then no difference of two
// times leaves 64 bits.
bool is_time(Nanos begin, Nanos dur) {
  constexpr Nanos kLast = Nanos{1} << 62, kFirst = -(Nanos{1} << 60);
  return begin >= kFirst && dur <= kLast - std::max(begin, Nanos{0});
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

void append_places(const Batch& batch, const RowBuilder& builder, store::Places& places) {
  const auto add = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(places.device, batch.places.device);
  add(places.calls, batch.places.calls);
  add(places.ops, batch.places.ops);
  add(places.frames, batch.places.frames);
  add(places.marks, batch.places.marks);
  add(places.syncs, batch.places.syncs);
  for (store::OtherEvent other : batch.places.others) {
    if (other.thread.valid()) other.thread = builder.thread_to_trace[other.thread.index];
    places.others.push_back(other);
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
  events = commas = memory = flows = counters = metadata = others = autograd = 0;
  hip = false;
  unread.counts.clear();
  faults = {};
  for (auto* column :
       {&places.device, &places.calls, &places.ops, &places.frames, &places.marks, &places.syncs})
    column->clear();
  places.others.clear();
}

void Batch::fault(Fault kind, std::int64_t byte, std::int64_t count) {
  FaultCount& f = faults[static_cast<std::size_t>(kind)];
  if (f.count == 0) f.byte = byte, f.event = events;
  f.count += count;
}

void RowBuilder::add_bad(std::int64_t byte, Batch& batch) {
  batch.fault(Fault::kBadEvent, byte);
  ++batch.events;
}

void RowBuilder::add(const RawEvent& event, std::int64_t byte, Batch& batch) {
  if (event.twice != 0) batch.fault(Fault::kDuplicateKey, byte);
  if (event.bad_words != 0) batch.fault(Fault::kBadNumber, byte, event.bad_words);
  bad_string_ = event.repaired;
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
      place_other(event, store::OtherKind::kFlow, byte, batch);
      break;
    case 'M':
      ++batch.metadata;
      place_other(event, store::OtherKind::kMetadata, byte, batch);
      break;
    case 'C':
      ++batch.counters;
      place_other(event, store::OtherKind::kTimed, byte, batch);
      break;
    case 'i':
    case 'I':
      event.has(Field::kName) && event[Field::kName] == "[memory]" ? ++batch.memory
                                                                   : ++batch.others;
      place_other(event, store::OtherKind::kTimed, byte, batch);
      break;
    case '\0':
      batch.fault(Fault::kBadEvent, byte);
      break;
    default:
      ++batch.others;
      break;
  }
  if (bad_string_) batch.fault(Fault::kBadString, byte);
  ++batch.events;
}

void RowBuilder::add_complete(const RawEvent& event, std::int64_t byte, Batch& batch) {
  Kind kind =
      event.has(Field::kCategory) ? kind_of(event[Field::kCategory]) : kind_without_category(event);
  if (kind == Kind::kOther) {
    ++batch.others;
    place_other(event, store::OtherKind::kTimed, byte, batch);
    if (event.has(Field::kCategory)) batch.unread.add(event[Field::kCategory], 1);
    const std::string_view pid = event.has(Field::kPid) ? event[Field::kPid] : std::string_view{};
    if (pid == "CPU functions" || pid == "CUDA functions" || pid == "CPU Functions" ||
        pid == "CUDA Functions") {
      ++batch.autograd;
    }
    return;
  }
  if (!event.has(Field::kTs) || !event.has(Field::kDur) || !event.has(Field::kName)) {
    if (event.bad_words == 0) batch.fault(Fault::kBadEvent, byte);
    return;  // else it is counted as a bad number
  }
  const auto begin = parse_micros(event[Field::kTs]);
  auto dur = parse_micros(event[Field::kDur]);
  if (!begin || !dur || !is_time(*begin, *dur)) return batch.fault(Fault::kBadNumber, byte);
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
  const auto name = [&] { return text(event, Field::kName); };
  const auto common = [&](auto& table, StringId id) {
    table.begin.push_back(times.begin);
    table.dur.push_back(times.dur);
    table.name.push_back(id);
    table.thread.push_back(thread(event, batch, byte));
  };
  switch (kind) {
    case Kind::kFrame:
      common(t.frames, frame_name(event));
      t.frames.call_from.push_back(text(event, Field::kCallFrom));
      break;
    case Kind::kOp:
      common(t.ops, name());
      t.ops.external.push_back(id(event, Field::kExternal, batch, byte));
      t.ops.dims.push_back(text(event, Field::kDims));
      t.ops.types.push_back(text(event, Field::kTypes));
      break;
    case Kind::kCall:
      batch.hip |= begins(event[Field::kName], "hip");
      common(t.calls, name());
      t.calls.correlation.push_back(correlation(event, batch, byte));
      t.calls.external.push_back(id(event, Field::kExternal, batch, byte));
      t.calls.kernel.push_back(text(event, Field::kKernel));
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
  if (keep_places) place_row(kind, byte, batch);
}

void RowBuilder::place_row(Kind kind, std::int64_t byte, Batch& batch) {
  store::Places& places = batch.places;
  switch (kind) {
    case Kind::kFrame:
      return places.frames.push_back(byte);
    case Kind::kOp:
      return places.ops.push_back(byte);
    case Kind::kCall:
      return places.calls.push_back(byte);
    case Kind::kKernel:
    case Kind::kMemcpy:
    case Kind::kMemset:
      return places.device.push_back(byte);
    case Kind::kHostMark:
    case Kind::kDeviceMark:
      return places.marks.push_back(byte);
    case Kind::kSync:
      return places.syncs.push_back(byte);
    case Kind::kOther:
      return;
  }
}

void RowBuilder::place_other(const RawEvent& event, store::OtherKind kind, std::int64_t byte,
                             Batch& batch) {
  if (!keep_places) return;
  store::OtherEvent other{byte, 0, {}, kind};
  if (kind != store::OtherKind::kMetadata) {
    const auto at = event.has(Field::kTs) ? parse_micros(event[Field::kTs]) : std::nullopt;
    if (!at) return;
    other.at = *at;
  }
  if (kind == store::OtherKind::kFlow) other.thread = thread(event, batch, byte);
  batch.places.others.push_back(other);
}

void RowBuilder::add_device_columns(const RawEvent& event, Kind kind, std::int64_t byte,
                                    Batch& batch) {
  const auto number = [&](Field field, Field fallback) {
    if (event.has(field)) {
      if (is_no_number(event[field]) && !is_quoted(event[field]))
        batch.fault(Fault::kBadNumber, byte);
      return trailing_number(event[field]);
    }
    return event.has(fallback) ? trailing_number(event[fallback]) : -1;
  };
  const auto dim3 = [&](Field field) {
    if (!event.has(field)) return store::Dim3{};
    const auto dims = parse_dim3(event[field]);
    if (!dims) batch.fault(Fault::kBadNumber, byte);
    return dims.value_or(store::Dim3{});
  };
  store::DeviceTable& t = batch.tables.device;
  t.device.push_back(number(Field::kDevice, Field::kPid));
  t.stream.push_back(number(Field::kStream, Field::kTid));
  t.correlation.push_back(correlation(event, batch, byte));
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
  c.name = text(event, Field::kCollective);
  c.dtype = text(event, Field::kCollectiveDtype);
  c.group = text(event, Field::kGroup);
  c.ranks = text(event, Field::kGroupRanks);
  c.in_elements = id(event, Field::kInElements, batch, byte);
  c.out_elements = id(event, Field::kOutElements, batch, byte);
  c.group_size = id(event, Field::kGroupSize, batch, byte);
  c.sequence = id(event, Field::kSequence, batch, byte);
  batch.tables.collectives.push_back(c);
  return static_cast<std::uint32_t>(batch.tables.collectives.size());
}

std::int64_t RowBuilder::id(const RawEvent& event, Field field, Batch& batch, std::int64_t byte) {
  if (!event.has(field)) return store::kNoId;
  const auto value = parse_integer(event[field]);
  if (!value) batch.fault(Fault::kBadNumber, byte);
  return value.value_or(store::kNoId);
}

std::int64_t RowBuilder::correlation(const RawEvent& event, Batch& batch, std::int64_t byte) {
  const bool npu = !event.has(Field::kCorrelation);
  return id(event, npu ? Field::kConnection : Field::kCorrelation, batch, byte);
}

StringId RowBuilder::text(const RawEvent& event, Field field) {
  if (!event.has(field)) return StringId(0);
  const std::string_view raw = event[field];
  if (event.is_spread(field) && raw[0] == '[' && raw.find('\n') != std::string_view::npos) {
    compact(raw, scratch_);  // a list that the writer spread over lines
    return intern(scratch_);
  }
  if (!event.is_escaped(field)) return intern(raw);
  if (!unescape(event[field], scratch_)) bad_string_ = true;
  return intern(scratch_);
}

// Object addresses ("<built-in method to of Tensor object at 0x7f..>") would make each name unique
// and tell nothing: the profiler caches them per method, not per object.
StringId RowBuilder::frame_name(const RawEvent& event) {
  const std::string_view name = event[Field::kName];
  if (name.empty() || name[0] != '<' || event.is_escaped(Field::kName))
    return text(event, Field::kName);
  const std::size_t at = name.find(" at 0x");
  if (at == std::string_view::npos) return intern(name);
  std::size_t end = at + 6;
  while (end < name.size() && is_hex(name[end])) ++end;
  scratch_.assign(name.substr(0, at));
  scratch_.append(name.substr(end));
  return intern(scratch_);
}

StringId RowBuilder::intern(std::string_view raw) {
  const StringId id = strings_.intern(raw);
  if (strings_.size() == checked_ && clean_.empty()) return id;
  return clean_form(id);
}

StringId RowBuilder::clean_form(StringId id) {
  if (strings_.size() > checked_) {
    if (!is_clean(strings_[id])) {
      const StringId clean = strings_.intern(cleaned(strings_[id]));
      clean_.resize(strings_.size());
      clean_[id.index] = clean;
    }
    checked_ = strings_.size();
  }
  if (id.index >= clean_.size() || !clean_[id.index].valid()) return id;
  bad_string_ = true;
  return clean_[id.index];
}

ThreadId RowBuilder::thread(const RawEvent& event, Batch& batch, std::int64_t byte) {
  const std::string_view pid = event.has(Field::kPid) ? event[Field::kPid] : std::string_view{};
  const std::string_view tid = event.has(Field::kTid) ? event[Field::kTid] : std::string_view{};
  std::size_t h = pid.size() * 7 + tid.size();
  if (!pid.empty())
    h += std::size_t{5} * static_cast<unsigned char>(pid.back()) +
         static_cast<unsigned char>(pid[0]);
  if (!tid.empty()) h += std::size_t{3} * static_cast<unsigned char>(tid.back());
  CachedThread& cached = cache_[h % cache_.size()];
  if (!cached.id.valid() || cached.pid != pid || cached.tid != tid)
    remember_thread(cached, pid, tid);
  bad_string_ |= cached.unclean;
  if (cached.odd &&
      ((is_no_number(pid) && !is_quoted(pid)) || (is_no_number(tid) && !is_quoted(tid))))
    batch.fault(Fault::kBadNumber, byte);
  return cached.id;
}

void RowBuilder::remember_thread(CachedThread& cached, std::string_view pid, std::string_view tid) {
  const std::size_t label = begins(pid, "[") ? pid.find(']') : std::string_view::npos;
  const std::string_view rank =
      label == std::string_view::npos ? std::string_view{} : pid.substr(0, label + 1);
  const auto plain = [&](std::string_view raw) {
    return strings_.intern(is_clean(raw) ? std::string(raw) : cleaned(raw));
  };
  const store::Thread key{plain(pid), plain(tid), plain(rank)};
  checked_ = strings_.size();
  cached = {std::string(pid), std::string(tid), thread_ids_.id_of(key, threads_),
            is_no_number(pid) || is_no_number(tid), !is_clean(pid) || !is_clean(tid)};
}

void RowBuilder::publish(Batch& batch) {
  for (; published_strings_ < strings_.size(); ++published_strings_) {
    batch.new_strings.push_back(strings_[StringId(published_strings_)]);
  }
  batch.new_threads.assign(threads_.begin() + static_cast<std::ptrdiff_t>(published_threads_),
                           threads_.end());
  published_threads_ = threads_.size();
}

ThreadId ThreadIndex::id_of(const store::Thread& thread, std::vector<store::Thread>& threads) {
  const auto [at, is_new] = ids_.try_emplace(thread, threads.size());
  if (is_new) threads.push_back(thread);
  return at->second;
}

void append_names(const Batch& batch, RowBuilder& builder, ThreadIndex& threads,
                  store::Trace& trace) {
  for (const std::string_view text : batch.new_strings) {
    builder.string_to_trace.push_back(trace.strings.intern(text));
  }
  const auto string = [&](StringId local) { return builder.string_to_trace[local.index]; };
  for (const store::Thread& local : batch.new_threads) {
    const store::Thread thread{string(local.pid), string(local.tid), string(local.rank)};
    builder.thread_to_trace.push_back(threads.id_of(thread, trace.threads));
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
  if (builder.keep_places) append_places(batch, builder, trace.places);
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
  for (const auto& [category, events] : batch.unread.counts) info.unread.add(category, events);
  info.autograd_events += batch.autograd;
}

}  // namespace culprit::ingest
