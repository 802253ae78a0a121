#include "known/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/near.h"
#include "known/csv.h"
#include "known/kernel_text.h"

namespace culprit::known {
namespace {

using Words = std::vector<std::string>;

struct Row {
  Gpu gpu;
  double usable_mib = 0;    // as a device query reports it; 0 unknown
  std::vector<Words> keys;  // the name and its aliases
};

bool is_one_of(std::string_view word, const std::vector<std::string_view>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "NVIDIA H100 80GB HBM3" -> {"h100", "80gb", "hbm3"}: lower case, one kind of space, no vendor or
// brand.
Words words_of(std::string_view name) {
  static const std::vector<std::string_view> kBrands = {
      "nvidia", "amd", "instinct", "tesla", "geforce", "intel", "intel(r)", "arc", "arc(tm)"};
  Words words(1);
  for (const char c : lower_case(name.substr(0, 256))) {
    const bool space = c == ' ' || c == '-' || c == '_' || c == '\t';
    if (!space) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  const auto dropped = [&](const std::string& word) {
    return word.empty() || is_one_of(word, kBrands);
  };
  words.erase(std::remove_if(words.begin(), words.end(), dropped), words.end());
  return words;
}

// What may follow a key in a device name without changing the device: memory, virtual functions,
// MIG slices ("MIG 1g.10gb"); what it means for the figures is told by the properties.
bool says_nothing_new(std::string_view word) {
  static const std::vector<std::string_view> kFillers = {"edition", "generation", "graphics", "oam",
                                                         "vf",      "mig",        "gpu"};
  const bool memory = word.size() > 2 && word.substr(word.size() - 2) == "gb";
  return memory || word.substr(0, 3) == "hbm" || is_one_of(word, kFillers);
}

bool begins_with(const Words& words, const Words& beginning) {
  return words.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), words.begin());
}

std::vector<Row> read_rows(const Csv& csv) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    Row row;
    row.gpu.name = csv.cell(i, "name");
    row.gpu.arch = csv.cell(i, "arch");
    row.gpu.sms = static_cast<int>(csv.integer(i, "sm_or_cu_count").value_or(0));
    row.gpu.memory_gb = csv.number(i, "memory_gb").value_or(0);
    row.gpu.peak_gbps = csv.number(i, "memory_bandwidth_gb_per_s").value_or(0);
    row.gpu.link_gbps = csv.number(i, "link_gb_per_s_per_direction").value_or(0);
    row.gpu.pcie_gbps = csv.number(i, "pcie_gb_per_s_per_direction").value_or(0);
    row.gpu.half_tflops = csv.number(i, "half_dense_tflops").value_or(0);
    row.gpu.fp8_tflops = csv.number(i, "fp8_dense_tflops").value_or(0);
    row.gpu.fp4_tflops = csv.number(i, "fp4_dense_tflops").value_or(0);
    row.gpu.unverified = cell_list(csv.cell(i, "unverified"));
    row.gpu.peak_verified = std::find(row.gpu.unverified.begin(), row.gpu.unverified.end(),
                                      "memory_bandwidth_gb_per_s") == row.gpu.unverified.end();
    row.usable_mib = csv.number(i, "memory_usable_mib").value_or(0);
    row.keys.push_back(words_of(row.gpu.name));
    for (const std::string& alias : cell_list(csv.cell(i, "aliases"))) {
      row.keys.push_back(words_of(alias));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

struct Table {
  std::vector<Row> rows;
  std::vector<Gpu> gpus;  // the rows' own, for gpus()
};

Table& table() {
  static Table built_in = [] {
    Table all;
    const auto csv = Csv::parse(kGpusCsv, "gpus.csv");
    if (csv.ok()) all.rows = read_rows(*csv);
    for (const Row& row : all.rows) all.gpus.push_back(row.gpu);
    return all;
  }();
  return built_in;
}

const std::vector<Row>& rows() { return table().rows; }

constexpr double kGb = 1e9;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kMib = 1024.0 * 1024.0;

// Vendors print GB and GiB alike and drivers keep some for themselves: 80 "GB" is 85.0e9 bytes on
// an H100, 48 "GB" is 47.8e9 on an A40.
bool memory_agrees(const Row& row, std::int64_t bytes) {
  const auto total = static_cast<double>(bytes);
  if (row.usable_mib > 0 && std::abs(total / (row.usable_mib * kMib) - 1) < 0.005) return true;
  return total >= 0.97 * row.gpu.memory_gb * kGb && total <= 1.002 * row.gpu.memory_gb * kGib;
}

// Compute capability 9.0 is sm90 at one vendor and gfx90a at the other.
bool arch_agrees(std::string_view arch, int major, int minor) {
  if (major == 0) return true;
  return arch == fmt::format("sm{}{}", major, minor) ||
         arch.substr(0, 5) == fmt::format("gfx{}{}", major, minor);
}

bool properties_agree(const Row& row, const DeviceProperties& device) {
  return row.gpu.sms == device.sms && memory_agrees(row, device.total_memory) &&
         arch_agrees(row.gpu.arch, device.cc_major, device.cc_minor);
}

// The only row of `candidates` whose SMs, memory and architecture are the device's.
const Row* only_by_properties(const std::vector<const Row*>& candidates,
                              const DeviceProperties& device) {
  if (device.sms <= 0 || device.total_memory <= 0) return nullptr;
  const Row* found = nullptr;
  for (const Row* row : candidates) {
    if (!properties_agree(*row, device)) continue;
    if (found != nullptr) return nullptr;
    found = row;
  }
  return found;
}

// Longest key first: "A100 SXM4 80GB" before "A100".
const Row* by_device_name(const Words& device) {
  const Row* best = nullptr;
  std::size_t best_length = 0;
  for (const Row& row : rows()) {
    for (const Words& key : row.keys) {
      const auto rest =
          device.begin() + static_cast<std::ptrdiff_t>(std::min(key.size(), device.size()));
      if (key.size() > best_length && begins_with(device, key) &&
          std::all_of(rest, device.end(), says_nothing_new)) {
        best = &row;
        best_length = key.size();
      }
    }
  }
  return best;
}

// Rows of which `words` is the beginning of a name or alias.
std::vector<const Row*> by_beginning(const Words& words) {
  std::vector<const Row*> found;
  for (const Row& row : rows()) {
    const bool any = std::any_of(row.keys.begin(), row.keys.end(),
                                 [&](const Words& key) { return begins_with(key, words); });
    if (any && !words.empty()) found.push_back(&row);
  }
  return found;
}

// A slice of a device (MIG, a partition mode, one die of two) has fewer SMs and less memory: its
// bandwidth scales with the memory it is wired to, its arithmetic with its SMs.
GpuMatch fitted_to(const Row& row, const DeviceProperties& device) {
  GpuMatch match{row.gpu, false, {}};
  const bool sms_differ = device.sms > 0 && row.gpu.sms > 0 && device.sms != row.gpu.sms;
  const bool memory_differs =
      device.total_memory > 0 && row.gpu.memory_gb > 0 && !memory_agrees(row, device.total_memory);
  if (!sms_differ && !memory_differs) return match;
  const std::string reported = fmt::format(
      "the trace reports {} SMs and {:.1f} GB, {} has {} and {:g}", device.sms,
      static_cast<double>(device.total_memory) / kGb, row.gpu.name, row.gpu.sms, row.gpu.memory_gb);
  constexpr double kSlice = 0.9;
  const double of_memory =
      static_cast<double>(device.total_memory) / (std::max(row.gpu.memory_gb, 1.0) * kGib);
  const double of_sms = device.sms / std::max(1.0, static_cast<double>(row.gpu.sms));
  if (!sms_differ || !memory_differs || of_sms > kSlice || of_memory > kSlice) {
    match.warning = reported + ": another variant? its peaks may differ; pass --gpu";
    return match;
  }
  match.gpu.sms = device.sms;
  match.gpu.memory_gb *= of_memory;
  match.gpu.peak_gbps *= of_memory;
  match.gpu.half_tflops *= of_sms;
  match.gpu.fp8_tflops *= of_sms;
  match.gpu.fp4_tflops *= of_sms;
  match.gpu.peak_verified = false;
  match.warning = reported + ": a slice of it; peaks are scaled to the slice";
  return match;
}

}  // namespace

const std::vector<Gpu>& gpus() { return table().gpus; }

Status add_gpu_table(std::string_view text, std::string_view path) {
  TRY(const Csv csv, Csv::parse(text, path));
  const CsvRules rules{
      {"name", "aliases", "arch", "sm_or_cu_count", "memory_gb", "memory_usable_mib",
       "memory_bandwidth_gb_per_s", "half_dense_tflops", "fp8_dense_tflops", "fp4_dense_tflops",
       "link_gb_per_s_per_direction", "pcie_gb_per_s_per_direction", "tdp_w", "l2_cache_mb",
       "l3_cache_mb", "unverified", "sources", "notes"},
      {"sm_or_cu_count", "memory_gb", "memory_usable_mib", "memory_bandwidth_gb_per_s",
       "half_dense_tflops", "fp8_dense_tflops", "fp4_dense_tflops", "link_gb_per_s_per_direction",
       "pcie_gb_per_s_per_direction"},
      {"name"}};
  const Status right = check(csv, rules);
  if (!right.ok()) return right.error();
  Table& all = table();
  for (Row& row : read_rows(csv)) {
    row.gpu.table = path;
    const auto same = std::find_if(all.rows.begin(), all.rows.end(), [&](const Row& other) {
      return other.keys.front() == row.keys.front();
    });
    if (same == all.rows.end()) {
      all.rows.push_back(std::move(row));
    } else {
      *same = std::move(row);
    }
  }
  all.gpus.clear();
  for (const Row& row : all.rows) all.gpus.push_back(row.gpu);
  return Ok{};
}

std::optional<GpuMatch> match_device(const DeviceProperties& device) {
  const Words words = words_of(device.name);
  if (words.empty()) {
    std::vector<const Row*> all;
    for (const Row& row : rows()) all.push_back(&row);
    if (const Row* row = only_by_properties(all, device)) return GpuMatch{row->gpu, true, {}};
    // Boards of two dies appear as two devices, each with half of everything.
    DeviceProperties board = device;
    board.sms *= 2;
    board.total_memory *= 2;
    const Row* row = only_by_properties(all, board);
    if (row == nullptr) return std::nullopt;
    GpuMatch die = fitted_to(*row, device);
    die.by_properties = true;
    return die;
  }
  if (const Row* row = by_device_name(words)) return fitted_to(*row, device);
  // "NVIDIA H100" alone is one of three: only its properties can tell.
  if (const Row* row = only_by_properties(by_beginning(words), device))
    return fitted_to(*row, device);
  return std::nullopt;
}

Result<Gpu> find_gpu(std::string_view name) {
  const Words words = words_of(name);
  for (const Row& row : rows()) {
    if (std::find(row.keys.begin(), row.keys.end(), words) != row.keys.end()) return row.gpu;
  }
  const auto candidates = by_beginning(words);
  if (candidates.size() == 1) return candidates.front()->gpu;
  constexpr std::string_view kList = "`culprit list gpus` names them all";
  std::vector<std::string> names;
  names.reserve(rows().size());
  for (const Row* row : candidates) names.push_back(row->gpu.name);
  if (!names.empty()) {
    return Error{Error::Code::kUsage, fmt::format("\"{}\" is more than one GPU", name), "",
                 fmt::format("which one: {}?", fmt::join(names, ", "))};
  }
  for (const Gpu& gpu : gpus()) names.push_back(gpu.name);
  return Error{Error::Code::kUsage, fmt::format("unknown GPU \"{}\"", name), "",
               did_you_mean(name, names, kList)};
}

}  // namespace culprit::known
