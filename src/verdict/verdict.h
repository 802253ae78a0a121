// Verdict: who is to blame, how surely, what would disprove it, what a fix buys; and who is ruled
// out by which number. A pure function of Evidence. No suspect without cited Facts. A healthy run
// gets none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"

namespace culprit::verdict {

enum class Standing : std::uint8_t { kCulprit, kContributor, kMinor };
std::string_view standing_name(Standing);
enum class Confidence : std::uint8_t { kCertain, kLikely, kPossible };
std::string_view confidence_name(Confidence);

struct TensorMatch {
  std::string name;                 // "kv_pool"
  std::vector<std::int64_t> shape;  // empty: unknown
  std::string dtype;
  std::int64_t elements = 0;
  std::string match;  // "exact", "within-launch-rounding", "inferred"
};

struct Gain {
  Nanos step_now = 0, low = 0, expected = 0,
        high = 0;                 // step times after the fix, low <= expected <= high
  double tokens_per_s_after = 0;  // batch / expected; 0: batch unknown
  std::string bound_by_after;     // "host-launch", "gpu", "communication", ""
  std::string method = "bound";
};

// One way to cure a suspect, with what it costs itself.
struct Remedy {
  std::string name;     // "gather"
  std::string summary;  // one clause
  Gain gain;
};

struct Suspect {
  std::string id;  // "whole-pool-cast"
  Standing standing = Standing::kMinor;
  Confidence confidence = Confidence::kPossible;
  std::string cause;  // of a step-stall: "gc", "compile", "allocator", "unknown"; of a straggler a
                      // evidence::LateCause; else empty
  std::string who;    // the rank, of a straggler: "rank 3 (gc)"; else empty
  std::string claim;
  Nanos ns_per_step = 0, exposed_ns_per_step = 0;
  double share = 0;                  // exposed / step
  std::vector<std::size_t> kernels;  // indices into Evidence::kernels
  std::vector<run::Source> where;
  std::optional<TensorMatch> tensor;
  std::optional<double> live_fraction;
  std::vector<std::string> facts;
  std::string disproved_if;
  std::string fix;
  std::vector<std::string> alternatives;
  std::vector<Remedy> remedies;  // of several, each with its own gain; `gain` is the cause gone
  evidence::Change change;       // what the fix changes in the step's graph
  Gain gain;
};

struct RuledOut {
  std::string hypothesis;  // "w13-dequant"
  std::string claim, because;
  std::vector<std::string> facts;
};

struct Healthy {
  std::string what, because;
  std::optional<Nanos> at_most_gain;
};

struct Verdict {
  std::vector<Suspect> suspects;  // by exposed time, largest first; rank = index + 1
  std::vector<RuledOut> ruled_out;
  std::vector<Healthy> healthy;
  std::string headline;  // one sentence: the culprit, or "no single culprit: ..."
};

// Adds the facts it cites to `evidence`.
Verdict judge(evidence::Evidence& evidence);

// What `culprit list suspects` prints.
struct Rule {
  std::string_view id, looks_for, needs, disproved_by;
};
std::vector<Rule> rules();

}  // namespace culprit::verdict
