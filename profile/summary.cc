#include "profile/summary.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

namespace culprit::profile::detail {
namespace {

struct Row {
  std::string_view name;
  Nanos total = 0;
  std::int64_t calls = 0;
};

// Works by name, the longest first.
std::vector<Row> rows_of(const Logs& logs, const Window& window, const Calibration& calibration) {
  std::map<std::string_view, Row> by_name;
  for (const auto& log : logs) {
    for_each_record(*log, [&](const Record& record) {
      if (!is_work(record.kind) || !window.keeps(record)) return;
      Row& row = by_name[record.name.view()];
      row.total += calibration.epoch_ns(window.end_of(record)) - calibration.epoch_ns(record.begin);
      ++row.calls;
    });
  }
  std::vector<Row> rows;
  rows.reserve(by_name.size());
  for (const auto& [name, row] : by_name) rows.push_back({name, row.total, row.calls});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total > b.total; });
  return rows;
}

std::string fixed(double value, int digits) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

double micros(Nanos ns, std::int64_t parts) {
  return static_cast<double>(ns) / 1e3 / static_cast<double>(std::max<std::int64_t>(parts, 1));
}

// Which of these stopped the window before its time.
std::string reason(const Window& window) {
  if (window.refused > 0) return "the buffer was full (Options::buffer_bytes)";
  if (window.missing > 0)
    return std::to_string(window.missing) + " launched works did not end, or had no span";
  return "the run ended";
}

}  // namespace

std::string summarize(const Options& options, const Logs& logs, const Window& window,
                      const Calibration& calibration, const Report& report) {
  Nanos in_steps = 0;
  for (const StepRow& step : window.steps)
    in_steps += calibration.epoch_ns(step.end) - calibration.epoch_ns(step.begin);
  std::string text = report.trace + ": " + std::to_string(report.steps) +
                     " steps behind the first " + std::to_string(options.warmup) + ", " +
                     fixed(micros(in_steps, report.steps) / 1e3, 3) + " ms each on the host; " +
                     std::to_string(report.events) + " events\n";
  if (report.steps < options.steps)
    text += std::to_string(options.steps) + " steps were asked for: " + reason(window) + "\n";
  if (window.lost > 0)
    text += std::to_string(window.lost) + " spans are left out with steps that are not whole\n";
  const std::vector<Row> rows = rows_of(logs, window, calibration);
  Nanos all = 0;
  for (const Row& row : rows) all += row.total;
  text += "  total ms    share     calls  per step    mean us  kernel\n";
  for (const Row& row : rows) {
    const double share =
        static_cast<double>(row.total) / static_cast<double>(std::max<Nanos>(all, 1));
    const double per_step = static_cast<double>(row.calls) / static_cast<double>(report.steps);
    text += right(fixed(micros(row.total, 1) / 1e3, 3), 10) + right(fixed(100 * share, 1), 7) +
            " %" + right(std::to_string(row.calls), 10) + right(fixed(per_step, 1), 10) +
            right(fixed(micros(row.total, row.calls), 2), 11) + "  " + std::string(row.name) + "\n";
  }
  return text;
}

Error why_empty(const Options& options, const Window& window, std::int64_t steps) {
  Error error{"no trace was written: ", options.output, ""};
  if (window.steps_begun == 0) {
    error.what += "the run ended after " + std::to_string(steps) +
                  " steps, and the window begins behind " + std::to_string(options.warmup);
    error.hint = "run longer, or lower CULPRIT_PROFILE_WARMUP (Options::warmup)";
  } else {
    error.what += "no step is whole: " + reason(window);
    error.hint = window.refused > 0 ? "raise Options::buffer_bytes"
                 : window.missing > 0
                     ? "give the ticket of each launch to a Kernel, Copy or Collective where its "
                       "work runs, and finish the session behind all work"
                     : "finish the session behind a step, not within one";
  }
  return error;
}

}  // namespace culprit::profile::detail
