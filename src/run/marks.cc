#include "run/marks.h"

#include <charconv>
#include <limits>

namespace culprit::run {
namespace {

using Number = std::optional<std::int64_t>;

// Reads a name from left to right; a failed take() leaves the rest as it was.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  Number number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  std::string_view word() {  // letters, digits and _
    std::size_t n = 0;
    while (n < rest_.size() && (is_letter(rest_[n]) || rest_[n] == '_')) ++n;
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  std::string_view rest() const { return rest_; }

 private:
  static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  }
  std::string_view rest_;
};

// The number behind "key=" where key starts a word: "bs" must not be found in "raw_bs=4".
Number value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '[') continue;
    Reader reader(text.substr(at + key.size()));
    if (reader.take("=")) return reader.number();
  }
  return std::nullopt;
}

Number sum(Number a, Number b) {
  if (!a || !b) return std::nullopt;
  if (*a > std::numeric_limits<std::int64_t>::max() - *b) return std::nullopt;
  return *a + *b;
}

StepKind sglang_kind(std::string_view mode) {
  if (mode == "DECODE") return StepKind::kDecode;
  if (mode == "EXTEND" || mode == "SPLIT_PREFILL" || mode == "PREBUILT") return StepKind::kPrefill;
  if (mode == "MIXED") return StepKind::kMixed;
  if (mode == "IDLE") return StepKind::kIdle;
  if (mode == "TARGET_VERIFY") return StepKind::kVerify;
  if (mode.starts_with("DRAFT_")) return StepKind::kDraft;
  return StepKind::kUnknown;
}

// step[DECODE bs=64], step[EXTEND bs=2 toks=14721], step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]
std::optional<StepMark> read_sglang(std::string_view name) {
  Reader reader(name);
  if (!reader.take("step[")) return std::nullopt;
  const std::string_view mode = reader.word();
  if (mode.empty()) return std::nullopt;
  StepMark mark{MarkLevel::kEngine, sglang_kind(mode), value_of(name, "raw_bs"),
                value_of(name, "toks")};
  if (!mark.batch) mark.batch = value_of(name, "bs");  // bs is padded where raw_bs is given
  if (!mark.tokens && mark.kind == StepKind::kDecode) mark.tokens = mark.batch;
  return mark;
}

// "(14721)", "(888_788544)" or "(sq8155sk8430...)": the number of query tokens.
Number tokens_in_parens(Reader& reader) {
  if (!reader.take("(")) return std::nullopt;
  reader.take("sq");
  const Number tokens = reader.number();
  while (!reader.rest().empty() && !reader.take(")")) reader.take(reader.rest().substr(0, 1));
  return tokens;
}

// execute_context_2(14721)_generation_0(0), execute_8192_context_9(sq..)_generation_37(sq..)
std::optional<StepMark> read_vllm(std::string_view name) {
  Reader reader(name);
  if (!reader.take("execute_")) return std::nullopt;
  const Number total = reader.number();
  if (total && !reader.take("_")) return std::nullopt;
  if (!reader.take("context_")) return std::nullopt;
  const Number contexts = reader.number();
  const Number context_tokens = tokens_in_parens(reader);
  if (!contexts || !reader.take("_generation_")) return std::nullopt;
  const Number generations = reader.number();
  if (!generations) return std::nullopt;
  const Number generation_tokens = tokens_in_parens(reader);
  StepMark mark;
  mark.batch = sum(contexts, generations);
  mark.tokens = total ? total : sum(context_tokens, generation_tokens);
  mark.kind = *contexts > 0 ? (*generations > 0 ? StepKind::kMixed : StepKind::kPrefill)
                            : (*generations > 0 ? StepKind::kDecode : StepKind::kIdle);
  return mark;
}

// prefill[bs=2 tok=4096 ctx=[..]], decode[bs=117/128 tok=117 d=1]: real / captured batch size
std::optional<StepMark> read_atom(std::string_view name) {
  const bool decode = name.starts_with("decode[");
  if (!decode && !name.starts_with("prefill[")) return std::nullopt;
  const Number batch = value_of(name, "bs");
  if (!batch) return std::nullopt;
  return StepMark{MarkLevel::kEngine, decode ? StepKind::kDecode : StepKind::kPrefill, batch,
                  value_of(name, "tok")};
}

// [Executor] _forward_step 12: 2 ctx reqs, 900 ctx tokens, 32 gen reqs; older versions leave out the
// number of the iteration or the tokens
std::optional<StepMark> read_tensorrt_llm(std::string_view name) {
  Reader reader(name);
  if (!reader.take("[Executor] _forward_step")) return std::nullopt;
  if (reader.take(" ")) reader.number();
  if (!reader.take(": ")) return std::nullopt;
  const Number contexts = reader.number();
  if (!contexts || !reader.take(" ctx reqs, ")) return std::nullopt;
  Number tokens = reader.number(), generations = tokens;
  if (reader.take(" ctx tokens, "))
    generations = reader.number();
  else
    tokens = *contexts == 0 ? Number(0) : std::nullopt;
  if (!generations || !reader.take(" gen reqs")) return std::nullopt;
  const bool context = *contexts > 0, generation = *generations > 0;
  return StepMark{MarkLevel::kEngine,
                  context ? (generation ? StepKind::kMixed : StepKind::kPrefill)
                          : (generation ? StepKind::kDecode : StepKind::kIdle),
                  sum(contexts, generations), sum(tokens, generations)};
}

}  // namespace

std::optional<StepMark> read_mark(std::string_view name) {
  if (auto mark = read_sglang(name)) return mark;
  if (auto mark = read_vllm(name)) return mark;
  if (auto mark = read_atom(name)) return mark;
  if (auto mark = read_tensorrt_llm(name)) return mark;
  Reader reader(name);
  if (reader.take("ProfilerStep#")) return StepMark{MarkLevel::kGeneric, {}, {}, {}};
  if (name == "scheduler.run_batch" || name == "run_batch" ||
      name.ends_with("gpu_model_runner: forward"))
    return StepMark{MarkLevel::kGeneric, {}, {}, {}};
  if (reader.take("execute_diffusion_"))
    return StepMark{MarkLevel::kEngine, StepKind::kUnknown, reader.number(), {}};
  if (reader.take("capture_")) {  // capture_32_FULL, capture_128_decode
    if (const Number size = reader.number()) return StepMark{MarkLevel::kCapture, {}, size, {}};
  }
  return std::nullopt;
}

}  // namespace culprit::run
