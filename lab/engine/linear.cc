#include "lab/engine/linear.h"

#include <algorithm>

namespace culprit::lab {
namespace {

// Weight bytes of a piece: some 5 us of a core at a batch of 1, and a fraction of its L2 cache.
constexpr std::int64_t kPieceBytes = 64 << 10;
// A row of weights serves this many tokens in the time in which it is read; more need smaller pieces.
constexpr std::int64_t kTokensPerRead = 4;
constexpr std::int64_t kRowsTogether = 16;  // kernels work on a few rows at once

std::int64_t piece_rows(const LinearTask& task) {
  const std::int64_t work =
      task.weights->row_bytes() * std::max(task.x.tokens / kTokensPerRead, std::int64_t{1});
  const std::int64_t rows = kPieceBytes / std::max<std::int64_t>(work, 1);
  return std::max(rows / kRowsTogether, std::int64_t{1}) * kRowsTogether;
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

void Linear::operator()(std::string_view kernel, int layer, std::span<const LinearTask> tasks) {
  Launch launch{.kernel = kernel, .format = {}, .layer = layer};
  cut_.clear();
  for (const LinearTask& task : tasks) {
    const bool idle = task.weights->empty() || task.x.tokens == 0;
    cut_.add(idle ? 0 : task.weights->rows, idle ? 1 : piece_rows(task));
    if (idle) continue;
    if (launch.format.empty()) launch.format = format_name(task.weights->format);
    launch.read += task.weights->bytes() + task.x.tokens * prepared_bytes(task.x.kind, task.x.cols);
    launch.written += task.x.tokens * task.weights->rows * static_cast<std::int64_t>(sizeof(float));
    launch.tokens = std::max(launch.tokens, task.x.tokens);
    launch.rows += task.weights->rows;
    launch.cols = task.weights->cols;
  }
  launch_(launch, cut_.pieces(), [&](std::int64_t piece, int) {
    const Cut::Part part = cut_[piece];
    const LinearTask& task = tasks[static_cast<std::size_t>(part.item)];
    kernels_.linear(*task.weights, task.x, part.begin, part.end, task.y, task.y_stride);
  });
}

}  // namespace culprit::lab
