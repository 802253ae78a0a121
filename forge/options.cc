#include "forge/options.h"
#include "base/usage.h"
#include "forge/forge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

namespace culprit::forge {
namespace {

using Names = std::vector<std::string>;
using Apply = Status (*)(Options& options, std::string_view value);

struct Flag {
  std::string_view name;
  std::string_view value;  // metavariable; empty: takes none
  std::string_view help;
  Apply apply;
  Names (*words)() = nullptr;  // what the value may be, for completions
};

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Error unknown(std::string_view what, std::string_view word,
              const std::vector<std::string_view>& known) {
  // A part of a name is nearer than a name with other letters.
  const auto far = [&](std::string_view name) {
    return name.find(word) != std::string_view::npos ? std::size_t{0} : distance(word, name);
  };
  const auto nearest =
      std::min_element(known.begin(), known.end(),
                       [&](std::string_view a, std::string_view b) { return far(a) < far(b); });
  const std::string hint =
      nearest == known.end() ? std::string() : fmt::format("did you mean: {}?", *nearest);
  return usage(fmt::format("unknown {} \"{}\"", what, word), hint);
}

Result<std::uint64_t> number(std::string_view text, std::string_view flag) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return usage(fmt::format("{} takes a whole number, not \"{}\"", flag, text));
  }
  return value;
}

Result<int> small_number(std::string_view text, std::string_view flag, int from, int to) {
  TRY(const std::uint64_t value, number(text, flag));
  if (value < static_cast<std::uint64_t>(from) || value > static_cast<std::uint64_t>(to)) {
    return usage(fmt::format("{} is from {} to {}, not {}", flag, from, to, text));
  }
  return static_cast<int>(value);
}

Result<std::uint64_t> bytes(std::string_view text) {
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"kB", 1'000}, {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"B", 1}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    TRY(const std::uint64_t value, number(text.substr(0, text.size() - unit.size()), "--size"));
    if (value > (std::uint64_t{1} << 50) / factor) return usage("--size is too large");
    return value * factor;
  }
  return number(text, "--size");
}

// Sets `field` to the value that `word` names.
template <class T>
Status pick(T& field, std::string_view flag, std::string_view word,
            std::vector<std::pair<std::string_view, T>> choices) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    names.push_back(name);
    if (name != word) continue;
    field = value;
    return Ok{};
  }
  return unknown(fmt::format("value of {}", flag), word, names);
}

Status set(bool& field, bool value) {
  field = value;
  return Ok{};
}

constexpr int kMaxSteps = 1'000'000;
constexpr int kMaxWorld = 64;

// Shapes of trace that the benchmarks ask for: mostly Python frames as Kineto prints them, or
// mostly operators, one event a line. Both more than 500 MB and 1.4 million events.
Status apply_preset(Options& options, std::string_view word) {
  bool stacks = false;
  Status picked =
      pick<bool>(stacks, "--preset", word, {{"stacks-pretty", true}, {"ops-lines", false}});
  if (!picked) return picked;
  options.write.stacks = stacks;
  options.write.layout = stacks ? Layout::kPretty : Layout::kLines;
  options.write.steps = stacks ? 18 : 24;
  options.steps_given = true;
  options.size = 550'000'000;
  return Ok{};
}

Names fault_names() {
  Names names{"none"};
  for (const Recipe& recipe : recipes())
    for (const Fault& fault : recipe.faults)
      if (std::find(names.begin(), names.end(), fault.name) == names.end())
        names.emplace_back(fault.name);
  return names;
}

