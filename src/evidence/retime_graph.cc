#include "evidence/retime_graph.h"

#include <algorithm>
#include <map>

#include "base/median.h"

namespace culprit::evidence {
namespace {

using Node = RetimeNode;

// Host and device clocks agree to a few us; a launch that lies further behind its kernel is a wrong
// link, and no graph can be had from it.
constexpr Nanos kMostSkew = 1'000'000;
// What scatters: a kernel that begins this shortly after what it waited for is explained.
constexpr Nanos kTolerance = 2'000;
constexpr Nanos kUsualLatency = 6'000,
                kMostLatency = 1'000'000;  // launch to kernel on an idle device
constexpr Nanos kMostGap = 10'000;         // between kernels of one stream that were both queued
constexpr double kLeastLinked = 0.9;

// Samples of one delay by key (API name, kernel group); the median of a key, else of all.
class Delays {
 public:
  explicit Delays(Nanos otherwise) : otherwise_(otherwise) {}
  void add(std::uint32_t key, Nanos ns) { samples_[key].push_back(ns); }
  void settle() {
    std::vector<Nanos> all;
    for (auto& [key, samples] : samples_) {
      all.insert(all.end(), samples.begin(), samples.end());
      medians_[key] = upper_median(std::move(samples));
    }
    if (!all.empty()) otherwise_ = upper_median(std::move(all));
  }
  Nanos operator[](std::uint32_t key) const {
    const auto found = medians_.find(key);
    return found == medians_.end() ? otherwise_ : found->second;
  }

 private:
  std::map<std::uint32_t, std::vector<Nanos>> samples_;
  std::map<std::uint32_t, Nanos> medians_;
  Nanos otherwise_;
};

// The steps that are retimed: the longest stretch of used steps without a hole, as many as fit. The
// last step of a trace often ends with its mark and not with work: it is left out where others are.
struct Window {
  std::size_t first = 0, last = 0;  // steps, inclusive
  bool found = false;
};
Window choose_window(const run::Run& run) {
  Window best, current;
  const auto length = [](const Window& w) { return w.found ? w.last - w.first + 1 : 0; };
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const run::Step& step = run.steps[i];
    const bool joins = current.found && run.steps[current.last].end == step.begin;
    if (!step.used || step.last <= step.first) {
      current.found = false;
      continue;
    }
    if (!joins) current = {i, i, true};
    if (step.last - run.steps[current.first].first > kMostActivities && i > current.first) continue;
    current.last = i;
    if (length(current) > length(best)) best = current;
  }
  const bool is_last = best.found && best.last + 1 == run.steps.size();
  if (is_last && best.last > best.first) --best.last;
  return best;
}

class Builder {
 public:
  Builder(const run::Run& run, const HostView& host, RetimeGraph& graph)
      : run_(run), host_(host), trace_(*run.trace), graph_(graph) {}

  std::string build() {
    window_ = choose_window(run_);
    if (!window_.found) return "no used step";
    collect_activities();
    if (std::string why = check_launches(); !why.empty()) return why;
    collect_calls();
    order();
    connect();
    learn_and_set_delays();
    bound_window();
    return graph_.recorded > 0 ? "" : "the steps have no length";
  }

 private:
  const run::Activity& activity(std::int64_t i) const {
    return run_.activities[static_cast<std::size_t>(i)];
  }

  std::uint32_t node_of(std::int64_t i) const {
    return node_of_activity_[static_cast<std::size_t>(i - begin_)];
  }

  // The window's activities, and the one that begins the step behind it.
  void collect_activities() {
    begin_ = run_.steps[window_.first].first;
    end_ = run_.steps[window_.last].last;
    const auto count = static_cast<std::int64_t>(run_.activities.size());
    graph_.to_end = end_ >= count || activity(end_).begin != run_.steps[window_.last].end;
    if (!graph_.to_end) ++end_;
  }

  std::string check_launches() {
    Nanos all = 0, linked = 0;
    for (std::int64_t i = begin_; i < end_; ++i) {
      const run::Activity& a = activity(i);
      all += a.end - a.begin;
      if (!a.call.valid()) continue;
      linked += a.end - a.begin;
      skew_ = std::max(skew_, trace_.calls.begin[a.call.index] - a.begin);
    }
    if (static_cast<double>(linked) < kLeastLinked * static_cast<double>(all) || linked == 0) {
      return "the launches of the kernels are not in the trace";
    }
    if (skew_ > kMostSkew) return "kernels begin long before their launch";
    return "";
  }

