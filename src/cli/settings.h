// Settings: what a command line asks for, as data. Filled by parse(); nothing here is checked
// against the file system or the tables of what is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/term.h"
#include "base/text.h"
#include "known/dtype.h"

namespace culprit::cli {

struct Command;

enum class Help : std::uint8_t { kNone, kShort, kLong };

struct Settings {
  const Command* command = nullptr;
  std::vector<std::string> words;  // what is neither flag nor command: the trace, the list's topic
  Help help = Help::kNone;
  bool version = false, man = false;
  std::string completions;  // a shell; empty: not asked for

  // Something about the program itself is asked, of no trace.
  bool about() const { return help != Help::kNone || version || man || !completions.empty(); }

  bool json = false;
  std::string json_file;  // empty: the document goes to stdout in place of the text
  std::string html_file;  // empty: no page
  bool csv = false;       // of sql

  std::string
      output;  // of slice: a file; of fleet: the folder for summaries and answer; empty: not given

  bool markdown = false;
  std::string markdown_file;         // empty: Markdown goes to stdout in place of the text
  std::optional<double> fail_above;  // of compare: a share of the step

  std::string model, server_info, gpu;  // empty: not given
  std::string gpu_table, model_table;   // files, or "none"; empty: the configuration folder's
  std::string mapping;                  // a trace that lends to graph kernels, or "none"
  std::optional<std::int64_t> tp, ep, attention_dp, pool_tokens, active_tokens, batch, context;
  std::optional<known::Dtype> kv_dtype;
  std::optional<double> tpot_ms;
  std::optional<std::pair<std::int64_t, std::int64_t>> steps;  // inclusive

  std::vector<std::string> remove;                    // suspects or kernels
  std::vector<std::pair<std::string, double>> scale;  // kernels, factor
  bool graph = false, no_sync = false;

  std::string around;                       // of slice; empty: not given
  std::optional<std::int64_t> step, layer;  // of slice

  std::string kernel, suspect;  // of explain; empty: not given

  bool all = false, redact = false, strict = false, quiet = false, verbose = false;
  int threads = 0;  // 0: all cores
  term::ColorWhen color = term::ColorWhen::kAuto;
  text::TimeUnit unit = text::TimeUnit::kAuto;
  std::optional<int> width;
};

}  // namespace culprit::cli
