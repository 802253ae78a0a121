// Rows of an Nsight Systems export: what the chapters of the reader share. A row that cannot be used
// as it stands is counted and located by table and rowid.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/ingest.h"
#include "ingest/nsight_places.h"
#include "ingest/sqlite.h"
#include "store/trace.h"

namespace culprit::ingest {

inline constexpr std::string_view kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
inline constexpr std::string_view kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
inline constexpr std::string_view kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
inline constexpr std::string_view kSetTable = "CUPTI_ACTIVITY_KIND_MEMSET";
inline constexpr std::string_view kSyncTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
inline constexpr std::string_view kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
inline constexpr std::string_view kRangeTable = "NVTX_EVENTS";
inline constexpr std::string_view kChainTable = "CUDA_CALLCHAINS";
inline constexpr std::string_view kNameTable = "StringIds";

inline constexpr Nanos kFarthest = Nanos{1} << 61;  // 73 years: times beyond are none

enum class RowFault : std::uint8_t { kBadEvent, kBadString, kBadNumber, kNegativeDuration };
inline constexpr std::size_t kRowFaults = 4;

// What goes wrong in rows, as notes in the end.
class RowFaults {
 public:
  void add(RowFault fault, std::string_view table, std::int64_t rowid);
  void lacks(std::string_view table, std::string_view column);
  void damaged(std::string_view table, const Cursor::Damage& damage);
  void write(store::Notes& notes) const;

 private:
  struct Count {
    std::int64_t count = 0;
    std::string where;  // of the first
  };
  std::array<Count, kRowFaults> counts_;
  Count damaged_;
  std::string why_;
  std::vector<std::string> lacking_;
};

// Texts of StringIds, each read once and only when a row asks for it.
class Names {
 public:
  Names(const Database& database, store::Trace& trace, RowFaults& faults);
  store::StringId find(std::int64_t id);  // invalid: not in the table
  store::StringId intern(std::string_view text, std::string_view table, std::int64_t rowid);

 private:
  store::Trace& trace_;
  RowFaults& faults_;
  std::optional<Lookup> lookup_;  // none: all texts are in known_
  std::unordered_map<std::int64_t, store::StringId> known_;
};

struct Import {
  Import(const Database& database, store::Trace& trace, const Options& options);

  const Database& database;
  store::Trace& trace;
  RowFaults faults;
  Names names;
  Places places;
  std::vector<std::int64_t> chains;                        // by call: its backtrace; -1: none
  Nanos last_end = -kFarthest;                             // of everything recorded
  std::vector<std::pair<std::string, std::int64_t>> read;  // rows by table

  // Counts a row; false once the user has cancelled.
  bool tick();
  bool cancelled() const { return cancelled_; }
  // Rows to expect, as far as the file can hold them.
  std::size_t expected_rows(std::string_view table) const;

 private:
  const Options& options_;
  double rows_total_ = 0;
  std::int64_t rows_ = 0;
  bool cancelled_ = false;
  std::chrono::steady_clock::time_point last_progress_{};  // none yet
};

// The rows of one table. Of `columns`, the first `essential` are missed when the table lacks them.
class Rows {
 public:
  Rows(Import& in, std::string_view table, std::span<const std::string_view> columns,
       std::size_t essential);
  ~Rows();
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool next();
  struct Times {
    Nanos begin = 0, dur = 0;
    bool open = false;  // no end was recorded
  };
  // None, and counted: the row has no usable time. Only where `may_be_open` an end may be absent.
  std::optional<Times> times(std::size_t start, std::size_t end, bool may_be_open = false);
  std::optional<std::int64_t> integer(std::size_t column);
  std::int32_t small(std::size_t column, std::int32_t otherwise);  // 0 to 2^31 - 1
  std::int64_t correlation(std::size_t column);
  store::StringId name(std::size_t column);  // a StringIds id or a text; invalid: neither
  std::optional<std::string_view> text(std::size_t column);
  bool absent(std::size_t column) const { return cursor_.absent(column); }
  void fault(RowFault fault) { import_.faults.add(fault, table_, cursor_.rowid()); }
  std::int64_t rowid() const { return cursor_.rowid(); }

 private:
  Import& import_;
  std::string_view table_;
  Cursor cursor_;
  std::size_t essential_;
  std::span<const std::string_view> columns_;
  std::int64_t count_ = 0;
};

// nsight_tables.cc: each reads one table into the trace.
void read_calls(Import& in);
void read_kernels(Import& in);
void read_copies(Import& in);
void read_sets(Import& in);
void read_graphs(Import& in);  // after the kernels: rows whose kernels are there are left out
void read_syncs(Import& in);
void read_ranges(Import& in);
// nsight_frames.cc: the Python frames behind the calls; after the calls stand in order.
void read_frames(Import& in);

}  // namespace culprit::ingest
