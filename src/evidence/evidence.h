// Evidence: figures with units, each kept as a Fact that says how it was had and which query gives
// it again. Measures only: nothing here accuses anybody. Shares are of the mean step's wall time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  run::ActivityId before, after;  // after: what ended it; invalid at the end of a step
  store::CallRow call;  // the launch of `after`, or the sync that held the host; invalid: unknown
};

enum class Regime : std::uint8_t { kUnknown, kMemory, kCompute, kLatency, kCommunication };
std::string_view regime_name(Regime);

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
  known::Dtype dtype_in = known::Dtype::kUnknown, dtype_out = known::Dtype::kUnknown;
  std::string dtype_in_how;  // "dims", "name", "server", "config", "inferred"; empty: unknown
  std::optional<std::int64_t> bytes;  // per call, read + written
  std::optional<double> gbps;         // achieved
  std::optional<double> of_peak;  // 0..1; absent when peak is unknown or the figure would exceed 1
  Regime regime = Regime::kUnknown;
  store::StringId op;  // of the most calls; invalid: not recorded
  std::vector<store::StringId> op_chain;
  store::StringId api;  // launch call
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
};

struct Attribution {
  double op = 0, source = 0, step = 0, layer = 0;
};  // shares of device time

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
  Attribution attributed;
  std::vector<Fact> facts;
  std::string add(std::string name, double value, std::string unit, std::string how,
                  std::string query);  // returns the id
};

Evidence measure(const run::Run& run, Knowledge known);

}  // namespace culprit::evidence
