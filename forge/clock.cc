#include "forge/clock.h"

#include <algorithm>
#include <utility>

namespace culprit::forge {
namespace {

constexpr Nanos kBetweenLaunches = 700;  // host time between two launches of one call
constexpr Nanos kWakeUp = 1'800;  // from the end of device work to the return of a waiting call
constexpr std::uint64_t kHostSalt = 1u << 30;
constexpr std::uint64_t kLeaveSalt = std::uint64_t{1} << 31;

// Where a call's host time lies: before its first API call, the rest after the last.
constexpr Nanos lead_of(Nanos host) { return host * 3 / 4; }

// SplitMix64 (Steele, Lea, Flood 2014): one step is a good hash.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Nanos StepTimes::at(const StepPlan& plan, Moment moment) const {
  const CallTimes& call = calls[moment.call];
  const PlannedCall& planned = plan.calls[moment.call];
  if (moment.tail)
    return call.last_api + (call.end - call.last_api) * moment.slot / planned.tail_slots;
  return call.begin + (call.first_api - call.begin) * moment.slot / planned.lead_slots;
}

Clock::Clock(const Run& run, int world, int rank, std::uint64_t seed)
    : run_(run),
      rank_(static_cast<std::size_t>(rank)),
      seed_(mix(seed)),
      ranks_(static_cast<std::size_t>(world)),
      pending_(static_cast<std::size_t>(world)) {
  for (Rank& each : ranks_) each.recent.assign(kQueueDepth, 0);
}

// The mean is `time`: two draws make a triangle around it.
Nanos Clock::jittered(Nanos time, int per_mille, std::uint64_t what, std::size_t rank) const {
  const std::uint64_t draw = mix(seed_ ^ mix(step_ << 32 | what) ^ rank * 0xd1342543de82ef95u);
  const auto spread =
      static_cast<Nanos>(draw & 0xffff) + static_cast<Nanos>(draw >> 16 & 0xffff) - 0xffff;
  return time + time * per_mille / 1000 * spread / 0xffff;
}

const StepTimes& Clock::step(const StepPlan& plan) {
  times_.calls.resize(plan.calls.size());
  times_.launches.resize(plan.launches.size());
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) run_call(plan, i);
  ++step_;
  return times_;
}

bool Clock::is_late(std::size_t rank) const { return static_cast<int>(rank) == run_.late.rank; }

Nanos Clock::host_of(const PlannedCall& planned, std::uint32_t index, std::size_t rank) const {
  const Nanos usual = planned.call->host * run_.host_scale / 1000;
  const Nanos time = is_late(rank) ? usual * run_.late.host / 1000 : usual;
  return jittered(time, run_.host_jitter, index | kHostSalt, rank);
}

Nanos Clock::pause_of(const PlannedCall& planned, std::size_t rank) const {
  const bool now = step_ % static_cast<std::uint64_t>(run_.late.pause_every) == 0;
  return is_late(rank) && planned.call->pauses && now ? run_.late.pause : 0;
}

Nanos Clock::device_of(const Launch& launch, std::size_t rank) const {
  if (launch.collective || !is_late(rank)) return launch.device;
  const Nanos loaded = launch.by_load ? launch.device * run_.late.load / 1000 : launch.device;
  return loaded * run_.late.kernels / 1000;
}

void Clock::run_call(const StepPlan& plan, std::uint32_t index) {
  const PlannedCall& planned = plan.calls[index];
  CallTimes& mine = times_.calls[index];
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (r == rank_) mine.begin = ranks_[r].host;
    ranks_[r].host += lead_of(host_of(planned, index, r));
    if (r == rank_) mine.first_api = ranks_[r].host;
    ranks_[r].host += pause_of(planned, r);
  }
  for (std::uint32_t i = 0; i < planned.launches; ++i) {
    const std::uint32_t launch = planned.first_launch + i;
    run_launch(*plan.launches[launch], launch,
               {planned.graph ? planned.call->graph_launch : 0, i == 0});
    for (Rank& each : ranks_)
      each.host += i + 1 == planned.launches || planned.graph ? 0 : kBetweenLaunches;
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (r == rank_) mine.last_api = ranks_[r].host;
    const Nanos host = host_of(planned, index, r);
    ranks_[r].host += host - lead_of(host);
    if (r == rank_) mine.end = ranks_[r].host;
  }
}

