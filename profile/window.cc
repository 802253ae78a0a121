#include "profile/window.h"

#include <algorithm>

namespace culprit::profile::detail {
namespace {

template <class Look>
void for_each_record(const Logs& logs, Look look) {
  for (const auto& log : logs) detail::for_each_record(*log, look);
}

Ticks end_of_span(const Record& record) { return record.end.load(std::memory_order_acquire); }

void find_steps(const Logs& logs, Window& window) {
  for_each_record(logs, [&](const Record& record) {
    window.open += end_of_span(record) == 0 ? 1 : 0;
    if (record.kind == Kind::kStep)
      window.steps.push_back({record.begin, end_of_span(record), &record});
  });
  std::sort(window.steps.begin(), window.steps.end(),
            [](const StepRow& a, const StepRow& b) { return a.begin < b.begin; });
  window.steps_begun = static_cast<std::int64_t>(window.steps.size());
}

// Index of the last step that begins before; -1: none does.
std::ptrdiff_t step_before(const Window& window, Ticks at) {
  const auto next =
      std::upper_bound(window.steps.begin(), window.steps.end(), at,
                       [](Ticks time, const StepRow& step) { return time < step.begin; });
  return next - window.steps.begin() - 1;
}

void add_launches(const Log& log, Window& window, std::vector<LaunchRow>& launches) {
  std::uint64_t most = 0;  // the log's own thread may be giving ids
  detail::for_each_record(log, [&](const Record& record) {
    if (record.kind == Kind::kLaunch) most = std::max(most, record.id / Log::kMost);
  });
  launches.resize(most + 1);
  detail::for_each_record(log, [&](const Record& record) {
    if (record.kind != Kind::kLaunch) return;
    LaunchRow& launch = launches[record.id / Log::kMost];
    launch.begin = record.begin;
    launch.op = record.parent;
    launch.missing = record.count;
    const std::ptrdiff_t step = step_before(window, record.begin);
    if (step >= 0 && record.begin < window.steps[static_cast<std::size_t>(step)].end)
      launch.step = static_cast<std::uint32_t>(step);
  });
}

void find_launches(const Logs& logs, Window& window) {
  window.launches.resize(logs.size());
  for (std::size_t i = 0; i < logs.size(); ++i) add_launches(*logs[i], window, window.launches[i]);
  for_each_record(logs, [&](const Record& record) {
    if (!is_work(record.kind) || end_of_span(record) == 0) return;
    LaunchRow* launch = window.launch(record.id);
    if (launch != nullptr && launch->missing > 0) --launch->missing;
  });
}

// Where the first step begins that is not whole; the window's end if all are.
Ticks whole_until(const Window& window, Ticks closed_at) {
  std::vector<std::uint8_t> whole;
  for (const StepRow& step : window.steps)
    whole.push_back(step.end != 0 && step.end <= closed_at ? 1 : 0);
  for (const auto& launches : window.launches) {
    for (const LaunchRow& launch : launches) {
      const std::ptrdiff_t step = step_before(window, launch.begin);
      if (launch.missing > 0 && step >= 0) whole[static_cast<std::size_t>(step)] = 0;
    }
  }
  const auto broken = std::find(whole.begin(), whole.end(), 0);
  return broken == whole.end()
             ? closed_at
             : window.steps[static_cast<std::size_t>(broken - whole.begin())].begin;
}

void count_lost(const Logs& logs, Ticks closed_at, Window& window) {
  for (const auto& log : logs) window.refused += static_cast<std::int64_t>(log->refused.get());
  for (const auto& launches : window.launches)
    for (const LaunchRow& launch : launches) window.missing += launch.missing;
  window.lost = window.refused;
  for_each_record(logs, [&](const Record& record) {
    if (window.keeps(record)) return;
    const LaunchRow* launch = is_work(record.kind) ? window.launch(record.id) : nullptr;
    if ((launch != nullptr ? launch->begin : record.begin) < closed_at) ++window.lost;
  });
}

}  // namespace

LaunchRow* Window::launch(std::uint64_t id) {
  const std::uint64_t log = id % Log::kMost, number = id / Log::kMost;
  if (log >= launches.size() || number >= launches[log].size()) return nullptr;
  LaunchRow& launch = launches[log][number];
  return launch.begin != 0 ? &launch : nullptr;
}

const LaunchRow* Window::launch(std::uint64_t id) const {
  return const_cast<Window*>(this)->launch(id);
}

bool Window::keeps(const Record& record) const {
  if (!is_work(record.kind)) return record.begin < end;
  const LaunchRow* its = launch(record.id);
  return its != nullptr && its->kept && end_of_span(record) != 0;
}

Ticks Window::end_of(const Record& record) const {
  const Ticks its = end_of_span(record);
  return std::max(its != 0 ? its : end, record.begin);
}

Window look_at(const Logs& logs, Ticks closed_at) {
  Window window;
  find_steps(logs, window);
  find_launches(logs, window);
  window.end = whole_until(window, closed_at);
  for (auto& launches : window.launches)
    for (LaunchRow& launch : launches) launch.kept = launch.begin != 0 && launch.begin < window.end;
  count_lost(logs, closed_at, window);
  const auto cut = std::find_if(window.steps.begin(), window.steps.end(),
                                [&](const StepRow& step) { return step.begin >= window.end; });
  window.steps.erase(cut, window.steps.end());
  return window;
}

}  // namespace culprit::profile::detail
