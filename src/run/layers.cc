// Layers from how often kernels run in one complete step: {1: 4 kernels, 36: 9, 72: 3} is a model
// of 36 layers. The count is the base that most kernels' counts are multiples of. Known ways off
// it: split or repeated launches (x 2, x 4), one kernel more or less at the ends of the stack (final
// norm, fused neighbours, an extra prediction layer), dense layers before the sparse ones (3 + 75).
#include <algorithm>

#include "run/chapters.h"

namespace culprit::run {
namespace {

struct Kernel {  // one kernel group, or one kernel name, in one step
  std::int64_t calls = 0;
  std::int64_t first = 0, second = 0, last = 0;  // activities
  bool sparse = false;                           // runs in mixture-of-experts layers only
};

struct Guess {
  std::int64_t layers = 0, first_dense = 0;
  double score = 0;  // 0..1: mean of the shares of kernels and of calls that it explains
};

constexpr std::int64_t kFewLayers = 4;  // fewer occur in toys; believed only if all fits
constexpr double kAllFits = 0.95;
constexpr double kEnoughFits = 0.6;
constexpr double kNearBest = 0.7;        // the largest base within this of the best is taken: every
                                         // divisor of it explains as much or more
constexpr std::int64_t kOneOffFrom = 8;  // below, counts one off a multiple are no evidence

template <class Key>
std::vector<Kernel> kernels_of(const Run& run, const Step& step, std::size_t keys, Key key) {
  std::vector<Kernel> by_key(keys);
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const Activity& a = run.activities[static_cast<std::size_t>(i)];
    if (run.groups[a.group.index].device_kind != store::DeviceKind::kKernel) continue;
    Kernel& kernel = by_key[key(a)];
    if (++kernel.calls == 1) kernel.first = i;
    if (kernel.calls == 2) kernel.second = i;
    kernel.last = i;
    kernel.sparse = a.kind == known::Owner::kMoeGemm || a.kind == known::Owner::kRouter;
  }
  // Calls with nothing in between are of one place (an output matrix once per request), whatever their
  // number.
  for (Kernel& k : by_key) {
    if (k.last - k.first + 1 == k.calls) k.calls = std::min<std::int64_t>(k.calls, 1);
  }
  by_key.erase(
      std::remove_if(by_key.begin(), by_key.end(), [](const Kernel& k) { return k.calls == 0; }),
      by_key.end());
  return by_key;
}

// How well `calls` fits `layers`: 1, 0.5 (one off) or 0.
double fit(std::int64_t calls, std::int64_t layers) {
  const std::int64_t rest = calls % layers;
  if (calls >= layers && rest == 0) return 1;
  if (layers < kOneOffFrom) return 0;
  return (calls > layers && rest == 1) || rest == layers - 1 ? 0.5 : 0;
}

double score_of(const std::vector<Kernel>& kernels, std::int64_t layers, std::int64_t dense) {
  double fitting = 0, fitting_calls = 0, all = 0, all_calls = 0;
  for (const Kernel& k : kernels) {
    if (k.calls < 2) continue;
    double share = fit(k.calls, layers);
    if (dense > 0 && (k.calls == dense || k.calls == 2 * dense || k.calls % (layers - dense) == 0))
      share = 1;
    fitting += share;
    fitting_calls += share * static_cast<double>(k.calls);
    all += 1;
    all_calls += static_cast<double>(k.calls);
  }
  return all < 2 ? 0 : (fitting / all + fitting_calls / all_calls) / 2;
}

// Kernels that run `dense` times all end before those that run `sparse` times begin, and others run
// in both: attention is in every layer.
bool dense_come_first(const std::vector<Kernel>& kernels, std::int64_t dense, std::int64_t sparse) {
  std::int64_t last_dense = -1, first_sparse = std::numeric_limits<std::int64_t>::max();
  bool in_both = false;
  for (const Kernel& k : kernels) {
    if (k.calls == dense) last_dense = std::max(last_dense, k.last);
    if (k.calls == sparse) first_sparse = std::min(first_sparse, k.first);
    in_both |= fit(k.calls, dense + sparse) == 1;
  }
  return in_both && last_dense >= 0 && last_dense < first_sparse;
}

std::vector<std::int64_t> distinct_counts(const std::vector<Kernel>& kernels) {
  std::vector<std::int64_t> counts;
  for (const Kernel& k : kernels)
    if (k.calls > 1) counts.push_back(k.calls);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<Guess> guesses_of(const std::vector<Kernel>& kernels) {
  constexpr std::size_t kMost = 64;  // counts beyond the 64 smallest are multiples or noise
  std::vector<std::int64_t> counts = distinct_counts(kernels);
  counts.resize(std::min(counts.size(), kMost));
  std::vector<Guess> guesses;
  guesses.reserve(counts.size());
  for (const std::int64_t n : counts) guesses.push_back({n, 0, score_of(kernels, n, 0)});
  for (std::size_t s = 0; s < counts.size(); ++s)
    for (std::size_t d = 0; d < s; ++d)
      if (2 * counts[d] < counts[s] && dense_come_first(kernels, counts[d], counts[s])) {
        const std::int64_t layers = counts[d] + counts[s];
        guesses.push_back({layers, counts[d], score_of(kernels, layers, counts[d])});
      }
  return guesses;
}

// One dense layer cannot be seen by its count, 1: its kernels look like those of the ends of the
// stack. Sparse kernels that run once less than there are layers tell it when they begin only after
// some kernel of every layer has run twice.
bool one_dense_layer(const std::vector<Kernel>& kernels, std::int64_t layers) {
  std::int64_t second_layer = std::numeric_limits<std::int64_t>::max();
  for (const Kernel& k : kernels)
    if (k.calls == layers) second_layer = std::min(second_layer, k.second);
  return std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& k) {
    return k.sparse && k.calls == layers - 1 && k.first > second_layer;
  });
}

