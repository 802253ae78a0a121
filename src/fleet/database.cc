#include "fleet/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

namespace culprit::fleet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = R"(
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA user_version = 1;
CREATE TABLE traces (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, state TEXT NOT NULL, why TEXT, format TEXT, bytes INTEGER NOT NULL, events INTEGER,
  rank INTEGER, label TEXT, device INTEGER, world INTEGER, headline INTEGER NOT NULL,
  kind TEXT, steps INTEGER, steps_used INTEGER, mean_ns INTEGER, median_ns INTEGER, p99_ns INTEGER, host_ns INTEGER,
  kernels INTEGER, kernel_ns INTEGER, busy_ns INTEGER,
  work_ns_per_step INTEGER, comm_ns_per_step INTEGER, wait_ns_per_step INTEGER, absent_wait_ns_per_step INTEGER,
  clock_offset_ns INTEGER, clock_drift_ppm REAL, clock_residual_ns INTEGER,
  collectives INTEGER, met INTEGER, last_to INTEGER, waits_for INTEGER, late_because TEXT);
CREATE TABLE steps (trace INTEGER NOT NULL REFERENCES traces, step INTEGER NOT NULL, begin_ns INTEGER, duration_ns INTEGER,
  kind TEXT, batch INTEGER, used INTEGER NOT NULL, PRIMARY KEY (trace, step)) WITHOUT ROWID;
CREATE TABLE budget (trace INTEGER NOT NULL REFERENCES traces, owner TEXT NOT NULL, ns_per_step INTEGER, share REAL,
  calls_per_step REAL, PRIMARY KEY (trace, owner)) WITHOUT ROWID;
CREATE TABLE kernels (trace INTEGER NOT NULL REFERENCES traces, name TEXT NOT NULL, owner TEXT, calls_per_step REAL,
  blocks_per_step REAL, ns_per_step INTEGER);
CREATE TABLE collectives (trace INTEGER NOT NULL REFERENCES traces, ranks TEXT, what TEXT, group_size INTEGER, calls INTEGER,
  total_ns INTEGER, min_ns INTEGER, max_ns INTEGER);
CREATE TABLE suspects (trace INTEGER NOT NULL REFERENCES traces, place INTEGER NOT NULL, id TEXT NOT NULL, verdict TEXT,
  confidence TEXT, ns_per_step INTEGER, exposed_ns_per_step INTEGER, claim TEXT);
CREATE TABLE notes (trace INTEGER NOT NULL REFERENCES traces, code TEXT NOT NULL, severity TEXT, count INTEGER, place TEXT,
  message TEXT);
)";

using Value = std::variant<std::monostate, std::int64_t, double, std::string_view>;

Value known(std::optional<std::int64_t> value) { return value ? Value(*value) : Value(); }
Value words(std::string_view text) { return text.empty() ? Value() : Value(text); }

