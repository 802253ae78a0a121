// Figures as text. Integers are scaled by division with remainder, so that no time or size passes
// through a double; the digits after the point are those of the exact quotient, rounded once.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "base/text.h"

namespace culprit::text {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Unit, 4> kTimeUnits{
    {{"ns", 1}, {"µs", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
constexpr std::array<Unit, 5> kByteUnits{
    {{"B", 1}, {"kB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}}};
constexpr std::array<std::uint64_t, 7> kPowers{1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};

std::uint64_t magnitude(std::int64_t n) {
  return n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
}

// n / size x 10^decimals, rounded half away from zero.
std::uint64_t scaled(std::uint64_t n, std::uint64_t size, std::size_t decimals) {
  const std::uint64_t power = kPowers[decimals];
  return n / size * power + (n % size * power + size / 2) / size;
}

std::string grouped(std::uint64_t n) {
  std::string digits = fmt::format("{}", n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string with_point(std::uint64_t scaled_value, std::size_t decimals) {
  const std::uint64_t power = kPowers[decimals];
  if (decimals == 0) return grouped(scaled_value);
  return fmt::format("{}.{:0{}}", grouped(scaled_value / power), scaled_value % power, decimals);
}

// Three significant digits in the smallest unit that holds the value in under 1000.
std::string in_best_unit(std::int64_t n, std::span<const Unit> units) {
  const std::uint64_t size = magnitude(n);
  const std::string_view sign = n < 0 ? "-" : "";
  for (const Unit& unit : units) {
    for (std::size_t decimals = unit.size == 1 ? 0 : 2;; --decimals) {
      const std::uint64_t value = scaled(size, unit.size, decimals);
      if (value < 1000) return fmt::format("{}{} {}", sign, with_point(value, decimals), unit.name);
      if (decimals == 0) break;
    }
  }
  return fmt::format("{}{} {}", sign, grouped(scaled(size, units.back().size, 0)),
                     units.back().name);
}

const Unit& time_unit(TimeUnit unit) {
  return kTimeUnits[unit == TimeUnit::kAuto ? 0 : static_cast<std::size_t>(unit) - 1];
}

}  // namespace

std::string_view unit_name(TimeUnit unit, bool unicode) {
  return unit == TimeUnit::kUs && !unicode ? "us" : time_unit(unit).name;
}

TimeUnit unit_for(Nanos largest) {
  const std::uint64_t size = magnitude(largest);
  if (size < 1'000) return TimeUnit::kNs;
  if (size < 1'000'000) return TimeUnit::kUs;
  return size < 1'000'000'000 ? TimeUnit::kMs : TimeUnit::kS;
}

int decimals_for(Nanos largest, TimeUnit unit) {
  const std::uint64_t size = time_unit(unit).size;
  const std::uint64_t whole = magnitude(largest) / size;
  if (size == 1 || whole >= 1000) return 0;
  return whole >= 100 ? 1 : whole >= 10 ? 2 : 3;
}

std::string in_unit(Nanos ns, TimeUnit unit, int decimals) {
  const auto digits = static_cast<std::size_t>(decimals);
  const std::uint64_t value = scaled(magnitude(ns), time_unit(unit).size, digits);
  return (ns < 0 && value != 0 ? "-" : "") + with_point(value, digits);
}

std::string duration(Nanos ns, bool unicode) {
  const std::string text = in_best_unit(ns, kTimeUnits);
  return unicode ? text : ascii(text);
}

std::string count(std::int64_t n) { return (n < 0 ? "-" : "") + grouped(magnitude(n)); }

std::string bytes(std::int64_t n) { return in_best_unit(n, kByteUnits); }

std::string fixed(double x, int decimals) {
  if (!std::isfinite(x)) return "?";
  std::string text = fmt::format("{:.{}f}", std::fabs(x), decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > 3; at -= 3) text.insert(at - 3, 1, ',');
  const bool zero = text.find_first_not_of("0.,") == std::string::npos;
  return (x < 0 && !zero ? "-" : "") + text;
}

std::string number(double x) {
  const double size = std::fabs(x);
  if (!std::isfinite(x) || size == 0) return fixed(x, 0);
  const int digits_before = static_cast<int>(std::floor(std::log10(size))) + 1;
  return fixed(x, std::max(0, 3 - digits_before));
}

std::string amount(double x) {
  constexpr double kRounding = 1e-6, kCountable = 1e15;
  const bool whole = std::fabs(x) < kCountable && std::fabs(x - std::round(x)) < kRounding;
  return whole ? count(std::llround(x)) : number(x);
}

std::string percent(double share) {
  const double hundredths = share * 100;
  const double size = std::fabs(hundredths);
  if (!std::isfinite(share)) return "?";
  if (size > 0 && size < 0.001) return "< 0.001 %";
  if (size == 0 || size >= 0.995) return fixed(hundredths, 1) + " %";
  std::string digits = fixed(hundredths, size >= 0.0995 ? 2 : size >= 0.00995 ? 3 : 4);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits + " %";
}

}  // namespace culprit::text
