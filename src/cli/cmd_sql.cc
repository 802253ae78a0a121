// One query over a trace: compile -> as much of the analysis as it needs -> rows to stdout as they
// come. A wrong query is answered before anything is read.
#include <cstdio>

#include "base/usage.h"
#include "cli/analysis.h"
#include "cli/output_file.h"
#include "cli/parse.h"
#include "cli/run_command.h"
#include "query/printer.h"
#include "query/query.h"

namespace culprit::cli {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;  // bytes written at a time

// The query, or standard input where it is "-".
Result<std::string> read_query(const Settings& settings) {
  if (settings.words.back() != "-") return settings.words.back();
  for (std::size_t i = 0; i + 1 < settings.words.size(); ++i)
    if (settings.words[i] == "-")
      return usage("trace and query cannot both come from standard input", "save one of them");
  constexpr std::size_t kLongest = 1'000'000;
  std::string query(kLongest + 1, '\0');
  query.resize(std::fread(query.data(), 1, query.size(), stdin));
  if (query.size() > kLongest) return usage("the query is longer than 1 MB", "is it a trace?");
  return query;
}

// ".tables", ".schema", ".schema events": nothing is read for them. Any words in front are traces.
std::optional<Outcome> answer_about_tables(const Settings& settings, Console& console) {
  const std::vector<std::string>& words = settings.words;
  const bool two_words = words.size() > 1 && words[words.size() - 2] == ".schema";
  const std::string asked = two_words ? ".schema " + words.back() : words.back();
  if (!is_about_tables(asked)) return std::nullopt;
  const std::size_t blank = asked.find(' ');
  const std::string command = asked.substr(0, blank);
  const std::string table = blank == std::string::npos ? std::string() : asked.substr(blank + 1);
  if (command == ".tables") return console.answer(query::list_tables());
  if (command != ".schema")
    return console.fail(
        usage("\"" + command + "\" is no command of sql", ".tables, .schema [TABLE]"));
  const Result<std::string> schema = query::describe_tables(table);
  return schema.ok() ? console.answer(*schema) : console.fail(schema.error());
}

// As far as the query needs it. Where no run can be had, columns that need one are NULL.
Status analyse(Analysis& analysis, const query::Statement& statement, Console& console) {
  using query::Needs;
  TRY([[maybe_unused]] const Ok read, analysis.read());
  if (statement.needs() >= Needs::kRun) {
    const Status built = analysis.build();
    const bool goes_on = !built.ok() && built.error().code == Error::Code::kUnusable &&
                         statement.needs_at_least() < Needs::kRun && analysis.answer.run == nullptr;
    if (goes_on) {
      console.warn(
          "no steps and no kernels, and columns about them are NULL: " + built.error().what,
          built.error().note_code);
      return Ok{};
    }
    if (!built.ok()) return built.error();
  }
  if (statement.needs() >= Needs::kVerdict) {
    TRY([[maybe_unused]] const Ok judged, analysis.judge());
  }
  return Ok{};
}

query::Form form_of(const Settings& settings) {
  return settings.csv    ? query::Form::kCsv
         : settings.json ? query::Form::kJson
                         : query::Form::kTable;
}

// Rows to stdout, or to a file where --json names one.
class Sink {
 public:
  Sink(const Settings& settings, Console& console) : settings_(settings), console_(console) {}
  std::string& text() { return text_; }
  // False: the reader went away, or writing failed.
  bool pass_on() {
    if (!settings_.json_file.empty() || text_.size() < kChunk) return true;
    return write();
  }
  Outcome end() {
    if (settings_.json_file.empty()) {
      write();
      return outcome_;
    }
    const Status written = write_answer_file(settings_.json_file, text_);
    return written.ok() ? Outcome::kAnswered : console_.fail(written.error());
  }

 private:
  bool write() {
    if (outcome_ == Outcome::kAnswered) outcome_ = console_.answer(text_);
    text_.clear();
    return outcome_ == Outcome::kAnswered && std::ferror(stdout) == 0;
  }
  const Settings& settings_;
  Console& console_;
  std::string text_;
  Outcome outcome_ = Outcome::kAnswered;
};

Outcome print_rows(const Settings& settings, Console& console, query::Statement& statement,
                   const query::Source& source, const report::Answer& answer) {
  Sink sink(settings, console);
  const auto printer = query::make_printer(form_of(settings), statement.columns(),
                                           console.text_options(), query::document_head(answer));
  std::int64_t rows = 0;
  statement.start(source, [&] {
    console.show_query(rows);
    return true;
  });
  for (;;) {
    const Result<bool> more = statement.next();
    if (!more.ok()) return console.fail(more.error());
    if (!*more) break;
    ++rows;
    printer->row(statement, sink.text());
    if (!sink.pass_on()) return sink.end();
  }
  printer->end(sink.text());
  return sink.end();
}

// No rows: the reason on stderr, and the document where one was asked for.
Outcome refuse(const Settings& settings, Console& console, const query::Statement& statement,
               report::Answer& answer, const Error& error) {
  const Outcome outcome = console.fail(error);
  if (error.code == Error::Code::kUsage || outcome == Outcome::kInterrupted || !settings.json)
    return outcome;
  answer.failure = error;
  Sink sink(settings, console);
  query::make_printer(query::Form::kJson, statement.columns(), console.text_options(),
                      query::document_head(answer))
      ->end(sink.text());
  sink.end();
  return outcome;
}

}  // namespace

Outcome sql(const Settings& settings, Console& console) {
  if (const auto answered = answer_about_tables(settings, console)) return *answered;
  if (!settings.json_file.empty()) {
    const Status allowed = may_write_answer(settings.json_file);
    if (!allowed.ok()) return console.fail(allowed.error());
  }
  const Result<std::string> text = read_query(settings);
  if (!text.ok()) return console.fail(text.error());
  Result<query::Statement> statement = query::compile(*text);
  if (!statement.ok()) return console.fail(statement.error());

  Settings of_traces = settings;
  of_traces.words.pop_back();
  Analysis analysis(of_traces, console);
  const Status known = analysis.gather();
  if (!known.ok()) return console.fail(known.error());
  const Status found = analyse(analysis, *statement, console);
  analysis.redact();
  if (!found.ok()) return refuse(settings, console, *statement, analysis.answer, found.error());
  const query::Source source(analysis.trace(), analysis.answer);
  console.stage_done("index");
  const Outcome outcome = print_rows(settings, console, *statement, source, analysis.answer);
  console.stage_done("query");
  return outcome;
}

}  // namespace culprit::cli
