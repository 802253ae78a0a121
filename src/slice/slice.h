// Slice: a piece of a recording as a trace of its own: the steps of a window, or one layer of a step.
// In it are the device's activities of the window, their launches with arrows, operators and frames,
// wherever those lie, and what the host did meanwhile; and, so that no launch is without its kernel,
// what else those launches started. Events are copied as they stand in the file. The steps' places
// are written into the slice, so that whoever reads it finds the same steps. Cost: O(rows) to choose;
// to copy, see ingest/excerpt.h; memory: the slice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/ingest.h"
#include "run/run.h"
#include "verdict/verdict.h"

namespace culprit::slice {

// What to cut out: steps[first, last] of Run::steps, and of one layer that part of the step.
struct Window {
  std::size_t first = 0, last = 0;
  store::Span span;  // device time, from the first step's begin to the last one's end
  std::optional<std::int64_t> layer;  // from 0
};

// Steps `from` to `to` of the main kind, both included, counted from 0 as --steps does, with the steps
// of other kinds between them. kUsage where they do not exist.
Result<Window> window_of_steps(const run::Run& run, std::int64_t from, std::int64_t to);
// The step that is most like the others: of median length among those that count.
Result<Window> window_of_median(const run::Run& run);
// Narrows a window of one step to a layer; kUsage where that layer does not exist, or where the order of
// kernels does not tell layers apart.
Result<Window> narrow_to_layer(const run::Run& run, Window window, std::int64_t layer);
// The step that shows a suspect best: that in which its kernels take most time; of stalls the longest;
// of other work between decode steps that work, with the step behind it; else the median step.
Result<Window> window_around(const evidence::Evidence& evidence, const verdict::Suspect& suspect);

// Where the events of a window begin in the file, ascending; and which of these are ends of arrows,
// whose other end may lie outside. The trace was read with its places.
struct Events {
  std::vector<std::int64_t> bytes;
  std::vector<bool> arrows;  // by event
};
Events choose_events(const run::Run& run, const Window& window);

struct Written {
  std::string text;            // JSON, whole
  std::int64_t events = 0;     // in it
  std::int64_t rewritten = 0;  // of them: no JSON as they stood in the file
};
// The slice as a Chrome trace. Errors: those of ingest::copy_events; kUnsupported for a trace that was
// not read from a file of Chrome JSON.
Result<Written> write(const run::Run& run, const Window& window, const ingest::Options& options);

// What every slice begins with.
inline constexpr std::string_view kBegin = "{\n  \"culpritSlice\":";
// "step 17 of rank0.json.gz", "steps 5 to 9 of ...", "layer 3 of step 17 of ...".
std::string describe(const run::Run& run, const Window& window);

// The same bytes for the same text; a comment in its head says what wrote it.
Result<std::string> gzip(std::string_view text);
bool is_gzip_of_slice(std::string_view head);  // of a file's first 32 bytes

}  // namespace culprit::slice
