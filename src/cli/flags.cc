#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/commands.h"
#include "known/gpus.h"
#include "known/models.h"
#include "verdict/verdict.h"

namespace culprit::cli {
namespace {

using enum Takes;
using Names = std::vector<std::string>;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool set_index(std::optional<std::int64_t>& target, std::string_view text) {
  target = number<std::int64_t>(text);
  return target && *target >= 0;
}

bool set_positive(std::optional<std::int64_t>& target, std::string_view text) {
  target = number<std::int64_t>(text);
  return target && *target > 0;
}

bool set_kv_dtype(Settings& settings, std::string_view text) {
  if (text == "auto") {
    settings.kv_dtype.reset();
    return true;
  }
  const known::Dtype dtype = known::dtype_from_config(text);
  settings.kv_dtype = dtype;
  return dtype != known::Dtype::kUnknown;
}

bool set_tpot(Settings& settings, std::string_view text) {
  settings.tpot_ms = number<double>(text);
  return settings.tpot_ms && std::isfinite(*settings.tpot_ms) && *settings.tpot_ms > 0;
}

bool set_steps(Settings& settings, std::string_view text) {
  const std::size_t dots = text.find(".."), dash = text.find('-');
  if (dots == std::string_view::npos && dash == std::string_view::npos) return false;
  const std::size_t between = std::min(dots, dash);
  const auto first = number<std::int64_t>(text.substr(0, between));
  const auto last = number<std::int64_t>(text.substr(between + (between == dots ? 2 : 1)));
  if (!first || !last || *first < 0 || *last < *first) return false;
  settings.steps = {*first, *last};
  return true;
}

bool add_scale(Settings& settings, std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const auto factor = number<double>(text.substr(equals + 1));
  if (!factor || !std::isfinite(*factor) || *factor < 0) return false;
  settings.scale.emplace_back(text.substr(0, equals), *factor);
  return true;
}

// "3%" or "3": per cent.
bool set_fail_above(Settings& settings, std::string_view text) {
  constexpr double kMost = 1000;  // per cent
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto percent = number<double>(text);
  if (!percent || !std::isfinite(*percent) || *percent < 0 || *percent > kMost) return false;
  settings.fail_above = *percent / 100;
  return true;
}

bool set_threads(Settings& settings, std::string_view text) {
  constexpr int kMostThreads = 1024;
  const auto n = number<int>(text);
  settings.threads = n.value_or(0);
  return n && *n >= 0 && *n <= kMostThreads;
}

bool set_width(Settings& settings, std::string_view text) {
  settings.width = number<int>(text);
  return settings.width && *settings.width >= term::kMinWidth && *settings.width <= term::kMaxWidth;
}

bool set_color(Settings& settings, std::string_view text) {
  if (text == "auto") settings.color = term::ColorWhen::kAuto;
  if (text == "always") settings.color = term::ColorWhen::kAlways;
  if (text == "never") settings.color = term::ColorWhen::kNever;
  return text == "auto" || text == "always" || text == "never";
}

bool set_unit(Settings& settings, std::string_view text) {
  constexpr std::string_view kUnits[] = {"auto", "ns", "us", "ms", "s"};
  const auto* at = std::find(std::begin(kUnits), std::end(kUnits), text);
  if (at == std::end(kUnits)) return false;
  settings.unit = static_cast<text::TimeUnit>(at - std::begin(kUnits));
  return true;
}

bool set_text(std::string& target, std::string_view text) {
  target = text;
  return !text.empty();
}

Names gpu_names() {
  Names names;
  for (const known::Gpu& gpu : known::gpus()) names.push_back(gpu.name);
  return names;
}

Names model_names() {
  Names names;
  for (const known::Model& model : known::models()) names.push_back(model.name);
  return names;
}

Names suspect_ids() {
  Names names;
  for (const verdict::Rule& rule : verdict::rules()) names.emplace_back(rule.id);
  return names;
}

Names kv_dtypes() { return {"auto", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "fp4"}; }
Names moments() { return {"auto", "always", "never"}; }
Names units() { return {"auto", "ns", "us", "ms", "s"}; }
Names shells() { return {"bash", "zsh", "fish"}; }

bool set_completions(Settings& settings, std::string_view text) {
  const Names known = shells();
  settings.completions = text;
  return std::find(known.begin(), known.end(), text) != known.end();
}

constexpr Flag kFlags[] = {
    {"json", "", kOptionalValue, "FILE", "the answer as one JSON document",
     "Alone: the document goes to stdout in place of the text. With FILE: the text goes to stdout "
     "and the document to FILE, whole or not at all; a file that is no answer of culprit is not "
     "overwritten. The next word is FILE only if the trace is given as well; --json=FILE is always "
     "clear.",
     "a file name to write to", kToTraces & ~kToSlice,
     [](Settings& s, std::string_view v) {
       s.json = true;
       s.json_file = v == "-" ? std::string_view() : v;
       return true;
     }},
    {"markdown", "", kOptionalValue, "FILE",
     "the answer as Markdown, for a pull request or an issue",
     "Alone: to stdout in place of the text. With FILE: the text goes to stdout and the Markdown "
     "to "
     "FILE, whole or not at all. Names from the trace are written so that GitHub shows them as "
     "they are: "
     "none is markup, a mention or a link.",
     "a file name to write to", kToDiagnose | kToTables | kToCompare,
     [](Settings& s, std::string_view v) {
       s.markdown = true;
       s.markdown_file = v == "-" ? std::string_view() : v;
       return true;
     }},
    {"csv", "", kNothing, "", "sql: rows as comma-separated values, with a line of names",
     "Numbers as they are, texts quoted where they must be, nothing for NULL.", "", kToSql,
     [](Settings& s, std::string_view) { return s.csv = true; }},
    {"output", "o", kValue, "PATH", "slice: the file; fleet: the folder for what is written",
     "slice: compressed where the name ends in .gz; - is standard output; a file that is no slice "
     "of "
     "culprit is not overwritten. fleet: by default culprit-fleet in the working folder; summaries "
     "of "
     "unchanged traces in it are used again, fleet.json and fleet.sqlite are replaced.",
     "a path to write to", kToSlice | kToFleet,
     [](Settings& s, std::string_view v) { return set_text(s.output, v); }},
    {"step", "", kValue, "N", "slice: this step",
     "An index of `culprit steps`, from 0, over steps of the main kind.", "an index, 0 or more",
     kToSlice, [](Settings& s, std::string_view v) { return set_index(s.step, v); }},
    {"layer", "", kValue, "N", "slice: this layer of the step",
     "From 0. Of the step of --step, else of that of median length.", "an index, 0 or more",
     kToSlice, [](Settings& s, std::string_view v) { return set_index(s.layer, v); }},
    {"around", "", kValue, "SUSPECT", "slice: the step that shows this suspect best",
     "The step in which its kernels take most time; of a step-stall the longest one.",
     "an id of the verdict, such as whole-pool-cast", kToSlice,
     [](Settings& s, std::string_view v) { return set_text(s.around, v); }},
    {"fail-above", "", kValue, "P%", "compare: exit 1 where a step is slower by more than this",
     "A share of the step before, in per cent. Only a difference beyond the steps' noise fails; "
     "with "
     "too few steps to judge noise, one that lies between all steps of both sides. A smaller gate "
     "also "
     "lowers what counts as a difference at all (half a per cent).",
     "a percentage: --fail-above 3%", kToCompare, set_fail_above},
    {"html", "", kValue, "FILE", "the answer as a page to look at, beside the text",
     "One file that opens from disk and asks no network: the verdict, where a step goes, the "
     "timeline "
     "of a step by stream and host thread, suspects and their facts, who is ruled out, what fixes "
     "buy. "
     "A file that is no page of culprit is not overwritten. docs/report.md explains what it shows.",
     "a file name to write to; - is none", kToAnalysis,
     [](Settings& s, std::string_view v) { return v != "-" && set_text(s.html_file, v); }},
    {"model", "", kValue, "CONFIG|NAME", "the model: its config.json, a folder with one, or a name",
     "Kernels' element counts are held against every tensor of the model on one rank. "
     "`culprit list models` has the names. What the trace tells is used first.",
     "a config.json, a folder that holds one, or a name of `culprit list models`", kToTraces,
     [](Settings& s, std::string_view v) { return set_text(s.model, v); }, model_names},
    {"server-info", "", kValue, "FILE", "the server's own account of its deployment",
     "JSON of SGLang's /get_server_info (or /server_info) or of vLLM: parallelism, KV dtype, pool "
     "size and page size are taken from it. Flags beat it.",
     "a JSON file saved from the server", kToTraces,
     [](Settings& s, std::string_view v) { return set_text(s.server_info, v); }},
    {"gpu", "", kValue, "NAME", "the GPU whose peaks are used, whatever the trace says",
     "For traces whose device name is empty, unknown or a slice of a GPU. `culprit list gpus` has "
     "the names.",
     "a name of `culprit list gpus`", kToTraces,
     [](Settings& s, std::string_view v) { return set_text(s.gpu, v); }, gpu_names},
    {"gpu-table", "", kValue, "FILE|none", "GPUs of your own, on top of the built-in table",
     "CSV in the columns of src/known/gpus.csv, of which only `name` must be there; a name that is "
     "built in is replaced. Without the flag $XDG_CONFIG_HOME/culprit/gpus.csv (else "
     "~/.config/culprit/gpus.csv) is read where it is there; none reads neither.",
     "a CSV file, or none", kToAll,
     [](Settings& s, std::string_view v) { return set_text(s.gpu_table, v); }},
    {"model-table", "", kValue, "FILE|none", "models of your own, on top of the built-in table",
     "CSV in the columns of src/known/models.csv; model, hidden_size, num_hidden_layers and "
     "num_attention_heads must be there. Else models.csv beside the gpus.csv of --gpu-table.",
     "a CSV file, or none", kToAll,
     [](Settings& s, std::string_view v) { return set_text(s.model_table, v); }},
    {"tp", "", kValue, "N", "tensor-parallel size of the run",
     "Divides the model's tensors over ranks. Server info and config say it too; this beats them.",
     "a whole number, 1 or more", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.tp, v); }},
    {"kv-dtype", "", kValue, "T", "element type of the KV cache",
     "fp8_e4m3, fp8_e5m2, bf16, fp16, ... as the server's flag names it; auto leaves it to the "
     "model's files.",
     "auto, bf16, fp16, fp8_e4m3, fp8_e5m2 or fp4", kToTraces, set_kv_dtype, kv_dtypes},
    {"pool-tokens", "", kValue, "N", "tokens that the KV pool holds on one rank",
     "SGLang's max_total_num_tokens. With it the pool's size is known, not inferred.",
     "a whole number of tokens, 1 or more", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.pool_tokens, v); }},
    {"active-tokens", "", kValue, "N", "tokens alive in the pool while the trace was taken",
     "Over all requests. Says how small a part of the pool a step needs.",
     "a whole number of tokens, 1 or more", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.active_tokens, v); }},
    {"ep", "", kValue, "N", "expert-parallel size: GPUs that share the experts",
     "Part of --tp, which counts all GPUs: each holds whole experts, a share of 1/N of them.",
     "a whole number, 1 or more, that divides --tp", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.ep, v); }},
    {"attention-dp", "", kValue, "N", "groups of GPUs with attention of their own",
     "SGLang's --enable-dp-attention with --dp-size N: attention is shared by tp / N GPUs.",
     "a whole number, 1 or more, that divides --tp", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.attention_dp, v); }},
    {"context", "", kValue, "N", "tokens of context per request, for the floor of a step",
     "All requests alike. Without it the KV cache is not counted, unless --active-tokens tells it.",
     "a whole number of tokens, 1 or more", kToTraces,
     [](Settings& s, std::string_view v) { return set_positive(s.context, v); }},
    {"batch", "", kValue, "N", "floor: tokens of a decode step, over all GPUs",
     "One per request without speculation. Default: what the trace tells, else 1.",
     "a whole number, 1 or more", kToFloor,
     [](Settings& s, std::string_view v) { return set_positive(s.batch, v); }},
    {"kv", "", kValue, "T", "floor: the same as --kv-dtype",
     "Element type of the KV cache, as the server's flag names it.",
     "auto, bf16, fp16, fp8_e4m3, fp8_e5m2 or fp4", kToFloor, set_kv_dtype, kv_dtypes},
    {"tpot", "", kValue, "MS", "step time without a profiler, in milliseconds",
     "Profilers slow the host down. With the time per output token as measured without one, host "
     "times can be calibrated.",
     "milliseconds, more than 0", kToAnalysis | kToSql, set_tpot},
    {"steps", "", kValue, "A..B", "use these steps only, both ends included",
     "Indices of `culprit steps`, from 0, over steps of the main kind. Outliers among them count.",
     "two indices: --steps 5..24", kToTraces, set_steps},
    {"kernel", "", kValue, "REGEX", "explain: the kernels whose name matches",
     "A regular expression over full and short names.", "a regular expression", kToExplain,
     [](Settings& s, std::string_view v) { return set_text(s.kernel, v); }},
    {"suspect", "", kValue, "ID", "explain: the kernels of this suspect",
     "An id of the verdict, such as whole-pool-cast.", "a suspect's id", kToExplain,
     [](Settings& s, std::string_view v) { return set_text(s.suspect, v); }, suspect_ids},
    {"remove", "", kValue, "WHAT", "whatif: without this suspect, or the kernels that match",
     "An id of the verdict (whole-pool-cast) or a regular expression over kernel names. The "
     "launches "
     "go with the kernels. May be repeated.",
     "a suspect's id or a regular expression", kToWhatIf,
     [](Settings& s, std::string_view v) {
       s.remove.emplace_back(v);
       return !v.empty();
     },
     suspect_ids},
    {"scale", "", kValue, "REGEX=F", "whatif: kernels that match take F of their time",
     "0.5 is twice as fast, 2 half as fast. May be repeated.",
     "a regular expression, =, and a factor", kToWhatIf, add_scale},
    {"graph", "", kNothing, "", "whatif: one launch per step instead of one per kernel",
     "Host work between the launches of a step is gone as well.", "", kToWhatIf,
     [](Settings& s, std::string_view) { return s.graph = true; }},
    {"no-sync", "", kNothing, "", "whatif: the host never waits for the device",
     "As with overlap scheduling: what waits for room in the launch queue still does.", "",
     kToWhatIf, [](Settings& s, std::string_view) { return s.no_sync = true; }},
    {"mapping", "", kValue, "TRACE|none", "a trace that lends operators to graph kernels",
     "Kernels of a graph replay have no operator and no source of their own. A trace of the "
     "graph's "
     "capture, or of the same code run without graphs, lends them, as far as the kernels agree in "
     "order. Without the flag, captures that lie beside the trace are tried; none turns that off.",
     "a trace, or none", kToAnalysis | kToSql | kToSlice,
     [](Settings& s, std::string_view v) { return set_text(s.mapping, v); }},
    {"all", "", kNothing, "", "every row, every note, every suspect",
     "Lifts the limit of one screen, and of 20 rows in tables. sql: long texts in full.", "",
     kToAnalysis | kToCompare | kToSql, [](Settings& s, std::string_view) { return s.all = true; }},
    {"redact", "", kNothing, "", "no paths, user, host or model names in the answer",
     "In text, JSON, Markdown and the page. Files of public libraries keep their place in the "
     "library; other folders and files become folder1/file1.py, traces trace1.json. Names of "
     "kernels, "
     "operators, functions and marks stay, for they are the evidence: look at those that you "
     "chose. "
     "Warnings and errors on stderr are for you and stay as they are.",
     "", kToTraces & ~(kToSlice | kToFleet),
     [](Settings& s, std::string_view) { return s.redact = true; }},
    {"strict", "", kNothing, "", "a damaged trace is no answer: exit 2",
     "A trace that is broken, or from which something is missing, is a warning; with this flag it "
     "ends the run. `culprit list notes` says what counts as damage.",
     "", kToTraces, [](Settings& s, std::string_view) { return s.strict = true; }},
    {"quiet", "", kNothing, "", "no warnings and no progress on stderr; errors still are",
     "Notes stay in the answer itself.", "", kToTraces,
     [](Settings& s, std::string_view) { return s.quiet = true; }},
    {"verbose", "v", kNothing, "", "time of each stage on stderr",
     "One line per stage: reading, building the run, measuring, judging, rendering.", "", kToTraces,
     [](Settings& s, std::string_view) { return s.verbose = true; }},
    {"threads", "", kValue, "N", "threads to use; 0 is one per core",
     "The answer is the same for any number.", "a whole number from 0 to 1024", kToTraces,
     set_threads},
    {"color", "", kValue, "WHEN", "auto, always or never",
     "auto: on a terminal, unless NO_COLOR is set or TERM is dumb; CLICOLOR_FORCE and FORCE_COLOR "
     "turn it on. Colour only repeats what the words say.",
     "auto, always or never", kToAll, set_color, moments},
    {"time-unit", "", kValue, "U", "auto, ns, us, ms or s",
     "Pins the unit of every time in text. JSON always has nanoseconds.", "auto, ns, us, ms or s",
     kToTraces, set_unit, units},
    {"width", "", kValue, "N", "columns of the text",
     "Default: the terminal's width, or 80 where there is none.", "a whole number from 40 to 400",
     kToAll, set_width},
    {"help", "h", kNothing, "", "-h: this page; --help: with explanations",
     "After a command: that command's page.", "", kToAll, nullptr},
    {"version", "", kNothing, "", "the version, and the commit it was built from", "", "", kToAll,
     [](Settings& s, std::string_view) { return s.version = true; }},
    {"completions", "", kValue, "SHELL", "completions of commands, flags and values for a shell",
     "bash, zsh or fish, on stdout. Packages install them; by hand: "
     "`culprit --completions bash > ~/.local/share/bash-completion/completions/culprit`, "
     "`culprit --completions zsh > _culprit` in a folder of $fpath, "
     "`culprit --completions fish > ~/.config/fish/completions/culprit.fish`.",
     "bash, zsh or fish", kToAll, set_completions, shells},
    {"man", "", kNothing, "", "the manual page, in mdoc", "To read it: `culprit --man | man -l -`.",
     "", kToAll, [](Settings& s, std::string_view) { return s.man = true; }},
};

}  // namespace

std::span<const Flag> flags() { return kFlags; }

const Flag* find_flag(std::string_view name) {
  const auto* at = std::find_if(std::begin(kFlags), std::end(kFlags),
                                [name](const Flag& flag) { return flag.name == name; });
  return at == std::end(kFlags) ? nullptr : at;
}

const Flag* find_short_flag(std::string_view short_name) {
  const auto* at = std::find_if(std::begin(kFlags), std::end(kFlags), [&](const Flag& flag) {
    return !flag.short_name.empty() && flag.short_name == short_name;
  });
  return at == std::end(kFlags) ? nullptr : at;
}

std::vector<std::string> flag_names() {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    if (!flag.help.empty()) names.push_back("--" + std::string(flag.name));
  }
  return names;
}

}  // namespace culprit::cli
