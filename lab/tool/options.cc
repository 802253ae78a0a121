#include "lab/tool/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/near.h"
#include "base/usage.h"
#include "lab/tool/lab.h"
#include "lab/tool/pairs.h"

namespace culprit::lab {
namespace {

constexpr unsigned kToRun = 1, kToBench = 2, kToMake = 4, kToCheck = 8, kToScore = 16,
                   kToProve = 32, kToFaults = 64;
constexpr unsigned kToEngine = kToRun | kToBench, kToModels = kToEngine | kToMake | kToScore;

struct CommandRow {
  Command command;
  std::string_view name, summary, details;
  unsigned bit;
};

constexpr CommandRow kCommands[] = {
    {Command::kRun, "run", "decode: token ids in, token ids and tokens/s out",
     "Runs a model of yours (--model), or a random one of a known shape (--preset), on the prompt "
     "that --tokens gives or --prompt-length draws. With --batch as many requests run at once, "
     "each "
     "with a prompt and a seed of its own.\n"
     "  culprit lab run --preset tiny-glm-5 --prompt-length 64 --new 32 --seed 7\n"
     "  culprit lab run --model DIR --tokens 1,2,3 --new 64 --kv-dtype fp8\n"
     "  culprit lab run --preset tiny-glm-5 --prompt-length 64 --tp 2",
     kToRun},
    {Command::kBench, "bench", "what a decode step costs: reading strategies x batch x context",
     "Times decode steps for each strategy, batch and context, and says how many bytes each kernel "
     "moves and at which share of the read or copy bandwidth measured in the same run. Contexts "
     "are "
     "drawn, not computed; the tokens behind them run for real.\n"
     "  culprit lab bench --preset glm-5 --scheme nvfp4 --tp-shard 0/8 --layers 3,3 \\\n"
     "      --kv-dtype fp8 --pool-tokens 495552",
     kToBench},
    {Command::kScore, "score", "the scores of the next token behind each token of a text",
     "Writes one row of float32 scores per token of --tokens, in order, to the file that -o names: "
     "what comparing engines takes. With --oracle they are those of the slow float64 engine, whose "
     "cache rounds nothing.\n"
     "  culprit lab score --model tiny.gguf --tokens 1,2,3 -o scores.f32",
     kToScore},
    {Command::kMakeModel, "make-model", "write a random checkpoint that behaves like a real one",
     "The same seed gives the same values in either container and in every scheme of weights.\n"
     "  culprit lab make-model --preset tiny-deepseek-v3 --format gguf -o tiny.gguf",
     kToMake},
    {Command::kCheck, "check", "hold every kernel against its reference on this machine",
     "Runs every kernel on every instruction set that this machine has, and whole models against "
     "the float64 oracle. Exit status 1 if one misses its tolerance.",
     kToCheck},
    {Command::kProve, "prove", "hold the tool's predictions against what a fix measures",
     "Runs each fault and its fix for real. The fault is recorded, `culprit` reads the trace in a "
     "process of its own that is told nothing else, and what it names and predicts is held against "
     "the measured fix. Sizes are drawn anew in each run. Exit status 1 if it names another cause "
     "in one of them. Without names or --all: lists the pairs. Names stand in front of --json.\n"
     "  culprit lab prove pool-cast-fused\n"
     "  culprit lab prove --all --runs 3",
     kToProve},
    {Command::kFaults, "faults", "what --fault switches on",
     "Each is work that the engine does for real; none changes a token.", kToFaults},
};

using Names = std::vector<std::string>;
using Apply = Status (*)(Options& options, std::string_view value);

struct Flag {
  std::string_view name;
  std::string_view value;  // metavariable; empty: takes none; in brackets: may be left out
  unsigned commands;
  std::string_view help;
  Apply apply;
  Names (*words)() = nullptr;  // what the value may be, for completions
};

Result<std::int64_t> whole(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return usage(fmt::format("\"{}\" is not right", text),
                 fmt::format("a whole number from {} to {}", least, most));
  return value;
}

constexpr std::int64_t kMost = std::int64_t{1} << 24;

Status set(std::int64_t& field, std::string_view text, std::int64_t least = 1) {
  TRY(field, whole(text, least, kMost));
  return Ok{};
}

Status set(double& field, std::string_view text, double least, double most) {
  const std::string copy(text);
  char* end = nullptr;
  field = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != 0 || !(field >= least && field <= most))
    return usage(fmt::format("\"{}\" is not right", text),
                 fmt::format("a number from {} to {}", least, most));
  return Ok{};
}

// The words between commas; none is empty.
Result<std::vector<std::string_view>> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    if (comma == first) return usage(fmt::format("\"{}\" has an empty place", text), "as in 1,2,3");
    out.push_back(text.substr(first, comma - first));
    first = comma + 1;
  }
  return out;
}

