// The GPU table (gpus.csv, embedded; a user's rows on top) and the match from a trace's device
// properties to a row. Peaks are theoretical bounds, never forecasts; cells that no source backs are
// marked. An unknown device gives no row, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::known {

struct Gpu {
  std::string name;        // "RTX PRO 6000 Blackwell Server"
  std::string arch;        // "sm120"
  int sms = 0;             // SMs or compute units; 0 unknown
  double memory_gb = 0;    // nominal
  double peak_gbps = 0;    // memory bandwidth, 1e9 B/s; 0 unknown
  double link_gbps = 0;    // NVLink or xGMI, one direction, 1e9 B/s; 0 = none or unknown
  double pcie_gbps = 0;    // one direction; 0 unknown
  double half_tflops = 0;  // dense; 0 = none or unknown
  double fp8_tflops = 0;
  double fp4_tflops = 0;
  bool peak_verified = true;            // false: the bandwidth cell has no cited source
  std::vector<std::string> unverified;  // columns of the row that no cited source backs
  std::string table;                    // the user's file it comes from; empty: built in
};

// What a trace says about its device; zero or empty where it says nothing.
struct DeviceProperties {
  std::string name;
  std::int64_t total_memory = 0;  // bytes
  int sms = 0;
  int cc_major = 0, cc_minor = 0;
};

struct GpuMatch {
  Gpu gpu;
  bool by_properties = false;  // the name was empty: found by SMs, memory and compute capability
  std::string
      warning;  // SMs or memory differ from the row (MIG, another variant); empty if they agree
};

const std::vector<Gpu>& gpus();
std::optional<GpuMatch> match_device(const DeviceProperties&);
// Rows of a user's table, in the columns of gpus.csv: one whose name is there replaces that row, the
// others are added. To be called before anything is looked up, from one thread. Errors name file and
// line; then nothing is added.
Status add_gpu_table(std::string_view text, std::string_view path);
Result<Gpu> find_gpu(std::string_view name);  // kUsage error naming the near matches

}  // namespace culprit::known