// Layers of two kinds in turn (linear and full attention, 36 + 12 = 48) make the rarer kind's count
// a divisor of all others. The layers are then the sum, if clearly more kernels run in every layer
// than in the rarer kind alone.
std::int64_t sum_of_two_kinds(const std::vector<Kernel>& kernels, std::int64_t layers) {
  constexpr std::int64_t kFewest = 3;
  const std::vector<std::int64_t> counts = distinct_counts(kernels);
  const auto running = [&](std::int64_t n) {
    return std::count_if(kernels.begin(), kernels.end(),
                         [&](const Kernel& k) { return k.calls == n; });
  };
  for (const std::int64_t sum : counts) {
    const std::int64_t other = sum - layers;
    if (other <= layers || !std::binary_search(counts.begin(), counts.end(), other)) continue;
    const auto in_all = running(sum);
    if (in_all >= kFewest && 2 * in_all >= 3 * running(layers)) return sum;
  }
  return layers;
}

std::optional<Guess> guess_layers(const std::vector<Kernel>& kernels) {
  const std::vector<Guess> guesses = guesses_of(kernels);
  double best = 0;
  for (const Guess& g : guesses) best = std::max(best, g.score);
  if (best < kEnoughFits) return std::nullopt;
  std::optional<Guess> chosen;
  for (const Guess& g : guesses) {
    if (g.score < kEnoughFits || g.score < kNearBest * best) continue;
    if (g.layers < kFewLayers && g.score < kAllFits) continue;
    const bool better = !chosen || g.layers > chosen->layers ||
                        (g.layers == chosen->layers && g.score > chosen->score);
    if (better) chosen = g;
  }
  if (!chosen || chosen->first_dense > 0) return chosen;
  chosen->layers = sum_of_two_kinds(kernels, chosen->layers);
  if (one_dense_layer(kernels, chosen->layers)) chosen->first_dense = 1;
  return chosen;
}

std::optional<Guess> guess_for_step(const Run& run, const Step& step) {
  auto guess = guess_layers(
      kernels_of(run, step, run.groups.size(), [](const Activity& a) { return a.group.index; }));
  if (guess) return guess;
  // Grids may differ from layer to layer (routing, context): the names alone then.
  return guess_layers(kernels_of(run, step, run.trace->strings.size(), [&](const Activity& a) {
    return run.groups[a.group.index].name.index;
  }));
}

// Each of a few used steps votes; the first of the most frequent guesses wins.
std::optional<Guess> guess_for_run(const Run& run) {
  constexpr std::size_t kVotes = 5;
  std::vector<const Step*> used;
  for (const Step& step : run.steps)
    if (step.used) used.push_back(&step);
  std::vector<Guess> votes;
  const std::size_t n = std::min(kVotes, used.size());
  for (std::size_t i = 0; i < n; ++i)
    if (const auto guess = guess_for_step(run, *used[i * used.size() / n])) votes.push_back(*guess);
  std::optional<Guess> best;
  std::int64_t most = 0;
  for (const Guess& g : votes) {
    const auto same = std::count_if(votes.begin(), votes.end(), [&](const Guess& o) {
      return o.layers == g.layers && o.first_dense == g.first_dense;
    });
    if (same > most) {
      most = same;
      best = g;
    }
  }
  return best;
}

}  // namespace

void count_layers(const Options& options, Run& run) {
  // The whole trace may hold any number of steps, and counts are multiples of it.
  const auto guess = run.how == StepsHow::kWholeTrace ? std::nullopt : guess_for_run(run);
  if (guess) {
    run.layers.count = guess->layers;
    run.layers.how = "call-counts";
    if (guess->first_dense > 0) run.layers.first_dense = guess->first_dense;
    // Layers for multi-token prediction run the same kernels and are not the model's own.
    if (options.config_layers && guess->layers == *options.config_layers + 1)
      run.layers.count = options.config_layers;
    return;
  }
  if (!options.config_layers) return;
  run.layers.count = options.config_layers;
  run.layers.how = "config";
}

}  // namespace culprit::run
