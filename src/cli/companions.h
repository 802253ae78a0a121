// Companions: traces beside the run's own that can lend operators and sources to its graph kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/settings.h"
#include "ingest/ingest.h"
#include "run/run.h"
#include "store/trace.h"

namespace culprit::cli {

struct Companion {
  std::unique_ptr<store::Trace> trace;
  std::string found;  // "flag", "argument", "beside"
};

// How every trace of a command line is read.
ingest::Options reading(const Settings& settings, Console& console);

// The trace at `path`, redacted where --redact is given.
Result<std::unique_ptr<store::Trace>> load_trace(const std::string& path, const Settings& settings,
                                                 Console& console);

// Files that look, by name, like captures of the graphs that the trace at `path` replays, in the
// order in which they should be tried: NAME.capture.json.gz beside NAME.json.gz; files in
// graph_capture_profile/ (SGLang) and capture_traces/ (vLLM, ATOM), of the same rank where names
// tell one, and of the smallest batch that holds `batch` where names tell that. At most 16.
std::vector<std::string> captures_beside(const std::string& path, std::optional<std::int64_t> rank,
                                         std::optional<std::int64_t> batch);
bool named_like_a_capture(const std::string& path);
// 3 of run-TP-3.trace.json.gz, rank3.json, worker3_step_12.json; none where the name tells no rank.
std::optional<std::int64_t> rank_in_name(const std::string& path);

// Lends what companions hold to the run's graph kernels: `given` ones (captures among the arguments,
// to which the flag's is added), else those found beside the trace. `given` keeps what the run uses.
Status map_graphs(const Settings& settings, Console& console, const std::string& path,
                  std::vector<Companion>& given, run::Run& run);

}  // namespace culprit::cli
