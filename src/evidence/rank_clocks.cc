#include "evidence/rank_clocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/median.h"

namespace culprit::evidence {
namespace {

constexpr std::size_t kLeastForDrift = 16;
constexpr std::size_t kStretches = 32;
constexpr double kMostDrift = 1e-3;  // a quartz is off by 1e-4 at worst

struct Line {
  double height = 0, slope = 0;
  double at(double x) const { return height + slope * x; }
};

struct Point {
  double x = 0, y = 0;  // time since the first end; difference less the first one's
};

// Least squares.
Line through(const std::vector<Point>& points) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const Point& p : points) mean_x += p.x, mean_y += p.y;
  mean_x /= static_cast<double>(points.size());
  mean_y /= static_cast<double>(points.size());
  for (const Point& p : points) {
    xx += (p.x - mean_x) * (p.x - mean_x);
    xy += (p.x - mean_x) * (p.y - mean_y);
  }
  const double slope = xx > 0 ? std::clamp(xy / xx, -kMostDrift, kMostDrift) : 0;
  return {mean_y - slope * mean_x, slope};
}

// `points` in order of x: the medians of equally many each.
std::vector<Point> medians(const std::vector<Point>& points) {
  const std::size_t stretches = std::min(kStretches, points.size() / 4);
  std::vector<Point> result;
  for (std::size_t s = 0; s < stretches; ++s) {
    std::vector<double> x, y;
    for (std::size_t i = points.size() * s / stretches; i < points.size() * (s + 1) / stretches;
         ++i) {
      x.push_back(points[i].x);
      y.push_back(points[i].y);
    }
    result.push_back({upper_median(std::move(x)), upper_median(std::move(y))});
  }
  return result;
}

double scatter(const std::vector<Point>& points, const Line& line) {
  std::vector<double> off;
  off.reserve(points.size());
  for (const Point& p : points) off.push_back(std::abs(p.y - line.at(p.x)));
  return upper_median(std::move(off));
}

Line constant(const std::vector<Point>& points) {
  std::vector<double> y;
  y.reserve(points.size());
  for (const Point& p : points) y.push_back(p.y);
  return {upper_median(std::move(y)), 0};
}

// The line, unless its slope may as well be chance: then a constant.
Line if_sure(const Line& line, const std::vector<Point>& points) {
  constexpr double kSure = 4;          // standard errors
  constexpr double kToSigma = 1.4826;  // of a normal scatter, from the median distance
  double mean = 0, xx = 0;
  for (const Point& p : points) mean += p.x / static_cast<double>(points.size());
  for (const Point& p : points) xx += (p.x - mean) * (p.x - mean);
  const double error = kToSigma * scatter(points, line) / std::sqrt(std::max(xx, 1.0));
  return std::abs(line.slope) > kSure * error ? line : constant(points);
}

Line robust_line(const std::vector<Point>& points) {
  constexpr double kNear = 4;           // scatters
  constexpr double kLeastNear = 2'000;  // ns
  if (points.size() < kLeastForDrift) return constant(points);
  Line line = through(medians(points));
  for (int pass = 0; pass < 2; ++pass) {
    const double near = std::max(kLeastNear, kNear * scatter(points, line));
    std::vector<Point> kept;
    for (const Point& p : points)
      if (std::abs(p.y - line.at(p.x)) <= near) kept.push_back(p);
    if (kept.size() < kLeastForDrift) break;
    line = through(kept);
  }
  return if_sure(line, points);
}

// Calls of one group on one rank, in order of their ends' appearance.
struct GroupCalls {
  std::vector<const RankCall*> calls;
  std::vector<std::size_t> words;  // hash of each call's words
};
using ByGroup = std::map<std::string, GroupCalls>;

ByGroup by_group(const RankRecord& record) {
  ByGroup groups;
  std::vector<std::size_t> words;
  words.reserve(record.kinds.size());
  for (const CallKind& kind : record.kinds) words.push_back(std::hash<std::string>{}(kind.what));
  for (const RankCall& call : record.calls) {
    GroupCalls& group = groups[record.kinds[call.kind].group];
    group.calls.push_back(&call);
    group.words.push_back(words[call.kind]);
  }
  return groups;
}