Status set_list(std::vector<std::int64_t>& field, std::string_view text, std::int64_t least) {
  TRY(const auto parts, words(text));
  field.clear();
  for (const std::string_view part : parts) {
    TRY(const std::int64_t value, whole(part, least, kMost));
    field.push_back(value);
  }
  return Ok{};
}

Status set_tokens(Options& options, std::string_view text) {
  TRY(const auto parts, words(text));
  options.tokens.clear();
  for (const std::string_view part : parts) {
    TRY(const std::int64_t token, whole(part, 0, std::numeric_limits<std::int32_t>::max()));
    options.tokens.push_back(static_cast<std::int32_t>(token));
  }
  return Ok{};
}

// "N", or "D,M": D dense layers, M with experts.
Status set_layers(Options& options, std::string_view text) {
  std::vector<std::int64_t> parts;
  TRY([[maybe_unused]] const Ok read, set_list(parts, text, 0));
  if (parts.size() > 2 || parts[0] + parts.back() < 1)
    return usage(fmt::format("\"{}\" is not right", text),
                 "--layers N, or --layers D,M: D dense layers and M with experts");
  if (parts.size() == 2) options.resize.dense_layers = parts[0];
  options.resize.layers = parts.size() == 2 ? parts[0] + parts[1] : parts[0];
  return Ok{};
}

Status set_shard(Options& options, std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    return usage(fmt::format("\"{}\" is not right", text), "RANK/OF, as in 0/8");
  TRY(options.shard.of, whole(text.substr(slash + 1), 1, 1024));
  TRY(options.shard.rank, whole(text.substr(0, slash), 0, options.shard.of - 1));
  return Ok{};
}

Status set_ranks(std::int64_t& field, std::string_view text) {
  TRY(field, whole(text, 1, 1024));
  return Ok{};
}

Status set_readings(Options& options, std::string_view text) {
  TRY(const auto parts, words(text));
  options.readings.clear();
  for (const std::string_view part : parts) {
    TRY(const Reading reading, reading_named(part));
    options.readings.push_back(reading);
  }
  return Ok{};
}

Status set_kv(Options& options, std::string_view text) {
  if (text != "bf16" && text != "fp8" && text != "fp8_e4m3")
    return usage(fmt::format("unknown KV dtype \"{}\"", text),
                 did_you_mean(text, {"bf16", "fp8", "fp8_e4m3"}, "bf16 or fp8"));
  options.kv_format = text == "bf16" ? KvFormat::kBf16 : KvFormat::kE4m3;
  return Ok{};
}

Status set_container(Options& options, std::string_view text) {
  if (text != "safetensors" && text != "gguf")
    return usage(fmt::format("unknown format \"{}\"", text),
                 did_you_mean(text, {"safetensors", "gguf"}, "safetensors or gguf"));
  options.container = text == "gguf" ? ContainerKind::kGguf : ContainerKind::kSafetensors;
  return Ok{};
}

Status set_launch(Options& options, std::string_view text) {
  if (text != "eager" && text != "graph")
    return usage(fmt::format("unknown way to launch \"{}\"", text),
                 did_you_mean(text, {"eager", "graph"}, "eager or graph"));
  options.launch = text == "graph" ? LaunchMode::kGraph : LaunchMode::kEager;
  return Ok{};
}

