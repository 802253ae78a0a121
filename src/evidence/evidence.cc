#include "evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "evidence/measures.h"

namespace culprit::evidence {

std::string_view regime_name(Regime regime) {
  switch (regime) {
    case Regime::kUnknown:
      return "unknown";
    case Regime::kMemory:
      return "memory";
    case Regime::kCompute:
      return "compute";
    case Regime::kLatency:
      return "latency";
    case Regime::kCommunication:
      return "communication";
  }
  return "unknown";
}

std::string Evidence::add(std::string name, double value, std::string unit, std::string how,
                          std::string query) {
  std::string id = fmt::format("F{}", facts.size() + 1);
  facts.push_back({id, std::move(name), value, std::move(unit), std::move(how), std::move(query)});
  return id;
}

Basis::Basis(const run::Run& run_in)
    : run(run_in), segments(timeline(run_in.activities)), used(used_time(run_in)), host(run_in) {
  Nanos total = 0;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    ++steps;
    total += step.length();
  }
  mean = per_step(total);
}

Nanos Basis::per_step(Nanos total) const { return steps > 0 ? (total + steps / 2) / steps : 0; }

Peak find_peak(const run::Run& run) {
  const std::optional<known::GpuMatch> own = known::match_device(run.properties);
  if (run.gpu && (!own || own->gpu.name != run.gpu->gpu.name)) {
    return {run.gpu->gpu.peak_gbps, "flag", run.gpu->gpu.peak_verified};
  }
  for (const store::DeviceProperties& device : run.trace->info.devices) {
    if (device.id == run.device && device.peak_gbps > 0) return {device.peak_gbps, "trace", true};
  }
  if (!run.gpu || run.gpu->gpu.peak_gbps <= 0) return {};
  return {run.gpu->gpu.peak_gbps, "table", run.gpu->gpu.peak_verified};
}

Attribution measure_attribution(const Basis& basis, const std::vector<KernelFigures>& kernels) {
  const run::Run& run = basis.run;
  double all = 0, op = 0, source = 0, step = 0;
  for (const run::Activity& activity : run.activities) {
    const auto ns = static_cast<double>(activity.end - activity.begin);
    all += ns;
    const run::Origin origin = run::origin_of(run, activity);
    if (origin.op.valid()) op += ns;
    if (activity.step >= 0) step += ns;
    const std::uint32_t call = origin.call.index;
    const bool placed = origin.call.valid() && call < origin.run->call_frame.size() &&
                        origin.run->call_frame[call].valid();
    if (placed) source += ns;
  }
  double in_steps = 0, layered = 0;
  const std::int64_t layers = run.layers.count.value_or(0);
  for (const KernelFigures& kernel : kernels) {
    const auto ns = static_cast<double>(kernel.ns_per_step);
    in_steps += ns;
    const std::int64_t sparse = layers - run.layers.first_dense.value_or(0);
    for (const std::int64_t each : {layers, sparse, run.layers.first_dense.value_or(0)}) {
      if (each < 2 || kernel.calls % (each * basis.steps) != 0) continue;
      layered += ns;
      break;
    }
  }
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return {share(op, all), share(source, all), share(step, all), share(layered, in_steps)};
}

Evidence measure(const run::Run& run, Knowledge known, Nanos wait_ns_per_step) {
  Evidence evidence;
  evidence.run = &run;
  evidence.known = std::move(known);
  const Basis basis(run);
  evidence.steps = measure_steps(basis);
  evidence.peak = find_peak(run);
  evidence.gaps = measure_gaps(basis);
  evidence.outliers = find_outliers(basis, evidence.steps.median);
  evidence.budget = measure_budget(basis, evidence.gaps, basis.mean);
  part_waiting(wait_ns_per_step, basis.mean, evidence.budget);
  const Members members(run);
  evidence.kernels = measure_kernels(basis, members, measure_exposed(basis));
  find_tokens(basis, evidence.kernels, evidence.steps);
  evidence.pool_reads = find_pool_reads(basis, members, evidence);
  Nanos fastest = 0;
  for (const KernelFigures& kernel : evidence.kernels) {
    if (kernel.avg_ns > 0 && (fastest == 0 || kernel.avg_ns < fastest)) fastest = kernel.avg_ns;
  }
  for (KernelFigures& kernel : evidence.kernels) rate(run, evidence.peak, fastest, kernel);
  evidence.retimer = std::make_shared<const Retimer>(run, basis.host);
  if (evidence.known.tpot_ms) {
    evidence.host_factor = evidence.retimer->host_factor(*evidence.known.tpot_ms * 1e6);
  }
  evidence.attributed = measure_attribution(basis, evidence.kernels);
  state_facts(evidence);
  return evidence;
}

}  // namespace culprit::evidence
