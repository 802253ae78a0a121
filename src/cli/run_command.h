// The commands, each in a file of its own: cmd_diagnose.cc, cmd_list.cc.
#pragma once

#include "base/result.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "evidence/evidence.h"
#include "run/run.h"

namespace culprit::cli {

// diagnose and the seven tables: load -> build -> measure -> judge -> render.
Outcome diagnose(const Settings& settings, Console& console);
// floor: of a model and a GPU alone, or held against a trace, which diagnose reads.
Outcome floor(const Settings& settings, Console& console);
// compare: two recordings, or two folders of them
Outcome compare(const Settings& settings, Console& console);
// list {suspects,gpus,models,formats,notes}
Outcome list(const Settings& settings, Console& console);

// Puts the user's tables of GPUs and models on top of the built-in ones.
Status add_tables(const Settings& settings);
// What flags and files add to a trace; a wrong name is an error before anything is read.
Result<known::Deployment> gather_deployment(const Settings& settings);
// With a redactor the model's name is hidden, here and in the traces to be read.
Result<evidence::Knowledge> gather_knowledge(const Settings& settings, Redactor* redactor);
void redact(Redactor* redactor, const std::string& given, known::Model& model);
// How runs are built for these settings and what they add to a trace.
run::Options building(const Settings& settings, const evidence::Knowledge& known);
// An answer in each form that was asked for; what is empty is not written.
struct Rendered {
  std::string document, text, markdown;
};
// Whether the files that the flags name can be written, before anything is read.
Status check_outputs(const Settings& settings);
// Each form to where the flags want it.
Outcome hand_over(const Settings& settings, Console& console, const Rendered& rendered);

}  // namespace culprit::cli
