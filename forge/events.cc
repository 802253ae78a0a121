#include "forge/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::forge {
namespace {

constexpr std::string_view kTime = hole_text("\x01");
constexpr std::string_view kDuration = hole_text("\x02");
constexpr std::string_view kExternal = hole_text("\x03");
constexpr std::string_view kCorrelation = hole_text("\x04");
constexpr std::string_view kEvent = hole_text("\x05");
constexpr std::string_view kPython = hole_text("\x06");
constexpr std::string_view kParent = hole_text("\x07");
constexpr std::string_view kNumber = hole_text("\x08");
constexpr std::string_view kBandwidth = hole_text("\x0e");

std::string complete_event(std::string_view cat, std::string_view name, int pid, int tid,
                           std::string_view args) {
  std::string tail;
  if (!args.empty()) tail = fmt::format(",\n    \"args\": {{\n      {}\n    }}", args);
  return fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {},\n"
      "    \"ts\": {}, \"dur\": {}{}\n  }},\n",
      cat, name, pid, tid, kTime, kDuration, tail);
}

// The name with '@' as a hole for the layer or step.
std::string numbered(std::string_view name) {
  std::string text;
  for (const char c : json_escaped(name)) {
    if (c == '@') {
      text += kNumber;
    } else {
      text += c;
    }
  }
  return text;
}

template <class Items, class Text>
std::string joined(const Items& items, Text text) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ", ";
    out += text(item);
  }
  return out;
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", json_escaped(text)); }

std::string dims_of(const Value& value) {
  const std::string dims = joined(value.dims, [](std::int64_t n) { return fmt::format("{}", n); });
  return value.dtype == "TensorList" ? fmt::format("[[{}]]", dims) : fmt::format("[{}]", dims);
}

std::string strides_of(const Value& value) {
  std::vector<std::int64_t> strides(value.dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= value.dims[i];
  }
  return dims_of({value.dtype, strides, ""});
}

std::string ranks_list(int world) {
  std::string out = "[";
  for (int i = 0; i < world; ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", i);
  return out + "]";
}

std::string collective_keys(const Collective& collective, int world) {
  return fmt::format(
      " \"Collective name\": \"{}\", \"In msg nelems\": {}, \"Out msg nelems\": {}, \"Group "
      "size\": {}, \"dtype\": \"{}\", "
      "\"In split size\": \"[]\", \"Out split size\": \"[]\", \"Process Group Name\": \"{}\", "
      "\"Process Group Description\": \"undefined\", \"Process Group Ranks\": \"{}\"",
      collective.name, collective.elements_in, collective.elements_out, world, collective.dtype,
      collective.group, ranks_list(world));
}

struct ApiText {
  std::string_view name;
  std::string_view cat;
  int cbid;  // callback ids of CUPTI's runtime and driver tables
};
ApiText api_text(Api api) {
  switch (api) {
    case Api::kLaunchKernel:
      return {"cudaLaunchKernel", "cuda_runtime", 211};
    case Api::kLaunchKernelExC:
      return {"cudaLaunchKernelExC", "cuda_runtime", 430};
    case Api::kLaunchCooperative:
      return {"cudaLaunchCooperativeKernel", "cuda_runtime", 269};
    case Api::kDriverLaunchEx:
      return {"cuLaunchKernelEx", "cuda_driver", 652};
    case Api::kMemcpyAsync:
      return {"cudaMemcpyAsync", "cuda_runtime", 41};
    case Api::kMemsetAsync:
      return {"cudaMemsetAsync", "cuda_runtime", 51};
    case Api::kStreamSynchronize:
      return {"cudaStreamSynchronize", "cuda_runtime", 131};
    case Api::kEventSynchronize:
      return {"cudaEventSynchronize", "cuda_runtime", 137};
  }
  return {};
}

// Kineto's estimate: resident warps over possible warps, per cent, registers and shared memory
// considered.
int occupancy(const Launch& launch, const Device& device) {
  const int threads = launch.block[0] * launch.block[1] * launch.block[2];
  const int warps = (threads + 31) / 32;
  const int max_warps = device.threads_per_sm / 32;
  const int by_warps = max_warps / warps;
  const int by_registers = 65'536 / std::max(1, launch.registers * warps * 32);
  const int by_shared =
      launch.shared > 0 ? device.shared_per_sm / (launch.shared + 1024) : by_warps;
  const std::int64_t blocks = std::int64_t{1} * launch.grid[0] * launch.grid[1] * launch.grid[2];
  const double resident =
      std::min<double>(static_cast<double>(std::min({by_warps, by_registers, by_shared, 24})),
                       static_cast<double>(blocks) / device.sms);
  return std::min(100, static_cast<int>(std::lround(resident * warps * 100 / max_warps)));
}

}  // namespace

