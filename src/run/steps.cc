// Steps by mark. A host mark owns the activities launched under it, through correlation: with
// overlap scheduling the host is a step ahead of the device, so its times say nothing about device
// times. A step begins with its first activity and ends where the next one begins; the last ends
// with its last activity or its mark, whichever is later. Of nested marks the outer counts.
#include <algorithm>
#include <array>
#include <map>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::MarkKind;
using store::StringId;

constexpr Nanos kRounding = 1'000;  // old traces hold whole microseconds
constexpr std::int64_t kShown = 5;  // names of unknown marks
constexpr std::uint32_t kNoMark = 0xffffffffU;

struct Mark {
  Nanos begin = 0, end = 0;
  std::uint32_t thread = 0;
  StringId name;
  StepMark step;
  bool holds(const Mark& inner) const { return inner.begin < end && inner.end <= end + kRounding; }
};

std::vector<Mark> read_marks(const store::Trace& trace, MarkKind kind) {
  std::vector<Mark> marks;
  const auto& table = trace.marks;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.kind[row] != kind) continue;
    const auto step = read_mark(trace.strings[table.name[row]]);
    if (!step || step->level == MarkLevel::kCapture) continue;
    const Nanos begin = table.begin[row];
    marks.push_back(
        {begin, end_of(begin, table.dur[row]), table.thread[row].index, table.name[row], *step});
  }
  return marks;
}

bool outer_first(const Mark& a, const Mark& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  return a.end > b.end;
}

// What marks inside a step tell about it: a forward pass says what it is; draft and verify passes
// together are one round of speculative decoding.
void learn_from(const StepMark& inner, StepMark& outer) {
  const bool round = inner.kind == StepKind::kDraft || inner.kind == StepKind::kVerify;
  if (outer.kind == StepKind::kUnknown && inner.kind != StepKind::kUnknown) {
    outer.kind = round ? StepKind::kDecode : inner.kind;
    outer.batch = inner.batch;
    outer.tokens = inner.tokens;
    return;
  }
  if (round || inner.kind != outer.kind) return;
  if (!outer.batch) outer.batch = inner.batch;
  if (!outer.tokens) outer.tokens = inner.tokens;
}

bool is_forward(const StepMark& mark) {
  return mark.level == MarkLevel::kEngine && mark.kind != StepKind::kDraft &&
         mark.kind != StepKind::kVerify && mark.kind != StepKind::kIdle;
}

// Which of `marks`, sorted by their begin, are forward passes.
std::vector<std::size_t> forward_passes(const std::vector<Mark>& marks) {
  std::vector<std::size_t> forward;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (is_forward(marks[i].step)) forward.push_back(i);
  return forward;
}

// A profiler range may hold many steps. One round never holds two decode passes; up to two forward
// passes are one round (prefill of the target and of the draft model). Looks at three passes at
// most, so that any number of ranges around any number of marks costs little.
bool spans_steps(const std::vector<Mark>& marks, const std::vector<std::size_t>& forward_passes,
                 std::size_t generic) {
  int forward = 0, decode = 0;
  auto next = std::upper_bound(forward_passes.begin(), forward_passes.end(), generic);
  while (next != forward_passes.end() && marks[*next].begin < marks[generic].end) {
    ++forward;
    decode += marks[*next].step.kind == StepKind::kDecode ? 1 : 0;
    if (decode >= 2 || forward >= 3) return true;
    const Nanos covered = marks[*next].end;  // engine marks inside engine marks count once
    next = std::partition_point(next + 1, forward_passes.end(),
                                [&](std::size_t i) { return marks[i].begin < covered; });
  }
  return false;
}

// `marks` of one thread, outer ones first.
std::vector<Mark> outermost(const std::vector<Mark>& marks) {
  const std::vector<std::size_t> forward = forward_passes(marks);
  std::vector<Mark> outer;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].step.level == MarkLevel::kGeneric && spans_steps(marks, forward, i)) continue;
    if (!outer.empty() && outer.back().holds(marks[i]))
      learn_from(marks[i].step, outer.back().step);
    else
      outer.push_back(marks[i]);
  }
  return outer;
}

// Outer host marks, by thread; `by_thread` tells which slice holds a thread's marks. A thread
// without marks shares those of its process where one thread only has some: the backward pass and
// helper threads launch on behalf of the marked one.
struct HostMarks {
  std::vector<Mark> marks;
  std::vector<std::uint32_t> first, last;  // by thread, into marks
};

