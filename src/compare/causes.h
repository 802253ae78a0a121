// The judges of a difference: each looks for one way in which time moves between two recordings, takes
// the kernels and the idle time that it explains, and leaves the rest to those behind it, so that no
// nanosecond of a kernel has two causes. Each is its own mirror image: sides swapped, it finds the same
// with the sign changed. Internal to this layer.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compare/rows.h"

namespace culprit::compare {

struct Case {
  const Input& before;
  const Input& after;
  Comparison& comparison;  // sides, step figures, budget and kernels are there already
  const Rows& rows;        // rows[i] is comparison.kernels[i]
  Nanos least = 0;         // a smaller part of the difference is no cause
  bool same_load = false;  // nothing tells that batch or tokens differ
  std::vector<std::uint8_t> taken = {};                   // by row
  std::array<bool, known::kOwnerCount> owner_taken = {};  // idle owners and communication

  // "16 on both sides", "8 before, 16 after"; empty: unknown.
  std::string load() const;
  const BudgetDelta* budget(known::Owner owner) const;  // null: no row
  Nanos moved(known::Owner owner) const;                // after - before
  double mean_of_both() const;                          // of the mean steps

  std::string fact(std::string name, double value, std::string unit, std::string how,
                   std::string path);  // `path`: in the JSON document
  // A cause that is these rows: times, exposed times, places, facts about the largest.
  Cause cause_of(std::string id, std::span<const std::size_t> rows);
  // Enters it where it is large enough, and takes its rows.
  bool enter(Cause cause);
  std::vector<std::size_t> free_rows(const std::function<bool(const Row&)>& fits) const;
  void rule_out(std::string hypothesis, std::string claim, std::string because,
                std::vector<std::string> facts = {});
  bool found(std::string_view id) const;
};

// In the order in which they are asked.
void judge_load(Case&);    // load: another batch
void judge_device(Case&);  // other-device
void judge_clock(Case&);   // clock
void judge_size(
    Case&);  // whole-pool-copy, whole-pool-cast, oversized-grid: cost that follows a limit
void judge_suspects(Case&);       // suspects of the verdict that only one side has
void judge_graphs(Case&);         // graph-missing
void judge_fusion(Case&);         // fusion-lost
void judge_replaced(Case&);       // replaced-kernel
void judge_communication(Case&);  // exposed-comm
void judge_host(Case&);           // host-launch, host-work, host-sync
void judge_rest(Case&);           // more-calls, slower-kernel, new-kernel
void judge_stalls(Case&);         // step-stall, prefill-interference: beside the steps that count

// "4.1 us", "64 calls": the words that several judges use.
std::string shown_name(const KernelChange& kernel);
std::string before_after(Nanos before, Nanos after);
std::string counts_text(std::optional<double> before, std::optional<double> after);  // "1 → 120"
std::string times_text(double ratio);                                                // "x 10.0"

}  // namespace culprit::compare
