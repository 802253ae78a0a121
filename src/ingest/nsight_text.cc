#include "ingest/nsight_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace culprit::ingest {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Operators are named like functions, with a namespace or without. What has a space, a bracket, a
// dot or a # in its name is a range of the user's.
bool is_operator_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  });
}

std::size_t find_field(std::string_view text, std::string_view field, bool number) {
  for (std::size_t at = text.find(field); at != std::string_view::npos;
       at = text.find(field, at + 1)) {
    const std::string_view value = text.substr(at + field.size());
    if (!value.empty() && (number ? is_digit(value[0]) : value[0] == '[')) return at;
  }
  return std::string_view::npos;
}

// From an opening bracket to the one that closes it; empty: it is not closed.
std::string_view bracketed(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(0, i + 1);
  }
  return {};
}

std::string_view label(std::span<const std::string_view> labels, std::int64_t number) {
  return number >= 0 && static_cast<std::size_t>(number) < labels.size()
             ? labels[static_cast<std::size_t>(number)]
             : std::string_view{};
}

// ENUM_CUDA_MEM_KIND; CUPTI's own numbers differ.
constexpr std::array<std::string_view, 8> kMemory{"Pageable",       "Pinned",  "Device",
                                                  "Array",          "Managed", "Device Static",
                                                  "Managed Static", "Unknown"};
// ENUM_CUDA_MEMCPY_OPER; the last three are migrations of unified memory.
constexpr std::array<std::string_view, 14> kCopies{"",     "HtoD", "DtoH", "HtoA", "AtoH",
                                                   "AtoA", "AtoD", "DtoA", "DtoD", "HtoH",
                                                   "PtoP", "HtoD", "DtoH", "DtoD"};
constexpr std::int64_t kDtoD = 8, kFirstUnified = 11;
// ENUM_CUPTI_SYNC_TYPE
constexpr std::array<std::string_view, 5> kSyncs{"Sync", "Event Sync", "Stream Wait Event",
                                                 "Stream Sync", "Context Sync"};

// "path/file.py:639" at the end of `text`: where it begins and where its colon is.
struct Place {
  std::string_view file, line;
};
std::optional<Place> place_in(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !all_digits(text.substr(colon + 1))) return std::nullopt;
  const std::string_view file = text.substr(0, colon);
  if (!file.ends_with(".py")) return std::nullopt;
  return Place{file, text.substr(colon + 1)};
}

std::string frame_text(const Place& place, std::string_view function) {
  return fmt::format("{}({}): {}", place.file, place.line, function);
}

}  // namespace

std::string_view api_name(std::string_view name) {
  constexpr std::size_t kFewestDigits = 4;  // CUDA 3.2 is 3020
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || at == 0) return name;
  const std::string_view version = name.substr(at + 2);
  return version.size() >= kFewestDigits && all_digits(version) ? name.substr(0, at) : name;
}

std::string copy_name(std::int64_t kind, std::int64_t from, std::int64_t to, bool between_devices) {
  std::string name = "Memcpy";
  const std::string_view direction =
      kind == kDtoD && between_devices ? std::string_view("PtoP") : label(kCopies, kind);
  if (!direction.empty()) name += fmt::format(" {}", direction);
  if (kind >= kFirstUnified && !direction.empty()) return name + " (Unified Memory)";
  const std::string_view source = label(kMemory, from), target = label(kMemory, to);
  if (source.empty() && target.empty()) return name;
  const auto known = [](std::string_view text) { return text.empty() ? "Unknown" : text; };
  return name + fmt::format(" ({} -> {})", known(source), known(target));
}

std::string set_name(std::int64_t memory) {
  const std::string_view kind = label(kMemory, memory);
  return fmt::format("Memset ({})", kind.empty() ? "Unknown" : kind);
}

std::string sync_name(std::int64_t kind) {
  const std::string_view name = label(kSyncs, kind);
  return std::string(name.empty() ? kSyncs[0] : name);
}

RangeText read_range(std::string_view text) {
  RangeText range;
  const std::size_t sizes = find_field(text, ", sizes = ", false);
  const std::size_t cut =
      std::min({sizes, find_field(text, ", seq = ", true), find_field(text, ", op_id = ", true)});
  if (cut == std::string_view::npos) {
    range.name = text;
    range.is_operator = text.starts_with("aten::") && is_operator_name(text);
    return range;
  }
  range.name = text.substr(0, cut);
  range.is_operator = is_operator_name(range.name);
  if (sizes != std::string_view::npos)
    range.sizes = bracketed(text.substr(sizes + std::string_view(", sizes = ").size()));
  return range;
}

// Spellings: file and line in the module, or behind the function in the symbol ("f (a/b.py:7)"), or
// the symbol as torch.profiler writes it.
std::optional<std::string> python_frame(std::string_view symbol, std::string_view module) {
  if (const auto place = place_in(module)) return frame_text(*place, symbol);
  if (symbol.find(".py(") != std::string_view::npos && symbol.find("): ") != std::string_view::npos)
    return std::string(symbol);
  std::string_view text = symbol;
  if (text.ends_with(')')) text.remove_suffix(1);
  const auto place = place_in(text);
  if (!place) return std::nullopt;
  const std::size_t space = place->file.rfind(' ');
  if (space == std::string_view::npos) return frame_text(*place, "");
  std::string_view file = place->file.substr(space + 1);
  if (file.starts_with('(')) file.remove_prefix(1);
  return frame_text({file, place->line}, place->file.substr(0, space));
}

}  // namespace culprit::ingest
