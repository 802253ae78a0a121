// Which events of a file a slice holds.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "slice/slice.h"

namespace culprit::slice {
namespace {

using run::Run;
using store::CallRow;
using store::ThreadId;

Nanos end_of(Nanos begin, Nanos dur) {
  constexpr Nanos kLongest = Nanos{1} << 61;
  return begin + std::clamp<Nanos>(dur, 0, kLongest);
}

// Of the host's events before the first launch: what a thread had just done tells why it came late.
constexpr Nanos kBefore = 10'000;

bool overlaps(Nanos begin, Nanos end, const store::Span& span) {
  return begin <= span.end && end >= span.begin;
}

// Rows by table, and by thread the times at which an arrow may begin or end.
class Chosen {
 public:
  Chosen(const Run& run, const Window& window) : run_(run), trace_(*run.trace), window_(window) {
    device_.resize(trace_.device.size());
    calls_.resize(trace_.calls.size());
    ops_.resize(trace_.ops.size());
    frames_.resize(trace_.frames.size());
    marks_.resize(trace_.marks.size());
    syncs_.resize(trace_.syncs.size());
    ends_.resize(trace_.threads.size());
    host_ = window.span;
  }

  void choose() {
    choose_work();
    host_.begin -= kBefore;
    find_foreign_launches();
    choose_host();
    choose_ranges();
    choose_started();
    for (std::size_t call = 0; call < calls_.size(); ++call)
      if (calls_[call] != 0) choose_around(call);
    for (const run::Activity& a : run_.activities)
      if (device_[a.row.index] != 0) choose_with_parents(a.op);
  }

