// Step marks: names under which engines record a step, read into kind, batch and tokens. Grammars:
// PyTorch (ProfilerStep#), SGLang (step[...], scheduler.run_batch), vLLM (execute_...,
// gpu_model_runner: forward), TensorRT-LLM ([Executor] _forward_step), ATOM (prefill[...],
// decode[...]), xDiT (execute_diffusion_...). A name of none of these grammars is no step mark.
#pragma once

#include <optional>
#include <string_view>

#include "run/run.h"

namespace culprit::run {

enum class MarkLevel : std::uint8_t {
  kEngine,   // one forward step, and what kind it is
  kGeneric,  // a range around steps that tells no kind: yields to engine marks when it holds several
  kCapture,  // recording of a graph: a sign of a capture trace, never a step
};

struct StepMark {
  MarkLevel level = MarkLevel::kEngine;
  StepKind kind = StepKind::kUnknown;
  std::optional<std::int64_t> batch, tokens;  // batch: requests; tokens: computed in the step
};

std::optional<StepMark> read_mark(std::string_view name);

}  // namespace culprit::run