constexpr Flag kFlags[] = {
    {"-o", "FILE", "where the trace goes; - is stdout",
     [](Options& o, std::string_view v) -> Status {
       o.output = v;
       return Ok{};
     }},
    {"--healthy", "", "plant no fault",
     [](Options& o, std::string_view) -> Status {
       o.choice.faults = {"none"};
       return Ok{};
     }},
    {"--fault", "NAME", "plant this instead of the recipe's usual fault; may be repeated",
     [](Options& o, std::string_view v) -> Status {
       o.choice.faults.push_back(v);
       return Ok{};
     },
     fault_names},
    {"--steps", "N", "steps to record",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.write.steps, small_number(v, "--steps", 1, kMaxSteps));
       o.steps_given = true;
       return Ok{};
     }},
    {"--seed", "N", "another draw of the small differences between steps",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.write.seed, number(v, "--seed"));
       return Ok{};
     }},
    {"--draw", "N", "another deployment, for the recipes that are named like suspects",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.choice.draw, number(v, "--draw"));
       return Ok{};
     }},
    {"--size", "SIZE",
     "such as 500MB: more frames (without stacks: operators) until it is that large; fewer "
     "steps, unless given, if it is too large",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.size, bytes(v));
       return Ok{};
     }},
    {"--events", "N", "the same until there are at least N events",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.events, number(v, "--events"));
       return Ok{};
     }},
    {"--shapes", "", "record shapes (the default)",
     [](Options& o, std::string_view) { return set(o.write.shapes, true); }},
    {"--no-shapes", "", "record no shapes",
     [](Options& o, std::string_view) { return set(o.write.shapes, false); }},
    {"--stacks", "", "record Python frames (the default)",
     [](Options& o, std::string_view) { return set(o.write.stacks, true); }},
    {"--no-stacks", "", "record no Python frames",
     [](Options& o, std::string_view) { return set(o.write.stacks, false); }},
    {"--call-from", "", "frames name the line that called them (default in the relative era)",
     [](Options& o, std::string_view) -> Status {
       o.call_from = true;
       return Ok{};
     }},
    {"--no-call-from", "", "frames know only the line of their def",
     [](Options& o, std::string_view) -> Status {
       o.call_from = false;
       return Ok{};
     }},
    {"--layout", "HOW",
     "pretty: as Kineto prints; lines: one event a line; array: the same without a header",
     [](Options& o, std::string_view v) {
       return pick<Layout>(
           o.write.layout, "--layout", v,
           {{"pretty", Layout::kPretty}, {"lines", Layout::kLines}, {"array", Layout::kArray}});
     },
     [] {
       return Names{"pretty", "lines", "array"};
     }},
    {"--era", "WHICH",
     "times as absolute-us (2021 to 2024), absolute-ns (spring of 2024) or relative (since)",
     [](Options& o, std::string_view v) {
       return pick<Era>(o.write.era, "--era", v,
                        {{"absolute-us", Era::kAbsoluteMicros},
                         {"absolute-ns", Era::kAbsoluteNanos},
                         {"relative", Era::kRelative}});
     },
     [] {
       return Names{"absolute-us", "absolute-ns", "relative"};
     }},
    {"--header", "WHERE", "first or last: before or after the events",
     [](Options& o, std::string_view v) {
       return pick<bool>(o.write.header_last, "--header", v, {{"first", false}, {"last", true}});
     },
     [] {
       return Names{"first", "last"};
     }},
    {"--marks", "WHOSE", "step marks: profiler, sglang, vllm or none",
     [](Options& o, std::string_view v) {
       return pick<Marks>(o.write.marks, "--marks", v,
                          {{"profiler", Marks::kProfiler},
                           {"sglang", Marks::kSglang},
                           {"vllm", Marks::kVllm},
                           {"none", Marks::kNone}});
     },
     [] {
       return Names{"profiler", "sglang", "vllm", "none"};
     }},
    {"--graph", "", "the model runs as one CUDA graph per step",
     [](Options& o, std::string_view) { return set(o.write.graph, true); }},
    {"--partial-ends", "", "the recording begins and ends inside a step",
     [](Options& o, std::string_view) { return set(o.write.partial_ends, true); }},
    {"--rank", "N", "the rank whose trace this is; all: every rank's, and -o names their folder",
     [](Options& o, std::string_view v) -> Status {
       o.all_ranks = v == "all";
       if (o.all_ranks) return Ok{};
       TRY(o.write.rank, small_number(v, "--rank", 0, kMaxWorld - 1));
       return Ok{};
     }},
    {"--clocks", "",
     "each rank's clock is off by up to 50 ms and fast or slow by up to 50 ppm, drawn from --seed; "
     "told on stderr",
     [](Options& o, std::string_view) { return set(o.clocks, true); }},
    {"--world", "N", "ranks of the run",
     [](Options& o, std::string_view v) -> Status {
       TRY(o.choice.world, small_number(v, "--world", 1, kMaxWorld));
       return Ok{};
     }},
    {"--emit-config", "DIR", "also write config.json, hf_quant_config.json and server_info.json",
     [](Options& o, std::string_view v) -> Status {
       o.config_dir = v;
       return Ok{};
     }},
    {"--preset", "NAME",
     "stacks-pretty or ops-lines: 550 MB, mostly frames or mostly operators; other flags "
     "override it",
     apply_preset,
     [] {
       return Names{"stacks-pretty", "ops-lines"};
     }},
    {"--list", "", "the recipes and their faults",
     [](Options& o, std::string_view) { return set(o.list, true); }},
    {"--help", "", "this text", [](Options& o, std::string_view) { return set(o.help, true); }},
};

Status choose_recipe(Options& options, std::string_view word) {
  if (options.recipe != nullptr) {
    return usage(fmt::format("two recipes: {} and {}", options.recipe->name, word),
                 "one trace is of one run");
  }
  std::vector<std::string_view> names;
  for (const Recipe& recipe : recipes()) {
    names.push_back(recipe.name);
    if (recipe.name == word) options.recipe = &recipe;
  }
  if (options.recipe == nullptr) return unknown("recipe", word, names);
  return Ok{};
}

// A flag as it stands on the command line, or (flag null) a recipe.
struct Word {
  const Flag* flag = nullptr;
  std::string_view value;
};

