#include "run/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "run/chapters.h"
#include "run/match.h"

namespace culprit::run {
namespace {

// How far a script's size is the replay's: a graph is captured for a batch and replayed for one that
// is not larger.
enum class Fit : std::uint8_t { kOther, kUnknown, kSame };

Fit fit_of(const ReplayKind& replays, const Script& script, const std::set<std::int64_t>& sizes) {
  if (!script.size || (!replays.batch && !replays.tokens)) return Fit::kUnknown;
  const auto is = [&](std::optional<std::int64_t> size) {
    return size && (size == replays.batch || size == replays.tokens);
  };
  if (is(script.size) || (script.tokens && is(script.tokens))) return Fit::kSame;
  const std::int64_t batch = replays.batch ? *replays.batch : *replays.tokens;
  if (!script.captured || *script.size < batch) return Fit::kOther;
  // Of several captured sizes the smallest that holds the batch is replayed.
  return sizes.size() > 1 && *sizes.lower_bound(batch) == *script.size ? Fit::kSame : Fit::kUnknown;
}

struct Candidate {
  Match match;
  Fit fit = Fit::kUnknown;
  std::uint32_t lender = 0;
  const Script* script = nullptr;
};

bool better(const Candidate& a, const Candidate& b) {
  if (b.script == nullptr) return true;
  if (a.match.paired != b.match.paired) return a.match.paired > b.match.paired;
  return a.fit > b.fit;
}

class Mapping {
 public:
  Mapping(std::vector<Lender> lenders, Run& run) : lenders_(std::move(lenders)), run_(run) {
    for (const Lender& lender : lenders_) {
      run_.lenders.push_back(lender.run);
      run_.lendings.push_back({lender.path, lender.found, {}, {}, 0, 0, false});
      std::set<std::int64_t>& sizes = sizes_.emplace_back();
      for (const Script& script : run_of(lender).scripts)
        if (script.captured && script.size) sizes.insert(*script.size);
    }
    run_.loans.assign(run_.activities.size(), {});
  }

  void lend() {
    for (const ReplayKind& replays : replay_kinds(run_, symbols_)) {
      const Candidate best = best_for(replays);
      if (best.match.paired > 0) take(replays, best);
      const auto kernels = static_cast<std::int64_t>(replays.members.size()) *
                           static_cast<std::int64_t>(replays.symbols.size());
      const auto lent = static_cast<std::int64_t>(replays.members.size()) * best.match.paired;
      all_ += kernels;
      if (lent == kernels) continue;
      without_[best.script == nullptr ? "no capture of a graph and no eager step is in it"
                                      : best.match.why_not] += kernels - lent;
    }
    if (std::all_of(run_.lendings.begin(), run_.lendings.end(),
                    [](const Lending& l) { return l.kernels == 0; }))
      run_.loans.clear();
  }

  void note() const {
    note_lent();
    if (!without_.empty()) note_left();
  }

 private:
  void note_left() const {
    std::int64_t left = 0;
    std::string why;
    for (const auto& [reason, kernels] : without_) {
      left += kernels;
      why += fmt::format("{}{} ({})", why.empty() ? "" : "; ", reason, kernels);
    }
    std::string held;
    for (const Lending& lending : run_.lendings) held += (held.empty() ? "" : ", ") + lending.path;
    add_note(run_, "not-mapped", store::Severity::kWarning, left,
             fmt::format("{} of {} have no operator and no source, held against {}: {}", left,
                         counted(all_, "graph kernel", "graph kernels"), held, why));
  }

  const Run& run_of(const Lender& lender) const { return lender.run ? *lender.run : run_; }

  Candidate best_for(const ReplayKind& replays) {
    Candidate best;
    for (std::uint32_t l = 0; l < lenders_.size(); ++l) {
      const Run& lender = run_of(lenders_[l]);
      for (const Script& script : lender.scripts) {
        Candidate candidate{run::match(run_, replays, lender, script, symbols_),
                            fit_of(replays, script, sizes_[l]), l, &script};
        if (better(candidate, best)) best = std::move(candidate);
      }
    }
    return best;
  }