  Events events() {
    const store::Places& places = trace_.places;
    std::vector<std::pair<std::int64_t, bool>> found;  // byte, is an arrow's end
    const auto add = [&](const std::vector<std::uint8_t>& rows,
                         const std::vector<std::int64_t>& at) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i] != 0) found.emplace_back(at[i], false);
    };
    add(device_, places.device);
    add(calls_, places.calls);
    add(ops_, places.ops);
    add(frames_, places.frames);
    add(marks_, places.marks);
    add(syncs_, places.syncs);
    collect_ends();
    for (const store::OtherEvent& other : places.others)
      if (wants(other)) found.emplace_back(other.byte, other.kind == store::OtherKind::kFlow);
    std::sort(found.begin(), found.end());
    Events events;
    for (const auto& [byte, arrow] : found) {
      events.bytes.push_back(byte);
      events.arrows.push_back(arrow);
    }
    return events;
  }

 private:
  bool of_run(ThreadId thread) const {
    const store::Thread& own = trace_.threads[thread.index];
    return own.rank == run_.rank &&
           (trace_.strings.or_empty(run_.process).empty() || own.pid == run_.process);
  }
  bool under_label(ThreadId thread) const { return trace_.threads[thread.index].rank == run_.rank; }

  // What ran in the window, and the launch of each; the host's window begins with the first of what
  // began in it.
  void choose_work() {
    for (const run::Activity& a : run_.activities) {
      if (a.begin > window_.span.end) break;
      if (!overlaps(a.begin, a.end, window_.span)) continue;
      device_[a.row.index] = 1;
      if (!a.call.valid()) continue;
      calls_[a.call.index] = 1;
      if (a.begin >= window_.span.begin)
        host_.begin = std::min(host_.begin, trace_.calls.begin[a.call.index]);
    }
  }

  // Launches for other devices of the process: without them here they would seem to have no kernel.
  void find_foreign_launches() {
    if (run_.activities.size() == trace_.device.size()) return;
    std::vector<std::uint8_t> own(trace_.device.size(), 0);
    for (const run::Activity& a : run_.activities) own[a.row.index] = 1;
    for (std::size_t row = 0; row < own.size(); ++row)
      if (own[row] == 0 && under_label(trace_.device.thread[row]) &&
          trace_.device.correlation[row] >= 0)
        foreign_.insert(trace_.device.correlation[row]);
    for (const run::Activity& a : run_.activities)
      if (!foreign_.empty()) foreign_.erase(trace_.device.correlation[a.row.index]);
  }

  template <class Table>
  bool in_host_window(const Table& table, std::size_t row) const {
    return overlaps(table.begin[row], end_of(table.begin[row], table.dur[row]), host_) &&
           of_run(table.thread[row]);
  }

  void choose_host() {
    for (std::size_t row = 0; row < calls_.size(); ++row)
      if (in_host_window(trace_.calls, row) && foreign_.count(trace_.calls.correlation[row]) == 0)
        calls_[row] = 1;
    for (std::size_t row = 0; row < ops_.size(); ++row)
      if (in_host_window(trace_.ops, row)) ops_[row] = 1;
    for (std::size_t row = 0; row < frames_.size(); ++row)
      if (in_host_window(trace_.frames, row)) frames_[row] = 1;
  }

  // What else the chosen calls launched.
  void choose_started() {
    for (const run::Activity& a : run_.activities)
      if (a.call.valid() && calls_[a.call.index] != 0) device_[a.row.index] = 1;
  }

  void choose_with_parents(store::OpRow op) {
    for (; op.valid() && ops_[op.index] == 0; op = run_.op_parent[op.index]) ops_[op.index] = 1;
  }

  // Operators and frames around a call that lies outside the host's window.
  void choose_around(std::size_t call) {
    if (trace_.calls.begin[call] >= host_.begin) return;
    choose_with_parents(run_.call_op[call]);
    if (run_.call_frame.empty()) return;
    for (store::FrameRow frame = run_.call_frame[call]; frame.valid() && frames_[frame.index] == 0;
         frame = run_.frame_parent[frame.index])
      frames_[frame.index] = 1;
  }

  // Marks and records of waiting; those of the device's rows are about device time.
  void choose_ranges() {
    const auto& marks = trace_.marks;
    for (std::size_t row = 0; row < marks.size(); ++row) {
      const bool host = marks.kind[row] == store::MarkKind::kHost;
      if (overlaps(marks.begin[row], end_of(marks.begin[row], marks.dur[row]),
                   host ? host_ : window_.span) &&
          (host ? of_run(marks.thread[row]) : under_label(marks.thread[row])))
        marks_[row] = 1;
    }
    const auto& syncs = trace_.syncs;
    for (std::size_t row = 0; row < syncs.size(); ++row)
      if (overlaps(syncs.begin[row], end_of(syncs.begin[row], syncs.dur[row]), window_.span) &&
          under_label(syncs.thread[row]))
        syncs_[row] = 1;
  }

  // Where an arrow may begin or end: at the begin of an event that is chosen, or inside it.
  void collect_ends() {
    const auto add = [&](const auto& table, const std::vector<std::uint8_t>& rows) {
      for (std::size_t row = 0; row < rows.size(); ++row)
        if (rows[row] != 0)
          ends_[table.thread[row].index].push_back(
              {table.begin[row], end_of(table.begin[row], table.dur[row])});
    };
    add(trace_.device, device_);
    add(trace_.calls, calls_);
    add(trace_.ops, ops_);
    add(trace_.syncs, syncs_);
    for (auto& ends : ends_)
      std::sort(ends.begin(), ends.end(),
                [](const store::Span& a, const store::Span& b) { return a.begin < b.begin; });
  }

  bool wants(const store::OtherEvent& other) const {
    if (other.kind == store::OtherKind::kMetadata) return true;
    if (other.kind == store::OtherKind::kTimed)
      return other.at >= host_.begin && other.at <= window_.span.end;
    const auto& ends = ends_[other.thread.index];
    auto behind = std::upper_bound(ends.begin(), ends.end(), other.at,
                                   [](Nanos at, const store::Span& s) { return at < s.begin; });
    return behind != ends.begin() && (--behind)->end >= other.at;
  }

  const Run& run_;
  const store::Trace& trace_;
  const Window& window_;
  store::Span host_;                                                         // of the host's events
  std::vector<std::uint8_t> device_, calls_, ops_, frames_, marks_, syncs_;  // by row: chosen
  std::unordered_set<std::int64_t> foreign_;                                 // correlations
  std::vector<std::vector<store::Span>> ends_;                               // by thread
};

}  // namespace

Events choose_events(const Run& run, const Window& window) {
  Chosen chosen(run, window);
  chosen.choose();
  return chosen.events();
}

}  // namespace culprit::slice
