// Terminal: what the streams can show (width, colour, Unicode), decided from the environment alone,
// and the progress line. The only part of base that writes, and only to the stream it is given.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::term {

// What the environment says; an unset variable is empty.
struct Environment {
  std::string no_color = {}, force_color = {}, clicolor_force = {}, term = {}, columns = {},
              lc_all = {}, lc_ctype = {}, lang = {};
};
Environment read_environment();

bool is_terminal(std::FILE* stream);
// Columns of the terminal behind `stream`; none if it is no terminal or does not say.
std::optional<int> terminal_columns(std::FILE* stream);

inline constexpr int kMinWidth = 40, kDefaultWidth = 80, kMaxWidth = 400;
// COLUMNS if it is a number, else the terminal's, else 80; within [kMinWidth, kMaxWidth].
int width(const Environment& environment, std::optional<int> terminal);

enum class ColorWhen : std::uint8_t { kAuto, kAlways, kNever };
// Flag, then NO_COLOR (non-empty), then CLICOLOR_FORCE and FORCE_COLOR (neither empty nor "0"),
// then whether it is a terminal that is not "dumb".
bool use_color(ColorWhen when, const Environment& environment, bool terminal);
// The first of LC_ALL, LC_CTYPE, LANG that is set names UTF-8.
bool utf8_locale(const Environment& environment);

// One line that is drawn over itself. Nothing shows in the first half second; then at most ten
// times a second.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // Draws on `stream` only if `enabled` (a terminal, not quiet). `columns`: longer lines are cut.
  Progress(std::FILE* stream, bool enabled, int columns, Clock::time_point start);
  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool due(Clock::time_point now) const;  // would `show` draw now
  void show(std::string_view line, Clock::time_point now);
  void erase();  // before anything else is printed; harmless when nothing is drawn

 private:
  std::FILE* stream_;
  bool enabled_, drawn_ = false;
  int columns_;
  Clock::time_point next_;
};

}  // namespace culprit::term
