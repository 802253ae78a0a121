// The floor of a model on a GPU; with a trace, the way of diagnose and the floor beside what it found.
#include <algorithm>
#include <string>

#include "base/usage.h"
#include "cli/output_file.h"
#include "cli/run_command.h"
#include "report/report.h"

namespace culprit::cli {
namespace {

Result<evidence::StepFloor> floor_alone(const Settings& settings) {
  evidence::StepFloor answer;
  TRY(answer.given.model, known::load_model(settings.model));
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
  return answer;
}

}  // namespace

Outcome hand_over(const Settings& settings, Console& console, const std::string& document,
                  const std::string& text) {
  if (settings.json) {
    if (settings.json_file.empty()) return console.answer(document);
    const Status written = write_answer_file(settings.json_file, document);
    if (!written.ok()) return console.fail(written.error());
  }
  return text.empty() ? Outcome::kAnswered : console.answer(text);
}

Outcome floor(const Settings& settings, Console& console) {
  if (settings.model.empty()) {
    return console.fail(usage("floor needs a model", "--model CONFIG|NAME"));
  }
  if (!settings.words.empty()) return diagnose(settings, console);
  if (settings.gpu.empty()) {
    return console.fail(usage("floor needs a GPU, or a trace that names it", "--gpu NAME"));
  }
  if (!settings.json_file.empty()) {
    const Status allowed = may_write_answer(settings.json_file);
    if (!allowed.ok()) return console.fail(allowed.error());
  }
  const Result<evidence::StepFloor> answer = floor_alone(settings);
  if (!answer.ok()) return console.fail(answer.error());
  return hand_over(settings, console, report::render_floor_json(*answer, {}),
                   report::render_floor(*answer, console.text_options()));
}

}  // namespace culprit::cli
