// `culprit lab check`: every kernel against its reference on every instruction set of this machine, and
// the engine that is made of them against the float64 oracle.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/engine/engine.h"
#include "lab/kernels/check.h"
#include "lab/oracle/oracle.h"
#include "lab/tool/commands.h"

namespace culprit::lab {
namespace {

struct Checked {
  Isa isa;
  std::vector<KernelCheck> kernels, models;

  bool ok() const {
    const auto well = [](const KernelCheck& check) { return check.ok(); };
    return std::all_of(kernels.begin(), kernels.end(), well) &&
           std::all_of(models.begin(), models.end(), well);
  }
};

// F32 weights round nothing, so what is left of a difference are sums in float, and numbers of the
// FP8 pool that these bring to the other side of a rounding border.
constexpr double kModelTolerance = 1e-3;

Result<KernelCheck> check_model(const std::string& name, Isa isa) {
  TRY(ModelConfig config, preset(name));
  config.layers = 2;
  TRY(const RandomWeights random, random_weights({config, Scheme::kF32, 1}));
  EngineOptions options;
  options.isa = isa;
  options.pool_format = KvFormat::kE4m3;
  options.pool_tokens = options.longest = 64;
  TRY(const auto engine, Engine::make(random.weights, options));
  Oracle oracle(random.weights, Oracle::Pool::kE4m3);
  auto sequence = oracle.begin();
  KernelCheck result{.kernel = name, .format = "f32, fp8 pool", .tolerance = kModelTolerance};
  Request request;
  request.new_tokens = 1;
  for (std::uint64_t i = 0; i < 24; ++i) {
    request.prompt.push_back(static_cast<std::int32_t>(
        uniform(1, i) * static_cast<double>(random.weights.embedding.rows)));
    const auto exact = oracle.next(sequence, request.prompt.back());
    if (i % 8 != 7) continue;
    TRY(const std::size_t number, engine->submit(request));
    while (!engine->finished(number)) static_cast<void>(engine->step());
    const auto logits = engine->last_logits(number);
    double errors = 0, squares = 0;
    for (std::size_t j = 0; j < exact.size(); ++j) {
      const double error = static_cast<double>(logits[j]) - exact[j];
      errors += error * error;
      squares += exact[j] * exact[j];
    }
    const double error = std::sqrt(errors / squares);
    result.worst = std::isfinite(error) ? std::max(result.worst, error) : error;
    result.numbers += static_cast<std::int64_t>(exact.size());
  }
  return result;
}

std::string text_of(const std::vector<Checked>& all) {
  std::string out;
  for (const Checked& checked : all) {
    std::vector<std::vector<std::string>> rows{
        {"kernel", "format", "numbers", "worst error", "tolerance", ""}};
    for (const auto* part : {&checked.kernels, &checked.models})
      for (const KernelCheck& check : *part)
        rows.push_back({check.kernel, check.format, text::count(check.numbers),
                        fmt::format("{:.1e}", check.worst), fmt::format("{:.1e}", check.tolerance),
                        check.ok() ? "ok" : "MISSED"});
    out += fmt::format("{}\n{}\n", isa_name(checked.isa), table(rows, 2));
  }
  std::int64_t checks = 0, missed = 0;
  for (const Checked& checked : all)
    for (const auto* part : {&checked.kernels, &checked.models})
      for (const KernelCheck& check : *part) {
        ++checks;
        missed += check.ok() ? 0 : 1;
      }
  return out + (missed == 0 ? fmt::format("all {} checks passed\n", checks)
                            : fmt::format("{} of {} checks missed\n", missed, checks));
}

std::string json_of(const std::vector<Checked>& all, bool ok) {
  nlohmann::ordered_json out = {{"kind", "lab-check"}, {"ok", ok}};
  for (const Checked& checked : all)
    for (const auto* part : {&checked.kernels, &checked.models})
      for (const KernelCheck& check : *part)
        out["checks"].push_back({{"isa", isa_name(checked.isa)},
                                 {"kernel", check.kernel},
                                 {"format", check.format},
                                 {"numbers", check.numbers},
                                 {"worst_error", check.worst},
                                 {"tolerance", check.tolerance},
                                 {"ok", check.ok()}});
  return out.dump(1) + "\n";
}

}  // namespace

Result<bool> check(const Options& options, Screen& screen) {
  std::vector<Checked> all;
  bool ok = true;
  for (const Isa isa : options.isa ? std::vector<Isa>{*options.isa} : available_isas()) {
    if (isa == Isa::kReference && !options.isa) continue;  // it would be held against itself
    screen.progress(fmt::format("checking the kernels of {}", isa_name(isa)));
    Checked& checked = all.emplace_back(Checked{isa, check_kernels(isa), {}});
    for (const std::string name :
         {"tiny-glm-5", "tiny-deepseek-v3", "tiny-qwen3-moe", "tiny-llama"}) {
      screen.progress(fmt::format("checking {} with {}", name, isa_name(isa)));
      TRY(const KernelCheck model, check_model(name, isa));
      checked.models.push_back(model);
    }
    ok = ok && checked.ok();
  }
  const Status said = screen.answer(text_of(all), json_of(all, ok));
  if (!said.ok()) return said.error();
  return ok;
}

}  // namespace culprit::lab
