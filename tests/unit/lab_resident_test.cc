// A copy of the weights is all of them, and the same.
#include "lab/engine/resident.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/model/random_model.h"
#include "lab/model/slots.h"

namespace culprit::lab {
namespace {

std::vector<float> values_of(const Matrix& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows * matrix.cols));
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    dequantize_row(matrix, row, values.data() + row * matrix.cols);
  return values;
}

bool within(const Pages& pages, const std::byte* data) {
  return data >= pages.data() && data < pages.data() + pages.bytes();
}

// Every matrix that the model's list of tensors names.
std::set<Matrix*> named_matrices(Weights& weights) {
  std::set<Matrix*> all;
  std::vector<Slot> slots = outer_slots(weights, Naming::kHf);
  for (std::int64_t layer = 0; layer < weights.config.layers; ++layer)
    for (Slot& slot : layer_slots(weights, layer, Naming::kHf)) slots.push_back(std::move(slot));
  for (const Slot& slot : slots)
    if (slot.matrix != nullptr) all.insert(slot.matrix);
  return all;
}

void expect_copied(const char* name, Scheme scheme, bool tied) {
  SCOPED_TRACE(name);
  auto config = preset(name);
  ASSERT_TRUE(config.ok());
  config->layers = 2;
  config->tied_embeddings = tied;
  auto random = random_weights({*config, scheme, 1});
  ASSERT_TRUE(random.ok());
  Weights weights = random->weights;
  Workers workers(2);
  const auto pages = make_resident(weights, workers);
  ASSERT_TRUE(pages.ok());

  const std::vector<Matrix*> copies = matrices_of(weights),
                             originals = matrices_of(random->weights);
  ASSERT_EQ(copies.size(), originals.size());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_TRUE(within(*pages, copies[i]->data));
    EXPECT_EQ(copies[i]->block_scales != nullptr, originals[i]->block_scales != nullptr);
    EXPECT_TRUE(copies[i]->block_scales == nullptr || within(*pages, copies[i]->block_scales));
    EXPECT_EQ(values_of(*copies[i]), values_of(*originals[i]));
  }
  for (Matrix* matrix : named_matrices(weights))
    EXPECT_TRUE(matrix == &weights.embedding || within(*pages, matrix->data));
  EXPECT_EQ(within(*pages, weights.embedding.data), tied);
  EXPECT_EQ(weights.embedding.data == weights.lm_head.data, tied);
  EXPECT_EQ(values_of(weights.embedding), values_of(random->weights.embedding));
}

TEST(Resident, HoldsEveryWeight) {
  expect_copied("tiny-glm-5", Scheme::kNvfp4, false);
  expect_copied("tiny-deepseek-v3", Scheme::kFp8, false);
  expect_copied("tiny-qwen3-moe", Scheme::kQ8_0, false);
  expect_copied("tiny-llama", Scheme::kBf16, true);
}

}  // namespace
}  // namespace culprit::lab
