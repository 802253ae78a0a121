#include "lab/tool/lab.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "lab/tool/commands.h"
#include "lab/tool/options.h"
#include "lab/tool/ranks.h"

namespace culprit::lab {
namespace {

void report(const Error& error, std::FILE* err) {
  const std::string place = error.where.empty() ? std::string() : error.where + ": ";
  std::string text = fmt::format("culprit lab: error: {}{}\n", place, error.what);
  if (!error.hint.empty()) text += fmt::format("  hint: {}\n", error.hint);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), err));
}

// Whether all is well; false: a check missed.
Result<bool> dispatch(const Options& options, Ranks* ranks, Screen& screen) {
  if (options.command == Command::kCheck) return check(options, screen);
  if (options.command == Command::kProve) return prove(options, screen);
  const Status done = options.command == Command::kRun      ? run(options, ranks, screen)
                      : options.command == Command::kBench  ? bench(options, ranks, screen)
                      : options.command == Command::kScore  ? score(options, screen)
                      : options.command == Command::kFaults ? list_faults(options, screen)
                                                            : make_model(options, screen);
  if (!done.ok()) return done.error();
  return true;
}

// Runs the command as one rank of several, or as the only one.
int run_rank(Options options, std::optional<Place> place, std::FILE* out, std::FILE* err) {
  const bool speaks = !place || place->rank == 0;
  std::unique_ptr<Ranks> ranks;
  if (options.ranks > 1) {
    const Status joined = join_ranks(options.ranks, ranks);
    if (!joined.ok()) {
      if (speaks || !ranks) report(joined.error(), err);  // alone, a rank speaks for itself
      return 2;
    }
    options.shard.rank = ranks->rank();
    options.shard.of = ranks->size();
    if (options.fault_rank && *options.fault_rank != ranks->rank()) options.faults = {};
  }
  Screen screen(out, err, options, speaks);
  const Result<bool> well = dispatch(options, ranks.get(), screen);
  if (well.ok()) return *well ? 0 : 1;
  if (speaks) report(well.error(), err);
  return 2;
}

// Started by mpirun, for a command that knows nothing of other ranks.
Error many_alone(const Place& place) {
  return {
      .code = Error::Code::kUsage,
      .what = fmt::format("mpirun started {} ranks, each of which would do all of it", place.size),
      .where = {},
      .hint = fmt::format("--tp {} shares the model among them; else leave mpirun out", place.size),
      .note_code = {}};
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): the check takes it for the program's main
int main(std::span<const std::string_view> args, std::FILE* out, std::FILE* err) {
  const std::optional<Place> place = place_in_run();
  const bool speaks = !place || place->rank == 0;
  const auto fail = [&](const Error& error) {
    if (!speaks) return 0;  // a rank that fails ends the first one, maybe before it has spoken
    report(error, err);
    return 2;
  };
  const Result<Options> options = parse(args);
  if (!options.ok()) return fail(options.error());
  if (options->help) {
    const std::string text = help_text(options->command);
    return std::fwrite(text.data(), 1, text.size(), out) == text.size() ? 0 : 2;
  }
  if (options->ranks > 1 && !place) {
    const Result<int> status = start_ranks(args, options->ranks, err);
    return status.ok() ? *status : fail(status.error());
  }
  if (options->ranks == 1 && place && place->size > 1) return fail(many_alone(*place));
  return run_rank(*options, place, out, err);
}

}  // namespace culprit::lab
