// Redactor: takes out of traces, and of what is said about them, what tells where they were made:
// folders, the user's own files, users, hosts and models. A trace is redacted when it has been read,
// so that nothing behind it can leak what it does not know; figures are those of the trace as it was.
//
// Files of public libraries keep their place in the library (".../sglang/srt/layers/moe.py"), for a
// culprit without its line is half a culprit; other folders and files become folder1/file1.py, the same
// one wherever it stands. Files below "models" are named after models, and go as well. Names of
// kernels, operators, functions and marks stay but for the words to be hidden in them.
// Equal input gives equal output. Cost: linear in the distinct texts of a trace.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "compare/compare.h"
#include "evidence/floor.h"
#include "report/report.h"
#include "store/trace.h"

namespace culprit::cli {

class Redactor {
 public:
  Redactor();  // hides the models that are known

  // From here on `word` and what holds it between "-", "_" and "." reads `as`. Short words stay: they
  // would be found everywhere.
  void hide(std::string_view word, std::string_view as);
  void hide_model(std::string_view name);  // "org/name" or "name"
  // What the path of a trace tells besides itself: the user whose home it lies in, the host that
  // torch's own exporter puts in front.
  void learn(const std::string& path);

  void redact(store::Trace& trace);
  // Everything else that can be shown: paths of inputs, notes, the failure.
  void redact(report::Answer& answer, run::Run* run);
  void redact(evidence::StepFloor& floor);
  void redact(compare::Comparisons& pairs);

  std::string text(std::string_view words);         // paths and hidden words in a sentence
  std::string trace_name(const std::string& path);  // "trace1.json.gz"; "-" stays

 private:
  std::string path(std::string_view path);
  std::string frame(std::string_view name);
  std::string call_from(std::string_view place);
  std::string words(std::string_view text) const;
  std::string file_name(std::string_view base);
  std::string folder_name(std::string_view folder);
  std::string class_name(std::string_view name);
  void collect(const store::Trace& trace);
  void redact(store::Notes& notes);
  void redact(compare::Side& side);

  std::map<std::string, std::string, std::less<>> hidden_;  // in small letters: what it reads
  std::set<std::string, std::less<>> first_pieces_;         // of the hidden words
  std::set<std::string, std::less<>> public_files_;         // names of files of public libraries
  std::map<std::string, std::string, std::less<>> files_, folders_, classes_, traces_;
};

}  // namespace culprit::cli
