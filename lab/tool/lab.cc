#include "lab/tool/lab.h"

#include <fmt/format.h>

#include "lab/tool/commands.h"
#include "lab/tool/options.h"

namespace culprit::lab {
namespace {

void report(const Error& error, std::FILE* err) {
  const std::string place = error.where.empty() ? std::string() : error.where + ": ";
  std::string text = fmt::format("culprit lab: error: {}{}\n", place, error.what);
  if (!error.hint.empty()) text += fmt::format("  hint: {}\n", error.hint);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), err));
}

// Whether all is well; false: a check missed.
Result<bool> dispatch(const Options& options, Screen& screen) {
  if (options.command == Command::kCheck) return check(options, screen);
  if (options.command == Command::kProve) return prove(options, screen);
  const Status done = options.command == Command::kRun      ? run(options, screen)
                      : options.command == Command::kBench  ? bench(options, screen)
                      : options.command == Command::kScore  ? score(options, screen)
                      : options.command == Command::kFaults ? list_faults(options, screen)
                                                            : make_model(options, screen);
  if (!done.ok()) return done.error();
  return true;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): the check takes it for the program's main
int main(std::span<const std::string_view> args, std::FILE* out, std::FILE* err) {
  const Result<Options> options = parse(args);
  if (!options.ok()) {
    report(options.error(), err);
    return 2;
  }
  if (options->help) {
    const std::string text = help_text(options->command);
    return std::fwrite(text.data(), 1, text.size(), out) == text.size() ? 0 : 2;
  }
  Screen screen(out, err, *options);
  const Result<bool> well = dispatch(*options, screen);
  if (!well.ok()) {
    report(well.error(), err);
    return 2;
  }
  return *well ? 0 : 1;
}

}  // namespace culprit::lab
