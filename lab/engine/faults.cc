#include "lab/engine/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "base/near.h"
#include "base/usage.h"

namespace culprit::lab {
namespace {

using F = Faults;
constexpr std::int64_t kMicro = 1'000, kMilli = 1'000'000;
constexpr std::array kRows{
    FaultRow{"host-delay", "the host works so long before each launch", nullptr, &F::host_delay,
             "US", kMicro},
    FaultRow{"host-work", "the host works so long before each step", nullptr, &F::host_work, "US",
             kMicro},
    FaultRow{"stall", "the host stands still so long before every twelfth step", nullptr, &F::stall,
             "MS", kMilli},
    FaultRow{"sync-per-layer", "the host waits for the stream behind each layer",
             &F::sync_per_layer},
    FaultRow{"blocking-copy", "the host copies all logits and waits for them before each draw",
             &F::blocking_copy},
    FaultRow{"graph-limit", "steps of more than N requests are launched kernel by kernel", nullptr,
             &F::graph_limit, "N"},
    FaultRow{"single-block", "one thread samples for all requests", &F::single_block},
    FaultRow{"head-per-request", "the output matrix is read once per request",
             &F::head_per_request},
    FaultRow{"small-kernels", "residual, norm, activation and rounding are kernels of their own",
             &F::small_kernels},
    FaultRow{"pool-copy", "each layer copies its whole KV pool before it attends to the copy",
             &F::pool_copy},
    FaultRow{"layout-copy", "each layer copies the rows in use into one piece before it attends",
             &F::layout_copy},
    FaultRow{"dequantize", "FP8 weights are unpacked to BF16 before each use, those of attention",
             &F::dequantize},
    FaultRow{"grid-rows", "norms are launched for N rows, whatever the step has", nullptr,
             &F::grid_rows, "N"},
};

const FaultRow* find(std::string_view name) {
  const auto* row = std::find_if(kRows.begin(), kRows.end(),
                                 [&](const FaultRow& each) { return each.name == name; });
  return row == kRows.end() ? nullptr : row;
}

Error unknown(std::string_view name) {
  std::vector<std::string> names;
  names.reserve(kRows.size());
  for (const FaultRow& row : kRows) names.emplace_back(row.name);
  return usage(fmt::format("unknown fault \"{}\"", name),
               did_you_mean(name, names, "`culprit lab faults` lists them"));
}

Result<std::int64_t> value_of(const FaultRow& row, std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMost)
    return usage(fmt::format("fault {}: \"{}\" is not right", row.name, text),
                 fmt::format("{}={}, a whole number from 1 to {}", row.name, row.unit, kMost));
  return value;
}

}  // namespace

std::span<const FaultRow> fault_rows() { return kRows; }

Status set_fault(std::string_view text, Faults& faults) {
  const std::size_t equals = text.find('=');
  const FaultRow* row = find(text.substr(0, equals));
  if (row == nullptr) return unknown(text.substr(0, equals));
  const bool valued = equals != std::string_view::npos;
  if (valued && row->on != nullptr)
    return usage(fmt::format("fault {} takes no value", row->name), std::string(row->name));
  if (!valued && row->amount != nullptr)
    return usage(fmt::format("fault {} needs a value", row->name),
                 fmt::format("{}={}", row->name, row->unit));
  if (row->on != nullptr) {
    faults.*row->on = true;
    return Ok{};
  }
  TRY(const std::int64_t value, value_of(*row, text.substr(equals + 1)));
  faults.*row->amount = value * row->per_unit;
  return Ok{};
}

}  // namespace culprit::lab
