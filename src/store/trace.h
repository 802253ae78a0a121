// Trace: what a reader leaves behind: columns per kind of event, names interned, times in integer
// ns since the trace's own zero. Append while reading, read-only afterwards. Knows no file format.
// All columns of one table have the same length.
//
// The schema is the lists below: each table names its columns once, in columns(), and
// everything that treats all columns alike (append, remap, size) derives from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/id.h"
#include "store/notes.h"
#include "store/places.h"
#include "store/strings.h"

namespace culprit::store {

using ThreadId = Id<struct ThreadTag>;
using DeviceRow = Id<struct DeviceTag>;  // kernel, memcpy, memset
using CallRow = Id<struct CallTag>;      // runtime or driver call on the host
using OpRow = Id<struct OpTag>;          // framework operator on the host
using FrameRow = Id<struct FrameTag>;    // Python function on the host
using MarkRow = Id<struct MarkTag>;      // named range: step marks and others

inline constexpr std::int64_t kNoId = -1;  // a correlation or External id that is absent

// A row of the trace: a host thread (pid, tid) or a device stream. pid and tid are kept as text:
// both may be strings.
struct Thread {
  StringId pid, tid;
  StringId rank;  // "[TP00]" label in front of a merged file's pids; empty otherwise. Ids are
                  // unique only within one label.
  friend bool operator==(const Thread&, const Thread&) = default;
};

enum class DeviceKind : std::uint8_t {
  kKernel,
  kMemcpy,
  kMemset,
  kGraph  // a whole graph replay, whose kernels were not recorded
};
using Dim3 = std::array<std::int32_t, 3>;  // {0,0,0}: not recorded

// Correlation ids link a device row to its call; one belongs to one launch of its rank label.
// What keeps a device busy. Sync records and annotations are not here: they are no work.
struct DeviceTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId> name;
  std::vector<ThreadId> thread;  // the row it is drawn on: pid = device, tid = stream
  std::vector<std::int32_t> device,
      stream;  // args, else pid and tid where those are numbers, else -1
  std::vector<std::int64_t> correlation, external;
  std::vector<std::int64_t> graph_node;  // of the CUDA graph, in the order of capture; kNoId where
                                         // not recorded
  std::vector<Dim3> grid, block;
  std::vector<std::int64_t> bytes;  // copies and sets; -1 where not recorded
  std::vector<DeviceKind> kind;
  std::vector<std::uint32_t> collective;  // index + 1 into Trace::collectives; 0: none
  auto columns() {
    return std::tie(begin, dur, name, thread, device, stream, correlation, external, graph_node,
                    grid, block, bytes, kind, collective);
  }
  std::size_t size() const { return begin.size(); }
};

// cuda_runtime, cuda_driver and their kin: launches, copies, syncs.
struct CallTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId> name;
  std::vector<ThreadId> thread;
  std::vector<std::int64_t> correlation, external;
  std::vector<StringId> kernel;  // the kernel it launches, where the call tells (ROCm)
  auto columns() { return std::tie(begin, dur, name, thread, correlation, external, kernel); }
  std::size_t size() const { return begin.size(); }
};

struct OpTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId> name;
  std::vector<ThreadId> thread;
  std::vector<std::int64_t> external;
  std::vector<StringId> dims,
      types;  // the JSON text of "Input Dims" and "Input type"; empty: not recorded
  auto columns() { return std::tie(begin, dur, name, thread, external, dims, types); }
  std::size_t size() const { return begin.size(); }
};

struct FrameTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId>
      name;  // "path/file.py(LINE): func"; object addresses (0x7f..) are cut out before interning
  std::vector<ThreadId> thread;
  std::vector<StringId> call_from;  // "file.py:LINE" in the caller; empty: not recorded
  auto columns() { return std::tie(begin, dur, name, thread, call_from); }
  std::size_t size() const { return begin.size(); }
};

