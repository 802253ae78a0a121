// Names of an Nsight Systems export, turned into what torch.profiler writes for the same thing, so
// that every later layer knows one spelling. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::ingest {

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel": CUPTI adds the CUDA version an entry point came
// with. "cuMemFree_v2" is the function's own name.
std::string_view api_name(std::string_view name);

// "Memcpy HtoD (Pageable -> Device)". Kinds by their number in the export; -1: not recorded.
std::string copy_name(std::int64_t kind, std::int64_t from, std::int64_t to, bool between_devices);
std::string set_name(std::int64_t memory);  // "Memset (Device)"
std::string sync_name(std::int64_t kind);   // "Stream Sync"

// An NVTX range. PyTorch's emit_nvtx writes its operators as "aten::mm, seq = 7, op_id = 12, sizes =
// [[2, 3], []]", and the ranges of record_function in the same way.
struct RangeText {
  std::string_view name;
  std::string_view sizes;    // "[[2, 3], []]"; empty: not recorded
  bool is_operator = false;  // an operator of PyTorch; else a mark
};
RangeText read_range(std::string_view text);

// A frame of a recorded backtrace as "path/file.py(LINE): function", where it is one of Python and
// tells its line; `module` is the file it belongs to.
std::optional<std::string> python_frame(std::string_view symbol, std::string_view module);

}  // namespace culprit::ingest
