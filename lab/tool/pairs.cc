#include "lab/tool/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/near.h"
#include "lab/engine/cores.h"

namespace culprit::lab {
namespace {

// A slice of a large model on one of eight ranks; small ones, whose steps take a millisecond.
constexpr Models kGlm{
    "--preset glm-5 --scheme nvfp4 --tp-shard 0/8 --layers 0,5 --experts 8 --launch eager",
    "--preset tiny-glm-5 --layers 0,5 --launch eager"};
constexpr Models kLlama{"--preset llama-3.1-8b --layers 5 --tp-shard 0/8 --launch eager",
                        "--preset tiny-llama --layers 5 --launch eager"};
constexpr Models kQwen{"--preset qwen3-30b-a3b --scale 0.5 --layers 5 --experts 16 --launch eager",
                       "--preset tiny-qwen3-moe --layers 5 --launch eager"};
constexpr Models alike(std::string_view flags) { return {flags, flags}; }
// On one core less than there are. A step reads more than caches keep: what else runs on the machine
// would decide how much they keep of less, and for how long.
constexpr std::string_view
    kHosted = "--preset qwen3-30b-a3b --scale 0.5 --layers 8 --experts 16 --threads {threads}",
    kTinyHosted = "--preset tiny-qwen3-moe --layers 8 --threads {threads}";
// Of which the output matrix, or the scores that it gives, are much.
constexpr Models kWideHead =
    alike("--preset qwen3-30b-a3b --tp-shard 0/4 --layers 2 --experts 16 --launch eager");
constexpr Models kManyScores =
    alike("--preset qwen3-30b-a3b --scale 0.125 --layers 1 --experts 8 --launch eager");

const std::vector<Draw> kPool{{"pool", 60'000, 240'000}, {"context", 256, 2'048}};
const std::vector<Draw> kTinyPool{{"pool", 60'000, 120'000}, {"context", 64, 256}};

std::vector<Pair> cast_pairs() {
  return {
      {.name = "pool-cast-fused",
       .what = "the whole FP8 pool to BF16 in each layer; attention reads FP8 itself",
       .suspects = {"whole-pool-cast"},
       .option = "fused",
       .model = kGlm,
       .common = "--kv-dtype fp8 --pool-tokens {pool} --context {context}",
       .draws = kPool,
       .tiny_draws = kTinyPool,
       .before = "--strategy pool-cast",
       .after = "--strategy fused"},
      {.name = "pool-cast-gather",
       .what = "the whole FP8 pool to BF16 in each layer; only the rows in use",
       .suspects = {"whole-pool-cast"},
       .option = "gather",
       .model = kGlm,
       .common = "--kv-dtype fp8 --pool-tokens {pool} --context {context}",
       .draws = kPool,
       .tiny_draws = kTinyPool,
       .before = "--strategy pool-cast",
       .after = "--strategy gather-cast"},
      {.name = "pool-tenfold",
       .what = "the whole FP8 pool to BF16 in each layer; the same with a tenth of the pool",
       .suspects = {"whole-pool-cast"},
       .model = kGlm,
       .common = "--kv-dtype fp8 --strategy pool-cast --context {context}",
       .draws = {{"pool", 8'000, 24'000}, {"context", 256, 2'048}},
       .tiny_draws = {{"pool", 8'000, 16'000}, {"context", 64, 256}},
       .before = "--pool-tokens {pool}0",
       .after = "--pool-tokens {pool}",
       .left = 0.1},
  };
}

std::vector<Pair> row_pairs() {
  return {
      {.name = "pool-copy",
       .what = "each layer copies its whole pool; the new rows are written in place",
       .suspects = {"whole-pool-copy"},
       .model = kGlm,
       .common = "--pool-tokens {pool} --context {context}",
       .draws = kPool,
       .tiny_draws = kTinyPool,
       .before = "--fault pool-copy"},
      {.name = "layout-copy",
       .what = "each layer copies the rows in use into one piece; attention takes them as they lie",
       .suspects = {"layout-copy"},
       .model = kLlama,
       .common = "--batch 4 --context {context}",
       .draws = {{"context", 8'000, 24'000}},
       .tiny_draws = {{"context", 4'000, 8'000}},
       .before = "--fault layout-copy"},
      {.name = "kv-bf16",
       .what = "attention bound by a BF16 pool: nobody's fault; the pool in FP8",
       .suspects = {},
       .model = kLlama,
       .common = "--batch 4 --context {context}",
       .draws = {{"context", 20'000, 40'000}},
       .tiny_draws = {{"context", 8'000, 16'000}},
       .before = "--kv-dtype bf16",
       .after = "--kv-dtype fp8",
       .owner = "attention",
       .scale = 0.5},
  };
}

std::vector<Pair> kernel_pairs() {
  return {
      {.name = "weight-dequant",
       .what = "attention's FP8 weights to BF16 before each use; a kernel that reads FP8",
       .suspects = {"weight-dequant"},
       .model = {"--preset llama-3.1-8b --scheme fp8 --layers 5 --tp-shard 0/4 --launch eager",
                 "--preset tiny-llama --scheme fp8 --layers 5 --launch eager"},
       .common = "--context {context}",
       .draws = {{"context", 128, 1'024}},
       .before = "--fault dequantize"},
      {.name = "repeated-read",
       .what = "the output matrix once per request; once for all",
       .suspects = {"repeated-read"},
       .model = kWideHead,
       .common = "--batch {batch} --context {context}",
       .draws = {{"batch", 2, 4}, {"context", 128, 512}},
       .before = "--fault head-per-request"},
      {.name = "single-block",
       .what = "one thread samples for all requests; each thread for some",
       .suspects = {"single-block"},
       .model = kManyScores,
       .common = "--batch {batch} --temperature 0.8 --context {context}",
       .draws = {{"batch", 8, 16}, {"context", 128, 512}},
       .before = "--fault single-block"},
      {.name = "small-kernels",
       .what = "residual, norm, activation and rounding one by one, in a graph: a CPU starts a "
               "kernel within a microsecond, so nobody's fault; fused",
       .suspects = {},
       .model = {"--preset glm-5 --scheme nvfp4 --tp-shard 0/8 --layers 0,5 --experts 8",
                 "--preset tiny-glm-5 --layers 1,11"},
       .common = "--launch graph --context {context}",
       .draws = {{"context", 128, 512}},
       .tiny_draws = {{"context", 16, 64}},
       .before = "--fault small-kernels"},
      {.name = "oversized-grid",
       .what = "norms launched for the largest batch that there might be; for the rows of the step",
       .suspects = {"oversized-grid"},
       .model = kGlm,
       .common = "--context {context}",
       .draws = {{"rows", 400'000, 1'000'000}, {"context", 256, 2'048}},
       .tiny_draws = {{"rows", 100'000, 200'000}, {"context", 64, 256}},
       .before = "--fault grid-rows={rows}"},
      {.name = "blocking-copy",
       .what = "all logits to the host before sampling; only tokens leave the device",
       .suspects = {"blocking-copy"},
       .model = kManyScores,
       .common = "--batch {batch} --context {context}",
       .draws = {{"batch", 16, 32}, {"context", 128, 512}},
       .before = "--fault blocking-copy"},
  };
}

std::vector<Pair> host_pairs() {
  return {
      {.name = "host-launch",
       .what = "the host works before each launch; one launch per step",
       .suspects = {"host-launch"},
       .model = {kHosted, kTinyHosted},
       .common = "--fault host-delay={delay} --context {context}",
       .draws = {{"delay", 500, 900}, {"context", 64, 256}},
       .tiny_draws = {{"delay", 60, 100}},
       .before = "--launch eager",
       .after = "--launch graph"},
      {.name = "host-sync",
       .what = "the host waits for the device behind each layer; it runs ahead",
       .suspects = {"host-sync"},
       .model =
           {"--preset qwen3-30b-a3b --scale 0.125 --layers 16 --experts 16 --threads {threads}",
            kTinyHosted},
       .common = "--launch eager --context {context}",
       .draws = {{"context", 64, 256}},
       .before = "--fault sync-per-layer"},
      {.name = "host-work",
       .what = "the host prepares each step while the device waits; while it works",
       .suspects = {"host-work", "host-sync"},
       .model = kLlama,
       .common = "--context {context}",
       .draws = {{"work", 6'000, 16'000}, {"context", 128, 512}},  // less than the device's time
       .before = "--fault host-work={work}"},
  };
}

std::vector<Pair> step_pairs() {
  return {
      {.name = "graph-missing",
       .what = "no graph beyond a batch; one for every batch that occurs",
       .suspects = {"graph-missing"},
       .model = {kHosted, kTinyHosted},
       .common = "--launch graph --batch {batch} --arrive 6,1,3,16 --fault host-delay={delay} "
                 "--context {context}",
       .draws = {{"batch", 2, 6}, {"delay", 700, 1'200}, {"context", 64, 256}},
       .tiny_draws = {{"delay", 60, 100}},
       .before = "--fault graph-limit={batch}",
       .measure = Measure::kLargest},
      {.name = "prefill",
       .what = "prompts computed between decode steps; elsewhere",
       .suspects = {"prefill-interference"},
       .model = kQwen,
       .common = "--batch 2 --context {context}",
       .draws = {{"prompt", 32, 96}, {"context", 128, 512}},
       .before = "--arrive 5,{prompt},1",
       .measure = Measure::kMean},
      {.name = "step-stall",
       .what = "the host stands still now and then (garbage); never",
       .suspects = {"step-stall"},
       .model = {"--preset tiny-qwen3-moe --layers 8 --launch eager",
                 "--preset tiny-qwen3-moe --layers 5 --launch eager"},
       .common = "--threads {threads} --context {context}",
       .draws = {{"stall", 300, 600}, {"context", 64, 256}},
       .before = "--fault stall={stall}",
       .measure = Measure::kMean},
      {.name = "slow-rank",
       .what =
           "one of two ranks copies its pool in each layer, the other waits for it; neither does",
       .suspects = {"straggler", "whole-pool-copy"},
       .model = {"--preset llama-3.1-8b --scale 0.5 --layers 4 --tp 2",
                 "--preset tiny-llama --layers 5 --tp 2"},
       .common = "--launch eager --pool-tokens {pool} --context {context}",
       .draws = {{"pool", 60'000, 120'000}, {"context", 128, 512}},
       .before = "--fault pool-copy --fault-rank 1"},
  };
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> all;
  for (const auto& some : {cast_pairs(), row_pairs(), kernel_pairs(), host_pairs(), step_pairs()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

// The text with each "{name}" replaced by what was drawn for it.
std::string filled(std::string_view text, const std::map<std::string_view, std::int64_t>& drawn) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{') {
      out += text[at];
      continue;
    }
    const std::size_t end = text.find('}', at);
    out += std::to_string(drawn.at(text.substr(at + 1, end - at - 1)));
    at = end;
  }
  return out;
}

}  // namespace

std::span<const Pair> pairs() {
  static const std::vector<Pair> kAll = all_pairs();
  return kAll;
}

Result<const Pair*> pair_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Pair& pair : pairs()) {
    if (pair.name == name) return &pair;
    names.emplace_back(pair.name);
  }
  return Error{.code = Error::Code::kUsage,
               .what = fmt::format("unknown pair \"{}\"", name),
               .where = {},
               .hint = did_you_mean(name, names, "`culprit lab prove` lists them"),
               .note_code = {}};
}

DrawnPair drawn(const Pair& pair, bool tiny, std::uint64_t seed) {
  const auto cores = static_cast<std::int64_t>(usable_cores().size());
  std::map<std::string_view, std::int64_t> values{
      {"threads", std::max<std::int64_t>(cores - 1, 1)}};
  std::uint64_t place = 0;
  for (const std::vector<Draw>& draws : {pair.draws, tiny ? pair.tiny_draws : std::vector<Draw>{}})
    for (const Draw& draw : draws) {
      const double low = std::log(static_cast<double>(draw.low)),
                   high = std::log(static_cast<double>(draw.high));
      values[draw.name] = std::llround(std::exp(low + (high - low) * uniform(seed, place++)));
    }
  const std::string both =
      fmt::format("{} {} --seed {}", tiny ? pair.model.tiny : pair.model.full, pair.common, seed);
  const auto line = [&](std::string_view own) {
    return filled(own.empty() ? both : fmt::format("{} {}", both, own), values);
  };
  return {line(pair.before), line(pair.after)};
}

}  // namespace culprit::lab
