#include "ingest/nsight.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

#include "ingest/nsight_rows.h"
#include "ingest/text.h"

namespace culprit::ingest {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::string_view kRecord =
    "record with `nsys profile -t cuda,nvtx --cuda-graph-trace=node` and export again";
constexpr std::string_view kGpuTable = "TARGET_INFO_GPU";

// ---- What the database is -----------------------------------------------------------------------

bool is_export(const Database& database) {
  return database.has("META_DATA_EXPORT") || database.has("EXPORT_META_DATA") ||
         (database.has(kNameTable) && (database.has(kKernelTable) || database.has(kCallTable)));
}

Error refuse(const Database& database, const std::string& path) {
  Error e{Error::Code::kUnsupported, "", path, ""};
  e.note_code = "not-a-trace";
  const auto& tables = database.tables();
  const bool rocm = std::any_of(tables.begin(), tables.end(), [](const std::string& table) {
    return table.rfind("rocpd_", 0) == 0;
  });
  if (rocm) {
    e.what = "a ROCm profiler database (rocpd), which is not read";
    e.hint = "record with torch.profiler and pass its .json or .json.gz";
  } else if (database.has("StringTable") && database.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")) {
    e.what = "a database of nvprof, which Nsight Systems has replaced";
    e.hint = kRecord;
  } else {
    constexpr std::size_t kShown = 5;
    std::string list;
    for (std::size_t i = 0; i < std::min(tables.size(), kShown); ++i)
      list += (i == 0 ? "" : ", ") + cleaned(tables[i].substr(0, 60));
    if (tables.size() > kShown) list += ", ...";
    e.what = "an SQLite database, but no export of Nsight Systems: " +
             (list.empty() ? std::string("it has no table") : "its tables are " + list);
    e.hint = "pass what `nsys export --type sqlite REPORT.nsys-rep` wrote";
  }
  return e;
}

// ---- What stands around the rows ----------------------------------------------------------------

std::vector<CudaDevice> cuda_devices(const Database& database) {
  constexpr std::string_view kColumns[] = {"pid", "cudaId", "gpuId"};
  std::vector<CudaDevice> devices;
  Cursor cursor(database, "TARGET_INFO_CUDA_DEVICE", kColumns);
  while (cursor.next()) {
    const auto pid = cursor.integer(0), cuda = cursor.integer(1), gpu = cursor.integer(2);
    if (pid && cuda && gpu && *gpu >= 0 && *gpu <= 0x7fffffff)
      devices.push_back({*pid, *cuda, *gpu});
  }
  return devices;
}

struct Gpu {
  store::DeviceProperties properties;
  std::optional<std::int64_t> cuda;  // its number for a process that sees them all
};

std::vector<Gpu> read_gpus(const Database& database) {
  enum : std::size_t { kId, kName, kMemory, kBandwidth, kSms, kMajor, kMinor, kCuda };
  constexpr std::string_view kColumns[] = {
      "id",      "name",         "totalMemory",  "memoryBandwidth",
      "smCount", "computeMajor", "computeMinor", "cuDevice"};
  constexpr double kLeast = 1e9, kMost = 1e15;  // bytes a second; else it is no bandwidth
  std::vector<Gpu> gpus;
  Cursor cursor(database, kGpuTable, kColumns);
  while (cursor.next()) {
    Gpu gpu;
    const auto positive = [&](std::size_t column) {
      return std::max<std::int64_t>(cursor.integer(column).value_or(0), 0);
    };
    gpu.properties.id = cursor.integer(kId).value_or(static_cast<std::int64_t>(gpus.size()));
    gpu.properties.name = cleaned(cursor.text(kName).value_or(""));
    gpu.properties.total_memory = positive(kMemory);
    gpu.properties.sms = positive(kSms);
    gpu.properties.cc_major = positive(kMajor);
    gpu.properties.cc_minor = positive(kMinor);
    gpu.cuda = cursor.integer(kCuda);
    const double bandwidth = cursor.number(kBandwidth).value_or(0);
    if (bandwidth >= kLeast && bandwidth <= kMost) gpu.properties.peak_gbps = bandwidth / 1e9;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// "CUPTI_ACTIVITY_KIND_RUNTIME (3 rows)", ...; what nsys itself warned of.
std::string what_was_recorded(const Import& in) {
  std::string held;
  for (const auto& [table, rows] : in.read)
    held +=
        fmt::format("{}{} ({} row{})", held.empty() ? "" : ", ", table, rows, rows == 1 ? "" : "s");
  std::string text = fmt::format("the export holds {}", held.empty() ? "no CUDA table" : held);
  enum : std::size_t { kSeverity, kText };
  constexpr std::string_view kColumns[] = {"severity", "text"};
  constexpr std::int64_t kWarning = 2, kError = 3;
  constexpr int kShown = 2;
  Cursor cursor(in.database, "DIAGNOSTIC_EVENT", kColumns);
  for (int shown = 0; shown < kShown && cursor.next();) {
    const std::int64_t severity = cursor.integer(kSeverity).value_or(0);
    const std::string_view words = cursor.text(kText).value_or("");
    if (severity < kWarning || severity > kError || words.find("CUDA") == std::string_view::npos)
      continue;
    text += fmt::format("{}\"{}\"", shown++ == 0 ? "; nsys says " : ", ",
                        cleaned(words.substr(0, words.find('\n')).substr(0, 120)));
  }
  return text;
}

// ---- Order --------------------------------------------------------------------------------------

// Rows by begin time; rows of one time stay as they were. `more`: columns beside the table's own.
template <class Table, class... More>
void sort_by_begin(Table& table, More&... more) {
  if (std::is_sorted(table.begin.begin(), table.begin.end())) return;
  std::vector<std::uint32_t> order(table.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return table.begin[a] < table.begin[b];
  });
  const auto apply = [&](auto& column) {
    auto sorted = column;
    for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
    column = std::move(sorted);
  };
  (apply(more), ...);
  std::apply([&](auto&... column) { (apply(column), ...); }, table.columns());
}

void describe_devices(Import& in) {
  const std::vector<Gpu> gpus = read_gpus(in.database);
  const bool by_gpu = in.places.settle(cuda_devices(in.database), gpus.size());
  for (const Gpu& gpu : gpus) {
    in.trace.info.devices.push_back(gpu.properties);
    if (!by_gpu && gpu.cuda) in.trace.info.devices.back().id = *gpu.cuda;
  }
}

}  // namespace

bool is_sqlite_file(const std::string& path) {
  struct stat info {};
  if (path == "-" || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, kMagic.size()> head{};
  file.read(head.data(), head.size());
  return file.gcount() == static_cast<std::streamsize>(head.size()) &&
         std::string_view(head.data(), head.size()) == kMagic;
}

Status read_nsight(const Database& database, const Options& options, store::Trace& trace) {
  if (!is_export(database)) return refuse(database, trace.info.path);
  trace.info.format = "nsys-sqlite";
  trace.info.text_bytes = trace.info.file_bytes;
  Import in(database, trace, options);
  read_calls(in);
  read_kernels(in);
  read_copies(in);
  read_sets(in);
  read_graphs(in);
  read_syncs(in);
  read_ranges(in);
  sort_by_begin(trace.calls, in.chains);
  read_frames(in);
  if (in.cancelled()) return Error{Error::Code::kInterrupted, "interrupted", "", ""};
  sort_by_begin(trace.device);
  sort_by_begin(trace.syncs);
  sort_by_begin(trace.ops);
  sort_by_begin(trace.marks);
  describe_devices(in);
  in.faults.write(trace.notes);
  trace.info.advice.device = kRecord;
  if (trace.device.size() == 0) trace.info.advice.device += ": " + what_was_recorded(in);
  trace.info.advice.shapes = "nsys profile --pytorch=autograd-shapes-nvtx records them";
  trace.info.advice.stacks = "nsys profile --python-backtrace=cuda records them";
  return Ok{};
}

namespace {

// The file beside the database that holds writes which are not in it yet, or which it has only in
// part: "run.sqlite-wal". Empty: there is none. SQLite removes or empties both when a writer ends as
// it should.
std::string pending_writes(const std::string& path) {
  struct Beside {
    const char* suffix;
    std::string_view magic;
    std::int64_t header;  // bytes; a file of no more holds no write
  };
  constexpr Beside kBeside[] = {{"-wal", "\x37\x7f\x06", 32}, {"-journal", "\xd9\xd5\x05\xf9", 28}};
  for (const Beside& beside : kBeside) {
    struct stat info {};
    std::string name = path + beside.suffix;
    if (stat(name.c_str(), &info) != 0 || info.st_size <= beside.header) continue;
    std::ifstream file(name, std::ios::binary);
    std::array<char, 4> head{};
    file.read(head.data(), head.size());
    if (std::string_view(head.data(), beside.magic.size()) == beside.magic) return name;
  }
  return {};
}

Result<std::unique_ptr<store::Trace>> load_database(const std::string& path,
                                                    const Options& options) {
  TRY(const Database database, Database::open(path));
  auto trace = std::make_unique<store::Trace>();
  struct stat info {};
  trace->info.path = path;
  if (stat(path.c_str(), &info) == 0) trace->info.file_bytes = info.st_size;
  if (Status status = read_nsight(database, options, *trace); !status.ok()) return status.error();
  return trace;
}

}  // namespace

Result<std::unique_ptr<store::Trace>> load_nsight(const std::string& path, const Options& options) {
  auto trace = load_database(path, options);
  const std::string pending = pending_writes(path);
  if (pending.empty()) return trace;
  const std::string remedy =
      "wait until its writer has ended, then: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'";
  if (!trace.ok()) {
    Error e = trace.error();
    e.what += "; " + pending + " holds writes that are not in it yet";
    e.hint = remedy;
    return e;
  }
  (*trace)->notes.add({"pending-writes",
                       store::Severity::kDataLoss,
                       1,
                       {},
                       {},
                       pending,
                       "a file beside the database holds writes that are not in it yet, and was "
                       "not read: rows may be "
                       "missing; " +
                           remedy});
  return trace;
}

}  // namespace culprit::ingest
