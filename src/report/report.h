// Report: an Answer rendered as text or JSON. Pure functions: no I/O, no clock, no environment. The
// words for people live here; figures come from Evidence and Verdict only.
#pragma once

#include <string>
#include <string_view>

#include "verdict/verdict.h"

namespace culprit::report {

// Everything that was found out about one input. Pointers are null where the work ended earlier
// (unusable input).
struct Answer {
  const store::TraceInfo* info = nullptr;
  store::Notes notes;  // of reading and of building the run
  const run::Run* run = nullptr;
  const evidence::Evidence* evidence = nullptr;
  const verdict::Verdict* verdict = nullptr;
  bool usable() const { return run != nullptr && evidence != nullptr && verdict != nullptr; }
};

enum class TimeUnit : std::uint8_t { kAuto, kNs, kUs, kMs, kS };
struct TextOptions {
  int width = 80;
  bool color = false;
  bool unicode = false;  // bars and arrows; else ASCII
  bool all = false;      // every row
  TimeUnit unit = TimeUnit::kAuto;
};

std::string render_text(const Answer& answer,
                        const TextOptions& options);  // the one-screen verdict
std::string render_json(const Answer& answer);  // the whole document, pretty, newline at the end
// One table of the commands steps, budget, kernels, layers, ops, sources, gaps.
enum class Table : std::uint8_t { kSteps, kBudget, kKernels, kLayers, kOps, kSources, kGaps };
std::string render_table(const Answer& answer, Table table, const TextOptions& options);

}  // namespace culprit::report
