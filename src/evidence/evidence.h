// Evidence: figures with units, each kept as a Fact that says how it was had and which query gives
// it again. Measures only: nothing here accuses anybody. Shares are of the mean step's wall time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/retime.h"
#include "known/launch_geometry.h"
#include "known/models.h"
#include "run/run.h"

namespace culprit::evidence {

struct Fact {
  std::string id;     // "F12"; in order of making
  std::string name;   // "cast.bytes_per_call"
  double value = 0;   // exact for integers below 2^53
  std::string unit;   // "byte", "ns", "element", "1"
  std::string how;    // "elements x (1 + 2)"
  std::string query;  // a command that gives the value again
};

// A query that gives a figure again: culprit sql TRACE "SELECT ...". TRACE stands for the traces of the
// answer with the flags that add knowledge to them. `select` holds no double quote and no dollar sign.
std::string sql_query(std::string_view select);
// The same of a figure that no table but the facts' own holds.
std::string fact_query(std::string_view fact);

struct BudgetRow {
  known::Owner owner = known::Owner::kUnexplained;
  Nanos ns_per_step = 0;
  double share = 0;
  double calls_per_step = 0;  // 0 for idle owners
};

// Idle device time between two activities of a used step, and what ended it.
struct Gap {
  Nanos begin = 0, end = 0;
  known::Owner owner = known::Owner::kUnexplained;
  run::StepIndex step = -1;
  run::ActivityId before, after;  // after: what ended it; invalid where nothing followed
  store::CallRow call;  // the launch of `after`, or the wait that held the host; invalid: unknown
};

enum class Regime : std::uint8_t { kUnknown, kMemory, kCompute, kLatency, kCommunication };
std::string_view regime_name(Regime);

// A matrix multiplication as its operator was called: `batch` of [m, k] x [k, n].
struct Matmul {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k); }
};

// One kernel group over the used steps.
struct KernelFigures {
  run::GroupId group;
  double calls_per_step = 0;
  std::int64_t calls = 0;
  Nanos ns_per_step = 0;  // sum of durations
  double share = 0;
  Nanos avg_ns = 0;
  Nanos exposed_ns_per_step = 0;                   // time in which nothing outside this group ran
  std::optional<known::ElementInterval> elements;  // per call
  std::optional<std::int64_t> elements_exact;
  std::vector<std::int64_t> dims;  // of the tensor written, where recorded and equal in every call
  std::string elements_how;        // "dims", "grid", "grid + 576 divides"
  std::optional<Matmul> matmul;    // of a GEMM whose calls all recorded the same shapes
  known::Dtype dtype_in = known::Dtype::kUnknown, dtype_out = known::Dtype::kUnknown;
  std::string
      dtype_in_how;  // "dims", "name", "flag", "server", "config", "inferred"; empty: unknown
  std::optional<std::int64_t> bytes;  // per call, read + written
  std::optional<double> gbps;         // achieved
  // Of the roof that binds (memory, or the arithmetic of a GEMM), 0..1; absent when the peak is unknown
  // or the figure would exceed 1.
  std::optional<double> of_peak;
  Regime regime = Regime::kUnknown;
  std::string doubt;  // why a figure above is withheld or may be wrong; empty: no doubt
  // It is the peak that is doubted: elements and types were recorded, and the trace states the peak.
  bool doubts_peak = false;
  std::string op;  // of the most calls; empty: not recorded
  std::vector<std::string> op_chain;
  bool lent = false;       // op and source are those of another trace's launches (run/mapping.h)
  bool in_replay = false;  // every call is of a graph replay, which records neither
  store::StringId api;     // launch call
  store::StringId launch_thread;
  std::optional<run::Source> source;
};

struct Peak {
  double gbps = 0;     // 0: unknown
  std::string source;  // "table", "trace", "flag", "measured"; empty: unknown
  bool verified = true;
};

struct StepStats {
  std::int64_t found = 0, used = 0;
  Nanos mean = 0, median = 0, p99 = 0;
  Nanos device_span = 0;   // mean over used steps: first to last device activity inside the step
  double device_busy = 0;  // union over that span
  // Mean over used steps: time in which the device works, overlaps counted once; and the sum over its
  // activities, which counts an overlap as often as it occurs and is no time of the step.
  Nanos busy_ns = 0, activity_ns = 0;
  // Time the launching thread needs for a step of its own: launch to launch, without the time it sat
  // in calls that wait for the device. 0: unknown. Profilers inflate it: an upper bound.
  Nanos host_ns = 0;
  Nanos host_wait_ns = 0;  // the time it sat in them, per step
  std::optional<std::int64_t>
      tokens;              // rows that the model's layers work on: batch of a decode step
  std::string tokens_how;  // "mark", "norm grid"; empty: unknown
};

