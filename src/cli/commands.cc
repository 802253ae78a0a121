#include "cli/commands.h"

#include <algorithm>

namespace culprit::cli {
namespace {

using enum CommandId;

constexpr Command kCommands[] = {
    {kDiagnose, "diagnose", "TRACE", "why is a step this slow, and what would a fix buy (default)",
     "Finds the steps, gives every nanosecond of a step an owner, names the suspects with the "
     "evidence against each, rules out the rest with the number that clears them, and bounds what "
     "a "
     "fix would gain. The word `diagnose` may be left out.",
     "culprit rank0.trace.json.gz --model zai-org/GLM-5 --tp 8", kToDiagnose},
    {kTable, "steps", "TRACE", "every step: kind, batch, length, whether it counts",
     "Steps in time order. The index is the one that --steps takes. Steps that are cut off, far "
     "longer than the rest or of another kind do not count in the means; the reason is shown.",
     "culprit steps rank0.trace.json.gz --all", kToTables},
    {kTable, "budget", "TRACE", "where a step goes: owners that add up to its wall time",
     "Every nanosecond of the mean step has one owner: a kind of kernel, a reason for idling, or "
     "`unexplained`. The rows add up to the step exactly.",
     "culprit budget rank0.trace.json.gz --time-unit us", kToTables},
    {kTable, "kernels", "TRACE", "kernels by time per step, with bandwidth and share of peak",
     "One row for each kernel name and launch geometry. Bandwidth is bytes read and written over "
     "the kernel's time, where the bytes are known; a dash says that they are not.",
     "culprit kernels rank0.trace.json.gz --width 140", kToTables},
    {kTable, "layers", "TRACE", "what one layer of the model costs",
     "Kernels by how often they run in a layer, told by their calls per step and the number of "
     "layers.",
     "culprit layers rank0.trace.json.gz", kToTables},
    {kTable, "ops", "TRACE", "device time by framework operator",
     "Device time of each innermost operator around the launch. Replays of a graph have no "
     "operator of their own: --mapping lends them one, else it is `(not recorded in replay)`.",
     "culprit ops rank0.trace.json.gz", kToTables},
    {kTable, "sources", "TRACE", "device time by line of code",
     "Device time of each line of user code that led to the launch; needs a trace with Python "
     "stacks. `exact` is the line of the call, `function` the first line of its function.",
     "culprit sources rank0.trace.json.gz", kToTables},
    {kTable, "gaps", "TRACE", "when the device idles, for how long, and what ended it",
     "Idle times of the device inside the steps that count, longest first, each with its owner: "
     "the host launched late, waited, worked, or stood still.",
     "culprit gaps rank0.trace.json.gz --all", kToTables},
    {kTable, "comm", "TRACE", "collectives: size, time, what nothing hides, what may be waiting",
     "One row for each collective, element type, message size and kernel. Exposed is the time in "
     "which "
     "nothing else ran. Above the fastest: what the calls take beyond the fastest of their row, "
     "which "
     "is transfer and no waiting: the most that waiting for other ranks can be.",
     "culprit comm rank0.trace.json.gz", kToTables},
    {kTable, "memory", "TRACE", "copies, sets and allocations, with bytes and bandwidth",
     "Copies and sets of the copy engines by direction, kind of host memory and size; then the "
     "calls "
     "that allocate and free, with the host's time in them. Copies by kernels are in `kernels`.",
     "culprit memory rank0.trace.json.gz", kToTables},
    {kExplain, "explain", "TRACE", "everything known about one kernel or suspect",
     "Decoded name, launch geometry, elements, bytes, bandwidth and share of the roof, every "
     "operator chain, line and launch that its calls come from, and the table of the model's "
     "tensors that it was held against (--model).",
     "culprit explain rank0.trace.json.gz --suspect whole-pool-cast --model zai-org/GLM-5 --tp 8",
     kToExplain},
    {kWhatIf, "whatif", "TRACE", "the step run again with a change, and what bounds it then",
     "Runs the step's graph of launches, streams and waits again with what you change: a suspect "
     "or "
     "kernels gone (--remove), kernels faster or slower (--scale), one launch per step (--graph), "
     "no "
     "waits of the host (--no-sync). Changes add up. Names are regular expressions.",
     "culprit whatif rank0.trace.json.gz --remove whole-pool-cast --scale nccl=0.5", kToWhatIf},
    {kFloor, "floor", "--model CONFIG --gpu NAME [TRACE]",
     "the lowest step time that the hardware allows, by component",
     "Every matrix, cache and message of one decode step on one GPU, each at the peaks of the "
     "hardware: a bound, no forecast. --batch, --context and the deployment (--tp, --ep, "
     "--attention-dp, --kv-dtype) say which step; with --pool-tokens the pool's size is told. With "
     "a TRACE: how far the run is from it, by component, as far as its kernels tell them apart.",
     "culprit floor --model zai-org/GLM-5 --gpu B200 --tp 8 --batch 32 --context 4000", kToFloor},
    {kCompare, "compare", "BEFORE AFTER",
     "which milliseconds moved between two recordings, and why",
     "Steps of one kind and batch, kernels paired by role and place in the layer, so that a new "
     "name "
     "is no new kernel. Says first whether the difference is more than the steps' own noise. "
     "Budgets "
     "add up to the difference exactly. Two folders are compared rank by rank. --fail-above makes "
     "it "
     "a gate for CI, --markdown a comment for a pull request.",
     "culprit compare before.json.gz after.json.gz --fail-above 3%", kToCompare},
    {kSql, "sql", "TRACE... QUERY", "SQL over events, steps, kernels, facts and suspects",
     "One SELECT in SQLite's dialect over tables of what was read and found out; nothing is copied "
     "into a database. `.tables` names the tables, `.schema [TABLE]` their columns with units; - "
     "reads the query from standard input. A table that aligns on a terminal, or --csv, or --json. "
     "docs/sql.md has the schema and examples.",
     "culprit sql rank0.trace.json.gz \"SELECT name, sum(dur_ns) FROM events WHERE stream = 7 "
     "GROUP "
     "BY name ORDER BY 2 DESC LIMIT 5\"",
     kToSql},
    {kSlice, "slice", "TRACE -o FILE", "one step as a small trace that other tools open",
     "Cuts one step (--step), several (--steps), a layer of a step (--layer) or the step that "
     "shows "
     "a suspect best (--around) out of a trace of Chrome JSON: device and host events as they "
     "stand "
     "in the file, with every launch's kernel and every kernel's launch, wherever it lies. "
     "Perfetto, "
     "chrome://tracing and the tools for torch traces open it; culprit finds the same steps in it, "
     "to the nanosecond. A FILE that ends in .gz is compressed; - is standard output.",
     "culprit slice rank0.trace.json.gz --step 17 -o step17.json.gz", kToSlice},
    {kFleet, "fleet", "DIR", "the ranks of one run, thousands of traces, over MPI processes",
     "Answers as `culprit DIR` does, for every trace in DIR and the folders in it. Each trace is "
     "read "
     "once, by one of the processes (mpirun -n N, srun), and becomes a summary on disk; finished "
     "summaries are kept, so that a run that was stopped goes on where it was. A trace that cannot "
     "be "
     "read is left out and listed. -o FOLDER gets fleet.json, fleet.sqlite and the summaries. The "
     "answer is the same for any number of processes. docs/fleet.md explains it.",
     "mpirun -n 4 culprit fleet traces/ -o out", kToFleet},
    {kList, "list", "suspects|gpus|models|formats|notes", "what culprit knows",
     "suspects: what it looks for; gpus and models: the tables behind --gpu and --model; formats: "
     "what it reads, and what to do about the rest; notes: every code of a data-quality note.",
     "culprit list formats", kToList},
    {kForge, "forge", "RECIPE -o FILE ...", "write a trace of a described run",
     "Makes traces with known faults, at any size. `culprit forge --help` explains it.",
     "culprit forge --list", 0},
    {kLab, "lab", "run|bench|make-model|check ...", "the decode laboratory, on this machine's CPU",
     "A decode engine to run a suspect and its fix for real: MLA and GQA, mixture of experts, "
     "NVFP4 "
     "and FP8 weights, an FP8 KV pool and three ways of reading it. `culprit lab --help` explains "
     "it.",
     "culprit lab bench --preset tiny-glm-5 --kv-dtype fp8", 0},
    {kHelp, "help", "[COMMAND]", "this help, or that of one command", "", "culprit help kernels",
     kToAll},
    {kLater, "capture", "", "", "", "", 0},
    {kLater, "mcp", "", "", "", "", 0},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* at = std::find_if(std::begin(kCommands), std::end(kCommands),
                                [name](const Command& command) { return command.name == name; });
  return at == std::end(kCommands) ? nullptr : at;
}

const Command& default_command() { return kCommands[0]; }

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (command.id != kLater) names.emplace_back(command.name);
  }
  return names;
}

}  // namespace culprit::cli
