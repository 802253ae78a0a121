// Drawing: what the page of --html draws beside the answer's figures: how long each step took, and
// what was recorded around one of them, on each stream and host thread. Times are ns from that step's
// begin. Built from the run alone; nothing is measured here. O(rows of the trace) to look for what
// overlaps the step, O(n log n) in the at most kMostEvents that are kept: the longest of each kind,
// and what is left out is counted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace culprit::report {

inline constexpr std::size_t kMostEvents = 60'000, kMostGaps = 10'000, kMostLanes = 64,
                             kMostSteps = 5'000;

enum class HostKind : std::uint8_t { kFrame, kMark, kOp, kCall };
inline constexpr std::size_t kHostKinds = 4;

// A stream, in order of begin. A kernel is an index into Evidence::kernels; -1 - i is names[i], for
// what has no figures (activities of other steps). launch counts the events of all threads, in
// their order; -1: not drawn.
struct StreamLane {
  std::string name;  // "stream 7"
  std::vector<Nanos> begin, length;
  std::vector<std::int64_t> kernel, launch;
};

// A host thread, in order of begin, the longer first: what nests comes after what it nests in.
struct ThreadLane {
  std::string name;           // "thread 31742 of process 4002"
  std::int64_t launches = 0;  // of the step's activities
  std::vector<Nanos> begin, length;
  std::vector<std::uint32_t> text;  // index into Drawing::names
  std::vector<HostKind> kind;
};

struct DrawnGap {
  Nanos begin = 0, length = 0;
  known::Owner owner = known::Owner::kUnexplained;
};

struct Drawing {
  const run::Run* run = nullptr;
  run::StepIndex step = -1;     // index into Run::steps; -1: none
  std::int64_t main_index = 0;  // the same, as `culprit steps` counts
  Nanos from = 0, to = 0;       // what is drawn: from the step's first launch to its end
  std::vector<StreamLane> streams;
  std::vector<ThreadLane> threads;  // the one with most launches first
  std::vector<DrawnGap> gaps;       // idle time of the device in the step, with its owner
  run::LayerSpans layers;           // as in run.h, times from the step's begin
  std::vector<store::StringId> names;
  std::size_t activities_left_out = 0, gaps_left_out = 0;
  std::array<std::size_t, kHostKinds> host_left_out{};
};

// Of the used step nearest to the median: the step that the mean figures describe best. `kernels`:
// how many of Evidence::kernels the reader has.
Drawing draw(const Answer& answer, std::size_t kernels);
// docs/schema/drawing.schema.json: columns of integers, begins as differences, each name once.
std::string render_drawing(const Answer& answer, const Drawing& drawing, std::size_t kernels);

}  // namespace culprit::report
