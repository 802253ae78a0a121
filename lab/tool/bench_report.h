// What the bench measured, and how it is said. Rates are bytes per second, bytes those that a kernel
// must move (each weight, row and activation once). A kernel is held against the copy bandwidth where
// it writes a quarter of what it reads or more, else against that of reading.
#pragma once

#include <deque>
#include <string>

#include "lab/engine/attention.h"
#include "lab/engine/ledger.h"
#include "lab/kernels/isa.h"
#include "lab/tool/times.h"

namespace culprit::lab {

struct BenchRun {
  Reading reading = Reading::kFused;
  std::int64_t batch = 1, context = 0;
  std::int64_t pool_tokens = 0, pool_bytes = 0;
  int threads = 1;
  Times steps;
  Ledger ledger;  // of those steps
};

struct BenchReport {
  std::string model, layers;
  std::int64_t ranks = 1, expert_groups = 1;  // figures are those of rank 0
  std::int64_t model_bytes = 0;
  Isa isa = Isa::kReference;
  KvFormat kv_format = KvFormat::kBf16;
  std::deque<BenchRun> runs;
  double read_rate = 0, copy_rate = 0;  // measured between the runs
};

std::string bench_text(const BenchReport& report);
std::string bench_json(const BenchReport& report);

}  // namespace culprit::lab
