#include "ingest/nsight_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ingest/text.h"

namespace culprit::ingest {
namespace {

constexpr std::int64_t kCorrelations = std::int64_t{1} << 32;
constexpr std::int64_t kLeastRow = 32;  // bytes in the file of a row that holds anything
constexpr std::int64_t kRowsPerLook = 1024;
constexpr auto kProgressInterval = std::chrono::milliseconds(100);

constexpr std::string_view kRead[] = {kCallTable,  kKernelTable, kCopyTable, kSetTable,
                                      kGraphTable, kSyncTable,   kRangeTable};

std::string place(std::string_view table, std::int64_t rowid) {
  return fmt::format("{} row {}", table, rowid);
}

}  // namespace

void RowFaults::add(RowFault fault, std::string_view table, std::int64_t rowid) {
  Count& count = counts_[static_cast<std::size_t>(fault)];
  if (count.count++ == 0) count.where = place(table, rowid);
}

void RowFaults::lacks(std::string_view table, std::string_view column) {
  lacking_.push_back(fmt::format("{}.{}", table, column));
}

void RowFaults::damaged(std::string_view table, const Cursor::Damage& damage) {
  if (damage.places == 0) return;
  if (damaged_.count == 0) {
    damaged_.where = "after " + place(table, damage.after);
    why_ = damage.why;
  }
  damaged_.count += damage.places;
}

void RowFaults::write(store::Notes& notes) const {
  using store::Severity;
  struct Wording {
    const char* code;
    Severity severity;
    const char* message;
  };
  constexpr Wording wordings[kRowFaults] = {
      {"bad-event", Severity::kDataLoss, "rows without a start or an end were left out"},
      {"bad-string", Severity::kWarning,
       "names that are not in StringIds are shown by their number; bytes that are no UTF-8 were "
       "replaced"},
      {"bad-number", Severity::kWarning,
       "values that are no whole numbers, or out of range, count as absent; a row without a time "
       "is left out"},
      {"negative-duration", Severity::kWarning,
       "rows that end before they begin count as 0 ns long"},
  };
  for (std::size_t i = 0; i < kRowFaults; ++i) {
    if (counts_[i].count == 0) continue;
    notes.add({wordings[i].code,
               wordings[i].severity,
               counts_[i].count,
               {},
               {},
               counts_[i].where,
               wordings[i].message});
  }
  if (damaged_.count > 0)
    notes.add({"damaged-table",
               Severity::kDataLoss,
               damaged_.count,
               {},
               {},
               damaged_.where,
               "the database is damaged (" + why_ + "): the rows at that place are missing"});
  if (lacking_.empty()) return;
  constexpr std::size_t kShown = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(lacking_.size(), kShown); ++i)
    list += (i == 0 ? "" : ", ") + lacking_[i];
  if (lacking_.size() > kShown) list += ", ...";
  notes.add({"missing-columns",
             Severity::kInfo,
             static_cast<std::int64_t>(lacking_.size()),
             {},
             {},
             lacking_.front(),
             "the export lacks " + list + ": what they hold is unknown"});
}

Names::Names(const Database& database, store::Trace& trace, RowFaults& faults)
    : trace_(trace), faults_(faults) {
  constexpr std::string_view kColumns[] = {"id", "value"};
  if (database.is_key(kNameTable, kColumns[0])) {
    lookup_.emplace(database, kNameTable, kColumns[0], kColumns[1]);
    return;
  }
  Cursor cursor(database, kNameTable, kColumns);
  while (cursor.next()) {
    const auto id = cursor.integer(0);
    const auto text = cursor.text(1);
    if (id && text) known_.emplace(*id, intern(*text, kNameTable, cursor.rowid()));
  }
  faults.damaged(kNameTable, cursor.damage());
}

store::StringId Names::find(std::int64_t id) {
  if (const auto at = known_.find(id); at != known_.end()) return at->second;
  store::StringId name;
  if (lookup_)
    if (const auto text = lookup_->find(id)) name = intern(*text, kNameTable, id);
  return known_[id] = name;
}

store::StringId Names::intern(std::string_view text, std::string_view table, std::int64_t rowid) {
  if (is_clean(text)) return trace_.strings.intern(text);
  faults_.add(RowFault::kBadString, table, rowid);
  return trace_.strings.intern(cleaned(text));
}