// The only marked thread of a thread's process; of a process without operators, which is how a
// runtime is drawn beside its framework, the only one under its label.
class MarkedTwins {
 public:
  MarkedTwins(const store::Trace& trace, const std::vector<std::uint32_t>& marked) : trace_(trace) {
    for (const std::uint32_t thread : marked) {
      const store::Thread& own = trace.threads[thread];
      add(under_label_, own.rank, thread);
      add(in_process_, std::pair(own.rank, own.pid), thread);
    }
  }
  std::uint32_t of(const Processes& processes, std::uint32_t thread) const {
    const store::Thread& own = trace_.threads[thread];
    const auto process = in_process_.find({own.rank, own.pid});
    if (process != in_process_.end()) return process->second;
    const auto label = under_label_.find(own.rank);
    const bool runtime = !processes.has_operators(processes.of(store::ThreadId(thread)));
    return label != under_label_.end() && runtime ? label->second : kNoMark;
  }

 private:
  // kNoMark where there are several.
  template <class Key>
  static void add(std::map<Key, std::uint32_t>& twins, const Key& key, std::uint32_t thread) {
    const auto [at, fresh] = twins.try_emplace(key, thread);
    if (!fresh) at->second = kNoMark;
  }
  const store::Trace& trace_;
  std::map<StringId, std::uint32_t> under_label_;
  std::map<std::pair<StringId, StringId>, std::uint32_t> in_process_;
};

HostMarks host_marks(const store::Trace& trace, const Processes& processes) {
  std::vector<Mark> all = read_marks(trace, MarkKind::kHost);
  std::stable_sort(all.begin(), all.end(), [](const Mark& a, const Mark& b) {
    return a.thread != b.thread ? a.thread < b.thread : outer_first(a, b);
  });
  HostMarks host;
  host.first.assign(trace.threads.size(), 0);
  host.last.assign(trace.threads.size(), 0);
  std::vector<std::uint32_t> marked;  // threads
  for (auto from = all.begin(); from != all.end();) {
    const auto to =
        std::find_if(from, all.end(), [&](const Mark& m) { return m.thread != from->thread; });
    const std::uint32_t thread = from->thread;
    const std::vector<Mark> outer = outermost({from, to});
    host.first[thread] = static_cast<std::uint32_t>(host.marks.size());
    host.marks.insert(host.marks.end(), outer.begin(), outer.end());
    host.last[thread] = static_cast<std::uint32_t>(host.marks.size());
    marked.push_back(thread);
    from = to;
  }
  const MarkedTwins twins(trace, marked);
  for (std::uint32_t t = 0; t < trace.threads.size(); ++t) {
    if (host.first[t] != host.last[t]) continue;
    const std::uint32_t twin = twins.of(processes, t);
    if (twin == kNoMark) continue;
    host.first[t] = host.first[twin];
    host.last[t] = host.last[twin];
  }
  return host;
}

std::vector<std::uint32_t> mark_of_calls(const store::Trace& trace, const Links& links,
                                         const HostMarks& host) {
  std::vector<std::uint32_t> mark_of(trace.calls.size(), kNoMark);
  for (std::size_t t = 0; t < links.calls.count(); ++t) {
    std::uint32_t mark = host.first[t];
    for (std::uint32_t k = links.calls.start[t]; k < links.calls.start[t + 1]; ++k) {
      const std::uint32_t call = links.calls.rows[k];
      const Nanos at = trace.calls.begin[call];
      while (mark < host.last[t] && host.marks[mark].end <= at) ++mark;
      if (mark == host.last[t]) break;
      if (host.marks[mark].begin <= at) mark_of[call] = mark;
    }
  }
  return mark_of;
}

struct Owned {  // what a mark owns on the device
  Nanos first = 0, last = 0;
  std::int64_t activities = 0;
  void add(const Activity& a) {
    if (activities++ == 0) first = a.begin;
    last = std::max(last, a.end);
  }
};

// Steps from marks and what they own, in order of their first activity; returns the mark of each.
std::vector<std::uint32_t> make_steps(const std::vector<Mark>& marks,
                                      const std::vector<Owned>& owned, Run& run) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t m = 0; m < marks.size(); ++m)
    if (owned[m].activities > 0) order.push_back(m);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return owned[a].first < owned[b].first; });
  const auto same_begin = [&](auto a, auto b) { return owned[a].first == owned[b].first; };
  order.erase(std::unique(order.begin(), order.end(), same_begin), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Mark& mark = marks[order[i]];
    Step step;
    step.begin = owned[order[i]].first;
    step.end =
        i + 1 < order.size() ? owned[order[i + 1]].first : std::max(owned[order[i]].last, mark.end);
    step.kind = mark.step.kind;
    step.batch = mark.step.batch;
    step.tokens = mark.step.tokens;
    step.mark = std::string(run.trace->strings[mark.name]);
    run.steps.push_back(std::move(step));
  }
  return order;
}

