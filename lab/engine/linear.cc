#include "lab/engine/linear.h"

#include <algorithm>
#include <cassert>

namespace culprit::lab {
namespace {

// Weight bytes of a piece: some 5 us of a core at a batch of 1, and a fraction of its L2 cache.
constexpr std::int64_t kPieceBytes = 64 << 10;
// A row of weights serves this many tokens in the time in which it is read; more need smaller pieces.
constexpr std::int64_t kTokensPerRead = 4;
constexpr std::int64_t kUnpackNumbers = 128 << 10;  // of a piece
constexpr std::int64_t kRowsTogether = 16;          // kernels work on a few rows at once

std::int64_t piece_rows(const LinearTask& task) {
  const std::int64_t work =
      task.weights->row_bytes() * std::max(task.x.tokens / kTokensPerRead, std::int64_t{1});
  const std::int64_t rows = kPieceBytes / std::max<std::int64_t>(work, 1);
  return std::max(rows / kRowsTogether, std::int64_t{1}) * kRowsTogether;
}

bool idle(const LinearTask& task) { return task.weights->empty() || task.x.tokens == 0; }

// Adds what a task reads, writes and looks like.
void count_in(const LinearTask& task, Launch& launch) {
  if (idle(task)) return;
  if (launch.format.empty()) launch.format = format_name(task.weights->format);
  launch.read += task.weights->bytes() + task.x.tokens * prepared_bytes(task.x.kind, task.x.cols);
  launch.written += task.x.tokens * task.weights->rows * static_cast<std::int64_t>(sizeof(float));
  launch.tokens = std::max(launch.tokens, task.x.tokens);
  launch.rows += task.weights->rows;
  launch.cols = task.weights->cols;
}

}  // namespace

Input::Input(std::byte* buffer, std::int64_t tokens, std::initializer_list<const Matrix*> readers) {
  for (const Matrix* reader : readers) {
    if (reader->empty() || find(*reader) != nullptr) continue;
    const Batch batch{.kind = activations_for(*reader),
                      .tokens = tokens,
                      .cols = reader->cols,
                      .data = buffer,
                      .rows = nullptr,
                      .input_scale = reader->input_scale};
    ways_[count_++] = {batch, buffer};
    buffer += tokens * prepared_bytes(batch.kind, batch.cols);
  }
}

const Input::Way* Input::find(const Matrix& reader) const {
  const Activations kind = activations_for(reader);
  const Way* const end = ways_.data() + count_;
  const Way* const at = std::find_if(ways_.data(), end, [&](const Way& way) {
    return way.batch.kind == kind &&
           (kind != Activations::kNvfp4 || way.batch.input_scale == reader.input_scale);
  });
  return at == end ? nullptr : at;
}

void Input::prepare(const Kernels& kernels, const float* x, std::int64_t token) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const auto& [batch, data] = ways_[i];
    kernels.prepare(batch.kind, x, batch.cols, batch.input_scale,
                    data + token * prepared_bytes(batch.kind, batch.cols));
  }
}

Batch Input::of(const Matrix& reader) const {
  const Way* way = find(reader);
  return way == nullptr ? Batch{} : way->batch;
}

void LinearPlan::carve(Carver& carver, std::int64_t most_tasks) {
  tasks_ = carver.take<LinearTask>(most_tasks);
  cut_.carve(carver, most_tasks);
}

void LinearPlan::clear() {
  count_ = 0;
  cut_.clear();
  sum_ = {};
}

void LinearPlan::add(const LinearTask& task) {
  cut_.add(idle(task) ? 0 : task.weights->rows, idle(task) ? 1 : piece_rows(task));
  count_in(task, sum_);
  tasks_[count_++] = task;
}

std::int64_t LinearPlan::complete(Launch& launch) const {
  launch.format = sum_.format;
  launch.read = sum_.read;
  launch.written = sum_.written;
  launch.tokens = sum_.tokens;
  launch.rows = sum_.rows;
  launch.cols = sum_.cols;
  return cut_.pieces();
}

void LinearPlan::run(const Kernels& kernels, std::int64_t piece) const {
  const Cut::Part part = cut_[piece];
  const LinearTask& task = tasks_[part.item];
  kernels.linear(*task.weights, task.x, part.begin, part.end, task.y, task.y_stride);
}