std::string frame_event(const Frame& frame, const Place& place, const Detail& detail) {
  std::string args = fmt::format("\"Python parent id\": {}, \"Python id\": {}, \"Ev Idx\": {}",
                                 kParent, kPython, kEvent);
  if (detail.call_from && !frame.called_from.empty()) {
    args += fmt::format(", \"CallFrom\": \"{}\"", json_escaped(frame.called_from));
  }
  if (frame.name.starts_with("nn.Module"))
    args = fmt::format("\"Python module id\": {}, {}", kNumber, args);
  return complete_event("python_function", numbered(frame.name), place.pid, place.tid, args);
}

std::string op_event(const Op& op, const Collective* collective, const Place& place,
                     const Detail& detail) {
  std::string args = fmt::format("\"External id\": {}", kExternal);
  if (detail.record_function) args += ",\"Record function id\": 0";
  if (collective != nullptr) {
    args += fmt::format(",{}, \"Rank\": {}, \"Global rank start\": 0, \"Global rank stride\": 1",
                        collective_keys(*collective, detail.world), detail.rank);
  }
  if (detail.shapes) {
    args += fmt::format(
        ", \"Concrete Inputs\": [{}], \"Input type\": [{}], \"Input Strides\": [{}], \"Input "
        "Dims\": [{}]",
        joined(op.inputs, [](const Value& v) { return quoted(v.concrete); }),
        joined(op.inputs, [](const Value& v) { return quoted(v.dtype); }),
        joined(op.inputs, strides_of), joined(op.inputs, dims_of));
  }
  args += fmt::format(", \"Ev Idx\": {}", kEvent);
  return complete_event("cpu_op", json_escaped(op.name), place.pid, place.tid, args);
}

std::string annotation_event(const std::string& name, const Place& place, const Detail& detail) {
  const std::string_view record = detail.record_function ? ",\"Record function id\": 0" : "";
  return complete_event(
      "user_annotation", numbered(name), place.pid, place.tid,
      fmt::format("\"External id\": {}{}, \"Ev Idx\": {}", kExternal, record, kEvent));
}

std::string device_annotation_event(const std::string& name, const Place& place) {
  return complete_event("gpu_user_annotation", numbered(name), place.device, place.stream,
                        fmt::format("\"External id\": {}", kExternal));
}

std::string device_event(const Launch& launch, bool linked, bool in_graph, const Device& device,
                         const Place& place, const Detail& detail) {
  std::string args = linked ? fmt::format("\"External id\": {},", kExternal) : std::string();
  if (launch.api == Api::kMemcpyAsync || launch.api == Api::kMemsetAsync) {
    args += fmt::format(
        "      \"device\": {}, \"context\": 1,      \"stream\": {}, \"correlation\": {},      "
        "\"bytes\": {}, "
        "\"memory bandwidth (GB/s)\": {}",
        place.device, place.stream, kCorrelation, launch.bytes, kBandwidth);
    const std::string_view cat = launch.api == Api::kMemcpyAsync ? "gpu_memcpy" : "gpu_memset";
    return complete_event(cat, json_escaped(launch.name), place.device, place.stream, args);
  }
  const std::int64_t blocks = std::int64_t{1} * launch.grid[0] * launch.grid[1] * launch.grid[2];
  const int warps = (launch.block[0] * launch.block[1] * launch.block[2] + 31) / 32;
  const double per_sm = static_cast<double>(blocks) / device.sms;
  args += fmt::format(
      "      \"queued\": 0, \"device\": {}, \"context\": 1,      \"stream\": {}, \"correlation\": "
      "{},      "
      "\"registers per thread\": {},      \"shared memory\": {},      \"blocks per SM\": {:.6f},   "
      "   "
      "\"warps per SM\": {:.6f},      \"grid\": [{}, {}, {}],      \"block\": [{}, {}, {}],      "
      "\"est. achieved occupancy %\": {}",
      place.device, place.stream, kCorrelation, launch.registers, launch.shared, per_sm,
      per_sm * warps, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
      launch.block[1], launch.block[2], occupancy(launch, device));
  if (in_graph) args += fmt::format(",      \"graph id\": 1, \"graph node id\": {}", kNumber);
  if (launch.collective && linked)
    args += fmt::format(",{}", collective_keys(*launch.collective, detail.world));
  return complete_event("kernel", json_escaped(launch.name), place.device, place.stream, args);
}

std::string api_event(Api api, bool linked, const Place& place) {
  const ApiText text = api_text(api);
  const std::string external =
      linked ? fmt::format("\"External id\": {},", kExternal) : std::string();
  return complete_event(
      text.cat, text.name, place.pid, place.tid,
      fmt::format("{}      \"cbid\": {}, \"correlation\": {}", external, text.cbid, kCorrelation));
}

std::string graph_launch_event(const Place& place) {
  return complete_event("cuda_runtime", "cudaGraphLaunch", place.pid, place.tid,
                        fmt::format("      \"cbid\": 311, \"correlation\": {}", kCorrelation));
}

std::string flow_start_event(const Place& place) {
  return fmt::format(
      "  {{\n    \"ph\": \"s\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {},\n"
      "    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }},\n",
      kCorrelation, place.pid, place.tid, kTime);
}

