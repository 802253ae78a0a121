// What share of the memory bus the laboratory's kernels reach. Kernel by kernel, so that one buffer is
// there at a time: in each pass the roof (read, write, copy) and then the kernel once over a buffer of at
// least 8 x the last-level cache, rows handed out in small chunks to pinned threads, batch 1; the table
// shows medians over the passes, and shares of the roof that was measured between the kernel's own.
// Usage: lab_kernels [ISA] [THREADS] [PASSES]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/median.h"
#include "lab/kernels/drawn.h"
#include "lab/kernels/kernels.h"
#include "lab/kernels/roof.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kCols = 6144, kPatternRows = 128, kChunkBytes = 512 << 10;

struct Row {
  std::string name;
  Move against = Move::kRead;
  std::int64_t bytes = 0;  // moved in a pass
  std::function<double()> pass;
  std::vector<double> rates;
};

// Bytes of a small matrix over and over: quantising a quarter of a gigabyte would take a minute.
Result<Pages> repeat(const std::byte* pattern, std::int64_t size, std::int64_t times) {
  TRY(Pages pages, Pages::reserve(size * times));
  for (std::int64_t i = 0; i < times; ++i)
    std::memcpy(pages.data() + i * size, pattern, static_cast<std::size_t>(size));
  return pages;
}

struct Layer {
  Matrix weights;
  Pages data;
  std::unique_ptr<Pages> scales;
  Placed prepared;
  std::vector<float> y;
};

Result<Row> linear_row(const DrawnKind& kind, const Kernels& k, Team& team, std::int64_t bytes) {
  Draw draw(1);
  const DrawnMatrix drawn = draw_matrix(kind, kPatternRows, kCols, 0, draw);
  Matrix m = drawn.matrix;
  const std::int64_t size = kPatternRows * m.row_bytes(), times = bytes / size + 1;
  TRY(Pages data, repeat(m.data, size, times));
  std::unique_ptr<Pages> scales;
  if (m.block_scales != nullptr) {
    TRY(Pages pages, repeat(m.block_scales, m.bytes() - size, times));
    scales = std::make_unique<Pages>(std::move(pages));
    m.block_scales = scales->data();
  }
  m.data = data.data();
  m.rows = kPatternRows * times;
  const Activations activations = activations_for(m);
  auto layer = std::make_shared<Layer>(Layer{m, std::move(data), std::move(scales),
                                             Placed(prepared_bytes(activations, kCols), 0),
                                             std::vector<float>(static_cast<std::size_t>(m.rows))});
  k.prepare(activations, draw.numbers(kCols).data(), kCols, m.input_scale, layer->prepared.data());
  Batch x{activations, 1, kCols, layer->prepared.data()};
  x.input_scale = m.input_scale;
  const std::int64_t chunk = kChunkBytes / m.row_bytes() + 1;
  return Row{"linear, " + std::string(kind.name),
             Move::kRead,
             m.bytes(),
             [=, &k, &team] {
               return team.run(m.rows, chunk, [&](std::int64_t begin, std::int64_t end) {
                 k.linear(m, x, begin, end, layer->y.data(), m.rows);
               });
             },
             {}};
}

Result<Row> pool_row(const Kernels& k, Team& team, std::int64_t bytes) {
  Draw draw(2);
  std::vector<std::uint8_t> pattern(576);
  for (std::uint8_t& code : pattern) code = static_cast<std::uint8_t>(draw.below(0x7f));
  const std::int64_t rows = bytes / 576;
  TRY(Pages narrow, repeat(reinterpret_cast<const std::byte*>(pattern.data()), 576, rows));
  TRY(Pages wide, repeat(reinterpret_cast<const std::byte*>(pattern.data()), 576, 2 * rows));
  auto from = std::make_shared<Pages>(std::move(narrow));
  auto to = std::make_shared<Pages>(std::move(wide));
  return Row{"cast_pool, e4m3 to bf16",
             Move::kCopy,
             rows * 576 * 3,
             [=, &k, &team] {
               return team.run(rows, kChunkBytes / 576, [&](std::int64_t begin, std::int64_t end) {
                 k.cast_pool(reinterpret_cast<const std::uint8_t*>(from->data()) + begin * 576,
                             (end - begin) * 576,
                             reinterpret_cast<Bf16*>(to->data()) + begin * 576);
               });
             },
             {}};
}

void print(const Row& row, const Roof& roof) {
  const double rate = upper_median(row.rates), best = roof.best(row.against);
  fmt::print("{:<32} {:>8.2f} GB/s {:>7.1f} % of {:>6.2f} GB/s {}\n", row.name, rate / 1e9,
             100 * rate / best, best / 1e9,
             row.against == Move::kRead ? "read" : "copied (read + written)");
  std::fflush(stdout);
}

Result<int> run(const std::vector<std::string>& args) {
  Isa isa = best_isa();
  if (!args.empty()) {
    TRY(isa, isa_named(args[0]));
  }
  Team team(args.size() > 1 ? std::max(1, std::atoi(args[1].c_str())) : usable_cpus());
  const int passes = args.size() > 2 ? std::max(1, std::atoi(args[2].c_str())) : 15;
  const Kernels& k = kernels(isa);
  TRY(Roof roof, Roof::prepare(team, isa));
  fmt::print("{}, {} threads, medians of {} passes over {} MiB\n", isa_name(isa), team.threads(),
             passes, roof.bytes() >> 20);
  const auto measure = [&](Row row) {
    roof.forget();
    for (int pass = 0; pass < passes; ++pass) {
      roof.pass();
      row.rates.push_back(static_cast<double>(row.bytes) / row.pass());
    }
    print(row, roof);
  };
  for (const DrawnKind& kind : drawn_kinds()) {
    TRY(Row row, linear_row(kind, k, team, roof.bytes()));
    measure(std::move(row));
  }
  TRY(Row pool, pool_row(k, team, roof.bytes()));
  measure(std::move(pool));
  return 0;
}

}  // namespace
}  // namespace culprit::lab

// NOLINTNEXTLINE(bugprone-exception-escape): no memory for a name ends a benchmark
int main(int argc, char** argv) {
  const auto result = culprit::lab::run(std::vector<std::string>(argv + 1, argv + argc));
  if (result.ok()) return *result;
  fmt::print(stderr, "lab_kernels: {}: {}\n  hint: {}\n", result.error().where, result.error().what,
             result.error().hint);
  return 2;
}
