#include "evidence/retime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "evidence/retime_graph.h"

namespace culprit::evidence {
namespace {

// Beyond, a prediction would be worth less than the bound that the exposed time gives.
constexpr double kMostError = 0.03, kMostUnexplained = 0.05;

using Node = RetimeNode;
using By = Timing::By;

// One pass over the nodes; every rule of the graph in one place.
class Pass {
 public:
  Pass(const RetimeGraph& graph, const Change& change) : graph_(graph), change_(change) {
    const std::size_t n = graph.nodes.size();
    timing_.begin.resize(n);
    timing_.end.resize(n);
    timing_.by.resize(n, By::kAnchor);
  }
  Timing run() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      begin_ = node.anchored ? node.begin : std::numeric_limits<Nanos>::min();
      by_ = By::kAnchor;
      switch (node.kind) {
        case Node::Kind::kCall:
          call(i);
          break;
        case Node::Kind::kWait:
          wait(node);
          break;
        case Node::Kind::kActivity:
          activity(node);
          break;
      }
      timing_.begin[i] = begin_;
      timing_.end[i] = end_;
      timing_.by[i] = by_;
    }
    return std::move(timing_);
  }

 private:
  void after(std::uint32_t node, const std::vector<Nanos>& times, Nanos delay, By by) {
    if (node == Node::kNone || times[node] + delay < begin_) return;
    begin_ = times[node] + delay;
    by_ = by;
  }
  Nanos host(Nanos ns) const {
    return change_.host == 1 ? ns : std::llround(static_cast<double>(ns) * change_.host);
  }
  double scale(const Node& activity) const {
    return change_.scale.empty() ? 1 : change_.scale[activity.group];
  }
  // A kernel that is gone takes its launch with it, and the work of the operator around that.
  bool removed(std::uint32_t call) const {
    if (call == Node::kNone || change_.scale.empty()) return false;
    const std::uint32_t launches = graph_.nodes[call].launches;
    return launches != Node::kNone && scale(graph_.nodes[launches]) == 0;
  }
  void call(std::uint32_t index) {
    const Node& node = graph_.nodes[index];
    const bool folded = change_.graph && node.folded, removed = this->removed(index);
    Nanos gap = folded ? 0 : node.gap;
    if (removed) gap -= node.gap_of_op;
    if (this->removed(node.before)) gap -= node.gap_of_last_op;
    after(node.before, timing_.end, host(std::max<Nanos>(0, gap)), By::kBefore);
    end_ = begin_ + (folded || removed ? 0 : host(node.cost));
  }
  void wait(const Node& node) {
    after(node.before, timing_.end, 0, By::kBefore);
    end_ = begin_;
    if (change_.no_waits && !node.full_queue) return;
    if (node.trigger != Node::kNone && timing_.end[node.trigger] > begin_) {
      end_ = timing_.end[node.trigger];
      by_ = By::kTrigger;
    }
    end_ += host(node.cost);
  }
  void activity(const Node& node) {
    const double factor = scale(node);
    if (factor == 0 && node.before != Node::kNone) {
      after(node.before, timing_.end, 0, By::kBefore);
      end_ = begin_;
      return;
    }
    after(node.before, timing_.end, node.gap, By::kBefore);
    after(node.trigger, timing_.begin, node.latency, By::kTrigger);
    after(node.other, timing_.end, node.behind_other, By::kOther);
    end_ =
        begin_ + (factor == 1 ? node.cost : std::llround(static_cast<double>(node.cost) * factor));
  }

  const RetimeGraph& graph_;
  const Change& change_;
  Timing timing_;
  Nanos begin_ = 0, end_ = 0;
  By by_ = By::kAnchor;
};

Bound bound_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kCall:
      return Bound::kHostLaunch;
    case Node::Kind::kWait:
      return Bound::kHostWait;
    case Node::Kind::kActivity:
      return node.comm ? Bound::kCommunication : Bound::kDevice;
  }
  return Bound::kDevice;
}

