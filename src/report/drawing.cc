#include "report/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "report/views.h"

namespace culprit::report {
namespace {

Nanos end_of(Nanos begin, Nanos length) {
  Nanos end = 0;
  const bool over = __builtin_add_overflow(begin, std::max<Nanos>(length, 0), &end);
  return over ? std::numeric_limits<Nanos>::max() : end;
}

// Rows that overlap a window, or the longest `most` of them. Two passes without a list of all rows:
// the first counts lengths in buckets of 1/8 of a power of two, the second takes what is above the
// bucket in which the limit falls, and of that bucket the first.
class Longest {
 public:
  Longest(Nanos from, Nanos to) : from_(from), to_(to) {}

  void count(Nanos begin, Nanos length) {
    if (inside(begin, length)) ++counts_[bucket(length)];
  }
  std::size_t counted() const {
    std::size_t sum = 0;
    for (const std::size_t n : counts_) sum += n;
    return sum;
  }
  void keep(std::size_t most) {
    limit_ = counts_.size();
    while (limit_ > 0 && counts_[limit_ - 1] <= most) most -= counts_[--limit_];
    of_limit_ = limit_ > 0 ? most : 0;
  }
  bool takes(Nanos begin, Nanos length) {
    if (!inside(begin, length)) return false;
    const std::size_t b = bucket(length);
    if (b >= limit_) return true;
    if (b + 1 == limit_ && of_limit_ > 0) return --of_limit_, true;
    ++left_out_;
    return false;
  }
  std::size_t left_out() const { return left_out_; }

 private:
  bool inside(Nanos begin, Nanos length) const {
    return begin < to_ && (begin >= from_ || end_of(begin, length) > from_);
  }
  static std::size_t bucket(Nanos length) {
    const auto n = static_cast<std::uint64_t>(std::max<Nanos>(length, 0)) + 8;
    const auto power = static_cast<std::size_t>(std::bit_width(n));
    return 8 * power + ((n >> (power - 4)) & 7);
  }

  Nanos from_, to_;
  static constexpr std::size_t kBuckets = std::size_t{8} * 65;
  std::array<std::size_t, kBuckets> counts_{};
  std::size_t limit_ = 0, of_limit_ = 0, left_out_ = 0;
};

class Drawer {
 public:
  Drawer(const Answer& answer, std::size_t kernels) : answer_(answer), run_(*answer.run) {
    d_.run = &run_;
    kernel_of_.assign(run_.groups.size(), -1);
    for (std::size_t k = 0; k < std::min(kernels, answer.evidence->kernels.size()); ++k)
      kernel_of_[answer.evidence->kernels[k].group.index] = static_cast<std::int64_t>(k);
  }

  Drawing draw() && {
    choose_step();
    if (d_.step < 0) return std::move(d_);
    find_window();
    choose_events();
    add_threads();
    add_streams();
    add_gaps();
    d_.layers = run::layer_spans(run_, step());
    for (store::Span& span : d_.layers.spans) span = {span.begin - zero_, span.end - zero_};
    d_.from -= zero_;
    d_.to -= zero_;
    return std::move(d_);
  }

 private:
  struct HostRow {
    Nanos begin, length;
    std::uint32_t row;
    HostKind kind;
  };

  const run::Step& step() const { return run_.steps[static_cast<std::size_t>(d_.step)]; }
  const run::Activity& activity(std::int64_t i) const {
    return run_.activities[static_cast<std::size_t>(i)];
  }

  void choose_step() {
    const Nanos median = answer_.evidence->steps.median;
    Nanos nearest = std::numeric_limits<Nanos>::max();
    std::int64_t main_index = 0;
    for (std::size_t i = 0; i < run_.steps.size(); ++i) {
      const run::Step& step = run_.steps[i];
      if (step.kind != run_.kind) continue;
      const Nanos distance = std::abs(step.length() - median);
      if (step.used && distance < nearest) {
        nearest = distance;
        d_.step = static_cast<run::StepIndex>(i);
        d_.main_index = main_index;
      }
      ++main_index;
    }
  }

  // A launch far ahead of its step (a skewed clock) is not followed.
  void find_window() {
    const auto& calls = run_.trace->calls;
    zero_ = d_.from = step().begin;
    d_.to = step().end;
    constexpr Nanos kFarthest = Nanos{1} << 60;
    const Nanos earliest = step().begin - 2 * std::min(step().length(), kFarthest);
    for (std::int64_t i = step().first; i < step().last; ++i) {
      const store::CallRow call = activity(i).call;
      if (!call.valid()) continue;
      const Nanos begin = calls.begin[call.index];
      if (begin >= earliest) d_.from = std::min(d_.from, begin);
    }
  }

