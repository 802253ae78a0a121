#include "evidence/host.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/median.h"
#include "known/kernel_name.h"

namespace culprit::evidence {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Names repeat; each distinct one is looked at once.
class ByName {
 public:
  ByName(const store::Strings& strings, bool (*test)(std::string_view))
      : strings_(strings), test_(test), known_(strings.size(), kUnseen) {}
  bool operator()(store::StringId name) {
    if (!name.valid()) return false;
    std::uint8_t& answer = known_[name.index];
    if (answer == kUnseen) answer = test_(strings_[name]) ? kYes : kNo;
    return answer == kYes;
  }

 private:
  enum : std::uint8_t { kUnseen, kNo, kYes };
  const store::Strings& strings_;
  bool (*test_)(std::string_view);
  std::vector<std::uint8_t> known_;
};

}  // namespace

bool waits_by_name(std::string_view api) {
  if (contains(api, "Synchronize")) return true;  // cuda*, cu*, hip*, ze*, aclrt*
  for (std::string_view name : {"QueueFinish", "urEventWait", "piEventsWait"}) {  // SYCL's runtimes
    if (contains(api, name)) return true;
  }
  // cudaFree and hipFree wait for the whole device; the pool's *FreeAsync does not.
  for (std::string_view name : {"cudaFree", "hipFree", "cuMemFree", "cuMemFree_v2"}) {
    if (api == name) return true;
  }
  const bool copies = contains(api, "Memcpy");
  // hipMemcpyWithStream enqueues and then waits for its stream (ROCm's hipMemcpy family).
  return copies && !contains(api, "Enqueue") && !contains(api, "Append") &&
         !contains(api, "Async") && !contains(api, "Peer") && !contains(api, "Param") &&
         !contains(api, "Node");
}

HostView::HostView(const run::Run& run) : run_(run) {
  order_by_thread();
  find_waiting();
  measure_launches();
}

Nanos HostView::end(store::CallRow call) const {
  const auto& calls = run_.trace->calls;
  return calls.begin[call.index] + calls.dur[call.index];
}

void HostView::order_by_thread() {
  const auto& calls = run_.trace->calls;
  starts_.assign(run_.trace->threads.size() + 1, 0);
  for (const store::ThreadId thread : calls.thread) {
    if (thread.index + 1 < starts_.size()) ++starts_[thread.index + 1];
  }
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  by_thread_.resize(starts_.back());
  std::vector<std::size_t> place(starts_.begin(), starts_.end() - 1);
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const std::size_t thread = calls.thread[row].index;
    if (thread < place.size()) by_thread_[place[thread]++] = store::CallRow(row);
  }
  const auto earlier = [&](store::CallRow a, store::CallRow b) {
    return calls.begin[a.index] < calls.begin[b.index];
  };
  for (std::size_t thread = 0; thread < place.size(); ++thread) {
    const auto from = by_thread_.begin() + static_cast<std::ptrdiff_t>(starts_[thread]);
    const auto to = by_thread_.begin() + static_cast<std::ptrdiff_t>(starts_[thread + 1]);
    if (!std::is_sorted(from, to, earlier)) std::stable_sort(from, to, earlier);
  }
}

void HostView::find_waiting() {
  const store::Trace& trace = *run_.trace;
  waits_.assign(trace.calls.size(), false);
  launched_.assign(trace.calls.size(), 0);
  std::vector<bool> pageable(run_.groups.size(), false);
  for (std::size_t i = 0; i < run_.groups.size(); ++i) {
    const run::Group& group = run_.groups[i];
    if (group.device_kind != store::DeviceKind::kMemcpy) continue;
    const known::CopyInfo copy = known::decode_copy(trace.strings.or_empty(group.name));
    // To the device, pageable data is staged and the call returns early; from it, it must wait.
    pageable[i] = copy.pageable && copy.direction == known::CopyInfo::Direction::kDtoH;
  }
  for (const run::Activity& activity : run_.activities) {
    if (!activity.call.valid()) continue;
    std::uint8_t& launched = launched_[activity.call.index];
    if (launched < kMany) ++launched;
    if (pageable[activity.group.index]) waits_[activity.call.index] = true;
  }
  ByName waiting(trace.strings, waits_by_name);
  std::vector<std::uint8_t> unrecorded(trace.calls.size(), 0);
  for (const store::CallRow call : run_.graphs_without_kernels) unrecorded[call.index] = kGraph;
  for (const store::CallRow call : run_.launches_without_kernel) unrecorded[call.index] = kKernel;
  for (std::size_t place = 0; place < by_thread_.size(); ++place) {
    const store::CallRow call = by_thread_[place];
    if (waiting(trace.calls.name[call.index])) waits_[call.index] = true;
    if (unrecorded[call.index] == kGraph) unrecorded_graphs_.push_back(place);
    if (unrecorded[call.index] == kKernel) unrecorded_kernels_.push_back(place);
  }
}

