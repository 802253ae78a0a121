#include "forge/forge.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

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
  File file;
  if (options.output != "-") {
    file.reset(std::fopen(options.output.c_str(), "wb"));
    if (!file) return cannot_write(options.output);
  }
  FileSink sink(file ? file.get() : out);
  return write_trace(run, options.write, sink);
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
  return 0;
}

}  // namespace culprit::forge
