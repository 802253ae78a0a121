// clock: all kernels that are the same on both sides take longer by one factor, whatever bounds them.
// Communication is not asked: it waits for others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {
namespace {

constexpr double kLeastFactor = 0.01;  // of a clock's change, as a logarithm
constexpr double kSpread = 0.25;       // of it, by which kernels may differ
constexpr double kMost = 0.8;          // of the kernels' time
constexpr std::size_t kFewestKernels = 3;

struct Scaled {
  std::size_t row = 0;
  double log = 0, weight = 0;
};

// Kernels with the same name, as many calls and the same grid: what a clock alone would change.
std::vector<Scaled> comparable(const Case& c) {
  std::vector<Scaled> out;
  for (std::size_t r = 0; r < c.rows.rows.size(); ++r) {
    const Row& row = c.rows.rows[r];
    const bool alone =
        row.kept() && (row.shown.change == Change::kSame || row.shown.change == Change::kSlower ||
                       row.shown.change == Change::kFaster);
    if (!alone || known::is_comm(row.shown.role)) continue;
    const auto a = static_cast<double>(row.shown.before->avg_ns);
    const auto b = static_cast<double>(row.shown.after->avg_ns);
    if (a <= 0 || b <= 0) continue;
    const double weight = std::sqrt(static_cast<double>(row.shown.before->ns_per_step) *
                                    static_cast<double>(row.shown.after->ns_per_step));
    out.push_back({r, std::log(b / a), weight});
  }
  return out;
}

// Mean of the lower and the upper weighted median: swapped sides give the same with another sign.
double median_of(std::vector<Scaled> scaled, double total) {
  std::sort(scaled.begin(), scaled.end(),
            [](const Scaled& a, const Scaled& b) { return a.log < b.log; });
  double low = 0, high = 0, sum = 0;
  for (const Scaled& each : scaled) {
    if (sum < total / 2) low = each.log;
    sum += each.weight;
  }
  sum = 0;
  for (auto each = scaled.rbegin(); each != scaled.rend(); ++each) {
    if (sum < total / 2) high = each->log;
    sum += each->weight;
  }
  return (low + high) / 2;
}

double work_of(const Case& c, const std::optional<KernelSide> KernelChange::*side) {
  double sum = 0;
  for (const Row& row : c.rows.rows) {
    if (known::is_comm(row.shown.role) || !(row.shown.*side)) continue;
    sum += static_cast<double>((row.shown.*side)->ns_per_step);
  }
  return sum;
}

std::string percent_text(double log) {
  return fmt::format("{}{}", log < 0 ? "-" : "+", text::percent(std::fabs(std::expm1(log))));
}

std::string names_of(const std::vector<known::Owner>& roles) {
  std::string out;
  for (const known::Owner role : roles)
    out += (out.empty() ? "" : ", ") + std::string(known::owner_name(role));
  return out;
}

struct Finding {
  double median = 0, within = 0, coverage = 0;
  std::vector<std::size_t> rows;  // within the band
  std::vector<known::Owner> roles;
};

std::string told(const Finding& finding) {
  const bool moved = std::fabs(finding.median) >= kLeastFactor;
  return fmt::format(
      "kernels that are the same take {}, at the median{}",
      moved ? percent_text(finding.median) + " of their time" : "as long on both sides",
      moved ? fmt::format("; only {} of their time follows that factor",
                          text::percent(finding.within))
            : std::string());
}

Finding look(const Case& c) {
  Finding finding;
  const std::vector<Scaled> scaled = comparable(c);
  double total = 0;
  for (const Scaled& each : scaled) total += each.weight;
  const double all =
      std::sqrt(work_of(c, &KernelChange::before) * work_of(c, &KernelChange::after));
  if (total <= 0 || all <= 0) return finding;
  finding.coverage = total / all;
  finding.median = median_of(scaled, total);
  const double band = std::max(kLeastFactor, kSpread * std::fabs(finding.median));
  for (const Scaled& each : scaled) {
    if (std::fabs(each.log - finding.median) > band) continue;
    finding.within += each.weight / total;
    finding.rows.push_back(each.row);
    const known::Owner role = c.rows.rows[each.row].shown.role;
    if (std::find(finding.roles.begin(), finding.roles.end(), role) == finding.roles.end())
      finding.roles.push_back(role);
  }
  return finding;
}

}  // namespace

void judge_clock(Case& c) {
  const Finding finding = look(c);
  if (finding.coverage <= 0) return;
  const auto say = [&](std::string_view name, double value, std::string_view how) {
    return c.fact(std::string(name), value, "1", std::string(how),
                  fmt::format("facts[] | select(.name==\"{}\").value", name));
  };
  const std::string factor =
      say("clock.median_factor", std::exp(finding.median),
          "median of after / before over the calls of unchanged kernels, weighted by time");
  const std::string within =
      say("clock.within", finding.within, "share of their time near that factor");
  const bool uniform = std::fabs(finding.median) >= kLeastFactor && finding.within >= kMost &&
                       finding.coverage >= kMost && finding.rows.size() >= kFewestKernels &&
                       finding.roles.size() > 1;
  if (!uniform || !c.same_load) {
    c.rule_out("clock", "the whole device runs at another clock", told(finding), {factor, within});
    return;
  }
  Cause cause = c.cause_of("clock", finding.rows);
  cause.confidence = verdict::Confidence::kLikely;
  cause.facts.push_back(factor);
  cause.facts.push_back(within);
  cause.claim = fmt::format(
      "{} kernels, {} of the kernels' time, take {} a call alike, whatever bounds them ({}): the "
      "device runs at another clock",
      finding.rows.size(), text::percent(finding.within * std::min(1.0, finding.coverage)),
      percent_text(finding.median), names_of(finding.roles));
  cause.disproved_if =
      "the clocks that nvidia-smi dmon (rocm-smi) shows during both recordings are equal";
  cause.fix = "check power cap, temperature and clocks: nvidia-smi -q -d CLOCK,POWER,PERFORMANCE";
  cause.alternatives = {"another process on the same device takes its share of every kernel",
                        "another device of the same name (binning, MIG slice, cooling)"};
  c.enter(std::move(cause));
}

}  // namespace culprit::compare
