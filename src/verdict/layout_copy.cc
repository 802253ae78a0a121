// layout-copy: a copy within one type that only rearranges: transpose, flatten or reshape of a tensor
// that is not contiguous. Public cases: sgl-project/sglang#25463, vllm-project/vllm#24891.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;
using known::Owner;

constexpr double kLeastShare = 0.005;

// The operator that made the copy, where it is one that copies for the layout alone; else empty.
std::string_view layout_op(const KernelFigures& kernel) {
  constexpr std::array<std::string_view, 5> kForLayout{
      "aten::flatten", "aten::reshape", "aten::contiguous", "aten::clone", "aten::repeat"};
  // Out-of-place updates clone what they update, whatever its layout.
  constexpr std::array<std::string_view, 5> kUpdates{"aten::index_put", "aten::index_copy",
                                                     "aten::slice_scatter", "aten::scatter",
                                                     "aten::select_scatter"};
  for (const std::string& op : kernel.op_chain) {  // outermost first
    if (std::find(kUpdates.begin(), kUpdates.end(), op) != kUpdates.end()) return {};
    if (std::find(kForLayout.begin(), kForLayout.end(), op) != kForLayout.end()) return op;
  }
  return {};
}

bool copies_within_a_type(const Evidence& evidence, const KernelFigures& kernel) {
  const run::Group& group = evidence.run->groups[kernel.group.index];
  if (group.kind != Owner::kCopy || group.info.casts) return false;
  return kernel.dtype_in == known::Dtype::kUnknown || kernel.dtype_in == kernel.dtype_out;
}

void examine(Evidence& evidence, Verdict& verdict) {
  std::vector<std::size_t> copies;
  double calls = 0, share = 0;
  std::string_view op;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    if (accused(verdict, i) || !copies_within_a_type(evidence, kernel)) continue;
    const std::int64_t times = times_per_layer(evidence, kernel.calls_per_step);
    const std::string_view by = layout_op(kernel);
    if (times == 0 || (by.empty() && !kernel.op.empty())) continue;
    if (op.empty()) op = by;
    copies.push_back(i);
    calls += kernel.calls_per_step;
    share += kernel.share;
  }
  if (copies.empty() || share < kLeastShare) return;
  Suspect suspect = accuse_kernels(evidence, "layout-copy", copies);
  const KernelFigures& largest = evidence.kernels[copies.front()];
  suspect.confidence = op.empty()             ? Confidence::kPossible
                       : largest.dims.empty() ? Confidence::kLikely
                                              : Confidence::kCertain;
  suspect.claim =
      fmt::format("{}: a copy that changes only the layout, {} times in each of {} layers, {} each",
                  op.empty() ? std::string("A copy kernel within one type") : std::string(op),
                  text::amount(calls / static_cast<double>(*evidence.run->layers.count)),
                  *evidence.run->layers.count, text::duration(largest.avg_ns, true));
  set_cost(evidence, {scaled(evidence, groups_of(evidence, copies), 0), {Owner::kCopy}}, suspect);
  suspect.disproved_if = "the tensor is contiguous already: then the copy was asked for by name";
  suspect.fix =
      "let the kernel behind it take strides, or write the result in the layout it is read in";
  suspect.alternatives = {
      "fold the transpose into the GEMM's output layout",
      "view() in place of reshape() fails where a copy would be made: find the place"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kLayoutCopy{
    {"layout-copy",
     "a copy within one type, per layer, under flatten, reshape, contiguous or clone",
     "kernel names and layers; operators make it likely, shapes certain",
     "the copy was asked for by name"},
    examine};

}  // namespace culprit::verdict
