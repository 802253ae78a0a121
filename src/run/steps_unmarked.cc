// Steps without marks: equal graph replays, else the period of the kernel sequence. Both look for
// a step's inner repetition (its layers): what repeats without any is a layer, not a step.
#include <algorithm>

#include "run/chapters.h"
#include "run/replays.h"

namespace culprit::run {
namespace {

constexpr std::int64_t kGraphLayers = 4;   // equal kernels in one replay that make it a whole step
constexpr std::int64_t kEagerLayers = 10;  // the same for a stretch of eager kernels, where several
constexpr int kEagerKernels = 2;           // equal kernels in one layer are common: so many kernels
                                           // must repeat so often

Nanos kernel_time(const Run& run) {
  Nanos time = 0;
  for (const Activity& a : run.activities) time = capped_sum(time, a.end - a.begin);
  return time;
}

void make_steps(const std::vector<std::uint32_t>& firsts, StepsHow how, Run& run) {
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    Step step;
    step.begin = run.activities[firsts[i]].begin;
    step.end = i + 1 < firsts.size() ? run.activities[firsts[i + 1]].begin : run.device_span.end;
    if (step.end > step.begin) run.steps.push_back(std::move(step));
  }
  run.how = how;
}

bool eager_attention_between(const Run& run, const Replays& replays) {
  return std::any_of(run.activities.begin() + replays.all.front().first,
                     run.activities.begin() + replays.all.back().first, [](const Activity& a) {
                       return !a.in_graph && a.kind == known::Owner::kAttention;
                     });
}

// Replays that are whole steps: with layers inside, and not small beside the largest (draft models
// have layers too). Replays without layers are whole steps only where all are equal and no
// attention runs between them; else they are pieces of a step.
std::vector<std::uint32_t> whole_step_replays(const Run& run, const Replays& replays) {
  constexpr Nanos kSmall = 5;  // a fifth of the largest
  Nanos largest = 0;
  for (const Replay& r : replays.all)
    if (r.repeats >= kGraphLayers) largest = std::max(largest, r.time);
  const bool layered = largest > 0;
  const bool all_equal = std::all_of(replays.all.begin(), replays.all.end(), [&](const Replay& r) {
    return r.signature == replays.all.front().signature;
  });
  std::vector<std::uint32_t> firsts;
  if (!layered && (!all_equal || eager_attention_between(run, replays))) return firsts;
  Nanos time = 0;
  for (const Replay& r : replays.all) {
    if (layered && (r.repeats < kGraphLayers || r.time < largest / kSmall)) continue;
    firsts.push_back(r.first);
    time = capped_sum(time, r.time);
  }
  if (time < kernel_time(run) / 10) firsts.clear();  // the work is elsewhere; prefills may be long
  return firsts;
}

// The kernels of the busiest stream as symbols, one per kernel group or one per kernel name; a whole
// graph replay is one symbol. Names bring together what differs in grid only: prefill and decode.
enum class SymbolsBy : std::uint8_t { kGroup, kName };
struct Sequence {
  std::vector<std::uint32_t> symbols;
  std::vector<std::uint32_t> activity;  // by position
  std::size_t alphabet = 0;
};

std::uint32_t busiest_stream(const Run& run) {
  const auto& thread = run.trace->device.thread;
  std::vector<Nanos> time(run.trace->threads.size(), 0);
  for (const Activity& a : run.activities) {
    Nanos& t = time[thread[a.row.index].index];
    t = capped_sum(t, a.end - a.begin);
  }
  return static_cast<std::uint32_t>(std::max_element(time.begin(), time.end()) - time.begin());
}

std::vector<std::uint32_t> symbol_of_groups(const Run& run, SymbolsBy by) {
  std::vector<std::uint32_t> symbol_of(run.groups.size());
  std::vector<std::uint32_t> first_of_name(run.trace->strings.size(), Replays::kNone);
  for (std::uint32_t g = 0; g < symbol_of.size(); ++g) {
    std::uint32_t& first = first_of_name[run.groups[g].name.index];
    if (first == Replays::kNone) first = g;
    symbol_of[g] = by == SymbolsBy::kName ? first : g;
  }
  return symbol_of;
}

Sequence read_sequence(const Run& run, const Replays& replays, SymbolsBy by) {
  std::vector<std::uint64_t> classes;  // signatures
  for (const Replay& r : replays.all) classes.push_back(r.signature);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  const std::vector<std::uint32_t> symbol_of = symbol_of_groups(run, by);
  const std::uint32_t stream = busiest_stream(run);
  Sequence sequence;
  sequence.alphabet = run.groups.size() + classes.size();
  for (std::uint32_t i = 0; i < run.activities.size(); ++i) {
    const Activity& a = run.activities[i];
    const std::uint32_t r = replays.of[i];
    std::size_t symbol = symbol_of[a.group.index];
    if (r != Replays::kNone) {
      if (replays.all[r].first != i) continue;
      const auto at = std::lower_bound(classes.begin(), classes.end(), replays.all[r].signature);
      symbol = run.groups.size() + static_cast<std::size_t>(at - classes.begin());
    } else if (run.trace->device.thread[a.row.index].index != stream ||
               run.groups[a.group.index].device_kind != store::DeviceKind::kKernel) {
      continue;
    }
    sequence.symbols.push_back(static_cast<std::uint32_t>(symbol));
    sequence.activity.push_back(i);
  }
  return sequence;
}

// Do the stretches between one symbol's occurrences look like steps?
class Period {
 public:
  Period(const Sequence& sequence, const Buckets& positions)
      : symbols_(sequence.symbols),
        positions_(positions),
        reference_(sequence.alphabet, 0),
        other_(sequence.alphabet, 0) {}