// Reads the word at `args[at]`; moves `at` onto its value.
Result<Word> read_word(std::span<const std::string_view> args, std::size_t& at) {
  std::string_view word = args[at];
  if (!word.starts_with('-') || word == "-") return Word{nullptr, word};
  std::string_view value;
  const std::size_t equals = word.find('=');
  const bool inline_value = word.starts_with("--") && equals != std::string_view::npos;
  if (inline_value) {
    value = word.substr(equals + 1);
    word = word.substr(0, equals);
  }
  std::vector<std::string_view> names;
  for (const Flag& flag : kFlags) {
    names.push_back(flag.name);
    if (flag.name != word) continue;
    if (flag.value.empty() && inline_value) return usage(fmt::format("{} takes no value", word));
    if (!flag.value.empty() && !inline_value) {
      if (at + 1 == args.size())
        return usage(fmt::format("{} needs a value: {}", word, flag.value));
      value = args[++at];
    }
    return Word{&flag, value};
  }
  return unknown("flag", word, names);
}

Status check_faults(Options& options) {
  auto& wanted = options.choice.faults;
  const Recipe& recipe = *options.recipe;
  if (wanted.empty()) wanted = recipe.usual_faults;
  std::erase(wanted, "none");
  std::vector<std::string_view> names;
  for (const Fault& fault : recipe.faults) names.push_back(fault.name);
  for (const std::string_view fault : wanted) {
    if (std::find(names.begin(), names.end(), fault) != names.end()) continue;
    if (names.empty()) return usage(fmt::format("recipe {} has no faults to plant", recipe.name));
    return unknown(fmt::format("fault of {}", recipe.name), fault, names);
  }
  return Ok{};
}

Status check_world(Options& options) {
  const std::vector<int>& worlds = options.recipe->worlds;
  int& world = options.choice.world;
  if (worlds.empty()) {
    if (world == 0) return Ok{};
    return usage(fmt::format("recipe {} draws its ranks", options.recipe->name),
                 "leave --world out");
  }
  if (world == 0) world = worlds.front();
  if (std::find(worlds.begin(), worlds.end(), world) == worlds.end()) {
    return usage(fmt::format("recipe {} does not run on {} ranks", options.recipe->name, world),
                 fmt::format("--world is one of {}", fmt::join(worlds, ", ")));
  }
  if (options.write.rank >= world) {
    return usage(fmt::format("rank {} of {} ranks does not exist", options.write.rank, world),
                 "ranks count from 0");
  }
  return Ok{};
}

}  // namespace

Result<Options> parse(std::span<const std::string_view> args) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    TRY(const Word word, read_word(args, i));
    words.push_back(word);
  }
  // A preset is a starting point, wherever it stands.
  std::stable_partition(words.begin(), words.end(), [](const Word& word) {
    return word.flag != nullptr && word.flag->apply == apply_preset;
  });
  Options options;
  for (const Word& word : words) {
    const Status done = word.flag != nullptr ? word.flag->apply(options, word.value)
                                             : choose_recipe(options, word.value);
    if (!done) return done.error();
  }
  if (options.help || options.list) return options;
  if (options.recipe == nullptr)
    return usage("which run? name a recipe", "culprit forge --list shows them");
  if (options.output.empty())
    return usage("where to? name the file with -o FILE", "-o - writes to stdout");
  const Status faults = check_faults(options);
  if (!faults) return faults.error();
  const Status world = check_world(options);
  if (!world) return world.error();
  // Kineto writes the calling line since 2026 only.
  options.write.call_from = options.call_from.value_or(options.write.era == Era::kRelative);
  options.choice.graph = options.write.graph;
  options.choice.recipe = options.recipe->name;
  return options;
}

CommandLine describe() {
  CommandLine line;
  for (const Recipe& recipe : recipes()) line.words.known.emplace_back(recipe.name);
  for (const Flag& flag : kFlags) {
    FlagLine& out = line.flags.emplace_back();
    out.names.emplace_back(flag.name);
    out.value = flag.value;
    out.words = words_of(flag.value);
    if (flag.words != nullptr) out.words.known = flag.words();
    out.help = flag.help;
  }
  return line;
}

std::string help_text() {
  std::string text =
      "usage: culprit forge RECIPE -o FILE [flags]\n\n"
      "Writes the trace of a described run, as PyTorch's profiler would have, with a fault planted "
      "in it.\n"
      "  culprit forge glm5 -o slow.json                 the founding case: the whole KV pool cast "
      "in every layer\n"
      "  culprit forge glm5 --healthy -o healthy.json    its twin without the fault\n\n";
  for (const Flag& flag : kFlags) {
    text += fmt::format(
        "  {:<22}{}\n",
        flag.value.empty() ? std::string(flag.name) : fmt::format("{} {}", flag.name, flag.value),
        flag.help);
  }
  return text;
}

std::string list_text() {
  std::string text;
  for (const Recipe& recipe : recipes()) {
    text += fmt::format("{:<22}{}\n", recipe.name, recipe.what);
    for (const Fault& fault : recipe.faults) {
      if (fault.name == recipe.name) continue;  // said already
      const auto& usual = recipe.usual_faults;
      const bool planted = std::find(usual.begin(), usual.end(), fault.name) != usual.end();
      text += fmt::format("  {:<20}{}{}\n", fault.name, fault.what,
                          planted ? " (planted unless --healthy)" : "");
    }
  }
  return text;
}

}  // namespace culprit::forge
