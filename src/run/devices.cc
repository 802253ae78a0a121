#include <algorithm>

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

Status match_gpu(const Options& options, Run& run) {
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
    message = "\"" + short_text(run.properties.name) +
              "\" is not in the table of GPUs; shares of peak need --gpu NAME";
  if (!message.empty()) add_note(run, "unknown-device", store::Severity::kWarning, 1, message);
  return Ok{};
}

}  // namespace

std::vector<Device> devices_of(const store::Trace& trace) {
  std::vector<Device> devices;
  std::size_t last = 0;
  for (std::size_t row = 0; row < trace.device.size(); ++row) {
    const store::StringId rank = trace.threads[trace.device.thread[row].index].rank;
    const std::int32_t id = trace.device.device[row];
    const auto is_it = [&](const Device& d) { return d.id == id && d.rank == rank; };
    if (last >= devices.size() || !is_it(devices[last])) {
      last = static_cast<std::size_t>(std::find_if(devices.begin(), devices.end(), is_it) -
                                      devices.begin());
      if (last == devices.size()) devices.push_back({rank, id, 0, 0});
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

Status choose_device(const Options& options, Run& run) {
  const std::vector<Device> devices = devices_of(*run.trace);
  if (options.device > 0 && options.device >= devices.size())
    return Error{Error::Code::kUsage,
                 counted(static_cast<std::int64_t>(devices.size()), "device has", "devices have") +
                     " activities in the trace",
                 "", "choose one of them, counted from 0", ""};
  if (devices.empty()) {  // said by check_completeness, about the rank that has calls
    const store::Trace& trace = *run.trace;
    run.rank = trace.calls.size() > 0 ? trace.threads[trace.calls.thread[0].index].rank
                                      : store::StringId(0);
    return Ok{};
  }
  run.device = devices[options.device].id;
  run.rank = devices[options.device].rank;
  if (const auto* properties = properties_of(run.trace->info, run.device))
    run.properties = convert(*properties);
  return match_gpu(options, run);
}

}  // namespace culprit::run