Status set_arrivals(Options& options, std::string_view text) {
  std::vector<std::int64_t> parts;
  TRY([[maybe_unused]] const Ok read, set_list(parts, text, 0));
  if (parts.size() < 3 || parts.size() > 4 || parts[0] < 1 || parts[1] < 1 || parts[2] < 1)
    return usage(fmt::format("\"{}\" is not right", text),
                 "EVERY,PROMPT,ANSWER: 8,256,1 for a prompt of 256 tokens every 8 steps");
  options.arrivals = {parts[0], parts[1], parts[2], parts.size() == 4 ? parts[3] : 0};
  return Ok{};
}

Names fault_names() {
  Names names;
  for (const FaultRow& row : fault_rows())
    names.push_back(std::string(row.name) + (row.amount != nullptr ? "=" : ""));
  return names;
}

constexpr Flag kFlags[] = {
    {"--model", "PATH", kToEngine | kToScore,
     "a checkpoint: a folder of safetensors, or a .gguf file",
     [](Options& o, std::string_view v) -> Status {
       o.model = v;
       return Ok{};
     }},
    {"--preset", "NAME", kToModels, "a random model of this shape; `culprit lab --help` lists them",
     [](Options& o, std::string_view v) -> Status {
       o.preset = v;
       return Ok{};
     },
     preset_names},
    {"--scheme", "NAME", kToModels, "what a random model's weights are kept in; bf16 by default",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.scheme, scheme_named(v));
       return Ok{};
     },
     scheme_names},
    {"--layers", "N|D,M", kToModels, "N layers of the preset; D dense ones and M with experts",
     set_layers},
    {"--experts", "N", kToModels, "N experts in a layer of the preset",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.resize.experts, whole(v, 1, 1024));
       return Ok{};
     }},
    {"--scale", "F", kToModels, "the preset's widths times F",
     [](Options& o, std::string_view v) { return set(o.resize.scale, v, 0.001, 16); }},
    {"--tp-shard", "R/N", kToEngine, "the share of rank R of N of a random model, by itself",
     set_shard},
    {"--seed", "N", kToModels | kToProve, "of random weights, prompts and draws",
     [](Options& o, std::string_view v) -> Status {
       o.seeded = true;
       TRY(const std::int64_t seed, whole(v, 0, std::numeric_limits<std::int64_t>::max()));
       o.seed = static_cast<std::uint64_t>(seed);
       return Ok{};
     }},
    {"--tokens", "LIST", kToRun | kToScore, "the prompt, as token ids: 1,2,3", set_tokens},
    {"--prompt-length", "N", kToRun, "a prompt of N random tokens",
     [](Options& o, std::string_view v) { return set(o.prompt_length, v); }},
    {"--new", "N", kToRun, "tokens to generate; 32 by default",
     [](Options& o, std::string_view v) { return set(o.new_tokens, v); }},
    {"--batch", "LIST", kToEngine, "requests at once; bench takes several numbers: 1,8,32",
     [](Options& o, std::string_view v) { return set_list(o.batch, v, 1); }},
    {"--context", "LIST", kToBench, "tokens in front of each step; 1024 by default",
     [](Options& o, std::string_view v) { return set_list(o.context, v, 0); }},
    {"--steps", "N", kToBench, "steps that count, behind two that do not; 16 by default",
     [](Options& o, std::string_view v) { return set(o.steps, v); }},
    {"--arrive", "E,P,A[,C]", kToBench,
     "every E steps a request comes in, computes P prompt tokens (behind a drawn context of C) and "
     "answers with A",
     set_arrivals},
    {"--temperature", "T", kToEngine, "draw tokens; without it the best one is taken",
     [](Options& o, std::string_view v) { return set(o.sampling.temperature, v, 0, 1000); }},
    {"--top-k", "N", kToRun, "draw among the N best",
     [](Options& o, std::string_view v) { return set(o.sampling.top_k, v); }},
    {"--top-p", "P", kToRun, "draw among the fewest that reach this probability",
     [](Options& o, std::string_view v) { return set(o.sampling.top_p, v, 1e-6, 1); }},
    {"--tp", "N", kToEngine,
     "ranks that share the model, N processes; starts mpirun, or is started by it",
     [](Options& o, std::string_view v) { return set_ranks(o.ranks, v); }},
    {"--ep", "N", kToEngine,
     "groups of ranks that hold whole experts instead of parts of all; N ranks, unless --tp says",
     [](Options& o, std::string_view v) { return set_ranks(o.shard.expert_groups, v); }},
    {"--strategy", "LIST", kToEngine,
     "how an FP8 pool is read: pool-cast, gather-cast, fused; bench runs all by default",
     set_readings,
     [] {
       return Names{"pool-cast", "gather-cast", "fused"};
     }},
    {"--kv-dtype", "T", kToEngine | kToScore, "of the KV pool: bf16 (default) or fp8", set_kv,
     [] {
       return Names{"bf16", "fp8"};
     }},
    {"--pool-tokens", "N", kToEngine, "slots of the KV pool; as many as are needed by default",
     [](Options& o, std::string_view v) { return set(o.pool_tokens, v); }},
    {"--page", "N", kToEngine, "slots in a page; 1 by default",
     [](Options& o, std::string_view v) { return set(o.page, v); }},
    {"--chunk", "N", kToRun, "prompt tokens in a step; 64 by default",
     [](Options& o, std::string_view v) { return set(o.chunk, v); }},
    {"--launch", "MODE", kToEngine,
     "who launches kernels: eager, the host one by one; graph, the stream a step at once (default, "
     "but for recordings, which need the host's operators)",
     set_launch,
     [] {
       return Names{"eager", "graph"};
     }},
    {"--fault", "NAME[=N]", kToEngine,
     "what makes steps slow, switched on; may be repeated; `culprit lab faults` lists them",
     [](Options& o, std::string_view v) { return set_fault(v, o.faults); }, fault_names},
    {"--fault-rank", "R", kToEngine, "with --tp: the faults are those of rank R alone",
     [](Options& o, std::string_view v) -> Status {
       std::int64_t rank = 0;
       TRY([[maybe_unused]] const Ok set_it, set(rank, v, 0));
       o.fault_rank = rank;
       return Ok{};
     }},
    {"--profile", "FILE", kToEngine,
     "record a window of steps as the trace that `culprit FILE` reads; .gz compresses",
     [](Options& o, std::string_view v) -> Status {
       o.profile = v;
       return Ok{};
     }},
    {"--profile-warmup", "N", kToEngine, "steps in front of that window; 20 by default",
     [](Options& o, std::string_view v) { return set(o.profile_warmup, v, 0); }},
    {"--profile-steps", "N", kToEngine, "steps in it; 30 by default",
     [](Options& o, std::string_view v) { return set(o.profile_steps, v); }},
    {"--threads", "N", kToEngine | kToScore, "one per core by default",
     [](Options& o, std::string_view v) -> Status {
       TRY(const std::int64_t threads, whole(v, 1, 1024));
       o.threads = static_cast<int>(threads);
       return Ok{};
     }},
    {"--isa", "NAME", kToEngine | kToScore | kToCheck, "an instruction set other than the best one",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.isa, isa_named(v));
       return Ok{};
     }},
    {"--format", "NAME", kToMake, "safetensors (default) or gguf", set_container,
     [] {
       return Names{"safetensors", "gguf"};
     }},
    {"--oracle", "", kToScore, "of the float64 oracle instead of the engine; for small models",
     [](Options& o, std::string_view) -> Status {
       o.oracle = true;
       return Ok{};
     }},
    {"-o", "PATH", kToMake | kToScore, "the file or folder to write",
     [](Options& o, std::string_view v) -> Status {
       o.output = v;
       return Ok{};
     }},
    {"--overwrite", "", kToMake, "write over what is there",
     [](Options& o, std::string_view) -> Status {
       o.overwrite = true;
       return Ok{};
     }},
    {"--all", "", kToProve, "every pair",
     [](Options& o, std::string_view) -> Status {
       o.all = true;
       return Ok{};
     }},
    {"--runs", "N", kToProve, "of each pair, with fresh draws; 1 by default",
     [](Options& o, std::string_view v) { return set(o.runs, v); }},
    {"--tiny", "", kToProve, "on small models: what is named is right, times say nothing",
     [](Options& o, std::string_view) -> Status {
       o.tiny = true;
       return Ok{};
     }},
    {"--json", "[FILE]", kToEngine | kToMake | kToCheck | kToProve,
     "the answer as JSON, to FILE or the standard output",
     [](Options& o, std::string_view v) -> Status {
       o.json = v.empty() ? "-" : std::string(v);
       return Ok{};
     }},
    {"--quiet", "", kToModels | kToCheck | kToProve, "no progress",
     [](Options& o, std::string_view) -> Status {
       o.quiet = true;
       return Ok{};
     }},
    {"--help", "", kToModels | kToCheck | kToProve | kToFaults, "this text",
     [](Options& o, std::string_view) -> Status {
       o.help = true;
       return Ok{};
     }},
};

