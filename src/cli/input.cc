#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <vector>

#include "base/near.h"
#include "cli/commands.h"
#include "cli/companions.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

// Names of what lies in `folder`, sorted; of a folder with more than `most` entries, some.
std::vector<std::string> names_in(const fs::path& folder, std::size_t most) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    names.push_back(it->path().filename().string());
    if (names.size() == most) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

Error missing(const std::string& path) {
  const fs::path as_path(path);
  const fs::path folder = as_path.has_parent_path() ? as_path.parent_path() : fs::path(".");
  constexpr std::size_t kMost = 4096;  // near names are looked for among these
  std::vector<std::string> candidates = names_in(folder, kMost);
  if (!as_path.has_parent_path()) {
    for (std::string& name : command_names()) candidates.push_back(std::move(name));
  }
  std::error_code failed;
  const std::string otherwise = fs::is_directory(folder, failed)
                                    ? std::string("check the path")
                                    : fmt::format("there is no folder {}", folder.string());
  return {.code = Error::Code::kCannotRead,
          .what = "no such file",
          .where = path,
          .hint = did_you_mean(as_path.filename().string(), candidates, otherwise),
          .note_code = "cannot-read"};
}

Error no_trace_in(const std::string& path) {
  return {.code = Error::Code::kUsage,
          .what = "is a folder without traces (*.json, *.json.gz, *.json.zst)",
          .where = path,
          .hint = "give a trace file, or the folder that the profiler wrote its traces to",
          .note_code = {}};
}

bool named_like_a_trace(const std::string& name) {
  const bool read = name.find(".json") != std::string::npos || name.ends_with(".sqlite");
  return read && !name.starts_with("config") && !name.starts_with("server") &&
         !name.starts_with("hf_quant") && !named_like_a_capture(name);
}

// "rank10" behind "rank9": numbers count as such.
bool before_by_number(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const std::size_t from_i = i, from_j = j;
    while (i < a.size() && digit(a[i])) ++i;
    while (j < b.size() && digit(b[j])) ++j;
    const std::string_view n = std::string_view(a).substr(from_i, i - from_i);
    const std::string_view m = std::string_view(b).substr(from_j, j - from_j);
    const auto left = n.substr(std::min(n.find_first_not_of('0'), n.size()));
    const auto right = m.substr(std::min(m.find_first_not_of('0'), m.size()));
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

Status check_input(const std::string& path) {
  if (path == "-") return Ok{};
  if (path.empty()) {
    return Error{.code = Error::Code::kUsage,
                 .what = "the trace's name is empty",
                 .where = {},
                 .hint = "is a variable of your script unset?",
                 .note_code = {}};
  }
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) return missing(path);
  if (fs::is_directory(status)) {
    return Error{.code = Error::Code::kUsage,
                 .what = "is a folder",
                 .where = path,
                 .hint = "give one trace file",
                 .note_code = {}};
  }
  return Ok{};
}

Result<std::vector<std::string>> find_traces(const std::string& path) {
  std::error_code failed;
  if (path == "-" || path.empty() || !fs::is_directory(path, failed)) {
    TRY([[maybe_unused]] const Ok there, check_input(path));
    return std::vector<std::string>{path};
  }
  std::vector<std::string> traces;
  for (const std::string& name : names_in(path, std::numeric_limits<std::size_t>::max()))
    if (named_like_a_trace(name)) traces.push_back(name);
  if (traces.empty()) return no_trace_in(path);
  std::sort(traces.begin(), traces.end(), before_by_number);
  for (std::string& name : traces) name = (fs::path(path) / name).string();
  return traces;
}

Result<std::vector<std::string>> find_traces_under(const std::string& folder,
                                                   const std::string& except) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    TRY([[maybe_unused]] const Ok there, check_input(folder));
    return Error{.code = Error::Code::kUsage,
                 .what = "is no folder",
                 .where = folder,
                 .hint = "fleet takes the folder that holds the traces of all ranks",
                 .note_code = {}};
  }
  const std::size_t prefix = (fs::path(folder) / "").string().size();
  std::vector<std::string> traces;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string path = it->path().string();
    std::error_code unknown;
    if (it->is_directory(unknown)) {
      const bool hidden = it->path().filename().string().starts_with('.');
      if (hidden || fs::equivalent(it->path(), except, unknown)) it.disable_recursion_pending();
    } else if (named_like_a_trace(it->path().filename().string())) {
      traces.push_back(path.substr(prefix));
    }
  }
  if (failed) {
    return Error{.code = Error::Code::kCannotRead,
                 .what = fmt::format("cannot be listed: {}", failed.message()),
                 .where = folder,
                 .hint = "check the permissions of it and of the folders in it",
                 .note_code = "cannot-read"};
  }
  if (traces.empty()) return no_trace_in(folder);
  std::sort(traces.begin(), traces.end(), before_by_number);
  for (std::string& name : traces) name = (fs::path(folder) / name).string();
  return traces;
}

}  // namespace culprit::cli
