// The index of the layer that a kernel belongs to, where the order of kernels in a step repeats as
// often as there are layers. Nothing in a replay tells it, so it is inferred, and said to be. The
// first and the last layer may miss a kernel at the ends of the stack (a fused norm).
#include <algorithm>
#include <unordered_map>

#include "run/chapters.h"

namespace culprit::run {
namespace {

struct Order {
  std::vector<std::uint32_t> activity;  // by position
  std::vector<std::uint32_t> symbol;    // kernel name
  bool replays = false;
};

// Kernels of the step's busiest stream; those of replays alone where there are any.
Order order_of(const Run& run, const Step& step) {
  const auto& thread = run.trace->device.thread;
  std::vector<std::uint32_t> kernels;
  std::vector<Nanos> time(run.trace->threads.size(), 0);
  Order order;
  bool& replays = order.replays;
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const Activity& a = run.activities[static_cast<std::size_t>(i)];
    if (run.groups[a.group.index].device_kind != store::DeviceKind::kKernel) continue;
    replays |= a.in_graph;
    kernels.push_back(static_cast<std::uint32_t>(i));
    Nanos& t = time[thread[a.row.index].index];
    t = capped_sum(t, a.end - a.begin);
  }
  const auto busiest =
      static_cast<std::uint32_t>(std::max_element(time.begin(), time.end()) - time.begin());
  for (const std::uint32_t i : kernels) {
    const Activity& a = run.activities[i];
    if (thread[a.row.index].index != busiest || (replays && !a.in_graph)) continue;
    order.activity.push_back(i);
    order.symbol.push_back(run.groups[a.group.index].name.index);
  }
  return order;
}

struct Repetition {
  std::size_t begin = 0, length = 0;  // of one layer
};

// The stretch between equal kernels at `at`, as far as the order around stays periodic.
std::optional<Repetition> repetition_at(const std::vector<std::uint32_t>& symbol,
                                        const std::vector<std::size_t>& at) {
  const std::size_t layers = at.size(), length = at[1] - at[0];
  if (length < 2) return std::nullopt;
  for (std::size_t k = 1; k < layers; ++k)
    if (at[k] - at[k - 1] != length) return std::nullopt;
  for (std::size_t i = at[0]; i + length < at.back(); ++i)
    if (symbol[i] != symbol[i + length]) return std::nullopt;
  std::size_t first = at[0], last = at.back() + 1;
  while (first > 0 && symbol[first - 1] == symbol[first - 1 + length]) --first;
  while (last < symbol.size() && symbol[last] == symbol[last - length]) ++last;
  const std::size_t whole = layers * length;
  const std::size_t missing = whole - std::min(whole, last - first);
  if (2 * missing > length) return std::nullopt;
  return Repetition{first - std::min(first, missing), length};
}

// Found around a kernel that runs once in every layer.
std::optional<Repetition> find_repetition(const Order& order, std::size_t layers) {
  constexpr int kTried = 64;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < order.symbol.size(); ++i) places[order.symbol[i]].push_back(i);
  int tried = 0;
  for (std::size_t i = 0; i < order.symbol.size() && tried < kTried; ++i) {
    const std::vector<std::size_t>& at = places[order.symbol[i]];
    if (at.size() != layers || at.front() != i) continue;
    ++tried;
    if (const auto found = repetition_at(order.symbol, at)) return found;
  }
  return std::nullopt;
}

// Where an order has no period: from one call of a kernel that runs once per layer to the next; the
// last layer is as long as the median of the others. The first such kernel is nearest to a layer's
// own begin.
LayerSpans spans_by_marker(const Run& run, const Order& order, std::size_t layers) {
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < order.symbol.size(); ++i) places[order.symbol[i]].push_back(i);
  LayerSpans found;
  for (const std::uint32_t symbol : order.symbol) {
    const std::vector<std::size_t>& at = places[symbol];
    if (at.size() != layers || at.back() - at.front() + 1 == layers) continue;
    std::vector<Nanos> lengths;
    for (std::size_t k = 0; k < layers; ++k) {
      const Nanos begin = run.activities[order.activity[at[k]]].begin;
      if (k > 0) {
        found.spans.back().end = begin;
        lengths.push_back(found.spans.back().length());
      }
      found.spans.push_back({begin, begin});
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    const Nanos last = run.activities[order.activity.back()].end;
    found.spans.back().end = std::min(last, capped_sum(found.spans.back().begin, *middle));
    found.how = "one-kernel";
    found.by = store::StringId(symbol);
    return found;
  }
  return found;
}

LayerSpans spans_by_order(const Run& run, const Order& order, const Repetition& repetition,
                          std::size_t layers) {
  LayerSpans found;
  found.how = "order";
  for (std::size_t k = 0; k < layers; ++k) {
    const std::size_t first = repetition.begin + k * repetition.length;
    const std::size_t next = std::min(order.activity.size(), first + repetition.length);
    if (first >= next) break;
    found.spans.push_back({run.activities[order.activity[first]].begin,
                           run.activities[order.activity[next - 1]].end});
  }
  return found;
}

}  // namespace

LayerSpans layer_spans(const Run& run, const Step& step) {
  if (!run.layers.count || *run.layers.count < 2) return {};
  const auto layers = static_cast<std::size_t>(*run.layers.count);
  const Order order = order_of(run, step);
  const auto repetition = find_repetition(order, layers);
  return repetition ? spans_by_order(run, order, *repetition, layers)
                    : spans_by_marker(run, order, layers);
}

void index_layers(Run& run) {
  if (!run.layers.count || *run.layers.count < 2) return;
  const auto layers = static_cast<std::size_t>(*run.layers.count);
  std::vector<Nanos> sum(layers, 0);
  Nanos steps = 0;
  bool replays = true;
  for (const Step& step : run.steps) {
    if (!step.used) continue;
    const Order order = order_of(run, step);
    const auto repetition = find_repetition(order, layers);
    if (!repetition) return;
    ++steps;
    replays &= order.replays;
    const std::size_t end =
        std::min(order.activity.size(), repetition->begin + layers * repetition->length);
    for (std::size_t i = repetition->begin; i < end; ++i) {
      const Activity& a = run.activities[order.activity[i]];
      Nanos& ns = sum[(i - repetition->begin) / repetition->length];
      ns = capped_sum(ns, a.end - a.begin);
    }
  }
  if (steps == 0) return;
  for (Nanos& ns : sum) ns = (ns + steps / 2) / steps;
  run.layers.ns = std::move(sum);
  if (replays && run.layers.how == "call-counts") run.layers.how = "sequence";
}

}  // namespace culprit::run