void HostView::measure_launches() {
  const auto& calls = run_.trace->calls;
  std::vector<Nanos> spacings, costs;
  for (std::size_t thread = 0; thread + 1 < starts_.size(); ++thread) {
    store::CallRow last;
    for (std::size_t place = starts_[thread]; place < starts_[thread + 1]; ++place) {
      const store::CallRow call = by_thread_[place];
      if (launched_[call.index] == 0) continue;
      if (last.valid()) spacings.push_back(calls.begin[call.index] - calls.begin[last.index]);
      costs.push_back(calls.dur[call.index]);
      last = call;
    }
  }
  launch_spacing_ = upper_median(std::move(spacings));
  launch_cost_ = upper_median(std::move(costs));
  // What is usual in a recording is told by all of it, not by the step that was cut out.
  const auto& slice = run_.trace->info.slice;
  if (slice && slice->launch_spacing > 0) launch_spacing_ = slice->launch_spacing;
  if (slice && slice->launch_cost > 0) launch_cost_ = slice->launch_cost;
}

std::pair<std::size_t, std::size_t> HostView::rows_of(store::ThreadId thread) const {
  if (!thread.valid() || thread.index + 1 >= starts_.size()) return {0, 0};
  return {starts_[thread.index], starts_[thread.index + 1]};
}

std::size_t HostView::first_after(store::ThreadId thread, Nanos t) const {
  const auto [from, to] = rows_of(thread);
  const auto found = std::upper_bound(
      by_thread_.begin() + static_cast<std::ptrdiff_t>(from),
      by_thread_.begin() + static_cast<std::ptrdiff_t>(to), t,
      [&](Nanos at, store::CallRow row) { return at < run_.trace->calls.begin[row.index]; });
  return static_cast<std::size_t>(found - by_thread_.begin());
}

store::CallRow HostView::last_begun(store::ThreadId thread, Nanos t) const {
  const std::size_t after = first_after(thread, t);
  return after > rows_of(thread).first ? by_thread_[after - 1] : store::CallRow{};
}

Nanos HostView::longest_silence(store::ThreadId thread, Nanos from, Nanos to) const {
  const store::CallRow running = last_begun(thread, from);
  Nanos quiet_since = running.valid() ? std::max(from, end(running)) : from;
  Nanos longest = 0;
  const std::size_t stop = rows_of(thread).second;
  for (std::size_t place = first_after(thread, from); place < stop; ++place) {
    const store::CallRow call = by_thread_[place];
    const Nanos begin = run_.trace->calls.begin[call.index];
    if (begin >= to) break;
    longest = std::max(longest, begin - quiet_since);
    quiet_since = std::max(quiet_since, end(call));
  }
  return std::max(longest, to - quiet_since);
}

bool HostView::any_between(const std::vector<std::size_t>& places, store::CallRow first,
                           store::CallRow last) const {
  if (places.empty() || !first.valid() || !last.valid()) return false;
  const auto& calls = run_.trace->calls;
  const store::ThreadId thread = calls.thread[first.index];
  if (thread != calls.thread[last.index]) return false;
  const std::size_t from = first_after(thread, calls.begin[first.index]);
  const std::size_t to = first_after(thread, calls.begin[last.index]);
  const auto found = std::lower_bound(places.begin(), places.end(), from);
  return found != places.end() && *found < to;
}

bool HostView::unrecorded_graph_between(store::CallRow first, store::CallRow last) const {
  return any_between(unrecorded_graphs_, first, last);
}

bool HostView::unrecorded_kernel_between(store::CallRow first, store::CallRow last) const {
  return any_between(unrecorded_kernels_, first, last);
}

bool HostView::unrecorded_kernel_behind(store::CallRow call) const {
  if (unrecorded_kernels_.empty() || !call.valid()) return false;
  const auto& calls = run_.trace->calls;
  const store::ThreadId thread = calls.thread[call.index];
  const std::size_t from = first_after(thread, calls.begin[call.index]);
  const auto found = std::lower_bound(unrecorded_kernels_.begin(), unrecorded_kernels_.end(), from);
  return found != unrecorded_kernels_.end() && *found < rows_of(thread).second;
}

std::span<const store::CallRow> HostView::calls_of(store::ThreadId thread, Nanos from,
                                                   Nanos to) const {
  const std::size_t first = first_after(thread, from - 1), last = first_after(thread, to - 1);
  return {by_thread_.data() + first, last - first};
}

// A launch costs microseconds. One that takes far longer than usual waits for room in the queue of
// launches (1,024 deep in CUDA); graph launches are long by nature and launch many activities.
bool HostView::blocked(store::CallRow call) const {
  constexpr Nanos kBlockedFactor = 50;
  return launched_[call.index] == 1 &&
         run_.trace->calls.dur[call.index] > kBlockedFactor * launch_cost_;
}

Nanos HostView::own_time(store::ThreadId thread, Nanos from, Nanos to) const {
  const auto& calls = run_.trace->calls;
  Nanos waited = 0;
  const auto count = [&](store::CallRow call) {
    const Nanos inside = std::min(end(call), to) - std::max(calls.begin[call.index], from);
    if (waits_[call.index] || blocked(call)) waited += std::max<Nanos>(0, inside);
  };
  if (const store::CallRow running = last_begun(thread, from); running.valid()) count(running);
  const std::size_t stop = rows_of(thread).second;
  for (std::size_t place = first_after(thread, from); place < stop; ++place) {
    if (calls.begin[by_thread_[place].index] >= to) break;
    count(by_thread_[place]);
  }
  return std::max<Nanos>(0, to - from - waited);
}

}  // namespace culprit::evidence
