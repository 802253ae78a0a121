// Source: what a statement reads from, and the few lookups between its tables that are made once.
// Events of a trace have one numbering over all its tables: device rows, calls, operators, frames,
// marks, syncs, each in the order of the file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "report/report.h"

namespace culprit::query {

// How far the analysis must have come.
enum class Needs : std::uint8_t { kNothing, kTrace, kRun, kVerdict };

struct EventRow {
  enum class Table : std::uint8_t { kDevice, kCalls, kOps, kFrames, kMarks, kSyncs };
  Table table = Table::kDevice;
  std::size_t row = 0;  // in that table
};

struct LayerRow {
  run::StepIndex step = -1;
  std::int64_t layer = 0;
  store::Span span;
  std::string_view how;
};

class Source {
 public:
  // Of the answer: trace always; run, evidence and verdict where the analysis came so far: what looks up
  // in them finds nothing otherwise. All must outlive the source.
  Source(const store::Trace& trace, const report::Answer& answer);

  const store::Trace& trace() const { return trace_; }
  const report::Answer& answer() const { return answer_; }
  const run::Run& run() const { return *answer_.run; }
  const evidence::Evidence& evidence() const { return *answer_.evidence; }
  const verdict::Verdict& verdict() const { return *answer_.verdict; }

  std::size_t events() const { return starts_.back(); }
  EventRow event(std::size_t id) const {
    std::size_t table = 0;
    while (id >= starts_[table + 1]) ++table;
    return {static_cast<EventRow::Table>(table), id - starts_[table]};
  }
  std::int64_t id_of(EventRow::Table table, std::size_t row) const {
    return static_cast<std::int64_t>(starts_[static_cast<std::size_t>(table)] + row);
  }
  // First event of a table, and behind its last.
  std::pair<std::size_t, std::size_t> range_of(EventRow::Table table) const {
    const auto t = static_cast<std::size_t>(table);
    return {starts_[t], starts_[t + 1]};
  }

  // By device row: its activity; none for those of other devices.
  std::optional<std::size_t> activity_of(std::size_t device_row) const;
  // By group: index into Evidence::kernels; none for groups outside the used steps.
  std::optional<std::size_t> kernel_of(run::GroupId group) const;
  // By step: its place among those of the main kind.
  std::optional<std::size_t> number_of_step(std::size_t step) const;
  std::size_t device_row_of(std::size_t collective) const { return collective_rows_[collective]; }
  const std::vector<LayerRow>& layers() const { return layers_; }  // of the used steps

 private:
  const store::Trace& trace_;
  const report::Answer& answer_;
  std::array<std::size_t, 7> starts_{};
  std::vector<std::uint32_t> activities_, kernels_, step_numbers_;
  std::vector<std::size_t> collective_rows_;
  std::vector<LayerRow> layers_;
};

}  // namespace culprit::query
