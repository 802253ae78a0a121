// `culprit lab score`: the scores of the next token behind each token of a text, for whoever compares
// engines. Decoded one token at a time, as a step does it.
#include <fmt/format.h>

#include <span>

#include "base/text.h"
#include "lab/engine/cores.h"
#include "lab/engine/forward.h"
#include "lab/files/output_file.h"
#include "lab/oracle/oracle.h"
#include "lab/tool/commands.h"
#include "lab/tool/model.h"

namespace culprit::lab {
namespace {

Status check_tokens(const Options& options, const Weights& weights) {
  for (const std::int32_t token : options.tokens)
    if (token >= weights.embedding.rows)
      return Error{.code = Error::Code::kUsage,
                   .what = fmt::format("token {} is not in the vocabulary", token),
                   .where = "--tokens",
                   .hint = fmt::format("tokens are 0 to {}", weights.embedding.rows - 1),
                   .note_code = {}};
  return Ok{};
}

Status write_row(OutputFile& file, std::span<const float> scores) {
  return file.write(std::as_bytes(scores));
}

Status score_fast(const Options& options, const Weights& weights, OutputFile& file) {
  const auto length = static_cast<std::int64_t>(options.tokens.size());
  PoolShape shape = pool_shape(weights);
  shape.tokens = length;
  shape.format = options.kv_format;
  TRY(Pool pool, Pool::make(shape, 1, length));
  Stream stream(options.threads > 0 ? options.threads : static_cast<int>(usable_cores().size()));
  Launcher launch(stream);
  TRY(const auto forward,
      Forward::make(weights, pool, kernels(options.isa.value_or(best_isa())), launch,
                    Reading::kFused, {.rows = 1, .logits = 1, .requests = 1, .longest = length}));
  Lease lease = pool.lease();
  pool.reserve(lease, length);
  StepRow row{.slots = lease.slots, .logits = true};
  for (; row.position < length; ++row.position) {
    row.token = options.tokens[static_cast<std::size_t>(row.position)];
    (*forward)(forward->bring_in(launch, {&row, 1}));
    launch.synchronize();
    TRY([[maybe_unused]] const Ok written, write_row(file, forward->logits(0)));
  }
  return Ok{};
}

Status score_oracle(const Options& options, const Weights& weights, OutputFile& file,
                    Screen& screen) {
  Oracle oracle(weights);
  auto sequence = oracle.begin();
  for (const std::int32_t token : options.tokens) {
    screen.progress(fmt::format("token {} of {}", sequence.length + 1, options.tokens.size()));
    const auto exact = oracle.next(sequence, token);
    const std::vector<float> scores(exact.begin(), exact.end());
    TRY([[maybe_unused]] const Ok written, write_row(file, scores));
  }
  return Ok{};
}

}  // namespace

Status score(const Options& options, Screen& screen) {
  screen.progress("loading the model");
  LoadedModel model;
  TRY([[maybe_unused]] const Ok loaded, load_model(options, model));
  const Weights& weights = *model.weights;
  TRY([[maybe_unused]] const Ok checked, check_tokens(options, weights));
  TRY(OutputFile file, OutputFile::create(options.output));
  Status scored = options.oracle ? score_oracle(options, weights, file, screen)
                                 : score_fast(options, weights, file);
  if (!scored.ok()) return scored;
  TRY([[maybe_unused]] const Ok committed, file.commit());
  return screen.answer(fmt::format("{}: {} rows of {} scores, float32\n", options.output,
                                   options.tokens.size(), text::count(weights.lm_head.rows)),
                       {});
}

}  // namespace culprit::lab