class Table {
 public:
  Table(sqlite3* handle, std::string_view name, std::size_t columns) {
    std::string sql = fmt::format("INSERT INTO {} VALUES (?", name);
    for (std::size_t c = 1; c < columns; ++c) sql += ",?";
    sqlite3_prepare_v2(handle, (sql + ")").c_str(), -1, &statement_, nullptr);
  }
  ~Table() { sqlite3_finalize(statement_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Columns behind the row's end are NULL.
  void add(std::initializer_list<Value> row) {
    int column = 0;
    for (const Value& value : row) bind(++column, value);
    failed_ = sqlite3_step(statement_) != SQLITE_DONE || failed_;
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  bool failed() const { return failed_; }

 private:
  void bind(int column, const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      sqlite3_bind_int64(statement_, column, *number);
    else if (const auto* real = std::get_if<double>(&value))
      sqlite3_bind_double(statement_, column, *real);
    else if (const auto* text = std::get_if<std::string_view>(&value))
      sqlite3_bind_text(statement_, column, text->data(), static_cast<int>(text->size()),
                        SQLITE_TRANSIENT);
    else
      sqlite3_bind_null(statement_, column);
  }

  sqlite3_stmt* statement_ = nullptr;
  bool failed_ = false;
};

// Calls of one kind on one rank.
struct Total {
  std::int64_t calls = 0;
  Nanos sum = 0, least = std::numeric_limits<Nanos>::max(), most = 0;
};

class Tables {
 public:
  explicit Tables(sqlite3* handle)
      : traces_(handle, "traces", 34),
        steps_(handle, "steps", 7),
        budget_(handle, "budget", 5),
        kernels_(handle, "kernels", 6),
        collectives_(handle, "collectives", 8),
        suspects_(handle, "suspects", 8),
        notes_(handle, "notes", 6) {}

  bool failed() const {
    return traces_.failed() || steps_.failed() || budget_.failed() || kernels_.failed() ||
           collectives_.failed() || suspects_.failed() || notes_.failed();
  }

  void add_left_out(std::int64_t id, const Summary& summary, std::string_view state,
                    std::string_view why) {
    traces_.add({id,
                 summary.path,
                 state,
                 words(why),
                 words(summary.format),
                 summary.bytes,
                 summary.events,
                 {},
                 {},
                 {},
                 {},
                 std::int64_t{0}});
    add_notes(id, summary);
  }

  // `at`: of the rank in `ranks`; none where it is the only one.
  void add_rank(std::int64_t id, const Summary& summary, const evidence::Ranks& ranks,
                std::optional<std::size_t> at) {
    const evidence::RankFigures& rank = at ? ranks.all[*at] : summary.figures;
    const evidence::RankSkew* skew = at && ranks.skew.known() && ranks.skew.ranks[*at].meetings > 0
                                         ? &ranks.skew.ranks[*at]
                                         : nullptr;
    const auto figure = [&](std::int64_t ns) { return rank.refused ? Value() : Value(ns); };
    const auto met = [&](std::int64_t value) { return skew ? Value(value) : Value(); };
    constexpr double kPartsPerMillion = 1e6;
    const bool late = skew && std::find(ranks.skew.late.begin(), ranks.skew.late.end(), *at) !=
                                  ranks.skew.late.end();
    const bool headline = !at || ranks.headline == *at;
    const std::optional<std::int64_t> waits_for =
        skew && skew->waits_for ? number_of(ranks, *skew->waits_for) : std::nullopt;
    traces_.add({id,
                 summary.path,
                 std::string_view("rank"),
                 rank.refused ? words(rank.refused->what) : Value(),
                 words(summary.format),
                 summary.bytes,
                 summary.events,
                 known(rank.rank),
                 words(rank.label),
                 rank.device,
                 known(summary.figures.record.world),
                 std::int64_t{headline},
                 rank.refused ? Value() : Value(run::step_kind_name(rank.kind)),
                 figure(summary.steps_in_all),
                 figure(rank.steps.used),
                 figure(rank.steps.mean),
                 figure(rank.steps.median),
                 figure(rank.steps.p99),
                 rank.steps.host_ns > 0 ? Value(rank.steps.host_ns) : Value(),
                 figure(rank.kernels),
                 figure(rank.kernel_ns),
                 figure(rank.busy_ns),
                 figure(rank.work_ns_per_step),
                 figure(rank.comm_ns_per_step),
                 met(rank.wait_ns_per_step),
                 met(skew ? skew->absent : 0),
                 met(skew ? skew->clock.offset : 0),
                 skew ? Value(skew->clock.drift * kPartsPerMillion) : Value(),
                 met(skew ? skew->clock.residual : 0),
                 figure(summary.calls_in_all),
                 met(skew ? skew->meetings : 0),
                 met(skew ? skew->last : 0),
                 known(waits_for),
                 late ? Value(evidence::late_cause_name(skew->cause)) : Value()});
    for (const evidence::BudgetRow& row : rank.budget)
      budget_.add(
          {id, known::owner_name(row.owner), row.ns_per_step, row.share, row.calls_per_step});
    add_parts(id, summary);
    add_notes(id, summary);
  }

 private:
  static std::optional<std::int64_t> number_of(const evidence::Ranks& ranks, std::size_t at) {
    return ranks.all[at].rank.value_or(static_cast<std::int64_t>(at));
  }

  void add_parts(std::int64_t id, const Summary& summary) {
    std::int64_t index = 0;
    for (const StepRow& step : summary.steps)
      steps_.add({id, index++, step.begin, step.length, run::step_kind_name(step.kind),
                  known(step.batch), std::int64_t{step.used}});
    for (const evidence::RankKernel& kernel : summary.figures.record.kernels)
      kernels_.add({id, std::string_view(kernel.name), known::owner_name(kernel.owner),
                    kernel.calls, kernel.blocks, kernel.ns});
    index = 0;
    for (const Accusation& suspect : summary.suspects)
      suspects_.add({id, ++index, std::string_view(suspect.id), std::string_view(suspect.standing),
                     std::string_view(suspect.confidence), suspect.ns_per_step,
                     suspect.exposed_ns_per_step, std::string_view(suspect.claim)});
    add_collectives(id, summary.figures.record);
  }

  void add_collectives(std::int64_t id, const evidence::RankRecord& record) {
    std::vector<Total> totals(record.kinds.size());
    for (const evidence::RankCall& call : record.calls) {
      Total& total = totals[call.kind];
      const Nanos took = call.end - call.begin;
      ++total.calls;
      total.sum += took;
      total.least = std::min(total.least, took);
      total.most = std::max(total.most, took);
    }
    for (std::size_t k = 0; k < totals.size(); ++k) {
      const evidence::CallKind& kind = record.kinds[k];
      const Total& total = totals[k];
      if (total.calls == 0) continue;
      collectives_.add({id, words(kind.group), words(kind.what),
                        kind.group_size > 0 ? Value(kind.group_size) : Value(), total.calls,
                        total.sum, total.least, total.most});
    }
  }

  void add_notes(std::int64_t id, const Summary& summary) {
    for (const store::Notes* notes : {&summary.notes, &summary.run_notes})
      for (const store::Note& note : notes->all())
        notes_.add({id, std::string_view(note.code), store::severity_name(note.severity),
                    note.count, words(note.where), std::string_view(note.message)});
  }

  Table traces_, steps_, budget_, kernels_, collectives_, suspects_, notes_;
};

Error cannot_write(const std::string& path, std::string_view why) {
  return {.code = Error::Code::kCannotRead,
          .what = fmt::format("cannot be written: {}", why),
          .where = path,
          .hint = "check the folder, its permissions and the space on its disk",
          .note_code = {}};
}

// What the merge made of each trace.
struct Fate {
  const Skipped* skipped = nullptr;
  std::optional<std::size_t> at;  // in Ranks::all
  bool used = false;
};

std::vector<Fate> fates_of(std::size_t traces, const Merged& merged) {
  std::vector<Fate> fates(traces);
  for (const Skipped& skipped : merged.skipped) fates[skipped.file].skipped = &skipped;
  for (const Used& used : merged.used) fates[used.file].used = true;
  for (std::size_t r = 0; r < merged.ranks.all.size(); ++r)
    fates[merged.used[merged.ranks.all[r].file].file].at = r;
  return fates;
}

Status fill(sqlite3* handle, const std::string& path, const Shelf& shelf,
            const std::vector<TraceFile>& traces, const Merged& merged, const Progress& progress) {
  const auto run = [&](const char* sql) {
    return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  if (!run(kSchema) || !run("BEGIN")) return cannot_write(path, sqlite3_errmsg(handle));
  const std::vector<Fate> fates = fates_of(traces.size(), merged);
  {
    Tables tables(handle);
    for (std::size_t t = 0; t < traces.size() && !tables.failed(); ++t) {
      if (progress) progress(t, traces.size());
      TRY(const Summary summary, shelf.load(traces[t]));
      const Fate& fate = fates[t];
      const auto id = static_cast<std::int64_t>(t);
      if (fate.used)
        tables.add_rank(id, summary, merged.ranks, fate.at);
      else if (fate.skipped != nullptr)
        tables.add_left_out(id, summary, "skipped", fate.skipped->why);
      else
        tables.add_left_out(id, summary, "capture", {});
    }
    if (tables.failed()) return cannot_write(path, sqlite3_errmsg(handle));
  }
  if (!run("COMMIT")) return cannot_write(path, sqlite3_errmsg(handle));
  return Ok{};
}

}  // namespace

Status write_database(const std::string& path, const Shelf& shelf,
                      const std::vector<TraceFile>& traces, const Merged& merged,
                      const Progress& progress) {
  const std::string temporary = path + ".part";
  std::error_code failed;
  fs::remove(temporary, failed);
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open(temporary.c_str(), &handle);
  Status filled = opened == SQLITE_OK ? fill(handle, path, shelf, traces, merged, progress)
                                      : Status(cannot_write(path, sqlite3_errmsg(handle)));
  sqlite3_close(handle);
  if (filled.ok()) {
    fs::rename(temporary, path, failed);
    if (failed) filled = cannot_write(path, failed.message());
  }
  if (!filled.ok()) fs::remove(temporary, failed);
  return filled;
}

}  // namespace culprit::fleet