std::string flow_end_event(const Place& place) {
  return fmt::format(
      "  {{\n    \"ph\": \"f\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {},\n"
      "    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }},\n",
      kCorrelation, place.device, place.stream, kTime);
}

std::string header_members(const Header& header, const Device& device) {
  std::string devices;
  for (int i = 0; i < header.world; ++i) {
    devices += fmt::format(
        "{}\n    {{\n      \"id\": {}, \"name\": \"{}\", \"totalGlobalMem\": {},\n"
        "      \"computeMajor\": {}, \"computeMinor\": {},\n"
        "      \"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": {},\n"
        "      \"regsPerBlock\": 65536, \"warpSize\": 32,\n"
        "      \"sharedMemPerBlock\": 49152, \"numSms\": {}\n"
        "    , \"regsPerMultiprocessor\": 65536, \"sharedMemPerBlockOptin\": {}, "
        "\"sharedMemPerMultiprocessor\": {}\n"
        "    }}",
        i == 0 ? "" : ",", i, json_escaped(device.name), device.memory, device.major, device.minor,
        device.threads_per_sm, device.sms, device.shared_per_block_max, device.shared_per_sm);
  }
  std::string text =
      fmt::format("    \"schemaVersion\": 1,\n    \"deviceProperties\": [{}\n    ],\n", devices);
  text += "      \"cupti_version\": 28,\n      \"cuda_runtime_version\": 12090,\n";
  if (header.world > 1) {
    const std::string ranks = ranks_list(header.world);
    text += fmt::format(
        "      \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}, "
        "\"pg_count\": 2, "
        "\"pg_config\": [{{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": "
        "\"cuda:nccl\", "
        "\"pg_size\": {}, \"ranks\": {}}}, {{\"pg_name\": \"3\", \"pg_desc\": \"undefined\", "
        "\"backend_config\": "
        "\"cuda:nccl\", \"pg_size\": {}, \"ranks\": {}}}], \"nccl_version\": \"2.27.5\"}},\n",
        header.rank, header.world, header.world, ranks, header.world, ranks);
  }
  if (header.shapes) text += "      \"record_shapes\": 1,\n";
  text += "      \"cuda_driver_version\": 13000,\n";
  if (header.stacks) text += "      \"with_stack\": 1,\n";
  text += "      \"trace_id\": \"8F0C2E5A91B34D67A2C4E6F801357BD9\",\n";
  if (!header.base.empty()) {
    text += fmt::format("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": {},\n",
                        header.base);
  }
  return text;
}

std::vector<std::string> process_events(const std::string& process, const Place& place,
                                        bool old_era) {
  constexpr int kDevices = 16;  // Kineto names as many, whatever the machine has
  std::vector<std::string> events;
  const auto meta = [&](std::string_view what, int pid, int tid, std::string_view args) {
    events.push_back(fmt::format(
        "  {{\n    \"name\": \"{}\", \"ph\": \"M\", \"ts\": {}, \"pid\": {}, \"tid\": {},\n"
        "    \"args\": {{\n      {}\n    }}\n  }},\n",
        what, kTime, pid, tid, args));
  };
  const auto name_process = [&](int pid, std::string_view label, int order) {
    meta("process_name", pid, 0, fmt::format("\"name\": \"{}\"", process));
    meta("process_labels", pid, 0, fmt::format("\"labels\": \"{}\"", label));
    meta("process_sort_index", pid, 0, fmt::format("\"sort_index\": {}", order));
  };
  const auto name_thread = [&](int pid, int tid, const std::string& name) {
    meta("thread_name", pid, tid, fmt::format("\"name\": \"{}\"", name));
    meta("thread_sort_index", pid, tid, fmt::format("\"sort_index\": {}", tid));
  };
  name_process(place.pid, "CPU", place.pid);
  for (int i = 0; i < (old_era ? 8 : kDevices); ++i)
    name_process(i, fmt::format("GPU {}", i), 5'000'000 + i);
  name_thread(place.device, place.stream, fmt::format("stream {} ", place.stream));
  // Linux keeps 15 characters of a thread's name.
  name_thread(place.pid, place.tid,
              fmt::format("thread {} ({})", place.tid, process.substr(0, 15)));
  return events;
}

std::vector<std::string> closing_events() {
  const std::string span = fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"Trace\", \"ts\": {}, \"dur\": {},\n"
      "    \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\",\n"
      "    \"name\": \"PyTorch Profiler (0)\",\n"
      "    \"args\": {{\n      \"Op count\": 0\n    }}\n  }},\n",
      kTime, kDuration);
  const std::string order = fmt::format(
      "  {{\n    \"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": {},\n"
      "    \"pid\": \"Spans\", \"tid\": 0,\n"
      "    \"args\": {{\n      \"sort_index\": 536870912\n    }}\n  }},\n",
      kTime);
  const std::string start = fmt::format(
      "  {{\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": \"g\",\n"
      "    \"pid\": \"Traces\", \"tid\": \"Trace PyTorch Profiler\", \"ts\": {}\n  }},\n",
      kTime);
  return {span, order, start};
}

}  // namespace culprit::forge
