#include "verdict/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/near.h"
#include "base/text.h"
#include "verdict/select.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;

constexpr std::string_view kNotRecorded = "(not recorded)", kInReplay = "(not recorded in replay)";

// Parents by what they are called; the text is made once per distinct key.
template <class Key>
class Tally {
 public:
  template <class Text>
  void add(const Key& key, Nanos ns, Text text) {
    const auto [entry, is_new] = parents_.try_emplace(key);
    if (is_new) entry->second.what = text();
    ++entry->second.calls;
    entry->second.ns += ns;
  }
  // Different keys may read the same: they are one parent.
  std::vector<Parent> most_time_first() const {
    std::map<std::string, Parent> by_text;
    for (const auto& [key, parent] : parents_) {
      Parent& one = by_text[parent.what];
      one.what = parent.what;
      one.calls += parent.calls;
      one.ns += parent.ns;
    }
    std::vector<Parent> parents;
    parents.reserve(by_text.size());
    for (auto& [text, parent] : by_text) parents.push_back(std::move(parent));
    std::stable_sort(parents.begin(), parents.end(),
                     [](const Parent& a, const Parent& b) { return a.ns > b.ns; });
    return parents;
  }

 private:
  std::map<Key, Parent> parents_;
};

std::string chain_text(const run::Origin& origin) {
  std::string text;
  for (const store::StringId op : run::op_chain(*origin.run, origin.op)) {
    text += text.empty() ? "" : " > ";
    text += origin.run->trace->strings.or_empty(op);
  }
  return text + (origin.lent ? " (lent)" : "");
}

std::string source_text(const run::Origin& origin) {
  const std::optional<run::Source> source = run::source_of(*origin.run, origin.call);
  if (!source) return std::string(kNotRecorded);
  return fmt::format("{}:{} {}{}{}", source->file, source->line, source->function,
                     source->exact ? "" : " (the function's first line)",
                     origin.lent ? " (lent)" : "");
}

std::string launch_text(const run::Run& run, store::CallRow call) {
  if (!call.valid()) return "(launch not in the file)";
  const store::Trace& trace = *run.trace;
  const store::ThreadId thread = trace.calls.thread[call.index];
  return fmt::format("{} on thread {}", trace.strings.or_empty(trace.calls.name[call.index]),
                     thread.valid() ? trace.strings.or_empty(trace.threads[thread.index].tid)
                                    : std::string_view("?"));
}

class Parents {
 public:
  explicit Parents(const run::Run& run) : run_(run) {}

  void add(const run::Activity& activity) {
    const Nanos ns = activity.end - activity.begin;
    const run::Origin origin = run::origin_of(run_, activity);
    const std::string_view none = activity.in_graph ? kInReplay : kNotRecorded;
    const Where at{origin.run, frame_of(origin), op_of(origin)};
    ops_.add({at.run, 0, at.op}, ns,
             [&] { return origin.op.valid() ? chain_text(origin) : std::string(none); });
    sources_.add({at.run, at.frame, 0}, ns,
                 [&] { return origin.call.valid() ? source_text(origin) : std::string(none); });
    const store::CallTable& calls = run_.trace->calls;
    const std::pair<std::uint32_t, std::uint32_t> launch =
        activity.call.valid() ? std::pair{calls.name[activity.call.index].index,
                                          calls.thread[activity.call.index].index}
                              : std::pair{~0U, ~0U};
    launches_.add(launch, ns, [&] { return launch_text(run_, activity.call); });
  }

  void finish(Explained& explained) const {
    explained.ops = ops_.most_time_first();
    explained.sources = sources_.most_time_first();
    explained.launches = launches_.most_time_first();
  }

 private:
  struct Where {
    const run::Run* run = nullptr;
    std::uint32_t frame = 0, op = 0;
    friend bool operator<(const Where& a, const Where& b) {
      return std::tie(a.run, a.frame, a.op) < std::tie(b.run, b.frame, b.op);
    }
  };
  // The frame itself differs from call to call; its name, its caller's line and its parent's do not,
  // but telling chains apart by them costs more than making the text.
  static std::uint32_t frame_of(const run::Origin& origin) {
    if (!origin.call.valid() || origin.run->call_frame.empty()) return 0;
    return origin.run->call_frame[origin.call.index].index + 1;
  }
  static std::uint32_t op_of(const run::Origin& origin) {
    return origin.op.valid() ? origin.op.index + 1 : 0;
  }

  const run::Run& run_;
  Tally<Where> ops_, sources_;
  Tally<std::pair<std::uint32_t, std::uint32_t>> launches_;
};

std::string elements_text(const KernelFigures& kernel) {
  if (kernel.elements_exact) return text::count(*kernel.elements_exact);
  return fmt::format("{} to {}", text::count(kernel.elements->min),
                     text::count(kernel.elements->max));
}

