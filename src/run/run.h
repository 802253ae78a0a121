// Run: the trace as an engineer thinks of it: device activities in time order, each with the call
// that launched it, the operator and the Python line behind that call, its kind, its kernel group,
// its step; the steps; the layers. Built once (O(n log n) at worst, O(n) on traces in time order),
// then read-only. `build` fails only where no step and no device activity can be had; everything
// else becomes a note.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "known/gpus.h"
#include "known/kernel_name.h"
#include "run/script.h"
#include "store/spans.h"
#include "store/trace.h"

namespace culprit::run {

using GroupId = Id<struct GroupTag>;
using StepIndex = std::int32_t;  // index into Run::steps; -1: outside every step
using ActivityId = Id<struct ActivityTag>;

// One kernel, copy or set on the device, in order of begin time (ties: trace order). Aligned
// vectors would be smaller; rows are read together, so this is one struct of 48 bytes.
struct Activity {
  Nanos begin = 0,
        end = 0;  // end is clipped where the recorded duration is impossible (late timestamps)
  store::DeviceRow row;  // in the trace
  GroupId group;
  store::CallRow call;  // the launch; invalid: not in the file
  store::OpRow op;  // innermost operator around the launch; invalid: none recorded (graph replays)
  StepIndex step = -1;
  known::Owner kind = known::Owner::kOtherKernel;
  bool in_graph = false;  // launched by a graph launch
};

// All activities with the same name, grid and block: what a kernel table shows as one row.
struct Group {
  store::StringId name;
  store::DeviceKind device_kind = store::DeviceKind::kKernel;
  store::Dim3 grid{}, block{};
  known::Owner kind = known::Owner::kOtherKernel;
  known::KernelInfo info;       // decoded name (kernels only)
  std::int64_t activities = 0;  // in the whole trace
  ActivityId first;
  std::int64_t blocks() const;  // of the grid; 0: not recorded; hostile grids stop at 2^62
};

enum class StepKind : std::uint8_t {
  kUnknown,
  kDecode,
  kPrefill,
  kMixed,
  kDraft,
  kVerify,
  kTraining,
  kIdle
};
std::string_view step_kind_name(StepKind);
enum class StepsHow : std::uint8_t { kMarked, kGraphReplay, kRepetition, kWholeTrace };
std::string_view steps_how_name(StepsHow);

struct Step {
  Nanos begin = 0, end = 0;  // device time, by the contract's definition
  StepKind kind = StepKind::kUnknown;
  std::optional<std::int64_t> batch, tokens;
  std::string mark;  // "step[DECODE bs=32]"; empty when found without a mark
  std::int64_t first = 0,
               last = 0;     // activities[first, last): those that begin inside [begin, end)
  bool used = false;         // counts in the means
  std::string why_excluded;  // "partial", "outlier", "incomplete", "other-kind", "other-batch",
                             // "not-selected" (by --steps); empty when used
  Nanos length() const { return end - begin; }
};

struct Layers {
  std::optional<std::int64_t> count;
  std::string how;  // "call-counts", "sequence", "config"; empty: unknown
  std::optional<std::int64_t> first_dense;
  std::vector<Nanos>
      ns;  // kernel time of each layer, mean of the used steps; its index is inferred
           // from the order of the kernels; empty where they do not repeat in order
};

// A place in the user's code. exact: `line` is the line that made the call; else the function's
// first line.
struct Source {
  std::string file;
  std::int64_t line = 0;
  std::string function;
  bool exact = false;
  std::string via;  // innermost C call, "Tensor.to"; may be empty
  friend bool operator==(const Source&, const Source&) = default;
};

// A device with activities in the file; ids are unique only within a rank label and a process.
struct Device {
  store::StringId rank;     // "[TP00]" of a merged file; else the empty string
  store::StringId process;  // pid of the host process where several share the label; else empty
  std::int32_t id = 0;
  std::int64_t activities = 0;
  Nanos kernel_time = 0;  // sum of recorded durations
};
// "device 0", "[TP01] device 0", "device 1 of process 4002".
std::string device_label(const store::Trace& trace, const Device& device);

struct Run;

// A kernel of a graph replay has no operator and no frame of its own. What the capture of the graph,
// or an eager run of the same code, recorded at the same place is lent to it (mapping.h).
struct Loan {
  store::CallRow call;       // of the lender's trace; invalid: nothing is lent
  std::uint32_t lender = 0;  // index into Run::lenders
  bool shapes = false;       // the dims hold too: recorded at the same batch
};

// What one lender was used for.
struct Lending {
  std::string path, found;  // found: "flag", "argument", "beside", "same trace"
  std::string script;       // "capture_32_DECODE"; of the most kernels
  std::string verified_by;  // "names", "order"; empty: nothing lent
  std::int64_t kernels = 0;
  Nanos time = 0;
  bool shapes = false;  // to some of them
};

// Where an activity comes from: its launch and the operator around that, in the run's own trace or
// in the lender's. `run` is the one whose rows they are.
struct Origin {
  const Run* run = nullptr;
  store::CallRow call;
  store::OpRow op;
  bool lent = false;
  bool shapes = true;  // the operator's dims are those of this activity
};

struct Run {
  const store::Trace* trace = nullptr;  // outlives the Run
  std::vector<Activity> activities;     // of the chosen device (see `device`)
  std::vector<Group> groups;
  std::vector<Step> steps;             // every step found, in time order, all kinds
  StepKind kind = StepKind::kUnknown;  // the kind that the figures are about
  StepsHow how = StepsHow::kWholeTrace;
  Layers layers;
  std::int32_t device = 0;             // id of the device the figures are about
  store::StringId rank, process;       // of the device, as there
  std::optional<known::GpuMatch> gpu;  // table row of that device
  known::DeviceProperties properties;
  store::Span device_span;  // first begin to last end of an activity
  // parents by time nesting on one thread; invalid at the root
  std::vector<store::OpRow> op_parent;
  std::vector<store::FrameRow> frame_parent;
  std::vector<store::FrameRow>
      call_frame;  // per call: innermost Python frame around it; empty without frames
  std::vector<store::OpRow> call_op;  // per call: innermost operator around it
  std::int64_t kernels_without_launch = 0, launches_without_activity = 0;
  // Launches whose kernels ran and are not in the file, of graphs and of single kernels; in trace
  // order.
  std::vector<store::CallRow> graphs_without_kernels, launches_without_kernel;
  std::vector<Script> scripts;  // what can be lent: graphs captured in this trace; of a lender its
                                // eager steps as well
  std::vector<std::shared_ptr<const Run>> lenders;  // null: the run itself
  std::vector<Loan> loans;                          // by activity; empty where nothing is lent
  std::vector<Lending> lendings;                    // by lender
  store::Notes notes;                               // added to the trace's own
};

struct Options {
  // --steps A..B over the steps of the main kind, inclusive, counted from 0
  std::optional<std::pair<std::int64_t, std::int64_t>> steps = {};
  // Only steps of this kind count, and of this batch; without them the kind is the main one.
  std::optional<StepKind> kind = {};
  std::optional<std::int64_t> batch = {};
  // the model's layer count; evidence from calls beats it
  std::optional<std::int64_t> config_layers = {};
  std::string gpu = {};    // --gpu NAME; beats the trace's device name
  std::size_t device = 0;  // index into Builder::devices()
  int threads = 0;         // 0: all
};

// Of how many devices of one file a run of their own is built and compared: each costs a pass over
// the rows of all.
constexpr std::size_t kMostCompared = 256;

// Runs of the devices of one trace; what they share is worked out once.
// Errors of build: kUnusable with note_code no-device-activity, capture-trace, kernels-missing or
// ranks-inseparable; kUsage for steps, a GPU or a device that do not exist.
class Builder {
 public:
  explicit Builder(const store::Trace& trace, int threads = 0);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  const std::vector<Device>& devices() const;  // most kernel time first; none where inseparable
  Result<Run> build(const Options& options) const&;
  Result<Run> build(const Options& options) &&;  // spends what is shared instead of copying it

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};
Result<Run> build(const store::Trace& trace, const Options& options);

// Where an activity of the run comes from. A replayed kernel to which nothing is lent has no origin:
// the launch of its graph tells the replay's line, not the kernel's.
Origin origin_of(const Run& run, const Activity& activity);
std::string_view op_name(const Origin& origin);  // empty: none recorded
// Operators from the outermost to the innermost around `op`, by name.
std::vector<store::StringId> op_chain(const Run& run, store::OpRow op);
// The line behind a call: the nearest frame of user code; none without frames.
std::optional<Source> source_of(const Run& run, store::CallRow call);
std::optional<Source> source_of(const Run& run, store::FrameRow innermost);
// A file of the framework or of Python, as frames spell it: no line of it is user code.
bool is_framework(std::string_view file);
// Where each layer lies on the busiest stream of a step: inferred from the order of its kernels where
// that repeats once per layer ("order"), else from one layer's first call of a kernel that runs once
// in each to the next ("one-kernel"). None where the number of layers is unknown or fits neither.
struct LayerSpans {
  std::vector<store::Span> spans;
  std::string_view how;  // "order", "one-kernel"; empty: none
  store::StringId by;    // of "one-kernel": its name
};
LayerSpans layer_spans(const Run& run, const Step& step);
// "Input Dims" text to a list of shapes; a scalar is an empty shape. None: it is no such list.
std::optional<std::vector<std::vector<std::int64_t>>> parse_dims(std::string_view json);
std::optional<std::vector<std::string>> parse_types(std::string_view json);

}  // namespace culprit::run
