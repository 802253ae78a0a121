// Tables of what was read.
#include "query/tables.h"

namespace culprit::query {
namespace {

using enum Type;
using Kind = EventRow::Table;

std::string_view kind_name(const Source& s, const EventRow& e) {
  switch (e.table) {
    case Kind::kDevice:
      switch (s.trace().device.kind[e.row]) {
        case store::DeviceKind::kKernel:
          return "kernel";
        case store::DeviceKind::kMemcpy:
          return "memcpy";
        case store::DeviceKind::kMemset:
          return "memset";
        case store::DeviceKind::kGraph:
          return "graph";
      }
      return "kernel";
    case Kind::kCalls:
      return "call";
    case Kind::kOps:
      return "op";
    case Kind::kFrames:
      return "frame";
    case Kind::kMarks:
      return s.trace().marks.kind[e.row] == store::MarkKind::kHost ? "mark" : "device-mark";
    case Kind::kSyncs:
      return "sync";
  }
  return "sync";
}

// A column that every table of the trace has.
template <class Get>
auto common(const Source& s, std::size_t id, Get get) {
  const EventRow e = s.event(id);
  const store::Trace& t = s.trace();
  switch (e.table) {
    case Kind::kDevice:
      return get(t.device, e.row);
    case Kind::kCalls:
      return get(t.calls, e.row);
    case Kind::kOps:
      return get(t.ops, e.row);
    case Kind::kFrames:
      return get(t.frames, e.row);
    case Kind::kMarks:
      return get(t.marks, e.row);
    case Kind::kSyncs:
      break;
  }
  return get(t.syncs, e.row);
}

store::Thread thread_of(const Source& s, std::size_t id) {
  return s.trace()
      .threads[common(s, id, [](const auto& t, std::size_t r) { return t.thread[r]; }).index];
}

// The device row of an event; none for host events.
std::optional<std::size_t> device_row(const Source& s, std::size_t id) {
  return id < s.range_of(Kind::kDevice).second ? std::optional(id) : std::nullopt;
}

void put_dim(const Source& s, std::size_t id, Cell c, bool grid, std::size_t axis) {
  const auto row = device_row(s, id);
  if (!row) return c.null();
  const store::Dim3& dim = grid ? s.trace().device.grid[*row] : s.trace().device.block[*row];
  dim == store::Dim3{} ? c.null() : c.integer(std::int64_t{dim[axis]});
}

void put_parent(const Source& s, std::size_t id, Cell c) {
  if (s.answer().run == nullptr) return c.null();
  const EventRow e = s.event(id);
  const run::Run& run = s.run();
  if (e.table == Kind::kFrames && e.row < run.frame_parent.size() &&
      run.frame_parent[e.row].valid())
    return c.integer(s.id_of(Kind::kFrames, run.frame_parent[e.row].index));
  store::OpRow op;
  if (e.table == Kind::kOps && e.row < run.op_parent.size()) op = run.op_parent[e.row];
  if (e.table == Kind::kCalls && e.row < run.call_op.size()) op = run.call_op[e.row];
  op.valid() ? c.integer(s.id_of(Kind::kOps, op.index)) : c.null();
}

void put_launch(const Source& s, std::size_t id, Cell c) {
  const auto row = device_row(s, id);
  const auto activity = row ? s.activity_of(*row) : std::nullopt;
  const store::CallRow call = activity ? s.run().activities[*activity].call : store::CallRow{};
  call.valid() ? c.integer(s.id_of(Kind::kCalls, call.index)) : c.null();
}

void put_step(const Source& s, std::size_t id, Cell c) {
  const auto row = device_row(s, id);
  const auto activity = row ? s.activity_of(*row) : std::nullopt;
  activity ? c.known(s.run().activities[*activity].step) : c.null();
}

void put_kernel(const Source& s, std::size_t id, Cell c) {
  const auto row = device_row(s, id);
  const auto activity = row ? s.activity_of(*row) : std::nullopt;
  activity ? c.index(s.kernel_of(s.run().activities[*activity].group)) : c.null();
}

constexpr Column kEventColumns[] = {
    {"id", kInteger, "number of the event, from 0",
     [](const Source&, std::size_t id, Cell c) { c.integer(static_cast<std::int64_t>(id)); }},
    {"kind", kText, "kernel memcpy memset graph call op frame mark device-mark sync",
     [](const Source& s, std::size_t id, Cell c) { c.text(kind_name(s, s.event(id))); }},
    {"name", kText, "as recorded",
     [](const Source& s, std::size_t id, Cell c) {
       const auto name = [](const auto& t, std::size_t r) { return t.name[r]; };
       c.text(s.trace().strings.or_empty(common(s, id, name)));
     }},
    {"begin_ns", kInteger, "since the trace's own zero",
     [](const Source& s, std::size_t id, Cell c) {
       c.integer(common(s, id, [](const auto& t, std::size_t r) { return t.begin[r]; }));
     }},
    {"dur_ns", kInteger, "as recorded",
     [](const Source& s, std::size_t id, Cell c) {
       c.integer(common(s, id, [](const auto& t, std::size_t r) { return t.dur[r]; }));
     }},
    {"end_ns", kInteger, "begin_ns + dur_ns",
     [](const Source& s, std::size_t id, Cell c) {
       c.integer(common(s, id, [](const auto& t, std::size_t r) { return t.begin[r] + t.dur[r]; }));
     }},
    {"pid", kText, "process, or device, as drawn",
     [](const Source& s, std::size_t id, Cell c) {
       c.text(s.trace().strings.or_empty(thread_of(s, id).pid));
     }},
    {"tid", kText, "thread, or stream, as drawn",
     [](const Source& s, std::size_t id, Cell c) {
       c.text(s.trace().strings.or_empty(thread_of(s, id).tid));
     }},
    {"device", kInteger, "of device events",
     [](const Source& s, std::size_t id, Cell c) {
       const auto row = device_row(s, id);
       row ? c.known(s.trace().device.device[*row]) : c.null();
     }},
    {"stream", kInteger, "of device events",
     [](const Source& s, std::size_t id, Cell c) {
       const auto row = device_row(s, id);
       row ? c.known(s.trace().device.stream[*row]) : c.null();
     }},
    {"correlation", kInteger, "of device events and calls: links a launch and its work",
     [](const Source& s, std::size_t id, Cell c) {
       const EventRow e = s.event(id);
       if (e.table == Kind::kDevice) return c.known(s.trace().device.correlation[e.row]);
       e.table == Kind::kCalls ? c.known(s.trace().calls.correlation[e.row]) : c.null();
     }},
    {"external_id", kInteger, "of device events, calls and operators",
     [](const Source& s, std::size_t id, Cell c) {
       const EventRow e = s.event(id);
       if (e.table == Kind::kDevice) return c.known(s.trace().device.external[e.row]);
       if (e.table == Kind::kCalls) return c.known(s.trace().calls.external[e.row]);
       e.table == Kind::kOps ? c.known(s.trace().ops.external[e.row]) : c.null();
     }},
    {"grid_x", kInteger, "blocks of a kernel",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, true, 0); }},
    {"grid_y", kInteger, "",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, true, 1); }},
    {"grid_z", kInteger, "",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, true, 2); }},
    {"block_x", kInteger, "threads of a block",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, false, 0); }},
    {"block_y", kInteger, "",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, false, 1); }},
    {"block_z", kInteger, "",
     [](const Source& s, std::size_t id, Cell c) { put_dim(s, id, c, false, 2); }},
    {"bytes", kInteger, "of copies and sets",
     [](const Source& s, std::size_t id, Cell c) {
       const auto row = device_row(s, id);
       row ? c.known(s.trace().device.bytes[*row]) : c.null();
     }},
    {"dims", kText, "of operators: Input Dims, JSON",
     [](const Source& s, std::size_t id, Cell c) {
       const EventRow e = s.event(id);
       if (e.table != Kind::kOps) return c.null();
       c.text(s.trace().strings.or_empty(s.trace().ops.dims[e.row]));
     }},
    {"types", kText, "of operators: Input type, JSON",
     [](const Source& s, std::size_t id, Cell c) {
       const EventRow e = s.event(id);
       if (e.table != Kind::kOps) return c.null();
       c.text(s.trace().strings.or_empty(s.trace().ops.types[e.row]));
     }},
    {"parent", kInteger, "events.id of the operator or frame around it", put_parent, Needs::kRun},
    {"launch", kInteger, "of device events: events.id of the call", put_launch, Needs::kRun},
    {"step", kInteger, "of device events: steps.step", put_step, Needs::kRun},
    {"kernel", kInteger, "of device events: kernels.kernel", put_kernel, Needs::kVerdict},
};

