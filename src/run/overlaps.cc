// Order on one stream: an activity that runs past the start of later ones is either a legal short
// overlap with its neighbour (programmatic dependent launch; branches of one graph that are drawn
// on one stream) or has a late completion timestamp. Only the second is limited, to the start of
// its successor. Sources: perfetto#4280 (legal), TraceLens#669 and Hyperloom#1116 (late).
#include <fmt/format.h>

#include "run/chapters.h"

namespace culprit::run {
namespace {

// So many later starts on the stream cannot all be dependent launches: each of those waits for
// the one before.
constexpr std::size_t kMany = 4;
// Near the end of a stream there are no four later starts. An overlap this long, and this much
// longer than anything it covers, is none of a dependent launch, whose head start is microseconds.
constexpr Nanos kLongOverlap = 1'000'000;
constexpr Nanos kTimesLonger = 10;

class Stream {
 public:
  Stream(const Run& run, const std::uint32_t* first, const std::uint32_t* last)
      : table_(run.trace->device),
        activities_(run.activities),
        first_(first),
        size_(static_cast<std::size_t>(last - first)) {}

  std::size_t size() const { return size_; }
  std::uint32_t index(std::size_t i) const { return first_[i]; }
  const Activity& at(std::size_t i) const { return activities_[first_[i]]; }

  Nanos length(std::size_t i) const { return at(i).end - at(i).begin; }
  Nanos overlap(std::size_t i) const {
    return i + 1 < size_ ? std::max<Nanos>(at(i).end - at(i + 1).begin, 0) : 0;
  }

  bool late(std::size_t i) const {
    if (overlap(i) == 0) return false;
    std::size_t covered = 0;
    Nanos longest = 0;
    for (std::size_t k = i + 1; k < size_ && covered < kMany && at(k).begin < at(i).end; ++k) {
      ++covered;
      longest = std::max(longest, length(k));
    }
    const bool far = overlap(i) > kLongOverlap && overlap(i) / kTimesLonger > longest;
    if (!at(i).in_graph) return covered >= kMany || far;
    // Branches of one graph may overlap at any length, but no later launch starts inside a graph.
    return (covered >= kMany || far) && leaves_its_graph(i);
  }

 private:
  // A graph's kernels stand together on the stream, so the last one covered tells.
  bool leaves_its_graph(std::size_t i) const {
    std::size_t low = i + 1, high = size_;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (at(middle).begin < at(i).end)
        low = middle + 1;
      else
        high = middle;
    }
    const Activity& last = at(low - 1);
    return !last.in_graph ||
           table_.correlation[last.row.index] != table_.correlation[at(i).row.index];
  }
  const store::DeviceTable& table_;
  const std::vector<Activity>& activities_;
  const std::uint32_t* first_;
  std::size_t size_;
};

struct Found {
  std::int64_t late = 0, legal = 0;
  Nanos legal_time = 0;
  std::size_t first_late = 0;  // activity
  Nanos first_raw = 0;
};

void note_found(const Found& found, Run& run) {
  const store::Trace& trace = *run.trace;
  if (found.late > 0) {
    const std::uint32_t row = run.activities[found.first_late].row.index;
    add_note(run, "late-timestamps", store::Severity::kWarning, found.late,
             fmt::format("{} past the start of later ones on the same stream and {} limited to the "
                         "next start; the first is {} at {} ns, recorded as {}",
                         counted(found.late, "activity ends", "activities end"),
                         found.late == 1 ? "is" : "are",
                         short_text(trace.strings[trace.device.name[row]]), trace.device.begin[row],
                         duration_text(found.first_raw)),
             fmt::format("stream {}", trace.device.stream[row]));
  }
  if (found.legal > 0)
    add_note(run, "overlap-legal", store::Severity::kInfo, found.legal,
             counted(found.legal, "activity starts", "activities start") +
                 " before the one in front on the stream ends (" + duration_text(found.legal_time) +
                 " in all): programmatic dependent launch or branches of a graph; busy time "
                 "counts it once");
}

// First begin to last end of everything but the last activity of each stream.
store::Span recording(const Run& run, const std::vector<std::uint8_t>& is_last) {
  store::Span span{kLongest, -kLongest};
  const auto add = [&](Nanos begin, Nanos end) {
    span.begin = std::min(span.begin, begin);
    span.end = std::max(span.end, end);
  };
  for (std::size_t i = 0; i < run.activities.size(); ++i)
    if (is_last[i] == 0) add(run.activities[i].begin, run.activities[i].end);
  const auto& calls = run.trace->calls;
  for (std::size_t call = 0; call < calls.size(); ++call)
    add(std::clamp(calls.begin[call], -kLongest, kLongest),
        std::min(end_of(calls.begin[call], calls.dur[call]), kLongest));
  return span;
}

// The last activity of a stream has no successor to limit it. One that lasts longer than all the
// rest of the recording cannot be: the profiler waits for the device before it stops.
void limit_last_ends(const Buckets& streams, Run& run) {
  constexpr std::size_t kEnough = 10;  // activities that make a recording to measure by
  if (run.activities.size() < kEnough) return;
  std::vector<std::uint8_t> is_last(run.activities.size(), 0);
  for (std::size_t s = 0; s < streams.count(); ++s)
    if (streams.start[s + 1] > streams.start[s])
      is_last[streams.rows[streams.start[s + 1] - 1]] = 1;
  const store::Span rest = recording(run, is_last);
  for (std::size_t i = 0; i < run.activities.size(); ++i) {
    Activity& a = run.activities[i];
    if (is_last[i] == 0 || a.end <= rest.end || a.end - a.begin <= rest.length()) continue;
    add_note(run, "impossible-duration", store::Severity::kWarning, 1,
             fmt::format("{} lasts {}, longer than all the rest of the recording ({}): limited to "
                         "its end",
                         short_text(run.trace->strings[run.groups[a.group.index].name]),
                         duration_text(a.end - a.begin), duration_text(rest.length())));
    a.end = std::max(a.begin, rest.end);
  }
}

}  // namespace

void limit_ends(Run& run) {
  const store::Trace& trace = *run.trace;
  const Buckets streams = bucket_rows(
      run.activities.size(), trace.threads.size(),
      [&](std::size_t i) { return trace.device.thread[run.activities[i].row.index].index; });
  Found found;
  std::vector<std::pair<std::uint32_t, Nanos>> limits;  // applied at the end: order plays no part
  for (std::size_t s = 0; s < streams.count(); ++s) {
    const Stream stream(run, streams.rows.data() + streams.start[s],
                        streams.rows.data() + streams.start[s + 1]);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const Nanos overlap = stream.overlap(i);
      if (overlap == 0) continue;
      if (stream.late(i)) {
        limits.emplace_back(stream.index(i), stream.at(i + 1).begin);
      } else if (const Nanos shared = std::min(overlap, stream.length(i + 1)); shared > 0) {
        ++found.legal;
        found.legal_time = capped_sum(found.legal_time, shared);
      }
    }
  }
  for (const auto& [index, end] : limits) {
    Activity& a = run.activities[index];
    if (found.late++ == 0 || index < found.first_late) {
      found.first_late = index;
      found.first_raw = a.end - a.begin;
    }
    a.end = end;
  }
  note_found(found, run);
  limit_last_ends(streams, run);
  if (run.activities.empty()) return;
  run.device_span = {run.activities.front().begin, run.activities.front().end};
  for (const Activity& a : run.activities)
    run.device_span.end = std::max(run.device_span.end, a.end);
}

}  // namespace culprit::run