HeldTensor hold(known::Tensor tensor, const KernelFigures& kernel) {
  const bool size = kernel.elements_exact ? tensor.elements == *kernel.elements_exact
                                          : kernel.elements->contains(tensor.elements);
  const bool typed = kernel.dtype_in != known::Dtype::kUnknown &&
                     tensor.dtype != known::Dtype::kUnknown && kernel.dtype_in_how != "inferred";
  const bool type = !typed || kernel.dtype_in == tensor.dtype || kernel.dtype_out == tensor.dtype;
  HeldTensor held{std::move(tensor), size && type, {}};
  held.because =
      !size   ? fmt::format("{} elements, the kernel wrote {}", text::count(held.tensor.elements),
                            elements_text(kernel))
      : !type ? fmt::format("held as {}, the kernel reads {}", known::dtype_name(held.tensor.dtype),
                            known::dtype_name(kernel.dtype_in))
              : fmt::format("{} elements", text::count(held.tensor.elements));
  return held;
}

// Every tensor of the model, what fits first, then by nearness in size.
std::vector<HeldTensor> hold_all(const Evidence& evidence, const KernelFigures& kernel) {
  std::vector<HeldTensor> table;
  if (!evidence.known.model || !kernel.elements) return table;
  known::Deployment deployment = evidence.known.deployment;
  if (!deployment.batch) deployment.batch = evidence.steps.tokens;
  for (known::Tensor& tensor : known::tensors(*evidence.known.model, deployment)) {
    table.push_back(hold(std::move(tensor), kernel));
  }
  const auto wrote = static_cast<double>(kernel.elements_exact.value_or(kernel.elements->max));
  const auto distance = [&](const HeldTensor& held) {
    return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(1, held.tensor.elements)) /
                             std::max(1.0, wrote)));
  };
  std::stable_sort(table.begin(), table.end(), [&](const HeldTensor& a, const HeldTensor& b) {
    return a.fits != b.fits ? a.fits : distance(a) < distance(b);
  });
  return table;
}

Explained explain_kernel(const Evidence& evidence, const Verdict& verdict, std::size_t index) {
  const run::Run& run = *evidence.run;
  const KernelFigures& kernel = evidence.kernels[index];
  Explained explained;
  explained.kernel = index;
  Parents parents(run);
  std::vector<Nanos> times;
  for (const run::Step& step : run.steps) {
    for (std::int64_t i = step.first; step.used && i < step.last; ++i) {
      const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
      if (activity.group != kernel.group) continue;
      times.push_back(activity.end - activity.begin);
      parents.add(activity);
    }
  }
  parents.finish(explained);
  std::sort(times.begin(), times.end());
  if (!times.empty()) {
    explained.fastest = times.front();
    explained.median = times[times.size() / 2];
    explained.slowest = times.back();
  }
  explained.tensors = hold_all(evidence, kernel);
  for (const Suspect& suspect : verdict.suspects) {
    if (std::find(suspect.kernels.begin(), suspect.kernels.end(), index) != suspect.kernels.end()) {
      explained.accused_of.push_back(suspect.id);
    }
  }
  return explained;
}

Error no_such_suspect(const Verdict& verdict, const std::string& id) {
  std::vector<std::string> found;
  for (const Suspect& suspect : verdict.suspects) found.push_back(suspect.id);
  const auto known = rules();
  const bool exists =
      std::any_of(known.begin(), known.end(), [&](const Rule& rule) { return rule.id == id; });
  std::string what = exists ? fmt::format("{} is no suspect of this run", id)
                            : fmt::format("no suspect is called \"{}\"", id);
  std::string others = found.empty() ? "this run has no suspects"
                                     : fmt::format("its suspects: {}", fmt::join(found, ", "));
  return {Error::Code::kUsage, std::move(what), "", did_you_mean(id, found, others)};
}

}  // namespace

Result<Explanation> explain(const Evidence& evidence, const Verdict& verdict,
                            const ExplainRequest& request) {
  Explanation explanation;
  std::vector<std::size_t> kernels;
  if (!request.suspect.empty()) {
    explanation.suspect = suspect_named(verdict, request.suspect);
    if (explanation.suspect == nullptr) return no_such_suspect(verdict, request.suspect);
    kernels = explanation.suspect->kernels;
  }
  if (!request.kernel.empty()) {
    TRY(const std::vector<std::size_t> found, kernels_matching(evidence, verdict, request.kernel));
    kernels.insert(kernels.end(), found.begin(), found.end());
  }
  std::sort(kernels.begin(), kernels.end());  // Evidence::kernels has most time first
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  for (const std::size_t kernel : kernels) {
    explanation.kernels.push_back(explain_kernel(evidence, verdict, kernel));
  }
  return explanation;
}

}  // namespace culprit::verdict