enum class MarkKind : std::uint8_t { kHost, kDevice };  // user_annotation, gpu_user_annotation
struct MarkTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId> name;
  std::vector<ThreadId> thread;
  std::vector<MarkKind> kind;
  auto columns() { return std::tie(begin, dur, name, thread, kind); }
  std::size_t size() const { return begin.size(); }
};

// Sync records that some versions draw on the device rows (cuda_sync).
struct SyncTable {
  std::vector<Nanos> begin, dur;
  std::vector<StringId> name;
  std::vector<ThreadId> thread;
  auto columns() { return std::tie(begin, dur, name, thread); }
  std::size_t size() const { return begin.size(); }
};

// NCCL metadata of a communication kernel, where recorded; counts are elements, -1: not recorded.
struct Collective {
  StringId name, dtype, group, ranks;
  std::int64_t in_elements = -1, out_elements = -1, group_size = -1;
  std::int64_t sequence = -1;  // within the group
};

struct Tables {
  DeviceTable device;
  CallTable calls;
  OpTable ops;
  FrameTable frames;
  MarkTable marks;
  SyncTable syncs;
  std::vector<Collective> collectives;
  std::vector<Thread> threads;
  auto tables() { return std::tie(device, calls, ops, frames, marks, syncs); }
};

struct DeviceProperties {
  std::int64_t id = 0;
  std::string name;               // may be empty on ROCm
  std::int64_t total_memory = 0;  // bytes; 0: not recorded, likewise below
  std::int64_t sms = 0;
  std::int64_t cc_major = 0, cc_minor = 0;
  double peak_gbps = 0;  // only from formats that record it
};

// Categories with the number of their events, in order of first appearance; of a file with very many
// categories, the first.
struct CategoryCounts {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  void add(std::string_view category, std::int64_t events);
};

// How to record what a trace lacks, in the words of its recorder.
struct Advice {
  std::string device =
      "record with ProfilerActivity.CUDA (activities CPU and GPU in SGLang and vLLM)";
  std::string shapes = "record_shapes is off by default";
  std::string stacks = "with_stack";
};

// What a file that was cut out of a recording says about itself (`culprit slice`): the steps in it, as
// they were found in the whole recording, and what they were cut from.
struct SliceStep {
  Nanos begin = 0, end = 0;              // device time
  std::string kind, mark;                // "decode"; the step's mark, empty where it had none
  std::int64_t batch = -1, tokens = -1;  // -1: unknown
};
struct Slice {
  std::string of;                // "step 17 of rank0.json.gz"
  std::string how;               // "marked", "graph-replay", ...
  std::vector<SliceStep> steps;  // in time order, each at least 1 ns long
  // Of the whole recording: medians of the time from launch to launch on a thread, and of the calls
  // that launch one activity. 0: unknown.
  Nanos launch_spacing = 0, launch_cost = 0;
};

struct TraceInfo {
  std::string path;             // as the user gave it
  std::string format;           // "kineto-json", "nsys-sqlite"
  std::int64_t file_bytes = 0;  // on disk
  std::int64_t text_bytes = 0;  // decompressed
  std::int64_t events = 0;      // elements of the event array, every phase, read or skipped
  Nanos base = 0;               // baseTimeNanoseconds: added only for display
  std::vector<DeviceProperties> devices;
  std::optional<std::int64_t> rank, world_size;
  Advice advice;
  std::optional<Slice> slice;                      // of a file that `culprit slice` wrote
  bool record_shapes = false, with_stack = false;  // as the header states
  bool rocm = false;                               // from version keys or API names
  std::int64_t memory_events = 0, flow_events = 0, counter_events = 0, metadata_events = 0,
               other_events = 0;
  CategoryCounts unread;  // complete events of categories that are not read
  std::int64_t autograd_events =
      0;  // of the export that torch.autograd.profiler wrote before Kineto
};

struct Trace : Tables {
  Strings strings;
  Places places;  // empty unless asked for
  TraceInfo info;
  Notes notes;
};

}  // namespace culprit::store