// The node that `node` waited for, and the time at which the path leaves it.
std::pair<std::uint32_t, Nanos> step_back(const Node& node, By by, const Timing& timing) {
  switch (by) {
    case By::kBefore:
      return {node.before, timing.end[node.before]};
    case By::kOther:
      return {node.other, timing.end[node.other]};
    case By::kTrigger:
      return node.kind == Node::Kind::kWait ? std::pair{node.trigger, timing.end[node.trigger]}
                                            : std::pair{node.trigger, timing.begin[node.trigger]};
    case By::kAnchor:
      break;
  }
  return {Node::kNone, 0};
}

// Walks the critical path back from the window's end. Time between two nodes is the later one's:
// a launch's latency and the host's work before a call are the host's, a stream's gap the device's.
std::array<Nanos, kBounds> critical_path(const RetimeGraph& graph, const Timing& timing) {
  std::array<Nanos, kBounds> path{};
  const Nanos start = timing.begin[graph.first];
  std::uint32_t at = graph.last;
  Nanos until = graph.to_end ? timing.end[at] : timing.begin[at];
  while (at != Node::kNone && until > start) {
    const Node& node = graph.nodes[at];
    const auto [next, leaves] = step_back(node, timing.by[at], timing);
    // A kernel may begin before the one in front has ended (programmatic launch).
    const Nanos from = next == Node::kNone ? start : std::clamp(leaves, start, until);
    const bool launched = node.kind == Node::Kind::kActivity && timing.by[at] == By::kTrigger;
    const Nanos own_begin = launched ? std::clamp(timing.begin[at], from, until) : from;
    path[static_cast<std::size_t>(bound_of(node))] += until - own_begin;
    path[static_cast<std::size_t>(Bound::kHostLaunch)] += own_begin - from;
    until = from;
    at = next;
  }
  return path;
}

}  // namespace

std::string_view bound_name(Bound bound) {
  constexpr std::array<std::string_view, kBounds> names{"gpu", "communication", "host-launch",
                                                        "host-sync"};
  return names[static_cast<std::size_t>(bound)];
}

Timing run_graph(const RetimeGraph& graph, const Change& change) {
  return Pass(graph, change).run();
}

Nanos window_length(const RetimeGraph& graph, const Timing& timing) {
  return (graph.to_end ? timing.end : timing.begin)[graph.last] - timing.begin[graph.first];
}

Retimer::Retimer(const run::Run& run, const HostView& host)
    : graph_(std::make_unique<RetimeGraph>()) {
  off_ = build_graph(run, host, *graph_);
  if (!off_.empty()) return;
  steps_ = graph_->steps;
  recorded_ = graph_->recorded / steps_;
  residual_ = graph_->residual / steps_;
  const Nanos again = window_length(*graph_, run_graph(*graph_, {}));
  const auto recorded = static_cast<double>(graph_->recorded);
  error_ = std::abs(static_cast<double>(again - graph_->recorded)) / recorded;
  const double unexplained = static_cast<double>(graph_->residual) / recorded;
  if (unexplained > kMostUnexplained) {
    off_ = fmt::format("{} of the step is waiting that nothing in the trace explains",
                       text::percent(unexplained));
  } else if (error_ > kMostError) {
    off_ = fmt::format("the unchanged step comes out {} off", text::percent(error_));
  }
}
Retimer::~Retimer() = default;
Retimer::Retimer(Retimer&&) noexcept = default;
Retimer& Retimer::operator=(Retimer&&) noexcept = default;

Retimed Retimer::retime(const Change& change) const {
  const Timing timing = run_graph(*graph_, change);
  Retimed result;
  result.step = window_length(*graph_, timing) / steps_;
  result.path = critical_path(*graph_, timing);
  for (Nanos& ns : result.path) ns /= steps_;
  const auto longest = std::max_element(result.path.begin(), result.path.end());
  result.bound = static_cast<Bound>(longest - result.path.begin());
  return result;
}

double Retimer::host_factor(double step_ns) const {
  if (!off_.empty()) return 1;
  const auto step = [&](double factor) {
    Change change;
    change.host = factor;
    return static_cast<double>(retime(change).step);
  };
  double low = 0, high = 1;
  if (step(high) <= step_ns) return high;
  if (step(low) >= step_ns) return low;
  for (int i = 0; i < 12; ++i) {  // the step grows with the factor: to 1/4096
    const double middle = (low + high) / 2;
    (step(middle) < step_ns ? low : high) = middle;
  }
  return high;
}

}  // namespace culprit::evidence
