#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "run/chapters.h"

namespace culprit::run {
namespace {

known::DeviceProperties convert(const store::DeviceProperties& from) {
  const auto small = [](std::int64_t value) {
    return value >= 0 && value <= 1'000'000 ? static_cast<int>(value) : 0;
  };
  return {from.name, from.total_memory, small(from.sms), small(from.cc_major),
          small(from.cc_minor)};
}

// ROCm numbers devices by physical index in events and from 0 in the header, so ids may not meet;
// the boards of one host are alike as a rule.
const store::DeviceProperties* properties_of(const store::TraceInfo& info, std::int32_t id) {
  if (info.devices.empty()) return nullptr;
  for (const auto& device : info.devices)
    if (device.id == id) return &device;
  const auto& first = info.devices.front();
  const bool alike = std::all_of(info.devices.begin(), info.devices.end(), [&](const auto& device) {
    return device.name == first.name && device.sms == first.sms &&
           device.total_memory == first.total_memory;
  });
  return alike ? &first : nullptr;
}

// `states_peak`: the trace tells the bandwidth of its device's memory.
Status match_gpu(const Options& options, bool states_peak, Run& run) {
  if (!options.gpu.empty()) {
    TRY(known::Gpu gpu, known::find_gpu(options.gpu));
    run.gpu = known::GpuMatch{std::move(gpu), false, {}};
    return Ok{};
  }
  run.gpu = known::match_device(run.properties);
  std::string message;
  if (run.gpu)
    message = run.gpu->warning;
  else if (run.properties.name.empty())
    message = "the trace does not name its device; shares of peak need --gpu NAME";
  else
    message = "\"" + short_text(run.properties.name) + "\" is not in the table of GPUs; " +
              (states_peak ? "shares of peak are of the bandwidth that the trace states"
                           : "shares of peak need --gpu NAME");
  const bool lacks = run.gpu.has_value() || !states_peak;
  const auto severity = lacks ? store::Severity::kWarning : store::Severity::kInfo;
  if (!message.empty()) add_note(run, "unknown-device", severity, 1, message);
  return Ok{};
}

}  // namespace

store::StringId process_of(const store::Trace& trace, const Links& links, store::DeviceRow row) {
  if (links.driver.empty()) return store::StringId(0);
  if (links.processes.hosts(trace.device.thread[row.index]).size() < 2) return store::StringId(0);
  const ProcessId driver = links.driver[row.index];
  return driver.valid() ? links.processes.pid(driver) : store::StringId(0);
}

std::vector<Device> find_devices(const store::Trace& trace, const Links& links) {
  using Key = std::tuple<store::StringId, store::StringId, std::int32_t>;
  std::map<Key, std::size_t> known;
  std::vector<Device> devices;
  std::size_t last = 0;
  for (std::size_t row = 0; row < trace.device.size(); ++row) {
    const store::StringId rank = trace.threads[trace.device.thread[row].index].rank;
    const store::StringId process = process_of(trace, links, store::DeviceRow(row));
    const std::int32_t id = trace.device.device[row];
    const auto is_it = [&](const Device& d) {
      return d.id == id && d.rank == rank && d.process == process;
    };
    if (last >= devices.size() || !is_it(devices[last])) {
      const auto [at, fresh] = known.try_emplace({rank, process, id}, devices.size());
      if (fresh) devices.push_back({rank, process, id, 0, 0});
      last = at->second;
    }
    ++devices[last].activities;
    if (trace.device.kind[row] == store::DeviceKind::kKernel)
      devices[last].kernel_time =
          capped_sum(devices[last].kernel_time, std::max<Nanos>(trace.device.dur[row], 0));
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const Device& a, const Device& b) { return a.kernel_time > b.kernel_time; });
  return devices;
}

Status choose_device(const Options& options, const std::vector<Device>& devices, Run& run) {
  if (options.device > 0 && options.device >= devices.size())
    return Error{Error::Code::kUsage,
                 counted(static_cast<std::int64_t>(devices.size()), "device has", "devices have") +
                     " activities in the trace",
                 "", "choose one of them, counted from 0", ""};
  if (devices.empty()) {  // said by check_completeness, about the rank that has calls
    const store::Trace& trace = *run.trace;
    run.rank = trace.calls.size() > 0 ? trace.threads[trace.calls.thread[0].index].rank
                                      : store::StringId(0);
    run.process = store::StringId(0);
    return Ok{};
  }
  run.device = devices[options.device].id;
  run.rank = devices[options.device].rank;
  run.process = devices[options.device].process;
  const auto* properties = properties_of(run.trace->info, run.device);
  if (properties != nullptr) run.properties = convert(*properties);
  return match_gpu(options, properties != nullptr && properties->peak_gbps > 0, run);
}

std::string device_label(const store::Trace& trace, const Device& device) {
  const std::string_view rank = trace.strings.or_empty(device.rank);
  const std::string_view process = trace.strings.or_empty(device.process);
  std::string label = fmt::format("device {}", device.id);
  if (!process.empty()) label += fmt::format(" of process {}", short_text(process));
  return rank.empty() ? label : fmt::format("{} {}", rank, label);
}

void note_other_devices(const std::vector<Device>& devices, Run& run) {
  if (devices.size() < 2) return;
  std::int64_t others = 0;
  for (const Device& d : devices)
    if (d.id != run.device || d.rank != run.rank || d.process != run.process)
      others += d.activities;
  const auto count = static_cast<std::int64_t>(devices.size()) - 1;
  add_note(run, "other-devices", store::Severity::kInfo, count,
           fmt::format("the figures are about {}; {} of {} are left out",
                       device_label(*run.trace, {run.rank, run.process, run.device, 0, 0}),
                       counted(others, "activity", "activities"),
                       counted(count, "other device", "other devices")));
  if (devices.size() > kMostCompared)
    add_note(run, "limit", store::Severity::kWarning, 1,
             fmt::format("{} devices in one file: only the {} with most kernel time are compared",
                         devices.size(), kMostCompared));
}

}  // namespace culprit::run
