// What culprit knows, as lists: from the tables that the work itself uses.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/near.h"
#include "cli/commands.h"
#include "cli/run_command.h"
#include "compare/compare.h"
#include "known/gpus.h"
#include "known/models.h"
#include "report/grid.h"
#include "report/note_guide.h"
#include "verdict/verdict.h"

namespace culprit::cli {
namespace {

using report::Cell;
using report::CellKind;
using report::Grid;

struct Format {
  std::string_view name, how;
};

constexpr Format kRead[] = {
    {"Kineto Chrome JSON",
     "torch.profiler's export_chrome_trace and the profilers of SGLang and vLLM: an object with "
     "traceEvents or a bare array of events, from PyTorch 1.8.1 on; plain, gzip or zstd, told by "
     "content, never by name; a file or standard input (-)"},
    {"Nsight Systems SQLite",
     "`nsys export --type sqlite REPORT.nsys-rep`, schema 2 (2021) to 3.25 (2026); a plain file, "
     "told by content; record with `nsys profile -t cuda,nvtx --cuda-graph-trace=node`"},
};

constexpr Format kRefused[] = {
    {".nsys-rep, .qdrep",
     "an Nsight Systems report, which only Nsight Systems reads: nsys export --type sqlite FILE"},
    {"other SQLite",
     "databases of nvprof, ROCm (rocpd) and anything else; a compressed or piped export: unpack it "
     "first, a database must be a plain file"},
    {".pftrace, .perfetto-trace",
     "a Perfetto protobuf trace: export Chrome JSON with torch.profiler instead"},
    {".zip", "unpack it and give the trace inside"},
    {"execution trace",
     "a PyTorch ExecutionTraceObserver file has no times: give the profiler's "
     "trace of the same run"},
    {"capture trace",
     "the recording of a graph capture, in which nothing ran: give the trace of "
     "the replay"},
    {"CPU-only trace", "no device activity: record with ProfilerActivity.CUDA"},
    {"older autograd traces",
     "torch.autograd.profiler's export of PyTorch before 1.8.1 links no kernel to its launch: "
     "record "
     "with torch.profiler"},
    {"other JSON", "not a profiler trace"},
};

// A name and what is said about it, the text wrapped beside it.
std::string described(std::string_view name, std::string_view words, int name_width, int width) {
  const int hang = name_width + 4;
  std::string out = "  " + text::pad_right(name, name_width);
  bool first = true;
  for (const std::string& line : text::wrap(words, std::max(width - hang, 20))) {
    out += first ? "  " : "\n" + std::string(static_cast<std::size_t>(hang), ' ');
    out += line;
    first = false;
  }
  return out + "\n";
}

std::string list_formats(const report::TextOptions& options) {
  std::string out = "read\n";
  for (const Format& format : kRead) out += described(format.name, format.how, 25, options.width);
  out += "\nrefused, and what to do instead\n";
  for (const Format& format : kRefused) {
    out += described(format.name, format.how, 25, options.width);
  }
  return out;
}

std::string list_notes(const report::TextOptions& options) {
  std::string out;
  for (const report::NoteGuide& note : report::note_guide()) {
    const std::string meaning = std::string(note.meaning) + (note.damage ? " (damage)" : "");
    out += described(note.code, meaning, 21, options.width);
    out += described("", note.remedy, 21, options.width);
  }
  return out;
}

std::string list_suspects(const report::TextOptions& options) {
  std::string out;
  const auto add = [&](const std::vector<verdict::Rule>& rules) {
    for (const verdict::Rule& rule : rules) {
      out += described(rule.id, rule.looks_for, 16, options.width);
      out += described("", fmt::format("needs: {}", rule.needs), 16, options.width);
      out += described("", fmt::format("disproved by: {}", rule.disproved_by), 16, options.width);
    }
  };
  add(verdict::rules());
  out += "\nof two recordings (culprit compare)\n";
  add(compare::rules());
  return out;
}

std::string lines_of(const Grid& grid, report::TextOptions options) {
  options.all = true;
  std::string out;
  for (const std::string& line : report::grid_lines(grid, options, 0)) out += line + "\n";
  return out;
}

constexpr int kWide = 110;  // from here on every peak has a column

// Of the columns shown, those that no cited source backs.
std::string unverified_text(const known::Gpu& gpu, bool wide) {
  struct Shown {
    std::string_view column, title;
    bool always;
  };
  constexpr Shown kShown[] = {{"sm_or_cu_count", "SMs", true},
                              {"memory_gb", "GB", true},
                              {"memory_bandwidth_gb_per_s", "GB/s", true},
                              {"half_dense_tflops", "half", false},
                              {"fp8_dense_tflops", "FP8", false},
                              {"fp4_dense_tflops", "FP4", false},
                              {"link_gb_per_s_per_direction", "link", false}};
  std::string out;
  for (const Shown& shown : kShown) {
    const auto& cells = gpu.unverified;
    const bool has = std::find(cells.begin(), cells.end(), shown.column) != cells.end();
    if (has && (wide || shown.always)) {
      out += (out.empty() ? "" : ", ") + std::string(shown.title);
    }
  }
  return out;
}

std::string list_gpus(const report::TextOptions& options) {
  const bool wide = options.width >= kWide;
  Grid grid;
  grid.columns = {{"GPU", "name"},
                  {"arch", "arch"},
                  {"SMs", "sms", CellKind::kCount},
                  {"GB", "memory_gb", CellKind::kNumber},
                  {"GB/s", "peak_gbps", CellKind::kNumber},
                  {"half", "half", CellKind::kNumber, false, kWide},
                  {"FP8", "fp8", CellKind::kNumber, false, kWide},
                  {"FP4", "fp4", CellKind::kNumber, false, kWide},
                  {"link", "link", CellKind::kNumber, false, kWide},
                  {"unverified", "", CellKind::kText}};
  const auto known = [](double x) { return x > 0 ? Cell(x) : Cell(); };
  for (const known::Gpu& gpu : known::gpus()) {
    grid.rows.push_back({gpu.name, gpu.arch,
                         gpu.sms > 0 ? Cell(static_cast<std::int64_t>(gpu.sms)) : Cell(),
                         known(gpu.memory_gb), known(gpu.peak_gbps), known(gpu.half_tflops),
                         known(gpu.fp8_tflops), known(gpu.fp4_tflops), known(gpu.link_gbps),
                         gpu.table.empty() ? unverified_text(gpu, wide) : "your table"});
  }
  return lines_of(grid, options);
}

// "FP8", "bf16", and whether the row says so by a source.
std::string weights_text(const known::Model& model) {
  std::string out = model.quant_algo;
  if (out.empty()) out = known::dtype_name(model.weight_dtype);
  if (out == "MIXED_PRECISION") out = "mixed";
  if (!model.table.empty()) return out + ", your table";
  return model.unverified.empty() ? out : out + ", unverified";
}

std::string list_models(const report::TextOptions& options) {
  Grid grid;
  grid.columns = {{"model", "model"},
                  {"layers", "layers", CellKind::kCount},
                  {"experts", "experts", CellKind::kCount, false, kWide},
                  {"weights", "weights"}};
  for (const known::Model& model : known::models()) {
    grid.rows.push_back({model.name, model.layers,
                         model.experts > 0 ? Cell(model.experts) : Cell(std::string()),
                         weights_text(model)});
  }
  return lines_of(grid, options);
}

struct Topic {
  std::string_view name;
  std::string (*text)(const report::TextOptions&);
};
constexpr Topic kTopics[] = {{"suspects", list_suspects},
                             {"gpus", list_gpus},
                             {"models", list_models},
                             {"formats", list_formats},
                             {"notes", list_notes}};

Error wrong_topic(const Settings& settings) {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  Error error{.code = Error::Code::kUsage,
              .what = "list needs one topic",
              .where = {},
              .hint = "culprit list suspects|gpus|models|formats|notes",
              .note_code = {}};
  if (settings.words.size() == 1) {
    error.what = fmt::format("there is no list \"{}\"", settings.words.front());
    error.hint = did_you_mean(settings.words.front(), names, error.hint);
  }
  return error;
}

}  // namespace

Outcome list(const Settings& settings, Console& console) {
  if (settings.words.size() == 1) {
    for (const Topic& topic : kTopics) {
      if (topic.name != settings.words.front()) continue;
      const report::TextOptions options = console.text_options();
      const std::string text = topic.text(options);
      return console.answer(options.unicode ? text : text::ascii(text));
    }
  }
  return console.fail(wrong_topic(settings));
}

}  // namespace culprit::cli
