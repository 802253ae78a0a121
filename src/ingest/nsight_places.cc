#include "ingest/nsight_places.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::ingest {
namespace {

constexpr int kProcessShift = 24;     // of a global id
constexpr int kCorrelationBits = 32;  // CUPTI counts correlations in 32 bits
constexpr std::int64_t kLow = 0xffffff;

}  // namespace

std::size_t Places::Hash::operator()(const Place& place) const {
  std::uint64_t h = (std::uint64_t{place.process} << 32) ^ static_cast<std::uint32_t>(place.device);
  h = (h ^ static_cast<std::uint64_t>(place.lane)) * 0x9e3779b97f4a7c15U + (place.on_host ? 1 : 0);
  return static_cast<std::size_t>(h ^ (h >> 32));
}

std::uint32_t Places::process(std::optional<std::int64_t> global) {
  if (!global) return 0;
  const std::int64_t id = *global >> kProcessShift;
  const auto [at, is_new] =
      process_of_.emplace(id, static_cast<std::uint32_t>(processes_.size() + 1));
  if (is_new) processes_.push_back(id);
  return at->second;
}

store::ThreadId Places::thread(const Place& place) {
  if (last_thread_.valid() && place == last_) return last_thread_;
  const auto [at, is_new] = known_.emplace(place, store::ThreadId(places_.size()));
  if (is_new) {
    places_.push_back(place);
    trace_.threads.push_back({store::StringId(0), store::StringId(0), store::StringId(0)});
  }
  last_ = place;
  return last_thread_ = at->second;
}

store::ThreadId Places::host(std::optional<std::int64_t> global_tid) {
  return thread({process(global_tid), -1, global_tid ? *global_tid & kLow : -1, true});
}

store::ThreadId Places::stream(std::optional<std::int64_t> global_pid, std::int32_t device,
                               std::int64_t stream) {
  return thread({process(global_pid), device, stream, false});
}

std::optional<std::int32_t> Places::gpu_of(const Place& place, const GpuOf& known) const {
  if (place.process == 0) return std::nullopt;
  const auto at = known.find({pid(place.process), place.device});
  if (at == known.end()) return std::nullopt;
  return static_cast<std::int32_t>(at->second);
}

void Places::name_threads(bool by_gpu, bool labelled) {
  const auto text = [&](const std::string& s) { return trace_.strings.intern(s); };
  std::vector<std::uint32_t> working;  // processes with streams
  for (const Place& place : places_)
    if (!place.on_host) working.push_back(place.process);
  std::sort(working.begin(), working.end());
  working.erase(std::unique(working.begin(), working.end()), working.end());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    store::Thread& thread = trace_.threads[i];
    const std::string process = place.process == 0 ? "" : fmt::format("{}", pid(place.process));
    const std::string lane = place.lane < 0 ? "" : fmt::format("{}", place.lane);
    thread.pid = text(place.on_host ? process : fmt::format("{}", place.device));
    // Streams are numbered per process as well.
    const bool shared = !place.on_host && by_gpu && working.size() > 1;
    thread.tid = text(shared ? fmt::format("{} (process {})", lane, process) : lane);
    thread.rank = text(labelled ? fmt::format("[pid {}]", process) : "");
  }
}

// Each process is answered for by itself. Those that give a device the same number may mean the same
// GPU, or each another one.
void Places::note_shared_devices(const std::vector<std::uint8_t>& works, bool by_gpu) const {
  std::map<std::int32_t, std::vector<std::uint32_t>> users;  // processes by device
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (works[i] == 0 || places_[i].on_host) continue;
    auto& of = users[places_[i].device];
    if (std::find(of.begin(), of.end(), places_[i].process) == of.end())
      of.push_back(places_[i].process);
  }
  for (const auto& [device, processes] : users) {
    if (processes.size() < 2) continue;
    const std::string message =
        by_gpu
            ? fmt::format(
                  "{} processes work on GPU {}: what the others did on it counts as idle here",
                  processes.size(), device)
            : fmt::format(
                  "{} processes have a device {}, and nothing tells whether it is one GPU: if so, "
                  "what the others did on it counts as idle here",
                  processes.size(), device);
    trace_.notes.add({"device-shared",
                      store::Severity::kWarning,
                      static_cast<std::int64_t>(processes.size()),
                      {},
                      {},
                      fmt::format("device {}", device),
                      message});
    return;
  }
}

bool Places::settle(const std::vector<CudaDevice>& devices, std::size_t gpus) {
  GpuOf known;
  for (const CudaDevice& device : devices)
    known.emplace(std::pair(device.pid, device.cuda), device.gpu);
  const bool one_process = processes_.size() <= 1;  // then rows without a process are of that one
  std::vector<std::uint8_t> works(places_.size(), 0);
  for (const store::ThreadId thread : trace_.device.thread) works[thread.index] = 1;
  bool told = !known.empty(), several = false;
  std::optional<std::uint32_t> first;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (works[i] == 0) continue;
    told = told && gpu_of(places_[i], known).has_value();
    if (!first) first = places_[i].process;
    several = several || *first != places_[i].process;
  }
  const bool one_gpu = gpus == 1;
  if (told) {
    for (Place& place : places_)
      if (!place.on_host) place.device = gpu_of(place, known).value_or(place.device);
    for (std::size_t row = 0; row < trace_.device.size(); ++row)
      trace_.device.device[row] = places_[trace_.device.thread[row].index].device;
  }
  if (several && !one_process) note_shared_devices(works, told || one_gpu);
  name_threads(told || one_gpu, several && !one_process && !told && !one_gpu);
  const auto make_unique = [&](auto& table) {
    for (std::size_t row = 0; row < table.size() && !one_process; ++row)
      if (table.correlation[row] != store::kNoId)
        table.correlation[row] |= std::int64_t{process_of(table.thread[row])} << kCorrelationBits;
  };
  make_unique(trace_.calls);
  make_unique(trace_.device);
  return told;
}

}  // namespace culprit::ingest