  bool of_this_process(store::ThreadId id) const {
    const store::Thread& thread = run_.trace->threads[id.index];
    const bool same_rank = thread.rank == run_.rank;
    return same_rank && (text_of(run_, run_.process).empty() || thread.pid == run_.process);
  }

  template <class Visit>
  void for_each_table(Visit&& visit) const {
    visit(HostKind::kCall, run_.trace->calls);
    visit(HostKind::kOp, run_.trace->ops);
    visit(HostKind::kMark, run_.trace->marks);
    visit(HostKind::kFrame, run_.trace->frames);
  }

  bool is_host(const store::MarkTable& marks, std::size_t row) const {
    return marks.kind[row] == store::MarkKind::kHost;
  }
  template <class Table>
  bool is_host(const Table&, std::size_t) const {
    return true;
  }

  // Activities may take what the host leaves, and at least half; calls come before operators, and
  // those before frames.
  void choose_events() {
    std::array<Longest, kHostKinds> host{Longest{d_.from, d_.to}, Longest{d_.from, d_.to},
                                         Longest{d_.from, d_.to}, Longest{d_.from, d_.to}};
    std::vector<char> ours(run_.trace->threads.size());
    for (std::size_t t = 0; t < ours.size(); ++t) ours[t] = of_this_process(store::ThreadId(t));
    const auto each = [&](auto&& visit) {
      for_each_table([&](HostKind kind, const auto& table) {
        Longest& longest = host[static_cast<std::size_t>(kind)];
        for (std::size_t row = 0; row < table.size(); ++row) {
          if (ours[table.thread[row].index] != 0 && is_host(table, row))
            visit(longest, kind, table, row);
        }
      });
    };
    each([](Longest& longest, HostKind, const auto& table, std::size_t row) {
      longest.count(table.begin[row], table.dur[row]);
    });
    std::size_t wanted = 0;
    for (const Longest& longest : host) wanted += longest.counted();
    std::size_t room =
        kMostEvents - choose_activities(kMostEvents - std::min(wanted, kMostEvents / 2));
    for (const HostKind kind :
         {HostKind::kCall, HostKind::kOp, HostKind::kMark, HostKind::kFrame}) {
      Longest& longest = host[static_cast<std::size_t>(kind)];
      longest.keep(room);
      room -= std::min(room, longest.counted());
    }
    rows_.resize(ours.size());
    each([this](Longest& longest, HostKind kind, const auto& table, std::size_t row) {
      if (!longest.takes(table.begin[row], table.dur[row])) return;
      rows_[table.thread[row].index].push_back(
          {table.begin[row], table.dur[row], static_cast<std::uint32_t>(row), kind});
    });
    for (std::size_t k = 0; k < kHostKinds; ++k) d_.host_left_out[k] = host[k].left_out();
  }

  // Those that begin in the window; the number of them.
  std::size_t choose_activities(std::size_t most) {
    const auto& all = run_.activities;
    const auto first =
        std::lower_bound(all.begin(), all.end(), d_.from,
                         [](const run::Activity& a, Nanos t) { return a.begin < t; });
    Longest longest(d_.from, d_.to);
    for (auto a = first; a != all.end() && a->begin < d_.to; ++a)
      longest.count(a->begin, a->end - a->begin);
    longest.keep(most);
    for (auto a = first; a != all.end() && a->begin < d_.to; ++a) {
      if (longest.takes(a->begin, a->end - a->begin))
        activities_.push_back(static_cast<std::size_t>(a - all.begin()));
    }
    d_.activities_left_out = longest.left_out();
    return activities_.size();
  }

  std::uint32_t name(store::StringId id) {
    const auto [at, is_new] =
        name_of_.emplace(id.index, static_cast<std::uint32_t>(d_.names.size()));
    if (is_new) d_.names.push_back(id);
    return at->second;
  }

  std::string thread_name(std::size_t t) const {
    const store::Thread& thread = run_.trace->threads[t];
    return fmt::format("thread {} of process {}", text_of(run_, thread.tid),
                       text_of(run_, thread.pid));
  }

