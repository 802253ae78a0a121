#include "base/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.h"

namespace culprit::term {
namespace {

constexpr std::chrono::milliseconds kFirstDraw{500}, kBetweenDraws{100};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool forces(std::string_view value) { return !value.empty() && value != "0"; }

std::optional<int> positive_number(std::string_view text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size() || n <= 0) return std::nullopt;
  return n;
}

}  // namespace

Environment read_environment() {
  return {.no_color = variable("NO_COLOR"),
          .force_color = variable("FORCE_COLOR"),
          .clicolor_force = variable("CLICOLOR_FORCE"),
          .term = variable("TERM"),
          .columns = variable("COLUMNS"),
          .lc_all = variable("LC_ALL"),
          .lc_ctype = variable("LC_CTYPE"),
          .lang = variable("LANG")};
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

std::optional<int> terminal_columns(std::FILE* stream) {
  winsize size{};
  if (!is_terminal(stream) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return std::nullopt;
  }
  return size.ws_col;
}

int width(const Environment& environment, std::optional<int> terminal) {
  const int columns =
      positive_number(environment.columns).value_or(terminal.value_or(kDefaultWidth));
  return std::clamp(columns, kMinWidth, kMaxWidth);
}

bool use_color(ColorWhen when, const Environment& environment, bool terminal) {
  if (when != ColorWhen::kAuto) return when == ColorWhen::kAlways;
  if (!environment.no_color.empty()) return false;
  if (forces(environment.clicolor_force) || forces(environment.force_color)) return true;
  return terminal && environment.term != "dumb";
}

bool utf8_locale(const Environment& environment) {
  std::string_view name = environment.lang;
  if (!environment.lc_ctype.empty()) name = environment.lc_ctype;
  if (!environment.lc_all.empty()) name = environment.lc_all;
  std::string folded;
  for (const char c : name) {
    if (c != '-') folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return folded.find("utf8") != std::string::npos;
}

Progress::Progress(std::FILE* stream, bool enabled, int columns, Clock::time_point start)
    : stream_(stream), enabled_(enabled), columns_(columns), next_(start + kFirstDraw) {}

bool Progress::due(Clock::time_point now) const { return enabled_ && now >= next_; }

void Progress::show(std::string_view line, Clock::time_point now) {
  if (!due(now)) return;
  next_ = now + kBetweenDraws;
  drawn_ = true;
  const std::string fitting = text::shorten_middle(line, columns_ - 1, false);
  std::fprintf(stream_, "\r%s\x1b[K", fitting.c_str());
  std::fflush(stream_);
}

void Progress::erase() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
}

}  // namespace culprit::term
