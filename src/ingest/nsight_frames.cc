// Backtraces of CUDA calls (--cudabacktrace, --python-backtrace=cuda). A backtrace has no times of
// its own: its Python frames stand around the call, the outermost first, as if each had lasted as
// long as the call.
#include <algorithm>

#include "ingest/nsight_rows.h"
#include "ingest/nsight_text.h"

namespace culprit::ingest {
namespace {

struct Frame {
  std::int64_t depth = 0;  // 0: innermost
  store::StringId name;
};
using Chains = std::unordered_map<std::int64_t, std::vector<Frame>>;  // by id

Chains read_chains(Import& in) {
  enum : std::size_t { kId, kDepth, kSymbol, kModule };
  constexpr std::string_view kColumns[] = {"id", "stackDepth", "symbol", "module"};
  Chains chains;
  for (const std::int64_t chain : in.chains)
    if (chain >= 0) chains.try_emplace(chain);
  if (chains.empty()) return chains;
  Rows rows(in, kChainTable, kColumns, kModule);
  while (rows.next()) {
    const auto id = rows.integer(kId);
    const auto chain = id ? chains.find(*id) : chains.end();
    if (chain == chains.end()) continue;
    const store::StringId symbol = rows.name(kSymbol), module = rows.name(kModule);
    const auto frame =
        python_frame(in.trace.strings.or_empty(symbol), in.trace.strings.or_empty(module));
    if (!frame) continue;
    chain->second.push_back(
        {rows.integer(kDepth).value_or(0), in.names.intern(*frame, kChainTable, rows.rowid())});
  }
  for (auto& [id, frames] : chains)
    std::stable_sort(frames.begin(), frames.end(),
                     [](const Frame& a, const Frame& b) { return a.depth > b.depth; });
  return chains;
}

}  // namespace

void read_frames(Import& in) {
  const Chains chains = read_chains(in);
  const store::CallTable& calls = in.trace.calls;
  store::FrameTable& t = in.trace.frames;
  for (std::size_t row = 0; row < calls.size() && !chains.empty(); ++row) {
    const auto chain = chains.find(in.chains[row]);
    if (chain == chains.end()) continue;
    for (const Frame& frame : chain->second) {
      t.begin.push_back(calls.begin[row]);
      t.dur.push_back(std::max<Nanos>(calls.dur[row], 1));  // else it would not stand around it
      t.name.push_back(frame.name);
      t.thread.push_back(calls.thread[row]);
      t.call_from.push_back(store::StringId(0));
    }
  }
}

}  // namespace culprit::ingest
