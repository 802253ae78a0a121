// Captures are told by the calls that begin and end them, else by the engine's mark around them. A
// captured launch runs nothing, so it is one without an activity; the thread that launches need not
// be the one that began the capture (a backward pass).
#include "run/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::CallRow;
using store::MarkKind;

constexpr Nanos kBefore = std::numeric_limits<Nanos>::min(),
                kAfter = std::numeric_limits<Nanos>::max();

bool of_one_process(const store::Trace& trace, std::size_t a, std::size_t b) {
  return trace.threads[a].pid == trace.threads[b].pid &&
         trace.threads[a].rank == trace.threads[b].rank;
}

// The windows of one thread. Captures on several streams at once are one.
void add_windows(const store::Trace& trace, const Links& links, std::uint32_t thread,
                 std::vector<CaptureWindow>& windows) {
  int open = 0;
  for (std::uint32_t k = links.calls.start[thread]; k < links.calls.start[thread + 1]; ++k) {
    const std::uint32_t call = links.calls.rows[k];
    const Api api = links.api_of(trace, CallRow{call});
    if (api == Api::kBeginCapture && open++ == 0)
      windows.push_back({thread, trace.calls.begin[call], kAfter});
    if (api != Api::kEndCapture) continue;
    if (open == 0 && (windows.empty() || windows.back().thread != thread))
      windows.push_back({thread, kBefore, trace.calls.begin[call]});
    if (open > 0 && --open == 0) windows.back().end = trace.calls.begin[call];
  }
}

std::vector<CaptureWindow> marked_windows(const store::Trace& trace) {
  std::vector<CaptureWindow> windows;
  for (std::size_t row = 0; row < trace.marks.size(); ++row) {
    if (trace.marks.kind[row] != MarkKind::kHost) continue;
    const auto mark = read_mark(trace.strings[trace.marks.name[row]]);
    if (!mark || mark->level != MarkLevel::kCapture) continue;
    const Nanos begin = trace.marks.begin[row];
    windows.push_back({trace.marks.thread[row].index, begin, end_of(begin, trace.marks.dur[row])});
  }
  return windows;
}

// Launches, copies and sets of a window that run nothing, in order.
std::vector<Launched> launches_in(const store::Trace& trace, const Links& links,
                                  const CaptureWindow& window) {
  const auto& calls = trace.calls;
  std::vector<Launched> launches;
  for (std::uint32_t t = 0; t < links.calls.count(); ++t) {
    if (!of_one_process(trace, t, window.thread)) continue;
    const auto last = links.calls.rows.begin() + links.calls.start[t + 1];
    auto at =
        std::lower_bound(links.calls.rows.begin() + links.calls.start[t], last, window.begin,
                         [&](std::uint32_t call, Nanos time) { return calls.begin[call] < time; });
    Nanos launching_until = kBefore;  // a driver call inside a runtime call is the same launch
    for (; at != last && calls.begin[*at] < window.end; ++at) {
      const Api api = links.api_of(trace, CallRow{*at});
      if (links.has_activity[*at] != 0 || calls.begin[*at] < launching_until) continue;
      if (api != Api::kKernelLaunch && api != Api::kCopyOrSet) continue;
      launching_until = end_of(calls.begin[*at], calls.dur[*at]);
      const bool sets = trace.strings[calls.name[*at]].find("emset") != std::string_view::npos;
      launches.push_back({CallRow{*at}, calls.kernel[*at],
                          api == Api::kKernelLaunch ? store::DeviceKind::kKernel
                          : sets                    ? store::DeviceKind::kMemset
                                                    : store::DeviceKind::kMemcpy});
    }
  }
  std::stable_sort(launches.begin(), launches.end(), [&](const Launched& a, const Launched& b) {
    return calls.begin[a.call.index] < calls.begin[b.call.index];
  });
  return launches;
}