  void take(const ReplayKind& replays, const Candidate& from) {
    Lending& lending = run_.lendings[from.lender];
    std::int64_t kernels = 0;
    for (const std::vector<std::uint32_t>& activities : replays.members) {
      for (std::size_t place = 0; place < activities.size(); ++place) {
        if (from.match.launch[place] == kUnpaired) continue;
        const Activity& activity = run_.activities[activities[place]];
        const Launched& launched = from.script->launches[from.match.launch[place]];
        const store::Dim3 grid = run_.groups[activity.group.index].grid;
        const bool both = grid != store::Dim3{} && launched.grid != store::Dim3{};
        const bool shapes = both ? grid == launched.grid : from.fit == Fit::kSame;
        run_.loans[activities[place]] = {launched.call, from.lender, shapes};
        lending.shapes |= shapes;
        lending.time = capped_sum(lending.time, activity.end - activity.begin);
        ++kernels;
      }
    }
    if (lending.kernels == 0 || kernels > lending.kernels) {
      lending.script = from.script->name;
      lending.verified_by = from.match.verified_by;
    }
    lending.kernels += kernels;
  }

  static std::string lent_text(const Lending& lending) {
    std::string place = lending.path;
    if (lending.found == "same trace") place = "the graph's capture in this trace";
    if (lending.found == "beside") place += ", found beside the trace";
    const std::string_view what = lending.verified_by == "names"
                                      ? "kernel names agree in order"
                                      : "as many launches as kernels, and the call sites agree";
    return fmt::format("{} from {}: {}{}", lending.kernels, place, what,
                       lending.shapes ? "" : "; without shapes, for the batch may be another");
  }

  void note_lent() const {
    std::int64_t kernels = 0;
    std::string from, where;
    for (const Lending& lending : run_.lendings) {
      if (lending.kernels == 0) continue;
      from += (from.empty() ? "" : "; ") + lent_text(lending);
      if (where.empty()) where = lending.script;
      kernels += lending.kernels;
    }
    if (kernels > 0)
      add_note(run_, "mapping", store::Severity::kInfo, kernels,
               fmt::format("{} of {} have operator and source lent, {}", kernels,
                           counted(all_, "graph kernel", "graph kernels"), from),
               where);
  }

  std::vector<Lender> lenders_;
  Run& run_;
  SymbolTable symbols_;
  std::vector<std::set<std::int64_t>> sizes_;    // captured, by lender
  std::int64_t all_ = 0;                         // graph kernels
  std::map<std::string, std::int64_t> without_;  // reason -> kernels
};

}  // namespace

Origin origin_of(const Run& run, const Activity& activity) {
  if (!activity.in_graph) return {&run, activity.call, activity.op, false, true};
  if (run.loans.empty()) return {&run, {}, activity.op, false, true};
  const auto index = static_cast<std::size_t>(&activity - run.activities.data());
  const Loan& loan = run.loans[index];
  if (!loan.call.valid()) return {&run, {}, activity.op, false, true};
  const Run* lender = run.lenders[loan.lender] ? run.lenders[loan.lender].get() : &run;
  return {lender, loan.call, lender->call_op[loan.call.index], true, loan.shapes};
}

std::string_view op_name(const Origin& origin) {
  if (!origin.op.valid()) return {};
  const store::Trace& trace = *origin.run->trace;
  return trace.strings[trace.ops.name[origin.op.index]];
}

std::int64_t graph_kernels(const Run& run) {
  return std::count_if(run.activities.begin(), run.activities.end(),
                       [](const Activity& a) { return a.in_graph; });
}

void lend(std::vector<Lender> lenders, Run& run) {
  const std::int64_t kernels = graph_kernels(run);
  if (kernels == 0) return;
  if (!run.scripts.empty())
    lenders.insert(lenders.begin(), {nullptr, run.trace->info.path, "same trace"});
  if (lenders.empty())
    return add_note(run, "not-mapped", store::Severity::kInfo, kernels,
                    counted(kernels, "graph kernel has", "graph kernels have") +
                        " no operator and no source: not recorded in replay; a trace of the "
                        "capture, or of a run without graphs, lends them (--mapping)");
  Mapping mapping(std::move(lenders), run);
  mapping.lend();
  mapping.note();
}

}  // namespace culprit::run
