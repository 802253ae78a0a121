#include "lab/tool/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/engine/pool.h"
#include "lab/tool/screen.h"

namespace culprit::lab {
namespace {

constexpr double kShown = 0.005;  // of a step: kernels below are one row together

struct Rate {
  double bytes_per_s = 0, of_roof = 0;
  bool copies = false;
};
Rate rate_of(const BenchReport& report, std::int64_t read, std::int64_t written, Nanos time) {
  Rate rate;
  rate.copies = written * 4 >= read;
  if (time > 0)
    rate.bytes_per_s = static_cast<double>(read + written) * 1e9 / static_cast<double>(time);
  const double roof = rate.copies ? report.copy_rate : report.read_rate;
  rate.of_roof = roof > 0 ? rate.bytes_per_s / roof : 0;
  return rate;
}

double per_step(std::int64_t value, const BenchRun& run) {
  return static_cast<double>(value) /
         static_cast<double>(std::max<std::size_t>(run.steps.size(), 1));
}
std::string gb(double bytes) { return text::fixed(bytes / 1e9, bytes < 1e10 ? 2 : 1); }
std::string mb(double bytes) { return text::number(bytes / 1e6); }
std::string ms(double nanos) { return text::number(nanos / 1e6); }
std::string roof_cell(const Rate& rate) {
  return fmt::format("{:.0f} % of {}", rate.of_roof * 100, rate.copies ? "copy" : "read");
}

std::string shape_of(const Launch& launch) {
  return fmt::format("{} x {} -> {}", launch.tokens, launch.cols, launch.rows);
}

std::string head(const BenchReport& report) {
  const BenchRun& first = report.runs.front();
  std::string out = fmt::format("model    {}\n         {}, {} of weights{}\n", report.model,
                                report.layers, text::bytes(report.model_bytes),
                                report.ranks > 1 ? " on rank 0, as all that follows" : "");
  out += fmt::format("pool     {} slots, {}, {}\n", text::count(first.pool_tokens),
                     format_name(report.kv_format), text::bytes(first.pool_bytes));
  out +=
      fmt::format("machine  {}, {} threads; reads {} GB/s, copies {} GB/s (read + written)\n\n",
                  isa_name(report.isa), first.threads, gb(report.read_rate), gb(report.copy_rate));
  if (report.kv_format == KvFormat::kBf16)
    out += "A BF16 pool needs no cast: all reading strategies are one.\n\n";
  return out;
}

std::string summary(const BenchReport& report) {
  std::vector<std::vector<std::string>> rows{{"strategy", "batch", "context", "TPOT ms", "p99 ms",
                                              "tokens/s", "MB/step", "GB/s", "of read"}};
  for (const BenchRun& run : report.runs) {
    const Ledger::Entry sum = run.ledger.sum();
    const auto bytes = static_cast<double>(sum.read + sum.written);
    const double rate = bytes * 1e9 / static_cast<double>(std::max<Nanos>(run.steps.sum(), 1));
    const auto median = static_cast<double>(std::max<Nanos>(run.steps.median(), 1));
    rows.push_back(
        {std::string(reading_name(run.reading)), text::count(run.batch), text::count(run.context),
         ms(median), ms(static_cast<double>(run.steps.p99())),
         text::number(static_cast<double>(run.batch) * 1e9 / median),
         mb(per_step(sum.read + sum.written, run)), gb(rate),
         fmt::format("{:.0f} %", report.read_rate > 0 ? rate / report.read_rate * 100 : 0)});
  }
  return table(rows, 1);
}

std::vector<Ledger::Entry> by_time(const BenchRun& run) {
  const auto all = run.ledger.entries();
  std::vector<Ledger::Entry> sorted(all.begin(), all.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  return sorted;
}

std::string kernels_of(const BenchReport& report, const BenchRun& run) {
  std::vector<std::vector<std::string>> rows{{"kernel", "format", "tokens x in -> out", "calls",
                                              "MB/call", "ms/call", "GB/s", "of roof", "ms/step",
                                              "share"}};
  Nanos others = 0, kernels = 0;
  const auto wall = static_cast<double>(std::max<Nanos>(run.steps.sum(), 1));
  const auto share = [&](Nanos time) {
    return fmt::format("{:.1f} %", static_cast<double>(time) / wall * 100);
  };
  for (const Ledger::Entry& entry : by_time(run)) {
    kernels += entry.time;
    if (static_cast<double>(entry.time) < kShown * wall) {
      others += entry.time;
      continue;
    }
    const Rate rate = rate_of(report, entry.read, entry.written, entry.time);
    const auto calls = static_cast<double>(entry.calls);
    rows.push_back({std::string(entry.last.kernel), std::string(entry.last.format),
                    shape_of(entry.last), text::number(per_step(entry.calls, run)),
                    mb(static_cast<double>(entry.read + entry.written) / calls),
                    ms(static_cast<double>(entry.time) / calls), gb(rate.bytes_per_s),
                    roof_cell(rate), ms(per_step(entry.time, run)), share(entry.time)});
  }
  rows.push_back(
      {"other kernels", "", "", "", "", "", "", "", ms(per_step(others, run)), share(others)});
  const Nanos between = run.steps.sum() - kernels;
  rows.push_back(
      {"between kernels", "", "", "", "", "", "", "", ms(per_step(between, run)), share(between)});
  return fmt::format("\n{}, batch {}, context {}: calls and ms per step, means of {} steps\n",
                     reading_name(run.reading), run.batch, run.context, run.steps.size()) +
         table(rows, 3);
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::string out = head(report) + summary(report);
  for (const BenchRun& run : report.runs) out += kernels_of(report, run);
  return out;
}

std::string bench_json(const BenchReport& report) {
  nlohmann::ordered_json out;
  out["kind"] = "lab-bench";
  out["model"] = {{"name", report.model}, {"layers", report.layers}, {"bytes", report.model_bytes}};
  out["ranks"] = {{"tp", report.ranks}, {"ep", report.expert_groups}};
  out["machine"] = {{"isa", isa_name(report.isa)},
                    {"threads", report.runs.front().threads},
                    {"read_bytes_per_s", std::llround(report.read_rate)},
                    {"copy_bytes_per_s", std::llround(report.copy_rate)}};
  for (const BenchRun& run : report.runs) {
    nlohmann::ordered_json one = {{"strategy", reading_name(run.reading)},
                                  {"batch", run.batch},
                                  {"context", run.context},
                                  {"pool_tokens", run.pool_tokens},
                                  {"pool_bytes", run.pool_bytes},
                                  {"kv_dtype", format_name(report.kv_format)},
                                  {"steps", run.steps.size()},
                                  {"tpot_median_ns", run.steps.median()},
                                  {"tpot_p99_ns", run.steps.p99()}};
    for (const Ledger::Entry& entry : by_time(run))
      one["kernels"].push_back({{"kernel", entry.last.kernel},
                                {"format", entry.last.format},
                                {"tokens", entry.last.tokens},
                                {"rows", entry.last.rows},
                                {"cols", entry.last.cols},
                                {"calls_per_step", per_step(entry.calls, run)},
                                {"read_bytes_per_step", per_step(entry.read, run)},
                                {"written_bytes_per_step", per_step(entry.written, run)},
                                {"ns_per_step", per_step(entry.time, run)}});
    out["runs"].push_back(std::move(one));
  }
  return out.dump(1) + "\n";
}

}  // namespace culprit::lab
