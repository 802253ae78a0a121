// A piece of one trace, as a trace: load -> build -> (judge, where a suspect is named) -> choose ->
// copy.
#include <fmt/format.h>

#include <algorithm>

#include "base/near.h"
#include "base/usage.h"
#include "cli/analysis.h"
#include "cli/companions.h"
#include "cli/output_file.h"
#include "cli/run_command.h"
#include "slice/slice.h"

namespace culprit::cli {
namespace {

Result<slice::Window> window_around(Analysis& analysis, const std::string& suspect) {
  TRY([[maybe_unused]] const Ok judged, analysis.judge());
  std::vector<std::string> found;
  for (const verdict::Suspect& each : analysis.answer.verdict->suspects) {
    if (each.id == suspect) return slice::window_around(*analysis.answer.evidence, each);
    found.push_back(each.id);
  }
  std::string names;
  for (const std::string& id : found) names += (names.empty() ? "" : ", ") + id;
  return usage(fmt::format("the verdict has no suspect \"{}\"", suspect),
               names.empty() ? "it has none: --step N cuts out a step"
                             : did_you_mean(suspect, found, "it has: " + names));
}

Result<slice::Window> window_asked(const Settings& settings, Analysis& analysis) {
  const run::Run& run = *analysis.answer.run;
  if (!settings.around.empty()) return window_around(analysis, settings.around);
  if (settings.step) return slice::window_of_steps(run, *settings.step, *settings.step);
  if (settings.steps)
    return slice::window_of_steps(run, settings.steps->first, settings.steps->second);
  return slice::window_of_median(run);
}

Result<Outcome> write_out(const Settings& settings, Console& console, std::string text) {
  const bool packed = settings.output.ends_with(".gz");
  if (packed) {
    TRY(text, slice::gzip(text));
  }
  if (settings.output == "-") return console.answer(text);
  TRY([[maybe_unused]] const Ok written, write_answer_file(settings.output, text));
  return Outcome::kAnswered;
}

Result<Outcome> slice_trace(const Settings& settings, Console& console) {
  Analysis analysis(settings, console);
  TRY([[maybe_unused]] const Ok known, analysis.gather());
  TRY([[maybe_unused]] const Ok read, analysis.read());
  TRY([[maybe_unused]] const Ok built, analysis.build());
  TRY(slice::Window window, window_asked(settings, analysis));
  const run::Run& run = *analysis.answer.run;
  if (settings.layer) {
    TRY(window, slice::narrow_to_layer(run, window, *settings.layer));
  }
  TRY(slice::Written written, slice::write(run, window, reading(settings, console)));
  console.stage_done("copy");
  const std::size_t bytes = written.text.size();
  TRY(const Outcome outcome, write_out(settings, console, std::move(written.text)));
  console.stage_done("write");
  if (settings.quiet) return outcome;
  console.say(fmt::format(
      "culprit: {}: {}, {} events, {}{}\n",
      settings.output == "-" ? "standard output" : text::clean(settings.output),
      text::clean(slice::describe(run, window)), text::count(written.events),
      text::bytes(static_cast<std::int64_t>(bytes)),
      written.rewritten > 0
          ? fmt::format("; {} were no JSON and were written anew", text::count(written.rewritten))
          : std::string()));
  return outcome;
}

}  // namespace

Outcome slice(const Settings& settings, Console& console) {
  if (settings.output != "-") {
    const Status allowed = may_write_answer(settings.output);
    if (!allowed.ok()) return console.fail(allowed.error());
  }
  if (settings.words.front() == "-")
    return console.fail(
        usage("slice reads a trace twice, which a pipe does not allow", "save it to a file first"));
  const Result<Outcome> done = slice_trace(settings, console);
  return done.ok() ? *done : console.fail(done.error());
}

}  // namespace culprit::cli
