#include "cli/fleet_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/text.h"
#include "cli/companions.h"
#include "cli/input.h"
#include "cli/run_command.h"
#include "fleet/hash.h"
#include "fleet/share.h"
#include "ingest/ingest.h"
#include "ranks/module.h"
#include "ranks/place.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// A file that flags name, as it is now.
std::string file_state(const std::string& path) {
  if (path.empty()) return {};
  const fleet::TraceFile file = fleet::look_up({path}).front();
  return fmt::format("{} {} {}", path, file.bytes, file.changed);
}

// Whatever of the command line decides what a summary says.
std::string flags_of(const Settings& s) {
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  std::string flags;
  for (const std::string& file : {s.model, s.server_info, s.gpu_table, s.model_table})
    flags += file_state(file) + '\n';
  for (const auto& value : {s.tp, s.ep, s.attention_dp, s.pool_tokens, s.active_tokens, s.context})
    flags += number(value) + ' ';
  return flags +
         fmt::format("{} {} {} {}", s.gpu, s.kv_dtype ? known::dtype_name(*s.kv_dtype) : "-",
                     s.tpot_ms.value_or(0),
                     s.steps ? fmt::format("{}..{}", s.steps->first, s.steps->second) : "-");
}

// Draws how many of the traces are finished, by whichever process, while it lives: looks at the shelf five
// times a second. Without a terminal, as behind a launcher, it says so in a line now and then.
class Watch {
 public:
  Watch(Console& console, const fleet::Shelf& shelf, const std::vector<fleet::TraceFile>& traces,
        std::vector<std::size_t> pending, bool lines)
      : console_(console), shelf_(shelf), traces_(traces), pending_(std::move(pending)) {
    all_ = std::ssize(pending_);
    for (const std::size_t t : pending_) all_bytes_ += traces_[t].bytes;
    if (console_.draws() || lines)
      thread_ = std::jthread([this](const std::stop_token& stop) { look(stop); });
  }

 private:
  void look(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kInterval{200};
    constexpr std::chrono::seconds kBetweenLines{10};
    steady_clock::time_point next_line = start_ + kBetweenLines;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, kInterval, [] { return false; }) && !stop.stop_requested()) {
      count();
      const steady_clock::time_point now = steady_clock::now();
      if (console_.draws()) {
        console_.show_progress(line(now));
      } else if (now >= next_line) {
        console_.say("culprit: " + line(now) + "\n");
        next_line = now + kBetweenLines;
      }
    }
  }

  void count() {
    const auto finished = [this](std::size_t t) {
      std::error_code failed;
      if (!fs::exists(shelf_.file_of(traces_[t]), failed)) return false;
      done_bytes_ += traces_[t].bytes;
      return true;
    };
    std::erase_if(pending_, finished);
  }

  std::string line(steady_clock::time_point now) const {
    const auto done = all_ - std::ssize(pending_);
    std::string text =
        fmt::format("{} of {} traces summarized, {} of {}", text::count(done), text::count(all_),
                    text::bytes(done_bytes_), text::bytes(all_bytes_));
    const double took = std::chrono::duration<double>(now - start_).count();
    if (done_bytes_ == 0 || took <= 0) return text;
    const double rate = static_cast<double>(done_bytes_) / took;
    const auto left =
        static_cast<Nanos>(static_cast<double>(all_bytes_ - done_bytes_) / rate * 1e9);
    return text + fmt::format(", {}/s, {} left", text::bytes(static_cast<std::int64_t>(rate)),
                              text::duration(left, false));
  }

  Console& console_;
  const fleet::Shelf& shelf_;
  const std::vector<fleet::TraceFile>& traces_;
  std::vector<std::size_t> pending_;
  std::int64_t all_ = 0, all_bytes_ = 0, done_bytes_ = 0;
  steady_clock::time_point start_ = steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it ends before what it looks at
};

}  // namespace

FleetWork::FleetWork(const Settings& settings, Console& console, Ranks* ranks)
    : settings_(settings),
      console_(console),
      ranks_(ranks),
      shelf_(settings.output + "/summaries", flags_of(settings)) {}

Status FleetWork::find() {
  TRY([[maybe_unused]] const Ok found, agreed(ranks_, find_traces_alone()));
  TRY([[maybe_unused]] const Ok same, agreed(ranks_, same_everywhere()));
  find_pending();
  // What is out of date goes before anybody counts.
  if (first())
    for (const std::size_t t : pending_) shelf_.drop(traces_[t]);
  return agreed(ranks_, Ok{});
}

