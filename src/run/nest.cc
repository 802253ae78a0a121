// Nesting by time on one thread: the parent of a row is the row that is still open when it begins,
// and the innermost open row is what stands around a call. One sweep per table with a stack per
// thread; O(rows + calls) when the rows of each thread are in order of begin, outer rows first.
#include "run/chapters.h"

namespace culprit::run {
namespace {

template <class Table>
struct Outer {  // begin order, the longer first: a parent stands before its children
  const Table& table;
  bool operator()(std::uint32_t a, std::uint32_t b) const {
    if (table.begin[a] != table.begin[b]) return table.begin[a] < table.begin[b];
    return table.dur[a] > table.dur[b];
  }
};

template <class Table>
bool in_order(const Table& table, std::size_t threads) {
  std::vector<std::uint32_t> last(threads, 0xffffffffU);
  const Outer<Table> before{table};
  for (std::uint32_t row = 0; row < table.size(); ++row) {
    std::uint32_t& previous = last[table.thread[row].index];
    if (previous != 0xffffffffU && before(row, previous)) return false;
    previous = row;
  }
  return true;
}

template <class Row>
class Nesting {
 public:
  Nesting(const store::Trace& trace, const Links& links, std::vector<Row>& parent,
          std::vector<Row>& around_call)
      : trace_(trace),
        calls_(links.calls),
        parent_(parent),
        around_call_(around_call),
        threads_(trace.threads.size()) {
    around_call_.assign(trace.calls.size(), Row{});
    for (std::size_t t = 0; t < threads_.size(); ++t) threads_[t].next_call = calls_.start[t];
  }

  template <class Table>
  void add(const Table& table, std::uint32_t row) {
    const std::uint32_t t = table.thread[row].index;
    Thread& thread = threads_[t];
    const Nanos begin = table.begin[row];
    place_calls(thread, calls_.start[t + 1], begin);
    close(thread, begin);
    if (!thread.open.empty()) parent_[row] = Row{thread.open.back().row};
    thread.open.push_back({end_of(begin, table.dur[row]), row});
  }

  void finish() {
    for (std::size_t t = 0; t < threads_.size(); ++t)
      place_calls(threads_[t], calls_.start[t + 1], std::numeric_limits<Nanos>::max());
  }

 private:
  struct Open {
    Nanos end = 0;
    std::uint32_t row = 0;
  };
  struct Thread {
    std::vector<Open> open;  // innermost last
    std::uint32_t next_call = 0;
  };

  static void close(Thread& thread, Nanos now) {
    while (!thread.open.empty() && thread.open.back().end <= now) thread.open.pop_back();
  }
  // Calls that begin before `until` lie in what is open now.
  void place_calls(Thread& thread, std::uint32_t stop, Nanos until) {
    for (; thread.next_call < stop; ++thread.next_call) {
      const std::uint32_t call = calls_.rows[thread.next_call];
      const Nanos at = trace_.calls.begin[call];
      if (at >= until) return;
      close(thread, at);
      if (!thread.open.empty()) around_call_[call] = Row{thread.open.back().row};
    }
  }

  const store::Trace& trace_;
  const Buckets& calls_;
  std::vector<Row>& parent_;
  std::vector<Row>& around_call_;
  std::vector<Thread> threads_;
};

template <class Row, class Table>
void nest(const store::Trace& trace, const Table& table, const Links& links,
          std::vector<Row>& parent, std::vector<Row>& around_call) {
  parent.assign(table.size(), Row{});
  Nesting<Row> nesting(trace, links, parent, around_call);
  const auto rows = static_cast<std::uint32_t>(table.size());
  if (in_order(table, trace.threads.size())) {
    for (std::uint32_t row = 0; row < rows; ++row) nesting.add(table, row);
  } else {
    for (const std::uint32_t row : time_order(rows, Outer<Table>{table})) nesting.add(table, row);
  }
  nesting.finish();
}

}  // namespace

void nest_ops(Run& run, const Links& links) {
  nest(*run.trace, run.trace->ops, links, run.op_parent, run.call_op);
}

void nest_frames(Run& run, const Links& links) {
  if (run.trace->frames.size() == 0) return;
  nest(*run.trace, run.trace->frames, links, run.frame_parent, run.call_frame);
}

}  // namespace culprit::run