const CommandRow& row_of(Command command) {
  return *std::find_if(std::begin(kCommands), std::end(kCommands),
                       [&](const CommandRow& row) { return row.command == command; });
}

Result<Command> command_named(std::string_view word) {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) {
    if (row.name == word) return row.command;
    names.emplace_back(row.name);
  }
  return usage(fmt::format("culprit lab has no command \"{}\"", word),
               did_you_mean(word, names, "`culprit lab --help` lists them"));
}

Result<const Flag*> flag_named(std::string_view name, const CommandRow& command) {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    if (flag.name == name && (flag.commands & command.bit) != 0) return &flag;
    if ((flag.commands & command.bit) != 0) names.emplace_back(flag.name);
  }
  for (const Flag& flag : kFlags)
    if (flag.name == name)
      return usage(fmt::format("{} does not apply to \"lab {}\"", name, command.name),
                   fmt::format("`culprit lab {} --help` lists its flags", command.name));
  return usage(
      fmt::format("unknown flag \"{}\"", name),
      did_you_mean(name, names, fmt::format("`culprit lab {} --help` lists them", command.name)));
}

// Applies the flag at args[at]; moves `at` onto its value.
Status apply(std::span<const std::string_view> args, std::size_t& at, const CommandRow& command,
             Options& options) {
  const std::string_view word = args[at];
  const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
  const std::string_view name = word.substr(0, equals);
  if (!word.starts_with('-') && command.command == Command::kProve) {
    options.names.emplace_back(word);
    return Ok{};
  }
  if (!word.starts_with('-'))
    return usage(fmt::format("what is \"{}\"?", word),
                 fmt::format("`culprit lab {}` takes flags only", command.name));
  TRY(const Flag* const flag, flag_named(name, command));
  std::string_view value;
  if (equals != std::string_view::npos) {
    if (flag->value.empty()) return usage(fmt::format("{} takes no value", name));
    value = word.substr(equals + 1);
  } else if (!flag->value.empty()) {
    const bool more =
        at + 1 < args.size() && (args[at + 1] == "-" || !args[at + 1].starts_with('-'));
    if (more) value = args[++at];
    if (!more && !flag->value.starts_with('['))
      return usage(fmt::format("{} needs a value: {}", name, flag->value));
  }
  Status done = flag->apply(options, value);
  if (done.ok() || done.error().what.starts_with("unknown")) return done;
  return usage(fmt::format("{}: {}", name, done.error().what), done.error().hint);
}

