#include "run/call_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using known::Owner;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15U, 29);
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 1;
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

// "nn.Module: DecoderLayer_3" without the 3: modules are numbered in order of first use.
std::string_view without_number(std::string_view name) {
  if (!name.starts_with("nn.Module: ")) return name;
  const std::size_t last = name.find_last_not_of("0123456789");
  return last != std::string_view::npos && name[last] == '_' ? name.substr(0, last) : name;
}

// What stands around one launch; `nth`: of its operator, which may launch several kernels.
std::uint64_t site_of(const Run& lender, store::CallRow call, std::uint32_t nth) {
  constexpr int kFrames = 16;
  const store::Trace& trace = *lender.trace;
  std::uint64_t hash = mix(trace.calls.name[call.index].index, nth);
  if (const store::OpRow op = lender.call_op[call.index]; op.valid()) {
    hash = mix(hash, trace.ops.name[op.index].index);
    hash = mix(hash, trace.ops.dims[op.index].index);
  }
  if (lender.call_frame.empty()) return hash;
  store::FrameRow frame = lender.call_frame[call.index];
  for (int up = 0; frame.valid() && up < kFrames; ++up) {
    const std::string_view name = trace.strings[trace.frames.name[frame.index]];
    hash = mix(hash, hash_text(without_number(name)));
    hash = mix(hash, trace.frames.call_from[frame.index].index);
    frame = lender.frame_parent[frame.index];
  }
  return hash;
}

// Sites of all launches, each with its two neighbours on either side: projections of one kind
// (query-key-value, output) may look alike on their own.
std::vector<std::uint64_t> sites_of(const Run& lender, const Script& script) {
  const std::size_t n = script.launches.size();
  std::vector<std::uint64_t> alone(n), sites(n);
  store::OpRow last;
  std::uint32_t nth = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const store::CallRow call = script.launches[i].call;
    const store::OpRow op = lender.call_op[call.index];
    nth = op.valid() && op == last ? nth + 1 : 0;
    last = op;
    alone[i] = site_of(lender, call, nth);
  }
  for (std::size_t i = 0; i < n; ++i) {
    constexpr std::size_t kNeighbours = 2;
    const std::size_t from = i < kNeighbours ? 0 : i - kNeighbours;
    const std::size_t to = std::min(n, i + kNeighbours + 1);
    for (std::size_t k = from; k < to; ++k) sites[i] = mix(sites[i], alone[k] + (k - from));
  }
  return sites;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Can an operator of PyTorch itself run a kernel of this kind?
bool can_run(std::string_view op, Owner kind) {
  if (!op.starts_with("aten::")) return true;
  const bool product = has(op, "mm") || has(op, "linear") || has(op, "conv") || has(op, "matmul") ||
                       has(op, "einsum") || has(op, "dot");
  switch (kind) {
    case Owner::kGemm:
    case Owner::kMoeGemm:
      return product || has(op, "attention");
    case Owner::kAttention:
      return has(op, "attention");
    case Owner::kRope:
    case Owner::kNorm:
      return !product;
    default:
      return !known::is_comm(kind);
  }
}

struct Site {
  std::map<std::uint32_t, std::int64_t> kernels;  // symbol -> times
  std::int64_t times = 0;
  std::pair<std::uint32_t, std::int64_t> usual() const {
    return *std::max_element(kernels.begin(), kernels.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
  }
};

}  // namespace

CallSites check_call_sites(const Run& run, const std::vector<std::uint32_t>& activities,
                           const Run& lender, const Script& script, const Symbols& symbols) {
  const auto n = static_cast<std::int64_t>(symbols.size());
  const std::vector<std::uint64_t> site_at = sites_of(lender, script);
  std::map<std::uint64_t, Site> sites;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    Site& site = sites[site_at[i]];
    ++site.times;
    ++site.kernels[symbols[i]];
  }
  std::int64_t repeated = 0, agreeing = 0, impossible = 0;
  for (const auto& [hash, site] : sites) {
    if (site.times < 2) continue;
    repeated += site.times;
    agreeing += site.usual().second;
  }
  CallSites result;
  result.holds.assign(symbols.size(), 1);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const store::OpRow op = lender.call_op[script.launches[i].call.index];
    const bool possible =
        !op.valid() || can_run(lender.trace->strings[lender.trace->ops.name[op.index]],
                               run.activities[activities[i]].kind);
    impossible += possible ? 0 : 1;
    const Site& site = sites[site_at[i]];
    if (!possible || (site.times > 1 && site.usual().first != symbols[i])) result.holds[i] = 0;
  }
  const auto refuse = [&](std::string why) {
    result.holds.clear();
    result.why_not = std::move(why);
  };
  if (2 * repeated < n)
    refuse(
        "the capture names no kernels, and too few of its call sites repeat to check their order");
  else if (20 * agreeing < 19 * repeated || 50 * impossible > n)
    refuse(
        fmt::format("the capture names no kernels, and in its order {} of {} kernels do not fit "
                    "the call sites",
                    std::max(repeated - agreeing, impossible), n));
  else if (repeated > agreeing || impossible > 0)
    result.why_not = "their call site launches another kernel in the other layers";
  return result;
}

}  // namespace culprit::run