bool steps_from_host_marks(Run& run, const Links& links, StepLaunches& launches) {
  const store::Trace& trace = *run.trace;
  const HostMarks host = host_marks(trace, links.processes);
  if (host.marks.empty()) return false;
  const std::vector<std::uint32_t> mark_of = mark_of_calls(trace, links, host);
  std::vector<Owned> owned(host.marks.size());
  for (const Activity& a : run.activities)
    if (a.call.valid() && mark_of[a.call.index] != kNoMark) owned[mark_of[a.call.index]].add(a);
  const std::vector<std::uint32_t> order = make_steps(host.marks, owned, run);
  std::vector<StepIndex> step_of_mark(host.marks.size(), -1);
  for (std::size_t s = 0; s < order.size(); ++s) {
    step_of_mark[order[s]] = static_cast<StepIndex>(s);
    launches.launched.push_back(owned[order[s]].activities);
  }
  if (order.empty()) return false;
  launches.step_of_call.assign(trace.calls.size(), -1);
  for (std::size_t call = 0; call < mark_of.size(); ++call)
    if (mark_of[call] != kNoMark) launches.step_of_call[call] = step_of_mark[mark_of[call]];
  return true;
}

// The device copy of a mark is drawn once on every stream it has work on.
bool is_clone(const Mark& a, const Mark& b) {
  if (a.name != b.name || a.thread == b.thread) return false;
  const Nanos overlap = std::min(a.end, b.end) - std::max(a.begin, b.begin);
  return 2 * overlap > std::min(a.end - a.begin, b.end - b.begin);
}

std::vector<Mark> device_marks(const Run& run) {
  std::vector<std::uint8_t> of_device(run.trace->threads.size(), 0);
  for (const Activity& a : run.activities)
    of_device[run.trace->device.thread[a.row.index].index] = 1;
  std::vector<Mark> all = read_marks(*run.trace, MarkKind::kDevice);
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const Mark& m) { return of_device[m.thread] == 0; }),
            all.end());
  std::stable_sort(all.begin(), all.end(), outer_first);
  std::vector<Mark> merged;
  for (const Mark& mark : all) {
    if (!merged.empty() && is_clone(merged.back(), mark))
      merged.back().end = std::max(merged.back().end, mark.end);
    else
      merged.push_back(mark);
  }
  return outermost(merged);
}

bool steps_from_device_marks(Run& run) {
  constexpr Nanos kDrawnWider =
      2;  // device marks begin 1 ns early and are 2 ns longer than content
  std::vector<Mark> marks = device_marks(run);
  if (marks.empty()) return false;
  std::vector<Owned> owned(marks.size());
  std::size_t next = 0;
  for (std::size_t m = 0; m < marks.size(); ++m) {
    while (next < run.activities.size() && run.activities[next].begin < marks[m].begin) ++next;
    for (; next < run.activities.size() && run.activities[next].begin < marks[m].end; ++next)
      owned[m].add(run.activities[next]);
    if (marks[m].end - owned[m].last <= kDrawnWider) marks[m].end = owned[m].last;
  }
  return !make_steps(marks, owned, run).empty();
}

// Ranges that libraries record around their own work; nobody means them as steps.
bool is_library_mark(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes{
      "nccl", "gloo:", "## Call CompiledFxGraph", "Optimizer.", "enumerate(DataLoader)", "PyTorch"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

bool find_marked_steps(Run& run, const Links& links, StepLaunches& launches) {
  if (!steps_from_host_marks(run, links, launches) && !steps_from_device_marks(run)) return false;
  run.how = StepsHow::kMarked;
  return true;
}

void note_marks_seen(Run& run) {
  const store::Trace& trace = *run.trace;
  std::vector<std::uint8_t> seen(trace.strings.size(), 0);
  std::int64_t names = 0;
  std::string list;
  for (const StringId name : trace.marks.name) {
    if (seen[name.index] != 0) continue;
    seen[name.index] = 1;
    if (is_library_mark(trace.strings[name]) || read_mark(trace.strings[name])) continue;
    if (++names <= kShown)
      list += (names == 1 ? "\"" : ", \"") + short_text(trace.strings[name]) + "\"";
  }
  if (names == 0) return;
  if (names > kShown) list += ", ...";
  add_note(run, "unknown-marks", store::Severity::kInfo, names,
           "no mark in the file is known as a step mark; " +
               counted(names, "name was seen: ", "names were seen: ") + list);
}

}  // namespace culprit::run
