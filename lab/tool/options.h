// The command line of `culprit lab`: one table of commands and one of flags make parser, help and
// hints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/engine/engine.h"
#include "lab/files/make_model.h"
#include "lab/kernels/isa.h"
#include "lab/model/random_model.h"

namespace culprit::lab {

enum class Command : std::uint8_t {
  kRun,
  kBench,
  kScore,
  kMakeModel,
  kCheck,
  kProve,
  kFaults,
  kHelp
};

// Requests that come in while others decode.
struct Arrivals {
  std::int64_t every = 0;               // steps; 0: none
  std::int64_t prompt = 1, answer = 1;  // tokens; the prompt is computed
  std::int64_t context = 0;             // in front of it, drawn
};

struct Options {
  Command command = Command::kHelp;
  bool help = false;  // of `command`

  // Which model: a checkpoint, or a random one.
  std::string model, preset;
  Scheme scheme = Scheme::kBf16;
  Resize resize;  // of the preset
  Shard shard;    // --tp-shard; of a run of several ranks, each one's own
  std::int64_t ranks = 1;
  std::uint64_t seed = 0;

  // What to run.
  std::vector<std::int32_t> tokens;
  std::int64_t prompt_length = 0;  // 0: `tokens`
  std::int64_t new_tokens = 32;
  std::vector<std::int64_t> batch{1}, context{1024};
  Sampling sampling;
  Arrivals arrivals;
  std::int64_t steps = 16;

  // On what.
  std::vector<Reading> readings{Reading::kPoolCast, Reading::kGatherCast, Reading::kFused};
  KvFormat kv_format = KvFormat::kBf16;
  std::int64_t pool_tokens = 0;  // 0: as many as the requests need
  std::int64_t page = 1, chunk = 64;
  int threads = 0;                   // 0: one per core
  std::optional<Isa> isa;            // none: the best one, in `check` all
  std::optional<LaunchMode> launch;  // none: a graph, unless something needs the host
  Faults faults;
  std::optional<std::int64_t> fault_rank;  // whose the faults are alone; none: everybody's
  bool oracle = false;                     // `score`: by the float64 oracle

  // What of it is recorded.
  std::string profile;  // the file; empty: nothing, unless the environment says so
  std::int64_t profile_warmup = 20, profile_steps = 30;

  // What is to be proven.
  std::vector<std::string> names;  // of pairs; empty with `all`
  bool all = false, tiny = false;
  std::int64_t runs = 1;
  bool seeded = false;  // --seed was given

  // Where the answer goes.
  std::string output;
  ContainerKind container = ContainerKind::kSafetensors;
  bool overwrite = false;
  std::optional<std::string> json;  // "-": the standard output
  bool quiet = false;
};

// Error::kUsage for anything unknown, naming the near match. Looks at no file.
Result<Options> parse(std::span<const std::string_view> args);

std::string help_text();
std::string help_text(Command command);

}  // namespace culprit::lab