// A device that another process has is back when its turn is over; turns differ by 40 %.
Nanos Clock::when_here(Nanos time) const {
  if (run_.away_every == 0) return time;
  return std::max(time, away(time / run_.away_every).end);
}

Clock::Turn Clock::away(std::int64_t turn) const {
  const auto draw = static_cast<Nanos>(mix(seed_ ^ static_cast<std::uint64_t>(turn)) % 800);
  const Nanos begin = turn * run_.away_every;
  return {begin, begin + run_.away_for * (600 + draw) / 1000};
}

// The earliest start of work that the host made reachable at `reachable`.
Nanos Clock::start(const Launch& launch, Rank& rank, Graph graph, Nanos reachable) const {
  const Nanos gap = graph.call != 0 && !graph.first ? run_.graph_gap : run_.gap;
  Nanos free = rank.device;
  if (launch.aside) free = std::max(free, rank.aside);
  if (launch.joins) free = std::max(free, rank.aside_before);
  return when_here(std::max(free + gap, reachable));
}

void Clock::wait(const Launch& launch, Rank& rank, LaunchTimes& times) const {
  const Nanos until =
      launch.api == Api::kEventSynchronize ? rank.event_before : std::max(rank.device, rank.aside);
  rank.host = times.api_end = std::max(times.api_end, until + kWakeUp);
  times.device_begin = times.device_end = 0;
}

void Clock::run_launch(const Launch& launch, std::uint32_t index, Graph graph) {
  const bool waits = launch.api == Api::kStreamSynchronize || launch.api == Api::kEventSynchronize;
  Nanos all_here = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    LaunchTimes& times = pending_[r];
    const Nanos usual = graph.call != 0 ? graph.call : launch.call;
    const Nanos call = is_late(r) ? usual * run_.late.host / 1000 : usual;
    if (graph.call == 0 || graph.first) {
      times.api_begin = rank.host;
      times.api_end =
          std::max(rank.host + jittered(call, run_.host_jitter, index + kHostSalt / 2, r),
                   rank.recent[rank.launched % kQueueDepth]);
      rank.host = times.api_end;
    }
    times.device_begin = start(launch, rank, graph, times.api_begin + run_.latency);
    all_here = std::max(all_here, times.device_begin);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    LaunchTimes& times = pending_[r];
    if (waits) {
      wait(launch, rank, times);
      continue;
    }
    // A collective's own time is the same on all ranks; who came early waits inside its kernel.
    const Nanos from = launch.collective ? all_here : times.device_begin;
    const std::size_t draw = launch.collective ? ranks_.size() : r;
    times.device_end = from + jittered(device_of(launch, r), run_.device_jitter, index, draw);
    if (launch.collective && run_.leave > 0)
      times.device_end += jittered(run_.leave / 2, 1'000, index | kLeaveSalt, r);
    if (launch.aside) rank.aside_before = rank.aside;
    (launch.aside ? rank.aside : rank.device) = times.device_end;
    if (launch.event) rank.event_before = std::exchange(rank.event, times.device_end);
    if (launch.blocking) {
      rank.host = times.api_end = std::max(times.api_end, times.device_end + kWakeUp);
    }
    if (graph.call == 0) rank.recent[rank.launched++ % kQueueDepth] = times.device_begin;
  }
  times_.launches[index] = pending_[rank_];
}

Nanos Clock::now() const {
  return std::max({ranks_[rank_].host, ranks_[rank_].device, ranks_[rank_].aside});
}

}  // namespace culprit::forge