bool numbered(const GroupCalls& group) {
  return std::all_of(group.calls.begin(), group.calls.end(),
                     [](const RankCall* call) { return call->sequence >= 0; });
}

void pair_by_number(const GroupCalls& reference, const GroupCalls& own,
                    std::vector<SharedEnd>& ends) {
  std::unordered_map<std::int64_t, const RankCall*> numbers;
  for (const RankCall* call : reference.calls) numbers[call->sequence] = call;
  for (const RankCall* call : own.calls) {
    const auto at = numbers.find(call->sequence);
    if (at != numbers.end()) ends.push_back({at->second->end, call->end});
  }
}

// How much the differences of ends scatter if own[i + shift] met reference[i]: the median distance
// between neighbouring samples' differences, which drift does not touch. Infinite where words differ.
double scatter_of_shift(const GroupCalls& reference, const GroupCalls& own, std::ptrdiff_t shift) {
  constexpr std::ptrdiff_t kSamples = 129;
  constexpr double kMostUnlike = 0.1;
  const auto n = static_cast<std::ptrdiff_t>(reference.calls.size());
  const auto m = static_cast<std::ptrdiff_t>(own.calls.size());
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, -shift);
  const std::ptrdiff_t last = std::min(n, m - shift);
  const std::ptrdiff_t shared = last - first;
  if (shared < std::min({n, m, std::max<std::ptrdiff_t>(4, std::min(n, m) / 2)}))
    return std::numeric_limits<double>::infinity();
  const std::ptrdiff_t stride = std::max<std::ptrdiff_t>(1, shared / kSamples);
  std::vector<double> steps;
  std::ptrdiff_t unlike = 0, looked = 0;
  for (std::ptrdiff_t i = first; i < last; i += stride) {
    const auto r = static_cast<std::size_t>(i), o = static_cast<std::size_t>(i + shift);
    ++looked;
    unlike += reference.words[r] != own.words[o] ? 1 : 0;
    if (i + 1 >= last) continue;
    const Nanos here = own.calls[o]->end - reference.calls[r]->end;
    const Nanos next = own.calls[o + 1]->end - reference.calls[r + 1]->end;
    steps.push_back(std::abs(static_cast<double>(next - here)));
  }
  if (static_cast<double>(unlike) > kMostUnlike * static_cast<double>(looked))
    return std::numeric_limits<double>::infinity();
  return upper_median(std::move(steps));
}

// Difference of the clocks if own[i + shift] met reference[i], in the middle of what they share.
Nanos apart(const GroupCalls& reference, const GroupCalls& own, std::ptrdiff_t shift) {
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, -shift);
  const std::ptrdiff_t last = std::min(static_cast<std::ptrdiff_t>(reference.calls.size()),
                                       static_cast<std::ptrdiff_t>(own.calls.size()) - shift);
  const std::ptrdiff_t middle = (first + last) / 2;
  return std::abs(own.calls[static_cast<std::size_t>(middle + shift)]->end -
                  reference.calls[static_cast<std::size_t>(middle)]->end);
}

// Steps are alike, so shifts by whole steps may fit alike: of those that do, none where both ranks
// have as many calls, else the one under which the clocks agree best.
std::ptrdiff_t best_shift(const GroupCalls& reference, const GroupCalls& own) {
  constexpr std::ptrdiff_t kFarthest = 2'048;
  constexpr double kAlike = 2, kLeastScatter = 1'000;
  const auto n = static_cast<std::ptrdiff_t>(reference.calls.size());
  const auto m = static_cast<std::ptrdiff_t>(own.calls.size());
  const std::ptrdiff_t reach = std::min(std::max(n, m) / 2 + std::abs(n - m), kFarthest);
  std::vector<std::pair<double, std::ptrdiff_t>> shifts;
  double least = std::numeric_limits<double>::infinity();
  for (std::ptrdiff_t shift = -reach; shift <= reach; ++shift) {
    const double its = scatter_of_shift(reference, own, shift);
    if (std::isinf(its)) continue;
    shifts.emplace_back(its, shift);
    least = std::min(least, its);
  }
  const double alike = kAlike * std::max(least, kLeastScatter);
  std::ptrdiff_t best = 0;
  Nanos nearest = std::numeric_limits<Nanos>::max();
  for (const auto& [its, shift] : shifts) {
    if (its > alike) continue;
    if (n == m && shift == 0) return 0;
    const Nanos distance = apart(reference, own, shift);
    if (distance < nearest) best = shift, nearest = distance;
  }
  return best;
}