  bool holds_for(std::size_t symbol) {
    const std::uint32_t* at = positions_.rows.data() + positions_.start[symbol];
    const std::size_t count = positions_.start[symbol + 1] - positions_.start[symbol];
    if (count < 2) return false;
    const std::size_t length = median_length(at, count);
    const std::size_t tail = symbols_.size() - at[count - 1];
    const std::size_t covered = at[count - 1] - at[0] + std::min(tail, length);
    if (covered * 10 < symbols_.size() * 7) return false;  // a phase of the trace, not its period
    std::vector<std::size_t> regular;                      // stretches of about that length
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (close(at[i + 1] - at[i], length)) regular.push_back(i);
    if (regular.size() * 10 < (count - 1) * 8) return false;
    // One in the middle is taken as the model of the others: the ends may be of a warm-up.
    const std::size_t model = regular[regular.size() / 2];
    if (!count_into(reference_, at[model], at[model + 1])) return false;
    std::size_t like = 0, compared = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = i + 1 < count ? at[i + 1] : symbols_.size();
      if (i == model || !close(std::min(end - at[i], length), length)) continue;
      ++compared;
      if (alike(at[i], std::min<std::size_t>(end, at[i] + length + length / 20))) ++like;
    }
    clear(reference_, at[model], at[model + 1]);
    return compared > 0 && like * 10 >= compared * 8;
  }

 private:
  static std::size_t median_length(const std::uint32_t* at, std::size_t count) {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i + 1 < count; ++i) lengths.push_back(at[i + 1] - at[i]);
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return *middle;
  }
  static bool close(std::size_t length, std::size_t median) {
    const std::size_t difference = length > median ? length - median : median - length;
    return difference <= std::max<std::size_t>(2, median / 20);
  }
  // Counts the stretch's symbols; false where it has no layers inside.
  bool count_into(std::vector<std::int64_t>& counts, std::size_t from, std::size_t to) const {
    int repeating = 0;
    for (std::size_t i = from; i < to; ++i)
      if (++counts[symbols_[i]] == kEagerLayers) ++repeating;
    if (repeating < kEagerKernels) clear(counts, from, to);
    return repeating >= kEagerKernels;
  }
  void clear(std::vector<std::int64_t>& counts, std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) counts[symbols_[i]] = 0;
  }
  // Four fifths of the stretch's symbols are the reference's: grids of some kernels follow the
  // context length.
  bool alike(std::size_t from, std::size_t to) {
    std::size_t shared = 0;
    for (std::size_t i = from; i < to; ++i)
      if (++other_[symbols_[i]] <= reference_[symbols_[i]]) ++shared;
    clear(other_, from, to);
    return shared * 5 >= (to - from) * 4;
  }

  const std::vector<std::uint32_t>& symbols_;
  const Buckets& positions_;
  std::vector<std::int64_t> reference_, other_;
};

