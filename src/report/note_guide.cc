#include "report/note_guide.h"

#include <algorithm>

namespace culprit::report {
namespace {

constexpr NoteGuide kGuide[] = {
    {"kernels-missing",
     "Launches have no kernel in the trace, or graph replays lack some: the profiler dropped "
     "device "
     "records. No idle time is derived where one may have run.",
     "Record fewer steps, or start and stop the profiler between steps after a device "
     "synchronisation.",
     true},
    {"launches-missing",
     "Kernels have no launch call in the trace, so their operator and source line are unknown.",
     "Record host activities too (CPU and CUDA), and start the profiler before the launches.",
     true},
    {"ops-missing", "Launches lie under no framework operator.",
     "Record CPU activities; kernels of extensions and graph replays have no operator by nature."},
    {"ops-on-another-thread",
     "Launches come from a thread that records no operators; operators were matched by External "
     "id.",
     "Nothing: figures stay right, only the nesting of operators is less certain."},
    {"no-device-activity", "The trace holds no kernel, copy or set of a device.",
     "Record with ProfilerActivity.CUDA (nsys: -t cuda), and check that the profiler may use the "
     "device counters."},
    {"capture-trace",
     "This is the recording of a graph capture: calls and shapes, but the kernels did not run.",
     "Give the trace of the replay (the run itself)."},
    {"graph-level-rows", "Graph replays appear as single rows without their kernels.",
     "Record graphs by node (Nsight: --cuda-graph-trace=node).", true},
    {"mapping",
     "Graph kernels take operator and source from another trace, or from the capture in this one; "
     "the note says what was held against what.",
     "Nothing; --mapping none leaves them without."},
    {"not-mapped",
     "Graph kernels have no operator and no source: a replay records neither, and no other trace "
     "could be shown to fit.",
     "Record the capture of the graphs (SGLang: SGLANG_ENABLE_CUDA_GRAPH_CAPTURE_TRACE; vLLM: "
     "capture_torch_profiler) or a run without graphs, and give it with --mapping."},
    {"late-timestamps",
     "Device rows end long after later rows of their stream began; each was limited to the start "
     "of "
     "the next row.",
     "Update the driver or the profiler library; the ranking is that of the limited times.", true},
    {"impossible-duration",
     "The last row of a stream lasts many times longer than all the rest of the recording; it was "
     "limited to the recording's end.",
     "Record again; report the row to the profiler's makers if it comes back.", true},
    {"negative-duration", "A row ends before it begins; its duration was taken as zero.",
     "Record again; report the row to the profiler's makers if it comes back.", true},
    {"overlap-legal",
     "Neighbouring kernels of one stream overlap for a short time (programmatic dependent launch).",
     "Nothing: the overlap is real and is counted once."},
    {"clock-skew", "Kernels begin before their launch: the clocks of host and device differ.",
     "Nothing for the device's figures; no latency and no idle time is derived from such kernels."},
    {"partial-step",
     "Steps that are cut off by the recording window or lost kernels were left out of the means.",
     "Record one step more than you want to look at."},
    {"outlier-step", "Steps far longer than the rest were left out of the means.",
     "Look at them with `culprit steps`; include them with --steps A..B."},
    {"id-collision",
     "Several launches share a correlation id (several ranks in one file, or restarted counters); "
     "what runs under it is linked to none of them.",
     "Give the ranks' own files.", true},
    {"grid-in-work-items",
     "Every kernel's grid is a multiple of its block, as where a tracer writes work-items; grids "
     "were "
     "divided by their blocks.",
     "Nothing; give the trace of a newer profiler library if element counts look wrong."},
    {"ranks-missing",
     "The run has more ranks than were given. Collectives that take far longer than usual on every "
     "given rank count as waiting for one that is not there.",
     "Give the traces of all ranks, or their folder."},
    {"trace-skipped",
     "Traces of the fleet that cannot be read, or are of another run, were left out: ranks that "
     "are "
     "waited for may be among them.",
     "The answer lists each with its reason; `culprit TRACE` says more. Record or copy them again.",
     true},
    {"ranks-sampled",
     "A trace of the fleet has more collectives than its summary keeps: waiting, lateness and "
     "clocks are those of the first steps. Budgets and steps are of all.",
     "Nothing, if the steps are alike; else record fewer."},
    {"ranks-unaligned",
     "Ranks have no collective in common with the others, or its ends scatter too much, so that "
     "their clocks cannot be aligned.",
     "Record the same steps on every rank, long enough to hold some collectives."},
    {"bad-event",
     "Text in the event array is no event and was skipped; counted by place, each with what events "
     "it held.",
     "Record or export again if the count matters; everything else was read.", true},
    {"bad-string",
     "Strings hold bytes that are no UTF-8, or quotes or backslashes that are not escaped.",
     "Nothing: they were repaired; names may look odd.", true},
    {"bad-number",
     "Numbers are no JSON numbers (inf, NaN, decimal commas) or out of any real range.",
     "Export with LC_ALL=C; fields that do not matter to the answer were ignored.", true},
    {"truncated", "The file ends in the middle: the recorder or the copy was interrupted.",
     "Wait until the profiler has written its file, and copy it again; what was there was read.",
     true},
    {"compression-damaged",
     "The compressed data are damaged, or their checksum does not match: what was unpacked may be "
     "wrong.",
     "Copy the file again from where it was recorded.", true},
    {"trailing-data",
     "Something follows the end of the trace, another trace perhaps; it was ignored.",
     "Check that two files were not joined by mistake.", true},
    {"empty", "The file holds no events.", "Check that the profiler was stopped and exported."},
    {"not-a-trace", "The file is no profiler trace.",
     "Give the file that torch.profiler's export_chrome_trace, a server's profiler or nsys export "
     "wrote."},
    {"unknown-device", "The device is not in the GPU table; peaks and shares of peak are unknown.",
     "Name the nearest one with --gpu (see `culprit list gpus`)."},
    {"no-shapes", "Tensor shapes were not recorded; sizes come from launch geometry alone.",
     "Record with record_shapes=True (nsys: --pytorch=autograd-shapes-nvtx), or give --model and "
     "--server-info."},
    {"no-stacks", "Python stacks were not recorded; there are no source lines.",
     "Record with with_stack=True (nsys: --python-backtrace=cuda)."},
    {"no-steps", "No step could be told apart; the whole trace counts as one.",
     "Mark steps with profiler.step() or a record_function range, and record several."},
    {"too-few-steps", "So few steps were used that their spread is unknown.",
     "Record at least five steps after warm-up."},
    {"retiming-off", "Re-timing the unchanged step does not reproduce the measured one well.",
     "Take predicted gains as bounds only."},
    {"limit",
     "A safety limit was reached (size, nesting, expansion of compressed data, number of devices).",
     "Check the file; give its plain, unpacked form if it is right, or one file a rank.", true},
    {"damaged-table", "A table of the database is damaged; the rows around the damage were read.",
     "Export the report again: nsys export --type sqlite REPORT.nsys-rep.", true},
    {"pending-writes",
     "A file beside the database holds writes that are not in it yet; they were not read.",
     "Wait until nsys has ended, then: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)', or export "
     "again.",
     true},
    {"device-shared",
     "Several processes work on one GPU, or may do so; each is answered for by itself, and the "
     "time "
     "of the others looks idle.",
     "Hold the ranks' kernel times against the idle time, or record one process alone."},
    {"missing-columns",
     "The export lacks columns (they differ by version and by what was recorded); what they hold "
     "is unknown.",
     "Nothing, unless the answer needs it: export with a current Nsight Systems."},
    {"open-range", "Ranges were still open when the recording ended; they count as ended there.",
     "Nothing: at most the last step is affected."},
    {"sliced",
     "The file is a slice of a longer recording (`culprit slice`); its steps are those that were "
     "found "
     "there.",
     "Nothing; what varies from step to step is told by the whole recording."},
    {"unknown-marks",
     "The marks of this trace are of no known engine; steps were found without them.",
     "Nothing if the steps are right; else name the range to use by recording ProfilerStep marks."},
    {"bad-comma", "Commas between events are missing or too many, which is no JSON; all were read.",
     "Nothing: no figure is affected."},
    {"duplicate-key", "Objects hold a key twice; the last one counts.",
     "Nothing, unless two tools wrote into one file.", true},
    {"ranks-inseparable", "Several ranks are mixed in one file and nothing tells them apart.",
     "Give the ranks' own files.", true},
    {"other-devices",
     "The file holds several ranks or devices; the figures are about the one that works longest in "
     "a "
     "step, the table of ranks tells about the others.",
     "Give the trace of the rank you mean, if it is another."},
    {"batches-differ",
     "Compared steps have other batches on the two sides, so part of the difference is the load.",
     "Record both sides at the same batch, or pick the steps with --steps."},
    {"kinds-differ", "The two recordings have no kind of step in common.",
     "Record the same kind of step (decode with decode) on both sides."},
    {"noise-unknown",
     "Too few steps to tell a difference from the steps' own noise; it is reported as it is.",
     "Record 5 steps or more on both sides."},
    {"devices-differ", "The two recordings are of different devices.",
     "Nothing, if that is what you compare."},
    {"layers-differ", "The two recordings seem to have different numbers of layers.",
     "Check that both are of one model."},
    {"cannot-read", "The input cannot be opened or read.", "Check the path and the permissions."},
    {"unsupported", "The input is of a kind that is not read.",
     "See `culprit list formats` for what is read, and how to come by it."},
};

}  // namespace

std::span<const NoteGuide> note_guide() { return kGuide; }

const NoteGuide* find_note_guide(std::string_view code) {
  const auto* at = std::find_if(std::begin(kGuide), std::end(kGuide),
                                [code](const NoteGuide& guide) { return guide.code == code; });
  return at == std::end(kGuide) ? nullptr : at;
}

bool is_damage(const store::Note& note) {
  const NoteGuide* guide = find_note_guide(note.code);
  const bool grave =
      note.severity == store::Severity::kWarning || note.severity == store::Severity::kDataLoss;
  return grave && guide != nullptr && guide->damage;
}

}  // namespace culprit::report