void pair_by_order(const GroupCalls& reference, const GroupCalls& own,
                   std::vector<SharedEnd>& ends) {
  const std::ptrdiff_t shift = best_shift(reference, own);
  for (std::size_t i = 0; i < reference.calls.size(); ++i) {
    const std::ptrdiff_t o = static_cast<std::ptrdiff_t>(i) + shift;
    if (o < 0 || o >= static_cast<std::ptrdiff_t>(own.calls.size())) continue;
    const auto at = static_cast<std::size_t>(o);
    if (reference.words[i] == own.words[at])
      ends.push_back({reference.calls[i]->end, own.calls[at]->end});
  }
}

std::vector<SharedEnd> shared_ends(const ByGroup& reference, const ByGroup& own) {
  std::vector<SharedEnd> ends;
  for (const auto& [group, calls] : own) {
    const auto at = reference.find(group);
    if (at == reference.end()) continue;
    if (numbered(calls) && numbered(at->second))
      pair_by_number(at->second, calls, ends);
    else
      pair_by_order(at->second, calls, ends);
  }
  return ends;
}

}  // namespace

Nanos Clock::to_reference(Nanos own) const {
  const auto since = static_cast<double>(own - offset - at);
  return own - offset - std::llround(since * drift / (1 + drift));
}

Clock fit_clock(std::vector<SharedEnd> ends) {
  Clock clock;
  if (ends.empty()) return clock;
  std::sort(ends.begin(), ends.end(), [](const SharedEnd& a, const SharedEnd& b) {
    return std::tie(a.reference, a.own) < std::tie(b.reference, b.own);
  });
  const SharedEnd first = ends.front();
  std::vector<Point> points;
  points.reserve(ends.size());
  for (const SharedEnd& end : ends) {
    points.push_back(
        {static_cast<double>(end.reference - first.reference),
         static_cast<double>((end.own - first.own) - (end.reference - first.reference))});
  }
  const Line line = robust_line(points);
  clock.aligned = true;
  clock.at = first.reference;
  clock.offset = first.own - first.reference + std::llround(line.height);
  clock.drift = line.slope;
  clock.residual = std::llround(scatter(points, line));
  clock.ends = static_cast<std::int64_t>(ends.size());
  return clock;
}

std::vector<Clock> align_clocks(std::span<const RankRecord* const> records) {
  std::vector<Clock> clocks(records.size());
  std::vector<ByGroup> groups;
  groups.reserve(records.size());
  for (const RankRecord* record : records) groups.push_back(by_group(*record));
  std::vector<std::size_t> aligned;
  for (std::size_t i = 0; i < records.size() && aligned.empty(); ++i) {
    if (records[i]->calls.empty()) continue;
    clocks[i].aligned = true;
    clocks[i].at = records[i]->calls.front().end;
    clocks[i].ends = static_cast<std::int64_t>(records[i]->calls.size());
    aligned.push_back(i);
  }
  for (std::size_t a = 0; a < aligned.size(); ++a) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (clocks[i].aligned) continue;
      std::vector<SharedEnd> ends = shared_ends(groups[aligned[a]], groups[i]);
      for (SharedEnd& end : ends) end.reference = clocks[aligned[a]].to_reference(end.reference);
      const Clock clock = fit_clock(std::move(ends));
      if (!clock.aligned || clock.residual > kMostScatter) continue;
      clocks[i] = clock;
      aligned.push_back(i);
    }
  }
  return clocks;
}

}  // namespace culprit::evidence
