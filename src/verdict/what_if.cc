#include "verdict/what_if.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"
#include "verdict/select.h"

namespace culprit::verdict {
namespace {

class Changes {
 public:
  Changes(const evidence::Evidence& evidence, const Verdict& verdict)
      : evidence_(evidence), verdict_(verdict) {
    change_.scale.assign(evidence.run->groups.size(), 1);
  }

  Status remove(const std::string& what) {
    const Suspect* suspect = suspect_named(verdict_, what);
    if (suspect == nullptr) return scale(what, 0);
    merge(suspect->change);
    said_.push_back(fmt::format("without {} ({} exposed per step)", what,
                                text::duration(suspect->exposed_ns_per_step, true)));
    return Ok{};
  }

  Status scale(const std::string& expression, double factor) {
    TRY(const std::vector<std::size_t> kernels, kernels_matching(evidence_, verdict_, expression));
    Nanos time = 0;
    for (const std::size_t kernel : kernels) {
      change_.scale[evidence_.kernels[kernel].group.index] *= factor;
      time += evidence_.kernels[kernel].ns_per_step;
    }
    const std::string which =
        fmt::format("{} {} \"{}\" ({} per step)", kernels.size(),
                    kernels.size() == 1 ? "kernel that matches" : "kernels that match", expression,
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