Status FleetWork::find_traces_alone() {
  TRY(const std::vector<std::string> paths,
      find_traces_under(settings_.words.front(), settings_.output));
  traces_ = fleet::look_up(paths);
  return shelf_.create();
}

// Each process looks at a part of the shelf and tells the others.
void FleetWork::find_pending() {
  const auto step = static_cast<std::size_t>(ranks_ == nullptr ? 1 : ranks_->size());
  std::vector<float> finished(traces_.size(), 0);
  for (auto t = static_cast<std::size_t>(ranks_ == nullptr ? 0 : ranks_->rank());
       t < traces_.size(); t += step) {
    finished[t] = shelf_.has(traces_[t]) ? 1 : 0;
    if (first())
      console_.show_progress(fmt::format("looking for summaries: {} of {}", t, traces_.size()));
  }
  if (ranks_ != nullptr) ranks_->all_reduce(finished.data(), std::ssize(finished));
  for (std::size_t t = 0; t < traces_.size(); ++t)
    if (finished[t] == 0) pending_.push_back(t);
}

// Shares follow from the list, so that all must have found the same.
Status FleetWork::same_everywhere() const {
  if (ranks_ == nullptr) return Ok{};
  std::string list;
  for (const fleet::TraceFile& trace : traces_)
    list += fmt::format("{} {} {}\n", trace.path, trace.bytes, trace.changed);
  const std::uint64_t own = fleet::hash(list);
  constexpr std::size_t kFloats = sizeof own / sizeof(float);
  std::array<float, kFloats> mine{};
  std::memcpy(mine.data(), &own, sizeof own);
  std::vector<float> all(kFloats * static_cast<std::size_t>(ranks_->size()));
  ranks_->all_gather(mine.data(), kFloats, all.data());  // bits, never read as numbers
  std::vector<std::uint64_t> lists(static_cast<std::size_t>(ranks_->size()));
  std::memcpy(lists.data(), all.data(), lists.size() * sizeof own);
  for (const std::uint64_t list_of_rank : lists) {
    if (list_of_rank == lists.front()) continue;
    return Error{.code = Error::Code::kUsage,
                 .what = "is not the same folder for every process",
                 .where = settings_.words.front(),
                 .hint = "traces and -o FOLDER must lie on a disk that all machines share",
                 .note_code = {}};
  }
  return Ok{};
}

Status FleetWork::summarize() {
  const bool lines = ranks_ != nullptr && !settings_.quiet;
  std::unique_ptr<Watch> watch;
  if (first() && !pending_.empty())
    watch = std::make_unique<Watch>(console_, shelf_, traces_, pending_, lines);
  return agreed(ranks_, summarize_share());
}

Status FleetWork::summarize_share() {
  TRY(const evidence::Knowledge known, gather_knowledge(settings_, nullptr));
  run::Options options = building(settings_, known);
  if (ranks_ != nullptr && options.threads == 0) {
    const auto cores = static_cast<int>(std::thread::hardware_concurrency());
    options.threads = std::max(1, cores / ranks_->local().size);
  }
  ingest::Options reading;
  reading.threads = options.threads;
  std::vector<std::int64_t> bytes;
  for (const std::size_t t : pending_) bytes.push_back(traces_[t].bytes);
  const auto parts = static_cast<std::size_t>(ranks_ == nullptr ? 1 : ranks_->size());
  const auto share = static_cast<std::size_t>(ranks_ == nullptr ? 0 : ranks_->rank());
  const std::vector<std::vector<std::size_t>> shares = fleet::share_out(bytes, parts);
  for (const std::size_t p : shares[share]) {
    const fleet::TraceFile& trace = traces_[pending_[p]];
    const auto loaded = ingest::load(trace.path, reading);
    const fleet::Summary summary =
        loaded.ok()
            ? fleet::summarize(**loaded, trace.path, rank_in_name(trace.path), options, known)
            : fleet::summarize_fault(trace.path, trace.bytes, loaded.error());
    TRY([[maybe_unused]] const Ok kept, shelf_.keep(trace, summary));
  }
  return Ok{};
}

Result<std::unique_ptr<Ranks>> join_fleet() {
  if (!started_by_launcher()) return std::unique_ptr<Ranks>();
  TRY(const std::string module, find_mpi_module());
  return open_mpi(module);
}

}  // namespace culprit::cli
