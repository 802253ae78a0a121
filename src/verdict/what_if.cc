#include "verdict/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/near.h"
#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

// std::regex recurses once per character: longer names are matched by their beginning.
constexpr std::size_t kMostMatched = 4096;

class Changes {
 public:
  Changes(const evidence::Evidence& evidence, const Verdict& verdict)
      : evidence_(evidence), verdict_(verdict) {
    change_.scale.assign(evidence.run->groups.size(), 1);
  }

  Status remove(const std::string& what) {
    const auto suspect = std::find_if(verdict_.suspects.begin(), verdict_.suspects.end(),
                                      [&](const Suspect& s) { return s.id == what; });
    if (suspect == verdict_.suspects.end()) return scale(what, 0);
    merge(suspect->change);
    said_.push_back(fmt::format("without {} ({} exposed per step)", what,
                                text::duration(suspect->exposed_ns_per_step, true)));
    return Ok{};
  }

  Status scale(const std::string& expression, double factor) {
    std::regex pattern;
    try {
      pattern = std::regex(expression, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      return usage(fmt::format("\"{}\" is not a regular expression: {}", expression, error.what()),
                   "quote special characters: \\( \\[ \\*");
    }
    std::int64_t groups = 0;
    Nanos time = 0;
    for (const evidence::KernelFigures& kernel : evidence_.kernels) {
      if (!fits(pattern, kernel)) continue;
      change_.scale[kernel.group.index] *= factor;
      time += kernel.ns_per_step;
      ++groups;
    }
    if (groups == 0) return unknown(expression);
    const std::string which =
        fmt::format("{} {} \"{}\" ({} per step)", groups,
                    groups == 1 ? "kernel that matches" : "kernels that match", expression,
                    text::duration(time, true));
    said_.push_back(factor == 0 ? "without " + which
                                : which + " at " + text::percent(factor) + " of the time");
    return Ok{};
  }

  void graph() {
    change_.graph = true;
    said_.emplace_back("the step replayed as a graph: one launch");
  }
  void no_sync() {
    change_.no_waits = true;
    said_.emplace_back("without the host's waits for the device");
  }

  const evidence::Change& change() const { return change_; }
  const std::vector<std::string>& said() const { return said_; }

 private:
  static Error usage(std::string what, std::string hint) {
    return {Error::Code::kUsage, std::move(what), "", std::move(hint)};
  }
  bool fits(const std::regex& pattern, const evidence::KernelFigures& kernel) const {
    const run::Group& group = evidence_.run->groups[kernel.group.index];
    const auto found = [&](std::string_view name) {
      name = name.substr(0, kMostMatched);
      return std::regex_search(name.begin(), name.end(), pattern);
    };
    return found(evidence_.run->trace->strings.or_empty(group.name)) ||
           found(group.info.short_name);
  }
  Error unknown(const std::string& name) const {
    std::vector<std::string> ids;
    for (const Suspect& suspect : verdict_.suspects) ids.push_back(suspect.id);
    return usage(fmt::format("\"{}\" fits no suspect and no kernel of this run", name),
                 did_you_mean(name, ids, "`culprit kernels TRACE --all` lists the kernels"));
  }
  void merge(const evidence::Change& other) {
    for (std::size_t i = 0; i < other.scale.size(); ++i) change_.scale[i] *= other.scale[i];
    change_.graph |= other.graph;
    change_.no_waits |= other.no_waits;
  }

  const evidence::Evidence& evidence_;
  const Verdict& verdict_;
  evidence::Change change_;
  std::vector<std::string> said_;
};

}  // namespace

Result<WhatIfAnswer> what_if(const evidence::Evidence& evidence, const Verdict& verdict,
                             const WhatIf& request) {
  if (const std::string& off = evidence.retimer->off(); !off.empty()) {
    Error e{Error::Code::kUnusable, "the step cannot be run again: " + off, "",
            "record the launches (CPU and CUDA activities) of several whole steps"};
    e.note_code = "retiming-off";
    return e;
  }
  Changes changes(evidence, verdict);
  for (const std::string& what : request.remove) {
    if (Status status = changes.remove(what); !status.ok()) return status.error();
  }
  for (const auto& [expression, factor] : request.scale) {
    if (Status status = changes.scale(expression, factor); !status.ok()) return status.error();
  }
  if (request.graph) changes.graph();
  if (request.no_sync) changes.no_sync();

  WhatIfAnswer answer;
  answer.changes = changes.said();
  answer.gain = gain_of(evidence, 0, {changes.change(), {}});
  evidence::Change now, after = changes.change();
  now.host = after.host = evidence.host_factor;
  answer.now = evidence.retimer->retime(now);
  answer.after = evidence.retimer->retime(after);
  return answer;
}

}  // namespace culprit::verdict