// Kernels that, in every layer, convert or copy a buffer of the size of a KV pool: what they fit, and
// how well. Fits are measured here; who is to blame is the verdict's business.
struct PoolRead {
  std::vector<std::size_t> kernels;  // indices into Evidence::kernels, largest first
  bool copies = false;               // within one type; else from a narrow type to a wide one
  double calls_per_step = 0;         // of all of them
  std::int64_t layers = 0;          // calls = layers x tensors x pieces; 0: no count of layers fits
  std::string layers_from;          // "layers", "attention calls", "model"
  std::int64_t tensors = 1;         // per layer: 1 (latent or key pool), 2 (key and value pool)
  std::int64_t pieces = 1;          // launches per tensor (32-bit indexing splits large ones)
  std::vector<std::int64_t> shape;  // of one tensor; empty: unknown
  std::int64_t rows = 0, row = 0;   // elements = rows x row; 0: unknown
  std::int64_t elements = 0;        // of one tensor; the largest that fits where not exact
  std::string match;                // "exact", "within-launch-rounding", "inferred"
  std::string row_from;             // "dims", "model", "assumed"; empty: no row length fits
  double before_attention = 0;      // share of calls whose next matrix work is attention
  bool attention_seen = false;      // any attention kernel was recognised
};

// A step far longer than the others: it does not count in the means, and has a cause of its own.
struct Outlier {
  run::StepIndex step = -1;
  Nanos excess = 0;     // above the median of the used steps
  std::string cause;    // "gc", "compile", "allocator", "unknown"
  std::string because;  // the name that tells: a Python frame or a call; empty: nothing does
};

struct Attribution {
  double op = 0, source = 0, step = 0, layer = 0;
};  // shares of device time

struct Ranks;  // ranks.h

struct Knowledge {  // what flags and files added; empty: nothing
  std::optional<known::Model> model;
  std::string model_source;  // "config", "table"
  known::Deployment deployment;
  bool kv_dtype_from_flag = false;
  std::optional<double> tpot_ms;
};

struct Evidence {
  const run::Run* run = nullptr;
  Knowledge known;
  StepStats steps;
  Peak peak;
  std::vector<BudgetRow>
      budget;             // every owner with time, largest first; sums to steps.mean exactly
  std::vector<Gap> gaps;  // of the used steps, in time order
  std::vector<KernelFigures> kernels;  // largest ns_per_step first
  std::vector<PoolRead> pool_reads;    // largest first
  std::vector<Outlier> outliers;       // in time order
  Attribution attributed;
  std::shared_ptr<const Retimer> retimer;  // never null after measure(); may be off
  double host_factor = 1;        // on the host's time as profiled, so that the step takes --tpot
  const Ranks* ranks = nullptr;  // where the input holds several; set behind measure()
  std::vector<Fact> facts;
  std::string add(std::string name, double value, std::string unit, std::string how,
                  std::string query);  // returns the id
};

// `wait_ns_per_step`: of its exposed communication, what the ranks side by side show to be waiting.
Evidence measure(const run::Run& run, Knowledge known, Nanos wait_ns_per_step = 0);
// Takes waiting out of the row of communication and gives it one of its own.
void part_waiting(Nanos wait_ns_per_step, Nanos mean, std::vector<BudgetRow>& budget);

// What the launching threads did in the idle time that is blamed on their own work (idle-host-work):
// for each gap the narrowest Python frame or operator around most of it.
struct HostWork {
  std::string name;  // "vllm/sampler.py(88): sample"; empty: nothing recorded
  std::optional<run::Source> source;
  Nanos ns_per_step = 0;
};
std::vector<HostWork> find_host_work(const Evidence& evidence);  // most time first

// Other processes of the file with activities on a device of the same id, per step: in all, at the
// same time as the run's own, and while the run's next activity stood in the queue. Zeros where the
// file holds one process.
struct Neighbours {
  Nanos ns_per_step = 0, with_ours_per_step = 0, while_queued_per_step = 0;
};
Neighbours find_neighbours(const Evidence& evidence);

// Facts about one kernel group, made at the first call; ids are empty where the figure is unknown.
struct KernelFacts {
  std::string calls, time, average, exposed, elements, bytes, gbps, of_peak;
};
KernelFacts state_kernel(Evidence& evidence, std::size_t index);

// Time per used step in which kernels of `groups` ran and nothing else did: what removing them saves
// at most.
Nanos exposed_ns_per_step(const run::Run& run, std::span<const run::GroupId> groups);

}  // namespace culprit::evidence