std::string_view text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr
             ? std::string_view()
             : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

Rows range(std::pair<std::size_t, std::size_t> both) { return {both.first, both.second}; }

Rows events_of_kind(const Source& s, sqlite3_value* value) {
  const std::string_view kind = text_of(value);
  for (const std::string_view of_device : {"kernel", "memcpy", "memset", "graph"})
    if (kind == of_device) return range(s.range_of(Kind::kDevice));
  if (kind == "call") return range(s.range_of(Kind::kCalls));
  if (kind == "op") return range(s.range_of(Kind::kOps));
  if (kind == "frame") return range(s.range_of(Kind::kFrames));
  if (kind == "mark" || kind == "device-mark") return range(s.range_of(Kind::kMarks));
  if (kind == "sync") return range(s.range_of(Kind::kSyncs));
  return {};
}

Rows event_with_id(const Source& s, sqlite3_value* value) {
  const std::int64_t id = sqlite3_value_int64(value);
  if (id < 0 || static_cast<std::size_t>(id) >= s.events()) return {};
  return {static_cast<std::size_t>(id), static_cast<std::size_t>(id) + 1};
}

// The activities of a step are in order of time: each tells its device row.
Rows events_of_step(const Source& s, sqlite3_value* value) {
  const std::int64_t step = sqlite3_value_int64(value);
  if (step < 0 || static_cast<std::size_t>(step) >= s.run().steps.size()) return {};
  const run::Step& found = s.run().steps[static_cast<std::size_t>(step)];
  return {static_cast<std::size_t>(found.first), static_cast<std::size_t>(found.last),
          [](const Source& source, std::size_t place) {
            return std::size_t{source.run().activities[place].row.index};
          }};
}

