// Console: everything that a command says. The answer goes to stdout; errors, warnings, timings and
// progress go to stderr, cleaned of what could move the cursor.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/term.h"
#include "cli/redact.h"
#include "cli/settings.h"
#include "report/report.h"

namespace culprit::cli {

// How a command ended; main() turns it into the exit code.
enum class Outcome : std::uint8_t { kAnswered, kGateFailed, kNotAnswered, kInterrupted };

class Console {
 public:
  explicit Console(const Settings& settings);

  report::TextOptions text_options() const;
  int width() const { return width_; }

  // "culprit: error: WHERE: WHAT [code]" and a hint. Returns kNotAnswered (or kInterrupted).
  Outcome fail(const Error& error);
  void warn(std::string_view message, std::string_view code);
  void say(std::string_view own_words);  // to stderr as they are, also when quiet
  // To stdout. A reader that went away is no failure; a full disk is.
  Outcome answer(std::string_view text);

  // What --redact asks for; null without it.
  Redactor* redactor() { return redactor_ ? &*redactor_ : nullptr; }

  // Progress of reading, drawn only on a terminal.
  void show_reading(std::int64_t done, std::int64_t total);
  // The same of a query that runs: for how long, and the rows so far.
  void show_query(std::int64_t rows);
  // Any other work that goes on; `line` says how far it is. From one thread at a time.
  void show_progress(std::string_view line);
  bool draws() const { return draws_; }  // whether progress is seen at all

  // Ends a stage: with -v its name and time since the last one go to stderr.
  void stage_done(std::string_view stage);

 private:
  using Clock = term::Progress::Clock;
  std::string safe(std::string_view text) const;

  const Settings& settings_;
  term::Environment environment_;
  int width_;
  bool unicode_, draws_;
  Clock::time_point start_, stage_start_;
  term::Progress progress_;
  std::optional<Redactor> redactor_;
};

}  // namespace culprit::cli
