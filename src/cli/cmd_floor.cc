// The floor of a model on a GPU; with a trace, the way of diagnose and the floor beside what it found.
#include <algorithm>
#include <string>

#include "base/usage.h"
#include "cli/run_command.h"
#include "report/report.h"

namespace culprit::cli {
namespace {

Result<evidence::StepFloor> floor_alone(const Settings& settings, Redactor* redactor) {
  evidence::StepFloor answer;
  TRY(answer.given.model, known::load_model(settings.model));
  redact(redactor, settings.model, answer.given.model);
  TRY(answer.given.gpu, known::find_gpu(settings.gpu));
  TRY(answer.given.deployment, gather_deployment(settings));
  const std::int64_t batch = settings.batch.value_or(1);
  answer.given.deployment.batch = batch;
  answer.given.context = settings.context;
  const auto& active = answer.given.deployment.active_tokens;
  if (!answer.given.context && active) {
    answer.given.context = std::max<std::int64_t>(1, *active / batch);
  }
  TRY(answer.floor, known::floor_of(answer.given));
  if (redactor != nullptr) redactor->redact(answer);
  return answer;
}

}  // namespace

Outcome floor(const Settings& settings, Console& console) {
  if (settings.model.empty()) {
    return console.fail(usage("floor needs a model", "--model CONFIG|NAME"));
  }
  if (!settings.words.empty()) return diagnose(settings, console);
  if (settings.gpu.empty()) {
    return console.fail(usage("floor needs a GPU, or a trace that names it", "--gpu NAME"));
  }
  const Status writable = check_outputs(settings);
  if (!writable.ok()) return console.fail(writable.error());
  const Result<evidence::StepFloor> answer = floor_alone(settings, console.redactor());
  if (!answer.ok()) return console.fail(answer.error());
  return hand_over(settings, console,
                   {.document = report::render_floor_json(*answer, {}),
                    .text = report::render_floor(*answer, console.text_options()),
                    .markdown = {}});
}

}  // namespace culprit::cli
