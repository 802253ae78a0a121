#include <fmt/format.h>

#include "run/chapters.h"

namespace culprit::run {

void add_note(Run& run, std::string code, store::Severity severity, std::int64_t count,
              std::string message, std::string where) {
  run.notes.add({std::move(code), severity, count, {}, {}, std::move(where), std::move(message)});
}

std::string counted(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", counted(n), n == 1 ? one : many);
}

std::string micros_text(Nanos ns) {
  const Nanos part = ns % 1'000;
  std::string text = fmt::format("{}{}", ns < 0 && ns > -1'000 ? "-" : "", ns / 1'000);
  if (part == 0) return text;
  text += fmt::format(".{:03}", part < 0 ? -part : part);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string duration_text(Nanos ns) {
  const double value = static_cast<double>(ns);  // for people only
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.4g} s", value / 1e9);
}

std::string short_text(std::string_view name) {
  constexpr std::size_t kBytes = 60;
  if (name.size() <= kBytes) return std::string(name);
  std::size_t cut = kBytes - 3;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(name.substr(0, cut)) + "...";
}

}  // namespace culprit::run
