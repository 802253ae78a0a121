#include "report/words.h"

#include <fmt/format.h>

#include "report/views.h"

namespace culprit::report {
namespace {

// Steps that no mark tells are said to be inferred, and from what.
std::string_view inferred_from(run::StepsHow how) {
  if (how == run::StepsHow::kGraphReplay) return "inferred from equal graph replays";
  if (how == run::StepsHow::kRepetition) return "inferred from repeating kernels";
  return {};
}

}  // namespace

std::string size_text(const Answer& answer) {
  if (answer.inputs.empty())
    return answer.info == nullptr
               ? std::string()
               : fmt::format("{}, {} events", text::bytes(answer.info->file_bytes),
                             text::count(answer.info->events));
  std::int64_t bytes = 0, events = 0;
  for (const InputFile& file : answer.inputs) {
    bytes += file.info.file_bytes;
    events += file.info.events;
  }
  return fmt::format("{} traces: {}, {} events",
                     text::count(static_cast<std::int64_t>(answer.inputs.size())),
                     text::bytes(bytes), text::count(events));
}

std::string steps_text(const Page& page, const Answer& answer) {
  const evidence::StepStats& steps = answer.evidence->steps;
  const std::string_view kind = run::step_kind_name(answer.run->kind);
  const bool unknown = answer.run->kind == run::StepKind::kUnknown;
  std::string out = fmt::format("{} {}step{}{}", text::count(steps.found),
                                unknown ? std::string() : std::string(kind) + " ",
                                steps.found == 1 ? "" : "s", unknown ? " of unknown kind" : "");
  std::string which;
  if (steps.used != steps.found) which = fmt::format("{} used", text::count(steps.used));
  const std::vector<StepGroup> groups = step_groups(*answer.run);
  if (!groups.empty() && groups.front().batch) {
    const bool several = groups.size() > 1 && groups[1].kind == groups.front().kind;
    which += which.empty() ? "" : ", ";
    which += several ? "several batch sizes" : fmt::format("batch {}", *groups.front().batch);
  }
  const std::string_view inferred = inferred_from(answer.run->how);
  if (!inferred.empty()) which += fmt::format("{}{}", which.empty() ? "" : ", ", inferred);
  if (!which.empty()) out += " (" + which + ")";
  out += steps.used == 1 ? fmt::format(": {}", page.duration(steps.mean))
                         : fmt::format(": {} mean, {} p99", page.duration(steps.mean),
                                       page.duration(steps.p99));
  if (steps.mean <= 0) return out;
  return out + fmt::format("; device busy {}", text::percent(static_cast<double>(steps.busy_ns) /
                                                             static_cast<double>(steps.mean)));
}

std::string device_text(const Answer& answer) {
  std::string out = device_name(*answer.run);
  if (out.empty()) out = "unknown device";
  const evidence::Peak& peak = answer.evidence->peak;
  if (peak.gbps > 0) {
    out += fmt::format(", peak {} GB/s", text::number(peak.gbps));
    const std::string doubt = peak.verified ? "" : "unverified";
    const bool own = answer.run->gpu && !answer.run->gpu->gpu.table.empty();
    const std::string source = peak.source != "table" ? peak.source : own ? "your table" : "";
    if (!doubt.empty() || !source.empty())
      out += fmt::format(" ({}{}{})", source, source.empty() || doubt.empty() ? "" : ", ", doubt);
  }
  const auto& model = answer.evidence->known.model;
  const auto& layers = answer.run->layers.count;
  if (model) out += "; " + model->name;
  if (layers) out += fmt::format("{} {} layers", model ? "," : ";", *layers);
  return out;
}

std::string note_text(const store::Note& note) {
  std::string out = note.message;
  std::string place = note.where;
  const bool counted = out.find(text::count(note.count)) != std::string::npos ||
                       out.find(std::to_string(note.count)) != std::string::npos;
  if (note.count > 1 && !counted) {
    place = text::count(note.count) + " times" + (place.empty() ? "" : ", " + place);
  }
  if (!place.empty()) out += " (" + place + ")";
  return out;
}

}  // namespace culprit::report
