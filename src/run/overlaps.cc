// Order on one stream: an activity that runs past the start of later ones is either a legal short
// overlap with its neighbour (programmatic dependent launch; branches of one graph that are drawn
// on one stream) or has a late completion timestamp. Only the second is limited, to the start of
// its successor. Sources: perfetto#4280 (legal), TraceLens#669 and Hyperloom#1116 (late).
#include <fmt/format.h>

#include <algorithm>

#include "run/chapters.h"

namespace culprit::run {
namespace {

// So many later starts on the stream cannot all be dependent launches: each of those waits for
// the one before.
constexpr std::size_t kMany = 4;
// Near the end of a stream there are no four later starts. A dependent launch that starts early also
// waits for the one in front, so it outlasts the overlap; one this long, and this much longer than
// anything it covers, is none.
constexpr Nanos kLongOverlap = 100'000;
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

struct Late {
  std::uint32_t activity = 0;
  Nanos raw = 0;  // duration as recorded
};

struct Found {
  std::vector<Late> late;
  std::int64_t legal = 0;
  Nanos legal_time = 0;
  std::vector<std::string> late_streams, legal_streams;
};

// By number; ids that are no small numbers (HSA queues) as they stand in the file.
std::string stream_name(const Run& run, const Activity& a) {
  const store::Trace& trace = *run.trace;
  const std::int32_t number = trace.device.stream[a.row.index];
  if (number >= 0) return fmt::format("{}", number);
  return short_text(trace.strings[trace.threads[trace.device.thread[a.row.index].index].tid]);
}

void add_once(std::vector<std::string>& streams, std::string stream) {
  if (streams.empty() || streams.back() != stream) streams.push_back(std::move(stream));
}

// "stream 7", "streams 0, 3, 5", "streams 1, 2, 3, 4, 5, 6, 7, 8, ..."
std::string streams_text(const std::vector<std::string>& streams) {
  constexpr std::size_t kShown = 8;
  std::string text = streams.size() == 1 ? "stream" : "streams";
  for (std::size_t i = 0; i < std::min(streams.size(), kShown); ++i)
    text += (i == 0 ? " " : ", ") + streams[i];
  return streams.size() > kShown ? text + ", ..." : text;
}

void note_late(Found& found, Run& run) {
  constexpr std::size_t kNamed = 3;
  const store::Trace& trace = *run.trace;
  std::sort(found.late.begin(), found.late.end(),
            [](const Late& a, const Late& b) { return a.activity < b.activity; });
  std::string named;
  for (std::size_t i = 0; i < std::min(found.late.size(), kNamed); ++i) {
    const Activity& a = run.activities[found.late[i].activity];
    named += fmt::format("{}{} on stream {} at ts {} with dur {} ({})", i == 0 ? "" : "; ",
                         short_text(trace.strings[trace.device.name[a.row.index]]),
                         stream_name(run, a), micros_text(a.begin), micros_text(found.late[i].raw),
                         duration_text(found.late[i].raw));
  }
  if (found.late.size() > kNamed) named += "; ...";
  const auto count = static_cast<std::int64_t>(found.late.size());
  add_note(run, "late-timestamps", store::Severity::kWarning, count,
           fmt::format(
               "{} of {} {} past the start of later ones on the same stream and {} limited "
               "to the next start: {}",
               counted(count),
               counted(static_cast<std::int64_t>(run.activities.size()), "activity", "activities"),
               count == 1 ? "ends" : "end", count == 1 ? "is" : "are", named),
           streams_text(found.late_streams));
}

void note_legal(const Found& found, Run& run) {
  add_note(run, "overlap-legal", store::Severity::kInfo, found.legal,
           counted(found.legal, "activity starts", "activities start") +
               " before the one in front on the stream ends (" + duration_text(found.legal_time) +
               " in all): programmatic dependent launch or branches of a graph; busy time "
               "counts it once",
           streams_text(found.legal_streams));
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

// The last activity of a stream has no successor to limit it. One that lasts many times longer than all
// the rest of the recording cannot be: the profiler waits for the device before it stops. Overflows
// are of seconds; a last kernel that is merely longer than a short recording is none.
void limit_last_ends(const Buckets& streams, Run& run) {
  constexpr std::size_t kEnough = 10;  // activities that make a recording to measure by
  constexpr Nanos kOverflow = 100'000'000;
  if (run.activities.size() < kEnough) return;
  std::vector<std::uint8_t> is_last(run.activities.size(), 0);
  for (std::size_t s = 0; s < streams.count(); ++s)
    if (streams.start[s + 1] > streams.start[s])
      is_last[streams.rows[streams.start[s + 1] - 1]] = 1;
  const store::Span rest = recording(run, is_last);
  for (std::size_t i = 0; i < run.activities.size(); ++i) {
    Activity& a = run.activities[i];
    const Nanos length = a.end - a.begin;
    if (is_last[i] == 0 || a.end <= rest.end || length < kOverflow ||
        length / kTimesLonger <= rest.length())
      continue;
    add_note(
        run, "impossible-duration", store::Severity::kWarning, 1,
        fmt::format("{} on stream {} at ts {} with dur {} ({}) lasts many times longer than all "
                    "the rest of the recording ({}): limited to its end",
                    short_text(run.trace->strings[run.groups[a.group.index].name]),
                    stream_name(run, a), micros_text(a.begin), micros_text(length),
                    duration_text(length), duration_text(rest.length())),
        "stream " + stream_name(run, a));
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
  for (std::size_t s = 0; s < streams.count(); ++s) {
    const Stream stream(run, streams.rows.data() + streams.start[s],
                        streams.rows.data() + streams.start[s + 1]);
    // From the last to the first: what comes later is already limited when an activity is judged.
    for (std::size_t i = stream.size(); i-- > 0;) {
      const Nanos overlap = stream.overlap(i);
      if (overlap == 0) continue;
      Activity& a = run.activities[stream.index(i)];
      if (stream.late(i)) {
        found.late.push_back({stream.index(i), a.end - a.begin});
        add_once(found.late_streams, stream_name(run, a));
        a.end = stream.at(i + 1).begin;
      } else if (const Nanos shared = std::min(overlap, stream.length(i + 1)); shared > 0) {
        ++found.legal;
        found.legal_time = capped_sum(found.legal_time, shared);
        add_once(found.legal_streams, stream_name(run, a));
      }
    }
  }
  if (!found.late.empty()) note_late(found, run);
  if (found.legal > 0) note_legal(found, run);
  limit_last_ends(streams, run);
  if (run.activities.empty()) return;
  run.device_span = {run.activities.front().begin, run.activities.front().end};
  for (const Activity& a : run.activities)
    run.device_span.end = std::max(run.device_span.end, a.end);
}

}  // namespace culprit::run