Status check_run(const Options& options) {
  if (options.tokens.empty() && options.prompt_length == 0)
    return usage("no prompt", "--tokens 1,2,3, or --prompt-length N for a random one");
  if (!options.tokens.empty() && options.prompt_length > 0)
    return usage("two prompts", "either --tokens or --prompt-length");
  if (options.batch.size() != 1 || options.readings.size() == 2)
    return usage("one run has one batch and one strategy", "`culprit lab bench` compares them");
  return Ok{};
}

Status check_ranks(Options& options) {
  const std::int64_t groups = options.shard.expert_groups;
  if (options.shard.of > 1 && options.ranks > 1)
    return usage("--tp runs all ranks, --tp-shard one by itself", "leave one of them out");
  if (options.shard.of == 1 && options.ranks == 1) options.ranks = groups;
  const std::int64_t ranks = std::max(options.ranks, options.shard.of);
  if (ranks % groups != 0)
    return usage(fmt::format("{} ranks do not make {} equal groups with experts of their own",
                             ranks, groups),
                 "--ep divides --tp");
  return Ok{};
}

Status check_together(const Options& options) {
  if (options.command == Command::kCheck || options.command == Command::kFaults ||
      options.command == Command::kProve)
    return Ok{};
  if (options.model.empty() == options.preset.empty())
    return usage(options.model.empty() ? "no model" : "two models",
                 options.command == Command::kMakeModel
                     ? "--preset NAME; `culprit lab --help` lists them"
                     : "--model PATH for a checkpoint, or --preset NAME for a random one");
  const bool shaped = options.resize.layers || options.resize.experts ||
                      options.resize.scale != 1 || options.shard.of > 1;
  if (!options.model.empty() && shaped)
    return usage("--layers, --experts, --scale and --tp-shard shape random models",
                 "leave them out, or give --preset instead of --model");
  const bool writes = options.command == Command::kMakeModel || options.command == Command::kScore;
  if (writes && options.output.empty())
    return usage("where to?", "-o PATH names the file or folder to write");
  if (options.command == Command::kScore && options.tokens.empty())
    return usage("no text", "--tokens 1,2,3");
  if (options.pool_tokens % options.page != 0)
    return usage(fmt::format("--pool-tokens {} is no multiple of --page {}", options.pool_tokens,
                             options.page));
  if (options.launch == LaunchMode::kGraph && options.faults.sync_per_layer)
    return usage("a graph has no host between its layers to wait",
                 "--launch eager with --fault sync-per-layer");
  if (options.fault_rank && *options.fault_rank >= options.ranks)
    return usage(fmt::format("--fault-rank {}: there are {} ranks, counted from 0",
                             *options.fault_rank, options.ranks),
                 "--tp N makes several");
  return options.command == Command::kRun ? check_run(options) : Status(Ok{});
}

}  // namespace

