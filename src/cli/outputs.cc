// Where answers go: to the files that flags name, and to stdout.
#include <string>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/run_command.h"
#include "report/report.h"

namespace culprit::cli {

std::string kept_document(const Settings& settings) {
  return settings.command->id == CommandId::kFleet ? settings.output + "/fleet.json"
                                                   : std::string();
}

Status check_outputs(const Settings& settings) {
  for (const std::string& file :
       {settings.json_file, settings.html_file, settings.markdown_file, kept_document(settings)}) {
    if (file.empty()) continue;
    TRY([[maybe_unused]] const Ok allowed, may_write_answer(file));
  }
  if (settings.html_file.empty() || report::can_render_html()) return Ok{};
  return Error{.code = Error::Code::kUnsupported,
               .what = "this culprit was built without the page of --html",
               .where = {},
               .hint = "install nodejs and npm (scripts/setup does), then build again",
               .note_code = {}};
}

Outcome hand_over(const Settings& settings, Console& console, const Rendered& rendered) {
  struct Form {
    const std::string &file, &content;
  };
  const std::string kept = kept_document(settings);
  for (const Form& form :
       {Form{settings.json_file, rendered.document}, Form{kept, rendered.document},
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

}  // namespace culprit::cli