// The engine's mark around a window: the innermost one that is open where the window begins (ends).
void name_script(const store::Trace& trace, const CaptureWindow& window, Script& script) {
  const Nanos at = window.begin == kBefore ? window.end : window.begin;
  Nanos innermost = kBefore;
  for (std::size_t row = 0; row < trace.marks.size(); ++row) {
    const Nanos begin = trace.marks.begin[row];
    if (trace.marks.kind[row] != MarkKind::kHost || begin > at || begin < innermost) continue;
    if (end_of(begin, trace.marks.dur[row]) < at) continue;
    const auto mark = read_mark(trace.strings[trace.marks.name[row]]);
    if (!mark || mark->level != MarkLevel::kCapture) continue;
    innermost = begin;
    script.name = trace.strings[trace.marks.name[row]];
    script.size = mark->batch;
  }
}

// "capture_traces/bs_32_q_1_rank0.json.gz": some engines tell the batch in the file's name alone.
std::optional<std::int64_t> size_in_name(std::string_view path) {
  const std::string_view name = path.substr(std::min(path.size(), path.rfind('/') + 1));
  const std::size_t at = name.find("bs_");
  std::int64_t size = 0;
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '_' && name[at - 1] != '-'))
    return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + at + 3, name.data() + name.size(), size);
  return error == std::errc{} && size > 0 ? std::optional(size) : std::nullopt;
}

// The kernels of a stretch of activities, in the order of their launches.
Script eager_script(const Run& run, std::size_t first, std::size_t last) {
  const store::Trace& trace = *run.trace;
  Script script;
  script.captured = false;
  for (std::size_t i = first; i < last; ++i) {
    const Activity& a = run.activities[i];
    const Group& group = run.groups[a.group.index];
    if (a.call.valid() && !a.in_graph)
      script.launches.push_back({a.call, group.name, group.device_kind, group.grid});
  }
  std::stable_sort(script.launches.begin(), script.launches.end(),
                   [&](const Launched& a, const Launched& b) {
                     return trace.calls.begin[a.call.index] < trace.calls.begin[b.call.index];
                   });
  return script;
}

// Warm-up runs in front of a capture have no mark of their own; engines wait for the device between
// them.
void add_stretches(const Run& run, std::vector<Script>& scripts) {
  const store::Trace& trace = *run.trace;
  std::vector<Nanos> waits;
  for (std::size_t call = 0; call < trace.calls.size(); ++call)
    if (trace.strings[trace.calls.name[call]].find("Synchronize") != std::string_view::npos)
      waits.push_back(trace.calls.begin[call]);
  std::sort(waits.begin(), waits.end());
  const Script all = eager_script(run, 0, run.activities.size());
  auto wait = waits.begin();
  bool fresh = true;
  for (const Launched& launched : all.launches) {
    for (; wait != waits.end() && *wait <= trace.calls.begin[launched.call.index]; ++wait)
      fresh = true;
    if (fresh) {
      scripts.emplace_back();
      scripts.back().captured = false;
      scripts.back().name = "warm-up";
    }
    fresh = false;
    scripts.back().launches.push_back(launched);
  }
}

}  // namespace

std::vector<CaptureWindow> find_captures(const store::Trace& trace, const Links& links) {
  std::vector<CaptureWindow> windows;
  for (std::uint32_t t = 0; t < links.calls.count(); ++t) add_windows(trace, links, t, windows);
  if (windows.empty()) windows = marked_windows(trace);
  return windows;
}

void read_captures(Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  for (const CaptureWindow& window : find_captures(trace, links)) {
    if (trace.threads[window.thread].rank != run.rank) continue;
    Script script;
    script.launches = launches_in(trace, links, window);
    if (script.launches.empty()) continue;
    script.cut_front = window.begin == kBefore;
    script.cut_back = window.end == kAfter;
    name_script(trace, window, script);
    if (!script.size) script.size = size_in_name(trace.info.path);
    run.scripts.push_back(std::move(script));
  }
}

void read_eager(Run& run) {
  if (run.how == StepsHow::kWholeTrace) return add_stretches(run, run.scripts);
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    const Step& step = run.steps[s];
    Script script = eager_script(run, static_cast<std::size_t>(step.first),
                                 static_cast<std::size_t>(step.last));
    script.name = fmt::format("step {}", s);
    script.size = step.batch;
    script.tokens = step.tokens;
    if (!script.launches.empty()) run.scripts.push_back(std::move(script));
  }
}

}  // namespace culprit::run
