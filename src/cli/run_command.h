// The commands, each in a file of its own: cmd_diagnose.cc, cmd_list.cc.
#pragma once

#include "base/result.h"
#include "cli/analysis.h"
#include "cli/console.h"
#include "cli/inputs.h"
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
// sql: one query over a trace, or what tables there are
Outcome sql(const Settings& settings, Console& console);
// slice: a piece of a trace to a file of its own
Outcome slice(const Settings& settings, Console& console);
// fleet: summaries of many traces, made by several processes -> merge -> as diagnose from there on
Outcome fleet(const Settings& settings, Console& console);
// list {suspects,gpus,models,formats,notes}
Outcome list(const Settings& settings, Console& console);

// diagnose in parts: from what was read to the answer at its place, build -> measure -> judge -> render;
Outcome conclude(const Settings& settings, Console& console, Analysis& analysis);
// no verdict: the reason on stderr, and the document if one was asked for.
Outcome refuse(const Settings& settings, Console& console, report::Answer& answer,
               const Error& error);

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
// Where the document goes whatever the flags of output say: that of a fleet into its folder.
std::string kept_document(const Settings& settings);
// Whether the files that the flags name can be written, and the page made, before anything is read.
Status check_outputs(const Settings& settings);
// Each form to where the flags want it.
Outcome hand_over(const Settings& settings, Console& console, const Rendered& rendered);

}  // namespace culprit::cli