Import::Import(const Database& database_in, store::Trace& trace_in, const Options& options)
    : database(database_in),
      trace(trace_in),
      names(database_in, trace_in, faults),
      places(trace_in),
      options_(options) {
  for (const std::string_view table : kRead)
    rows_total_ += static_cast<double>(expected_rows(table));
}

std::size_t Import::expected_rows(std::string_view table) const {
  return static_cast<std::size_t>(
      std::min(database.largest_rowid(table), trace.info.file_bytes / kLeastRow));
}

bool Import::tick() {
  ++trace.info.events;
  if (cancelled_ || ++rows_ % kRowsPerLook != 0 || !options_.progress) return !cancelled_;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_progress_ < kProgressInterval) return true;
  last_progress_ = now;
  const double share =
      rows_total_ > 0 ? std::min(1.0, static_cast<double>(rows_) / rows_total_) : 0;
  const auto bytes = static_cast<double>(trace.info.file_bytes);
  cancelled_ =
      !options_.progress({static_cast<std::int64_t>(share * bytes), trace.info.file_bytes});
  return !cancelled_;
}

Rows::Rows(Import& in, std::string_view table, std::span<const std::string_view> columns,
           std::size_t essential)
    : import_(in),
      table_(table),
      cursor_(in.database, table, columns),
      essential_(essential),
      columns_(columns) {}

Rows::~Rows() {
  if (!import_.database.has(table_)) return;
  import_.read.emplace_back(table_, count_);
  for (std::size_t i = 0; count_ > 0 && i < essential_; ++i)
    if (!cursor_.has(i)) import_.faults.lacks(table_, columns_[i]);
  import_.faults.damaged(table_, cursor_.damage());
}

bool Rows::next() {
  if (import_.cancelled() || !cursor_.next()) return false;
  ++count_;
  return import_.tick();
}

std::optional<Rows::Times> Rows::times(std::size_t start, std::size_t end, bool may_be_open) {
  const auto begin = cursor_.integer(start), stop = cursor_.integer(end);
  const bool open = may_be_open && cursor_.absent(end);
  const bool absent = cursor_.absent(start) || (cursor_.absent(end) && !open);
  // CUPTI writes two zeros where it could not take the times.
  if (absent || (begin == 0 && stop == 0)) {
    fault(RowFault::kBadEvent);
    return std::nullopt;
  }
  const auto usable = [](std::int64_t time) { return time >= -kFarthest && time <= kFarthest; };
  if (!begin || !usable(*begin) || (!open && (!stop || !usable(*stop)))) {
    fault(RowFault::kBadNumber);
    return std::nullopt;
  }
  if (open) return Times{*begin, 0, true};
  if (*stop < *begin) fault(RowFault::kNegativeDuration);
  import_.last_end = std::max(import_.last_end, *stop);
  return Times{*begin, std::max<Nanos>(*stop - *begin, 0), false};
}

std::optional<std::int64_t> Rows::integer(std::size_t column) {
  const auto value = cursor_.integer(column);
  if (!value && !cursor_.absent(column)) fault(RowFault::kBadNumber);
  return value;
}

std::int32_t Rows::small(std::size_t column, std::int32_t otherwise) {
  const auto value = integer(column);
  if (!value) return otherwise;
  if (*value >= 0 && *value <= 0x7fffffff) return static_cast<std::int32_t>(*value);
  fault(RowFault::kBadNumber);
  return otherwise;
}

std::int64_t Rows::correlation(std::size_t column) {
  const auto value = integer(column);
  if (!value || *value == 0) return store::kNoId;  // CUPTI counts from 1
  if (*value > 0 && *value < kCorrelations) return *value;
  fault(RowFault::kBadNumber);
  return store::kNoId;
}

store::StringId Rows::name(std::size_t column) {
  if (const auto text = cursor_.text(column))
    return import_.names.intern(*text, table_, cursor_.rowid());
  const auto id = integer(column);
  return id ? import_.names.find(*id) : store::StringId{};
}

std::optional<std::string_view> Rows::text(std::size_t column) {
  const auto text = cursor_.text(column);
  if (!text && !cursor_.absent(column)) fault(RowFault::kBadString);
  return text;
}

}  // namespace culprit::ingest
