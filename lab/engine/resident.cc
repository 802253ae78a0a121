#include "lab/engine/resident.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "lab/engine/memory.h"

namespace culprit::lab {
namespace {

// Rows of bytes out of a larger rectangle.
struct Copy {
  const std::byte* from = nullptr;
  std::int64_t pitch = 0;  // from one row to the next in `from`
  std::byte* to = nullptr;
  std::int64_t bytes = 0, rows = 0;  // bytes of a row

  void operator()() const {
    if (pitch == bytes) {
      std::memcpy(to, from, static_cast<std::size_t>(rows * bytes));
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(to + row * bytes, from + row * pitch, static_cast<std::size_t>(bytes));
  }
};

// What a part of a matrix is made of: values, and block scales where it has some.
struct Copies {
  Copy data, scales;
};
Copies copies_of(const Matrix& matrix, const Share& part) {
  Matrix columns = matrix;  // of the part's width
  columns.cols = part.col;
  const std::int64_t before = columns.row_bytes();
  columns.cols = part.cols;
  Copies out;
  out.data = {matrix.data + part.row * matrix.row_bytes() + before, matrix.row_bytes(), nullptr,
              columns.row_bytes(), part.rows};
  if (matrix.block_scales == nullptr) return out;
  const bool wide = matrix.format == Format::kE4m3;  // floats of squares, not bytes of rows
  const std::int64_t down = wide ? matrix.scale_block : 1;
  const std::int64_t across = wide ? matrix.scale_block : block_values(matrix.format);
  const std::int64_t size = wide ? static_cast<std::int64_t>(sizeof(float)) : 1;
  const auto blocks = [](std::int64_t n, std::int64_t block) { return (n + block - 1) / block; };
  const std::int64_t pitch = blocks(matrix.cols, across) * size;
  out.scales = {matrix.block_scales + part.row / down * pitch + part.col / across * size, pitch,
                nullptr, blocks(part.cols, across) * size, blocks(part.rows, down)};
  return out;
}

struct Job {
  Matrix* matrix = nullptr;
  Share part;
};

// The matrices that are there, cut for a rank; those of other ranks become empty.
Result<std::vector<Job>> jobs_of(Weights& weights, const Shard& shard) {
  const bool split = !weights.layers.empty() && !weights.layers.front().mla.k_b.empty();
  const Naming naming = split ? Naming::kGguf : Naming::kHf;
  std::vector<Slot> slots = outer_slots(weights, naming);
  for (std::int64_t layer = 0; layer < std::ssize(weights.layers); ++layer)
    for (Slot& slot : layer_slots(weights, layer, naming)) slots.push_back(std::move(slot));
  std::vector<Job> jobs;
  for (const Slot& slot : slots) {
    if (slot.matrix == nullptr || slot.matrix->empty()) continue;
    TRY(const Share part, share_of(weights.config, slot, *slot.matrix, shard));
    if (part.empty())
      *slot.matrix = {};
    else if (slot.matrix == &weights.embedding && !weights.config.tied_embeddings)
      weights.embedding = weights.embedding.slice(part.row, part.rows);
    else
      jobs.push_back({slot.matrix, part});
  }
  return jobs;
}

std::vector<Copies> lay_out(const std::vector<Job>& jobs, Carver& carver) {
  std::vector<Copies> all;
  for (const Job& job : jobs) {
    Copies& copies = all.emplace_back(copies_of(*job.matrix, job.part));
    for (Copy* const copy : {&copies.data, &copies.scales})
      if (copy->rows > 0) copy->to = carver.take<std::byte>(copy->rows * copy->bytes);
  }
  return all;
}

}  // namespace

Result<Pages> make_resident(Weights& weights, Workers& workers, const Shard& shard) {
  TRY(const std::vector<Job> jobs, jobs_of(weights, shard));
  Carver counter(nullptr);
  lay_out(jobs, counter);
  const std::int64_t most = machine_bytes();
  if (most > 0 && counter.bytes() > most)
    return Error{.code = Error::Code::kUnusable,
                 .what = fmt::format("the weights take {}, this machine has {}",
                                     text::bytes(counter.bytes()), text::bytes(most)),
                 .where = "memory",
                 .hint = "more ranks on more machines hold less each",
                 .note_code = {}};
  TRY(Pages pages, Pages::reserve(counter.bytes()));
  Carver carver(pages.data());
  const std::vector<Copies> copies = lay_out(jobs, carver);
  workers.run(static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    copies[at].data();
    if (copies[at].scales.rows > 0) copies[at].scales();
    Matrix& matrix = *jobs[at].matrix;
    matrix.rows = jobs[at].part.rows;
    matrix.cols = jobs[at].part.cols;
    matrix.data = copies[at].data.to;
    if (matrix.block_scales != nullptr) matrix.block_scales = copies[at].scales.to;
  });
  if (weights.config.tied_embeddings) weights.lm_head = weights.embedding;
  return pages;
}

}  // namespace culprit::lab
