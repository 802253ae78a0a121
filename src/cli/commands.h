// Commands: the one table that the parser and every help text read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

enum class CommandId : std::uint8_t {
  kDiagnose,
  kTable,
  kWhatIf,
  kExplain,
  kFloor,
  kCompare,
  kSql,
  kSlice,
  kFleet,
  kList,
  kForge,
  kLab,
  kHelp,
  kLater
};

// Which commands a flag applies to.
inline constexpr unsigned kToDiagnose = 1, kToTables = 2, kToList = 4, kToWhatIf = 8,
                          kToExplain = 16, kToFloor = 32, kToCompare = 64, kToSql = 128,
                          kToSlice = 256, kToFleet = 512;
inline constexpr unsigned kToAnalysis = kToDiagnose | kToTables | kToWhatIf | kToExplain | kToFleet;
// What may read a trace.
inline constexpr unsigned kToTraces = kToAnalysis | kToFloor | kToCompare | kToSql | kToSlice;
inline constexpr unsigned kToAll = kToTraces | kToList;

struct Command {
  CommandId id = CommandId::kLater;
  std::string_view name;      // "kernels"
  std::string_view operands;  // "TRACE"
  std::string_view summary;   // one line
  std::string_view details;   // a paragraph
  std::string_view example;   // one command line
  unsigned flags = 0;         // kTo... that it accepts
};

std::span<const Command> commands();  // those of this version, then those that come later
const Command* find_command(std::string_view name);  // null: no such word
const Command& default_command();                    // diagnose
std::vector<std::string> command_names();            // of this version

}  // namespace culprit::cli
