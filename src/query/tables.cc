// The list of tables, and how it reads to people.
#include "query/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/near.h"
#include "base/usage.h"
#include "query/virtual_table.h"

namespace culprit::query {
namespace {

constexpr std::array<const Table*, 16> kTables{
    &kSummary,      &kBudget,   &kSteps,       &kLayers,   &kKernels, &kActivities,
    &kEvents,       &kGaps,     &kCollectives, &kSuspects, &kFacts,   &kSuspectKernels,
    &kSuspectFacts, &kRuledOut, &kNotes,       &kRanks};

}  // namespace

std::span<const Table* const> tables() { return kTables; }

const Table* find_table(std::string_view name) {
  const auto* at = std::find_if(kTables.begin(), kTables.end(),
                                [&](const Table* table) { return table->name == name; });
  return at == kTables.end() ? nullptr : *at;
}

std::string list_tables() {
  std::string out;
  for (const Table* table : kTables) out += fmt::format("{:<16} {}\n", table->name, table->about);
  return out;
}

Result<std::string> describe_tables(const std::string& wanted) {
  if (!wanted.empty() && find_table(wanted) == nullptr) {
    std::vector<std::string> names;
    names.reserve(kTables.size());
    for (const Table* table : kTables) names.emplace_back(table->name);
    return usage(fmt::format("there is no table \"{}\"", wanted),
                 did_you_mean(wanted, names, "`culprit sql .tables` lists them"));
  }
  std::string out;
  for (const Table* table : kTables) {
    if (!wanted.empty() && table->name != wanted) continue;
    if (!out.empty()) out += "\n";
    out += fmt::format("-- {}\nCREATE TABLE {}(\n", table->about, table->name);
    for (const Column& column : table->columns) {
      const bool last = &column == &table->columns.back();
      const std::string line =
          fmt::format("  {} {}{}", column.name, type_name(column.type), last ? "" : ",");
      out += column.about.empty() ? line + "\n" : fmt::format("{:<32} -- {}\n", line, column.about);
    }
    out += ");\n";
  }
  return out;
}

}  // namespace culprit::query
