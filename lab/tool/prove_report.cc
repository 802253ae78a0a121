#include "lab/tool/prove_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/tool/screen.h"

namespace culprit::lab {
namespace {

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string named_text(const Proof& proof) {
  const std::string whom = proof.named.empty() ? std::string("nobody") : proof.named;
  return proof.named_right ? whom : whom + " (wrong)";
}

}  // namespace

double Proof::error() const {
  if (measured == 0) return 0;
  return static_cast<double>(predicted - measured) / static_cast<double>(measured);
}

double Proof::drift() const {
  if (before == 0) return 0;
  return std::abs(static_cast<double>(recorded - before) / static_cast<double>(before));
}

Summary summary_of(const std::vector<Proof>& proofs) {
  Summary summary;
  std::vector<double> errors;
  for (const Proof& proof : proofs) {
    ++summary.runs;
    summary.named += proof.named_right ? 1 : 0;
    summary.healthy += proof.healthy_after ? 1 : 0;
    if (proof.named_right) errors.push_back(std::abs(proof.error()));
  }
  if (errors.empty()) return summary;
  std::sort(errors.begin(), errors.end());
  summary.median = errors[(errors.size() - 1) / 2];
  summary.worst = errors.back();
  return summary;
}

std::string proof_text(const Proof& proof) {
  std::string out = fmt::format("{}: {}\n", proof.pair->name, proof.pair->what);
  out += fmt::format("  before  culprit lab bench {}\n", proof.lines.before);
  out += fmt::format("  after   culprit lab bench {}\n", proof.lines.after);
  out += fmt::format("  named   {}{}\n", named_text(proof),
                     proof.confidence.empty() ? "" : ", " + proof.confidence);
  out += fmt::format("  step    {} before ({} recorded), {} predicted, {} measured: {}\n",
                     text::duration(proof.before, false), text::duration(proof.recorded, false),
                     text::duration(proof.predicted, false), text::duration(proof.measured, false),
                     signed_percent(proof.error()));
  if (!proof.healthy_after)
    out += fmt::format("  after the fix accused: {}\n", fmt::join(proof.accused_after, ", "));
  return out;
}

std::string prove_text(const std::vector<Proof>& proofs, bool tiny) {
  std::vector<std::vector<std::string>> rows{
      {"pair", "named", "before", "predicted", "measured", "error"}};
  for (const Proof& proof : proofs)
    rows.push_back({std::string(proof.pair->name), named_text(proof),
                    text::duration(proof.before, false), text::duration(proof.predicted, false),
                    text::duration(proof.measured, false), signed_percent(proof.error())});
  std::string out = table(rows, 2);
  const Summary summary = summary_of(proofs);
  out += fmt::format("\n{} of {} named right; {} of {} accuse nobody once it is fixed\n",
                     summary.named, summary.runs, summary.healthy, summary.runs);
  out += tiny ? std::string("small models: the times say nothing\n")
              : fmt::format("error of the prediction: {} median, {} worst\n",
                            text::percent(summary.median), text::percent(summary.worst));
  return out;
}

std::string prove_json(const std::vector<Proof>& proofs, bool tiny) {
  nlohmann::ordered_json out;
  out["kind"] = "lab-prove";
  out["tiny"] = tiny;
  const Summary summary = summary_of(proofs);
  out["summary"] = {{"runs", summary.runs},
                    {"named_right", summary.named},
                    {"healthy_after", summary.healthy},
                    {"error_median", summary.median},
                    {"error_worst", summary.worst}};
  out["runs"] = nlohmann::ordered_json::array();
  for (const Proof& proof : proofs)
    out["runs"].push_back({{"pair", proof.pair->name},
                           {"what", proof.pair->what},
                           {"before", proof.lines.before},
                           {"after", proof.lines.after},
                           {"suspects", proof.pair->suspects},
                           {"named", proof.named},
                           {"confidence", proof.confidence},
                           {"named_right", proof.named_right},
                           {"recordings", proof.recordings},
                           {"tries", proof.tries},
                           {"step_ns_recorded", proof.recorded},
                           {"step_ns_before", proof.before},
                           {"step_ns_predicted", proof.predicted},
                           {"step_ns_measured", proof.measured},
                           {"error", proof.error()},
                           {"healthy_after", proof.healthy_after},
                           {"accused_after", proof.accused_after}});
  return out.dump(1) + "\n";
}

}  // namespace culprit::lab