Result<Options> parse(std::span<const std::string_view> args) {
  Options options;
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    options.help = true;
    return options;
  }
  TRY(options.command, command_named(args[0]));
  const CommandRow& command = row_of(options.command);
  if (options.command == Command::kRun) options.readings = {Reading::kFused};
  for (std::size_t at = 1; at < args.size(); ++at) {
    TRY([[maybe_unused]] const Ok applied, apply(args, at, command, options));
  }
  if (options.help) return options;
  TRY([[maybe_unused]] const Ok checked, check_together(options));
  TRY([[maybe_unused]] const Ok divided, check_ranks(options));
  return options;
}

CommandLine describe() {
  CommandLine lab;
  for (const CommandRow& row : kCommands) {
    CommandLine& command = lab.commands.emplace_back();
    command.name = row.name;
    command.summary = row.summary;
    command.details = row.details;
    if (row.command == Command::kProve)
      for (const Pair& pair : pairs()) command.words.known.emplace_back(pair.name);
    for (const Flag& flag : kFlags) {
      if ((flag.commands & row.bit) == 0) continue;
      FlagLine& line = command.flags.emplace_back();
      line.names.emplace_back(flag.name);
      line.value = flag.value;
      line.may_lack_value = flag.value.starts_with('[');
      line.words = words_of(flag.value);
      if (flag.words != nullptr) line.words.known = flag.words();
      line.help = flag.help;
    }
  }
  return lab;
}

std::string help_text() {
  std::string out =
      "usage: culprit lab COMMAND [flags]\n\n"
      "A decode engine for the CPU, to run a suspect and its fix for real: MLA and GQA, mixture "
      "of\n"
      "experts, NVFP4, FP8 and ggml weights, a paged KV pool and three ways of reading it.\n\n";
  for (const CommandRow& row : kCommands) out += fmt::format("  {:<12}{}\n", row.name, row.summary);
  out += "\n`culprit lab COMMAND --help` explains one.\n\npresets: ";
  for (const std::string& name : preset_names()) out += name + " ";
  out += "\nschemes: ";
  for (const std::string& name : scheme_names()) out += name + " ";
  return out + "\n";
}

std::string help_text(Command command) {
  if (command == Command::kHelp) return help_text();
  const CommandRow& row = row_of(command);
  std::string out = fmt::format("usage: culprit lab {} [flags]\n\n{}\n\n", row.name, row.details);
  for (const Flag& flag : kFlags)
    if ((flag.commands & row.bit) != 0)
      out += fmt::format("  {:<22}{}\n", fmt::format("{} {}", flag.name, flag.value), flag.help);
  return out;
}

}  // namespace culprit::lab
