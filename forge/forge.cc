#include "forge/forge.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "forge/geometry.h"
#include "forge/options.h"

namespace culprit::forge {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Error cannot_write(std::string_view path) {
  return {Error::Code::kCannotRead, "cannot be written", std::string(path),
          "does the folder exist?"};
}

Status write_text(const std::string& path, std::string_view text) {
  if (text.empty()) return Ok{};
  const File file(std::fopen(path.c_str(), "wb"));
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size())
    return cannot_write(path);
  return Ok{};
}

Status write_configs(const Configs& configs, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{Error::Code::kCannotRead, "cannot be created", folder, failed.message()};
  const std::pair<std::string_view, const std::string*> files[] = {
      {"config.json", &configs.config},
      {"hf_quant_config.json", &configs.quantization},
      {"server_info.json", &configs.server_info}};
  for (const auto& [name, text] : files) {
    Status done = write_text(fmt::format("{}/{}", folder, name), *text);
    if (!done) return done;
  }
  return Ok{};
}

// Of one rank, by its own clock.
Result<Written> write_rank(const Run& run, const Options& options, int rank,
                           const std::string& path, std::FILE* out) {
  WriteOptions write = options.write;
  write.rank = rank;
  if (options.clocks) {
    constexpr Nanos kFarthest = 50'000'000;    // 50 ms
    constexpr std::int64_t kFastest = 50'000;  // 50 ppm, in parts per 10^9
    Random random(write.seed * 1'009 + static_cast<std::uint64_t>(rank));
    write.clock_offset = random.between(-kFarthest, kFarthest);
    write.clock_drift = random.between(-kFastest, kFastest);
  }
  File file;
  if (path != "-") {
    file.reset(std::fopen(path.c_str(), "wb"));
    if (!file) return cannot_write(path);
  }
  FileSink sink(file ? file.get() : out);
  TRY(Written written, write_trace(run, write, sink));
  if (options.clocks)
    written.clocks = fmt::format("rank {}: clock {:+} ns, {:+} ppb\n", rank, write.clock_offset,
                                 write.clock_drift);
  return written;
}

// One file for each rank, named as SGLang does.
Result<Written> write_ranks(const Run& run, const Options& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.output, failed);
  if (failed)
    return Error{Error::Code::kCannotRead, "cannot be created", options.output, failed.message()};
  Written all;
  for (int rank = 0; rank < run.world; ++rank) {
    const std::string path = fmt::format("{}/{}-TP-{}.trace.json", options.output, run.name, rank);
    TRY(const Written one, write_rank(run, options, rank, path, nullptr));
    all.bytes += one.bytes;
    all.events += one.events;
    all.launches += one.launches;
    all.steps = one.steps;
    all.clocks += one.clocks;
  }
  return all;
}

Result<Written> forge(Options& options, std::FILE* out) {
  const Run run = options.recipe->make(options.choice);
  if (!options.steps_given) options.write.steps = run.default_steps;
  if (options.size != 0 || options.events != 0) {
    const Wanted wanted{options.events, options.size, options.steps_given};
    const Status fitted = fit(run, wanted, options.write);
    if (!fitted) return fitted.error();
  }
  if (!options.config_dir.empty()) {
    const Status done = write_configs(run.configs, options.config_dir);
    if (!done) return done.error();
  }
  if (options.all_ranks) return write_ranks(run, options);
  return write_rank(run, options, options.write.rank, options.output, out);
}

// Not fmt::print, which throws when the stream is closed.
void say(std::FILE* err, const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), err));
}

void report(const Error& error, std::FILE* err) {
  const std::string place = error.where.empty() ? std::string() : error.where + ": ";
  say(err, fmt::format("culprit forge: error: {}{}\n", place, error.what));
  if (!error.hint.empty()) say(err, fmt::format("  hint: {}\n", error.hint));
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): the check takes it for the program's main
int main(std::span<const std::string_view> args, std::FILE* out, std::FILE* err) {
  Result<Options> options = parse(args);
  if (!options) {
    report(options.error(), err);
    return 2;
  }
  if (options->help || options->list) {
    const std::string text = options->help ? help_text() : list_text();
    return std::fwrite(text.data(), 1, text.size(), out) == text.size() ? 0 : 2;
  }
  const Result<Written> written = forge(*options, out);
  if (!written) {
    report(written.error(), err);
    return 2;
  }
  say(err, fmt::format("{}: {} steps, {} events, {:.1f} MB in {}\n", options->recipe->name,
                       written->steps, written->events, static_cast<double>(written->bytes) / 1e6,
                       options->output == "-" ? "stdout" : options->output));
  say(err, written->clocks);
  return 0;
}

}  // namespace culprit::forge