void Linear::operator()(std::string_view kernel, int layer, std::initializer_list<LinearTask> tasks,
                        profile::Location line) {
  assert(tasks.size() <= kMostTasks);
  Launch launch{.kernel = kernel, .layer = layer};
  Gemm gemm;
  Few few;
  std::int32_t pieces = 0;
  std::size_t i = 0;
  for (const LinearTask& given : tasks) {
    if (idle(given)) continue;
    const LinearTask task = unpack(layer, given, line);
    const std::int64_t part = piece_rows(task);
    pieces += static_cast<std::int32_t>((task.weights->rows + part - 1) / part);
    few.tasks[i] = task;
    few.part[i] = static_cast<std::int32_t>(part);
    few.end[i++] = pieces;
    count_in(task, launch);
    if (i == 1) gemm = {.format = task.weights->format, .input = task.x.kind};
  }
  gemm.tokens = launch.tokens;
  gemm.rows = launch.rows;
  gemm.cols = launch.cols;
  launch.symbol = symbol_of(gemm);
  const GemmOp op(launch_, gemm, line);
  launch_(launch, pieces, [&kernels = kernels_, few](std::int64_t piece, int) {
    std::size_t at = 0;
    while (piece >= few.end[at]) ++at;
    const LinearTask& task = few.tasks[at];
    const std::int64_t part = few.part[at], before = at == 0 ? 0 : few.end[at - 1];
    const std::int64_t begin = (piece - before) * part;
    run(kernels, task, begin, std::min(begin + part, task.weights->rows));
  });
}

void Linear::unpack_before_use(std::initializer_list<const Matrix*> layer) {
  constexpr std::int64_t kAligned = 64;  // numbers
  std::int64_t at = 0;
  for (const Matrix* packed : layer) {
    if (packed->empty() || packed->format != Format::kE4m3) continue;
    Unpacked& unpacked = unpacked_of_[packed];
    unpacked.matrix = *packed;
    unpacked.matrix.format = Format::kBf16;
    unpacked.at = at;
    at += (packed->rows * packed->cols + kAligned - 1) / kAligned * kAligned;
  }
  most_unpacked_ = std::max(most_unpacked_, at);
}

void Linear::carve(Carver& carver) {
  unpacked_ = carver.take<Bf16>(most_unpacked_);
  for (auto& [packed, unpacked] : unpacked_of_)
    unpacked.matrix.data = reinterpret_cast<const std::byte*>(unpacked_ + unpacked.at);
}

LinearTask Linear::unpack(int layer, const LinearTask& task, profile::Location line) {
  const auto found = unpacked_of_.find(task.weights);
  if (found == unpacked_of_.end()) return task;
  const Matrix& packed = *task.weights;
  const std::int64_t numbers = packed.rows * packed.cols;
  const Launch launch{.kernel = "weight dequant",
                      .symbol = "weight_dequant_kernel<e4m3, bf16>",
                      .format = "e4m3",
                      .layer = layer,
                      .read = packed.bytes(),
                      .written = 2 * numbers,
                      .tokens = packed.rows,
                      .rows = packed.cols,
                      .cols = packed.cols};
  const Op op(launch_, profile::Call(profile::Name("weight_dequant"), line),
              profile::kE4m3(packed.rows, packed.cols));
  launch_(launch, (numbers + kUnpackNumbers - 1) / kUnpackNumbers,
          [&kernels = kernels_, numbers, from = reinterpret_cast<const std::uint8_t*>(packed.data),
           to = unpacked_ + found->second.at](std::int64_t piece, int) {
            const std::int64_t first = piece * kUnpackNumbers;
            kernels.cast_pool(from + first, std::min(kUnpackNumbers, numbers - first), to + first);
          });
  LinearTask unpacked = task;
  unpacked.weights = &found->second.matrix;
  return unpacked;
}

void Linear::operator()(std::string_view kernel, int layer, const LinearPlan& plan,
                        const Gemm& gemm, profile::Location line) {
  const Launch launch{.kernel = kernel, .symbol = symbol_of(gemm), .layer = layer};
  const GemmOp op(launch_, gemm, line);
  launch_(
      launch, [&plan](Launch& its) { return plan.complete(its); },
      [&plan, &kernels = kernels_](std::int64_t piece, int) { plan.run(kernels, piece); });
}

Linear::Each Linear::begin_each(std::string_view kernel, int layer, std::int64_t count,
                                const LinearTask& one) {
  Each all{.launch = {.kernel = kernel, .layer = layer},
           .gemm = {.kind = Gemm::Kind::kBatched,
                    .count = count,
                    .tokens = one.x.tokens,
                    .rows = one.weights->rows,
                    .cols = one.weights->cols,
                    .format = one.weights->format,
                    .input = one.x.kind}};
  for (std::int64_t i = 0; i < count; ++i) count_in(one, all.launch);
  all.launch.symbol = symbol_of(all.gemm);
  all.part = piece_rows(one);
  all.parts = (one.weights->rows + all.part - 1) / all.part;
  return all;
}

}  // namespace culprit::lab
