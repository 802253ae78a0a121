// Analysis: the way from the traces of a command line to a verdict, stage by stage: each needs the
// one before, and a command goes as far as its question does. What was found so far is in `answer`,
// also after a failure. Prints warnings about damage, progress and timings, no answer.
#pragma once

#include <memory>
#include <optional>

#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/settings.h"
#include "evidence/evidence.h"
#include "report/report.h"
#include "run/run.h"
#include "verdict/verdict.h"

namespace culprit::cli {

class Analysis {
 public:
  Analysis(const Settings& settings, Console& console);
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  // What flags and files add, before anything is read. An error is the command line's.
  Status gather();
  Status read();  // -> trace(), and of several devices or files the one the answer is about
  void take(Inputs inputs);  // instead of read(): what was read elsewhere
  Status build();            // -> answer.run, with what other traces lend it
  Status judge();            // -> answer.evidence, answer.verdict

  // What --redact takes out of the answer so far; the traces lose theirs when they are read.
  void redact();

  const store::Trace& trace() const { return *inputs_.run; }
  report::Answer answer;

 private:
  Status weigh_damage();
  void note_ranks();
  void note_bounds();

  const Settings& settings_;
  Console& console_;
  evidence::Knowledge known_;
  run::Options options_;
  Inputs inputs_;
  std::unique_ptr<run::Builder> builder_;
  Nanos waiting_ = 0;  // per step, for other ranks
  std::optional<run::Run> run_;
  std::optional<evidence::Evidence> evidence_;
  std::optional<verdict::Verdict> verdict_;
};

}  // namespace culprit::cli
