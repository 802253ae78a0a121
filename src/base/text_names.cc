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

// "layers/attention/mla.py:639 forward" -> ".../mla.py:639 forward": a place, which has a line.
std::string without_folders(std::string_view name) {
  const std::size_t word = std::min(name.find(' '), name.size());
  const std::size_t slash = name.substr(0, word).rfind('/');
  const std::size_t colon = name.substr(0, word).rfind(':');
  const bool place = slash != std::string_view::npos && colon != std::string_view::npos &&
                     colon > slash && colon + 1 < word && name[colon + 1] >= '0' &&
                     name[colon + 1] <= '9';
  if (!place || name.starts_with(".../")) return std::string(name);
  return "..." + std::string(name.substr(slash));
}

// That a kernel is a kernel is known: "ncclDevKernel_AllReduce" -> "nccl_AllReduce".
std::string without_kernel(std::string_view name) {
  std::string out(name);
  constexpr std::array<std::string_view, 5> kSaysNothing{"DevKernel", "_kernel", "Kernel",
                                                         "kernel_", "_cuda"};
  for (const std::string_view word : kSaysNothing) drop_all(word, out);
  return out.empty() || out.front() == ' ' ? std::string(name) : out;
}

}  // namespace

std::string shorten_name(std::string_view utf8, int columns, bool unicode) {
  constexpr std::array kSteps{&without_folders, &without_arguments, &without_namespaces,
                              &without_kernel};
  std::string name(utf8);
  for (const auto step : kSteps) {
    if (display_width(name) <= columns) return name;
    if (step == &without_arguments)
      for (const std::string_view word : {"(anonymous namespace)::", "void "}) drop_all(word, name);
    std::string shorter = step(name);
    if (!shorter.empty()) name = std::move(shorter);
  }
  return shorten_middle(name, columns, unicode);
}

}  // namespace culprit::text