  std::vector<std::int64_t> launches_by_thread() const {
    std::vector<std::int64_t> launches(rows_.size(), 0);
    for (std::int64_t i = step().first; i < step().last; ++i) {
      const store::CallRow call = activity(i).call;
      if (call.valid()) ++launches[run_.trace->calls.thread[call.index].index];
    }
    return launches;
  }

  void add_threads() {
    const std::vector<std::int64_t> launches = launches_by_thread();
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < rows_.size(); ++t)
      if (!rows_[t].empty()) order.push_back(t);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(launches[a], rows_[a].size()) > std::pair(launches[b], rows_[b].size());
    });
    for (std::size_t i = kMostLanes; i < order.size(); ++i)
      for (const HostRow& row : rows_[order[i]])
        ++d_.host_left_out[static_cast<std::size_t>(row.kind)];
    order.resize(std::min(order.size(), kMostLanes));
    for (const std::size_t t : order) {
      ThreadLane lane;
      lane.name = thread_name(t);
      lane.launches = launches[t];
      fill(lane, rows_[t]);
      d_.threads.push_back(std::move(lane));
    }
  }

  store::StringId text_id(HostKind kind, std::uint32_t row) const {
    const store::Trace& trace = *run_.trace;
    return kind == HostKind::kCall   ? trace.calls.name[row]
           : kind == HostKind::kOp   ? trace.ops.name[row]
           : kind == HostKind::kMark ? trace.marks.name[row]
                                     : trace.frames.name[row];
  }

  void fill(ThreadLane& lane, std::vector<HostRow>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const HostRow& a, const HostRow& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      return a.length != b.length ? a.length > b.length : a.kind < b.kind;
    });
    for (const HostRow& row : rows) {
      if (row.kind == HostKind::kCall) number_of_call_.emplace(row.row, numbers_);
      ++numbers_;
      lane.begin.push_back(row.begin - zero_);
      lane.length.push_back(row.length);
      lane.text.push_back(name(text_id(row.kind, row.row)));
      lane.kind.push_back(row.kind);
    }
  }

  void add_streams() {
    std::unordered_map<std::uint32_t, std::size_t> lane_of;
    for (const std::size_t i : activities_) {
      const run::Activity& a = run_.activities[i];
      const store::ThreadId thread = run_.trace->device.thread[a.row.index];
      const auto [at, is_new] = lane_of.emplace(thread.index, d_.streams.size());
      if (is_new && d_.streams.size() < kMostLanes) {
        d_.streams.emplace_back().name =
            fmt::format("stream {}", text_of(run_, run_.trace->threads[thread.index].tid));
      }
      if (at->second >= d_.streams.size()) {
        ++d_.activities_left_out;
        continue;
      }
      StreamLane& lane = d_.streams[at->second];
      lane.begin.push_back(a.begin - zero_);
      lane.length.push_back(a.end - a.begin);
      const std::int64_t kernel = kernel_of_[a.group.index];
      lane.kernel.push_back(kernel >= 0 ? kernel
                                        : -1 - std::int64_t{name(run_.groups[a.group.index].name)});
      const auto call = a.call.valid() ? number_of_call_.find(a.call.index) : number_of_call_.end();
      lane.launch.push_back(call == number_of_call_.end() ? -1 : call->second);
    }
  }

  void add_gaps() {
    Longest longest(step().begin, step().end);
    for (const evidence::Gap& gap : answer_.evidence->gaps)
      if (gap.step == d_.step) longest.count(gap.begin, gap.end - gap.begin);
    longest.keep(kMostGaps);
    for (const evidence::Gap& gap : answer_.evidence->gaps)
      if (gap.step == d_.step && longest.takes(gap.begin, gap.end - gap.begin))
        d_.gaps.push_back({gap.begin - zero_, gap.end - gap.begin, gap.owner});
    d_.gaps_left_out = longest.left_out();
  }

  const Answer& answer_;
  const run::Run& run_;
  Drawing d_;
  Nanos zero_ = 0;
  std::vector<std::int64_t> kernel_of_;     // by group: index into Evidence::kernels; -1: none
  std::vector<std::vector<HostRow>> rows_;  // by thread
  std::vector<std::size_t> activities_;
  std::int64_t numbers_ = 0;  // of host events so far
  std::unordered_map<std::uint32_t, std::int64_t> number_of_call_;
  std::unordered_map<std::uint32_t, std::uint32_t> name_of_;
};

}  // namespace

Drawing draw(const Answer& answer, std::size_t kernels) {
  return answer.usable() ? Drawer(answer, kernels).draw() : Drawing{};
}

}  // namespace culprit::report
