#include "cli/console.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "report/paint.h"

namespace culprit::cli {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

std::string rate_text(std::int64_t bytes, nanoseconds time) {
  if (time.count() <= 0) return {};
  const double per_second = static_cast<double>(bytes) / static_cast<double>(time.count()) * 1e9;
  return ", " + text::bytes(static_cast<std::int64_t>(per_second)) + "/s";
}

}  // namespace

Console::Console(const Settings& settings)
    : settings_(settings),
      environment_(term::read_environment()),
      width_(settings.width.value_or(term::width(environment_, term::terminal_columns(stdout)))),
      unicode_(term::utf8_locale(environment_)),
      draws_(term::is_terminal(stderr) && !settings.quiet),
      start_(Clock::now()),
      stage_start_(start_),
      progress_(stderr, draws_, term::terminal_columns(stderr).value_or(term::kDefaultWidth),
                start_) {
  if (settings.redact) redactor_.emplace();
}

report::TextOptions Console::text_options() const {
  return {.width = width_,
          .color = term::use_color(settings_.color, environment_, term::is_terminal(stdout)),
          .unicode = unicode_,
          .all = settings_.all,
          .unit = settings_.unit};
}

std::string Console::safe(std::string_view text) const {
  const std::string clean = text::clean(text);
  return unicode_ ? clean : text::ascii(clean);
}

void Console::say(std::string_view own_words) {
  progress_.erase();
  std::fwrite(own_words.data(), 1, own_words.size(), stderr);
}

Outcome Console::fail(const Error& error) {
  if (error.code == Error::Code::kInterrupted) return Outcome::kInterrupted;
  const bool color = term::use_color(settings_.color, environment_, term::is_terminal(stderr));
  std::string line = error.where.empty() ? error.what : error.where + ": " + error.what;
  if (!error.note_code.empty()) line += " [" + error.note_code + "]";
  progress_.erase();
  std::fprintf(stderr, "culprit: %s %s\n",
               report::paint("error:", report::Ink::kRed, color).c_str(), safe(line).c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "  hint: %s\n", safe(error.hint).c_str());
  return Outcome::kNotAnswered;
}

void Console::warn(std::string_view message, std::string_view code) {
  if (settings_.quiet) return;
  const bool color = term::use_color(settings_.color, environment_, term::is_terminal(stderr));
  progress_.erase();
  std::fprintf(stderr, "culprit: %s %s\n",
               report::paint("warning:", report::Ink::kYellow, color).c_str(),
               safe(fmt::format("{} [{}]", message, code)).c_str());
}

Outcome Console::answer(std::string_view text) {
  progress_.erase();
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return Outcome::kAnswered;
  return fail({.code = Error::Code::kCannotRead,
               .what = fmt::format("cannot be written: {}", std::strerror(errno)),
               .where = "standard output",
               .hint = {},
               .note_code = {}});
}

void Console::show_reading(std::int64_t done, std::int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!progress_.due(now)) return;
  std::string line = "reading " + text::bytes(done);
  if (total > 0) line += " of " + text::bytes(total);
  line += rate_text(done, duration_cast<nanoseconds>(now - start_));
  if (total > done && done > 0) {
    const double left = static_cast<double>((now - start_).count()) / static_cast<double>(done) *
                        static_cast<double>(total - done);
    line += fmt::format(", {} left", text::duration(static_cast<Nanos>(left), false));
  }
  progress_.show(line, now);
}

void Console::show_query(std::int64_t rows) {
  const Clock::time_point now = Clock::now();
  if (!progress_.due(now)) return;
  const auto ran = duration_cast<nanoseconds>(now - stage_start_).count();
  progress_.show(
      fmt::format("querying for {}, {} {} so far; Ctrl-C ends it", text::duration(ran, false),
                  text::count(rows), rows == 1 ? "row" : "rows"),
      now);
}

void Console::show_progress(std::string_view line) {
  const Clock::time_point now = Clock::now();
  if (progress_.due(now)) progress_.show(line, now);
}

void Console::stage_done(std::string_view stage) {
  const Clock::time_point now = Clock::now();
  const auto took = duration_cast<nanoseconds>(now - stage_start_).count();
  stage_start_ = now;
  if (!settings_.verbose) return;
  say(fmt::format("culprit: {:<8} {:>8}\n", stage, text::duration(took, unicode_)));
}

}  // namespace culprit::cli
