// A user's own GPUs and models: the files that flags name, else those of the configuration folder.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/run_command.h"
#include "known/gpus.h"
#include "known/models.h"

namespace culprit::cli {
namespace {

// $XDG_CONFIG_HOME/culprit/NAME, else ~/.config/culprit/NAME; empty where there is no such file. The
// standard says to ignore a relative XDG_CONFIG_HOME.
std::string configured(const char* name) {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (xdg != nullptr && xdg[0] == '/') {
    folder = xdg;
  } else if (home != nullptr && home[0] == '/') {
    folder = std::filesystem::path(home) / ".config";
  } else {
    return {};
  }
  const std::filesystem::path file = folder / "culprit" / name;
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? file.string() : std::string();
}

Result<std::string> read_table(const std::string& path, const std::string& hint) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  const auto error = [&](std::string what) {
    return Error{.code = Error::Code::kCannotRead,
                 .what = std::move(what),
                 .where = path,
                 .hint = hint,
                 .note_code = {}};
  };
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return error("no such file");
  if (!std::filesystem::is_regular_file(path, failed)) return error("is no plain file");
  if (std::filesystem::file_size(path, failed) > kMostBytes || failed)
    return error("larger than 4 MiB, which no such table is");
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return error("cannot be read");
  return text;
}

Status add(const std::string& given, const char* name, const std::string& flag,
           Status (*add_table)(std::string_view, std::string_view)) {
  if (given == "none") return Ok{};
  const std::string path = given.empty() ? configured(name) : given;
  if (path.empty()) return Ok{};
  TRY(const std::string text, read_table(path, flag + " FILE, or " + flag + " none"));
  Status added = add_table(text, path);
  if (added.ok() || !given.empty()) return added;
  Error error = added.error();
  error.hint += "; " + flag + " none goes without this file";
  return error;
}

}  // namespace

Status add_tables(const Settings& settings) {
  Status gpus = add(settings.gpu_table, "gpus.csv", "--gpu-table", known::add_gpu_table);
  if (!gpus.ok()) return gpus;
  return add(settings.model_table, "models.csv", "--model-table", known::add_model_table);
}

}  // namespace culprit::cli
