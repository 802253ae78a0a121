// The suspects and those who are ruled out, as people read them: claim, tensor, kernel, figures,
// fix, what would disprove it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/page.h"
#include "report/table.h"
#include "report/views.h"
#include "report/words.h"

namespace culprit::report {
namespace {

std::string launch_text(const run::Group& group) {
  if (group.grid == store::Dim3{}) return {};
  const auto blocks = [](const store::Dim3& dim) {
    return dim[1] == 1 && dim[2] == 1 ? text::count(dim[0])
                                      : fmt::format("{} x {} x {}", dim[0], dim[1], dim[2]);
  };
  return fmt::format("; grid {} of {} threads", blocks(group.grid), blocks(group.block));
}

std::string elements_text(const evidence::KernelFigures& kernel) {
  if (kernel.elements_exact) {
    return fmt::format("; {} elements", text::count(*kernel.elements_exact));
  }
  if (!kernel.elements) return {};
  return fmt::format("; {} to {} elements", text::count(kernel.elements->min),
                     text::count(kernel.elements->max));
}

std::string facts_text(const verdict::Suspect& suspect) {
  std::string out;
  for (const std::string& fact : suspect.facts) out += (out.empty() ? "" : " ") + fact;
  return out;
}

// How far the host's time, which a profiler inflates, moves a retimed step; nothing where it hardly
// does.
std::string range_text(const Page& page, const verdict::Gain& gain) {
  constexpr double kNotable = 0.02;
  const auto differs = [&](Nanos other) {
    return std::abs(static_cast<double>(other - gain.expected)) >
           kNotable * static_cast<double>(gain.expected);
  };
  std::string out;
  if (differs(gain.low)) out += page.duration(gain.low) + " with a host that costs nothing";
  if (differs(gain.high)) {
    out += (out.empty() ? "" : ", ") + page.duration(gain.high) + " with the host as profiled";
  }
  return out.empty() ? out : " (" + out + ")";
}

Ink ink_of(verdict::Standing standing) {
  if (standing == verdict::Standing::kCulprit) return Ink::kRed;
  return standing == verdict::Standing::kContributor ? Ink::kYellow : Ink::kPlain;
}

std::string remedies_text(const Page& page, const verdict::Suspect& suspect) {
  std::string out;
  for (const verdict::Remedy& remedy : suspect.remedies) {
    out += fmt::format("{}{} {}", out.empty() ? "the step then: " : ", ", remedy.name,
                       page.duration(remedy.gain.expected));
  }
  return out;
}

}  // namespace

std::string head_text(const Page& page, const verdict::Suspect& suspect) {
  return fmt::format("{}: {}, {}; {} exposed per step, {}", suspect.id,
                     verdict::standing_name(suspect.standing),
                     verdict::confidence_name(suspect.confidence),
                     page.duration(suspect.exposed_ns_per_step), text::percent(suspect.share));
}

std::string tensor_text(const verdict::TensorMatch& tensor, std::optional<double> live_fraction) {
  std::string out = tensor.name;
  if (!tensor.shape.empty()) out += " " + shape_text(tensor.shape);
  if (!tensor.dtype.empty()) out += " " + tensor.dtype;
  if (tensor.elements > 0) out += fmt::format(": {} elements", text::count(tensor.elements));
  if (tensor.match == "exact") out += ", an exact match";
  if (tensor.match == "within-launch-rounding") out += ", within the rounding of the launch";
  if (tensor.match == "inferred") out += ", inferred";
  if (live_fraction) out += fmt::format("; {} of it in use", text::percent(*live_fraction));
  return out;
}

std::string kernel_text(const Answer& answer, const verdict::Suspect& suspect) {
  if (suspect.kernels.empty()) return {};
  const auto& kernels = answer.evidence->kernels;
  std::string out(short_name(*answer.run, kernels[suspect.kernels.front()]));
  if (suspect.kernels.size() > 1) {
    out += fmt::format(" (and {} more)", suspect.kernels.size() - 1);
  }
  return out;
}

// Of the suspect's largest kernel.
std::string figures_text(const Page& page, const Answer& answer, const verdict::Suspect& suspect) {
  if (suspect.kernels.empty()) return {};
  const evidence::KernelFigures& kernel = answer.evidence->kernels[suspect.kernels.front()];
  std::string out = fmt::format("{} calls a step, {} each", text::amount(kernel.calls_per_step),
                                page.duration(kernel.avg_ns));
  out += launch_text(group_of(*answer.run, kernel));
  const bool said = suspect.tensor && kernel.elements_exact == suspect.tensor->elements;
  if (!said) out += elements_text(kernel);
  if (kernel.bytes) out += fmt::format("; {} a call", text::bytes(*kernel.bytes));
  if (kernel.gbps) out += fmt::format(" at {} GB/s", text::number(*kernel.gbps));
  if (kernel.of_peak) out += fmt::format(", {} of peak", text::percent(*kernel.of_peak));
  return out;
}

std::string bound_text(std::string_view bound) {
  if (bound == "gpu") return "the GPU";
  if (bound == "host-launch") return "the host's launches";
  return std::string(bound);
}

std::string gain_text(const Page& page, const verdict::Gain& gain) {
  if (gain.step_now <= 0) return {};
  const Nanos saved = gain.step_now - gain.expected;
  const bool bound = gain.method == "bound";
  std::string out = fmt::format("{}{} per step{}: {} → {}", bound ? "at most " : "",
                                page.duration(saved), bound ? " (bound)" : "",
                                page.duration(gain.step_now), page.duration(gain.expected));
  if (!bound) out += range_text(page, gain);
  if (gain.tokens_per_s_after > 0) {
    out += fmt::format(", {} tokens/s", text::number(gain.tokens_per_s_after));
  }
  if (!gain.bound_by_after.empty()) out += ", then bound by " + bound_text(gain.bound_by_after);
  return out;
}

void add_place(Page& page, const Answer& answer, const verdict::Suspect& suspect) {
  if (!suspect.where.empty()) return page.place(suspect.where.front());
  const auto& kernels = answer.evidence->kernels;
  const bool in_replay = !suspect.kernels.empty() && kernels[suspect.kernels.front()].in_replay;
  if (in_replay) page.labelled("at", "not recorded in replay; --mapping CAPTURE lends it");
}

void add_suspect(Page& page, const Answer& answer, std::size_t index) {
  const verdict::Suspect& suspect = answer.verdict->suspects[index];
  const std::string head = fmt::format("{}  {}", index + 1, head_text(page, suspect));
  page.paragraph(head, 0, 3, ink_of(suspect.standing));
  const bool said = index == 0 && answer.verdict->headline.find(suspect.claim) != std::string::npos;
  if (!said) page.paragraph(suspect.claim, 3, 3);
  if (suspect.tensor) {
    page.labelled("tensor", tensor_text(*suspect.tensor, suspect.live_fraction));
  }
  page.labelled("kernel", kernel_text(answer, suspect));
  page.labelled("", figures_text(page, answer, suspect));
  // The first suspect's place and gain stand under the headline already.
  if (index > 0) {
    add_place(page, answer, suspect);
    page.labelled("gain", gain_text(page, suspect.gain));
  }
  page.labelled("fix", suspect.fix);
  page.labelled("", remedies_text(page, suspect));
  if (page.options().all) {
    for (const std::string& other : suspect.alternatives) page.labelled("or", other);
    for (const verdict::Remedy& remedy : suspect.remedies) {
      page.labelled(remedy.name, remedy.summary + ": " + gain_text(page, remedy.gain));
    }
    page.labelled("facts", facts_text(suspect));
  }
  page.paragraph("Disproved if " + suspect.disproved_if, 3, 3);
}

void add_suspects(Page& page, const Answer& answer, std::size_t at_most) {
  const std::size_t count = answer.verdict->suspects.size();
  if (count == 0) return;
  page.blank();
  for (std::size_t i = 0; i < std::min(count, at_most); ++i) add_suspect(page, answer, i);
  if (count > at_most) {
    page.paragraph(fmt::format("{} more suspects: --all", count - at_most), 0, 0, Ink::kDim);
  }
}

void add_ruled_out(Page& page, const Answer& answer, std::size_t at_most) {
  const auto& ruled_out = answer.verdict->ruled_out;
  const auto& healthy = answer.verdict->healthy;
  int key_width = 0;
  for (const auto& ruled : ruled_out) {
    key_width = std::max(key_width, text::display_width(page.safe(ruled.hypothesis)));
  }
  for (const auto& well : healthy) {
    key_width = std::max(key_width, text::display_width(page.safe(well.what)));
  }
  key_width = std::min(key_width, 24);
  if (!ruled_out.empty()) page.title("ruled out");
  const int limit = page.paragraph_limit();
  page.limit_paragraphs(std::max(1, limit / 2));  // the number that clears comes first
  for (std::size_t i = 0; i < std::min(ruled_out.size(), at_most); ++i) {
    page.entry(ruled_out[i].hypothesis, key_width, ruled_out[i].because);
  }
  if (ruled_out.size() > at_most) {
    page.paragraph(fmt::format("{} more: --all", ruled_out.size() - at_most), 2, 2, Ink::kDim);
  }
  page.limit_paragraphs(limit);
  // Who is well matters most where nobody is to blame.
  if (healthy.empty() || (!answer.verdict->suspects.empty() && !page.options().all)) return;
  page.title("healthy");
  for (std::size_t i = 0; i < std::min(healthy.size(), at_most); ++i) {
    std::string why = healthy[i].because;
    if (healthy[i].at_most_gain) {
      why += fmt::format("; at most {} to gain", page.duration(*healthy[i].at_most_gain));
    }
    page.entry(healthy[i].what, key_width, why);
  }
}

}  // namespace culprit::report