  // Every call of a launching thread from the window's first launch to its last.
  void collect_calls() {
    std::map<store::ThreadId, store::Span> threads;
    for (std::int64_t i = begin_; i < end_; ++i) {
      const store::CallRow call = activity(i).call;
      if (!call.valid()) continue;
      const Nanos at = trace_.calls.begin[call.index];
      const auto [found, is_new] =
          threads.try_emplace(trace_.calls.thread[call.index], store::Span{at, at + 1});
      found->second.begin = std::min(found->second.begin, at);
      found->second.end = std::max(found->second.end, at + 1);
    }
    Nanos busy_until = std::numeric_limits<Nanos>::min();
    for (std::int64_t i = begin_; i < end_; ++i) {
      add_activity(i);
      busy_until_.push_back(busy_until);
      busy_until = std::max(busy_until, graph_.nodes.back().end);
    }
    for (const auto& [thread, span] : threads) {
      for (const store::CallRow call : host_.calls_of(thread, span.begin, span.end)) add_call(call);
    }
  }

  void add_activity(std::int64_t i) {
    const run::Activity& a = activity(i);
    Node node;
    node.kind = Node::Kind::kActivity;
    node.comm = known::is_comm(a.kind);
    node.row = static_cast<std::uint32_t>(i);
    node.group = a.group.index;
    node.begin = a.begin + skew_;
    node.end = a.end + skew_;
    node.cost = a.end - a.begin;
    graph_.nodes.push_back(node);
  }

  void add_call(store::CallRow call) {
    const bool waits = host_.waits(call) || host_.blocked(call);
    Node node;
    node.row = call.index;
    node.begin = trace_.calls.begin[call.index];
    node.end = waits ? node.begin : host_.end(call);
    node.cost = node.end - node.begin;
    graph_.nodes.push_back(node);
    if (!waits) return;
    node.kind = Node::Kind::kWait;
    node.full_queue = !host_.waits(call);
    node.begin = node.end = host_.end(call);
    graph_.nodes.push_back(node);
  }