// Median idle time in front of a symbol: the host's work between steps shows there.
Nanos gap_before(const Run& run, const Sequence& sequence, const Buckets& positions,
                 std::size_t symbol) {
  std::vector<Nanos> gaps;
  for (std::uint32_t k = positions.start[symbol]; k < positions.start[symbol + 1]; ++k) {
    const std::uint32_t i = sequence.activity[positions.rows[k]];
    gaps.push_back(i == 0 ? 0 : run.activities[i].begin - run.activities[i - 1].end);
  }
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

// The symbol whose occurrences begin the steps: of those with a step's period the most frequent
// that has another witness of the same count. Kernels that run once a step have several (embedding,
// logits, sampling); rarer ones (a prefill after every tenth step) mark longer periods.
std::optional<std::size_t> step_symbol(const Run& run, const Sequence& sequence,
                                       const Buckets& positions) {
  std::vector<std::uint32_t> symbols;
  for (std::uint32_t s = 0; s < sequence.alphabet; ++s)
    if (positions.start[s + 1] - positions.start[s] >= 2) symbols.push_back(s);
  const auto count = [&](std::uint32_t s) { return positions.start[s + 1] - positions.start[s]; };
  std::stable_sort(symbols.begin(), symbols.end(),
                   [&](auto a, auto b) { return count(a) > count(b); });
  Period period(sequence, positions);
  std::vector<std::uint32_t> lone, witnesses;
  for (std::size_t i = 0; i < symbols.size();) {
    witnesses.clear();
    const std::uint32_t n = count(symbols[i]);
    for (; i < symbols.size() && count(symbols[i]) == n; ++i)
      if (period.holds_for(symbols[i])) witnesses.push_back(symbols[i]);
    if (witnesses.size() > 1) break;
    if (lone.empty()) lone = witnesses;
  }
  if (witnesses.size() < 2) witnesses = lone;
  std::optional<std::size_t> best;
  Nanos best_gap = 0;
  for (const auto s : witnesses) {
    const Nanos gap = gap_before(run, sequence, positions, s);
    const bool earlier =
        best && positions.rows[positions.start[s]] < positions.rows[positions.start[*best]];
    if (best && (gap < best_gap || (gap == best_gap && !earlier))) continue;
    best = s;
    best_gap = gap;
  }
  return best;
}

std::vector<std::uint32_t> repeating_firsts(const Run& run, const Replays& replays, SymbolsBy by) {
  const Sequence sequence = read_sequence(run, replays, by);
  const Buckets positions = bucket_rows(sequence.symbols.size(), sequence.alphabet,
                                        [&](std::size_t i) { return sequence.symbols[i]; });
  std::vector<std::uint32_t> firsts;
  const auto symbol = step_symbol(run, sequence, positions);
  if (!symbol) return firsts;
  for (std::uint32_t k = positions.start[*symbol]; k < positions.start[*symbol + 1]; ++k)
    firsts.push_back(sequence.activity[positions.rows[k]]);
  return firsts;
}

// Sync records drawn on the device's rows are no work, but what they wait for ended with them, so the
// recording lasts at least as long.
Nanos last_sync_end(const Run& run) {
  const store::Trace& trace = *run.trace;
  Nanos end = run.device_span.end;
  const store::Thread& row = trace.threads[trace.device.thread[run.activities[0].row.index].index];
  for (std::size_t i = 0; i < trace.syncs.size(); ++i) {
    const store::Thread& thread = trace.threads[trace.syncs.thread[i].index];
    if (thread.pid != row.pid || thread.rank != row.rank) continue;
    if (trace.syncs.begin[i] <= run.device_span.end)
      end = std::max(end, end_of(trace.syncs.begin[i], trace.syncs.dur[i]));
  }
  return end;
}

}  // namespace

bool find_unmarked_steps(Run& run) {
  const Replays replays = find_replays(run);
  if (replays.all.size() >= 2) {
    const std::vector<std::uint32_t> firsts = whole_step_replays(run, replays);
    if (firsts.size() >= 2) {
      make_steps(firsts, StepsHow::kGraphReplay, run);
      return true;
    }
  }
  if (find_unrecorded_steps(run)) return true;
  const std::vector<std::uint32_t> by_name = repeating_firsts(run, replays, SymbolsBy::kName);
  const std::vector<std::uint32_t> by_group = repeating_firsts(run, replays, SymbolsBy::kGroup);
  const auto& firsts = by_name.size() > by_group.size() ? by_name : by_group;
  if (firsts.empty()) return false;
  make_steps(firsts, StepsHow::kRepetition, run);
  return true;
}

void take_whole_trace(Run& run) {
  Step step;
  step.begin = run.device_span.begin;
  step.end = std::max(run.device_span.end, last_sync_end(run));
  run.steps.push_back(std::move(step));
  run.how = StepsHow::kWholeTrace;
}

}  // namespace culprit::run