Rows device_events(const Source& s, sqlite3_value*) { return range(s.range_of(Kind::kDevice)); }

constexpr Key kEventKeys[] = {{"id", 1, event_with_id},
                              {"step", 10'000, events_of_step},
                              {"kind", 300'000, events_of_kind},
                              {"stream", 300'000, device_events},
                              {"device", 300'000, device_events}};

const store::Collective& collective(const Source& s, std::size_t row) {
  return s.trace().collectives[row];
}

constexpr Column kCollectiveColumns[] = {
    {"event", kInteger, "events.id of the kernel",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(static_cast<std::int64_t>(s.device_row_of(row)));
     }},
    {"name", kText, "allreduce, allgather, ...",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(s.trace().strings.or_empty(collective(s, row).name));
     }},
    {"dtype", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(s.trace().strings.or_empty(collective(s, row).dtype));
     }},
    {"group_name", kText, "of the process group",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(s.trace().strings.or_empty(collective(s, row).group));
     }},
    {"ranks", kText, "in it",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(s.trace().strings.or_empty(collective(s, row).ranks));
     }},
    {"group_size", kInteger, "ranks",
     [](const Source& s, std::size_t row, Cell c) { c.known(collective(s, row).group_size); }},
    {"in_elements", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.known(collective(s, row).in_elements); }},
    {"out_elements", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.known(collective(s, row).out_elements); }},
    {"sequence", kInteger, "within the group",
     [](const Source& s, std::size_t row, Cell c) { c.known(collective(s, row).sequence); }},
};

}  // namespace

const Table kEvents{"events",
                    "What was recorded, one row an event: on the device kernels, copies, sets and "
                    "whole graphs; on the host calls of the runtime, operators, Python frames and "
                    "marks.",
                    Needs::kTrace,
                    kEventColumns,
                    [](const Source& s) { return s.events(); },
                    kEventKeys,
                    1'000'000};

const Table kCollectives{"collectives",
                         "Metadata of communication kernels, where it was recorded.",
                         Needs::kTrace,
                         kCollectiveColumns,
                         [](const Source& s) { return s.trace().collectives.size(); },
                         {},
                         10'000};

}  // namespace culprit::query