  // Recorded times order the nodes: a cause is never later than its effect. Of nodes at one time a
  // call comes before the activity it launches, and a wait last. Of a wait, the time is its return.
  void order() {
    std::stable_sort(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& a, const Node& b) {
      const auto rank = [](const Node& n) {
        return n.kind == Node::Kind::kCall ? 0 : n.kind == Node::Kind::kActivity ? 1 : 2;
      };
      return a.begin != b.begin ? a.begin < b.begin : rank(a) < rank(b);
    });
    node_of_activity_.assign(static_cast<std::size_t>(end_ - begin_), Node::kNone);
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.kind == Node::Kind::kActivity)
        node_of_activity_[static_cast<std::size_t>(node.row - begin_)] = i;
    }
  }

  void connect() {
    std::vector<std::uint32_t> last_on_row(trace_.threads.size(), Node::kNone);
    std::map<std::uint32_t, std::uint32_t> node_of_call;
    by_end_ = node_of_activity_;
    std::sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return graph_.nodes[a].end < graph_.nodes[b].end;
    });
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.kind == Node::Kind::kActivity) {
        const run::Activity& a = activity(node.row);
        std::uint32_t& last = last_on_row[trace_.device.thread[a.row.index].index];
        node.before = last;
        last = i;
        const auto call = a.call.valid() ? node_of_call.find(a.call.index) : node_of_call.end();
        if (call == node_of_call.end()) continue;
        node.trigger = call->second;
        std::uint32_t& launches = graph_.nodes[call->second].launches;
        launches = launches == Node::kNone ? i : kMany;
      } else {
        std::uint32_t& last = last_on_row[trace_.calls.thread[node.row].index];
        node.before = last;
        last = i;
        node.anchored = node.before == Node::kNone;
        if (node.kind == Node::Kind::kCall) node_of_call.emplace(node.row, i);
        if (node.kind == Node::Kind::kWait) node.trigger = awaited(node);
      }
    }
    for (Node& node : graph_.nodes) {
      if (node.launches == kMany) node.launches = Node::kNone;
      if (node.kind == Node::Kind::kCall && node.before != Node::kNone) {
        node.gap = node.begin - graph_.nodes[node.before].end;
      }
    }
    find_operator_work();
    fold_launches();
  }

  // The widest operator around an activity's launch in which its thread makes no other call: what
  // the host does for this activity alone.
  void find_operator_work() {
    std::vector<std::uint32_t> next(graph_.nodes.size(), Node::kNone);
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.kind == Node::Kind::kCall && node.before != Node::kNone) next[node.before] = i;
    }
    const store::OpTable& ops = trace_.ops;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.kind != Node::Kind::kCall || node.launches == Node::kNone) continue;
      const Nanos from = node.begin - node.gap;
      const Nanos to = next[i] == Node::kNone ? node.end : graph_.nodes[next[i]].begin;
      store::Span own{node.begin, node.end};
      for (store::OpRow op = activity(graph_.nodes[node.launches].row).op;
           op.valid() && ops.begin[op.index] >= from; op = run_.op_parent[op.index]) {
        const store::Span span{ops.begin[op.index], ops.begin[op.index] + ops.dur[op.index]};
        if (span.end > to) break;
        own = {std::min(own.begin, span.begin), std::max(own.end, span.end)};
      }
      node.gap_of_op = node.begin - own.begin;
      if (next[i] != Node::kNone) graph_.nodes[next[i]].gap_of_last_op = own.end - node.end;
    }
  }

  // What a wait waited for: of the activities that had ended when it returned, the last.
  std::uint32_t awaited(Node& wait) const {
    const auto after =
        std::upper_bound(by_end_.begin(), by_end_.end(), wait.end,
                         [&](Nanos t, std::uint32_t i) { return t < graph_.nodes[i].end; });
    const Nanos issued = graph_.nodes[wait.before].end;
    const std::uint32_t found = after == by_end_.begin() ? Node::kNone : *(after - 1);
    const Nanos ready = found == Node::kNone ? issued : std::max(issued, graph_.nodes[found].end);
    wait.cost = wait.end - ready;
    return found;
  }

  // The calls of a step between its first launch and its last: one graph launch would replace them.
  void fold_launches() {
    for (std::size_t s = window_.first; s <= window_.last; ++s) {
      const run::Step& step = run_.steps[s];
      std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> range;  // by thread: nodes
      for (std::int64_t i = step.first; i < step.last; ++i) {
        const std::uint32_t call = graph_.nodes[node_of(i)].trigger;
        if (call == Node::kNone) continue;
        const std::uint32_t thread = trace_.calls.thread[graph_.nodes[call].row].index;
        const auto [found, is_new] = range.try_emplace(thread, call, call);
        found->second.first = std::min(found->second.first, call);
        found->second.second = std::max(found->second.second, call);
      }
      for (const auto& [thread, nodes] : range) {
        for (std::uint32_t i = nodes.first + 1; i <= nodes.second; ++i) {
          Node& node = graph_.nodes[i];
          node.folded |=
              node.kind == Node::Kind::kCall && trace_.calls.thread[node.row].index == thread;
        }
      }
    }
  }

  // Whether the launch had arrived long before the stream's last activity ended.
  bool queued(const Node& node, Nanos free) const {
    if (node.trigger == Node::kNone) return true;
    const Node& call = graph_.nodes[node.trigger];
    const bool inside_graph =
        node.before != Node::kNone && graph_.nodes[node.before].trigger == node.trigger;
    return inside_graph || call.begin + kUsualLatency + kTolerance <= free;
  }

  // Whether the device had nothing to do when the launch of its stream's first activity began.
  bool idle_at(const Node& node, Nanos launched) const {
    return busy_until_[static_cast<std::size_t>(node.row - begin_)] <= launched;
  }

  void learn_and_set_delays() {
    Delays latency(kUsualLatency), gap(0);
    for (const Node& node : graph_.nodes) {
      if (node.kind != Node::Kind::kActivity) continue;
      const Nanos free = node.before == Node::kNone ? node.begin : graph_.nodes[node.before].end;
      const Nanos behind = node.begin - free;
      if (node.before != Node::kNone && queued(node, free) && behind <= kMostGap) {
        gap.add(node.group, behind);
      }
      if (node.trigger == Node::kNone) continue;
      const Node& call = graph_.nodes[node.trigger];
      const Nanos delay = node.begin - call.begin;
      const bool idle = node.before != Node::kNone
                            ? !queued(node, free) && call.begin >= free - kTolerance
                            : idle_at(node, call.begin);
      if (idle && delay <= kMostLatency) {
        latency.add(trace_.calls.name[call.row].index, delay);
      }
    }
    latency.settle();
    gap.settle();
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.kind != Node::Kind::kActivity) continue;
      node.gap = gap[node.group];
      if (node.trigger != Node::kNone) {
        node.latency = latency[trace_.calls.name[graph_.nodes[node.trigger].row].index];
      }
      if (node.before != Node::kNone) {
        find_other_stream(i);
      } else {
        anchor(node);
      }
    }
  }

  // The first activity of a stream in the window, where its launch does not explain when it began.
  void anchor(Node& node) {
    const Nanos launched = node.trigger == Node::kNone
                               ? node.begin - kTolerance
                               : graph_.nodes[node.trigger].begin + node.latency;
    node.anchored = node.trigger == Node::kNone || node.begin > launched + kTolerance;
    if (!node.anchored || node.row == begin_) return;
    const Nanos busy_until = busy_until_[static_cast<std::size_t>(node.row - begin_)];
    graph_.residual += std::max<Nanos>(0, node.begin - std::max(busy_until, launched) - kTolerance);
  }

  // An activity that neither its stream nor its launch explains waited for another stream, if one of
  // its activities had just ended.
  void find_other_stream(std::uint32_t index) {
    Node& node = graph_.nodes[index];
    Nanos ready = graph_.nodes[node.before].end + node.gap;
    if (node.trigger != Node::kNone) {
      ready = std::max(ready, graph_.nodes[node.trigger].begin + node.latency);
    }
    if (node.begin <= ready + kTolerance) return;
    const auto after =
        std::upper_bound(by_end_.begin(), by_end_.end(), node.begin,
                         [&](Nanos t, std::uint32_t i) { return t < graph_.nodes[i].end; });
    const std::uint32_t found = after == by_end_.begin() ? Node::kNone : *(after - 1);
    if (found != Node::kNone && found < index && found != node.before &&
        graph_.nodes[found].end > ready && node.begin - graph_.nodes[found].end <= kMostGap) {
      node.other = found;
      node.behind_other = std::min(kTolerance, node.begin - graph_.nodes[found].end);
      ready = graph_.nodes[found].end + node.behind_other;
    }
    graph_.residual += std::max<Nanos>(0, node.begin - ready - kTolerance);
  }

  // The steps that are measured: without those whose launches were queued when the window began, as
  // what is queued hides what the host needs.
  void bound_window() {
    const Nanos start = graph_.nodes[node_of_activity_.front()].begin;
    std::size_t first = window_.first;
    const auto queued_at_start = [&](std::size_t step) {
      const std::uint32_t call = graph_.nodes[node_of(run_.steps[step].first)].trigger;
      return call != Node::kNone && graph_.nodes[call].begin < start;
    };
    while (first < window_.last && queued_at_start(first)) ++first;
    graph_.steps = static_cast<std::int64_t>(window_.last - first + 1);
    graph_.first = node_of(run_.steps[first].first);
    graph_.last = node_of_activity_.back();
    if (graph_.to_end) {
      for (const std::uint32_t i : node_of_activity_) {
        if (graph_.nodes[i].end > graph_.nodes[graph_.last].end) graph_.last = i;
      }
    }
    const Node& last = graph_.nodes[graph_.last];
    graph_.recorded = (graph_.to_end ? last.end : last.begin) - graph_.nodes[graph_.first].begin;
  }

  static constexpr std::uint32_t kMany = Node::kNone - 1;
  const run::Run& run_;
  const HostView& host_;
  const store::Trace& trace_;
  RetimeGraph& graph_;
  Window window_;
  std::int64_t begin_ = 0, end_ = 0;             // activities
  Nanos skew_ = 0;                               // added to device times
  std::vector<std::uint32_t> node_of_activity_;  // by activity - begin_
  std::vector<Nanos> busy_until_;                // by activity - begin_: the latest end before it
  std::vector<std::uint32_t> by_end_;            // activities' nodes in order of their ends
};

}  // namespace

std::string build_graph(const run::Run& run, const HostView& host, RetimeGraph& graph) {
  return Builder(run, host, graph).build();
}

}  // namespace culprit::evidence
