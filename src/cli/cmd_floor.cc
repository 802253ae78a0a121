// The floor of a model on a GPU; with a trace, the way of diagnose and the floor beside what it found.
#include <algorithm>
#include <string>

#include "base/usage.h"
#include "cli/output_file.h"
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

Status check_outputs(const Settings& settings) {
  for (const std::string& file : {settings.json_file, settings.html_file, settings.markdown_file}) {
    if (file.empty()) continue;
    TRY([[maybe_unused]] const Ok allowed, may_write_answer(file));
  }
  return Ok{};
}

Outcome hand_over(const Settings& settings, Console& console, const Rendered& rendered) {
  struct Form {
    const std::string &file, &content;
  };
  for (const Form& form : {Form{settings.json_file, rendered.document},
                           Form{settings.markdown_file, rendered.markdown}}) {
    if (form.file.empty() || form.content.empty()) continue;
    const Status written = write_answer_file(form.file, form.content);
    if (!written.ok()) return console.fail(written.error());
  }
  const std::string& out = settings.json && settings.json_file.empty()           ? rendered.document
                           : settings.markdown && settings.markdown_file.empty() ? rendered.markdown
                                                                                 : rendered.text;
  return out.empty() ? Outcome::kAnswered : console.answer(out);
}

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
