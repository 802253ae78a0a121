// Names that are too long for their column: what says least goes first.
#include <array>
#include <string>

#include "base/text.h"

namespace culprit::text {
namespace {

bool in_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void drop_all(std::string_view part, std::string& name) {
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at))
    name.erase(at, part.size());
}

// "f<int, g<2> >(char*) x" -> "f x"; an arrow is no bracket, and what is not closed stays.
std::string without_arguments(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool opens =
        (name[i] == '<' || name[i] == '(') && !out.empty() && in_identifier(out.back());
    if (!opens) {
      out += name[i];
      continue;
    }
    int depth = 0;
    std::size_t end = i;
    for (; end < name.size(); ++end) {
      const bool arrow = name[end] == '>' && name[end - 1] == '-';
      if (name[end] == '<' || name[end] == '(') ++depth;
      if (((name[end] == '>' && !arrow) || name[end] == ')') && --depth == 0) break;
    }
    if (end == name.size()) return std::string(name);
    i = end;
  }
  return out;
}

// "at::native::f a::g" -> "f g".
std::string without_namespaces(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool scope = name.substr(i).starts_with("::") && i > 0 && in_identifier(name[i - 1]);
    if (!scope) {
      out += name[i];
      continue;
    }
    while (!out.empty() && in_identifier(out.back())) out.pop_back();
    ++i;
  }
  return out;
}

// Where the path and line of a place in the code end: "layers/mla.py:639" of "layers/mla.py:639 forward";
// 0: it is none.
std::size_t end_of_place(std::string_view name) {
  const std::size_t word = std::min(name.find(' '), name.size());
  const std::size_t colon = name.substr(0, word).rfind(':');
  const bool line = colon != std::string_view::npos && colon + 1 < word &&
                    name.substr(0, colon).find('.') != std::string_view::npos &&
                    name[colon + 1] >= '0' && name[colon + 1] <= '9';
  return line ? word : 0;
}

// "layers/attention/mla.py:639 forward" -> ".../mla.py:639 forward".
std::string without_folders(std::string_view name) {
  const std::size_t slash = name.substr(0, end_of_place(name)).rfind('/');
  if (slash == std::string_view::npos || name.starts_with(".../")) return std::string(name);
  return "..." + std::string(name.substr(slash));
}

// "Memcpy HtoD (Pageable -> Device)" -> "Memcpy HtoD".
std::string without_remark(std::string_view name) {
  const std::size_t open = name.find(" (");
  return std::string(name.substr(0, open == 0 ? name.size() : open));
}

// That a kernel is a kernel is known: "ncclDevKernel_AllReduce" -> "nccl_AllReduce".
std::string without_kernel(std::string_view name) {
  std::string out(name);
  constexpr std::array<std::string_view, 5> kSaysNothing{"DevKernel", "_kernel", "Kernel",
                                                         "kernel_", "_cuda"};
  for (const std::string_view word : kSaysNothing) drop_all(word, out);
  return out.empty() || out.front() == ' ' ? std::string(name) : out;
}

// What an elementwise kernel does says more than how it loops: "vectorized_elementwise add" -> "add".
std::string without_loop(std::string_view name) {
  std::string out(name);
  for (const std::string_view word : {"vectorized_", "unrolled_", "elementwise "})
    drop_all(word, out);
  return out.empty() ? std::string(name) : out;
}

std::string_view dots(bool unicode) { return unicode ? "…" : "..."; }

// Of a place the end, with its line; of one long word the front, up to a "_" behind its first half.
std::string cut(std::string_view name, int columns, bool unicode) {
  const int room = columns - display_width(dots(unicode));
  std::string_view place = name.substr(0, end_of_place(name));
  if (!place.empty() && room > 0) {
    if (place.starts_with(".../")) place.remove_prefix(4);
    if (display_width(place) <= columns) return std::string(place);
    while (display_width(place) > room) place.remove_prefix(1);
    while (!place.empty() && (static_cast<unsigned char>(place.front()) & 0xC0U) == 0x80U)
      place.remove_prefix(1);
    return std::string(dots(unicode)) + std::string(place);
  }
  std::size_t end = name.find_first_of(" :/") == std::string_view::npos ? name.rfind('_') : 0;
  while (end != std::string_view::npos && end > 0 && display_width(name.substr(0, end)) > room)
    end = name.rfind('_', end - 1);
  if (end == std::string_view::npos || display_width(name.substr(0, end)) * 2 < columns)
    return shorten_middle(name, columns, unicode);
  return std::string(name.substr(0, end)) + std::string(dots(unicode));
}

}  // namespace

std::string shorten_name(std::string_view utf8, int columns, bool unicode) {
  constexpr std::array kSteps{&without_folders,    &without_arguments, &without_remark,
                              &without_namespaces, &without_kernel,    &without_loop};
  std::string name(utf8);
  for (const auto step : kSteps) {
    if (display_width(name) <= columns) return name;
    if (step == &without_arguments)
      for (const std::string_view word : {"(anonymous namespace)::", "void "}) drop_all(word, name);
    std::string shorter = step(name);
    if (!shorter.empty()) name = std::move(shorter);
  }
  return display_width(name) <= columns ? name : cut(name, columns, unicode);
}

}  // namespace culprit::text
