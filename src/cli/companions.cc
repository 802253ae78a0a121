#include "cli/companions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>

#include "cli/commands.h"
#include "cli/input.h"
#include "ingest/ingest.h"
#include "run/mapping.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kEndings{
    ".pt.trace.json.gz",  ".trace.json.gz",  ".json.gz",
    ".pt.trace.json.zst", ".trace.json.zst", ".json.zst",
    ".pt.trace.json",     ".trace.json",     ".json"};

std::string_view ending_of(std::string_view name) {
  for (const std::string_view ending : kEndings)
    if (name.ends_with(ending)) return ending;
  return {};
}

// The number behind one of `keys` in a file's name: "TP-0", "rank_0", "bs_32".
std::optional<std::int64_t> number_behind(std::string_view name,
                                          std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    for (std::size_t at = name.find(key); at != std::string_view::npos;
         at = name.find(key, at + 1)) {
      const bool inside_a_word = at > 0 && name[at - 1] >= 'a' && name[at - 1] <= 'z';
      std::int64_t value = 0;
      const char* first = name.data() + at + key.size();
      const auto [end, error] = std::from_chars(first, name.data() + name.size(), value);
      if (!inside_a_word && error == std::errc{} && value >= 0) return value;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> rank_in(std::string_view name) {
  return number_behind(name, {"TP-", "rank_", "rank"});
}
std::optional<std::int64_t> batch_in(std::string_view name) { return number_behind(name, {"bs_"}); }

std::vector<std::string> traces_in(const fs::path& folder) {
  constexpr std::size_t kMost = 4096;
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::string name = it->path().filename().string();
    if (!ending_of(name).empty()) names.push_back(std::move(name));
    if (names.size() == kMost) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<std::int64_t> rank_in_name(const std::string& path) {
  return number_behind(fs::path(path).filename().string(),
                       {"TP-", "rank_", "rank-", "rank", "DP-", "EP-", "worker"});
}

bool named_like_a_capture(const std::string& path) {
  return fs::path(path).filename().string().find("capture") != std::string::npos;
}

std::vector<std::string> captures_beside(const std::string& path, std::optional<std::int64_t> rank,
                                         std::optional<std::int64_t> batch) {
  constexpr std::size_t kMost = 16;
  const fs::path own(path);
  const std::string name = own.filename().string();
  if (!rank) rank = rank_in(name);
  const fs::path folder = own.parent_path();
  std::vector<std::string> found;
  const std::string stem = name.substr(0, name.size() - ending_of(name).size());
  std::error_code failed;
  for (const std::string_view ending : kEndings) {
    const fs::path pair = folder / (stem + ".capture" + std::string(ending));
    if (fs::exists(pair, failed)) found.push_back(pair.string());
  }
  if (!found.empty()) return found;

  std::vector<fs::path> candidates;
  for (const std::string_view inner : {"graph_capture_profile", "capture_traces"})
    for (const std::string& trace : traces_in(folder / inner)) {
      const auto its_rank = rank_in(trace);
      if (!its_rank || *its_rank == rank.value_or(0)) candidates.push_back(folder / inner / trace);
    }
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t smallest = kNone;  // captured batch that holds the run's
  for (const fs::path& candidate : candidates) {
    const auto size = batch_in(candidate.filename().string());
    if (size && batch && *size >= *batch) smallest = std::min(smallest, *size);
  }
  for (const fs::path& candidate : candidates) {
    const auto size = batch_in(candidate.filename().string());
    if (size && smallest != kNone && *size != smallest) continue;
    if (found.size() < kMost) found.push_back(candidate.string());
  }
  return found;
}

namespace {

std::optional<std::int64_t> largest_batch(const run::Run& run) {
  std::optional<std::int64_t> batch;
  for (const run::Step& step : run.steps)
    if (step.kind == run.kind && step.batch) batch = std::max(batch.value_or(0), *step.batch);
  return batch;
}

void note_unread(const std::string& path, const Error& error, run::Run& run) {
  run.notes.add({.code = "not-mapped",
                 .severity = store::Severity::kInfo,
                 .byte = std::nullopt,
                 .event = std::nullopt,
                 .where = path,
                 .message = "found beside the trace, and cannot lend: " + error.what});
}

// Nothing that lies about may end the answer; what the user gave must be readable.
Status read_companions(const Settings& settings, Console& console, const std::string& path,
                       std::vector<Companion>& companions, run::Run& run) {
  if (!settings.mapping.empty()) {
    TRY([[maybe_unused]] const Ok there, check_input(settings.mapping));
    TRY(auto trace, load_trace(settings.mapping, settings, console));
    companions.push_back({std::move(trace), "flag"});
  }
  if (!companions.empty() || path == "-") return Ok{};
  const auto found = captures_beside(path, run.trace->info.rank, largest_batch(run));
  for (const std::string& file : found) {
    auto trace = load_trace(file, settings, console);
    if (trace.ok())
      companions.push_back({std::move(*trace), "beside"});
    else
      note_unread(file, trace.error(), run);
  }
  return Ok{};
}

}  // namespace

ingest::Options reading(const Settings& settings, Console& console) {
  ingest::Options options;
  options.threads = settings.threads;
  options.places = settings.command->id == CommandId::kSlice;
  options.progress = [&console](const ingest::Progress& progress) {
    console.show_reading(progress.bytes_done, progress.bytes_total);
    return true;
  };
  return options;
}

Result<std::unique_ptr<store::Trace>> load_trace(const std::string& path, const Settings& settings,
                                                 Console& console) {
  Redactor* const redactor = console.redactor();
  if (redactor != nullptr) {
    redactor->learn(path);
    redactor->trace_name(path);  // numbered in the order of reading
  }
  TRY(auto trace, ingest::load(path, reading(settings, console)));
  if (redactor != nullptr) redactor->redact(*trace);
  return trace;
}

Status map_graphs(const Settings& settings, Console& console, const std::string& path,
                  std::vector<Companion>& given, run::Run& run) {
  if (settings.mapping == "none" || run::graph_kernels(run) == 0) return Ok{};
  TRY([[maybe_unused]] const Ok read, read_companions(settings, console, path, given, run));
  std::vector<run::Lender> lenders;
  for (const Companion& companion : given) {
    const std::string& file = companion.trace->info.path;
    auto lender = run::build_lender(*companion.trace, settings.threads);
    if (lender.ok())
      lenders.push_back({*lender, file, companion.found});
    else if (companion.found == "beside")
      note_unread(file, lender.error(), run);
    else
      return lender.error();
  }
  run::lend(std::move(lenders), run);
  return Ok{};
}

}  // namespace culprit::cli
