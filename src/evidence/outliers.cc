// What an outlier step did with its excess time: the longest time the device idled in it, and what on
// the host filled that: a compiler, the garbage collector, the allocator, or nothing that is recorded.
#include <algorithm>
#include <array>
#include <string_view>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

struct Sign {
  std::string_view part, cause;
};
constexpr std::array<Sign, 10> kFrames{{{"/_dynamo/", "compile"},
                                        {"/_inductor/", "compile"},
                                        {"triton/compiler", "compile"},
                                        {"triton/runtime/build", "compile"},
                                        {"triton/runtime/jit", "compile"},
                                        {"/flashinfer/jit", "compile"},
                                        {"deep_gemm/jit", "compile"},
                                        {"gc.collect", "gc"},
                                        {"gc_collect", "gc"},
                                        {"<built-in function collect>", "gc"}}};
constexpr std::array<Sign, 9> kCalls{{{"ModuleLoad", "compile"},
                                      {"LibraryLoad", "compile"},
                                      {"LinkComplete", "compile"},
                                      {"cudaMalloc", "allocator"},
                                      {"hipMalloc", "allocator"},
                                      {"cudaFree", "allocator"},
                                      {"hipFree", "allocator"},
                                      {"cudaHostAlloc", "allocator"},
                                      {"cuMem", "allocator"}}};
constexpr double kTells = 0.5;  // of the hole

store::Span longest_idle(const Basis& basis, const run::Step& step) {
  store::Span longest;
  for (std::size_t i = segment_at(basis.segments, step.begin);
       i < basis.segments.size() && basis.segments[i].begin < step.end; ++i) {
    const Segment& segment = basis.segments[i];
    if (!segment.idle()) continue;
    const store::Span part{std::max(segment.begin, step.begin), std::min(segment.end, step.end)};
    if (part.length() > longest.length()) longest = part;
  }
  return longest;
}

// The row of one table that covers most of the hole and whose name is a sign.
template <class Table, std::size_t N>
void look(const store::Trace& trace, const Table& table, const std::array<Sign, N>& signs,
          const store::Span& hole, Nanos& most, Outlier& outlier) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    const Nanos begin = std::max(table.begin[row], hole.begin);
    const Nanos end = std::min(table.begin[row] + table.dur[row], hole.end);
    if (end - begin <= most) continue;
    const std::string_view name = trace.strings.or_empty(table.name[row]);
    for (const Sign& sign : signs) {
      if (name.find(sign.part) == std::string_view::npos) continue;
      most = end - begin;
      outlier.cause = sign.cause;
      outlier.because = name;
      break;
    }
  }
}

}  // namespace

std::string_view cause_of_frame(std::string_view frame) {
  for (const Sign& sign : kFrames)
    if (frame.find(sign.part) != std::string_view::npos) return sign.cause;
  return {};
}

std::vector<Outlier> find_outliers(const Basis& basis, Nanos median) {
  const store::Trace& trace = *basis.run.trace;
  std::vector<Outlier> outliers;
  for (std::size_t i = 0; i < basis.run.steps.size(); ++i) {
    const run::Step& step = basis.run.steps[i];
    if (step.used || step.why_excluded != "outlier") continue;
    Outlier outlier{static_cast<run::StepIndex>(i), step.length() - median, "unknown", {}};
    const store::Span hole = longest_idle(basis, step);
    Nanos most = static_cast<Nanos>(kTells * static_cast<double>(hole.length()));
    look(trace, trace.frames, kFrames, hole, most, outlier);
    look(trace, trace.calls, kCalls, hole, most, outlier);
    outliers.push_back(std::move(outlier));
  }
  return outliers;
}

}  // namespace culprit::evidence
